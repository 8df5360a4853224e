"""The commands that repeat what is recorded, as a person would type them."""

import shlex
from collections.abc import Iterable, Mapping

from ...settings import RunSettings
from ..run import Run
from .comparison import EXTENDED
from .experiment import Experiment, Part

# Options of a benchmark that are flags of `farshore run` and `farshore compare` under their names.
FLAGS = (
    *("domain", "label", "drop", "time", "time_format", "group", "categories", "text", "weight"),
    *("separator", "encoding", "decimal", "preprocess", "metric", "classes", "shared_rows"),
    *("task", "log_label", "unit", "image", "size", "skip_broken", "domain_by", "domains"),
    *("severity", "weights"),
)
# Benchmarks whose data are typed as a path, and the flag that chooses each among them, if any.
BY_PATH = {"table": "", "image-folder": "", "image-table": "image"}
HF_DATASET = "hf-dataset"
# A comparison of a few methods is enough for a first look.
FEW_METHODS = 8


def compare_commands(experiment: Experiment, options: str = "") -> list[str]:
    """The commands that repeat a comparison, one per group of equal seeds, with `options`."""
    return [_command(experiment, part) + options for part in experiment.parts]


def _command(experiment: Experiment, part: Part) -> str:
    seeds = (part.search or experiment.search).run_seeds
    data = part.data[0]
    words = ["farshore", "compare", *data_words(data.benchmark, data.options)]
    # The seeds of a comparison count from 0.
    words += ["--methods", ",".join(part.methods)]
    words += ["--seeds", str(max(seeds) + 1), "--orders", ",".join(part.orders)]
    for name, value in _conditions(part).items():
        if name not in ("settings", "network_settings"):
            words += [f"--{name.replace('_', '-')}", str(value)]
    words += assignments("--network-set", part.network_settings)
    words += ["--scenario-seed", str(experiment.scenario_seed)] if experiment.scenario_seed else []
    words += setting_words(part.settings)
    return shlex.join(words)


def data_words(benchmark: str, options: Mapping[str, object]) -> list[str]:
    """A benchmark and its options as they are typed: a path for own data, flags where there are."""
    rest = dict(options)
    words = [benchmark]
    chooses = BY_PATH.get(benchmark)
    if "path" in rest and benchmark == HF_DATASET:
        words = [f"{HF_DATASET}:{rest.pop('path')}"]
    elif "path" in rest and chooses is not None and (not chooses or chooses in rest):
        words = [str(rest.pop("path"))]
    for name in FLAGS:
        value = rest.pop(name, None)
        if value is True:
            words.append(f"--{name.replace('_', '-')}")
        elif value is not None and value is not False:
            words += [f"--{name.replace('_', '-')}", _text(value)]
    return [*words, *assignments("--option", rest)]


def run_words(run: Run) -> list[str]:
    """The data, network and method options of a run, as typed after `farshore run`."""
    data = data_words(run.benchmark, run.options)
    network = assignments("--network-set", run.network_settings)
    return [data[0], run.method, *data[1:], *network, *setting_words(run.settings)]


def comparison_after(run: Run, methods: Iterable[str], sources: int) -> tuple[str, str]:
    """The comparison to type after runs of these methods with so many sources, and what for.

    It has the conditions of `run`, but not the settings of its method.
    """
    words = ["farshore", "compare", *data_words(run.benchmark, run.options), "--methods"]
    words.append(",".join(list(dict.fromkeys(["finetune", "er", *methods]))[:FEW_METHODS]))
    if sources > 2 and "time" not in run.options:  # in time there is one order
        words += ["--orders", f"balanced:{sources}"]
    for name in ("steps", "memory", "network"):
        value = getattr(run, name)
        words += [f"--{name}", str(value)] if value is not None else []
    words += assignments("--network-set", run.network_settings)
    of_run = {name: run.settings[name] for name in RunSettings.model_fields if name in run.settings}
    words += setting_words(of_run)
    return shlex.join(words), "compare with other methods over several orders"


def setting_words(settings: Mapping[str, object]) -> list[str]:
    """Settings as they are typed: what is trained has a flag of its own."""
    others = dict(settings)
    train = others.pop("train", None)
    words = ["--train", str(train)] if train is not None else []
    return [*words, *assignments("--set", others)]


def assignments(flag: str, values: Mapping[str, object]) -> list[str]:
    """`FLAG name=value` for each value; lists are joined by commas."""
    return [word for name, value in values.items() for word in (flag, f"{name}={_text(value)}")]


def _text(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _conditions(part: Part) -> dict[str, object]:
    """The conditions of a part that differ from the defaults."""
    return part.model_dump(mode="json", exclude={"benchmarks", *EXTENDED}, exclude_defaults=True)
