"""hf:NAME: image models of the transformers library (DINOv2, ViT, CLIP, ConvNeXt, ...)."""

import inspect
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from ...data.downloads.hf_models import (
    PREFIX,
    from_config,
    from_published,
    library,
    local,
    missing,
    published,
    quiet,
    unfit,
)
from ...data.downloads.hub import hub
from ...errors import FarshoreError
from ..form import IMAGENET_MEAN, IMAGENET_STD, SIZE, InputForm, Settled, library_form
from ..network import Network
from .pretrained import NONE, PRETRAINED, file_origin, make_backbone, need_images

PROCESSOR = "preprocessor_config.json"
# Pillow's numbers of resampling filters, which the configurations contain.
RESAMPLING = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic"}
# Kinds of models that are all their own. Others take a part from another model, which their
# configuration names and the library fetches.
KINDS = """
aimv2 aimv2_vision_model beit bit chinese_clip chinese_clip_vision_model clip clip_vision_model
convnext convnextv2 data2vec-vision deit dinov2 dinov2_with_registers dinov3_convnext dinov3_vit
efficientnet focalnet hiera ijepa levit mlcd mlcd_vision_model mobilenet_v1 mobilenet_v2
mobilevit mobilevitv2 poolformer pvt pvt_v2 regnet resnet segformer siglip siglip_vision_model
swiftformer swin swinv2 vit vit_msn
"""


class HFFeatures(nn.Module):
    """The class token, else what the model itself pools, else the mean over all tokens.

    The poolers of models with a class token (ViT, BEiT) are often not part of the published
    weights; CLIP's is, and only normalises that token.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        names = [name.rpartition(".")[2] for name, _ in model.named_parameters()]
        self.takes_token = "cls_token" in names and "class_embedding" not in names
        if self.takes_token and isinstance(getattr(model, "pooler", None), nn.Module):
            model.pooler = None
        arguments = inspect.signature(model.forward).parameters
        self.interpolates = "interpolate_pos_encoding" in arguments

    def forward(self, images: Tensor) -> Tensor:
        """Features [n, d]."""
        # Images of another size than in pretraining need other positions.
        more = {"interpolate_pos_encoding": True} if self.interpolates else {}
        outputs = self.model(pixel_values=images, **more)
        states: Tensor = outputs.last_hidden_state
        if self.takes_token:
            return states[:, 0]
        pooled: Tensor | None = getattr(outputs, "pooler_output", None)
        if pooled is not None:
            return pooled.flatten(1)
        return states.flatten(2).mean(dim=2) if states.ndim == 4 else states.mean(dim=1)


def builder(name: str) -> Callable[..., Network]:
    """The function that builds the network `hf:NAME`; NAME is a model's name or its folder."""
    network, kinds = PREFIX + name, KINDS.split()
    what = f"network {network!r}"

    def hf(
        shape: tuple[int, ...],
        classes: int,
        *,
        weights: str = PRETRAINED,
        config: dict[str, Any] | None = None,
        mean: tuple[float, ...] | None = None,
        std: tuple[float, ...] | None = None,
    ) -> Network:
        need_images(network, shape)
        _check_weights(network, weights)
        transformers = library("transformers", "transformers", network)
        form = InputForm(mean=mean or IMAGENET_MEAN, std=std or IMAGENET_STD)
        if mean is None or std is None or config is None:
            settled = settle(name, {"weights": weights})
            config = config if config is not None else settled.settings["config"]
            form = settled.form
        if weights == PRETRAINED:
            try:
                with hub(), quiet(transformers):
                    model = from_published(transformers, name, kinds, what)
            except (OSError, ValueError, ImportError) as error:
                raise missing(name, PROCESSOR, error) from None
        else:
            # Of a model of images and texts, only the part that reads images is made.
            model = from_config(transformers, config, kinds, what, "vision_config")
        features = HFFeatures(getattr(model, "vision_model", model))
        try:
            return make_backbone(features, shape, classes, form, by_shapes=True)
        except FarshoreError as error:
            raise FarshoreError(f"{what}: {error}") from None
        except Exception as error:  # a configuration may be wrong in any way
            raise unfit(what, error) from None

    return hf


def settle(name: str, settings: Mapping[str, Any]) -> Settled:
    """Read the model's own configuration: architecture, size, resampling, mean and deviation."""
    network = PREFIX + name
    if {"config", "mean", "std"} <= settings.keys():  # those of a saved model
        stored = _size(settings["config"].get("image_size")) or SIZE
        form = InputForm(stored, "bilinear", tuple(settings["mean"]), tuple(settings["std"]))
        return Settled(dict(settings), form, name)
    transformers = library("transformers", "transformers", network)
    try:
        with hub(), quiet(transformers):
            config = published(transformers, name, KINDS.split(), f"network {network!r}")
            file = transformers.utils.cached_file(
                local(name), PROCESSOR, _raise_exceptions_for_missing_entries=False
            )
    except (OSError, ValueError, ImportError) as error:
        raise missing(name, PROCESSOR, error) from None
    plain = json.loads(config.to_json_string(use_diff=False))
    vision = plain.get("vision_config", plain)
    processor = json.loads(Path(file).read_text()) if file is not None else {}
    size = _size(processor.get("crop_size")) or _size(processor.get("size"))
    form = library_form(
        size or _size(vision.get("image_size")),
        RESAMPLING.get(processor.get("resample", 2)),
        processor.get("image_mean"),
        processor.get("image_std"),
    )
    settled = {"config": plain, "mean": list(form.mean), "std": list(form.std), **settings}
    weights = settings.get("weights", PRETRAINED)
    _check_weights(network, weights)
    return Settled(settled, form, _origin(name, weights, config))


def _check_weights(network: str, weights: str) -> None:
    """Refuse a file: the library stores a model as a folder, and renames weights on loading."""
    if weights not in (PRETRAINED, NONE):
        raise FarshoreError(
            f"weights = {weights!r} is not allowed for {network!r}: it should be pretrained or "
            "none; a local copy is named by its folder, hf:FOLDER"
        )


def _origin(name: str, weights: str, config: Any) -> str:
    """Which weights these are."""
    if weights == NONE:
        return ""
    folder = Path(local(name))
    if folder.is_dir():
        files = sorted(folder.glob("*.safetensors"))
        return ", ".join(file_origin(file) for file in files) or folder.name
    return f"{name}, revision {getattr(config, '_commit_hash', None) or 'unknown'}"


def _size(value: Any) -> int | None:
    """Pixels per side, in any of the ways in which configurations write them."""
    if isinstance(value, Mapping):
        value = value.get("shortest_edge") or value.get("height")
    if isinstance(value, list | tuple) and value:
        value = value[0]
    return int(value) if isinstance(value, int | float) and value >= 1 else None
