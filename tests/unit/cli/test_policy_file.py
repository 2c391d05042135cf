"""A policy's file is read, or all that is wrong with it is told at once: by line and column, and what was meant."""

from pathlib import Path

import pytest

from jackfield.cli import policy_file
from jackfield.cli.policy_file import BadPolicy
from jackfield.model.names import Seconds
from jackfield.model.policy import NamespaceRule, Policy

MODEL = "{index: 1, cdi-model-name: A100, k8s-device-name: a100"


def faults(text: str) -> list[str]:
    """What is told of a text, without the name of its file."""
    with pytest.raises(BadPolicy) as caught:
        policy_file.parse(text, "p.yaml")
    lines = str(caught.value).splitlines()
    assert all(line.startswith("p.yaml:") for line in lines)
    return [line.removeprefix("p.yaml:") for line in lines]


def test_a_policy_is_read(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(f"holdSeconds: 60\nmodels: [{MODEL}}}]\nnamespaces: [{{name: a, quota: {{'*': 2}}}}]\n")
    policy = policy_file.read(path)
    assert policy.hold_seconds == Seconds(60.0)
    assert [one.k8s_device_name for one in policy.models] == ["a100"]
    assert policy.namespaces == (NamespaceRule("a", {"*": 2}),)


@pytest.mark.parametrize("text", ["", "{}", "# nothing yet\n", "---\n", "null"])
def test_an_empty_policy_is_a_policy(text: str) -> None:
    assert policy_file.parse(text, "p.yaml") == Policy()


def test_an_anchor_is_followed() -> None:
    text = f"models:\n  - &first {MODEL}}}\n  - {{<<: *first, index: 2, cdi-model-name: B, k8s-device-name: b}}\n"
    assert [one.index for one in policy_file.parse(text, "p.yaml").models] == [1, 2]


WRONG: dict[str, tuple[str, list[str]]] = {
    "a word": ("everything", ["1:1: the whole file: must be settings with names, and is text"]),
    "a list": ("[1]", ["1:1: the whole file: must be settings with names, and is a list"]),
    "a text for a number": ("holdSeconds: long", ["1:14: holdSeconds: must be a number, and is text"]),
    "half a device": ("perNodeMax: 1.5", ["1:13: perNodeMax: must be a whole number, and is a fraction"]),
    "a date": ("paused: 2026-01-01", ["1:9: paused: must be true or false, and is date"]),
    "another word": (
        "\nidentities: [uuid, wwn]",
        ["2:20: identities[1]: invalid enum value 'wwn'; it may be uuid, serial, address"],
    ),
    "a name that is misspelt": (
        "paused: true\nholdSecond: 5",
        ["2:1: holdSecond: there is no such setting; was holdSeconds meant?"],
    ),
    "a name in the other spelling": (
        f"hold-seconds: 5\nmodels: [{MODEL}, driverName: x}}]",
        [
            "1:1: hold-seconds: there is no such setting; was holdSeconds meant?",
            "2:66: models[0].driverName: there is no such setting; was driver-name meant?",
        ],
    ),
    "a name in the wrong place": (
        f"models: [{MODEL}, holdSeconds: 1}}]\nspares: 1",
        [
            "1:66: models[0].holdSeconds: there is no such setting here; holdSeconds stands at the top of the file",
            "2:1: spares: there is no such setting here; spares stands in an entry of models",
        ],
    ),
    "a name that nobody can guess": (
        "nodeGroups: [{name: large, x: 1}]",
        [
            "1:28: nodeGroups[0].x: there is no such setting; nodeGroups[0] has name, capacity, labels, maxSize"
        ],
    ),
    "a model without a name": (
        "models:\n  - {index: 1, cdi-model-name: A100}",
        ["2:5: models[0]: k8s-device-name is missing; every such entry needs one"],
    ),
    "a name of which nothing but the letters is wrong": (
        "localDevices: [{nme: gpu, vendor: 10de}]",
        ["1:17: localDevices[0].nme: there is no such setting; was name meant?"],
    ),
    "a wrong type deep inside": (
        f"models: [{MODEL}, dra-attributes: {{good: yes it is, memory: 40}}}}]",
        ["1:108: models[0].dra-attributes.memory: must be text, and is a whole number"],
    ),
    "a wrong number in a quota": (
        "namespaces: [{name: a, quota: {A100: 1, '*': many}}]",
        ["1:46: namespaces[0].quota.*: must be a whole number, and is text"],
    ),
    "a name that stands twice": (
        "paused: true\nholdSeconds: 1\npaused: false",
        ["3:1: paused: stands here again, after line 1; only one of them can count"],
    ),
    "a name that is no text": (
        "on: 5",
        ["1:1: on: a name must be text, and YAML takes this for something else; quote it"],
    ),
    "no YAML": (
        "models: [",
        ["1:10: not YAML: while parsing a flow node, expected the node content, but found"],
    ),
    "two colons": ("a: b: c", ["1:5: not YAML: mapping values are not allowed here"]),
    "a tag": (
        "!!python/object:os.system {}",
        ["1:1: not YAML: could not determine a constructor for the tag"],
    ),
    "an alias of nothing": ("paused: *x", ["1:9: not YAML: found undefined alias 'x'"]),
}


@pytest.mark.parametrize(("text", "told"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_told_by_line_and_column(text: str, told: list[str]) -> None:
    found = faults(text)
    assert len(found) == len(told)
    assert [one[: len(said)] for one, said in zip(found, told, strict=True)] == told


def test_all_faults_are_told_at_once_in_the_order_of_the_file() -> None:
    text = """
hold-seconds: 4
perNodeMax: many
models:
  - index: one
    cdi-model-name: 5
  - 7
  - {index: 2, cdi-model-name: x, k8s-device-name: x, spare: 4}
namespaces: {a: b}
"""
    assert [one.partition(": ")[0] for one in faults(text)] == [
        "2:1",
        "3:13",
        "5:12",
        "6:21",
        "7:5",
        "8:55",
        "9:13",
    ]


def test_what_is_wrong_with_sound_values_is_told_by_line_and_column_as_well() -> None:
    text = f"""
perNodeMin: 5
perNodeMax: 1
models:
  - {MODEL}, spares: -1}}
  - {{index: 1, cdi-model-name: "B 1.2", k8s-device-name: B}}
namespaces:
  - name: a
    quota: {{"A 1.2": 4, "*": -1}}
pollSecond: 3
"""
    assert faults(text) == [
        "2:13: perNodeMin, perNodeMax: 5 and 1 are no range",
        "5:3: models: two have the index 1; each must have its own",
        "5:69: models[0].spares: -1 is negative",
        "6:58: models[1].k8s-device-name: 'B' is not a DNS label of at most 50 characters",
        "9:22: namespaces[0].quota.A 1.2: is not the cdi-model-name of any model; * means all together",
        "9:30: namespaces[0].quota.*: -1 is negative",
        "10:1: pollSecond: there is no such setting; was pollSeconds meant?",
    ]


def test_a_file_that_is_something_else_altogether_is_not_told_of_for_ever() -> None:
    found = faults("".join(f"setting{number}: 1\n" for number in range(1000)))
    assert len(found) == policy_file.FAULTS_MAX


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"holdSeconds: \x00"])
def test_what_is_no_text_is_told_so(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "policy.yaml"
    path.write_bytes(content)
    with pytest.raises(BadPolicy) as caught:
        policy_file.read(path)
    assert str(caught.value).startswith(f"{path}: not YAML: ")


def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "none", "No such file or directory"), (tmp_path, "Is a directory")):
        with pytest.raises(BadPolicy) as caught:
            policy_file.read(path)
        assert str(caught.value) == f"{path}: cannot be read: {reason}"
