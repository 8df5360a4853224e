"""hf:NAME: image models of the transformers library (DINOv2, ViT, CLIP, ConvNeXt, ...)."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ...base.inert import inert
from ...data.downloads.hub import hub
from ...errors import FarshoreError
from ..form import IMAGENET_MEAN, IMAGENET_STD, INTERPOLATIONS, InputForm, Interpolation, Settled
from ..network import Network
from .pretrained import (
    NONE,
    PRETRAINED,
    SIZE,
    explain_missing,
    file_origin,
    library,
    make_backbone,
    need_images,
)

PREFIX = "hf:"
PROCESSOR = "preprocessor_config.json"
# Pillow's numbers of resampling filters, which the configurations contain.
RESAMPLING: dict[int, Interpolation] = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic"}
MOST_LAYERS, LARGEST_NUMBER = 1000, 1 << 24
# Kinds of models that are all their own. Others take a part from another model, which their
# configuration names and the library fetches.
KINDS = """
aimv2 aimv2_vision_model beit bit chinese_clip chinese_clip_vision_model clip clip_vision_model
convnext convnextv2 data2vec-vision deit dinov2 dinov2_with_registers dinov3_convnext dinov3_vit
efficientnet focalnet hiera ijepa levit mlcd mlcd_vision_model mobilenet_v1 mobilenet_v2
mobilevit mobilevitv2 poolformer pvt pvt_v2 regnet resnet segformer siglip siglip_vision_model
swiftformer swin swinv2 vit vit_msn
"""
# Ways to compute attention that are part of torch; any other name leads to code from elsewhere.
ATTENTION = (None, "eager", "sdpa")


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
    network = PREFIX + name

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
                with hub(), _quiet(transformers):
                    model = transformers.AutoModel.from_pretrained(
                        _local(name),
                        config=_published(transformers, name),
                        dtype=torch.float32,
                        trust_remote_code=False,
                    )
            except (OSError, ValueError, ImportError) as error:
                raise _missing(name, error) from None
        else:
            model = _from_config(transformers, config, network)
        features = HFFeatures(_image_tower(model))
        try:
            return make_backbone(features, shape, classes, form, by_shapes=True)
        except FarshoreError as error:
            raise FarshoreError(f"network {network!r}: {error}") from None
        except Exception as error:  # a configuration may be wrong in any way
            raise _unfit(network, error) from None

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
        with hub(), _quiet(transformers):
            config = _published(transformers, name)
            file = transformers.utils.cached_file(
                _local(name), PROCESSOR, _raise_exceptions_for_missing_entries=False
            )
    except (OSError, ValueError, ImportError) as error:
        raise _missing(name, error) from None
    plain = json.loads(config.to_json_string(use_diff=False))
    vision = plain.get("vision_config", plain)
    processor = json.loads(Path(file).read_text()) if file is not None else {}
    size = _size(processor.get("crop_size")) or _size(processor.get("size"))
    form = InputForm(
        size or _size(vision.get("image_size")) or SIZE,
        RESAMPLING.get(processor.get("resample", 2), "bilinear"),
        tuple(processor.get("image_mean") or IMAGENET_MEAN),
        tuple(processor.get("image_std") or IMAGENET_STD),
    )
    assert form.interpolation in INTERPOLATIONS
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
    folder = Path(_local(name))
    if folder.is_dir():
        files = sorted(folder.glob("*.safetensors"))
        return ", ".join(file_origin(file) for file in files) or folder.name
    return f"{name}, revision {getattr(config, '_commit_hash', None) or 'unknown'}"


def _published(transformers: Any, name: str) -> Any:
    """The model's own configuration, if it is of a kind that needs nothing else."""
    config = transformers.AutoConfig.from_pretrained(_local(name), trust_remote_code=False)
    _check_kind(getattr(config, "model_type", None), PREFIX + name)
    parts = (getattr(config, part, None) for part in ("vision_config", "text_config"))
    for part in (config, *parts):
        attention = getattr(part, "_attn_implementation", None)
        if attention not in ATTENTION:
            raise FarshoreError(
                f"network {PREFIX + name!r} asks for the attention {attention!r}, which is code "
                "from elsewhere: it should be eager or sdpa"
            )
    return config


