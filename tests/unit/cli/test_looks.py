"""What `status` prints and `gather` packs, and what they say of files and servers that are not there."""

import io
import tarfile
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from jackfield.cli import gather, status
from jackfield.cli.live import Seen
from jackfield.cli.main import main
from jackfield.controllers.store import Store
from jackfield.core.overview import (
    NO_AGE,
    UNKNOWN,
    FabricLine,
    NodeLine,
    OrderLine,
    Overview,
    Stock,
    WaitLine,
)
from jackfield.model.names import FabricName, ModelName, NodeName, Seconds
from jackfield.model.policy import Policy

RACK = FabricName("rack-a")
EMPTY = Overview((), (), (), (), (), ())
FULL = Overview(
    fabrics=(
        FabricLine(RACK, "", "one", 2, (Stock(ModelName("A100"), 3, 1, 2, 1, 0, 1, 0),)),
        FabricLine(FabricName("rack-b"), "refused", "", 0, (Stock(ModelName("A100")),)),
    ),
    replicas=("one", "two"),
    nodes=(
        NodeLine(NodeName("n-1"), RACK, 2, 8, Seconds(3.0), ""),
        NodeLine(NodeName("n-2"), RACK, 0, UNKNOWN, NO_AGE, "several devices failed on n-2 lately"),
    ),
    orders=(
        OrderLine(
            "a100-1.rack-a", NodeName("n-1"), ModelName("A100"), "Attaching", Seconds(200.0), "d/c", "x"
        ),
        OrderLine("a100-2.rack-a", NodeName("n-1"), ModelName("A100"), "Detaching", NO_AGE, "", ""),
    ),
    waits=(
        WaitLine("claim/d/c", "Attaching", "a100-1 to be attached", ("d/p",), Seconds(7200.0)),
        WaitLine("pod/d/q", "Unschedulable", "0/2 nodes", ("d/q",), Seconds(180_000.0)),
        WaitLine("request/r", "Composing", "a change", (), NO_AGE),
    ),
    findings=(),
)
SCREEN = """\
one, two at work

FABRIC           MODEL                      FREE  ATTACHING  IN USE   IDLE  DETACHING   OTHERS'  UNHEALTHY  LED BY
rack-a           A100                          3          1       2      1          0         1          0  one
rack-b           A100                          0          0       0      0          0         0          0  nobody; \
its manager does not answer

NODES
  n-2                          rack-a              0 of ?  plugin never seen  several devices failed on n-2 lately
  n-1                          rack-a              2 of 8  plugin 3s ago

ORDERS UNDER WAY
  a100-1.rack-a                    attaching  n-1                          3m  for claim d/c: x
  a100-2.rack-a                    detaching  n-1                           ?

WHO WAITS, AND FOR WHAT
  pod/d/q 2d Unschedulable: 0/2 nodes
  claim/d/c 2h Attaching: a100-1 to be attached (pod d/p)
  request/r Composing: a change

NOT RIGHT
  the manager of fabric rack-b does not answer: refused
"""


def screen(found: Overview, *wrong: str, limit: int | None = None) -> str:
    return "".join(f"{line}\n" for line in status.lines(found, wrong, limit))


def test_the_screen_tells_of_everything_what_is_in_trouble_first() -> None:
    assert screen(FULL, "the manager of fabric rack-b does not answer: refused") == SCREEN


def test_what_is_not_there_is_said_to_be_not_there() -> None:
    assert screen(EMPTY).splitlines()[0] == "no replica at work"
    assert screen(EMPTY).count(": none") == 4


def test_a_screen_is_one_screen_and_says_how_much_it_leaves_out() -> None:
    many = Overview(
        (),
        (),
        tuple(NodeLine(NodeName(f"n-{number:03}"), RACK, 0, 8, Seconds(0.0), "") for number in range(500)),
        *((), (), ()),
    )
    shown = screen(many, limit=status.LINES_MAX).splitlines()
    assert len(shown) < 25
    assert f"  … and {500 - status.LINES_MAX} more; --all prints them" in shown


