"""The battery of memories: bounded, exact, resumable, and honest about domains."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from ..base.state import load_state, save_state
from ..base.trees import copied, differences, tensors
from ..data.batch import Draw
from ..errors import FarshoreError
from ..memory import MEMORIES, Fields, Memory
from ..memory.memory import MIXED, row_bytes
from ..settings import RunSettings
from .battery import Battery, ensure, refused
from .waiting import Waiting

CAPACITY = 10
CLASSES = 3
ROWS = 20
BATCH = 4
STEPS = 4
DOMAINS = ("d0", "d1", "d2")
CPU = torch.device("cpu")


def _generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@dataclass(frozen=True)
class ToySource:
    """The training rows of one domain. Every row carries its number in all its fields, so that a
    row can be recognised wherever it is kept.
    """

    number: int

    def __len__(self) -> int:
        return ROWS

    @property
    def labels(self) -> Tensor:
        """Class numbers."""
        return torch.arange(ROWS) % CLASSES

    def fields(self, positions: Tensor) -> Fields:
        """uint8 images of one colour, labels and logits."""
        colours = (self.number * ROWS + positions).to(torch.uint8)
        logits = colours.float()[:, None].expand(-1, CLASSES).clone()
        images = colours[:, None, None, None].expand(-1, 1, 2, 2).clone()
        return {"inputs": images, "labels": self.labels[positions], "logits": logits}


def _row_numbers(inputs: Tensor) -> Tensor:
    """Which rows of which domain these are: domain x ROWS + row."""
    return inputs[..., 0, 0, 0].long()


@dataclass(frozen=True)
class MemoryCase:
    """The memory that is checked, with settings of the run."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def build(self, capacity: int = CAPACITY, **settings: Any) -> Memory:
        """An empty memory."""
        run = RunSettings.build({**self.settings, **settings})
        return MEMORIES.get(self.name).build(capacity, CLASSES, run)

    def filled(self, domains: int = len(DOMAINS), **options: Any) -> Memory:
        """A memory that has seen some domains."""
        memory = self.build(**options)
        for number in range(domains):
            for _ in learn(memory, number):
                pass
        return memory


def learn(memory: Memory, number: int, seed: int | None = None) -> Iterator[int]:
    """Call the memory as the trainer does; stop after every step, and when the domain closes."""
    source, generator = ToySource(number), _generator(number if seed is None else seed)
    memory.open_domain(DOMAINS[number], source)
    for step in range(STEPS):
        memory.observe(source.fields(torch.randint(ROWS, (BATCH,), generator=generator)), generator)
        yield step
    memory.close_domain(DOMAINS[number], source, generator)
    yield STEPS


BATTERY: Battery[type[Memory], MemoryCase] = Battery(MEMORIES, MemoryCase)
memory_checks = BATTERY.checks
parametrize_memory_checks = BATTERY.parametrize


def check_memory(memory: str | type[Memory], *, settings: Mapping[str, Any] | None = None) -> None:
    """Run every check on a memory, given by its name or as a class. The first failure raises.

    settings: of the run, for example {"memory_fill": "reservoir"}.
    """
    BATTERY.run(memory, settings=settings)


@BATTERY.check
def capacity_is_never_exceeded(case: MemoryCase) -> None:
    """At no moment are more rows held than allowed, and after a domain some are."""
    for capacity in (len(DOMAINS), CAPACITY):
        memory = case.build(capacity)
        ensure(memory.items == 0 and memory.bytes == 0, "a new memory is not empty")
        ensure(memory.kept() == {}, "kept() of a new memory is not empty")
        for number in range(len(DOMAINS)):
            for step in learn(memory, number):
                held, when = max(memory.items, _count(memory)), f"step {step} of domain {number}"
                ensure(held <= capacity, f"it holds {held} rows in {when}; {capacity} are allowed")
            ensure(memory.items > 0, f"it holds no row after {number + 1} domains")
    with refused("a capacity of 0"):
        case.build(0)


@BATTERY.check
def bound_in_bytes_holds(case: MemoryCase) -> None:
    """With `memory_bytes` its rows take no more than that; a bound below one row is refused."""
    one = row_bytes(ToySource(0).fields(torch.zeros(1, dtype=torch.long)))
    bound = one * 5 + 1
    memory = case.build(memory_bytes=bound)
    for number in range(len(DOMAINS)):
        for _ in learn(memory, number):
            ensure(memory.bytes <= bound, f"its rows take {memory.bytes} bytes of {bound}")
            message = f"bytes is {memory.bytes}, but {memory.items} rows take {memory.items * one}"
            ensure(memory.bytes == memory.items * one, message)
    ensure(memory.items > 1, f"it holds {memory.items} rows where 5 fit")
    with refused("a bound in bytes below one row"):
        case.filled(1, memory_bytes=one - 1)


