"""`farshore learn`: train a model on the data of one more site."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from ..errors import FarshoreError
from ..methods import OF_CLASSES, OF_NETWORKS, OF_NUMBERS
from . import data_options
from .engine_options import ONE_DEVICE, print_line
from .flags import answers, argument, command, flag, split_names
from .run_output import percent

if TYPE_CHECKING:
    from rich.console import Console

    from ..deployment.model import Learned
    from ..deployment.new_model import NewModel
    from ..deployment.site import Columns


@dataclass(frozen=True)
class NewModelOptions:
    """How the first site creates a model, and what a later site may add to it."""

    heading: ClassVar = "A new model"

    method: str | None = flag(
        f"new model: method; `farshore methods` lists them [default: {OF_CLASSES}, for numbers "
        f"{OF_NUMBERS}; {OF_NETWORKS} if you name a network that has to be trained]"
    )
    network: str | None = flag(
        "new model: network [default: mlp for tables; for images resnet18 if its ImageNet weights "
        "are available, otherwise histogram]; hf:NAME, timm:NAME, torchvision:NAME, or "
        "module.py:factory, which later commands must name again"
    )
    weights: str | None = flag(data_options.WEIGHTS)
    train: str | None = flag(data_options.TRAIN)
    network_set: list[str] | None = flag(
        "new model: a setting of the network, name=value, repeatable"
    )
    memory: int | None = flag("new model: rows kept from all past sites together [default: 1000]")
    classes: str | None = flag(
        "new model: all classes that may occur, comma-separated [default: the first site's]; or a "
        "file that lists them: a text file with one per line, or a table with the column of "
        "--label"
    )
    new_classes: bool = flag("add classes that no earlier site had", False)
    metric: str | None = flag(
        "new model: accuracy or macro_f1 [default: macro_f1 if a class is rarer than 5% at the "
        "first site, otherwise accuracy]"
    )
    set: list[str] | None = flag("new model: a setting, name=value, repeatable")
    seed: int | None = flag(
        "new model: seed of initial weights, order of rows and memory [default: 0]"
    )
    template: Path | None = flag(
        "new model: folder of a template, with which all models to join begin (`farshore join`)"
    )

    def new_model(self, label: str | None) -> "NewModel":
        """The model that the first site creates. label: the column with the class."""
        from ..data.tables.columns import named_classes
        from ..deployment.new_model import NewModel

        listed = self.classes
        weights = {"weights": self.weights} if self.weights is not None else {}
        same = ("method", "network", "memory", "seed", "metric", "template")
        return NewModel(
            **{name: getattr(self, name) for name in same},
            settings=data_options.settings_of(self.set, self.train),
            network_settings=data_options.network_assignments(self.network_set) | weights,
            classes=named_classes(listed, label, "--classes") if listed is not None else None,
        )


@dataclass(frozen=True)
class ColumnOptions:
    """What the columns of a site's table are."""

    heading: ClassVar = "Columns"

    drop: str | None = flag("columns to ignore, for example id,name; the model remembers them")
    group: str | None = flag("column with groups (patients, lots) that the split may not divide")
    time: str | None = flag("column with the time: the latest rows are held out")
    time_format: str | None = flag(data_options.TIME_FORMAT)
    categories: str | None = flag(
        "new model: columns to read as categories even if they are numbers"
    )
    text: str | None = flag(f"new model: {data_options.TEXT}")
    weight: str | None = flag(data_options.WEIGHT)
    task: str | None = flag(
        "new model: what the label is: classification or regression [default: as it looks at the "
        "first site]"
    )
    log_label: bool = flag("new model: learn the logarithm of a positive number", False)
    unit: str | None = flag("new model: the unit of a number, for texts")

    def with_label(self, label: str | None) -> "Columns":
        """These columns and the one with the class."""
        from pydantic import ValidationError

        from ..deployment.site import Columns
        from ..settings import explain

        lists = {
            name: tuple(split_names(vars(self)[name]) or ())
            for name in ("drop", "categories", "text")
        }
        try:
            return Columns(label=label, **vars(self) | lists)
        except ValidationError as error:
            raise FarshoreError(f"--{explain(error)}") from None


@dataclass(frozen=True)
class SiteTraining:
    """How a model is trained on a site, and what it must reach there."""

    heading: ClassVar = "Training"

    size: int | None = flag(
        "new model: resize images to this many pixels per side [default: as the network expects]"
    )
    skip_broken: bool = flag(data_options.SKIP_BROKEN, False)
    steps: int | None = flag(
        "training steps [default: 20 passes over the training rows, 100 to 1000 steps]"
    )
    validation: float = flag("share of the rows held out to score the model", 0.2)
    max_drop: float | None = flag(
        "refuse the new model if it loses more than this on the held-out rows of a past site, "
        "beyond chance: a share, or of a number an error in its unit [default: 0.1, of a number "
        "times its standard deviation at the first site, on sites with at least 20 such rows]"
    )
    min_score: float | None = flag(
        "refuse the new model if its score on the new site's validation rows is lower, or its "
        "error higher [default: refuse labels that have nothing to do with the inputs]"
    )


