"""The control plane that the tests in this folder stand on is a real one, and does what a bad day does."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
import pytest

from jackfield.codec import Raw
from jackfield.testing.control_plane import (
    WRITES,
    ControlPlane,
    ControlPlaneError,
    Program,
    Proof,
    fake_node,
)
from real.waiting import comes_true

SLICE: Raw = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "fields"},
    "spec": {
        "driver": "fabric.jackfield.dev",
        "pool": {"name": "rack-a", "generation": 1, "resourceSliceCount": 1},
        "perDeviceNodeSelection": True,
        "devices": [
            {
                "name": "0000",
                "nodeName": "node-b",
                "bindsToNode": True,
                "bindingConditions": ["FabricDeviceReady"],
                "bindingFailureConditions": ["FabricDeviceReschedule", "FabricDeviceFailed"],
            }
        ],
    },
}
POD: Raw = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "to-be-bound"},
    "spec": {
        "containers": [{"name": "c", "image": "none", "resources": {"requests": {"cpu": "1"}}}],
        "nodeSelector": {"made-for": "binding"},
    },
}


def create(plane: ControlPlane, value: Raw) -> Raw:
    made: Raw = msgspec.json.decode(
        plane.kubectl("create", "--filename=-", "--output=json", text=msgspec.json.encode(value).decode())
    )
    return made


def note(plane: ControlPlane, name: str) -> None:
    plane.kubectl("create", "configmap", name)


def notes(plane: ControlPlane, kubeconfig: Path | None = None) -> list[str]:
    return plane.kubectl("get", "configmaps", "--output=name", kubeconfig=kubeconfig).split()


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(ControlPlaneError) as refused:
        call()
    return str(refused.value)


# --- it is real


def test_it_is_kubernetes_1_36(plane: ControlPlane) -> None:
    versions: Raw = msgspec.json.decode(plane.kubectl("version", "--output=json"))
    assert {side: versions[side]["gitVersion"] for side in ("clientVersion", "serverVersion")} == {
        "clientVersion": "v1.36.4",
        "serverVersion": "v1.36.4",
    }


def test_slices_keep_what_binding_needs(plane: ControlPlane) -> None:
    made = create(plane, SLICE)
    try:
        assert made["spec"] == SLICE["spec"]
    finally:
        plane.kubectl("delete", "resourceslice", "fields")


def test_the_scheduler_binds_a_pod_to_a_faked_node(plane: ControlPlane) -> None:
    with plane.api() as api:
        fake_node(api, "bound-to", {"made-for": "binding"})
    create(plane, POD)

    def node() -> str:
        return plane.kubectl("get", "pod", "to-be-bound", "--output=jsonpath={.spec.nodeName}")

    try:
        assert comes_true(lambda: node() == "bound-to")
    finally:
        plane.kubectl("delete", "pod/to-be-bound", "node/bound-to", "--force", "--grace-period=0")


def test_the_controllers_are_at_work(plane: ControlPlane) -> None:
    plane.kubectl("create", "deployment", "made", "--image=none", "--replicas=2")

    def pods() -> list[str]:
        return plane.kubectl("get", "pods", "--selector=app=made", "--output=name").split()

    try:
        assert comes_true(lambda: len(pods()) == 2)
    finally:
        plane.kubectl("delete", "deployment", "made")


def test_programs_show_their_metrics(plane: ControlPlane) -> None:
    assert "scheduler_pending_pods" in plane.page(Program.SCHEDULER, "/metrics")


# --- who may do what


def test_a_user_may_do_nothing_until_a_role_says_so(plane: ControlPlane) -> None:
    alice = plane.kubeconfig_for("alice")
    assert 'User "alice" cannot list resource "configmaps"' in refusal(lambda: notes(plane, alice))
    plane.kubectl("create", "role", "reader", "--verb=list", "--resource=configmaps")
    plane.kubectl("create", "rolebinding", "alice-reads", "--role=reader", "--user=alice")
    try:
        assert comes_true(lambda: "configmap/kube-root-ca.crt" in notes(plane, alice))
    finally:
        plane.kubectl("delete", "rolebinding/alice-reads", "role/reader")


@pytest.mark.parametrize("proof", Proof)
def test_the_administrator_gets_in_both_ways(plane: ControlPlane, proof: Proof) -> None:
    who = plane.kubectl("auth", "whoami", kubeconfig=plane.kubeconfig_for("admin", by=proof))
    assert "admin" in who
    assert "system:masters" in who


def test_a_certificate_is_for_anybody_in_any_groups(plane: ControlPlane) -> None:
    carol = plane.kubeconfig_for("carol:1/x", groups=("readers", "writers"), by=Proof.CERTIFICATE)
    who = plane.kubectl("auth", "whoami", kubeconfig=carol)
    assert all(word in who for word in ("carol:1/x", "readers", "writers"))


def test_users_without_a_token_are_told_how_to_get_in(plane: ControlPlane) -> None:
    assert "name them in Settings.users, or take a certificate" in refusal(
        lambda: plane.kubeconfig_for("mallory")
    )


def test_tokens_of_service_accounts_work(plane: ControlPlane) -> None:
    token = plane.kubectl("create", "token", "default").strip()
    stranger = plane.kubeconfig_for("nobody", by=Proof.CERTIFICATE)
    anonymous = stranger.with_name("anonymous.yaml")
    config: Raw = msgspec.yaml.decode(stranger.read_bytes())
    anonymous.write_bytes(
        msgspec.yaml.encode({**config, "users": [{"name": "nobody", "user": {"token": token}}]})
    )
    assert "system:serviceaccount:default:default" in plane.kubectl("auth", "whoami", kubeconfig=anonymous)


@pytest.mark.parametrize("proof", Proof)
def test_kubeconfigs_are_for_their_owner_alone(plane: ControlPlane, proof: Proof) -> None:
    assert plane.kubeconfig_for("admin", by=proof).stat().st_mode & 0o077 == 0


# --- a bad day


@pytest.mark.parametrize("program", [Program.APISERVER, Program.ETCD])
def test_what_was_written_survives_a_kill(plane: ControlPlane, program: Program) -> None:
    name = f"before-the-end-of-{program}"
    note(plane, name)
    before = plane.pid(program)
    plane.kill(program)
    ready_when_dead = plane.ready(program)
    plane.start(program)
    plane.wait(Program.APISERVER)
    assert not ready_when_dead
    assert plane.pid(program) != before
    assert f"configmap/{name}" in notes(plane)
    plane.kubectl("delete", "configmap", name)


@pytest.mark.parametrize("program", [Program.CONTROLLER_MANAGER, Program.SCHEDULER])
def test_the_others_can_be_killed_and_started_too(plane: ControlPlane, program: Program) -> None:
    plane.kill(program)
    ready_when_dead = plane.ready(program)
    plane.start(program)
    assert not ready_when_dead
    assert plane.ready(program)


def test_a_program_that_is_paused_answers_nobody_and_then_goes_on(plane: ControlPlane) -> None:
    before = plane.pid(Program.SCHEDULER)
    plane.pause(Program.SCHEDULER)
    state = Path(f"/proc/{before}/stat").read_text().rpartition(")")[2].split()[0]
    plane.resume(Program.SCHEDULER)
    assert state == "T"
    plane.wait(Program.SCHEDULER)
    assert plane.pid(Program.SCHEDULER) == before


def test_a_restored_snapshot_goes_back_in_time(plane: ControlPlane) -> None:
    note(plane, "older")
    snapshot = plane.snapshot()
    note(plane, "newer")
    plane.kubectl("delete", "configmap", "older")
    assert "configmap/newer" in notes(plane)
    plane.restore(snapshot)
    assert "configmap/older" in notes(plane)
    assert "configmap/newer" not in notes(plane)
    plane.kubectl("delete", "configmap", "older")


def test_a_snapshot_disturbs_nobody(plane: ControlPlane) -> None:
    ids = [plane.pid(program) for program in Program]
    plane.snapshot()
    note(plane, "afterwards")
    plane.kubectl("delete", "configmap", "afterwards")
    assert [plane.pid(program) for program in Program] == ids


def test_a_program_outlives_the_event_loop_that_restarted_it(plane: ControlPlane) -> None:
    async def restart() -> float:
        loop = asyncio.get_running_loop()
        plane.kill(Program.SCHEDULER)
        began = loop.time()
        starting = asyncio.create_task(plane.aside(partial(plane.start, Program.SCHEDULER)))
        await asyncio.wait([starting], timeout=0)
        blocked = loop.time() - began
        await starting
        return blocked

    assert asyncio.run(restart()) < 0.1
    assert not comes_true(lambda: not plane.ready(Program.SCHEDULER), seconds=0.5)


# --- who wrote what


def test_writes_are_counted_by_who_made_them(plane: ControlPlane) -> None:
    def written() -> list[tuple[str, str, int]]:
        return [
            (one.verb, one.resource, one.code)
            for one in plane.audited()
            if (one.name, one.user) == ("counted", "admin") and one.verb in WRITES
        ]

    note(plane, "counted")
    plane.kubectl("get", "configmap", "counted")
    plane.kubectl("delete", "configmap", "counted")
    assert written() == [("create", "configmaps", 201), ("delete", "configmaps", 200)]
