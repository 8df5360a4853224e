"""Parts that backbones of other libraries share."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.overrides import TorchFunctionMode

from ...data.downloads.public_files import known_checksum
from ...data.downloads.weights import find_weights, read_weights
from ...errors import FarshoreError
from ..form import SIZE, InputForm, Settled
from ..freezing import freeze
from ..network import ImageInputs, Network

# Values of the setting `weights` of every backbone.
PRETRAINED, NONE = "pretrained", "none"
# The largest intermediate result for one image, 512 MiB: attention over 4,096 tokens in 8 heads.
MOST_VALUES = 1 << 27


class LibraryFeatures(nn.Module):
    """A model of a library without its classifier, with its own pooling."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        """Features [n, d]."""
        return self.model(images).flatten(1)


def need_images(network: str, shape: tuple[int, ...]) -> None:
    """Refuse inputs that are no images with one or three channels."""
    if len(shape) != 3 or shape[0] not in (1, 3):
        raise FarshoreError(
            f"network {network!r} needs images [1 or 3, height, width], but the inputs have shape "
            f"{list(shape)}"
        )


def library_builder(
    network: str,
    settle: Callable[[Mapping[str, Any]], Settled],
    make_features: Callable[[tuple[int, ...], bool], nn.Module],
    kind: type[Network] = Network,
) -> Callable[..., Network]:
    """The function that builds a network of a library, whose weights may also be a local file.

    make_features: from the size of the images, and whether the published weights are loaded, to a
        module whose attribute `model` has the library's names.
    """

    def build(
        shape: tuple[int, ...],
        classes: int,
        *,
        weights: str = PRETRAINED,
        mean: tuple[float, ...] | None = None,
        std: tuple[float, ...] | None = None,
    ) -> Network:
        need_images(network, shape)
        given = {} if mean is None or std is None else {"mean": mean, "std": std}
        form = settle(given).form
        features: Any = make_features(shape[1:], weights == PRETRAINED)
        if weights not in (PRETRAINED, NONE):
            load_file(features.model, weights, network)
        return make_backbone(features, shape, classes, form, kind)

    return build


def saved_form(name: str, settings: Mapping[str, Any]) -> Settled | None:
    """What a saved model's own settings say; None for a model that is new."""
    if not {"mean", "std"} <= settings.keys():
        return None
    form = InputForm(SIZE, "bilinear", tuple(settings["mean"]), tuple(settings["std"]))
    return Settled(dict(settings), form, name)


def new_form(settings: Mapping[str, Any], form: InputForm, published: str) -> Settled:
    """The settings of a new model, with the origin of its weights: `published`, a file or none."""
    settled = {"mean": list(form.mean), "std": list(form.std), **settings}
    weights = settings.get("weights", PRETRAINED)
    if weights not in (PRETRAINED, NONE):
        published = file_origin(Path(weights))
    return Settled(settled, form, "" if weights == NONE else published)


def load_file(features: nn.Module, weights: str, network: str) -> None:
    """Load a local file (.safetensors, .pth) with the library's names; its head is ignored."""
    file = find_weights(weights)
    assert file is not None
    stored, own = read_weights(file), features.state_dict()
    prefix = next((name for name in ("", "model.") if _fits(stored, own, name)), None)
    if prefix is None:
        missing = next(name for name in own if name not in stored)
        raise FarshoreError(f"{file} does not fit {network}: {missing!r} is missing")
    known = [name for name in own if prefix + name in stored]
    wrong = [name for name in known if stored[prefix + name].shape != own[name].shape]
    if wrong:
        raise FarshoreError(f"{file} does not fit {network}: {wrong[0]!r} has a different shape")
    features.load_state_dict({name: stored.get(prefix + name, own[name]) for name in own})


def _fits(stored: dict[str, Tensor], own: dict[str, Tensor], prefix: str) -> bool:
    return all(prefix + name in stored or "num_batches_tracked" in name for name in own)


def make_backbone(
    features: nn.Module,
    shape: tuple[int, ...],
    classes: int,
    form: InputForm,
    kind: type[Network] = Network,
    *,
    by_shapes: bool = False,
    most: int = MOST_VALUES,
) -> Network:
    """A Network on these features, whose number one image tells.

    Parameters that no feature depends on become buffers: a gradient of them does not exist.

    by_shapes: that image has no values, so that it takes no memory, whatever the network is.
    most: the most values that an intermediate result of one image may have.
    """
    inputs = ImageInputs(form.mean, form.std)
    features.eval()
    whole = nn.Sequential(inputs, features)
    parts = dict([*whole.named_parameters(), *whole.named_buffers()])
    if by_shapes:
        parts = {name: _shape_of(part) for name, part in parts.items()}
    trained = {name: part for name, part in parts.items() if part.requires_grad}
    with (
        torch.device("meta") if by_shapes else nullcontext(),
        torch.enable_grad(),
        torch.random.fork_rng(devices=[]),
        _AtMost(most),
    ):
        image = torch.zeros(1, *shape)
        outputs = functional_call(whole, parts, (image,)) if by_shapes else whole(image)
        if outputs.ndim != 2:
            raise FarshoreError(
                f"the backbone gives outputs of shape {list(outputs.shape[1:])} per image: it must "
                "give a vector of features"
            )
        used: Sequence[Tensor | None] = [None] * len(trained)
        if trained and outputs.requires_grad:
            used = torch.autograd.grad(outputs.sum(), list(trained.values()), allow_unused=True)
    unused = {name for name, grad in zip(trained, used, strict=True) if grad is None}
    without = {id(part) for name, part in whole.named_parameters() if name in unused}
    freeze(features, lambda parameter: id(parameter) in without)
    features.train()
    return kind(features, nn.Linear(outputs.shape[1], classes), inputs=inputs)


def _shape_of(part: Tensor) -> Tensor:
    return torch.empty_like(part, device="meta").requires_grad_(part.requires_grad)


class _AtMost(TorchFunctionMode):
    """Refuses an intermediate result with more values than `most`."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Call the function, and look at the sizes of what it returns."""
        made = func(*args, **(kwargs or {}))
        for each in made if isinstance(made, tuple | list) else (made,):
            if isinstance(each, Tensor) and each.numel() > self.most:
                raise FarshoreError(
                    f"the network makes {each.numel():,} values of one image ({each.dtype}, "
                    f"{list(each.shape)}), and at most {self.most:,} are allowed: use smaller "
                    "images or larger patches"
                )
        return made


def file_origin(path: Path) -> str:
    """A file in words."""
    return f"{path.name} (sha256 {known_checksum(path)[:16]})"