@BATTERY.check
def kept_rows_are_rows_that_were_seen(case: MemoryCase) -> None:
    """`kept()` is in the order of learning or mixed; rows are whole, right, and `items` many."""
    memory = case.filled()
    kept = memory.kept()
    mixed = list(kept) == [MIXED]
    expected = mixed or list(kept) == list(DOMAINS)
    ensure(expected, f"kept() names {list(kept)}: {list(DOMAINS)} or [{MIXED!r}] is expected")
    ensure(_count(memory) == memory.items, "kept() holds another number of rows than `items` says")
    for name, fields in kept.items():
        message = f"kept() has the fields {sorted(fields)}: all that were stored are expected"
        ensure(sorted(fields) == ["inputs", "labels", "logits"], message)
        ensure(fields["inputs"].dtype == torch.uint8, "images are not kept as uint8")
        _ensure_whole(fields["inputs"], fields["labels"], fields["logits"], "a kept row")
        domains = _row_numbers(fields["inputs"]) // ROWS
        own = mixed or bool((domains == DOMAINS.index(name)).all())
        ensure(own, f"kept() has rows of another domain under {name!r}")


@BATTERY.check
def draws_have_the_right_shape(case: MemoryCase) -> None:
    """[E, rows, ...] with domains' numbers, or mixed [domains x rows, ...], of rows held."""
    memory = case.filled()
    held = torch.cat([_row_numbers(fields["inputs"]) for fields in memory.kept().values()])
    mixed = list(memory.kept()) == [MIXED]
    for domains in (1, 2, 3):
        for rows in (1, 2, CAPACITY + 3):
            draw = memory.draw(rows, _generator(), domains=domains)
            expected = (domains * rows,) if mixed else (domains, rows)
            ensure(
                tuple(draw.labels.shape) == expected
                and tuple(draw.inputs.shape) == (*expected, 1, 2, 2),
                f"{rows} rows of {domains} domains are drawn as {tuple(draw.labels.shape)}; "
                f"{expected} is expected",
            )
            _ensure_whole(draw.inputs, draw.labels, draw.stored["logits"], "a drawn row")
            numbers = _row_numbers(draw.inputs)
            ensure(bool(torch.isin(numbers, held).all()), "it draws rows that it does not hold")
            _ensure_numbered(draw, numbers // ROWS, mixed, domains)


@BATTERY.check
def draws_depend_on_the_generator_alone(case: MemoryCase) -> None:
    """Equal generators give equal draws, and drawing changes nothing."""
    memory = case.filled()
    state, global_state = copied(memory.state_dict()), torch.random.get_rng_state()
    first, same = (_numbers(memory, seed=5) for _ in range(2))
    ensure(torch.equal(first, same), "two draws with equal generators differ")
    others = [_numbers(memory, seed=seed) for seed in range(6, 14)]
    message = "nine generators give the same draw: it does not draw at random"
    ensure(any(not torch.equal(first, other) for other in others), message)
    ensure(not differences(state, memory.state_dict()), "drawing changes what is held")
    case.filled(1)
    message = "it draws from PyTorch's global generator: use the one that is handed in"
    ensure(torch.equal(global_state, torch.random.get_rng_state()), message)


@BATTERY.check
def steps_do_not_wait(case: MemoryCase) -> None:
    """`draw` and `observe` read no value on the host, which would make a step wait for a GPU."""
    memory, waiting = case.filled(2), Waiting()
    source, generator = ToySource(2), _generator()
    memory.open_domain(DOMAINS[2], source)
    for _ in range(2):
        rows = source.fields(torch.arange(BATCH))
        with waiting:
            memory.draw(BATCH, generator, domains=2)
            memory.observe(rows, generator)
    found = ", ".join(sorted(set(waiting.operations)))
    ensure(not found, f"draw or observe waits for the device: {found}")


@BATTERY.check
def state_round_trips(case: MemoryCase) -> None:
    """Written to a folder and read again, it holds, draws and learns the same."""
    memory = case.filled(2)
    other = case.build()
    other.load_state_dict(_through_a_folder(memory), CPU)
    _ensure_same(memory, other, "a restored memory differs")
    for each in (memory, other):
        for _ in learn(each, 2):
            pass
    _ensure_same(memory, other, "a restored memory learns a further domain differently")
    stored = tensors(memory.state_dict())
    ensure(all(not each.requires_grad for each in stored), "what is held takes a gradient: detach")


@BATTERY.check
def state_inside_a_domain_round_trips(case: MemoryCase) -> None:
    """A domain that is interrupted continues from a checkpoint with the same rows."""
    straight = case.filled(1)
    interrupted = case.build()
    interrupted.load_state_dict(straight.state_dict(), CPU)
    moments = learn(straight, 1)
    next(moments)
    next(moments)
    checkpoint = _through_a_folder(straight)
    source = ToySource(1)
    interrupted.open_domain(DOMAINS[1], source)
    interrupted.load_state_dict(checkpoint, CPU)
    for memory in (straight, interrupted):
        generator = _generator(7)
        memory.observe(source.fields(torch.arange(BATCH)), generator)
        memory.close_domain(DOMAINS[1], source, generator)
    _ensure_same(straight, interrupted, "a memory restored inside a domain ends differently")


@BATTERY.check
def forgetting_is_complete_or_refused(case: MemoryCase) -> None:
    """A forgotten domain's rows are gone, others stay; or a refusal changes nothing."""
    memory = case.filled()
    before = copied(memory.kept())
    try:
        memory.forget("d1")
    except FarshoreError as error:
        ensure("d1" in str(error), "the refusal to forget does not name the domain")
        ensure(not differences(before, memory.kept()), "a refusal to forget changes what is held")
        return
    kept = memory.kept()
    ensure(list(kept) == ["d0", "d2"], f"after forgetting d1 it names {list(kept)}")
    # The images in everything that is held, kept() or not.
    held = [each for each in tensors(memory.state_dict()) if each.dtype == torch.uint8]
    gone = not any(bool((_row_numbers(rows) // ROWS == 1).any()) for rows in held)
    ensure(gone, "rows of a forgotten domain are still held")
    others = {name: fields for name, fields in before.items() if name != "d1"}
    ensure(not differences(others, kept), "forgetting a domain changes the rows of another")
    draw = memory.draw(2, _generator(), domains=2)
    ensure(draw.domains.tolist() == [0, 1], "after forgetting, domains are numbered wrongly")


# ---- shared --------------------------------------------------------------------------------------


def _count(memory: Memory) -> int:
    return sum(len(fields["labels"]) for fields in memory.kept().values())


def _numbers(memory: Memory, seed: int) -> Tensor:
    return _row_numbers(memory.draw(BATCH, _generator(seed), domains=2).inputs)


def _through_a_folder(memory: Memory) -> dict[str, Any]:
    """The state as it comes back from a disk: it must be tensors and plain values."""
    with TemporaryDirectory() as folder:
        save_state(folder, {"memory": memory.state_dict()}, kind="memory")
        state: dict[str, Any] = load_state(folder, kind="memory")["memory"]
    return state


def _ensure_whole(inputs: Tensor, labels: Tensor, logits: Tensor, what: str) -> None:
    """Input, label and logits of each row belong together."""
    numbers = _row_numbers(inputs)
    ensure(
        torch.equal(numbers % ROWS % CLASSES, labels)
        and torch.equal(numbers, logits[..., 0].long()),
        f"{what} has the label or the stored fields of another row",
    )


def _ensure_numbered(draw: Draw, domains: Tensor, mixed: bool, asked: int) -> None:
    """The numbers along the first axis are those of the domains that the rows come from."""
    if mixed:
        ensure(len(draw.domains) == 0, "domains are mixed, so Draw.domains must be empty")
        return
    ensure(len(set(draw.domains.tolist())) == asked, f"{asked} different domains are expected")
    numbered = bool((domains == draw.domains[:, None]).all())
    ensure(numbered, "Draw.domains does not number the domains of the drawn rows")


def _ensure_same(first: Memory, second: Memory, sentence: str) -> None:
    where = differences(first.kept(), second.kept())
    ensure(not where and first.items == second.items, f"{sentence}: {', '.join(where[:3])}")
    draws = [_numbers(memory, seed=3) for memory in (first, second)]
    ensure(torch.equal(*draws), f"{sentence}: other draws")
