"""Tables with many sites, and what a model says about each before it learns it.

    python bench/sites.py CASES [--natural FOLDER] [--only NAMES] [--methods slda,er]

The sites of a table come in several random orders. A model learns them one by one, as `farshore
learn` does it, and measures each before it learns it. After two arrivals or more, the next site
is judged like one without labels: a *case*. CASES is a folder for what is measured, which
bench/next_site.py reads. `--natural` names a folder with crime.csv.gz, parkinsons.csv.gz and
reviews.csv.gz; data sets that are not at hand are left out, and so are sites with fewer than 50
rows. At most 1,000 rows of a site count. Nothing of a case's last site reaches a model: its labels
are stored beside.

Where labels are numbers (`parkinsons numbers`, the total UPDRS by patient, and `crime numbers`,
violent crimes by state), `ridge` learns with 400 features. The orders are one random circle of the
sites, entered at evenly spread places, so that every site is the new one about as often as any
other: crime, all sites from every place; parkinsons, 13 patients from every third place, and all of
them from two.
"""

from __future__ import annotations

import argparse
import pickle
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from farshore.base.randomness import derive
from farshore.benchmarks import make_benchmark
from farshore.benchmarks.diabetes130 import CATEGORIES, LABEL, NUMBERS, SITE, SITES
from farshore.benchmarks.heart_hospitals import read_heart
from farshore.data.downloads.public_files import data_root
from farshore.deployment.model import Model
from farshore.deployment.new_model import NewModel
from farshore.deployment.site import Columns, Site, read_site
from farshore.errors import FarshoreError

MOST_ROWS, FEWEST_ROWS = 1000, 50
STEPS = 100
# How many orders of the sites are drawn, and how many made tables there are.
ORDERS = {"heart": 8, "reviews": 8, "zones": 8, "diabetes130": 6, "crime": 6, "made": 1}
MADE = 12


@dataclass(frozen=True)
class Seen:
    """A site as the model saw it before it learned it.

    logits, labels: of numbers, both in deviations of the first site.
    """

    name: str
    logits: np.ndarray
    labels: np.ndarray
    known: int


@dataclass(frozen=True)
class Case:
    """A new site: what was seen of it, of the arrivals before, and on held-out rows."""

    data: str
    group: str
    method: str
    here: Seen
    arrivals: tuple[Seen, ...]
    held_out: tuple[tuple[np.ndarray, np.ndarray], ...]
    alarm: bool


def heart() -> pd.DataFrame:
    frame = read_heart().rename(columns={"hospital": "site"})
    return frame.assign(label=np.where(frame.pop("num") > 0, "yes", "no"))


def zones() -> pd.DataFrame:
    prepared = make_benchmark("covertype-zones", {}).open(0)
    parts = []
    for name in make_benchmark("covertype-zones", {}).domain_names():
        inputs, labels = prepared.read(name)
        part = pd.DataFrame(np.asarray(inputs), columns=[f"x{n}" for n in range(inputs.shape[1])])
        parts.append(part.assign(site=name, label=[f"type {each}" for each in labels.tolist()]))
    return pd.concat(parts)


def diabetes130() -> pd.DataFrame:
    path = next((data_root() / "diabetes130").glob("diabetic_data.csv*"))
    frame = pd.read_csv(path, dtype=str, na_values="?", keep_default_na=False)
    frame = frame[frame[SITE].isin(SITES)]
    label = np.where(frame[LABEL] == "NO", "no", "yes")
    numbers = frame[list(NUMBERS)].astype(float)
    return frame[list(CATEGORIES)].join(numbers).assign(site=frame[SITE], label=label)


def crime(natural: Path) -> pd.DataFrame:
    """Whether a community has more violent crime than half of all communities."""
    frame = pd.read_csv(natural / "crime.csv.gz", na_values="?")
    crimes = frame["ViolentCrimesPerPop"]
    frame, crimes = frame[crimes.notna()], crimes[crimes.notna()]
    inputs = frame.iloc[:, 5:-18]
    label = np.where(crimes > crimes.median(), "high", "low")
    return inputs.assign(site=frame["state"], label=label)


