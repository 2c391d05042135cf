"""Quantities are read, compared, added and written as Kubernetes does it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.model import quantity
from jackfield.model.quantity import Format, QuantityError, parse

NANOS = 10**9


@pytest.mark.parametrize(
    ("text", "value", "milli", "canonical"),
    [
        ("0", 0, 0, "0"),
        ("1", 1, 1000, "1"),
        ("1000", 1000, 1_000_000, "1k"),
        ("1500m", 2, 1500, "1500m"),
        ("1000m", 1, 1000, "1"),
        ("-1500m", -2, -1500, "-1500m"),
        ("100n", 1, 1, "100n"),
        ("0.1n", 1, 1, "1n"),
        ("-0.1n", -1, -1, "-1n"),
        ("80Gi", 80 * 2**30, 80 * 2**30 * 1000, "80Gi"),
        ("1024Mi", 2**30, 2**30 * 1000, "1Gi"),
        ("1.5Gi", 3 * 2**29, 3 * 2**29 * 1000, "1536Mi"),
        ("0.5Ki", 512, 512_000, "512"),
        ("1023Ki", 1023 * 1024, 1023 * 1024 * 1000, "1023Ki"),
        ("12e6", 12_000_000, 12 * 10**9, "12e6"),
        ("12E6", 12_000_000, 12 * 10**9, "12E6"),
        ("1E", 10**18, 10**21, "1E"),
        ("1000E", 10**21, 10**24, "1e21"),
        (".5", 1, 500, "500m"),
        ("1.", 1, 1000, "1."),
        ("1.500", 2, 1500, "1.500"),
        ("+5", 5, 5000, "+5"),
        ("007", 7, 7000, "007"),
        ("8Ei", 2**63 - 1, (2**63 - 1) * 1000, "9223372036854775807"),
        ("-8Ei", -(2**63 - 1), -(2**63 - 1) * 1000, "-9223372036854775807"),
        ("1e-12", 1, 1, "1e-9"),
        *((text, 0, 0, "0") for text in ("+", "-", ".", "k", "000", "0.0", "0Gi", "-0")),
    ],
)
def test_a_text_stands_for_one_amount(text: str, value: int, milli: int, canonical: str) -> None:
    found = parse(text)
    assert (found.value(), found.milli(), str(found)) == (value, milli, canonical)
    assert (quantity.as_int(text), quantity.milli(text)) == (value, milli)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "must match the regular expression"),
        ("abc", "must match the regular expression"),
        ("1 Gi", "must match the regular expression"),
        ("1Gib", "must match the regular expression"),
        ("1.2.3", "must match the regular expression"),
        ("\u0661", "must match the regular expression"),
        ("1ki", "suffix"),
        ("1e", "suffix"),
        ("1kM", "suffix"),
        ("1+5", "suffix"),
        ("1e99999999", "suffix"),
        (".Ei", "numeric part"),
    ],
)
def test_what_is_no_quantity_is_refused_by_name(text: str, reason: str) -> None:
    with pytest.raises(QuantityError, match=reason) as refusal:
        parse(text)
    assert repr(text) in str(refusal.value)
    assert isinstance(refusal.value, ValueError)


def test_an_exponent_without_end_takes_no_memory() -> None:
    assert parse("1e-999999999").nano == 1
    assert parse("0e-999999999").nano == 0


@pytest.mark.parametrize(
    ("text", "integer"),
    [
        ("80Gi", 80 * 2**30),
        ("12e6", 12_000_000),
        ("1.0", None),
        ("1.5Gi", None),
        ("100E", None),
        ("1000m", None),
    ],
)
def test_an_integer_is_one_by_how_it_is_stored(text: str, integer: int | None) -> None:
    assert parse(text).as_int64() == integer


def test_amounts_are_compared_by_value_whatever_their_suffix() -> None:
    assert parse("1024Mi") == parse("1Gi")
    assert hash(parse("1024Mi")) == hash(parse("1Gi"))
    assert parse("1G") < parse("1Gi") <= parse("1Gi") < parse("1100M")
    assert parse("2") > parse("1999m") >= parse("1999m")
    assert parse("1") != "1"
    assert [parse(text).sign for text in ("-1n", "0", "1n")] == [-1, 0, 1]


@pytest.mark.parametrize(
    ("left", "right", "total", "difference"),
    [
        ("1Gi", "1Gi", "2Gi", "0"),
        ("0", "1Gi", "1Gi", "-1Gi"),
        ("1Gi", "0", "1Gi", "1Gi"),
        ("1", "500m", "1500m", "500m"),
        ("1.5Gi", "1", "1610612737", "1610612735"),
        ("9223372036854775807", "1", "9223372036854775808", "9223372036854775806"),
    ],
)
def test_sums_are_exact_and_keep_the_first_ones_suffix(
    left: str, right: str, total: str, difference: str
) -> None:
    assert str(parse(left) + parse(right)) == total
    assert str(parse(left) - parse(right)) == difference


def test_a_sum_beyond_64_bits_is_no_integer_any_more() -> None:
    beyond = parse("9223372036854775807") + parse("1")
    assert beyond.as_int64() is None
    assert (beyond - parse("2")).as_int64() is None
    assert (quantity.of(2, Format.DECIMAL_EXPONENT) + quantity.of(3)).as_int64() == 5


@pytest.mark.parametrize(
    ("text", "approximately"),
    [("1500m", 1.5), ("80Gi", 85899345920.0), ("1e4000", float("inf")), ("-1e4000", float("-inf"))],
)
def test_a_float_is_near_the_amount(text: str, approximately: float) -> None:
    assert parse(text).as_float() == approximately


amounts = st.builds(
    lambda sign, whole, part, suffix: f"{sign}{whole}{part}{suffix}",
    st.sampled_from(["", "-", "+"]),
    st.integers(0, 10**20).map(str),
    st.sampled_from(["", ".", ".5", ".000000001", ".123456789123"]),
    st.sampled_from(
        ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-2"]
    ),
)


@given(amounts)
def test_what_is_written_reads_as_the_same_amount(text: str) -> None:
    once = parse(text)
    assert parse(str(once)) == once
    assert once.value() * NANOS == once.nano or abs(once.value()) * NANOS > abs(once.nano)


@given(amounts, amounts)
def test_what_is_added_can_be_taken_away(left: str, right: str) -> None:
    assert (parse(left) + parse(right)) - parse(right) == parse(left)
    assert (parse(left) + parse(right)).nano == parse(left).nano + parse(right).nano


def test_a_text_longer_than_any_quantity_is_refused_in_words() -> None:
    with pytest.raises(quantity.QuantityError, match="too many digits"):
        quantity.parse("9" * 5000)
    assert quantity.parse("9" * 4096).sign == 1
