"""NewModel: how the first site creates a model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from ..data.downloads.weights import usual_image_network
from ..data.images.image_folder import ImagePreprocessing
from ..errors import FarshoreError
from ..learner.learner import USUAL_RUN, Learner
from ..networks.build import settle_network
from ..observer import Observer
from ..settings import MethodSettings, RunSettings, divide
from ..tasks.labels import usual_metric
from .site import Site


@dataclass(frozen=True)
class NewModel:
    """How the first site creates a model. None means the default; later sites may leave it out."""

    method: str | None = None
    network: str | None = None
    memory: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    network_settings: Mapping[str, Any] = field(default_factory=dict)
    classes: Sequence[str] | None = None
    seed: int | None = None
    metric: str | None = None
    # A folder that says all of this, and the columns with their scales: see `template`.
    template: Path | None = None

    def make(self, site: Site, *, device: str, observer: Observer | None) -> Learner:
        """Create an untrained learner for a site like this one."""
        images = isinstance(site.inputs, Tensor)
        return Learner(
            network=self.chosen_network(images=images) if images else self.network,
            method=self.method,
            memory=self.memory if self.memory is not None else 1000,
            settings=self.settings,
            network_settings=self.network_settings,
            classes=self.classes,
            seed=self.seed if self.seed is not None else 0,
            metric=self.metric_for(site),
            # Later sites may have other weights, even if those of the first one are all equal.
            weighted=True if site.weights is not None else None,
            device=device,
            observer=observer,
        )

    def metric_for(self, site: Site) -> str:
        """The named metric, or the usual one for labels like those of this site."""
        return self.metric or usual_metric(site.task, site.labels or ())

    def chosen_network(self, *, images: bool) -> str:
        """The network: the named one, or the usual one for a table or for images."""
        if self.network is not None or not images:
            return self.network or "mlp"
        return "resnet18" if "weights" in self.network_settings else usual_image_network()

    def image_form(self, size: int | None) -> ImagePreprocessing:
        """The form of images that the network expects; the first site decides on colour."""
        form = settle_network(self.chosen_network(images=True), self.network_settings).form
        return ImagePreprocessing(size or form.size, 0, form.interpolation)

    def check(self, learner: Learner, folder: Path) -> None:
        """Raise an error for options that contradict an existing model."""
        config = learner.config
        for name in ("method", "network", "memory", "classes", "seed", "metric"):
            value = getattr(self, name)
            if value is not None and value != config[name]:
                raise FarshoreError(
                    f"--{name} {value}: {folder} was created with {config[name]}; leave the "
                    "option out, or create another model"
                )
        for name, value in self.network_settings.items():
            if config["network_settings"].get(name) != value:
                raise FarshoreError(
                    f"--network-set {name} is only allowed for the first site: the network of "
                    f"{folder} is fixed; leave the option out"
                )
        usual = RunSettings.build(USUAL_RUN).model_dump()
        kind = learner.method_type.Settings
        stored = usual | typed_settings(kind, config["settings"])
        for name, value in typed_settings(kind, self.settings).items():
            if value != stored.get(name):
                raise FarshoreError(
                    f"--set {name} is only allowed for the first site: the settings of {folder} "
                    "are fixed; leave the option out"
                )


def typed_settings(kind: type[MethodSettings], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a method and the run with the types of their fields; others are refused."""
    for_method, for_run = divide(settings, kind)
    return kind.plain(for_method) | RunSettings.plain(for_run)
