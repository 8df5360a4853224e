"""Benchmarks by name; other packages add theirs in the entry-point group `farshore.benchmarks`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..base.lazy import lazy_exports
from ..base.registry import Listed, Registry

if TYPE_CHECKING:
    from .benchmark import Benchmark as Benchmark

if not TYPE_CHECKING:  # type checkers use the imports above and reject any other name
    __getattr__, __dir__, __all__ = lazy_exports(__name__, "BENCHMARKS")

# The group of formats of users' own files.
OWN_DATA = "own data"
BUILTIN = {
    "rotated-digits": Listed(
        ".rotated_digits:RotatedDigits", "1,797 digits of 8x8 pixels, rotated by 0 to 75 degrees"
    ),
    "rotated-digits-stream": Listed(
        ".rotated_digits:RotatedDigitsStream", "the same digits in twelve steps of 10 degrees"
    ),
    "heart-hospitals": Listed(
        ".heart_hospitals:HeartHospitals",
        "920 patients from four hospitals, with or without heart disease",
    ),
    "rotated-mnist": Listed(
        ".rotated_mnist:RotatedMNIST",
        "70,000 digits, rotated by 0 to 75 degrees",
        files="rotated-mnist",
    ),
    "rotated-mnist-extended": Listed(
        ".rotated_mnist:RotatedMNISTExtended",
        "the same with 15 sources, for timing",
        files="rotated-mnist",
    ),
    "covertype": Listed(
        ".covertype:Covertype", "65,386 forest patches in four wilderness areas", files="covertype"
    ),
    "covertype-natural": Listed(
        ".covertype:CovertypeNatural",
        "the same with natural class frequencies",
        files="covertype-natural",
    ),
    "covertype-zones": Listed(
        ".covertype:CovertypeZones",
        "22,279 forest patches in seven climatic zones",
        files="covertype-zones",
    ),
    "cifar10-c": Listed(
        ".cifar10_c:CIFAR10C", "CIFAR-10 under pairs of corruptions", files="cifar10-c"
    ),
    "tinyimagenet-c": Listed(
        ".tinyimagenet_c:TinyImageNetC",
        "TinyImageNet under pairs of corruptions",
        files="tinyimagenet-c",
    ),
    "wm811k": Listed(
        ".wm811k:WM811K", "wafer maps with nine failure patterns, by production lot", files="wm811k"
    ),
    "wm811k-extended": Listed(
        ".wm811k:WM811KExtended", "the same with 15 sources, for timing", files="wm811k"
    ),
    "camelyon17": Listed(
        ".camelyon17:Camelyon17", "lymph node patches from five hospitals", files="camelyon17"
    ),
    "camelyon17-extended": Listed(
        ".camelyon17:Camelyon17Extended", "the same with 15 sources, for timing", files="camelyon17"
    ),
    "table": Listed(
        ".own.table:OwnTable",
        "your table with a column for the domain and one for the class",
        OWN_DATA,
    ),
    "image-folder": Listed(
        ".own.image_folder:ImageFolder", "your images in folders domain/class/file", OWN_DATA
    ),
    "image-table": Listed(
        ".own.image_table:ImageTable", "your images, listed in a table with their paths", OWN_DATA
    ),
    "hf-dataset": Listed(
        ".own.hf_dataset:HFDataset",
        "a Hugging Face data set with a column for the domain",
        OWN_DATA,
    ),
}
BENCHMARKS: Registry[type[Benchmark]] = Registry(
    "benchmark", "farshore.benchmarks", BUILTIN, __name__
)


def make_benchmark(benchmark: str, options: Mapping[str, Any] | None = None) -> Benchmark:
    """Return the benchmark of this name with these options, validated."""
    return BENCHMARKS.get(benchmark)(options)
