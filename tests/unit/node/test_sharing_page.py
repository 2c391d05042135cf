"""docs/sharing.md is true: its examples can be read, and what may be said is in it."""

import re
from enum import StrEnum
from pathlib import Path

import msgspec
import pytest

from jackfield.core.share import Interval, Partitions, Shares, Sharing, SharingConfig, Strategy, config
from jackfield.core.share.config import API_VERSION, GpuConfig
from jackfield.core.share.offering import Source, offer
from jackfield.testing.nvidia import Gpus

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "sharing.md").read_text()
WORDS = set(re.findall(r"`([^`\n]+)`", PAGE))
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def example(word: str) -> str:
    (found,) = [one for one in EXAMPLES if one.startswith(word)]
    return str(found)


def fields(kind: type[msgspec.Struct], path: str) -> list[str]:
    """Return the paths of all fields that a document may have."""
    found: list[str] = []
    for field in msgspec.structs.fields(kind):
        name = f"{path}.{field.encode_name}" if path else field.encode_name
        inner = [one for one in getattr(field.type, "__args__", (field.type,)) if isinstance(one, type)]
        structs = [one for one in inner if issubclass(one, msgspec.Struct)]
        found += [path for one in structs for path in fields(one, name)] or [name]
    return found


def test_the_configuration_that_is_shown_can_be_followed() -> None:
    shown = msgspec.yaml.decode(example("apiVersion"))
    found = config.read(msgspec.json.encode(shown))
    assert isinstance(found, SharingConfig)
    assert (found.strategy, found.mps.percentage, found.mps.memory_mebibytes) == (Strategy.MPS, 50, 10240)


def test_the_setting_that_is_shown_can_be_read() -> None:
    shown = msgspec.yaml.decode(example("partitions"), type=Sharing)
    assert shown == Sharing(Partitions.ON_DEMAND, Shares())


def test_the_consumption_that_is_shown_is_that_of_the_partition() -> None:
    (shown,) = msgspec.yaml.decode(example("consumesCounters"))["consumesCounters"]
    (gpu,) = Gpus.of("NVIDIA A100-SXM4-40GB").gpus()
    found = offer(Source(shown["counterSet"], gpu), Sharing(Partitions.ON_DEMAND)).devices
    (device,) = [one for one in found if one.name == "gpu-ad34963f-mig-3g-20gb-at-4"]
    assert msgspec.to_builtins(device.consumes_counters[0]) == shown


@pytest.mark.parametrize("field", [one for one in fields(GpuConfig, "") if one.startswith("sharing")])
def test_every_field_of_a_configuration_is_explained(field: str) -> None:
    assert re.search(rf"^\| `{re.escape(field)}` \| [^|]+ \| \w", PAGE, re.MULTILINE)


@pytest.mark.parametrize("kind", [Strategy, Interval, Partitions])
def test_every_choice_is_explained(kind: type[StrEnum]) -> None:
    assert {str(one) for one in kind} <= WORDS


@pytest.mark.parametrize("field", ["partitions", "shares", *fields(Shares, "shares")])
def test_every_setting_is_explained(field: str) -> None:
    assert re.search(rf"^\| `{re.escape(field)}` \| [^|]+ \| \w", PAGE, re.MULTILINE)


def test_every_attribute_and_capacity_is_named() -> None:
    (gpu,) = Gpus.of("NVIDIA A100-SXM4-40GB").gpus()
    for sharing in (Sharing(Partitions.ON_DEMAND), Sharing(shares=Shares())):
        for device in offer(Source("gpu-0", gpu), sharing).devices:
            names = [one for one in (*device.attributes, *device.capacity) if "/" not in one]
            assert set(names) <= WORDS


def test_the_version_that_is_named_is_the_one_that_is_read() -> None:
    assert API_VERSION in PAGE
