"""`jackfield check` tells what is wrong, why it matters and what to do, and what it could not look at."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from jackfield.cli import check, live
from jackfield.cli.main import main
from jackfield.controllers import app
from jackfield.core.check import Checker
from jackfield.model.composition import ResourceState
from jackfield.model.lease import Lease, LeaseSpec
from jackfield.model.meta import Object, ObjectMeta
from jackfield.model.names import FabricName, Seconds
from jackfield.testing import builders as b
from jackfield.testing.overrides import point

RACK = FabricName("rack-a")
ALIVE = Lease(metadata=ObjectMeta(name="one"), spec=LeaseSpec("one", 15, point(b.NOW), point(b.NOW)))
DEAD = Lease(metadata=ObjectMeta(name="two"), spec=LeaseSpec("two", 15, point(b.NOW - 60), point(b.NOW - 60)))
NOTHING = check.Looked(1, 1, 0, 0)


def seen(*objects: Object, replicas: tuple[Lease, ...] = (ALIVE,), silent: str = "") -> live.Seen:
    shown = () if silent else (b.inventory(models={}),)
    store = b.world(*objects, inventories=shown)
    return live.Seen(store, replicas, b.NOW, silent={RACK: silent} if silent else {})


def found(one: live.Seen) -> list[tuple[str, str]]:
    return [(wrong.object, wrong.checker) for wrong in check.faults(one)]


def test_nothing_is_wrong_with_a_cluster_at_rest() -> None:
    assert found(seen(b.node())) == []


def test_what_every_checker_finds_is_told() -> None:
    torn = b.resource(state=ResourceState.DETACHING, holder="u", created=b.NOW)
    ready = b.claim("c", ready=True, reserved=("p",))
    assert found(seen(b.node(), torn, ready)) == [
        ("resource/a100-1.rack-a", Checker.HOLDER_UNRECORDED),
        ("resource/a100-1.rack-a", Checker.LEAVING_IN_USE),
        ("claim/default/c", Checker.READY_UNSERVED),
    ]


def test_what_is_under_way_is_stuck_only_after_its_time() -> None:
    young, old = (b.resource(state=ResourceState.ATTACHING, created=b.NOW - age) for age in (10.0, 1000.0))
    assert found(seen(b.node(), young)) == []
    assert found(seen(b.node(), old)) == [("resource/a100-1.rack-a", Checker.STUCK)]


@pytest.mark.parametrize("replicas", [(), (DEAD,)])
def test_it_is_told_that_no_controller_runs(replicas: tuple[Lease, ...]) -> None:
    assert found(seen(replicas=replicas)) == [("jackfield run", check.NO_REPLICA)]
    assert found(seen(replicas=(*replicas, ALIVE))) == []


def test_a_manager_that_does_not_answer_is_told() -> None:
    (wrong,) = check.faults(seen(silent="refused"))
    assert wrong == check.Wrong("fabric/rack-a", check.SILENT_MANAGER, "its manager does not answer: refused")


def test_what_is_wrong_is_told_with_why_and_what_to_do() -> None:
    wrong = check.Wrong(
        "device/rack-a/1", Checker.SURPLUS, "was attached to n1 by us, and no resource has it"
    )
    meaning = check.MEANINGS[Checker.SURPLUS]
    assert [*check.lines((wrong,), check.Looked(1, 2, 3, 4))] == [
        "device/rack-a/1: was attached to n1 by us, and no resource has it  [surplus]",
        f"    why it matters: {meaning.why}",
        f"    what to do:     {meaning.remedy}",
        "",
        "1 thing is wrong; looked at 1 fabric, 2 nodes, 3 claims, 4 ComposableResources",
    ]
    assert [*check.lines((), NOTHING)] == [
        "all is well; looked at 1 fabric, 1 node, 0 claims, 0 ComposableResources"
    ]


def test_what_the_server_does_not_show_is_told_but_for_what_it_may_not_have() -> None:
    one = live.Seen(b.world(), (), Seconds(0.0), unread={"Pod": "forbidden", "DeviceTaintRule": "unknown"})
    (words,) = check.unseen(one)
    assert words.startswith("the API server does not show every Pod, so that nothing can be said: forbidden.")


@pytest.mark.parametrize("why", ["Connection refused", "403 forbidden"])
def test_a_server_that_shows_nothing_is_told_once_with_what_helps_either_way(why: str) -> None:
    unread = {kind.__name__: why for kind in app.KINDS}
    (words,) = check.unseen(live.Seen(b.world(), (), Seconds(0.0), unread=unread))
    assert words.startswith(f"the API server shows nothing: {why}; see whether it runs, ")
    assert "`kubectl auth can-i --list`" in words


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """A policy, a manager and an API server of which nobody is there."""
    nobody = "http://127.0.0.1:9"
    config = {
        "clusters": [{"name": "c", "cluster": {"server": nobody}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    texts = {
        "policy": "models:\n  - {index: 1, cdi-model-name: A100, k8s-device-name: a100}\n",
        "fabrics": f"fabrics:\n  - {{name: rack-a, type: native, url: '{nobody}'}}\n",
        "kubeconfig": yaml.safe_dump(config),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return [f"--{name}={tmp_path / name}" for name in texts]


def test_a_server_that_is_not_there_leaves_nothing_to_say(files: list[str]) -> None:
    done = CliRunner().invoke(main, ["check", *files])
    assert done.exit_code == 2
    assert done.stderr.startswith("jackfield check: the API server shows nothing: ")
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


def test_a_policy_that_cannot_be_read_is_named(files: list[str], tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["check", *files[1:], f"--policy={tmp_path / 'none'}"])
    assert done.exit_code == 2
    assert f"jackfield check: {tmp_path / 'none'}" in done.stderr


def test_json_has_the_meaning_too() -> None:
    wrong = check.Wrong("fabric/rack-a", check.SILENT_MANAGER, "it is silent")
    (line,) = check.objects((wrong,))
    assert sorted(json.loads(line)) == ["checker", "object", "remedy", "what", "why"]
