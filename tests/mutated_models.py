"""Mutated model folders whose checksums fit again: made by somebody who knows the format."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import random
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from damaging import edited
from safetensors.torch import load, save
from typer.main import get_command

from farshore.cli.app import app
from farshore.deployment.changes import learn
from farshore.deployment.new_model import NewModel
from farshore.deployment.site import Columns
from farshore.errors import FarshoreError
from farshore.observer import Observer

METHODS = (
    "er",
    "der++",
    "cl-fishr",
    "cl-coral",
    "cl-mmd",
    "naive-cl-coral",
    "cl-andmask",
    "ewc",
    "si",
    "cope",
    "efc",
    "agem",
    "sarl",
    "snr",
    "upgd",
    "cl-mix",
    "ridge",
    "ncm",
    "best",
)
COMMAND = get_command(app)
FEW_METHODS = ("er", "cl-coral", "efc")
INTERRUPTED = ("er", "si", "cl-mix")
# Settings of a model beside the usual ones.
SETTINGS: dict[str, dict[str, Any]] = {"cl-mix": {"average": "ema", "notions": "coral+mmd"}}
# Values of the configuration that would take all memory or all time.
HUGE: tuple[tuple[tuple[str, ...], Any], ...] = (
    (("config", "memory"), 10**12),
    (("config", "memory"), -5),
    (("config", "network_settings"), {"width": 10**9}),
    (("config", "network_settings"), {"width": 16, "depth": 10**9}),
    (("config", "settings"), {"batch_size": 10**11}),
    (("config", "settings"), {"batch_size": 2**20}),
    (("config", "settings"), {"threads": 10**9}),
    (("config", "settings"), {"threads": 10**400}),
    (("config", "settings"), {"memory_bytes": 1}),
    (("config", "seed"), 10**30),
    (("config", "classes"), ["no", "no"]),
    (("config", "classes"), ["no"]),
    (("config", "classes"), "x" * 100_000),
    (("config", "classes"), [[]]),
    (("config", "classes"), list(range(100_000))),
    (("config", "method"), "er-ace"),
    (("config", "method"), ["er"]),
    (("config", "network"), "cnn"),
    (("config", "profile"), "large-data"),
    (("shape",), [10**9]),
    (("shape",), [10**400]),
    (("shape",), [-1]),
    (("shape",), [3, 10**5, 10**5]),
    (("dtype",), "nn"),
    (("dtype",), "uint8"),
    (("system", "steps_done"), -1),
    (("system", "steps_done"), 10**400),
    (("system", "domains"), ["a", "a"]),
    (("system", "domains"), ["other"]),
    (("domains",), [{"name": "x", "rows": 1, "steps": 10**400}]),
    (("system", "memory", "names"), ["../../x", "b"]),
    (("system", "optimizers"), []),
)


def table(rows: int, seed: int) -> pd.DataFrame:
    """A small site: three numbers, a category, and a label."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(rows, 3)) + seed
    frame = pd.DataFrame(numbers.round(3), columns=["a", "b", "c"])
    frame["kind"] = np.array(["red", "blue"])[rng.integers(0, 2, rows)]
    frame["label"] = np.where(frame["a"] + rng.normal(size=rows) > seed, "yes", "no")
    return frame


class Interrupting(Observer):
    """Stops the training as Ctrl-C would."""

    def step(self, domain: str, step: int, terms: Any) -> None:
        """Interrupt after five steps."""
        if step == 5:
            raise KeyboardInterrupt


def make_models(folder: Path, methods: tuple[str, ...]) -> None:
    """One model per method with two sites, some of them with a checkpoint of a third site."""
    for seed in range(3):
        table(40, seed).to_csv(folder / f"site{seed}.csv", index=False)
    for method in methods:
        new = NewModel(
            method=method,
            memory=24,
            settings={"batch_size": 8, **SETTINGS.get(method, {})},
            network_settings={"width": 16},
            classes=["no", "yes"],
        )
        for seed in range(2):
            learn(
                folder / method,
                folder / f"site{seed}.csv",
                name=f"site {seed}",
                columns=Columns(label="label"),
                new=new,
                steps=3,
            )
        if method in INTERRUPTED:
            with contextlib.suppress(KeyboardInterrupt):
                learn(
                    folder / method,
                    folder / "site2.csv",
                    name="site 2",
                    columns=Columns(label="label"),
                    new=NewModel(),
                    steps=8,
                    every=2,
                    observer=Interrupting(),
                )


def warm_up(folder: str) -> None:
    """Use every command once, so that libraries have reserved their address space."""
    scratch = Path(folder) / f".warm{os.getpid()}"
    use(model_folders(folder)[0], Path(folder), scratch)
    shutil.rmtree(scratch)


def model_folders(folder: str) -> list[Path]:
    """The models that `make_models` made."""
    folders = (path for path in sorted(Path(folder).iterdir()) if path.is_dir())
    return [path for path in folders if not path.name.startswith(".")]


