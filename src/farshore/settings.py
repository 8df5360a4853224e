"""Settings: the default, range and search distribution of each setting, in one place.

A `Profile` overrides some defaults and distributions for data on which other values work better.
Each benchmark names the profile that it uses.
"""

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
        """Draw one value."""
        return float(rng.uniform(self.low, self.high))

    def __str__(self) -> str:
        return f"U({self.low:g}, {self.high:g})"


@dataclass(frozen=True)
class UniformInt:
    """Whole numbers from low to high, both included."""

    low: int
    high: int

    def draw(self, rng: np.random.Generator) -> int:
        """Draw one value."""
        return int(rng.integers(self.low, self.high, endpoint=True))

    def __str__(self) -> str:
        return f"UInt({self.low}, {self.high})"


@dataclass(frozen=True)
class Power:
    """base ** U(low, high), truncated to an integer if `whole`."""

    base: float
    low: float
    high: float
    whole: bool = False

    def draw(self, rng: np.random.Generator) -> float | int:
        """Draw one value."""
        value = self.base ** float(rng.uniform(self.low, self.high))
        return int(value) if self.whole else value

    def __str__(self) -> str:
        text = f"{self.base:g}^U({self.low:g}, {self.high:g})"
        return f"int {text}" if self.whole else text


@dataclass(frozen=True)
class Choice:
    """One of the options, all equally likely."""

    options: tuple[Any, ...]

    def draw(self, rng: np.random.Generator) -> Any:
        """Draw one value."""
        return self.options[int(rng.integers(len(self.options)))]

    def __str__(self) -> str:
        return "{" + ", ".join(str(option) for option in self.options) + "}"


Distribution = Uniform | UniformInt | Power | Choice


@dataclass(frozen=True)
class Searched:
    """Default and search distribution of one setting; None means that it is not searched."""

    default: Any
    search: Distribution | None = None


# In a profile: applies to every method that has the setting and does not override its default.
EVERY_METHOD = "*"


@dataclass(frozen=True)
class Profile:
    """Defaults and search distributions that replace the methods' own.

    overrides: method name, or `*` for all methods -> setting name -> (default, distribution or
    None). An entry under a method's name takes precedence over `*`.
    """

    name: str
    about: str
    overrides: Mapping[str, Mapping[str, tuple[Any, Distribution | None]]] = field(
        default_factory=dict
    )

    def find(self, method: str, setting: str, *, inherited: bool) -> Searched | None:
        """This profile's override of a setting; `inherited`: the method has no own default."""
        own, shared = (self.overrides.get(name, {}) for name in (method, EVERY_METHOD))
        found = own.get(setting) or (shared.get(setting) if inherited else None)
        return Searched(*found) if found is not None else None


DEFAULT = Profile("default", "the methods' own defaults: small data, short training")


def setting(
    default: Any, search: Distribution | None = None, *, help: str = "", **constraints: Any
) -> Any:
    """Define a field of a Settings class. `constraints` are pydantic's (gt, ge, lt, le, ...)."""
    extra: Any = {"searched": Searched(default, search)}
    return Field(default, description=help, json_schema_extra=extra, **constraints)


