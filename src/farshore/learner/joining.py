"""Which learners can be joined: the same in everything that decides what a sum means.

The sums of a domain can be added to those of others if all were computed from the same features.
These follow from the columns and their scales, the classes, the settings and the seed. A difference
in any of them is named; nothing is converted.
"""

from collections.abc import Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any

from ..base.trees import same
from ..data.images.image_folder import ImagePreprocessing
from ..data.preprocessing import Preprocessing
from ..data.tables.table import TablePreprocessing
from ..errors import FarshoreError
from .learner_state import FROZEN

if TYPE_CHECKING:
    from .learner import Learner

# Settings of the run that have no part in sums.
WITHOUT_INFLUENCE = {"threads", "replay_budget", "execution", "memory_fill", "memory_bytes"}
# What the configurations of joined models agree in, and how a message begins to say it.
SHARED = {
    **{"method": "the method is", "classes": "the classes are", "seed": "the seed is"},
    **{"network": "the network is", "network_settings": "the settings of the network are"},
    **{"metric": "the metric is", "preprocess": "the columns are preprocessed as"},
    "weighted": "rows have weights:",
}
TOO_SMALL = (
    "{site} in {name} is too small to share: {why}; whoever gets the joined model could work out "
    "rows. Use --allow-small (allow_small=True) if they may, or a template with fewer features "
    "(--method slda or ncm, or a smaller --set random_features)"
)
AGREE = (
    "only models that began with the same template can be joined: make one at one place (`farshore "
    "learn template/ DATA --template-only ...`), and begin with it at every place (`farshore learn "
    "model/ DATA --template template/ --name SITE`)"
)


def check_joinable(learners: "Mapping[str, Learner]", *, allow_small: bool) -> None:
    """Raise an error unless these learners, by the names that messages use, can be joined."""
    for name, learner in learners.items():
        if not learner.domains:
            raise FarshoreError(f"{name} has not learned a site yet: learn one, or leave it out")
        check_adds_up(learner, name)
    (first, start), *others = learners.items()
    for name, other in others:
        found = difference(start, other)
        if found is not None:
            raise FarshoreError(f"{name} cannot be joined with {first}: {found}; {AGREE}")
    for (left, mine), (right, theirs) in combinations(learners.items(), 2):
        for site in _names(mine):
            if site in _names(theirs):
                raise FarshoreError(
                    f"{site!r} is in {left} and in {right}, and would count twice: if it is the "
                    f"same site, forget it in one of them (`farshore forget FOLDER {site!r}`); if "
                    "not, learn one of them again under another name"
                )
    if not allow_small:
        for name, learner in learners.items():
            for site, why in learner.system.too_few_rows().items():
                raise FarshoreError(TOO_SMALL.format(site=repr(site), name=name, why=why))


def check_adds_up(learner: "Learner", name: str) -> None:
    """Refuse a method whose results are no sums."""
    why = learner.system.why_not_joined(learner.system)
    if why is not None:
        raise FarshoreError(
            f"{name} cannot be joined with others: method {learner.method_type.name!r}: {why}; "
            "choose ridge, slda or ncm when you make the template, for example --method ridge"
        )


def _names(learner: "Learner") -> list[str]:
    return [str(domain["name"]) for domain in learner.domains]


def difference(first: "Learner", second: "Learner") -> str | None:
    """What differs in two learners so that their sums mean something else; None if nothing."""
    for what, one, other in _settled(first, second):
        if one != other:
            return f"{what} {_shown(other)} there, {_shown(one)} here"
    found = _other_preprocessing(first.preprocessing, second.preprocessing)
    if found is not None:
        return found
    for what, one, other in (
        ("rows have the shape", first.shape, second.shape),
        ("rows have the type", first.dtype, second.dtype),
    ):
        if one != other:
            return f"{what} {_shown(other)} there, {_shown(one)} here"
    if not same(first.state_dict().get(FROZEN), second.state_dict().get(FROZEN)):
        return "the frozen network that gives the features has other weights"
    return first.system.why_not_joined(second.system)


def _settled(first: "Learner", second: "Learner") -> list[tuple[str, Any, Any]]:
    """What the arguments of two learners decide, in words, with both values."""
    one, other = first.config, second.config
    found = [(words, one[name], other[name]) for name, words in SHARED.items()]
    if one["method"] != other["method"]:
        return found
    mine, theirs = (
        {**learner.run.model_dump(exclude=WITHOUT_INFLUENCE), **learner.system.usage().settings}
        for learner in (first, second)
    )
    return found + [(f"the setting {name} is", mine[name], theirs[name]) for name in mine]


def _other_preprocessing(first: Preprocessing | None, second: Preprocessing | None) -> str | None:
    """How the columns of two tables, or the forms of two kinds of images, differ."""
    if isinstance(first, TablePreprocessing) and isinstance(second, TablePreprocessing):
        return _other_columns(first, second)
    if isinstance(first, ImagePreprocessing) and isinstance(second, ImagePreprocessing):
        one, other = first.state_dict(), second.state_dict()
        return None if one == other else f"images are read as {_shown(other)}, not {_shown(one)}"
    return None if first is second else "the inputs there are of another kind"


def _other_columns(first: TablePreprocessing, second: TablePreprocessing) -> str | None:
    for one, of_other, where in ((first, second, "here"), (second, first, "there")):
        for column in one.columns:
            if column not in of_other.columns:
                return f"the column {column!r} is only {where}"
    for kind in ("numbers", "categories"):
        for column in getattr(first, kind):
            if column not in getattr(second, kind):
                return f"the column {column!r} has {kind} here, and something else there"
    for column, scale in first.numbers.items():
        if (other := second.numbers[column]) != scale:
            scales = f"{_scale(other)} there, {_scale(scale)} here"
            return f"the column {column!r} is scaled by another first site: {scales}"
    for column, known in first.categories.items():
        if (others := second.categories[column]) != known:
            lists = f"{_shown(others)} there, {_shown(known)} here"
            return f"the column {column!r} has the categories {lists}"
    mine, theirs = first.state_dict(), second.state_dict()
    if not same(mine["texts"], theirs["texts"]):
        return "the columns of text are read differently, or were weighted by another first site"
    if not same(mine, theirs):
        return "the columns are in another order, or dates or missing values are read differently"
    return None


def _scale(fixed: tuple[float, float] | None) -> str:
    return "no value yet" if fixed is None else f"centre {fixed[0]:.6g} and scale {fixed[1]:.6g}"


def _shown(value: Any) -> str:
    """A value in a message, shortened."""
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return text if len(text) <= 200 else f"{text[:200]}..."