def mutate(folder: Path, chance: random.Random) -> str:
    """Change one part of the model or of its checkpoint, and write fitting checksums."""
    checkpoint = folder / "checkpoint"
    if checkpoint.is_dir() and chance.random() < 0.3:
        folder = checkpoint
    manifest = json.loads((folder / "manifest.json").read_bytes())
    part = chance.choice(sorted(manifest["parts"].values(), key=str))
    tensors, tree = part.get("tensors"), part["tree"]
    kind = chance.random()
    if tensors is not None and kind < 0.55:
        what = mutate_tensors(folder / tensors, chance)
    elif kind < 0.75:
        what = mutate_config(folder / tree, chance)
    elif kind < 0.95:
        data = json.loads((folder / tree).read_bytes())
        (folder / tree).write_text(json.dumps(edited(data, chance)))
        what = "edited"
    else:
        victim = folder / chance.choice(sorted(part.values()))
        data = victim.read_bytes()
        cut = data[: chance.randrange(len(data))]
        victim.write_bytes(chance.choice([cut, b"[" * 100_000, b'{"a":' * 50_000, b"null", b""]))
        what = f"cut {victim.name}"
    for name, facts in manifest["files"].items():
        if (folder / name).is_file():
            data = (folder / name).read_bytes()
            facts["sha256"], facts["bytes"] = hashlib.sha256(data).hexdigest(), len(data)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return what


def mutate_config(path: Path, chance: random.Random) -> str:
    """Set one entry of the tree to a value that is too large or contradicts the others."""
    tree = json.loads(path.read_bytes())
    keys, value = chance.choice(HUGE)
    node = tree.get("trainer", tree)
    for key in keys[:-1]:
        node = node.get(key) if isinstance(node, dict) else None
    if isinstance(node, dict):
        node[keys[-1]] = value
    path.write_text(json.dumps(tree))
    return f"{'.'.join(keys)} = {str(value)[:50]}"


def mutate_tensors(path: Path, chance: random.Random) -> str:
    """Change the shape, type, values or name of one tensor."""
    tensors = load(path.read_bytes())
    name = chance.choice(sorted(tensors))
    value = tensors[name]
    other = tensors[chance.choice(sorted(tensors))]
    how = chance.choice(
        ["shape", "dtype", "values", "other", "missing", "extra", "rows", "empty", "scalar"]
    )
    if how == "shape":
        value = chance.choice([value.flatten(), value[None], value.unsqueeze(-1)])
    elif how == "dtype":
        types = [torch.float64, torch.float16, torch.int64, torch.uint8, torch.bool, torch.int32]
        value = value.to(chance.choice(types))
    elif how == "values":
        filling = chance.choice([float("nan"), float("inf"), 1e38, -1, 10**6, -(10**9), 0])
        value = _filled(value, filling, chance)
    elif how == "rows" and value.ndim:
        repeated = torch.cat([value] * chance.choice([2, 50]))
        value = chance.choice([value[: len(value) // 2], repeated])
    elif how == "empty":
        value = value.new_zeros(chance.choice([(0,), (0, 4), (4, 0)]))
    elif how == "scalar":
        value = value.new_zeros(())
    tensors[name] = other.clone() if how == "other" else value.contiguous()
    if how == "missing":
        del tensors[name]
    elif how == "extra":
        tensors["extra"] = torch.zeros(3)
    path.write_bytes(save(tensors))
    return f"{how} {name}"


def _filled(value: torch.Tensor, filling: float, chance: random.Random) -> torch.Tensor:
    if not value.is_floating_point():
        value, filling = value.clone(), int(filling) if abs(filling) < 2**31 else -1
        if value.dtype == torch.uint8:
            filling %= 256
    value = value.clone().flatten()
    if chance.random() < 0.5:
        value[:] = filling
    elif len(value):
        value[chance.randrange(len(value))] = filling
    return value


def commands(model: Path, data: Path) -> list[list[str]]:
    """Every way to open a model."""
    return [
        ["show", str(model)],
        ["show", str(model), "--log"],
        ["card", str(model)],
        ["predict", str(model), str(data / "site2.csv")],
        ["calibrate", str(model), str(data / "site2.csv")],
        [
            *("learn", str(model), str(data / "site2.csv"), "--name", "site 2"),
            *("--steps", "8", "--checkpoint", "2"),
        ],
        ["forget", str(model), "site 0"],
        [
            "join",
            str(model),
            str(data / "ncm"),
            "-o",
            str(model.parent / "joined"),
            "--allow-small",
        ],
        [
            *("learn", str(model.parent / "new"), str(data / "site2.csv"), "--name", "site 2"),
            *("--template", str(model), "--steps", "8"),
        ],
    ]


def use(model: Path, data: Path, scratch: Path, only: Collection[int] | None = None) -> None:
    """Run every command on a copy of the model; each works or is refused in one line."""
    for number, arguments in enumerate(commands(scratch / "model", data)):
        if only is not None and number not in only:
            continue
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.copytree(model, scratch / "model")
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            try:
                COMMAND.main(arguments, standalone_mode=False)
            except FarshoreError as error:
                if "\n" in str(error) or len(str(error)) > 2000:
                    raise AssertionError(f"{arguments[0]}: not one line") from error


def open_mutated_once(chance: random.Random, folder: str) -> None:
    """The same as `open_mutated` with one of the commands."""
    open_mutated(chance, folder, count=1)


def open_mutated(chance: random.Random, folder: str, count: int = 3) -> None:
    """A mutated model works, or is refused in one line, with a few commands drawn at random."""
    only = chance.sample(range(len(commands(Path(), Path()))), count)
    chosen = chance.choice(model_folders(folder))
    with contextlib.ExitStack() as stack:
        scratch = Path(folder) / f".case{os.getpid()}"
        stack.callback(shutil.rmtree, scratch, ignore_errors=True)
        shutil.copytree(chosen, scratch / "mutated")
        what = mutate(scratch / "mutated", chance)
        try:
            use(scratch / "mutated", Path(folder), scratch / "copy", only)
        except BaseException as error:
            error.add_note(f"the model of {chosen.name}, {what}")
            raise
