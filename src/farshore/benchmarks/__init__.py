"""Benchmarks by name; other packages add theirs in the entry-point group `farshore.benchmarks`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..base.lazy import lazy_exports
from ..base.registry import Registry, listed

if TYPE_CHECKING:
    from .benchmark import Benchmark as Benchmark

if not TYPE_CHECKING:  # type checkers use the imports above and reject any other name
    __getattr__, __dir__, __all__ = lazy_exports(__name__, "BENCHMARKS")

# The group of formats of users' own files.
OWN_DATA = "own data"
BUILTIN = listed(
    """
rotated-digits | .rotated_digits:RotatedDigits | |
    1,797 digits of 8x8 pixels, rotated by 0 to 75 degrees |
rotated-digits-stream | .rotated_digits:RotatedDigitsStream | |
    the same digits in twelve steps of 10 degrees |
coloured-digits | .coloured_digits:ColouredDigits | |
    the same digits in colours that give them away, until the target |
heart-hospitals | .heart_hospitals:HeartHospitals | |
    920 patients from four hospitals, with or without heart disease |
rotated-mnist | .rotated_mnist:RotatedMNIST | |
    70,000 digits, rotated by 0 to 75 degrees | rotated-mnist
rotated-mnist-extended | .rotated_mnist:RotatedMNISTExtended | |
    the same with 15 sources, for timing | rotated-mnist
rotated-mnist-time | .rotated_mnist:RotatedMNISTTime | |
    the same digits, learned from 0 to 50 degrees in order | rotated-mnist-time
elec2 | .elec2:Elec2 | |
    electricity prices in 41 fortnights, in chronological order | elec2
diabetes130 | .diabetes130:Diabetes130 | |
    99,493 hospital stays by source of admission, readmitted or not | diabetes130
covertype | .covertype:Covertype | | 65,386 forest patches in four wilderness areas | covertype
covertype-natural | .covertype:CovertypeNatural | |
    the same with natural class frequencies | covertype-natural
covertype-zones | .covertype:CovertypeZones | |
    22,279 forest patches in seven climatic zones | covertype-zones
cifar10-c | .cifar10_c:CIFAR10C | | CIFAR-10 under pairs of corruptions | cifar10-c
tinyimagenet-c | .tinyimagenet_c:TinyImageNetC | |
    TinyImageNet under pairs of corruptions | tinyimagenet-c
wm811k | .wm811k:WM811K | | wafer maps with nine failure patterns, by production lot | wm811k
wm811k-extended | .wm811k:WM811KExtended | | the same with 15 sources, for timing | wm811k
camelyon17 | .camelyon17:Camelyon17 | | lymph node patches from five hospitals | camelyon17
camelyon17-extended | .camelyon17:Camelyon17Extended | |
    the same with 15 sources, for timing | camelyon17
table | .own.table:OwnTable | own data |
    your table with a column for the domain and one for the class
image-folder | .own.image_folder:ImageFolder | own data | your images in folders domain/class/file
image-table | .own.image_table:ImageTable | own data |
    your images, listed in a table with their paths
hf-dataset | .own.hf_dataset:HFDataset | own data |
    a Hugging Face data set with a column for the domain
"""
)
BENCHMARKS: "Registry[type[Benchmark]]" = Registry(
    "benchmark", "farshore.benchmarks", BUILTIN, __name__
)


def make_benchmark(benchmark: str, options: Mapping[str, Any] | None = None) -> "Benchmark":
    """Return the benchmark of this name with these options, validated."""
    return BENCHMARKS.get(benchmark)(options)
