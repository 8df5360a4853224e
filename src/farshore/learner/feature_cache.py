"""Features of a frozen backbone: computed once per domain, in large batches, and kept on disk.

The key of cached features is a checksum of everything that decides their numbers: the inputs, the
weights and statistics of the frozen part, the device, and the augmentation.
"""

import hashlib
import json
import sys
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from ..base.allocation import empty_array
from ..base.randomness import generator
from ..data.domain import Array, Domain, Rows, as_tensor
from ..data.downloads.public_files import known_checksum
from ..data.feature_files import FeatureCache, array_checksum
from ..data.seal import weights_checksum
from ..errors import FarshoreError
from ..networks.freezing import Frozen, frozen_shape
from ..observer import Observer
from ..training.augmentation import Augmentation
from ..training.execution.execution import cpu_threads, usual_threads

VERSION = 1
# Values of inputs in one batch, and the limits on its rows.
BATCH_VALUES, MOST_ROWS, FEWEST_ROWS = 1 << 23, 1024, 8
# Cached features up to this size are read at once: taking rows out of a memory map is slower.
LARGEST_READ = 1 << 28
# Where the code of a network's layers comes from; any other may change from run to run.
LIBRARIES = ("farshore", "torch", "transformers", "timm", "torchvision")


@dataclass(frozen=True)
class Extraction:
    """How features are made: the frozen part, the device, and the augmented copies, if any."""

    frozen: Frozen
    device: torch.device
    augment: str = "none"
    flip: bool = True
    copies: int = 0
    seed: int = 0
    observer: Observer = field(default_factory=Observer)

    def key(self, inputs: Array, copy: int | None = None) -> str:
        """The checksum of everything that decides the features of these inputs."""
        frozen = self.frozen
        # Statistics of the inputs are part of the structure, but not of the stored weights.
        small = [value for value in frozen.inputs.buffers() if value.numel() < 64]
        described = {
            "version": VERSION,
            "inputs": array_checksum(inputs),
            "weights": weights_checksum(frozen),
            "structure": hashlib.sha256(str(frozen).encode()).hexdigest(),
            "statistics": [value.flatten().tolist() for value in small],
            "device": self.device.type,
            "torch": str(torch.__version__),
        }
        if copy is not None:
            described["augment"] = [self.augment, self.flip, self.seed, copy]
        if code := _own_code(frozen):
            described["code"] = code
        return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()

    def compute(self, name: str, inputs: Array, out: np.ndarray, copy: int | None = None) -> None:
        """Write the features of all inputs, batch by batch."""
        rows = Rows(inputs, torch.zeros(len(inputs), dtype=torch.long), torch.arange(len(inputs)))
        values = max(1, int(np.prod(inputs.shape[1:])))
        size = max(FEWEST_ROWS, min(MOST_ROWS, BATCH_VALUES // values))
        change = None
        if copy is not None:
            draws = generator(self.seed, "augmentation", name, copy, device=self.device)
            change = Augmentation(self.augment, draws, flip=self.flip)
        frozen = self.frozen.to(self.device)
        what = f"features of {name}" + ("" if copy is None else f", copy {copy + 1}")
        # Every batch has the same number of rows but the last: rounding may depend on it.
        parts = torch.arange(len(inputs)).split(size)
        self.observer.start(what, len(parts))
        with cpu_threads(usual_threads(frozen)), torch.inference_mode():
            for number, positions in enumerate(parts):
                prepared = frozen.inputs(rows.take(positions)[0].to(self.device))
                prepared = change(prepared) if change is not None else prepared
                out[positions.numpy()] = frozen.features(prepared).float().cpu().numpy()
                self.observer.step(what, number, {})


def _own_code(module: nn.Module) -> list[str]:
    """Checksums of the files that define its layers, except for those of libraries."""
    names = {type(layer).__module__ for layer in module.modules()}
    own = [name for name in sorted(names) if name.partition(".")[0] not in LIBRARIES]
    files = [getattr(sys.modules.get(name), "__file__", None) for name in own]
    return [known_checksum(Path(file)) for file in files if file]


def with_features(domain: Domain, extraction: Extraction, cache: FeatureCache | None) -> Domain:
    """The domain with features, in memory if small, and augmented copies of training rows."""
    inputs = _features(domain.name, domain.inputs, extraction, cache)
    if not isinstance(inputs, Tensor) and inputs.nbytes <= LARGEST_READ:
        inputs = as_tensor(inputs)
    if not extraction.copies or not len(domain.train):
        return replace(domain, inputs=inputs)
    rows_trained = domain.train.cpu()
    raw = Rows(domain.inputs, domain.labels, rows_trained).take(torch.arange(len(rows_trained)))[0]
    copies = range(extraction.copies)
    parts = [inputs, *(_features(domain.name, raw, extraction, cache, copy) for copy in copies)]
    repeated, weights = domain.train.repeat(extraction.copies), domain.weights
    labels = torch.cat([domain.labels, domain.labels[repeated]])
    if weights is not None:
        weights = torch.cat([weights, weights[repeated]])
    added = torch.arange(len(repeated), device=domain.train.device) + len(domain)
    train, whole = torch.cat([domain.train, added]), torch.cat(list(map(as_tensor, parts)))
    return replace(domain, inputs=whole, labels=labels, train=train, weights=weights)


def features_of(inputs: Array, extraction: Extraction, name: str = "inputs") -> Tensor:
    """The features of these inputs, without a cache."""
    return as_tensor(_features(name, inputs, extraction, None))


def _features(
    name: str,
    inputs: Array,
    extraction: Extraction,
    cache: FeatureCache | None,
    copy: int | None = None,
) -> Array:
    """Features from the cache, or computed: in memory, or in a temporary file if they are large."""
    dtype = inputs.dtype if isinstance(inputs, Tensor) else torch.uint8
    frozen = extraction.frozen.to(extraction.device)
    shape = (len(inputs), *frozen_shape(frozen, tuple(inputs.shape[1:]), dtype))

    compute = partial(extraction.compute, name, inputs, copy=copy)

    if cache is not None:
        try:
            return cache.get(extraction.key(inputs, copy), shape, compute)
        except (OSError, FarshoreError) as error:
            extraction.observer.note(f"features are not cached: {error}")
    features = empty_array(shape, np.float32)
    compute(features)
    if not isinstance(features, np.memmap):
        return torch.from_numpy(features)
    features.flags.writeable = False
    return features
