"""The kernels of the CNN against PyTorch's own layers: on a GPU, or carried out on a CPU by
Triton's interpreter.
"""

from __future__ import annotations

from types import ModuleType

import pytest
import torch
from torch import Tensor, nn

from farshore.networks.build import build_network
from farshore.networks.cnn import CNNFeatures
from farshore.networks.kernels.first_layer import first_layer
from farshore.networks.kernels.relu_group_norm import is_whole, relu_group_norm
from farshore.networks.network import Network
from farshore.settings import RunSettings
from farshore.training.execution.execution import Way, arithmetic, laid_out

BY_CHANNELS = Way("graph", channels_last=True)
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture(scope="module")
def kernels() -> ModuleType:
    """The module with the kernels; where there is no GPU, `conftest.py` has them carried out in
    Python.
    """
    pytest.importorskip("triton", reason="Triton is not installed")
    from farshore.networks.kernels import kernels

    return kernels


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape))).to(
        DEVICE
    )


# Images, channels, height, width: strips that are full, cut off and single; one group a program and
# several; one place alone.
FORMS = [
    (3, 64, 28, 28),
    (2, 128, 14, 14),
    (1, 32, 5, 3),
    (2, 16, 2, 1),
    (2, 512, 3, 3),
    (1, 8, 40, 30),
]


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_relu_and_group_norm_and_all_their_gradients(
    form: tuple[int, int, int, int], pooled: bool, kernels: ModuleType
) -> None:
    channels, groups = form[1], 8
    images = (3 * drawn(*form)).to(memory_format=torch.channels_last)
    inputs = [images, drawn(channels), drawn(channels, seed=1), drawn(channels, seed=2)]
    exact = [tensor.double().requires_grad_() for tensor in inputs]
    plain = nn.functional.group_norm(
        (exact[0] + exact[1].view(1, -1, 1, 1)).relu(), groups, exact[2], exact[3], 1e-5
    )
    plain = plain.mean(dim=(2, 3)) if pooled else plain
    gradient = drawn(*plain.shape, seed=3)
    gradient = gradient if pooled else gradient.to(memory_format=torch.channels_last)
    plain.backward(gradient.double())

    out, facts = kernels.forward(*inputs, groups, 1e-5, pooled)
    dc, sums = kernels.backward(gradient, (*inputs[:3], facts), groups, pooled)
    assert dc.is_contiguous(memory_format=torch.channels_last)
    for ours, theirs in zip(
        [out, dc, *sums], [plain, *(tensor.grad for tensor in exact)], strict=True
    ):
        torch.testing.assert_close(ours.double(), theirs, rtol=1e-4, atol=1e-4)


def test_images_in_half_precision_come_out_in_half_precision(kernels: ModuleType) -> None:
    images = drawn(2, 16, 6, 6).to(memory_format=torch.channels_last)
    small = [drawn(16), drawn(16, seed=1), drawn(16, seed=2)]
    exact, _ = kernels.forward(images, *small, 8, 1e-5, False)
    half, facts = kernels.forward(images.bfloat16(), *small, 8, 1e-5, False)
    dc, sums = kernels.backward(half, (images.bfloat16(), *small[:2], facts), 8, False)
    assert [half.dtype, dc.dtype] == [torch.bfloat16] * 2
    assert [facts.dtype, sums.dtype] == [torch.float32] * 2
    torch.testing.assert_close(half.float(), exact, rtol=0.02, atol=0.02)


@pytest.mark.parametrize(
    ("channels", "groups", "whole"),
    [(64, 8, True), (8, 8, True), (48, 8, False), (64, 3, False), (128, 8, True)],
)
def test_blocks_come_out_even_for_powers_of_two(channels: int, groups: int, whole: bool) -> None:
    assert is_whole(channels, groups) is whole


# Triton's interpreter multiplies matrices of bfloat16 as if their bits were whole numbers; a GPU
# does not.
HALF = torch.bfloat16 if DEVICE == "cuda" else torch.float16


@pytest.mark.parametrize("form", [(3, 64, 28, 28), (2, 16, 5, 4), (1, 8, 3, 1), (1, 128, 9, 30)])
@pytest.mark.parametrize(
    ("dtype", "close"), [(torch.float32, 2e-3 if DEVICE == "cuda" else 1e-5), (HALF, 2e-2)]
)
def test_the_first_layer_and_all_its_gradients(
    form: tuple[int, int, int, int], dtype: torch.dtype, close: float, kernels: ModuleType
) -> None:
    from farshore.networks.kernels import first_layer_kernels

    count, channels, height, width = form
    images, weight = (
        drawn(count, 1, height, width).bfloat16().to(dtype),
        drawn(channels, 1, 3, 3).bfloat16().float(),
    )
    inputs = [weight, drawn(channels), drawn(channels, seed=1), drawn(channels, seed=2)]
    exact = [tensor.double().requires_grad_() for tensor in inputs]
    convolved = nn.functional.conv2d(images.double(), exact[0], exact[1], padding=1)
    plain = nn.functional.group_norm(convolved.relu(), 8, exact[2], exact[3], 1e-5)
    gradient = drawn(*form, seed=3).to(dtype).to(memory_format=torch.channels_last)
    plain.backward(gradient.double())

    out, facts = first_layer_kernels.forward(images, inputs, 8, 1e-5)
    rows = first_layer_kernels.backward(gradient, images, (*inputs[:3], facts), 8)
    assert (out.dtype, rows.dtype) == (dtype, torch.float32)
    assert out.is_contiguous(memory_format=torch.channels_last)
    ours = [out, rows[:9].t().reshape(-1, 1, 3, 3), *rows[9:]]
    for one, other in zip(ours, [plain.detach(), *(tensor.grad for tensor in exact)], strict=True):
        assert other is not None
        torch.testing.assert_close(
            one.double(), other, rtol=close, atol=close * float(other.abs().max())
        )


