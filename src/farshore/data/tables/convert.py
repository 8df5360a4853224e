"""Convert user input (arrays, tensors, lists, Datasets, labels) to tensors, with clear errors."""

import os
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, RandomSampler, Subset

from ...base.allocation import empty_array
from ...errors import FarshoreError, unknown
from ..progress import followed
from .cells import plain_name

Label = int | float | str | bool
# More different labels than this that are not all whole numbers are taken for a quantity.
MOST_FRACTIONS = 10
# A Dataset is read by several processes if one would take longer than this; the first rows tell.
WORTH_SECONDS, TRIED_ROWS, BATCH_ROWS, MOST_WORKERS = 10.0, 8, 64, 8


def as_inputs(values: Any, *, where: str = "the inputs") -> Tensor:
    """Return rows as a tensor: uint8 (images) stays uint8, other numbers become float32."""
    if isinstance(values, Tensor):
        tensor = values.detach()
    else:
        array = np.asarray(values)
        if array.dtype.kind not in "buif":
            raise FarshoreError(
                f"{where} contain {array.dtype.name} values: give numbers, or encode the columns "
                'first, as preprocess="columns" does'
            )
        tensor = torch.from_numpy(np.ascontiguousarray(array))
    if tensor.ndim < 2:
        raise FarshoreError(
            f"{where} have shape {tuple(tensor.shape)}: the first axis must be the rows, the "
            "others the features of a row"
        )
    return tensor if tensor.dtype == torch.uint8 else tensor.to(torch.float32)


def from_dataset(x: Any, y: Any = None) -> tuple[Any, Any]:
    """Read a torch Dataset or DataLoader of (inputs, labels) into memory.

    Anything else is returned unchanged.
    """
    if not isinstance(x, DataLoader | Dataset):
        return x, y
    if y is not None:
        name = "DataLoader" if isinstance(x, DataLoader) else "Dataset"
        why = f"a torch {name} contains its own labels: call learn({name.lower()}) without y"
        raise FarshoreError(why)
    return _from_loader(x) if isinstance(x, DataLoader) else _from_items(x)


def _from_items(dataset: Any) -> tuple[Tensor, list[Any] | None]:
    """Read a Dataset in batches, with several processes if that is worth starting them."""
    if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
        raise FarshoreError(
            "a torch Dataset without a length cannot be learned from: collect its rows into "
            "arrays first"
        )
    count = len(dataset)
    if not count:
        raise FarshoreError("the torch Dataset is empty: it needs at least one row")
    began = time.perf_counter()
    tried = [dataset[row] for row in range(min(count, TRIED_ROWS))]
    seconds = (time.perf_counter() - began) / len(tried) * (count - len(tried))
    paired = isinstance(tried[0], tuple | list) and len(tried[0]) == 2
    first = _row(tried[0][0] if paired else tried[0])
    kind = torch.empty(0, dtype=first.dtype).numpy().dtype
    inputs = torch.from_numpy(empty_array((count, *first.shape), kind))
    labels: list[Any] = []
    others: Any = Subset(dataset, range(len(tried), count))
    batches = (item for batch in _batches(others, seconds) for item in batch)
    for number, item in enumerate(chain(tried, followed(batches, "reading rows", len(others)))):
        row = _row(item[0] if paired else item)
        if row.shape != first.shape:
            _check_shapes([first.shape, row.shape], "Dataset")
        inputs[number] = row
        if paired:
            labels.append(_plain(item[1]))
    return inputs, labels if paired else None


def _batches(dataset: Any, seconds: float) -> Iterator[list[Any]]:
    """The items of a Dataset, batch by batch; by several processes if one takes long."""
    workers = min(os.cpu_count() or 1, MOST_WORKERS) if seconds > WORTH_SECONDS else 0
    if not len(dataset):
        return
    loader: DataLoader[Any] = DataLoader(
        dataset, batch_size=BATCH_ROWS, num_workers=workers, collate_fn=list
    )
    with warnings.catch_warnings():
        # Processes are copied while threads of torch wait, which does not matter here.
        warnings.simplefilter("ignore", DeprecationWarning)
        yield from loader


def _from_loader(loader: DataLoader[Any]) -> tuple[Tensor, list[Any] | None]:
    """Read every batch; a shuffled loader is read in the order of its Dataset.

    The rows are the same, and the result does not depend on the state of torch's generator.
    """
    sampler = loader.sampler
    if loader.batch_size is None or (
        isinstance(sampler, RandomSampler)
        and not sampler.replacement
        and sampler.num_samples == len(sampler.data_source)
        and not loader.drop_last
    ):
        return _from_items(loader.dataset)
    batches = list(loader)
    if not batches:
        raise FarshoreError("the torch DataLoader is empty: it needs at least one row")
    paired = isinstance(batches[0], tuple | list) and len(batches[0]) == 2
    parts = [_batch(batch[0] if paired else batch) for batch in batches]
    _check_shapes([part.shape[1:] for part in parts], "DataLoader")
    inputs = torch.cat(parts)
    if not paired:
        return inputs, None
    return inputs, [_plain(label) for batch in batches for label in batch[1]]