class Settings(BaseModel):
    """Frozen, validated settings: errors say what is allowed."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @classmethod
    def searched(cls, profile: Profile = DEFAULT, method: str = "") -> dict[str, Searched]:
        """Default and search distribution of every setting, under `profile` for this method."""
        base: dict[str, Searched] = {}
        for each in cls.__mro__:  # most derived first
            base |= each._own() if issubclass(each, Settings) else {}
        return {
            name: profile.find(method, name, inherited=base[name] == declared) or declared
            for name, declared in cls._own().items()
        }

    @classmethod
    def defaults(cls, profile: Profile = DEFAULT, method: str = "") -> dict[str, Any]:
        """The default of every setting."""
        searched = cls.searched(profile, method)
        return {name: setting.default for name, setting in searched.items()}

    @classmethod
    def distributions(cls, profile: Profile = DEFAULT, method: str = "") -> dict[str, Distribution]:
        """The search distribution of every setting that is searched."""
        known = cls.searched(profile, method).items()
        return {name: of.search for name, of in known if of.search is not None}

    @classmethod
    def build(
        cls: type[S], values: Mapping[str, Any], profile: Profile = DEFAULT, method: str = ""
    ) -> S:
        """Settings from the profile's defaults and `values`; what is wrong is refused."""
        for name in values:
            if name not in cls.model_fields:
                raise unknown("setting", name, cls.model_fields)
        try:
            return cls(**{**cls.defaults(profile, method), **values})
        except ValidationError as error:
            raise FarshoreError(explain(error)) from None

    @classmethod
    def plain(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Only these values, typed: `0.01` and the text "0.01" are the same."""
        built = cls.build(values).model_dump(mode="json")
        return {name: built[name] for name in values}

    @classmethod
    def _own(cls) -> dict[str, Searched]:
        """Defaults and distributions declared by the class itself, without a profile."""
        found = {}
        for name, info in cls.model_fields.items():
            extra = info.json_schema_extra
            declared = extra.get("searched") if isinstance(extra, dict) else None
            found[name] = declared if isinstance(declared, Searched) else Searched(info.default)
        return found


def explain(error: ValidationError, *, shown: int = 1000) -> str:
    """Format a pydantic error as one line: the name, the given value, and what is allowed.

    shown: of a longer value only the first characters are printed.
    """
    first = error.errors()[0]
    parts = [str(part) for part in first["loc"]]
    kinds = ("float", "literal", "int")
    name = ".".join(part for part in parts if not part.startswith(kinds)) or "value"
    allowed = first["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    given = repr(first["input"])
    given = given if len(given) <= shown else f"{given[:shown]}..."
    return f"{name} = {given} is not allowed: it should be {allowed}"


class MethodSettings(Settings):
    """Settings of every method: the first block of the paper's table of hyper-parameters."""

    learning_rate: float = setting(
        1e-3, Power(10, -4.5, -0.5), gt=0, help="step size of the optimiser"
    )
    weight_decay: float = setting(0.0, ge=0, help="weight decay of the optimiser")
    batch_size: int = setting(
        64, Power(2, 3, 8, whole=True), ge=1, le=2**20, help="rows of the current domain per step"
    )


class RunSettings(Settings):
    """Settings that are the same for all methods of a comparison."""

    optimizer: Literal["adam", "adamw", "sgd"] = setting(
        "adam", help="optimiser; one instance for the whole run"
    )
    momentum: float = setting(0.0, ge=0, lt=1, help="momentum of sgd")
    reset_optimizer: Literal["never", "domain"] = setting(
        "never", help="domain: a fresh optimiser at the start of every domain"
    )
    replay_budget: Literal["per-domain", "total"] = setting(
        "per-domain",
        help="per-domain: as many rows of each past domain as of the current one; total: one "
        "batch divided among the past domains",
    )
    memory_fill: Literal["end", "reservoir"] = setting(
        "end",
        help="end: draw the rows when the domain ends; reservoir: sample them during training, "
        "with the logits at that time",
    )
    class_balanced_memory: bool = setting(
        False, help="keep the same number of rows per class in each partition"
    )
    memory_bytes: int | None = setting(
        None, gt=0, help="limit on the memory in bytes, in addition to the limit in rows"
    )
    class_weight: Literal["none", "balanced"] = setting(
        "none",
        help="balanced: weight rows in the ERM terms inversely to how frequent their class is "
        "among the current domain's training rows",
    )
    loss: Literal["auto", "squared", "huber", "quantile"] = setting(
        "auto",
        help="for a number as the label: squared error, huber (linear beyond one deviation) or "
        "quantile; auto: squared, and the cross-entropy for classes",
    )
    quantile: float = setting(
        0.5, gt=0, lt=1, help="q of loss=quantile: a prediction that is too low costs q / (1 - q)"
    )
    mixing: Literal["none", "c-mixup"] = setting(
        "none",
        help="c-mixup, for a number as the label: mix every row of a step with one of its domain, "
        "drawn by how near their labels are",
    )
    mix_alpha: float = setting(
        2.0, gt=0, help="α of mixing: the share of a row in a mixture is drawn from Beta(α, α)"
    )
    label_bandwidth: float = setting(
        0.5,
        ge=0.05,
        help="h of the kernel exp(-(y - y')² / 2h²) of mixing and condition=label, in deviations "
        "of the first site's labels",
    )
    freeze_batchnorm: bool = setting(
        False, help="BatchNorm uses its stored statistics in training too"
    )
    average: Literal["none", "ema", "swad"] = setting(
        "none",
        help="predict with weights averaged over the steps of the newest domain: ema: exponential "
        "moving average; swad: plain mean over the last steps",
    )
    average_decay: float = setting(0.99, ge=0, lt=1, help="ρ of average=ema, per step")
    average_start: float = setting(
        0.5,
        ge=0,
        lt=1,
        help="share of a domain's steps after which the mean of average=swad starts",
    )
    execution: Literal["auto", "eager", "compiled", "graph"] = setting(
        "auto",
        help="how a step runs: eager, captured as one CUDA graph, or compiled and captured; auto: "
        "whichever pays off on the device",
    )
    precision: Literal["auto", "float32", "tf32", "bf16"] = setting(
        "auto",
        help="precision of matrix products in training; auto: float32 on a CPU; on a GPU bf16 for "
        "convolutional features, tf32 otherwise",
    )
    train: Literal["auto", "head", "last-block", "all"] = setting(
        "all",
        help="what is trained: the classifier on frozen features, also the last block, or all; "
        "auto (the default for own data): head for a pretrained network, otherwise all",
    )
    backbone_rate: float | None = setting(
        None, gt=0, help="step size for the features; default: learning_rate, as for the classifier"
    )
    head_width: int = setting(
        0, ge=0, le=65536, help="with train=head: hidden units of the classifier"
    )
    store: Literal["auto", "features"] = setting(
        "auto",
        help="features: refuse to train unless the memory keeps features of a frozen backbone "
        "instead of raw inputs, as it does with train=head",
    )
    augment: Literal["none", "standard", "strong"] = setting(
        "none",
        help="random changes to training images: standard: crop and flip; strong: also colours; "
        "never in evaluation",
    )
    augment_flip: bool = setting(
        True, help="false: augment never swaps left and right, where the difference matters"
    )
    augment_copies: int = setting(
        0, ge=0, le=100, help="with train=head: augmented copies of images, features are kept"
    )
    micro_batch: int | None = setting(
        None,
        ge=1,
        help="rows that go through the network at once; the gradient is that of the whole batch, "
        "with less memory and about a third more work",
    )
    threads: int | None = setting(
        None, ge=1, le=256, help="CPU threads; default: 1 to a million parameters, then one a core"
    )
    deterministic: bool = setting(
        False, help="on a GPU: use kernels with bitwise reproducible results, which are slower"
    )


def parse_assignments(
    pairs: list[str], *, flag: str = "--set", example: str = "learning_rate=0.01"
) -> dict[str, str]:
    """Parse `name=value` arguments of a command line into a dictionary."""
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
    """Divide settings between method and run; unknown names get the closest of either."""
    kinds = (method.model_fields, RunSettings.model_fields)
    for name in values:
        if not any(name in fields for fields in kinds):
            raise unknown("setting", name, [name for fields in kinds for name in fields])
    of_method, of_run = ({name: values[name] for name in values if name in of} for of in kinds)
    return of_method, of_run
