"""Benchmarks by name. Other packages add theirs under the entry-point group `holdfast.benchmarks`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..registry import Registry

if TYPE_CHECKING:
    from .benchmark import Benchmark

BENCHMARKS: Registry[type[Benchmark]] = Registry(
    "benchmark",
    "holdfast.benchmarks",
    {
        "rotated-digits": "holdfast.benchmarks.rotated_digits:RotatedDigits",
        "heart-hospitals": "holdfast.benchmarks.heart_hospitals:HeartHospitals",
        "rotated-mnist": "holdfast.benchmarks.rotated_mnist:RotatedMNIST",
        "rotated-mnist-extended": "holdfast.benchmarks.rotated_mnist:RotatedMNISTExtended",
        "covertype": "holdfast.benchmarks.covertype:Covertype",
        "cifar10-c": "holdfast.benchmarks.cifar10_c:CIFAR10C",
        "tinyimagenet-c": "holdfast.benchmarks.tinyimagenet_c:TinyImageNetC",
        "wm811k": "holdfast.benchmarks.wm811k:WM811K",
        "wm811k-extended": "holdfast.benchmarks.wm811k:WM811KExtended",
        "camelyon17": "holdfast.benchmarks.camelyon17:Camelyon17",
        "camelyon17-extended": "holdfast.benchmarks.camelyon17:Camelyon17Extended",
    },
)