def _check_shapes(of_rows: Iterable[torch.Size], what: str) -> None:
    """Refuse rows of different shapes."""
    shapes = set(map(tuple, of_rows))
    if len(shapes) > 1:
        raise FarshoreError(
            f"the torch {what} has rows of different shapes ({sorted(shapes)[:2]}): resize them "
            "to one shape"
        )


def _batch(value: Any) -> Tensor:
    """Return the inputs of one batch as a tensor."""
    if isinstance(value, Tensor):
        return value.detach()
    if isinstance(value, np.ndarray):
        return torch.from_numpy(np.ascontiguousarray(value))
    raise FarshoreError(
        f"the torch DataLoader gives batches of {type(value).__name__}: make collate_fn return "
        "(inputs, labels), with the inputs as one tensor"
    )


def _row(value: Any) -> Tensor:
    """Return one input as a tensor; a Pillow image becomes uint8 [channels, height, width]."""
    if isinstance(value, Tensor):
        return value.detach()
    array = np.array(value)
    if hasattr(value, "getbands"):
        array = array[None] if array.ndim == 2 else array.transpose(2, 0, 1)
    return torch.from_numpy(np.ascontiguousarray(array))


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, Tensor | np.generic) else label


def as_labels(values: Any, *, where: str = "the labels") -> list[Label]:
    """Return one plain label per row; missing labels are refused."""
    array = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    if array.ndim != 1:
        raise FarshoreError(f"{where} have shape {array.shape}: give one label per row")
    labels: list[Label] = array.tolist()
    missing = [row for row, label in enumerate(labels) if label is None or label != label]
    if missing:
        raise FarshoreError(
            f"{where} are missing in {len(missing)} rows, the first is row {missing[0]}: drop "
            "those rows"
        )
    bad = next((label for label in labels if not isinstance(label, int | float | str | bool)), None)
    if bad is not None:
        why = f"{where} contain a {type(bad).__name__}: labels must be numbers or strings"
        raise FarshoreError(why)
    return labels


def as_weights(values: Any, rows: int, *, where: str = "the weights") -> Tensor | None:
    """Return one weight per row; None if all are equal, which is the same as no weights."""
    if values is None:
        return None
    array = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    if array.ndim != 1 or len(array) != rows or array.dtype.kind not in "buif":
        raise FarshoreError(f"{where} have shape {array.shape}: give one number per row, {rows}")
    wrong = np.flatnonzero(~(np.isfinite(array) & (array >= 0)))
    if len(wrong):
        why = f"{where}, row {wrong[0]}: {array[wrong[0]]} is not allowed: a weight is 0 or more"
        raise FarshoreError(why)
    if not array.any():
        raise FarshoreError(f"{where} are all 0: at least one row must count")
    if (array == array[0]).all():
        return None
    return torch.from_numpy(array.astype(np.float32))


def find_classes(labels: Sequence[Label]) -> list[Label]:
    """Return the distinct labels, sorted."""
    try:
        return sorted(set(labels))
    except TypeError:
        raise FarshoreError("the labels mix numbers and strings: use one type") from None


def check_classes(classes: Sequence[Label]) -> list[Label]:
    """The classes as a list, if they are labels and none is named twice."""
    labels = list(classes)
    for label in labels:
        if not isinstance(label, str | int | float) or label != label:
            why = f"classes: {str(label)[:40]!r} is not a label: give numbers or text"
            raise FarshoreError(why)
    twice = next((label for label, count in Counter(labels).items() if count > 1), None)
    if twice is not None:
        raise FarshoreError(f"classes: {twice!r} is named twice: name every class once")
    return labels


def encode_labels(
    labels: Sequence[Label], classes: Sequence[Label], *, domain: str, first: int = 0
) -> Tensor:
    """Return labels as class numbers; a label outside `classes` is refused.

    first: the number of the first row.
    The text `1.0` is the class `1` if that is what there is: see `plain_name`.
    """
    numbers = {label: number for number, label in enumerate(classes)}
    encoded = []
    for row, label in enumerate(labels, first):
        known = label if label in numbers or not isinstance(label, str) else plain_name(label)
        if known not in numbers:
            error = unknown("label", str(label), [str(known) for known in classes])
            raise FarshoreError(
                f"domain {domain!r}, row {row}: {error}. The classes are fixed by the first "
                "domain; to allow more, create the learner with classes=[...] naming all of them "
                "(--classes), or add new ones with grow_classes=True (--new-classes)"
            )
        encoded.append(numbers[known])
    return torch.tensor(encoded, dtype=torch.long)
