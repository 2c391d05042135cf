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

MODEL = "{index: 1, cdi-model-name: A100, k8s-device-name: a100"
POLICY = f"holdSeconds: 60\nmodels: [{MODEL}}}]\n"
FABRICS = "fabrics: [{name: rack-a, type: native, url: 'https://manager.example.com'}]\n"


def written(folder: Path, text: str | bytes, name: str = "file.yaml") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# --- the policy


def test_a_policy_is_read(tmp_path: Path) -> None:
    assert read_policy(written(tmp_path, POLICY)).hold_seconds == Seconds(60.0)


def test_a_policy_that_is_wrong_is_told_where(tmp_path: Path) -> None:
    path = written(tmp_path, "holdSeconds: -1\nclaimAttemptsMax: 0\n")
    with pytest.raises(Unusable) as caught:
        read_policy(path)
    assert str(caught.value).splitlines() == [
        f"{path}:1:14: holdSeconds: -1 is negative",
        f"{path}:2:19: claimAttemptsMax: 0 is less than 1",
    ]


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
        (
            "fabrics[0]: there is no setting token; there are name, type, url, tokenFile, tokenVariable, caFile, "
            "insecure, callTimeoutSeconds, options"
        ),
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
        ("holdSeconds: -1", FABRICS, "policy.yaml:1:14: holdSeconds: -1 is negative"),
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
        (("--fabrics", "f"), "--policy and --fabrics belong together"),
        (("--policy", "p"), "--policy and --fabrics belong together"),
        (("--policy", "p", "--fabrics", "f", "--only", "scheduler"), "'scheduler' is not one of"),
        (("--policy", "p", "--fabrics", "f", "--log", "xml"), "'xml' is not one of"),
    ],
)
def test_an_option_that_cannot_be_used_is_named(words: tuple[str, ...], said: str) -> None:
    done = run(*words)
    assert done.exit_code == UNUSABLE
    assert said in done.output
