"""Points in time are spelt as Kubernetes spells them, by a short cut that `datetime` agrees with."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.model.names import Seconds, rfc3339, rfc3339_micro, seconds

MOMENTS = st.floats(min_value=0.0, max_value=4e9, allow_nan=False)


def _spelt(at: float, precision: str) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec=precision).removesuffix("+00:00") + "Z"


@given(MOMENTS)
def test_a_point_in_time_is_spelt_as_datetime_does(at: float) -> None:
    assert rfc3339(Seconds(at)) == _spelt(at, "seconds")
    assert rfc3339_micro(Seconds(at)) == _spelt(at, "microseconds")


@pytest.mark.parametrize(
    ("at", "spelt"),
    [
        (0.0, "1970-01-01T00:00:00.000000Z"),
        (0.9999999, "1970-01-01T00:00:01.000000Z"),
        (86399.5, "1970-01-01T23:59:59.500000Z"),
        (1_767_225_600.000001, "2026-01-01T00:00:00.000001Z"),
        (-0.5, "1969-12-31T23:59:59.500000Z"),
    ],
)
def test_what_is_almost_the_next_second_is_spelt_as_that(at: float, spelt: str) -> None:
    assert rfc3339_micro(Seconds(at)) == spelt


@given(MOMENTS)
def test_what_is_spelt_to_the_microsecond_is_read_as_that(at: float) -> None:
    assert seconds(rfc3339_micro(Seconds(at))) == pytest.approx(at, abs=1e-6)