def numbers(natural: Path, name: str) -> pd.DataFrame:
    """The rows of a table whose label is a number."""
    if name == "crime":
        frame = pd.read_csv(natural / "crime.csv.gz", na_values="?")
        frame = frame[frame["ViolentCrimesPerPop"].notna()]
        inputs = frame.iloc[:, 5:-18]
        return inputs.assign(site=frame["state"], label=frame["ViolentCrimesPerPop"])
    frame = pd.read_csv(natural / "parkinsons.csv.gz").drop(columns="motor_UPDRS")
    return frame.rename(columns={"subject#": "site", "total_UPDRS": "label"})


def orders_of(name: str, sites: list[str]) -> Iterator[list[str]]:
    """The orders of a table whose label is a number."""
    count = len(sites)
    drawn = np.random.default_rng(derive(0, "sites", name)).permutation(count)
    steps, most = (1, count) if name == "crime" else (3, 13)
    for first in range(0, count, steps):
        yield [sites[place] for place in np.roll(drawn, -first)[:most]]
    for first in range(0, count, count // 2) if most < count else ():
        yield [sites[place] for place in np.roll(drawn, -first)]


def number_cases(name: str, frame: pd.DataFrame, folder: Path) -> Iterator[Case]:
    """The cases of all orders."""
    sites, path = sites_of(frame), folder / "site.csv"
    columns = Columns(label="label", drop=("site",), task="regression")
    for order in orders_of(name, list(sites)):
        model: Model | None = None
        arrivals: list[Seen] = []
        for known, place in enumerate(order):
            sites[place].to_csv(path, index=False)
            scale = model.learner.preprocessing if model is not None else None
            site = read_site(path, columns, scale, labelled=True)
            if model is None:
                new = NewModel("ridge", settings={"random_features": 400}, metric="mae")
                model = Model(folder, new.make(site, device="cpu", observer=None), None)
            else:
                values = model.knowledge.logits(model.inputs(site))
                labels = model.learner.known_task.encoded(site.labels or [], domain=place)
                seen = Seen(place, values, labels.double().numpy(), known)
                if len(arrivals) >= 3:
                    data = f"{name} numbers"
                    yield Case(data, data, "ridge", seen, tuple(arrivals), (), False)
                arrivals.append(seen)
            model.learn(site, place, columns, steps=STEPS, validation=0.2)
            model.sites[place] |= {"arrival": {}, "scores": {}, "before": {}, "after": {}}


def reviews(natural: Path) -> pd.DataFrame:
    frame = pd.read_csv(natural / "reviews.csv.gz")
    return frame[["text"]].assign(site=frame["domain"], label=frame["label"].astype(str))


def made(number: int) -> pd.DataFrame:
    """Twelve sites with a line of their own between the classes; some lines are far off."""
    draws = np.random.default_rng([41, number])
    line, parts = draws.normal(size=5), []
    line /= np.linalg.norm(line)
    tilt, shift = np.exp(draws.normal([-1.2, -0.5], 0.5))
    for site in range(12):
        tilted = line + tilt * draws.standard_t(4) * draws.normal(size=5) / np.sqrt(5)
        x = draws.normal(size=(int(draws.integers(60, 400)), 5)) + shift * draws.normal(size=5)
        label = np.where(x @ tilted + 0.7 * draws.normal(size=len(x)) > 0, "yes", "no")
        part = pd.DataFrame(x.round(4), columns=[f"x{k}" for k in range(5)])
        parts.append(part.assign(site=f"s{site}", label=label))
    return pd.concat(parts)


def tables(natural: Path | None, only: list[str]) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Name, group and rows of each table that is at hand; a group counts as one data set."""
    ways: dict[str, Callable[[], pd.DataFrame]] = {
        "heart": heart,
        "zones": zones,
        "diabetes130": diabetes130,
    }
    if natural is not None:
        ways |= {"crime": lambda: crime(natural), "reviews": lambda: reviews(natural)}
    for name, way in ways.items():
        if name in only:
            try:
                yield name, name, way()
            except (OSError, FarshoreError) as error:
                print(f"{name} is left out: {error}")
    if "made" in only:
        for number in range(MADE):
            yield f"made{number}", "made", made(number)


def sites_of(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The sites with enough rows, at most MOST_ROWS of each."""
    found = {}
    for name, rows in frame.groupby("site", sort=True):
        if len(rows) >= FEWEST_ROWS:
            found[str(name)] = rows.sample(min(len(rows), MOST_ROWS), random_state=0)
    return found


def cases(
    data: str, group: str, frame: pd.DataFrame, method: str, order: int, folder: Path
) -> Iterator[Case]:
    """The cases of one order of the sites."""
    sites = sites_of(frame)
    names = [
        list(sites)[place]
        for place in np.random.default_rng(derive(order, "sites", data)).permutation(len(sites))
    ]
    classes = sorted(frame["label"].unique())
    columns = Columns(
        label="label",
        drop=("site",),
        categories=CATEGORIES if data == "diabetes130" else (),
        text=("text",) if data == "reviews" else (),
    )
    model: Model | None = None
    arrivals: list[Seen] = []
    held_out: list[tuple[torch.Tensor, torch.Tensor]] = []
    for name in names:
        path = folder / "site.csv"
        sites[name].to_csv(path, index=False)
        known = model.learner.preprocessing if model is not None else None
        site = read_site(path, columns, known, labelled=True)
        if model is None:
            new = NewModel(method=method, classes=classes, seed=order, metric="accuracy")
            model = Model(folder, new.make(site, device="cpu", observer=None), None)
        else:
            seen = judged(model, site, name, classes)
            if len(arrivals) >= 2:
                outputs = []
                for inputs, labels in held_out:
                    outputs.append((model.knowledge.logits(inputs), labels.numpy()))
                unlabelled = read_site(path, columns, known, labelled=False)
                inputs = model.inputs(unlabelled)
                verdict = model.knowledge.verdict(inputs, model.profile(unlabelled, inputs))
                yield Case(
                    data, group, method, seen, tuple(arrivals), tuple(outputs), verdict.alarm
                )
            arrivals.append(seen)
        arrival = {}
        if model.started:
            arrival = model.knowledge.arrival(model.inputs(site), site.labels or [])
        domain, _ = model.learn(site, name, columns, steps=STEPS, validation=0.2)
        model.sites[name] |= {"arrival": arrival, "scores": {}, "before": {}, "after": {}}
        assert isinstance(domain.inputs, torch.Tensor)
        part = domain.validation
        held_out.append((domain.inputs[part], domain.labels[part]))


def judged(model: Model, site: Site, name: str, classes: list[str]) -> Seen:
    """What the model says about a site that it has not learned."""
    logits = model.knowledge.logits(model.inputs(site))
    labels = np.array([classes.index(each) for each in site.labels or []])
    return Seen(name, logits.astype(np.float32), labels, len(model.order))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--natural", type=Path)
    parser.add_argument("--only", default=",".join([*ORDERS, "numbers"]))
    parser.add_argument("--methods", default="slda,er")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    args.folder.mkdir(parents=True, exist_ok=True)
    for data, group, frame in tables(args.natural, args.only.split(",")):
        for method in args.methods.split(","):
            found = []
            for order in range(ORDERS[group] if method != "er" else (ORDERS[group] + 1) // 2):
                found += list(cases(data, group, frame, method, order, args.folder))
            with (args.folder / f"{data}-{method}.pickle").open("wb") as file:
                pickle.dump(found, file)
            print(f"{data}, {method}: {len(found)} cases", flush=True)
    for name in ("crime", "parkinsons") if args.natural and "numbers" in args.only else ():
        found = list(number_cases(name, numbers(args.natural, name), args.folder))
        with (args.folder / f"{name}-numbers.pickle").open("wb") as file:
            pickle.dump(found, file)
        print(f"{name} numbers: {len(found)} cases", flush=True)


if __name__ == "__main__":
    main()
