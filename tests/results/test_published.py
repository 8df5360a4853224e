"""Published numbers from a CSV file: found by experiment, row and column, or refused in a line."""

from __future__ import annotations

from pathlib import Path

import pytest

from farshore.errors import FarshoreError
from farshore.results.published import COLUMNS, published_for, read_published

HEAD = ",".join(COLUMNS)
LINES = (
    "main,er,,heart-hospitals,70.5,1.25,Their table,A note.",
    "main,er,,average,60,,,",
    "main,er,with alignment,heart-hospitals,71.5,,Their table,",
    "main,si,,heart-hospitals,50.0,0,Another title,Another note.",
    "other,er,,heart-hospitals,1.0,,,A note.",
)


def written(folder: Path, *lines: str) -> Path:
    path = folder / "published.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_numbers_are_found_by_experiment_row_and_column(tmp_path: Path) -> None:
    frame = read_published(written(tmp_path, HEAD, *LINES))
    found = published_for(frame, "main")
    assert found is not None
    assert found.find("er", "", "heart-hospitals") == (70.5, 1.25)
    assert found.find("er", "with alignment", "heart-hospitals") == (71.5, None)
    assert found.find("er", "", "average") == (60.0, None)
    assert found.find("si", "", "heart-hospitals") == (50.0, 0.0)
    assert found.find("er", "", "rotated-digits") is None
    assert found.data_sets("er", "") == {"heart-hospitals"}
    assert found.title == "Their table"
    assert found.notes == ("A note.", "Another note.")


def test_without_numbers_of_an_experiment_there_is_nothing_to_show(tmp_path: Path) -> None:
    frame = read_published(written(tmp_path, HEAD, *LINES))
    assert published_for(frame, "nothing") is None
    assert published_for(frame, "") is None
    assert published_for(None, "main") is None


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((HEAD.replace(",mean", ""),), "lacks the column 'mean': give a CSV file with experiment,"),
        ((HEAD, "main,er,,x,many,,,"), "mean 'many' is no number"),
        ((HEAD, "main,er,,x,,,,"), "mean '' is no number"),
        ((HEAD, "main,er,,x,1.0,few,,"), "error 'few' is no number"),
        ((), "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_in_one_line(
    tmp_path: Path, lines: tuple[str, ...], message: str
) -> None:
    path = tmp_path / "published.csv"
    path.write_text("\n".join(lines))
    with pytest.raises(FarshoreError, match="--published") as error:
        read_published(path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FarshoreError, match="cannot be read"):
        read_published(tmp_path / "nothing.csv")
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\x00\x81")
    with pytest.raises(FarshoreError, match=r"cannot be read|lacks the column"):
        read_published(tmp_path / "bytes.csv")
    with pytest.raises(FarshoreError, match="cannot be read"):
        read_published(tmp_path)
