"""Random numbers: every draw comes from a named generator that is passed in and saved.

A run has four generators. A method's own draws never affect those of the data, so two methods with
the same seed see the same rows.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

NAMES = ("init", "data", "memory", "method")


def derive(seed: int, *names: str | int) -> int:
    """Derive a 63-bit seed from `seed` and `names`; different names give unrelated numbers."""
    text = repr((int(seed), *names)).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") >> 1


def generator(seed: int, *names: str | int, device: torch.device | str = "cpu") -> torch.Generator:
    """Create a torch generator seeded with `derive(seed, *names)`."""
    new_generator = torch.Generator(device=device)
    new_generator.manual_seed(derive(seed, *names))
    return new_generator


@contextmanager
def seeded(source: torch.Generator) -> Iterator[None]:
    """Seed PyTorch's global generator by one draw from `source`; restore its state on exit."""
    seed = int(torch.randint(2**62, (1,), generator=source, device=source.device).item())
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


@dataclass
class Generators:
    """The four generators of a run: initial weights, data order, memory, and the method's draws."""

    init: torch.Generator
    data: torch.Generator
    memory: torch.Generator
    method: torch.Generator

    @classmethod
    def from_seed(cls, seed: int, device: torch.device | str = "cpu") -> "Generators":
        """Create all four, each with its own stream.

        Initial weights are drawn on the CPU, so that they are the same on every device.
        """
        return cls(
            generator(seed, "init"), *(generator(seed, name, device=device) for name in NAMES[1:])
        )

    def state_dict(self) -> dict[str, torch.Tensor]:
        """The state of each generator as bytes."""
        return {name: getattr(self, name).get_state() for name in NAMES}

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        """Restore the state from `state_dict`."""
        for name in NAMES:
            getattr(self, name).set_state(state[name].cpu())
