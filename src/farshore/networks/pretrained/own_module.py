"""module.py:factory: a user's own backbone, made by a function in a Python file.

The function gets the settings of the network as keyword arguments and returns a module from images
[n, 3, height, width] to features [n, d], or a `farshore.Network`. The module may say what it
expects with the attributes `input_size`, `interpolation`, `mean` and `std`. Neither a saved model
nor an experiment leads to the import of such a file: whoever uses it names the file again.
"""

import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from torch import nn

from ...base.inert import is_inert
from ...data.downloads.public_files import known_checksum
from ...errors import FarshoreError, unknown
from ..form import InputForm, Settled, library_form
from ..network import Network
from .pretrained import file_origin, make_backbone, need_images

FORM = re.compile(r"(?P<file>.+\.py):(?P<function>[A-Za-z_]\w*)")


def is_own_module(name: str) -> bool:
    """Whether this is the name of a user's own backbone."""
    return FORM.fullmatch(name) is not None


def builder(name: str) -> Callable[..., Network]:
    """The function that builds the network `module.py:factory`."""
    factory = load_factory(name)

    def own(shape: tuple[int, ...], classes: int, **settings: Any) -> Network:
        made = _make(name, settings)
        if isinstance(made, Network):
            made.classifier = nn.Linear(made.feature_dim, classes)
            return made
        need_images(name, shape)
        return make_backbone(made, shape, classes, _form(made), most=sys.maxsize)

    # Settings are checked by the factory's own names and types.
    own.__signature__ = _signature(factory)  # type: ignore[attr-defined]
    own.__annotations__ = dict(getattr(factory, "__annotations__", {}))
    own.__wrapped__ = factory  # type: ignore[attr-defined]
    return own


def settle(name: str, settings: Mapping[str, Any]) -> Settled:
    """What the module says about its inputs; its origin is the file."""
    file, _ = _parts(name)
    return Settled(dict(settings), _form(_make(name, settings)), file_origin(file))


def _make(name: str, settings: Mapping[str, Any]) -> nn.Module:
    made = load_factory(name)(**settings)
    if not isinstance(made, nn.Module):
        raise FarshoreError(
            f"{name} returns a {type(made).__name__}: it must return a torch module or a "
            "farshore.Network"
        )
    return made


def _form(module: nn.Module) -> InputForm:
    """Attributes of the module; ImageNet's statistics where it says nothing."""
    keys = ("input_size", "interpolation", "mean", "std")
    return library_form(*(getattr(module, key, None) for key in keys))


def _parts(name: str) -> tuple[Path, str]:
    match = FORM.fullmatch(name)
    assert match is not None
    return Path(match["file"]).expanduser(), match["function"]


def file_digest(name: str) -> str:
    """The checksum of the file and the name of the function, without importing it."""
    file, function = _parts(name)
    return f"sha256 {known_checksum(file)} {function}"


def name_note(name: str) -> list[str]:
    """What the name of a run on this network does not tell, if it is a user's own."""
    if not is_own_module(name):
        return []
    return [
        f"{_parts(name)[0].name} counts for the name of this run, files that it reads or imports "
        "do not: if they change, delete the run to repeat it"
    ]


def load_factory(name: str) -> Callable[..., Any]:
    """Import the file and return the function; this runs the user's code."""
    file, function = _parts(name)
    if is_inert():
        raise FarshoreError(
            f"it names the network {name!r}, and reading what is recorded never runs code: repeat "
            "the command that made it (`compare`, or `sweep --network`), which records what is "
            "needed of that file"
        )
    if not file.is_file():
        raise FarshoreError(f"network {name!r}: there is no file {str(file)!r}: check the path")
    module = _load(str(file.resolve()), known_checksum(file))
    factory = getattr(module, function, None)
    if not callable(factory):
        functions = [key for key, value in vars(module).items() if inspect.isfunction(value)]
        raise unknown(f"function in {file}", function, functions)
    return factory


@lru_cache(maxsize=64)
def _load(file: str, digest: str) -> Any:
    """Import a file once for each of its contents."""
    spec = importlib.util.spec_from_file_location(f"farshore_own_{digest[:16]}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # data classes and pickles look their module up
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # the user's code may raise anything
        del sys.modules[spec.name]
        why = f"{file} cannot be imported: {type(error).__name__}: {' '.join(str(error).split())}"
        raise FarshoreError(why) from error
    return module


def _signature(factory: Callable[..., Any]) -> inspect.Signature:
    """The factory's arguments, as keyword-only settings after shape and classes."""
    kinds = inspect.Parameter
    arguments = [
        parameter.replace(kind=kinds.KEYWORD_ONLY)
        for parameter in inspect.signature(factory).parameters.values()
        if parameter.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)
    ]
    first = [kinds(name, kinds.POSITIONAL_OR_KEYWORD) for name in ("shape", "classes")]
    return inspect.Signature([*first, *arguments])
