"""Times, quantities and bytes that are none are told in the words of Go's parsers."""

import pytest

from jackfield.cluster.schema.readers import (
    RFC3339,
    RFC3339_MICRO,
    base64_error,
    quantity_error,
    time_error,
)

TIMES = [
    ("2020-01-01T00:00:00Z", ""),
    ("2020-01-01T00:00:00.5Z", ""),
    ("2020-01-01T00:00:00,5Z", ""),
    ("2020-02-29T23:59:59+01:00", ""),
    ("2020-02-01T0:00:00Z", ""),
    ("2020-02-01T00:00:00+24:60", ""),
    ("0000-02-29T00:00:00Z", ""),
    ("2020-13-01T00:00:00Z", ": month out of range"),
    ("2020-00-01T00:00:00Z", ": month out of range"),
    ("2020-02-31T00:00:00Z", ": day out of range"),
    ("2021-02-29T00:00:00Z", ": day out of range"),
    ("2020-01-00T00:00:00Z", ": day out of range"),
    ("2020-02-01T24:00:00Z", ": hour out of range"),
    ("2020-02-01T00:60:00Z", ": minute out of range"),
    ("2020-02-01T00:00:60Z", ": second out of range"),
    ("2020-02-01T00:00:00+25:00", ": time zone offset hour out of range"),
    ("2020-02-01T00:00:00+01:99", ": time zone offset minute out of range"),
    ("2020-02-01T00:00:00Zx", ': extra text: "x"'),
    ("", ' as LAYOUT: cannot parse "" as "2006"'),
    ("gestern", ' as LAYOUT: cannot parse "gestern" as "2006"'),
    ("202a-01-01T00:00:00Z", ' as LAYOUT: cannot parse "202a-01-01T00:00:00Z" as "2006"'),
    ("2020/02/01", ' as LAYOUT: cannot parse "/02/01" as "-"'),
    ("2020-1-01T00:00:00Z", ' as LAYOUT: cannot parse "1-01T00:00:00Z" as "01"'),
    ("2020-01-1T00:00:00Z", ' as LAYOUT: cannot parse "1T00:00:00Z" as "02"'),
    ("2020-45-01x", ": month out of range"),
    ("2020-01-45x", ' as LAYOUT: cannot parse "x" as "T"'),
    ("2020-02-01", ' as LAYOUT: cannot parse "" as "T"'),
    ("2020-02-01t00:00:00Z", ' as LAYOUT: cannot parse "t00:00:00Z" as "T"'),
    ("2020-02-01T00:00:00z", ' as LAYOUT: cannot parse "z" as "Z07:00"'),
    ("2020-02-01T00:00:00.Z", ' as LAYOUT: cannot parse ".Z" as "Z07:00"'),
    ("2020-02-01T00:00:00-", ' as LAYOUT: cannot parse "-" as "Z07:00"'),
    ("2020-02-01T00:00:00+0100", ' as LAYOUT: cannot parse "+0100" as "Z07:00"'),
]


@pytest.mark.parametrize(("text", "words"), TIMES)
def test_a_time_is_read_as_go_reads_it(text: str, words: str) -> None:
    expected = f'parsing time "{text}"{words}'.replace("LAYOUT", f'"{RFC3339}"') if words else ""
    assert time_error(text, RFC3339) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2020-01-01T00:00:00.000000Z", ""),
        ("2020-01-01T00:00:00Z", ' as LAYOUT: cannot parse "Z" as ".000000"'),
        ("2020-02-01T00:00:00.123Z", ' as LAYOUT: cannot parse ".123Z" as ".000000"'),
        ("2020-02-01T00:00:00.123456789Z", ' as LAYOUT: cannot parse "789Z" as "Z07:00"'),
        ("2020-02-01T00:00:00.123456", ' as LAYOUT: cannot parse "" as "Z07:00"'),
        ("2020-02-01T25:00:00.000000Z", ": hour out of range"),
    ],
)
def test_a_micro_time_has_six_digits(text: str, words: str) -> None:
    expected = f'parsing time "{text}"{words}'.replace("LAYOUT", f'"{RFC3339_MICRO}"') if words else ""
    assert time_error(text, RFC3339_MICRO) == expected


def test_times_are_quoted_byte_by_byte() -> None:
    assert time_error('ä"\\\n', RFC3339).startswith(r'parsing time "\xc3\xa4\"\\\x0a" as ')


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("", None),
        ("YWJj", None),
        ("YQ==", None),
        ("YWI=", None),
        ("YW\nJj\r\n", None),
        ("YQ=\n=\n", None),
        ("abc", 0),
        ("Y", 0),
        ("YQ", 0),
        ("!", 0),
        ("YWJj!", 4),
        ("YWJjZ", 4),
        ("YWJj YWJj", 4),
        ("YQ=", 3),
        ("YQ==x", 4),
        ("YWI=x", 4),
        ("Y=Q=", 1),
        ("=", 0),
        ("YQ=x", 2),
        ("YWJjZA=", 7),
        ("YWJjZA===", 8),
        ("ä", 0),
    ],
)
def test_bytes_are_read_as_go_reads_them(text: str, at: int | None) -> None:
    assert base64_error(text) == ("" if at is None else f"illegal base64 data at input byte {at}")


@pytest.mark.parametrize(
    ("text", "wrong"),
    [("1Gi", ""), (" 1 ", ""), ("", "must match"), ("1x", "must match"), ("1Kii", "suffix"), (".", "")],
)
def test_quantities_are_read_as_kubernetes_reads_them(text: str, wrong: str) -> None:
    said = quantity_error(text)
    assert wrong in said
    assert bool(said) == bool(wrong)
