"""The help of every command, word for word; `python tests/cli/test_help.py` writes it again."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest
import typer.main
from typer.testing import CliRunner

from farshore.cli.app import app

EXPECTED = Path(__file__).parent / "help"
CONSTRAINTS = Path(__file__).parents[2] / "constraints.txt"
COMMANDS = ["farshore", *typer.main.get_command(app).commands]


def help_of(name: str) -> str:
    """What `farshore NAME --help` prints at 100 columns."""
    arguments = [] if name == "farshore" else [name]
    shown = CliRunner().invoke(
        app,
        [*arguments, "--help"],
        terminal_width=100,
        env={"COLUMNS": "100"},
        prog_name="farshore",
    )
    assert shown.exit_code == 0
    return shown.output


@pytest.mark.skipif(
    f"typer=={version('typer')}" not in CONSTRAINTS.read_text().splitlines(),
    reason="other versions of typer lay out the same texts in another way",
)
@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_is_the_expected_one(name: str) -> None:
    assert help_of(name) == (EXPECTED / f"{name}.txt").read_text(), (
        "if this is meant, run `python tests/cli/test_help.py` and commit what it writes"
    )


def test_every_stored_help_belongs_to_a_command() -> None:
    assert sorted(path.stem for path in EXPECTED.iterdir()) == sorted(COMMANDS)


if __name__ == "__main__":
    EXPECTED.mkdir(exist_ok=True)
    for command in COMMANDS:
        (EXPECTED / f"{command}.txt").write_text(help_of(command))
