"""Models of the transformers library, from the hub, a folder or a stored configuration.

Neither a name nor a configuration leads to code from elsewhere, or to another model.
"""

from collections.abc import Collection, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from ...base.inert import inert
from ...errors import FarshoreError, needs
from .hub import hub

PREFIX = "hf:"
# Ways to compute attention that are part of torch; any other name leads to code from elsewhere.
ATTENTION = (None, "eager", "sdpa")
MOST_LAYERS, LARGEST_NUMBER = 1000, 1 << 24


def library(module: str, extra: str, name: str, what: str = "network") -> ModuleType:
    """Import the library that a network needs; the error names the extra that installs it."""
    try:
        return import_module(module)
    except (ImportError, RuntimeError) as error:  # RuntimeError: it was built for another torch
        missing = getattr(error, "name", None) or f"{module} ({error})"
        raise needs(extra, f"{what} {name!r} needs the package {missing}") from None


def explain_missing(network: str, what: str, error: Exception) -> FarshoreError:
    """The error of weights that are neither cached nor to be had: which file goes where."""
    reason = " ".join(str(error).split()).split(". ")[0][:160]
    return FarshoreError(f"the weights of {network!r} are not available here ({reason}): {what}")


def missing(name: str, file: str, error: Exception) -> FarshoreError:
    """The error of a model of the hub that is not available; `file` is what it has beside it."""
    from huggingface_hub.constants import HF_HUB_CACHE

    return explain_missing(
        PREFIX + name,
        f"fetch them where there is a network (`hf download {name}`, which fills {HF_HUB_CACHE}), "
        f"or put config.json, {file} and model.safetensors into a folder and name it, hf:FOLDER",
        error,
    )


def unfit(what: str, error: Exception) -> FarshoreError:
    """The error of a configuration from which no model can be made."""
    reason = " ".join(str(error).split())[:160]
    return FarshoreError(f"{what} cannot be made from its configuration: {reason}")


def local(name: str) -> str:
    """The folder, if the name is one; otherwise the model's name."""
    folder = Path(name).expanduser()
    return str(folder) if folder.is_dir() else name


def published(transformers: Any, name: str, kinds: Collection[str], what: str) -> Any:
    """The model's own configuration, if it is of a kind that needs nothing else."""
    config = transformers.AutoConfig.from_pretrained(local(name), trust_remote_code=False)
    _check_kind(getattr(config, "model_type", None), kinds, what)
    parts = (getattr(config, part, None) for part in ("vision_config", "text_config"))
    for part in (config, *parts):
        attention = getattr(part, "_attn_implementation", None)
        if attention not in ATTENTION:
            raise FarshoreError(
                f"{what} asks for the attention {attention!r}, which is code from elsewhere: it "
                "should be eager or sdpa"
            )
    return config


def from_published(transformers: Any, name: str, kinds: Collection[str], what: str) -> Any:
    """The model with its published weights; the caller explains an error."""
    return transformers.AutoModel.from_pretrained(
        local(name),
        config=published(transformers, name, kinds, what),
        dtype=torch.float32,
        trust_remote_code=False,
    )


def from_config(
    transformers: Any, config: Mapping[str, Any], kinds: Collection[str], what: str, part: str = ""
) -> Any:
    """A model with random weights; a configuration names neither code nor another model.

    part: of a model of images and texts, only what this part configures is made.
    """
    kind = config.get("model_type")
    _check_kind(kind, kinds, what)
    _check_sizes(config, what)
    try:
        with inert(), hub(), quiet(transformers):
            known = transformers.AutoConfig.for_model(kind)
            made = transformers.AutoConfig.for_model(kind, **_known_keys(config, known))
            chosen = getattr(made, part, made) if part else made
            return transformers.AutoModel.from_config(chosen, trust_remote_code=False)
    except Exception as error:  # a configuration may be wrong in any way
        raise unfit(what, error) from None


def _check_kind(kind: Any, kinds: Collection[str], what: str) -> None:
    if kind not in kinds:
        why = f"{what} is a model of the kind {kind!r}: it should be one of {', '.join(kinds)}"
        raise FarshoreError(why)


def _known_keys(config: Mapping[str, Any], known: Any) -> dict[str, Any]:
    """What this kind of configuration has: the library takes any other key as an order."""
    usual, parts = known.to_dict(), getattr(known, "sub_configs", {})
    return {
        key: _known_keys(value, getattr(known, key)) if key in parts and value else value
        for key, value in config.items()
        if key in usual and key not in ("model_type", "auto_map", "dtype", "torch_dtype")
    }


def _check_sizes(config: Any, what: str) -> None:
    """Refuse a configuration that would take for ever to build, whatever its weights are."""
    for key, value in config.items() if isinstance(config, Mapping) else ():
        if isinstance(value, Mapping):
            _check_sizes(value, what)
        numbers = value if isinstance(value, list | tuple) else [value]
        largest = max((item for item in numbers if type(item) is int), default=0)
        repeated = any(word in str(key) for word in ("layer", "depth", "block", "stage"))
        if largest > (MOST_LAYERS if repeated else LARGEST_NUMBER):
            why = f"{what} has {key} = {largest:,} in its configuration, which no model has"
            raise FarshoreError(why)


class quiet:
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
