"""How good are the defaults for own images? A table of unseen-domain accuracies.

    python bench/own_images.py --cifar ROOT/cifar10 --tiny ROOT/tinyimagenet --weights FILE

Ten classes with 50 images per class and domain; the domains are photographs as they are, at dusk,
painted and sketched (filters of Pillow). Every domain is the target in turn, with the sources in
the listed and in the reversed order. With no option given, the features are those of the default
backbone; without a file of weights, local histograms. FILE are weights of a ResNet18 in
torchvision's names. The last rows train a small network from scratch, with the default step size
and with the one that a pretrained network would get, on images of 32 pixels, 300 steps per domain.
"""

from __future__ import annotations

import argparse
import io
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

from farshore.benchmarks.cifar10_c import read_batches
from farshore.benchmarks.tinyimagenet_c import open_images
from farshore.results.summary import Unit
from farshore.results.summary import difference as paired_difference
from farshore.results.text import interval
from farshore.runs.protocol import execute
from farshore.runs.run import Run
from farshore.tasks.metrics import METRICS

CLASSES, PER_DOMAIN = 10, 50
SCRATCH_STEPS = 300
Scores = dict[str, list[float]]


def dusk(image: Image.Image) -> Image.Image:
    """Darker, with less colour."""
    return ImageEnhance.Color(ImageEnhance.Brightness(image).enhance(0.5)).enhance(0.4)


def painting(image: Image.Image) -> Image.Image:
    """Patches of one colour with strong edges."""
    return image.filter(ImageFilter.ModeFilter(5)).filter(ImageFilter.EDGE_ENHANCE)


def sketch(image: Image.Image) -> Image.Image:
    """Dark edges on white."""
    edges = image.convert("L").filter(ImageFilter.FIND_EDGES)
    return ImageOps.invert(ImageOps.autocontrast(edges)).convert("RGB")


DOMAINS: Mapping[str, Callable[[Image.Image], Image.Image]] = {
    "photo": lambda image: image,
    "dusk": dusk,
    "painting": painting,
    "sketch": sketch,
}


def write(folder: Path, images: np.ndarray, labels: np.ndarray) -> None:
    """Write the domains as folders domain/class/file; no image is in two of them."""
    for label in np.unique(labels)[:CLASSES]:
        rows = np.flatnonzero(labels == label)
        for number, (domain, change) in enumerate(DOMAINS.items()):
            target = folder / domain / f"class-{label:03}"
            target.mkdir(parents=True)
            for row in rows[number * PER_DOMAIN : (number + 1) * PER_DOMAIN]:
                picture = Image.fromarray(images[row].transpose(1, 2, 0))
                change(picture).save(target / f"{row:06}.png")


def read_tiny(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """The training images of TinyImageNet's first classes."""
    names, read, _ = open_images(folder)
    by_class: dict[str, list[str]] = {}
    for name in sorted(names):
        if name.startswith("train/") and name.endswith(".JPEG"):
            by_class.setdefault(name.split("/")[1], []).append(name)
    chosen = [file for label in list(by_class)[:CLASSES] for file in by_class[label]]
    images = [Image.open(io.BytesIO(read(name))).convert("RGB") for name in chosen]
    pixels = np.stack([np.asarray(image).transpose(2, 0, 1) for image in images])
    labels = [list(by_class).index(name.split("/")[1]) for name in chosen]
    return pixels, np.array(labels)


def scores(folder: Path, method: str, **fields: Any) -> Scores:
    """Accuracies on each unseen domain in %, in two orders of the sources."""
    measured: Scores = {}
    options = {"path": str(folder), **fields.pop("options", {})}
    for target in DOMAINS:
        sources = tuple(name for name in DOMAINS if name != target)
        for order in (sources, sources[::-1]):
            run = Run.build(
                benchmark="image-folder",
                options=options,
                method=method,
                target=target,
                order=order,
                **fields,
            )
            score = execute(run).target_score
            assert score is not None, "the run diverged"
            measured.setdefault(target, []).append(100 * score)
    return measured


def mean(measured: Scores) -> float:
    """The mean over targets and orders."""
    return float(np.mean(list(measured.values())))


def difference(first: Scores, second: Scores) -> str:
    """The paired difference over targets, and at how many of them the first is ahead."""
    both = [
        {
            ("", target, "", "", number): value / 100
            for target, values in each.items()
            for number, value in enumerate(values)
        }
        for each in (first, second)
    ]
    paired = paired_difference(*both, Unit.TARGET, METRICS["accuracy"])
    assert paired is not None
    gaps = [np.mean(first[target]) - np.mean(second[target]) for target in first]
    return (
        f"{interval(paired, METRICS['accuracy'])} | "
        f"{sum(gap >= 0 for gap in gaps)} of {len(gaps)}, worst {min(gaps):+.1f}"
    )


def line(*cells: str) -> None:
    """Print one row of the table."""
    print("| " + " | ".join(cells) + " |", flush=True)


def report(
    name: str,
    folder: Path,
    kinds: Iterable[tuple[str, dict[str, Any]]],
    shrinkage: float | None,
) -> None:
    """Rows for each kind of features: methods beside the nearest class mean."""
    for features, fields in kinds:
        nearest = scores(folder, "ncm", **fields)
        for method in ("slda", "ridge", "er", "best"):
            settings = {"shrinkage": shrinkage} if method == "slda" and shrinkage else {}
            ours = scores(folder, method, settings=settings, **fields)
            line(
                name,
                features,
                f"`{method}`",
                f"{mean(nearest):.1f}",
                f"{mean(ours):.1f}",
                difference(ours, nearest),
            )


def from_scratch(name: str, folder: Path) -> None:
    """The default step size of a network that starts from random weights, and a small one."""
    fields: dict[str, Any] = {"network": "cnn", "options": {"size": 32}, "steps": SCRATCH_STEPS}
    small = scores(folder, "er", settings={"learning_rate": 5e-5}, **fields)
    usual = scores(folder, "er", **fields)
    line(
        name,
        "`cnn` from scratch, `learning_rate` 5e-5 beside the default",
        "`er`",
        f"{mean(small):.1f}",
        f"{mean(usual):.1f}",
        difference(usual, small),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cifar", type=Path, required=True, help="folder of CIFAR-10's files")
    parser.add_argument("--tiny", type=Path, help="folder of TinyImageNet's files")
    parser.add_argument("--weights", type=Path, help="weights of a ResNet18")
    parser.add_argument("--shrinkage", type=float, help="of slda, instead of the default")
    given = parser.parse_args()
    histogram: dict[str, Any] = {"network": "histogram"}
    pretrained = {
        "network": "resnet18",
        "network_settings": {"weights": str(given.weights)},
        "options": {"size": 96},
    }
    line("images", "features", "method", "`ncm`", "score", "minus `ncm` [95%]", "targets ahead")
    line(*["---"] * 7)
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        os.environ["FARSHORE_FEATURES"] = str(root / "features")
        write(root / "cifar", *read_batches(given.cifar, ("test_batch.bin",)))
        kinds = [("`histogram`", histogram)]
        if given.weights is not None:
            kinds.append(("`resnet18`, `--size 96`", pretrained))
        report("CIFAR-10, test images", root / "cifar", kinds, given.shrinkage)
        if given.tiny is not None:
            write(root / "tiny", *read_tiny(given.tiny))
            report("TinyImageNet", root / "tiny", [("`histogram`", histogram)], given.shrinkage)
        from_scratch("CIFAR-10, test images", root / "cifar")


if __name__ == "__main__":
    main()
