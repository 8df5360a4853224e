"""Random numbers: every draw comes from a named generator that is passed in and saved.

A run has four generators. A method's own draws never move the data's, so two methods with one seed
see the same rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

NAMES = ("init", "data", "memory", "method")


def derive(seed: int, *names: str | int) -> int:
    """A 63-bit seed that depends on `seed` and `names` only; other names give unrelated numbers."""
    text = repr((int(seed), *names)).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") >> 1


def generator(seed: int, *names: str | int, device: torch.device | str = "cpu") -> torch.Generator:
    """A fresh torch generator for `derive(seed, *names)`."""
    made = torch.Generator(device=device)
    made.manual_seed(derive(seed, *names))
    return made


@contextmanager
def seeded(source: torch.Generator) -> Iterator[None]:
    """Inside, PyTorch's global generator (which layer initialisers use) is seeded by one draw from
    `source`.

    The global generator is put back afterwards, so nobody else's draws move.
    """
    seed = int(torch.randint(2**62, (1,), generator=source, device=source.device).item())
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


@dataclass
class Generators:
    """The four generators of a run: initial weights, data order, memory, and the method's own
    draws.
    """

    init: torch.Generator
    data: torch.Generator
    memory: torch.Generator
    method: torch.Generator

    @classmethod
    def from_seed(cls, seed: int, device: torch.device | str = "cpu") -> Generators:
        """All four, each with its own stream. Initial weights are drawn on the CPU so that they
        are the same everywhere.
        """
        return cls(
            generator(seed, "init"), *(generator(seed, name, device=device) for name in NAMES[1:])
        )

    def state_dict(self) -> dict[str, torch.Tensor]:
        """The state of each generator as bytes."""
        return {name: getattr(self, name).get_state() for name in NAMES}

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        """Go on exactly where `state` was taken."""
        for name in NAMES:
            getattr(self, name).set_state(state[name].cpu())
