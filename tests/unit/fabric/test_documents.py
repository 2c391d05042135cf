"""docs/adapters.md is true: every type and every option stands in it, and what it shows can be read."""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from jackfield import fabric
from jackfield.fabric.fsas import Options, read_options
from jackfield.fabric.vendors.fsas_cm import ClusterOptions

ADAPTERS = Path(__file__).resolve().parents[3] / "docs" / "adapters.md"
TEXT = ADAPTERS.read_text()


def _options(kind: type[msgspec.Struct]) -> Iterator[tuple[str, str]]:
    for field in msgspec.structs.fields(kind):
        if field.required:
            yield field.encode_name, "required"
        elif isinstance(field.default, int | float | str) and field.default:
            yield (
                field.encode_name,
                f"`{field.default:g}`" if isinstance(field.default, float) else f"`{field.default}`",
            )
        else:
            yield field.encode_name, "none"


def test_every_option_of_fsas_stands_in_its_table_with_its_default() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| [^|]+ \|$", TEXT, re.MULTILINE)
    shared = dict(_options(Options))
    own = {name: default for name, default in _options(ClusterOptions) if name not in shared}
    assert dict(rows) == shared | own


def test_every_type_has_its_row() -> None:
    assert re.findall(r"^\| `([\w-]+)` \| [^|]+ \| [^|]+ \| [^|]+ \| [^|]+ \|$", TEXT, re.MULTILINE) == [
        *fabric.TYPES
    ]


@pytest.mark.parametrize(("place", "kind"), [(0, Options), (1, ClusterOptions)])
def test_the_settings_that_are_shown_can_be_read(place: int, kind: type[Options]) -> None:
    example, *_ = re.findall(r"^```yaml\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
    settings = fabric.parse(example, "adapters.md")
    assert read_options(settings[place], kind).models