def test_machines_that_are_no_nodes_are_told_of_with_their_names_and_what_to_do() -> None:
    names = tuple(NodeName(f"worker-{number}") for number in range(1, 6))
    found = Overview((FabricLine(RACK, "", "one", 5, (), names),), ("one",), (), (), (), ())
    seen = Seen(Store(Policy()), (), Seconds(0.0))
    (told,) = status.troubles(seen, found)
    assert told.startswith(
        "no machine of fabric rack-a is a node of this cluster, so nothing can be attached: "
    )
    assert "calls them worker-1, worker-2, worker-3 and 2 more; have them called as the nodes are" in told
    unread = Seen(Store(Policy()), (), Seconds(0.0), {"Node": "forbidden"})
    assert list(status.troubles(unread, found)) == ["the API server does not show every Node: forbidden"]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """A policy, a manager and an API server of which nobody is there."""
    policy, fabrics, kubeconfig = (tmp_path / name for name in ("policy.yaml", "fabrics.yaml", "kubeconfig"))
    policy.write_text("models:\n  - {index: 1, cdi-model-name: A100, k8s-device-name: a100}\n")
    fabrics.write_text("fabrics:\n  - {name: rack-a, type: native, url: 'http://127.0.0.1:9'}\n")
    kubeconfig.write_text(
        yaml.safe_dump(
            {
                "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
                "users": [{"name": "u", "user": {}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )
    )
    return {"policy": policy, "fabrics": fabrics, "kubeconfig": kubeconfig}


def arguments(files: dict[str, Path]) -> list[str]:
    return [word for name, path in files.items() for word in (f"--{name}", str(path))]


@pytest.mark.parametrize("command", ["status", "gather"])
def test_a_policy_that_cannot_be_used_is_told_with_its_line(command: str, files: dict[str, Path]) -> None:
    files["policy"].write_text("holdSecond: 3\n")
    done = CliRunner().invoke(main, [command, *arguments(files)])
    assert done.exit_code == 2
    assert "holdSecond" in done.stderr
    assert ":1:" in done.stderr


@pytest.mark.parametrize("command", ["status", "gather"])
def test_files_may_be_named_by_the_environment_as_in_the_controllers_pods(
    command: str, tmp_path: Path
) -> None:
    named = {"JACKFIELD_POLICY": str(tmp_path / "none"), "JACKFIELD_FABRICS": str(tmp_path / "none")}
    done = CliRunner().invoke(main, [command], env=named)
    assert done.exit_code == 2
    assert "cannot be read" in done.stderr


def test_an_api_server_that_is_away_is_told_once_and_what_to_look_at(files: dict[str, Path]) -> None:
    done = CliRunner().invoke(main, ["status", *arguments(files)])
    assert done.exit_code == 1
    assert done.stdout.count("API server") == 1
    assert "Cannot connect to 127.0.0.1:9: " in done.stdout
    assert (
        "see whether it runs, whether the kubeconfig is the right one, and what its account may read"
        in done.stdout
    )


def test_a_bundle_has_no_secret_and_the_same_files_give_the_same_bytes() -> None:
    bundle = gather.Bundle("2026-01-01T00:00:00Z")
    bundle.put("a.txt", "Authorization: Bearer abcdefgh12345")
    bundle.put("b.json", {"token": "hunter2", "name": "x"})
    bundle.troubles.append("objects/pods.json: forbidden")
    packed = bundle.packed()
    assert packed[8:] == bundle.packed()[8:]  # but for the time in the header of gzip
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        texts = {one.name: archive.extractfile(one) for one in archive}
        content = {name: file.read().decode() for name, file in texts.items() if file is not None}
    assert "hunter2" not in str(content)
    assert "abcdefgh12345" not in str(content)
    assert "objects/pods.json: forbidden" in content["jackfield-gather/README.txt"]


def test_a_file_that_exists_is_not_written_over(tmp_path: Path) -> None:
    there = tmp_path / "report.tar.gz"
    there.write_text("precious")
    with pytest.raises(FileExistsError):
        gather.write(there, b"new")
    assert there.read_text() == "precious"


def test_a_bundle_is_its_owners_alone(tmp_path: Path) -> None:
    gather.write(tmp_path / "report.tar.gz", b"new")
    assert (tmp_path / "report.tar.gz").stat().st_mode & 0o777 == 0o600
