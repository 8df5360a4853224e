"""The Ray engine: the same tasks on any number of machines that share a folder. Needs the extra
`cluster`.

Ray places the tasks, starts and ends processes, and repeats a task whose node is lost; the run then
goes on from the last finished domain in the shared folder.
"""

from __future__ import annotations

from typing import Any

from ..errors import FarshoreError, needs
from ..execution import warm_up
from .engine import ATTEMPTS, Engine
from .work import Outcome, Task, carry_out_task


def _in_one_thread(task: Task) -> Outcome:
    """A run on a node of the cluster."""
    import torch

    torch.set_num_threads(1)
    warm_up("cpu")
    return carry_out_task(task)


class RayEngine(Engine):
    """As many runs at a time as the cluster has cores, or GPUs times `runs_per_gpu`, or as
    `slots` says.
    """

    def __init__(
        self,
        *,
        address: str | None = None,
        slots: int | None = None,
        gpu: bool = False,
        runs_per_gpu: int = 1,
    ) -> None:
        try:
            import ray
        except ImportError as error:
            raise needs("cluster", f"--engine ray needs Ray ({error})") from None
        self.ray: Any = ray
        self._began = not ray.is_initialized()
        if self._began:
            try:
                ray.init(
                    address=address,
                    num_cpus=None if address else slots,
                    log_to_driver=False,
                    include_dashboard=False,
                )
            except (ConnectionError, ValueError) as error:
                raise FarshoreError(
                    f"--address {address}: no Ray cluster answers there ({error})"
                ) from None
        here = ray.cluster_resources()
        # Nodes may join later: with a cluster of its own address the queue is deeper than what
        # there is now.
        room = int(here.get("GPU", 0) * runs_per_gpu) if gpu else int(here.get("CPU", 1))
        if gpu and room == 0:
            raise FarshoreError("--device cuda: the Ray cluster has no GPU")
        self.slots = slots or max(1, room)
        options = {
            "num_cpus": 0 if gpu else 1,
            "num_gpus": 1 / runs_per_gpu if gpu else 0,
            "max_retries": ATTEMPTS - 1,
        }
        self._remote = self.ray.remote(**options)(_in_one_thread)
        self._tasks: dict[Any, Task] = {}

    @property
    def free(self) -> int:
        """Places in the queue."""
        return self.slots - len(self._tasks)

    def submit(self, task: Task) -> None:
        """Hand the task to Ray."""
        self._tasks[self._remote.remote(task)] = task

    def next(self, seconds: float) -> Outcome | None:
        """An outcome, if one comes in time."""
        ready, _ = (
            self.ray.wait(list(self._tasks), num_returns=1, timeout=seconds)
            if self._tasks
            else ([], [])
        )
        if not ready:
            return None
        task = self._tasks.pop(ready[0])
        try:
            outcome: Outcome = self.ray.get(ready[0])
        except self.ray.exceptions.RayError as error:
            first = (
                str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            )
            return Outcome(task.name, "failed", first)
        return outcome

    def close(self) -> None:
        """Take back what was not finished, and leave the cluster."""
        for reference in self._tasks:
            self.ray.cancel(reference, force=True)
        self._tasks = {}
        if self._began:
            self.ray.shutdown()