def _check_kind(kind: Any, network: str) -> None:
    kinds = KINDS.split()
    if kind not in kinds:
        raise FarshoreError(
            f"network {network!r} is a model of the kind {kind!r}: it should be one of "
            f"{', '.join(kinds)}"
        )


def _from_config(transformers: Any, config: Mapping[str, Any], network: str) -> Any:
    """A model with random weights; a configuration names neither code nor another model."""
    kind = config.get("model_type")
    _check_kind(kind, network)
    _check_sizes(config, network)
    try:
        with inert(), hub(), _quiet(transformers):
            known = transformers.AutoConfig.for_model(kind)
            made = transformers.AutoConfig.for_model(kind, **_known_keys(config, known))
            # Of a model of images and texts, only the part that reads images is made.
            part = getattr(made, "vision_config", made)
            return transformers.AutoModel.from_config(part, trust_remote_code=False)
    except Exception as error:  # a configuration may be wrong in any way
        raise _unfit(network, error) from None


def _unfit(network: str, error: Exception) -> FarshoreError:
    reason = " ".join(str(error).split())[:160]
    return FarshoreError(f"network {network!r} cannot be made from its configuration: {reason}")


def _known_keys(config: Mapping[str, Any], known: Any) -> dict[str, Any]:
    """What this kind of configuration has: the library takes any other key as an order."""
    usual, parts = known.to_dict(), getattr(known, "sub_configs", {})
    return {
        key: _known_keys(value, getattr(known, key)) if key in parts and value else value
        for key, value in config.items()
        if key in usual and key not in ("model_type", "auto_map", "dtype", "torch_dtype")
    }


def _check_sizes(config: Any, network: str) -> None:
    """Refuse a configuration that would take for ever to build, whatever its weights are."""
    for key, value in config.items() if isinstance(config, Mapping) else ():
        if isinstance(value, Mapping):
            _check_sizes(value, network)
        numbers = value if isinstance(value, list | tuple) else [value]
        largest = max((item for item in numbers if type(item) is int), default=0)
        repeated = any(word in str(key) for word in ("layer", "depth", "block", "stage"))
        if largest > (MOST_LAYERS if repeated else LARGEST_NUMBER):
            raise FarshoreError(
                f"network {network!r} has {key} = {largest:,} in its configuration, which no model "
                "has"
            )


def _image_tower(model: Any) -> Any:
    """The part of a model of images and texts that reads images."""
    return getattr(model, "vision_model", model)


def _size(value: Any) -> int | None:
    """Pixels per side, in any of the ways in which configurations write them."""
    if isinstance(value, Mapping):
        value = value.get("shortest_edge") or value.get("height")
    if isinstance(value, list | tuple) and value:
        value = value[0]
    return int(value) if isinstance(value, int | float) and value >= 1 else None


def _local(name: str) -> str:
    """The folder, if the name is one; otherwise the model's name."""
    folder = Path(name).expanduser()
    return str(folder) if folder.is_dir() else name


def _missing(name: str, error: Exception) -> FarshoreError:
    from huggingface_hub.constants import HF_HUB_CACHE

    return explain_missing(
        PREFIX + name,
        f"fetch them where there is a network (`hf download {name}`, which fills {HF_HUB_CACHE}), "
        f"or put config.json, {PROCESSOR} and model.safetensors into a folder and name it, "
        "hf:FOLDER",
        error,
    )


class _quiet:
    """No progress bars and no advice of the library inside: Farshore prints its own lines."""

    def __init__(self, transformers: Any) -> None:
        self.logging = transformers.utils.logging

    def __enter__(self) -> None:
        self.verbosity = self.logging.get_verbosity()
        self.logging.set_verbosity_error()
        self.logging.disable_progress_bar()

    def __exit__(self, *_: object) -> None:
        self.logging.set_verbosity(self.verbosity)
        self.logging.enable_progress_bar()
