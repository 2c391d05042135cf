"""Ages are spelt as kubectl users know them."""

import pytest

from jackfield.cluster.tables.ages import age, duration
from jackfield.model.names import Seconds, rfc3339, rfc3339_micro

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400
NOW = Seconds(1.8e9)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-2.0, "<invalid>"),
        (-1.99, "0s"),
        (-0.5, "0s"),
        (0.0, "0s"),
        (0.99, "0s"),
        (1.0, "1s"),
        (119.9, "119s"),
        (2 * MINUTE, "2m"),
        (2 * MINUTE + 1, "2m1s"),
        (10 * MINUTE - 1, "9m59s"),
        (10 * MINUTE, "10m"),
        (10 * MINUTE + 1, "10m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"),
        (3 * HOUR + 59, "3h"),
        (3 * HOUR + 60, "3h1m"),
        (8 * HOUR - 1, "7h59m"),
        (8 * HOUR, "8h"),
        (8 * HOUR + MINUTE, "8h"),
        (2 * DAY - 1, "47h"),
        (2 * DAY, "2d"),
        (2 * DAY + HOUR, "2d1h"),
        (8 * DAY - 1, "7d23h"),
        (8 * DAY, "8d"),
        (8 * DAY + HOUR, "8d"),
        (2 * YEAR - 1, "729d"),
        (2 * YEAR, "2y"),
        (2 * YEAR + DAY, "2y1d"),
        (8 * YEAR - 1, "7y364d"),
        (8 * YEAR, "8y"),
        (8 * YEAR + DAY, "8y"),
        (292 * YEAR, "292y"),
        (2000 * YEAR, "292y"),
    ],
)
def test_a_duration_has_two_or_three_figures(seconds: float, words: str) -> None:
    assert duration(Seconds(seconds)) == words


@pytest.mark.parametrize(
    ("time", "words"),
    [
        (rfc3339(NOW), "0s"),
        (rfc3339(Seconds(NOW - 90)), "90s"),
        (rfc3339_micro(Seconds(NOW - 89.5)), "89s"),
        ("2027-01-15T08:00:00+00:00", "0s"),
        ("2027-01-15T13:30:00+05:30", "0s"),
        ("2027-01-15T07:59:59.123456789Z", "0s"),
        (None, "<unknown>"),
        ("", "<unknown>"),
        ("null", "<unknown>"),
        ("0001-01-01T00:00:00Z", "<unknown>"),
        ("0001-01-01T01:00:00+01:00", "<unknown>"),
        ("2027-01-16T00:00:00Z", "<invalid>"),
        ("2027-01-15", "<invalid>"),
        ("2027-01-15T08:00:00", "<invalid>"),
        ("2027-02-30T08:00:00Z", "<invalid>"),
        ("2027-01-15t08:00:00z", "<invalid>"),
        ("20270115T080000Z", "<invalid>"),
        ("2027-W02-5T08:00:00Z", "<invalid>"),
        ("٢٠٢٧-01-15T08:00:00Z", "<invalid>"),
        ("yesterday", "<invalid>"),
    ],
)
def test_an_age_is_that_of_a_time_as_kubernetes_writes_it(time: str | None, words: str) -> None:
    assert age(time, NOW) == words
