"""The Ray engine: the same tasks on any number of machines that share a folder.

Needs the extra `cluster`. Ray schedules the tasks, starts and stops processes, and repeats a task
if its node is lost; the run then resumes from the last finished domain in the shared folder.
"""

from typing import Any

from ...errors import FarshoreError, needs
from .engine import ATTEMPTS, Engine
from .work import Work, WorkOutcome, carry_out_work


def _in_one_thread(task: Work) -> WorkOutcome:
    """Carry out a task on a node of the cluster."""
    import torch

    torch.set_num_threads(1)
    return carry_out_work(task)


class RayEngine(Engine):
    """Runs `slots` tasks at a time on a Ray cluster, by default one per core or share of GPU."""

    def __init__(
        self,
        address: str | None = None,
        *,
        slots: int | None = None,
        gpu: bool = False,
        runs_per_gpu: int = 1,
    ) -> None:
        try:
            import ray
        except ImportError as error:
            raise needs("cluster", f"--engine ray needs Ray ({error})") from None
        self.ray: Any = ray
        self._owns_cluster = not ray.is_initialized()
        if self._owns_cluster:
            try:
                # Without an address Ray would join any cluster that runs on this machine.
                ray.init(
                    address=address or "local",
                    num_cpus=None if address else slots,
                    log_to_driver=False,
                    include_dashboard=False,
                )
            except (ConnectionError, ValueError) as error:
                why = f"--address {address}: no Ray cluster answers there ({error})"
                raise FarshoreError(why) from None
        resources = ray.cluster_resources()
        cores, gpus = resources.get("CPU", 1), resources.get("GPU", 0)
        available = int(gpus * runs_per_gpu if gpu else cores)
        if gpu and available == 0:
            raise FarshoreError("--device cuda: the Ray cluster has no GPU")
        # Nodes may join later: `slots` may exceed what the cluster has now.
        self.slots = slots or max(1, available)
        share = 1 / runs_per_gpu if gpu else 0
        remote = self.ray.remote(num_cpus=int(not gpu), num_gpus=share, max_retries=ATTEMPTS - 1)
        self._remote = remote(_in_one_thread)
        self._tasks: dict[Any, Work] = {}

    @property
    def free(self) -> int:
        """Free positions in the queue."""
        return self.slots - len(self._tasks)

    def submit(self, task: Work) -> None:
        """Hand the task to Ray."""
        self._tasks[self._remote.remote(task)] = task

    def next(self, seconds: float) -> WorkOutcome | None:
        """Wait at most this long for an outcome."""
        if not self._tasks:
            return None
        ready, _ = self.ray.wait(list(self._tasks), num_returns=1, timeout=seconds)
        if not ready:
            return None
        task = self._tasks.pop(ready[0])
        try:
            outcome: WorkOutcome = self.ray.get(ready[0])
        except self.ray.exceptions.RayError as error:
            lines = [*str(error).strip().splitlines(), type(error).__name__]
            return WorkOutcome(task.name, "failed", lines[0])
        return outcome

    def close(self) -> None:
        """Cancel unfinished tasks and disconnect from the cluster."""
        for reference in self._tasks:
            self.ray.cancel(reference, force=True)
        self._tasks = {}
        if self._owns_cluster:
            self.ray.shutdown()
