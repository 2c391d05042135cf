"""Every value of the chart is in its schema, has a default, and is explained on the page about installing."""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import yaml

from jackfield.codec import Raw
from jackfield.fabric import parse
from jackfield.model.policy import Policy

ROOT = Path(__file__).resolve().parents[3]
CHART = ROOT / "charts" / "jackfield"
PAGE = (ROOT / "docs" / "install.md").read_text()
SCHEMA = msgspec.json.decode((CHART / "values.schema.json").read_bytes())
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
BESIDE_THE_FILE = ("existingSecret", "tokenKey", "caKey")
UNREAD = ("global",)
"""What Helm itself puts into values."""


def paths(schema: Raw, prefix: str = "") -> Iterator[str]:
    """Yield the path of every value that the schema knows by name."""
    for name, one in schema["properties"].items():
        if "properties" in one:
            yield from paths(one, f"{prefix}{name}.")
        elif f"{prefix}{name}" not in UNREAD:
            yield f"{prefix}{name}"


def default(path: str) -> object:
    found = VALUES
    for name in path.split("."):
        found = found[name]
    return found


def told(value: object) -> str:
    """How the page spells a default."""
    if value in ("", [], {}):
        return "none"
    if isinstance(value, dict | list) and len(msgspec.json.encode(value)) > 60:
        return "see `values.yaml`"
    return f"`{value if isinstance(value, str) else msgspec.json.encode(value).decode()}`"


def test_every_value_has_a_row_with_its_default_and_meaning() -> None:
    rows = re.findall(r"^\| `([\w.]+)` \| ([^|]+) \| ([^|]+) \|$", PAGE, re.MULTILINE)
    assert [(path, said.strip()) for path, said, _ in rows] == [
        (path, told(default(path))) for path in paths(SCHEMA)
    ]
    assert [path for path, _, meaning in rows if len(meaning.split()) < 3] == []


def test_the_schema_knows_nothing_that_has_no_default() -> None:
    def named(values: Raw, schema: Raw) -> Iterator[str]:
        for name, value in values.items():
            one = schema["properties"][name]
            yield from ((f"{name}.{rest}" for rest in named(value, one)) if "properties" in one else (name,))

    assert sorted(named(VALUES, SCHEMA)) == sorted(paths(SCHEMA))


def test_no_value_that_is_not_known_is_accepted() -> None:
    def closed(schema: Raw) -> bool:
        inner = [one for one in schema["properties"].values() if "properties" in one]
        return schema["additionalProperties"] is False and all(map(closed, inner))

    assert closed(SCHEMA)


def test_the_values_that_are_shown_can_be_used() -> None:
    shown = [
        yaml.safe_load(text)
        for text in re.findall(r"^```yaml values\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    ]
    assert shown
    for values in shown:
        assert [name for name in values if name not in SCHEMA["properties"]] == []
        msgspec.convert(values.get("policy", {}), Policy)
        fabrics = [
            {name: said for name, said in one.items() if name not in BESIDE_THE_FILE}
            for one in values.get("fabrics", ())
        ]
        parse(yaml.safe_dump({"fabrics": fabrics}), "install.md")
