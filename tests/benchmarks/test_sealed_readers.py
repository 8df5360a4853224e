"""No edit of the target in a user's files reaches a trained weight, down to the last bit."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
import target_edits
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from target_edits import Picture, Row

from farshore.errors import FarshoreError

METHODS = ("er", "cl-coral", "tent")
fixtures_allowed = settings(
    max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@cache
def expected_table(folder: Path, method: str) -> str:
    return target_edits.table_weights(folder / "base.csv", target_edits.base_rows(), method)


@cache
def expected_pictures(folder: Path, method: str, way: int = 0) -> str:
    return target_edits.picture_weights(
        folder / "base", target_edits.base_pictures(), method, target_edits.IMAGE_WAYS[way]
    )


def check_table(folder: Path, rows: list[Row], method: str, name: str = "edited.csv") -> None:
    try:
        weights = target_edits.table_weights(folder / name, rows, method)
    except FarshoreError as error:
        if not any(reason in str(error) for reason in target_edits.REFUSED):
            raise
        event("refused")
        return
    assert weights == expected_table(folder, method)


@fixtures_allowed
@given(rows=target_edits.edited_tables())
def test_no_edit_of_the_target_in_a_table_changes_a_weight(tmp_path: Path, rows: list[Row]) -> None:
    check_table(tmp_path, rows, "er")


@settings(fixtures_allowed, max_examples=8)
@given(rows=target_edits.edited_tables())
def test_no_edit_of_the_target_in_a_file_of_another_form_changes_a_weight(
    tmp_path: Path, rows: list[Row]
) -> None:
    check_table(tmp_path, rows, "er", "edited.csv.gz")


@fixtures_allowed
@given(rows=target_edits.edited_tables(), later=target_edits.later_rows())
def test_no_edit_of_the_target_or_of_what_follows_it_in_time_changes_a_weight(
    tmp_path: Path, rows: list[Row], later: list[Row]
) -> None:
    """The weights are those of a table that ends with the target."""
    check_table(tmp_path, [*later, *rows], "er")


@fixtures_allowed
@given(
    pictures=target_edits.edited_pictures(),
    way=st.sampled_from(range(len(target_edits.IMAGE_WAYS))),
)
def test_no_edit_of_target_images_changes_a_weight(
    tmp_path: Path, pictures: list[Picture], way: int
) -> None:
    chosen = target_edits.IMAGE_WAYS[way]
    weights = target_edits.picture_weights(tmp_path / "edited", pictures, "er", chosen)
    assert weights == expected_pictures(tmp_path, "er", way)


@pytest.mark.soak
@pytest.mark.parametrize("method", METHODS)
def test_many_edits_of_the_target_change_no_weight(tmp_path: Path, method: str) -> None:
    @settings(max_examples=130)
    @given(rows=target_edits.edited_tables())
    def tables(rows: list[Row]) -> None:
        check_table(tmp_path, rows, method)

    @settings(max_examples=40)
    @given(pictures=target_edits.edited_pictures())
    def images(pictures: list[Picture]) -> None:
        weights = target_edits.picture_weights(tmp_path / "edited", pictures, method)
        assert weights == expected_pictures(tmp_path, method)

    tables()
    images()
