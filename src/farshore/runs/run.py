"""A run: everything that determines a result, and its normal form."""

from typing import Any, NewType

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..base.notebook import html_table
from ..benchmarks import BENCHMARKS
from ..errors import FarshoreError, unknown, within
from ..methods.optimization import choose_device
from ..settings import RunSettings, divide, explain
from . import catalog


class Run(BaseModel):
    """Everything that determines a result: what is learned, how, and from which seeds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    benchmark: str
    # Options of the benchmark, validated by its own model.
    options: dict[str, Any] = Field(default_factory=dict)
    method: str
    # Settings of the method and of the run, by name.
    settings: dict[str, Any] = Field(default_factory=dict)
    # A network that replaces the scenario's own; settings of whichever is used.
    network: str | None = None
    network_settings: dict[str, Any] = Field(default_factory=dict)
    seed: int = Field(0, ge=0, lt=2**63)
    # scikit-learn, which makes domains of own data, takes 32-bit seeds.
    scenario_seed: int = Field(0, ge=0, lt=2**32)
    target: str | None = None
    order: tuple[str, ...] | None = None
    # Domains that this run uses neither as source nor as target: those later than the target if
    # the domains are ordered by time, and the real target if a source takes its place.
    left_out: tuple[str, ...] = ()
    # Whether the target is a source that takes the place of the real target, in selection by
    # leaving sources out. Its classes are known then.
    held_out: bool = False
    steps: int | None = Field(None, ge=1, lt=2**31)
    memory: int | None = Field(None, ge=1, lt=2**31)
    device: str = "cpu"
    # A trial of a search by successive halving, which may be stopped between two domains. It is
    # part of the run, so that other searches never get a run that was stopped.
    halving: bool = False

    def __repr__(self) -> str:
        given = self.model_dump(exclude_defaults=True, exclude={"benchmark", "method"})
        further = "".join(f", {name}={value!r}" for name, value in given.items())
        return f"Run({self.method!r} on {self.benchmark!r}{further})"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """For notebooks: what differs from the defaults."""
        return html_table(repr(self), [], list(self.model_dump(exclude_defaults=True).items()))

    @classmethod
    def build(cls, **values: Any) -> "NormalRun":
        """A run from plain values, in its normal form. Errors are reported in one line."""
        for name in values:
            if name not in cls.model_fields:
                raise unknown("name", name, cls.model_fields)
        try:
            return cls(**values).normal()
        except ValidationError as error:
            raise FarshoreError(explain(error)) from None

    def normal(self) -> "NormalRun":
        """The same run with validated options and settings.

        Two ways of writing a value therefore give the same run. Options at their defaults are left
        out, and the device `auto` becomes the one that is used. Unknown names and invalid values
        are refused.
        """
        kind = BENCHMARKS.get(self.benchmark)
        entry = catalog.find(self.method)
        given = (self.network, self.network_settings, self.options)
        network, network_settings, options = kind.normal_network(*given)
        with within(self.method):
            for_method, for_run = divide(self.settings, entry.Settings)
            plain = entry.Settings.plain(for_method) | RunSettings.plain(for_run)
        normal = self.model_copy(
            update={
                "device": choose_device(self.device),
                "options": kind.Options.build(options, self.benchmark).plain(),
                "settings": {name: plain[name] for name in self.settings},
                "network": network,
                "network_settings": network_settings,
            }
        )
        return NormalRun(normal)


# A run that `normal` has checked and completed. The type checker keeps the two apart, so that a run
# is normalised once, where it is made.
NormalRun = NewType("NormalRun", Run)
