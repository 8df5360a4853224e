"""Backbone: a learner's network, which part of it is trained, and the settings that suit that.

With train=all nothing is frozen, and the whole network is trained. Otherwise the frozen part comes
first: its features are computed once per domain, and the system learns from them.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..base.forms import FormError, check_form, like_all
from ..base.randomness import generator, seeded
from ..data.domain import Domain, RowForm, check_row_form, row_form
from ..data.feature_files import FeatureCache
from ..networks.build import build_network, check_unstored, is_pretrained, on_meta, settle_network
from ..networks.form import Settled
from ..networks.freezing import Frozen, Parts, Train, divide, frozen_shape
from ..networks.network import Network
from ..observer import Observer
from ..settings import RunSettings
from .feature_cache import Extraction, features_of, with_features
from .learner_state import FROZEN


@dataclass(frozen=True)
class TrainedPart:
    """The network that is trained, its settings, and the shape of a row that it takes."""

    network: str | Network
    settings: Mapping[str, Any]
    shape: tuple[int, ...]


class Backbone:
    """The network that a learner was given, divided into a frozen and a trained part.

    network and settings: a name with its settings, or a user's own module.
    train: which part of it is trained.
    run: how images are augmented, and how wide the head is.
    seed: the classifier is drawn from it.
    """

    def __init__(
        self,
        network: str | Network,
        settings: Mapping[str, Any],
        train: Train,
        *,
        run: RunSettings,
        seed: int,
        device: torch.device,
        observer: Observer,
    ) -> None:
        self.network = network
        self.settings = dict(settings)
        self.train = train
        # The frozen part, and the form of the raw rows for which the network was divided; None
        # until the first domain gives that form, and where all of the network is trained.
        self.frozen: Frozen | None = None
        self.form: RowForm | None = None
        self._run = run
        self._seed = seed
        self._device = device
        self._observer = observer

    def settled(self) -> Settled:
        """The network's settings with what its own configuration decides filled in."""
        if not isinstance(self.network, str):
            return Settled(self.settings)
        return settle_network(self.network, self.settings)

    def stored_settings(self) -> dict[str, Any]:
        """Settings that rebuild the network where its library's files are not available."""
        if isinstance(self.network, str) and ":" in self.network:
            return dict(self.settled().settings)
        return self.settings

    # ---- rows ------------------------------------------------------------------------------------

    def prepared(self, domain: Domain, cache: FeatureCache | None = None) -> Domain:
        """The domain with the frozen part's features as inputs; the first one sets their form.

        cache: where features are kept for other runs.
        """
        if self.train == "all":
            return domain
        form = row_form(domain)
        if self.form is None:
            self.frozen = self._divided(form[0], 2).frozen
            self.form = form
        if self.frozen is None:
            return domain
        check_row_form(form, self.form, f"domain {domain.name!r}")
        copies = self._run.augment_copies
        return with_features(domain, self._extraction(self.frozen, copies), cache)

    def inside(self, inputs: Tensor) -> Tensor:
        """Raw inputs as the system takes them: the features of a frozen part, if there is one."""
        return inputs if self.frozen is None else features_of(inputs, self._extraction(self.frozen))

    def inside_form(self, form: RowForm) -> RowForm:
        """Shape and type of a raw row as the system takes it."""
        return form if self.frozen is None else (frozen_shape(self.frozen, *form), torch.float32)

    def _extraction(self, frozen: Frozen, copies: int = 0) -> Extraction:
        run = self._run
        # Copies depend on the seed of the augmentation alone: runs with other seeds share them.
        return Extraction(
            frozen, self._device, run.augment, run.augment_flip, copies, 0, self._observer
        )

    # ---- parts of the network --------------------------------------------------------------------

    def trained(self, form: RowForm, classes: int, *, restored: bool = False) -> TrainedPart:
        """What is trained on raw rows of this form: the network, a new head, or the last block."""
        inside, _ = self.inside_form(form)
        if self.train == "last-block":
            rest = self._divided(form[0], classes, restored=restored).rest
            return TrainedPart(rest, self.settings, inside)
        if self.frozen is None:
            return TrainedPart(self.network, self.settings, inside)
        return TrainedPart("head", {"width": self._run.head_width}, inside)

    def restore(self, stored: Any, form: RowForm) -> None:
        """Restore the frozen part; its sizes are checked before anything is allocated."""
        expected, why = None, "all of the network is trained"
        if self.train != "all":
            expected = on_meta(lambda: self._divided(form[0], 2, restored=True)).frozen
            why = "this network has none"
        if expected is None:
            if stored is not None:
                raise FormError(f"there is a frozen part, but {why}")
            return
        check_form(stored, like_all(expected.state_dict()), FROZEN)
        check_unstored(expected, stored)
        self.frozen = self._divided(form[0], 2, restored=True).frozen
        assert self.frozen is not None
        self.frozen.load_state_dict(stored)
        self.form = form

    def _divided(self, shape: tuple[int, ...], classes: int, *, restored: bool = False) -> Parts:
        """The network in two parts; the classifier is drawn from the learner's seed."""
        with seeded(generator(self._seed, "init")):
            if isinstance(self.network, str):
                sizes = (shape, classes)
                whole = build_network(self.network, *sizes, self.settings, restored=restored)
            else:
                whole = deepcopy(self.network)
            return divide(whole, self.train, augmented=self._run.augment != "none")


def resolve_train(run: RunSettings, network: str | Network, settings: Mapping[str, Any]) -> Train:
    """What is trained: what the run sets, or for `auto`, what suits the network."""
    if run.train != "auto":
        return run.train
    return "head" if isinstance(network, str) and is_pretrained(network, settings) else "all"


def train_by_settings(
    settings: Mapping[str, Any], network: str | Network, network_settings: Mapping[str, Any]
) -> Train:
    """What is trained with these settings of a run."""
    run = RunSettings.build({"train": settings.get("train", RunSettings().train)})
    return resolve_train(run, network, network_settings)


def usual_profile(
    shape: tuple[int, ...], train: Train, network: str | Network, settings: Mapping[str, Any]
) -> str:
    """The default settings profile for users' own data."""
    if train == "head":
        return "frozen-features"
    if len(shape) != 3:
        return "default"
    pretrained = not isinstance(network, str) or is_pretrained(network, settings)
    return "large-data" if pretrained else "images-from-scratch"
