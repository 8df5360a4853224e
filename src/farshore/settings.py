"""Settings: each has its default, its range and its search distribution in one place.

The paper's table gives some settings another default and distribution on larger or longer data
sets. A scenario says which it is with two flags, `small` and `short`; `setting(...,
unless_small=...)` holds the other pair.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .errors import FarshoreError, unknown

S = TypeVar("S", bound="Settings")


@dataclass(frozen=True)
class Uniform:
    """Continuous uniform on [low, high]."""

    low: float
    high: float

    def draw(self, rng: np.random.Generator) -> float:
        """One value."""
        return float(rng.uniform(self.low, self.high))

    def __str__(self) -> str:
        return f"U({self.low:g}, {self.high:g})"


@dataclass(frozen=True)
class UniformInt:
    """Whole numbers from low to high, both included."""

    low: int
    high: int

    def draw(self, rng: np.random.Generator) -> int:
        """One value."""
        return int(rng.integers(self.low, self.high, endpoint=True))

    def __str__(self) -> str:
        return f"UInt({self.low}, {self.high})"


@dataclass(frozen=True)
class Power:
    """base ** U(low, high), cut to a whole number where `whole`."""

    base: float
    low: float
    high: float
    whole: bool = False

    def draw(self, rng: np.random.Generator) -> float | int:
        """One value."""
        value = self.base ** float(rng.uniform(self.low, self.high))
        return int(value) if self.whole else value

    def __str__(self) -> str:
        text = f"{self.base:g}^U({self.low:g}, {self.high:g})"
        return f"int {text}" if self.whole else text


@dataclass(frozen=True)
class Choice:
    """One of the options, each as likely."""

    options: tuple[Any, ...]

    def draw(self, rng: np.random.Generator) -> Any:
        """One value."""
        return self.options[int(rng.integers(len(self.options)))]

    def __str__(self) -> str:
        return "{" + ", ".join(str(option) for option in self.options) + "}"


Distribution = Uniform | UniformInt | Power | Choice


@dataclass(frozen=True)
class Plan:
    """Default and search distribution of one setting; `search` None means that it is not
    searched.
    """

    default: Any
    search: Distribution | None
    flag: Literal["small", "short"] | None = None
    other_default: Any = None
    other_search: Distribution | None = None

    def choose(self, *, small: bool, short: bool) -> tuple[Any, Distribution | None]:
        """The pair that holds for a scenario with these flags."""
        flags = {"small": small, "short": short}
        if self.flag is not None and not flags[self.flag]:
            return self.other_default, self.other_search
        return self.default, self.search


def setting(
    default: Any,
    search: Distribution | None = None,
    *,
    unless_small: tuple[Any, Distribution | None] | None = None,
    unless_short: tuple[Any, Distribution | None] | None = None,
    help: str = "",
    **constraints: Any,
) -> Any:
    """A field of a Settings class. `constraints` are pydantic's (gt, ge, lt, le, multiple_of)."""
    flag: Literal["small", "short"] | None = (
        "small" if unless_small else "short" if unless_short else None
    )
    other = unless_small or unless_short or (None, None)
    plan = Plan(default, search, flag, *other)
    return Field(default, description=help, json_schema_extra={"plan": plan}, **constraints)  # type: ignore[dict-item]


