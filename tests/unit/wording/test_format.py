"""Ages, dollars and numbers as they stand on the screen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tpudash.wording import format as fmt


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "0s"),
        (0, "0s"),
        (59, "59s"),
        (61, "1m01s"),
        (660, "11m"),
        (3 * 3600 + 120, "3h02m"),
        (86_400 * 12 + 3600 * 3, "12d03h"),
    ],
)
def test_durations_are_short(seconds: int, shown: str) -> None:
    assert fmt.duration(timedelta(seconds=seconds)) == shown
    assert len(shown) <= 6


def test_an_unknown_age_is_a_dash_and_not_zero() -> None:
    assert fmt.age(None, datetime(2026, 1, 1, tzinfo=UTC)) == "-"
    assert fmt.dollars(None) == "-"
    assert fmt.number(None) == "-"
    assert fmt.bytes_size(None) == "-"


def test_ages_move_in_steps_so_that_a_quiet_table_stays_quiet() -> None:
    assert {fmt.duration(timedelta(seconds=at), step=5) for at in range(5, 10)} == {"5s"}


@pytest.mark.parametrize(
    ("amount", "shown"),
    [(0, "$0"), (0.0123, "$0.012"), (1.349, "$1.35"), (1234.5, "$1,234.50"), (123456, "$123,456")],
)
def test_dollars_have_the_digits_that_matter(amount: float, shown: str) -> None:
    assert fmt.dollars(amount) == shown


def test_a_lower_bound_says_so() -> None:
    assert fmt.dollars(2, at_least=True) == "≥$2.00"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (0.000_36, "4e-04"),
        (0.1234, "0.12"),
        (12.34, "12.3"),
        (450, "450"),
        (1834.2, "1834"),
        (12_400, "12.4k"),
        (3_100_000, "3.1M"),
    ],
)
def test_numbers_fit_their_column(value: float, shown: str) -> None:
    assert fmt.number(value) == shown
