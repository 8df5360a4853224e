"""Benchmarks by name; other packages add theirs in the entry-point group `farshore.benchmarks`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.lazy import lazy_exports
from ..base.registry import Registry

if TYPE_CHECKING:
    from .benchmark import Benchmark as Benchmark

EXPORTS = {"Benchmark": "benchmark"}

__all__ = ["BENCHMARKS", *EXPORTS]

if not TYPE_CHECKING:  # type checkers use the imports above and reject any other name
    __getattr__, __dir__ = lazy_exports(__name__, EXPORTS)

BENCHMARKS: Registry[type[Benchmark]] = Registry(
    "benchmark",
    "farshore.benchmarks",
    {
        "rotated-digits": "farshore.benchmarks.rotated_digits:RotatedDigits",
        "rotated-digits-stream": "farshore.benchmarks.rotated_digits:RotatedDigitsStream",
        "heart-hospitals": "farshore.benchmarks.heart_hospitals:HeartHospitals",
        "rotated-mnist": "farshore.benchmarks.rotated_mnist:RotatedMNIST",
        "rotated-mnist-extended": "farshore.benchmarks.rotated_mnist:RotatedMNISTExtended",
        "covertype": "farshore.benchmarks.covertype:Covertype",
        "covertype-natural": "farshore.benchmarks.covertype:CovertypeNatural",
        "covertype-zones": "farshore.benchmarks.covertype_zones:CovertypeZones",
        "cifar10-c": "farshore.benchmarks.cifar10_c:CIFAR10C",
        "tinyimagenet-c": "farshore.benchmarks.tinyimagenet_c:TinyImageNetC",
        "wm811k": "farshore.benchmarks.wm811k:WM811K",
        "wm811k-extended": "farshore.benchmarks.wm811k:WM811KExtended",
        "camelyon17": "farshore.benchmarks.camelyon17:Camelyon17",
        "camelyon17-extended": "farshore.benchmarks.camelyon17:Camelyon17Extended",
        "table": "farshore.benchmarks.own.table:Table",
        "image-folder": "farshore.benchmarks.own.image_folder:ImageFolder",
        "image-table": "farshore.benchmarks.own.image_table:ImageTable",
        "hf-dataset": "farshore.benchmarks.own.hf_dataset:HFDataset",
    },
)
