"""Pretrained weights: finding them, reading them safely, and describing them in results."""

from pathlib import Path

import torch
from torch import Tensor

from ...errors import FarshoreError
from .public_files import PublicFile, check, checksum, data_root

# torchvision's ResNet18, IMAGENET1K_V1, licensed under BSD-3-Clause; ImageNet's own terms allow
# research use.
RESNET18 = PublicFile(
    "resnet18-f37072fd.pth",
    ("https://download.pytorch.org/models/resnet18-f37072fd.pth",),
    "f37072fd47e89c5e827621c5baffa7500819f7896bbacec160b1a16c560e07ec",
    46_830_571,
)


def weights_folder(root: str | Path | None = None) -> Path:
    """Return the folder of weights, ROOT/weights."""
    return data_root(root) / "weights"


def find_weights(weights: str) -> Path | None:
    """Return the file for `imagenet`, a path or a file name in ROOT/weights; None for `none`."""
    if weights == "none":
        return None
    folder = weights_folder()
    if weights == "imagenet":
        if not (folder / RESNET18.name).is_file():
            raise FarshoreError(
                f"the ImageNet weights {RESNET18.name} are not in {folder}: put them there "
                f"({RESNET18.urls[0]}), "
                "give another file (--weights FILE), or train from scratch (--weights none)"
            )
        return check(RESNET18, folder)
    for path in (Path(weights).expanduser(), folder / weights):
        if path.is_file():
            return path
    why = f"--weights {weights!r} is not a file: give a .pth or .safetensors file, imagenet or none"
    raise FarshoreError(why)


def weights_note(network: str, weights: str) -> str:
    """Return the note for the result on the weights that a network starts from."""
    if find_weights(weights) is None:
        return f"{network} starts from scratch, as requested: no pretrained weights"
    return f"{network} starts from {weights_origin(weights)}"


def weights_origin(weights: str) -> str:
    """Return which weights these are, with their checksum."""
    path = find_weights(weights)
    assert path is not None
    source = "the official ImageNet weights" if weights == "imagenet" else path.name
    return f"{source} (sha256 {checksum(path)[:16]})"


def usual_image_network() -> str:
    """resnet18 if its ImageNet weights are here, otherwise `histogram`, which needs none."""
    return "resnet18" if (weights_folder() / RESNET18.name).is_file() else "histogram"


def read_weights(path: Path) -> dict[str, Tensor]:
    """Return tensors by name in single precision; the file cannot run code."""
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            tensors = load_file(path)
        else:
            tensors = torch.load(path, map_location="cpu", weights_only=True)
        return {
            str(name): tensor.float() if tensor.is_floating_point() else tensor
            for name, tensor in tensors.items()
        }
    except Exception as error:  # safetensors and torch raise many types for invalid files
        raise FarshoreError(
            f"{path} cannot be read as weights: "
            f"{str(error).splitlines()[0] if str(error) else error!r}"
        ) from None
