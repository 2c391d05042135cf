"""What claims and classes say about sharing: which of them counts, and how strictly it is read."""

import json

import msgspec
import pytest

from jackfield.core.share import config
from jackfield.core.share.config import (
    API_VERSION,
    KIND,
    MpsConfig,
    SharingConfig,
    Strategy,
    TimeSlicingConfig,
    Unreadable,
)
from jackfield.core.share.gpu import Interval
from jackfield.model.claim import DeviceAllocationConfiguration, OpaqueDeviceConfiguration

DRIVER = "node.jackfield.dev"


def entry(
    value: str, *requests: str, source: str = "FromClaim", driver: str = DRIVER
) -> DeviceAllocationConfiguration:
    opaque = OpaqueDeviceConfiguration(driver, msgspec.Raw(json.dumps(value).encode()))
    return DeviceAllocationConfiguration(source, requests, opaque)


def from_class(value: str, *requests: str) -> DeviceAllocationConfiguration:
    return entry(value, *requests, source="FromClass")


@pytest.mark.parametrize(
    ("entries", "request_name", "expected"),
    [
        ([], "gpu", None),
        ([DeviceAllocationConfiguration("FromClaim")], "gpu", None),
        ([entry("theirs", driver="gpu.nvidia.com")], "gpu", None),
        ([entry("claim", "other")], "gpu", None),
        ([from_class("class", "gpu")], "gpu", "class"),
        ([from_class("class", "gpu"), entry("claim")], "gpu", "claim"),
        ([entry("claim"), from_class("class", "gpu")], "gpu", "claim"),
        ([from_class("class", "gpu"), entry("claim", "other")], "gpu", "class"),
        ([entry("first"), entry("last", "gpu")], "gpu", "last"),
        ([entry("last", "gpu"), entry("first")], "gpu", "first"),
        ([entry("whole request", "gpu")], "gpu/small", "whole request"),
        ([entry("small", "gpu/small"), entry("large", "gpu/large")], "gpu/small", "small"),
        ([entry("small", "gpu/small")], "gpu", None),
    ],
)
def test_the_last_of_the_claims_own_entries_counts_and_then_the_last_of_the_classes(
    entries: list[DeviceAllocationConfiguration], request_name: str, expected: str | None
) -> None:
    found = config.winner(entries, DRIVER, request_name)
    assert (msgspec.json.decode(found.parameters) if found else None) == expected


def parameters(sharing: object = None, **fields: object) -> bytes:
    named = {"apiVersion": API_VERSION, "kind": KIND, "sharing": sharing, **fields}
    return json.dumps({name: value for name, value in named.items() if value is not None}).encode()


@pytest.mark.parametrize(
    ("sharing", "expected"),
    [
        ({"strategy": "Exclusive"}, SharingConfig(Strategy.EXCLUSIVE)),
        ({"strategy": "TimeSlicing"}, SharingConfig(Strategy.TIME_SLICING)),
        (
            {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}},
            SharingConfig(Strategy.TIME_SLICING, TimeSlicingConfig(Interval.LONG)),
        ),
        (
            {
                "strategy": "MPS",
                "mpsConfig": {
                    "defaultActiveThreadPercentage": 50,
                    "defaultPinnedDeviceMemoryLimit": "10Gi",
                },
            },
            SharingConfig(Strategy.MPS, mps_config=MpsConfig(50, "10Gi")),
        ),
    ],
)
def test_what_is_understood_is_read(sharing: object, expected: SharingConfig) -> None:
    assert config.read(parameters(sharing)) == expected


def test_what_is_not_said_is_the_default() -> None:
    plain = SharingConfig(Strategy.MPS)
    assert (plain.interval, plain.mps.percentage, plain.mps.memory_mebibytes) == (Interval.DEFAULT, 0, 0)
    limits = MpsConfig(50, "10Gi")
    assert (limits.percentage, limits.memory_mebibytes) == (50, 10240)


def mps(**fields: object) -> bytes:
    return parameters({"strategy": "MPS", "mpsConfig": fields})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (b"", "the parameters are no JSON object"),
        (b"{", "the parameters are no JSON object"),
        (b'{"kind": "\xff"}', "the parameters are no JSON object"),
        (b"[]", "Expected `object`, got `array`"),
        (parameters({"strategy": "MPS"}, more=1), "Object contains unknown field `more`"),
        (parameters(), "Object missing required field `sharing`"),
        (
            parameters({"strategy": "MPS"}, apiVersion="node.jackfield.dev/v1"),
            "apiVersion: 'node.jackfield.dev/v1' is none of what it may be: node.jackfield.dev/v1alpha1",
        ),
        (
            parameters({"strategy": "MPS"}, kind="MigDeviceConfig"),
            "kind: 'MigDeviceConfig' is none of what it may be: GpuConfig",
        ),
        (parameters({"strategy": "MPS"}, kind=7), "kind: expected `str`, got `int`; it may be: GpuConfig"),
        (
            parameters({"strategy": "Fair"}),
            "sharing.strategy: invalid enum value 'Fair'; it may be: Exclusive, TimeSlicing, MPS",
        ),
        (
            parameters({"strategy": "MPS", "mpsConfg": {}}),
            "sharing: object contains unknown field `mpsConfg`",
        ),
        (
            parameters({"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Eternal"}}),
            (
                "sharing.timeSlicingConfig.interval: invalid enum value 'Eternal'; "
                "it may be: Default, Short, Medium, Long"
            ),
        ),
        (
            parameters({"strategy": "Exclusive", "timeSlicingConfig": {}}),
            "sharing.timeSlicingConfig: the strategy is Exclusive, so it would mean nothing; remove it",
        ),
        (
            parameters({"strategy": "TimeSlicing", "mpsConfig": {}}),
            "sharing.mpsConfig: the strategy is TimeSlicing, so it would mean nothing; remove it",
        ),
        (
            mps(defaultActiveThreadPercentage=101),
            (
                "sharing.mpsConfig.defaultActiveThreadPercentage: expected `int` <= 100; "
                "it may be: a whole number from 1 to 100"
            ),
        ),
        *(
            (
                mps(defaultPinnedDeviceMemoryLimit=limit),
                (
                    f"sharing.mpsConfig.defaultPinnedDeviceMemoryLimit: '{limit}' is none of what it may be: "
                    "a quantity from 1Mi to 1Pi, such as 10Gi"
                ),
            )
            for limit in ("much", "1", "-1Gi", "2Pi")
        ),
    ],
)
def test_what_is_not_understood_is_refused_by_the_name_of_its_field(given: bytes, words: str) -> None:
    assert config.read(given) == Unreadable(words)


def test_more_than_the_api_lets_through_is_not_read_at_all() -> None:
    found = config.read(parameters({"strategy": "MPS"}) + b" " * config.PARAMETERS_BYTES_MAX)
    assert isinstance(found, Unreadable)
    assert "at most 10240 are allowed" in found.what


@pytest.mark.parametrize("text", ["\x1b[31mred", "line\nline", "long" * 1000])
def test_what_strangers_wrote_is_shown_short_and_does_nothing_to_a_terminal(text: str) -> None:
    for given in (parameters({"strategy": text}), parameters({"strategy": "MPS"}, kind=text)):
        found = config.read(given)
        assert isinstance(found, Unreadable)
        assert found.what.isprintable()
        assert len(found.what) < 400