@command
def learn(
    model: Path = argument("folder of the model; created if it does not exist"),
    data: Path = argument(
        "the site's table (CSV, Parquet, ...), or its folder of images, class/file"
    ),
    *,
    name: str | None = flag("name of the site [default: the name of DATA]"),
    label: str | None = flag(
        "column with the class or the number, several numbers with commas; the model remembers it"
    ),
    template_only: bool = flag(
        "write a template into MODEL: the columns of DATA with their types and scales, the classes "
        "and the settings, but no row and no site",
        False,
    ),
    new: NewModelOptions,
    training: SiteTraining,
    columns: ColumnOptions,
    written: data_options.TextOptions,
    checkpoint: int = flag(
        "steps between checkpoints; interrupted training resumes from the last", 100
    ),
    device: str = flag(ONE_DEVICE, "auto"),
) -> None:
    """Train MODEL on the data of one more site.

    Shows the accuracy on held-out rows of the past sites before and after training. A model that
    loses too much there is refused, and MODEL stays as it was. If training is interrupted, the same
    command resumes it from the last checkpoint.

    Example: farshore learn model/ site_a.csv --label disease --name "site A"

    Example: farshore learn model/ site_b.csv --name "site B" --max-drop 0.02

    Example: farshore learn template/ site_a.csv --label disease --method ridge --template-only
    """
    from ..deployment.changes import learn as learn_site
    from .progress import ProgressObserver
    from .tables import make_console

    console = make_console()
    if template_only:
        _make_template(
            console, model, data, name, columns.with_label(label), new, training, written
        )
        return
    name = name if name is not None else data.resolve().name.partition(".")[0]
    if not name.strip():
        raise FarshoreError("--name is empty: give the site a name, --name NAME")
    with ProgressObserver(console) as observer:
        done = learn_site(
            model,
            data,
            name=name,
            columns=columns.with_label(label),
            new=new.new_model(label),
            new_classes=new.new_classes,
            form=written.form(),
            every=checkpoint,
            device=device,
            observer=observer,
            **vars(training),
        )
    created = f"created {model}: " if done.created else ""
    _print_learned(console, f"{created}learned {name}", done)


def _make_template(
    console: "Console",
    folder: Path,
    data: Path,
    name: str | None,
    columns: "Columns",
    new: NewModelOptions,
    training: SiteTraining,
    written: data_options.TextOptions,
) -> None:
    """Write a template, and print all that it tells of the rows."""
    from ..deployment.template import make_template, what_it_tells
    from .tables import printable

    given = {"--name": name, "--template": new.template, "--new-classes": new.new_classes or None}
    for option, value in given.items():
        if value is not None:
            raise FarshoreError(f"{option} is not allowed with --template-only: leave it out")
    made, notes = make_template(
        folder,
        data,
        columns=columns,
        new=new.new_model(columns.label),
        form=written.form(),
        size=training.size,
        skip_broken=training.skip_broken,
    )
    for note in notes:
        print_line(console, note)
    method = made.learner.method_type.name
    answers.update(template=folder, method=method, tells=what_it_tells(made), notes=notes)
    print_line(console, f"wrote the template {folder}, method {method}, without any row or site")
    print_line(console, f"Of the rows of {data} it tells:")
    for line in what_it_tells(made):
        print(printable(f"- {line}"))


def _print_learned(console: "Console", what: str, done: "Learned") -> None:
    """Print the scores at the site, and those at past sites before and after."""
    from ..results.text import score_text
    from ..tasks.metrics import METRICS, in_unit
    from .tables import plain_table

    told = ("created", "before", "after", "rows", "scores", "metric")
    answers.update(sites=done.order, **{name: getattr(done, name) for name in told})
    metric = in_unit(METRICS[done.metric], done.unit)
    shown = percent if metric.digits is None else partial(score_text, metric)
    scores = ", ".join(f"{part} {shown(value)}" for part, value in done.scores.items())
    console.print(f"{what} ({done.rows} rows): {scores}", highlight=False, markup=False)
    if len(done.order) > 1:
        print_line(console, f"learned in this order: {' -> '.join(done.order)}")
    if done.before:
        pairs = ((site, done.before[site], done.after[site]) for site in done.before)
        rows = [[site, shown(before), shown(after)] for site, before, after in pairs]
        title = f"{done.metric} on the held-out rows of past sites"
        title += ", %" if metric.digits is None else ""
        console.print(plain_table(title, ["", "before", "after"], rows))
