"""`jackfield policy check|show|schema`, and that the schema says what the policy's own rules say."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import msgspec
import pytest
import yaml
from click.testing import CliRunner, Result

from jackfield.cli import policy_file, policy_schema
from jackfield.cli.main import main
from jackfield.cli.output import OK, UNUSABLE
from jackfield.cli.policy_schema import BOUNDS, KINDS
from jackfield.model.policy import Policy

SOUND = """
holdSeconds: 5
models:
  - {index: 1, cdi-model-name: A100, k8s-device-name: a100}
"""


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["policy", *words])


def written(folder: Path, text: str, name: str = "policy.yaml") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SOUND, "sound; 1 model: A100"),
        ("", "sound; without models nothing is attached"),
        (SOUND + "paused: true\nobserveOnly: true\n", "sound; 1 model: A100; paused; observe-only"),
    ],
)
def test_a_sound_policy_is_said_to_be_sound(tmp_path: Path, text: str, said: str) -> None:
    path = written(tmp_path, text)
    done = run("check", path)
    assert (done.exit_code, done.stdout, done.stderr) == (OK, f"{path}: {said}\n", "")


def test_all_files_are_checked_and_one_that_is_wrong_decides(tmp_path: Path) -> None:
    wrong, sound = written(tmp_path, "paused: 1\nx: 1\n", "wrong.yaml"), written(tmp_path, SOUND)
    done = run("check", wrong, sound)
    assert done.exit_code == UNUSABLE
    assert [line.partition(": ")[0] for line in done.stderr.splitlines()] == [f"{wrong}:1:9", f"{wrong}:2:1"]
    assert done.stdout.startswith(f"{sound}: sound")


def test_what_is_shown_is_the_whole_policy_and_can_be_read_again(tmp_path: Path) -> None:
    path = written(tmp_path, SOUND)
    done = run("show", path)
    assert done.exit_code == OK
    assert [*yaml.safe_load(done.stdout)] == [*Policy.__struct_encode_fields__]
    assert policy_file.parse(done.stdout, "shown") == policy_file.parse(SOUND, "given")
    assert msgspec.json.decode(run("show", "--json", path).stdout, type=Policy) == policy_file.parse(
        SOUND, ""
    )


def test_without_a_file_the_defaults_are_shown() -> None:
    assert policy_file.parse(run("show").stdout, "shown") == Policy()


def test_what_is_as_by_default_can_be_left_out(tmp_path: Path) -> None:
    assert yaml.safe_load(run("show", "--changed", written(tmp_path, "holdSeconds: 5\n")).stdout) == {
        "holdSeconds": 5
    }


def test_a_file_that_cannot_be_used_is_not_shown(tmp_path: Path) -> None:
    done = run("show", written(tmp_path, "paused: 1\n"))
    assert (done.exit_code, done.stdout) == (UNUSABLE, "")
    assert "paused: must be true or false" in done.stderr


def test_the_schema_is_printed() -> None:
    assert msgspec.json.decode(run("schema").stdout) == policy_schema.document()


# --- the schema


def settings() -> Iterator[tuple[str, dict[str, object]]]:
    """Every setting that a schema describes, by kind and name."""
    schema = policy_schema.schema()
    described = {"Policy": schema["properties"]}
    entries = {"models": "DeviceModel", "nodeGroups": "NodeGroup", "namespaces": "NamespaceRule"}
    entries |= {"localDevices": "LocalDevices", "detachForeign": "Foreign"}
    for name, kind in entries.items():
        described[kind] = msgspec.json.decode(msgspec.json.encode(schema))["properties"][name]["items"][
            "properties"
        ]
    for kind, properties in described.items():
        assert isinstance(properties, dict)
        yield from ((f"{kind}.{name}", one) for name, one in properties.items())


def test_every_setting_is_in_the_schema_and_described_and_nothing_refers_elsewhere() -> None:
    found = dict(settings())
    assert [*found] == [
        f"{kind.__name__}.{name}" for kind in (KINDS[0], *KINDS[1:]) for name in kind.__struct_encode_fields__
    ]
    assert [name for name, one in found.items() if len(str(one.get("description", ""))) < 10] == []
    assert b"$ref" not in msgspec.json.encode(policy_schema.schema())
    assert [name for name in BOUNDS if name not in found] == []


def with_value(setting: str, value: object) -> str:
    """A policy that is sound but for one setting."""
    kind, _, name = setting.partition(".")
    entries: dict[str, tuple[str, dict[str, object]]] = {
        "DeviceModel": ("models", {"index": 1, "cdi-model-name": "A100", "k8s-device-name": "a100"}),
        "NodeGroup": ("nodeGroups", {"name": "large"}),
        "NamespaceRule": ("namespaces", {"name": "team"}),
        "LocalDevices": ("localDevices", {"name": "gpu", "vendor": "10de", "pciClass": "03"}),
    }
    if kind == "Policy":
        return yaml.safe_dump({"bindingMarginSeconds": 0, name: value})
    place, entry = entries[kind]
    return yaml.safe_dump({place: [{**entry, name: value}]})


def numbers() -> Iterator[tuple[str, object, bool]]:
    """Settings at the edge of what the schema allows, a step within and a step beyond."""
    for name, one in settings():
        if "minimum" in one:
            yield name, one["minimum"], True
            yield name, -1 if one["minimum"] == 0 else 0, False
        if "maximum" in one:
            yield name, one["maximum"], True
            yield name, int(str(one["maximum"])) + 1, False
        if "exclusiveMinimum" in one:
            yield name, 0.001, True
            yield name, 0, False
        if "maxLength" in one:
            yield name, "a" * int(str(one["maxLength"])), True
            yield name, "a" * (int(str(one["maxLength"])) + 1), False
        if "pattern" in one:
            yield name, "Not so!", False
        if "minLength" in one or "minItems" in one:
            yield name, "" if "minLength" in one else [], False
        if "maxProperties" in one:
            yield name, {f"k{number}": "" for number in range(int(str(one["maxProperties"])))}, True
            yield name, {f"k{number}": "" for number in range(int(str(one["maxProperties"])) + 1)}, False


@pytest.mark.parametrize(("setting", "value", "sound"), list(numbers()))
def test_the_schema_allows_what_the_policys_own_rules_allow(
    setting: str,
    value: object,
    sound: bool,  # noqa: FBT001 - a column
) -> None:
    text = with_value(setting, value)
    with nullcontext() if sound else pytest.raises(policy_file.BadPolicy):
        policy_file.parse(text, "p.yaml")
