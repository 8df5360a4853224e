"""Steps recorded once as a CUDA graph and replayed.

A step reads nothing on the host, so a GPU can record it once and replay it as a whole. Launching
hundreds of small kernels takes longer than their arithmetic; a replay launches all of them at once.
A phase identifies what a recording has fixed (the number of domains, shapes, weights that changed
on the host). In each phase the first steps run eagerly, then the step is recorded, and all further
steps are replayed. Every one of them is a real training step; there are no dry runs. Compiled steps
are recorded in the same way.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache

import torch

from ...methods.method import Terms
from .execution import Way

# Eager steps before a recording: they create the optimiser's state, and libraries choose their
# kernels.
EAGER_STEPS = 3


@dataclass
class CapturedSteps:
    """Carries out one step per call; after a few eager steps of a phase, as a recorded CUDA graph.

    It returns the same tensors each time, which the next step overwrites: copy them to keep them.
    """

    step: Callable[[], Terms]
    phase: Callable[[], Hashable]
    generators: Sequence[torch.Generator]
    note: Callable[[str], None]
    key: Hashable = field(default_factory=object)
    eager: int = 0
    graph: torch.cuda.CUDAGraph | None = None
    terms: Terms = field(default_factory=dict)

    def __call__(self) -> Terms:
        """Carry out a step: eager, or recorded and replayed, or replayed."""
        key = self.phase()
        if key != self.key:
            self.key, self.graph, self.eager = key, None, EAGER_STEPS
        if self.graph is None:
            if self.eager > 0:
                self.eager -= 1
                return self.step()
            try:
                self.graph = self._record()
            except RuntimeError as error:
                self.note(f"the step is not captured as a CUDA graph: {str(error).splitlines()[0]}")
                self.eager = 2**62
                return self.step()
        self.graph.replay()
        return self.terms

    def _record(self) -> torch.cuda.CUDAGraph:
        """Record one step. Nothing is computed yet, and no random numbers are consumed."""
        graph = torch.cuda.CUDAGraph()
        for generator in self.generators:
            graph.register_generator_state(generator)
        torch.cuda.current_stream().synchronize()
        graph.capture_begin(capture_error_mode="thread_local")
        try:
            self.terms = self.step()
        finally:
            graph.capture_end()
        return graph


@contextmanager
def steps_of(
    way: Way,
    device: torch.device,
    step: Callable[[], Terms],
    phase: Callable[[], Hashable],
    generators: Sequence[torch.Generator],
    note: Callable[[str], None],
) -> Iterator[Callable[[], Terms]]:
    """Yield a function that carries out one step of a domain per call, in this way."""
    if device.type != "cuda" or not way.captured:
        yield step
        return
    # Recording needs a stream of its own. The eager steps run on it too, so that all steps are
    # executed in order.
    stream = _stream(device)
    stream.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(stream):
        yield CapturedSteps(step, phase, generators, note)
    torch.cuda.current_stream(device).wait_stream(stream)


@cache
def _stream(device: torch.device) -> torch.cuda.Stream:
    """One stream per process: memory freed on a stream is reused only on that stream."""
    return torch.cuda.Stream(device)