def test_images_that_want_a_gradient_go_through_layers_that_have_one(operator: None) -> None:
    network = build_network("cnn", (1, 8, 8), 3, {"width": 8}).to(DEVICE)
    inputs = drawn(2, 1, 8, 8).requires_grad_()
    with arithmetic(Way(), RunSettings(), torch.device(DEVICE), network):
        plain = torch.autograd.grad((network.features(inputs) * drawn(2, 16)).sum(), inputs)[0]
    with (
        laid_out(network, [], BY_CHANNELS),
        arithmetic(Way(), RunSettings(), torch.device(DEVICE), network),
    ):
        assert network.features._uses_kernels(inputs)
        ours = torch.autograd.grad((network.features(inputs) * drawn(2, 16)).sum(), inputs)[0]
    torch.testing.assert_close(ours, plain, rtol=1e-3, atol=1e-4 * float(plain.abs().max()))


@pytest.fixture
def operator(kernels: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network that takes this device for a GPU."""
    monkeypatch.setattr(CNNFeatures, "on_gpu", staticmethod(lambda inputs: True))


def gradients(network: Network, inputs: Tensor) -> tuple[Tensor, list[Tensor]]:
    features = network.extract(inputs)
    found = torch.autograd.grad(
        (features * drawn(*features.shape)).sum(), list(network.features.parameters())
    )
    return features.detach(), [gradient.contiguous() for gradient in found]


@pytest.mark.parametrize("channels", [1, 3])
def test_the_network_is_the_same_with_them(channels: int, operator: None) -> None:
    network = build_network("cnn", (channels, 12, 10), 3, {"width": 16}).to(DEVICE)
    inputs = torch.randint(0, 256, (5, channels, 12, 10)).to(DEVICE, torch.uint8)
    with arithmetic(Way(), RunSettings(), torch.device(DEVICE), network):
        features, plain = gradients(network, inputs)
    with (
        laid_out(network, [], BY_CHANNELS),
        arithmetic(Way(), RunSettings(), torch.device(DEVICE), network),
    ):
        assert network.features._uses_kernels(inputs)
        quick, ours = gradients(network, inputs)
    torch.testing.assert_close(quick, features, rtol=1e-4, atol=1e-5)
    for one, other in zip(ours, plain, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4 * float(other.abs().max()))


def test_layers_that_somebody_listens_to_or_changed_stay_layers(operator: None) -> None:
    network = build_network("cnn", (1, 8, 8), 3, {"width": 8})
    inputs, features = torch.zeros(2, 1, 8, 8), network.features
    assert not features._uses_kernels(inputs)  # channels first
    with laid_out(network, [], BY_CHANNELS):
        assert features._uses_kernels(inputs)
        handle = features[4].register_forward_hook(lambda module, given, out: None)
        assert not features._uses_kernels(inputs)
        handle.remove()
        assert features._uses_kernels(inputs)
        features[1] = nn.GELU()
        assert not features._uses_kernels(inputs)
        assert not features.by_channels
    assert not build_network("cnn", (1, 8, 8), 3, {"width": 24}).features.by_channels


@pytest.mark.parametrize("pooled", [False, True])
def test_the_operator_keeps_the_rules_that_a_compiler_relies_on(
    pooled: bool, operator: None
) -> None:
    images = drawn(2, 16, 5, 4).to(memory_format=torch.channels_last).requires_grad_()
    small = [drawn(16, seed=seed).requires_grad_() for seed in range(3)]
    found = torch.library.opcheck(relu_group_norm, (images, *small, 8, 1e-5, pooled))
    assert set(found.values()) == {"SUCCESS"}


def test_the_first_layer_takes_weights_however_they_lie(operator: None) -> None:
    images, rest = drawn(2, 1, 5, 4), [drawn(16, seed=seed) for seed in range(3)]
    weight = drawn(3, 3, 1, 16).permute(3, 2, 0, 1)
    assert not weight.is_contiguous()
    out, _ = first_layer(images, weight, *rest, 8, 1e-5)
    torch.testing.assert_close(
        out, first_layer(images, weight.contiguous(), *rest, 8, 1e-5)[0], rtol=0, atol=0
    )


def test_the_first_layers_operator_keeps_them_too(operator: None) -> None:
    given = [drawn(16, 1, 3, 3), *(drawn(16, seed=seed) for seed in range(3))]
    found = torch.library.opcheck(
        first_layer, (drawn(2, 1, 5, 4), *(tensor.requires_grad_() for tensor in given), 8, 1e-5)
    )
    assert set(found.values()) == {"SUCCESS"}
