"""Settings: each has its default, its range and its search distribution in one place.

A `Profile` replaces some of these pairs, for data on which other values are better; a benchmark
names the profile it uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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
class Searched:
    """Default and search distribution of one setting; `search` None means that it is not
    searched.
    """

    default: Any
    search: Distribution | None = None


# In a profile: for every method that has the setting and gives it no default of its own.
EVERY_METHOD = "*"


@dataclass(frozen=True)
class Profile:
    """Other defaults and search distributions than the methods' own.

    overrides: name of a method, or `*` for all of them -> name of a setting -> (default,
    distribution or None). What stands under the name of a method wins over `*`.
    """

    name: str
    about: str
    overrides: Mapping[str, Mapping[str, tuple[Any, Distribution | None]]] = field(
        default_factory=dict
    )

    def find(self, method: str, setting: str, *, inherited: bool) -> Searched | None:
        """What this profile says about a setting of a method, if anything; `inherited`: the method
        gives it no default of its own.
        """
        of_method = self.overrides.get(method, {})
        if setting in of_method:
            return Searched(*of_method[setting])
        of_all = self.overrides.get(EVERY_METHOD, {})
        return Searched(*of_all[setting]) if inherited and setting in of_all else None


DEFAULT = Profile("default", "the methods' own defaults: small data, short training")


def setting(
    default: Any, search: Distribution | None = None, *, help: str = "", **constraints: Any
) -> Any:
    """A field of a Settings class. `constraints` are pydantic's (gt, ge, lt, le, multiple_of)."""
    extra: Any = {"searched": Searched(default, search)}
    return Field(default, description=help, json_schema_extra=extra, **constraints)


class Settings(BaseModel):
    """Frozen, validated settings. Unknown names and values out of range are refused with the way
    out.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @classmethod
    def searched(cls, profile: Profile = DEFAULT, method: str = "") -> dict[str, Searched]:
        """Default and search distribution of every setting, as `profile` has them for the method
        of this name.
        """
        first: dict[str, Searched] = {}
        for kind in cls._lineage():
            first |= kind._own()
        return {
            name: profile.find(method, name, inherited=first[name] == declared) or declared
            for name, declared in cls._own().items()
        }

    @classmethod
    def defaults(cls, profile: Profile = DEFAULT, method: str = "") -> dict[str, Any]:
        """The default of every setting."""
        return {name: each.default for name, each in cls.searched(profile, method).items()}

    @classmethod
    def distributions(cls, profile: Profile = DEFAULT, method: str = "") -> dict[str, Distribution]:
        """The search distribution of every setting that is searched."""
        return {
            name: each.search
            for name, each in cls.searched(profile, method).items()
            if each.search is not None
        }

    @classmethod
    def build(
        cls: type[S], values: Mapping[str, Any], profile: Profile = DEFAULT, method: str = ""
    ) -> S:
        """The profile's defaults, overridden by `values`. A bad name or value is one clear
        error.
        """
        for name in values:
            if name not in cls.model_fields:
                raise unknown("setting", name, cls.model_fields)
        try:
            return cls(**{**cls.defaults(profile, method), **values})
        except ValidationError as error:
            raise FarshoreError(explain(error)) from None

    @classmethod
    def plain(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """These values as the settings understand them, so that `0.01` and the text "0.01" are the
        same; names that are not given stay out.
        """
        built = cls.build(values).model_dump(mode="json")
        return {name: built[name] for name in values}

    @classmethod
    def _own(cls) -> dict[str, Searched]:
        """What the class itself says, without a profile."""
        return {
            name: _searched(info.json_schema_extra, info.default)
            for name, info in cls.model_fields.items()
        }

    @classmethod
    def _lineage(cls) -> list[type[Settings]]:
        """This class and those it inherits settings from, the most special first."""
        return [kind for kind in cls.__mro__ if issubclass(kind, Settings)]


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


def _searched(extra: Any, default: Any) -> Searched:
    found = extra.get("searched") if isinstance(extra, dict) else None
    return found if isinstance(found, Searched) else Searched(default)


class MethodSettings(Settings):
    """What every method has: the paper's shared hyper-parameters (its table of hyper-parameters,
    first block).
    """

    learning_rate: float = setting(
        1e-3,
        Power(10, -4.5, -0.5),
        gt=0,
        help="step size of the optimiser",
    )
    weight_decay: float = setting(0.0, ge=0, help="weight decay of the optimiser")
    batch_size: int = setting(
        64,
        Power(2, 3, 8, whole=True),
        ge=1,
        help="rows of the current domain per step",
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


def parse_assignments(
    pairs: list[str], *, flag: str = "--set", example: str = "learning_rate=0.01"
) -> dict[str, str]:
    """`name=value` texts of a command line as a dictionary."""
    values: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise FarshoreError(
                f"{flag} {pair!r} is not allowed: write it as name=value, for example {flag} "
                f"{example}"
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
