"""`jackfield run` reads its files before anything else, and says in one line what is wrong with them, and where."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from jackfield.cli.main import main
from jackfield.cli.output import UNUSABLE
from jackfield.cli.run import PARTS, Given, Unusable, given, read_fabrics, read_policy
from jackfield.controllers import app
from jackfield.fabric import BadFabric
from jackfield.model.names import Seconds
from jackfield.model.policy import Policy

MODEL = "{index: 1, cdi-model-name: A100, k8s-device-name: a100"
POLICY = f"holdSeconds: 60\nmodels: [{MODEL}}}]\n"
FABRICS = "fabrics: [{name: rack-a, type: native, url: 'https://manager.example.com'}]\n"


def written(folder: Path, text: str | bytes, name: str = "file.yaml") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# --- the policy


def test_a_policy_is_read(tmp_path: Path) -> None:
    policy = read_policy(written(tmp_path, POLICY))
    assert policy.hold_seconds == Seconds(60.0)
    assert [one.k8s_device_name for one in policy.models] == ["a100"]


@pytest.mark.parametrize("text", ["", "{}", "# nothing yet\n", "---\n"])
def test_an_empty_policy_is_a_policy(tmp_path: Path, text: str) -> None:
    assert read_policy(written(tmp_path, text)) == Policy()


BAD_POLICIES: dict[str, tuple[str, str]] = {
    "a word": ("everything", "the whole file: Expected `object`, got `str`"),
    "a list": ("[1]", "the whole file: Expected `object`, got `array`"),
    "a text for a number": ("holdSeconds: long", "holdSeconds: Expected `float`, got `str`"),
    "half a device": ("perNodeMax: 1.5", "perNodeMax: Expected `int`, got `float`"),
    "an unknown setting": (
        "holdSecond: 5",
        "the whole file: Object contains unknown field `holdSecond`",
    ),
    "an unknown setting of a model": (
        f"models: [{MODEL}, spare: 1}}]",
        "models[0]: Object contains unknown field `spare`",
    ),
    "an unknown setting of a group": (
        "nodeGroups: [{name: large, size: 1}]",
        "nodeGroups[0]: Object contains unknown field `size`",
    ),
    "a model without a name": (
        "models: [{index: 1, cdi-model-name: A100}]",
        "models[0]: Object missing required field `k8s-device-name`",
    ),
    "a wrong type deep inside": (
        f"models: [{MODEL}, dra-attributes: {{memory: 40}}}}]",
        "models[0].dra-attributes[*]: Expected `str`, got `int`",
    ),
    "less than no time": ("holdSeconds: -1", "holdSeconds: -1 is negative"),
    "no time": ("pollSeconds: 0", "pollSeconds: must be more than 0"),
}


@pytest.mark.parametrize(("text", "said"), BAD_POLICIES.values(), ids=BAD_POLICIES)
def test_a_policy_that_is_wrong_is_told_where(tmp_path: Path, text: str, said: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(Unusable) as caught:
        read_policy(path)
    assert str(caught.value) == f"{path}: {said}"


def test_all_faults_of_a_policy_are_told_a_line_each(tmp_path: Path) -> None:
    path = written(tmp_path, "holdSeconds: -1\nclaimAttemptsMax: 0\n")
    with pytest.raises(Unusable) as caught:
        read_policy(path)
    assert str(caught.value).splitlines() == [
        f"{path}: holdSeconds: -1 is negative",
        f"{path}: claimAttemptsMax: 0 is less than 1",
    ]


@pytest.mark.parametrize(
    "text", ["models: [", "a: b: c", "\t- x", "!!python/object:os.system {}", b"\xff\xfe\x00"]
)
def test_a_policy_that_is_no_yaml_is_told_so(tmp_path: Path, text: str | bytes) -> None:
    path = written(tmp_path, text)
    with pytest.raises(Unusable) as caught:
        read_policy(path)
    assert str(caught.value).startswith(f"{path}: not YAML: ")


# --- the fabrics


def test_fabrics_are_read(tmp_path: Path) -> None:
    (one,) = read_fabrics(written(tmp_path, FABRICS))
    assert (one.name, one.url) == ("rack-a", "https://manager.example.com")


BAD_FABRICS: dict[str, tuple[str | bytes, type[Exception], str]] = {
    "nothing": ("", BadFabric, "the whole file: Expected `object`, got `null`"),
    "no address": (
        "fabrics: [{name: a, type: native}]",
        BadFabric,
        "fabrics[0]: Object missing required field `url`",
    ),
    "an unknown setting": (
        "fabrics: [{name: a, type: native, url: 'https://m', token: x}]",
        BadFabric,
        "fabrics[0]: Object contains unknown field `token`",
    ),
    "no text": (b"\xff\xfe\x00", Unusable, "is not text"),
}


@pytest.mark.parametrize(("text", "kind", "said"), BAD_FABRICS.values(), ids=BAD_FABRICS)
def test_fabrics_that_are_wrong_are_told_where(
    tmp_path: Path, text: str | bytes, kind: type[Exception], said: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(kind) as caught:
        read_fabrics(path)
    assert str(caught.value) == f"{path}: {said}"


@pytest.mark.parametrize("read", [read_policy, read_fabrics])
def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path, read: object) -> None:
    assert callable(read)
    missing = tmp_path / "missing.yaml"
    for path, reason in ((missing, "No such file or directory"), (tmp_path, "Is a directory")):
        with pytest.raises(Unusable) as caught:
            read(path)
        assert str(caught.value) == f"{path}: cannot be read: {reason}"


# --- the command line

OPTIONS: dict[str, object] = {
    "kubeconfig": Path("config"),
    "context": None,
    "policy": Path("policy.yaml"),
    "fabrics": Path("fabrics.yaml"),
    "parts": (),
    "identity": "",
    "layout": "text",
}


@pytest.mark.parametrize(
    ("parts", "meant"),
    [
        ((), ("publisher", "scaler", "operator", "autoscaler")),
        (("operator",), ("operator",)),
        (("scaler", "publisher"), ("scaler", "publisher")),
    ],
)
def test_no_part_named_means_all(parts: tuple[str, ...], meant: tuple[str, ...]) -> None:
    assert given({**OPTIONS, "parts": parts}) == Given(
        kubeconfig=Path("config"),
        context=None,
        policy=Path("policy.yaml"),
        fabrics=Path("fabrics.yaml"),
        parts=meant,
        identity="",
        layout="text",
    )


def test_all_parts_together_are_all_controllers() -> None:
    assert tuple(one for part in PARTS.values() for one in part) == app.ALL


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["run", *words])


@pytest.mark.parametrize(
    ("policy", "fabrics", "said"),
    [
        ("holdSeconds: -1", FABRICS, "policy.yaml: holdSeconds: -1 is negative"),
        (POLICY, "fabrics: 3", "fabrics.yaml: fabrics: Expected `array`, got `int`"),
    ],
)
def test_a_file_that_cannot_be_used_ends_the_run_before_it_begins(
    tmp_path: Path, policy: str, fabrics: str, said: str
) -> None:
    files = (written(tmp_path, policy, "policy.yaml"), written(tmp_path, fabrics, "fabrics.yaml"))
    done = run("--policy", str(files[0]), "--fabrics", str(files[1]), "--kubeconfig", str(tmp_path / "none"))
    assert done.exit_code == UNUSABLE
    assert done.stderr == f"jackfield run: {tmp_path}/{said}\n"
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "Missing option '--policy'"),
        (("--policy", "p"), "Missing option '--fabrics'"),
        (("--policy", "p", "--fabrics", "f", "--only", "scheduler"), "'scheduler' is not one of"),
        (("--policy", "p", "--fabrics", "f", "--log", "xml"), "'xml' is not one of"),
    ],
)
def test_an_option_that_cannot_be_used_is_named(words: tuple[str, ...], said: str) -> None:
    done = run(*words)
    assert done.exit_code == UNUSABLE
    assert said in done.output
