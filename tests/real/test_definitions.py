"""A real API server takes our definitions, keeps their rules, and is left alone where it must be."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import yaml

from jackfield.cli.clock import WallClock
from jackfield.codec import Raw, copied
from jackfield.codec.definitions import REVISION, SCHEMA, definitions
from jackfield.codec.encoding import encoded
from jackfield.kube.client import KubeCluster
from jackfield.kube.definitions import DEFINITIONS, Verdict, apply_definitions
from jackfield.model.composition import ComposabilityRequest, ComposableResource, ResourceState
from jackfield.model.meta import Condition, ObjectMeta
from jackfield.model.names import Time, Version
from jackfield.ports import Changed, Merge, Refused, Selection, Synced
from jackfield.testing import builders as b
from jackfield.testing.control_plane import ControlPlane
from real import accounts
from real.accounts import put, with_cluster
from real.waiting import comes_true

NAMES = [str(one["metadata"]["name"]) for one in definitions()]
REQUESTS, RESOURCES = (f"/apis/cro.hpsys.ibm.ie.com/v1alpha1/{name.partition('.')[0]}" for name in NAMES)
MERGE = "application/merge-patch+json"


@pytest.fixture
def account(plane: ControlPlane, tmp_path: Path) -> Iterator[Path]:
    """The way in of our controllers, with their role and nothing else."""
    with accounts.controllers(plane, tmp_path) as kubeconfig:
        yield kubeconfig


def applied(kubeconfig: Path) -> tuple[Verdict, ...]:
    return with_cluster(kubeconfig, lambda cluster: apply_definitions(cluster, WallClock()))


def outcomes(kubeconfig: Path) -> list[str]:
    return [one.outcome.value for one in applied(kubeconfig)]


@pytest.fixture
def ours(plane: ControlPlane) -> Iterator[ControlPlane]:
    """A cluster with our definitions, and afterwards without any object of theirs."""
    applied(plane.kubeconfig)
    yield plane

    async def clean(cluster: KubeCluster) -> None:
        for path in (REQUESTS, RESOURCES):
            await cluster.raw("DELETE", path)

    with_cluster(plane.kubeconfig, clean)


@pytest.fixture
def disturbed(plane: ControlPlane) -> Iterator[ControlPlane]:
    """A cluster with our definitions, that has them again afterwards whatever became of them."""
    applied(plane.kubeconfig)
    yield plane
    put(plane, *definitions())


# --- applying


def test_a_cluster_without_definitions_gets_them_from_who_may(disturbed: ControlPlane, account: Path) -> None:
    alice = disturbed.kubeconfig_for("alice")
    assert outcomes(alice) == ["unread", "unread"]
    disturbed.kubectl("delete", "customresourcedefinitions", *NAMES)
    verdicts = applied(alice)
    assert [one.outcome.value for one in verdicts] == ["forbidden", "forbidden"]
    assert all("jackfield crds | kubectl apply -f -" in str(one) for one in verdicts)
    assert outcomes(account) == ["applied", "applied"]
    assert comes_true(
        lambda: len(disturbed.kubectl("api-resources", "--categories=cohdi", "-oname").split()) == 2
    )


def test_nothing_is_written_where_nothing_changed(disturbed: ControlPlane, account: Path) -> None:
    async def twice(cluster: KubeCluster) -> list[tuple[str, str]]:
        await apply_definitions(cluster, WallClock())
        cluster.calls.clear()
        await apply_definitions(cluster, WallClock())
        return sorted(cluster.calls)

    del disturbed
    assert with_cluster(account, twice) == [("get", f"{DEFINITIONS}/{name}") for name in sorted(NAMES)]


def marked(mark: str) -> Raw:
    other: Raw = copied(definitions()[1])
    other["metadata"]["annotations"][SCHEMA] = mark
    return other


def test_an_older_one_of_ours_is_replaced_whoever_touched_it(disturbed: ControlPlane, account: Path) -> None:
    older = marked(f"{REVISION}.0")
    older["spec"]["names"]["shortNames"] = ["older"]
    put(disturbed, older)
    assert outcomes(account) == ["current", "applied"]
    assert comes_true(
        lambda: "cres" in disturbed.kubectl("api-resources", "--api-group=cro.hpsys.ibm.ie.com")
    )
    assert outcomes(account) == ["current", "current"]


def test_a_newer_one_is_left_alone(disturbed: ControlPlane, account: Path) -> None:
    put(disturbed, marked(f"{REVISION + 1}.0"))
    assert outcomes(account) == ["current", "kept"]


def test_anothers_that_drops_our_fields_is_left_alone_and_named(
    disturbed: ControlPlane, account: Path
) -> None:
    theirs: Raw = copied(definitions()[1])
    del theirs["metadata"]["annotations"], theirs["spec"]["versions"][0]["selectableFields"]
    schema = theirs["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    del schema["status"]["properties"]["conditions"]
    disturbed.kubectl("replace", "--filename=-", text=yaml.safe_dump(theirs))
    _, verdict = applied(account)
    assert [(one.path, one.what) for one in verdict.lacks] == [
        ("spec.target_node", "cannot be selected by"),
        ("status.conditions", "is dropped"),
    ]
    assert "kubectl apply" in str(verdict)
    # What the sentence says helps.
    disturbed.kubectl("apply", "--filename=-", text=yaml.safe_dump_all(definitions()))
    assert outcomes(account) == ["current", "current"]


# --- what they take and refuse


def wish(**fields: object) -> Raw:
    return {"resource": {"type": "gpu", "model": "A100", "size": 1, **fields}}


def new(kind: str, spec: Raw, name: str = "one") -> Raw:
    return {
        "apiVersion": "cro.hpsys.ibm.ie.com/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }


REQUEST_CASES: dict[str, tuple[Raw, str]] = {
    "as CoHDI's scaler writes it": (wish(target_node="n1"), ""),
    "of nothing": (wish(size=0), ""),
    "another type and policy": (wish(type="dpu", allocation_policy="roundrobin"), ""),
    "another policy with a node": (wish(allocation_policy="roundrobin", target_node="n1"), ""),
    "differentnode": (wish(allocation_policy="differentnode", target_node=""), ""),
    "differentnode with a node": (
        wish(allocation_policy="differentnode", target_node="n1"),
        "cannot have a target_node",
    ),
    "no model": (wish(model=""), "spec.resource.model"),
    "less than nothing": (wish(size=-1), "spec.resource.size"),
    "no type": (wish(type=""), "spec.resource.type"),
    "no policy at all": (wish(allocation_policy="any"), "Unsupported value"),
    "no size": ({"resource": {"type": "gpu", "model": "A100"}}, "spec.resource.size: Required value"),
    "nothing said": ({}, "spec.resource: Required value"),
}


@pytest.mark.parametrize(("spec", "refusal"), REQUEST_CASES.values(), ids=REQUEST_CASES)
def test_a_request_is_judged_as_cohdis_webhook_judges_one_object(
    ours: ControlPlane, spec: Raw, refusal: str
) -> None:
    body = new("ComposabilityRequest", spec)

    async def scene(cluster: KubeCluster) -> Raw:
        return await cluster.raw("POST", REQUESTS, body)

    if refusal:
        with pytest.raises(Refused, match=refusal):
            with_cluster(ours.kubeconfig, scene)
    else:
        made = with_cluster(ours.kubeconfig, scene)
        assert made["spec"]["resource"].items() >= spec["resource"].items()
        assert made["spec"]["resource"]["allocation_policy"]


def test_a_requests_name_must_do_as_a_label(ours: ControlPlane) -> None:
    body = new("ComposabilityRequest", wish(), "x" * 64)
    with pytest.raises(Refused, match="at most 63 characters"):
        with_cluster(ours.kubeconfig, lambda one: one.raw("POST", REQUESTS, body))


CHANGES: dict[str, tuple[Raw, str]] = {
    "another node": ({"spec": {"target_node": "n2"}}, "the node of a resource never changes"),
    "another model": ({"spec": {"model": "B200"}}, "the model of a resource never changes"),
    "another type": ({"spec": {"type": "dpu"}}, "the type of a resource never changes"),
    "no node": ({"spec": {"target_node": None}}, "spec.target_node: Required value"),
    "force": ({"spec": {"force_detach": True}}, ""),
    "annotations": ({"metadata": {"annotations": {"cohdi.io/last-used-time": "x"}}}, ""),
}


@pytest.mark.parametrize(("change", "refusal"), CHANGES.values(), ids=CHANGES)
def test_a_resource_never_changes_what_it_is_for(ours: ControlPlane, change: Raw, refusal: str) -> None:
    async def scene(cluster: KubeCluster) -> None:
        spec = {"type": "gpu", "model": "A100", "target_node": "n1"}
        await cluster.raw("POST", RESOURCES, new("ComposableResource", spec))
        await cluster.raw("PATCH", f"{RESOURCES}/one", change, content_type=MERGE)

    if refusal:
        with pytest.raises(Refused, match=refusal):
            with_cluster(ours.kubeconfig, scene)
    else:
        with_cluster(ours.kubeconfig, scene)


def test_a_resource_goes_through_its_states_and_never_back(ours: ControlPlane) -> None:
    async def scene(cluster: KubeCluster) -> list[tuple[str, str]]:
        spec = {"type": "gpu", "model": "", "target_node": ""}
        await cluster.raw("POST", RESOURCES, new("ComposableResource", spec))
        refused = []
        for number, state in enumerate(ResourceState):
            await _say(cluster, state.value)
            for earlier in list(ResourceState)[:number]:
                try:
                    await _say(cluster, earlier.value)
                except Refused:
                    refused.append((state.value, earlier.value))
        await _say(cluster, "a state of somebody else")
        return refused

    states = [one.value for one in ResourceState]
    assert with_cluster(ours.kubeconfig, scene) == [
        (late, early) for number, late in enumerate(states) for early in states[:number]
    ]


async def _say(cluster: KubeCluster, state: str) -> None:
    await cluster.raw("PATCH", f"{RESOURCES}/one/status", {"status": {"state": state}}, content_type=MERGE)


# --- what we write comes back whole

SEEN = Condition("Visible", "True", "Visible", "seen", Time("2026-01-01T00:00:00Z"))
WRITTEN: list[ComposabilityRequest | ComposableResource] = [
    b.request({"a100-1": "c"}, name="one"),
    b.request(3, name="two"),
    *(b.resource("a100-1", state=state, conditions=(SEEN,), error="x" * 5000) for state in ResourceState),
]


@pytest.mark.parametrize("written", WRITTEN, ids=lambda one: f"{type(one).__name__}-{one.status.state}")
def test_what_we_write_comes_back_whole(
    ours: ControlPlane, written: ComposabilityRequest | ComposableResource
) -> None:
    meta = written.metadata
    bare = ObjectMeta(name=meta.name, labels=meta.labels, annotations=meta.annotations)

    async def scene(cluster: KubeCluster) -> ComposabilityRequest | ComposableResource:
        await cluster.create(msgspec.structs.replace(written, metadata=bare))
        body = {"status": encoded(written.status)}
        await cluster.write(Merge(type(written), written.key, Version(""), body, status=True))
        return await cluster.read(type(written), written.key)

    found = with_cluster(ours.kubeconfig, scene)
    assert found.spec == written.spec
    assert found.status == written.status
    assert found.metadata.annotations == meta.annotations


def test_a_node_sees_its_own_resources_alone(ours: ControlPlane) -> None:
    async def scene(cluster: KubeCluster) -> list[str]:
        for number, node in enumerate(("n1", "n2", "n1")):
            spec = {"type": "gpu", "model": "A100", "target_node": node}
            await cluster.raw("POST", RESOURCES, new("ComposableResource", spec, f"r{number}"))
        seen: list[str] = []
        async for change in cluster.watch(ComposableResource, Selection(fields={"spec.target_node": "n1"})):
            if isinstance(change, Synced):
                return seen
            assert isinstance(change, Changed)
            seen.append(change.object.metadata.name)
        return seen

    assert with_cluster(ours.kubeconfig, scene) == ["r0", "r2"]