class Settings(BaseModel):
    """Frozen, validated settings. Unknown names and values out of range are refused with the way
    out.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @classmethod
    def plans(cls) -> dict[str, Plan]:
        """The plan of every setting, by name."""
        return {
            name: _plan(field.json_schema_extra, field.default)
            for name, field in cls.model_fields.items()
        }

    @classmethod
    def defaults(cls, *, small: bool = True, short: bool = True) -> dict[str, Any]:
        """The default of every setting for a scenario with these flags."""
        return {
            name: plan.choose(small=small, short=short)[0] for name, plan in cls.plans().items()
        }

    @classmethod
    def distributions(cls, *, small: bool = True, short: bool = True) -> dict[str, Distribution]:
        """The search distribution of every setting that is searched."""
        chosen = {
            name: plan.choose(small=small, short=short)[1] for name, plan in cls.plans().items()
        }
        return {name: search for name, search in chosen.items() if search is not None}

    @classmethod
    def build(
        cls: type[S], values: Mapping[str, Any], *, small: bool = True, short: bool = True
    ) -> S:
        """Defaults for these flags, overridden by `values`; a bad name or value is one clear
        error.
        """
        for name in values:
            if name not in cls.model_fields:
                raise unknown("setting", name, cls.model_fields)
        try:
            return cls(**{**cls.defaults(small=small, short=short), **values})
        except ValidationError as error:
            raise FarshoreError(explain(error)) from None


def explain(error: ValidationError) -> str:
    """A pydantic error as one line: which name, what was given, what is allowed."""
    first = error.errors()[0]
    name = (
        ".".join(
            str(part)
            for part in first["loc"]
            if not str(part).startswith(("float", "literal", "int"))
        )
        or "value"
    )
    allowed = first["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    return f"{name} = {first['input']!r} is not allowed: it should be {allowed}"


def _plan(extra: Any, default: Any) -> Plan:
    return extra["plan"] if isinstance(extra, dict) and "plan" in extra else Plan(default, None)


class MethodSettings(Settings):
    """What every method has: the paper's shared hyper-parameters (its table of hyper-parameters,
    first block).
    """

    learning_rate: float = setting(
        1e-3,
        Power(10, -4.5, -0.5),
        unless_small=(5e-5, Power(10, -5, -0.5)),
        gt=0,
        help="step size of the optimiser",
    )
    weight_decay: float = setting(
        0.0, None, unless_small=(0.0, Power(10, -6, -2)), ge=0, help="weight decay of the optimiser"
    )
    batch_size: int = setting(
        64,
        Power(2, 3, 8, whole=True),
        unless_small=(32, Power(2, 3, 5, whole=True)),
        ge=1,
        help="rows of the current domain a step",
    )


class RunSettings(Settings):
    """What is the same for all methods of a comparison."""

    optimizer: Literal["adam", "adamw", "sgd"] = setting(
        "adam", help="one instance for the whole run"
    )
    momentum: float = setting(0.0, ge=0, lt=1, help="momentum of sgd")
    reset_optimizer: Literal["never", "domain"] = setting(
        "never", help="domain: a fresh optimiser at the start of every domain"
    )
    replay_budget: Literal["per-domain", "total"] = setting(
        "per-domain",
        help="per-domain: as many rows of each past domain as of the current one; total: one "
        "batch divided over the past domains",
    )
    memory_fill: Literal["end", "reservoir"] = setting(
        "end",
        help="end: rows drawn when the domain ends; reservoir: rows kept while it is trained, "
        "with the logits of that moment",
    )
    class_balanced_memory: bool = setting(
        False, help="keep equally many rows of each class in a partition"
    )
    memory_bytes: int | None = setting(
        None, gt=0, help="a bound on the memory in bytes, beside the one in items"
    )
    class_weight: Literal["none", "balanced"] = setting(
        "none",
        help="balanced: in the ERM terms a row of a class weighs the more the rarer it is among "
        "the current domain's training rows",
    )
    freeze_batchnorm: bool = setting(
        False, help="BatchNorm uses its stored statistics in training too"
    )
    execution: Literal["auto", "eager", "compiled", "graph"] = setting(
        "auto",
        help="of a step: eager, captured as one CUDA graph, or compiled and captured; auto: what "
        "pays on the device",
    )
    precision: Literal["auto", "float32", "tf32", "bf16"] = setting(
        "auto",
        help="of matrix products in training; auto: float32 on a CPU, on a GPU bf16 in "
        "convolutional features, tf32 elsewhere",
    )
    threads: int | None = setting(
        None,
        ge=1,
        help="CPU threads; by default 1 for networks below a million parameters, else one per core",
    )
    deterministic: bool = setting(
        False, help="on a GPU: kernels that give the same bits each time, at some cost in speed"
    )


def parse_assignments(pairs: list[str]) -> dict[str, str]:
    """`name=value` texts of a command line as a dictionary."""
    values: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise FarshoreError(
                f"--set {pair!r} is not allowed: write it as name=value, for example --set "
                "learning_rate=0.01"
            )
        values[name.strip()] = value.strip()
    return values


def divide(
    values: Mapping[str, Any], method: type[MethodSettings]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings by name -> (those of the method, those of the run). An unknown name gets the
    nearest of both.
    """
    of_method = {name: value for name, value in values.items() if name in method.model_fields}
    of_run = {name: value for name, value in values.items() if name in RunSettings.model_fields}
    for name in values:
        if name not in of_method and name not in of_run:
            raise unknown("setting", name, [*method.model_fields, *RunSettings.model_fields])
    return of_method, of_run
