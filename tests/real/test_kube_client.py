"""The client on a real API server: certificates, tokens, long lists, and servers that end, stop or go back in time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest
import yaml

from jackfield.kube.answers import Unserved
from jackfield.kube.client import KubeCluster
from jackfield.kube.connection import load
from jackfield.kube.reflector import PAGE_OBJECTS
from jackfield.model.lease import Lease
from jackfield.model.meta import Object, ObjectMeta
from jackfield.model.names import Key, Version
from jackfield.model.node import Node
from jackfield.model.taint import DeviceTaintRule
from jackfield.ports import Change, Changed, Deleted, Gone, Refused, Retry, Rewound, Selection, Synced
from jackfield.testing.control_plane import ControlPlane, Program, Proof

Use = Callable[[KubeCluster], Awaitable[None]]
ANY: Final = Version("")
LOST: Final = 1_000
PATIENCE_SECONDS: Final = 90.0
OURS: Final = Selection("default", labels={"jackfield.dev/test": "client"})


def use(kubeconfig: Path, call: Use) -> None:
    async def main() -> None:
        async with KubeCluster(load(kubeconfig)) as cluster:
            await asyncio.wait_for(call(cluster), PATIENCE_SECONDS)

    asyncio.run(main())


def lease(name: str) -> Lease:
    return Lease(metadata=ObjectMeta(name=name, namespace="default", labels=OURS.labels))


async def clear(cluster: KubeCluster) -> None:
    keys, _ = await synced(cluster.watch(Lease, OURS))
    for key in sorted(keys):
        await cluster.delete(Lease, key, ANY)


async def synced(changes: AsyncIterator[Change]) -> tuple[frozenset[Key], list[str]]:
    """Return what there is, by Synced and as it was told."""
    told: list[str] = []
    async for change in changes:
        if isinstance(change, Synced):
            return change.keys, told
        assert isinstance(change, Changed)
        told.append(change.object.metadata.name)
    raise AssertionError


async def names(changes: AsyncIterator[Change], count: int) -> list[str]:
    found: list[str] = []
    while len(found) < count:
        change = await anext(changes)
        match change:
            case Changed(object=one):
                found.append(f"+{one.metadata.name}")
            case Deleted(object=one):
                found.append(f"-{one.metadata.name}")
            case Synced(keys=keys):
                found.append(f"={','.join(sorted(key.name for key in keys))}")
    return found


async def created(cluster: KubeCluster, new: Object) -> None:
    """Create it, as often as it takes."""
    while True:
        try:
            await cluster.create(new)
        except Retry as retry:
            await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=min(retry.after, 0.5))
        else:
            return


# --- who we are, and who the server is


@pytest.mark.parametrize("proof", Proof)
def test_tokens_and_certificates_are_believed(plane: ControlPlane, proof: Proof) -> None:
    async def call(cluster: KubeCluster) -> None:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        found = await cluster.raw("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
        assert found["status"]["userInfo"]["username"] == "alice"
        with pytest.raises(Refused, match="alice"):
            await cluster.read(Node, Key("", "n"))
        with pytest.raises(Refused, match="alice"):
            await anext(cluster.watch(Node))

    use(plane.kubeconfig_for("alice", by=proof), call)


def changed(kubeconfig: Path, folder: Path, **cluster: object) -> Path:
    raw = yaml.safe_load(kubeconfig.read_text())
    one = raw["clusters"][0]["cluster"]
    one.update({name.replace("_", "-"): value for name, value in cluster.items()})
    for name in [name for name, value in one.items() if value is None]:
        del one[name]
    path = folder / "changed"
    path.write_text(yaml.safe_dump(raw))
    return path


def test_a_server_with_another_certificate_is_refused(plane: ControlPlane, tmp_path: Path) -> None:
    async def refused(cluster: KubeCluster) -> None:
        with pytest.raises(Refused, match="certificate"):
            await cluster.read(Node, Key("", "n"))

    async def accepted(cluster: KubeCluster) -> None:
        with pytest.raises(Gone):
            await cluster.read(Node, Key("", "no-such-node"))

    other: dict[str, object] = {"certificate_authority": None, "certificate_authority_data": None}
    use(changed(plane.kubeconfig, tmp_path, **other), refused)
    use(changed(plane.kubeconfig, tmp_path, **other, insecure_skip_tls_verify=True), accepted)
    use(changed(plane.kubeconfig, tmp_path, tls_server_name="somebody.else"), refused)
    use(changed(plane.kubeconfig, tmp_path, tls_server_name="127.0.0.1"), accepted)


def test_a_kind_that_is_not_served_is_told_from_an_object_that_is_not_there(plane: ControlPlane) -> None:
    async def call(cluster: KubeCluster) -> None:
        assert await cluster.serves(Lease)
        assert await cluster.serves(Node)
        served = await cluster.serves(DeviceTaintRule)
        with pytest.raises(Gone if served else Unserved):
            await cluster.read(DeviceTaintRule, Key("", "r"))
        with pytest.raises(Gone):
            await cluster.read(Lease, Key("default", "no-such-lease"))
        with pytest.raises(Gone, match="namespaces"):
            await cluster.create(Lease(metadata=ObjectMeta(name="l", namespace="no-such-namespace")))

    use(plane.kubeconfig, call)


# --- lists and watches


def test_a_list_of_many_pages_is_whole(plane: ControlPlane) -> None:
    count = 2 * PAGE_OBJECTS + 7

    async def call(cluster: KubeCluster) -> None:
        await clear(cluster)
        await asyncio.gather(*(cluster.create(lease(f"many-{number}")) for number in range(count)))
        keys, told = await synced(cluster.watch(Lease, OURS))
        assert len(keys) == len(told) == count
        await asyncio.gather(*(cluster.delete(Lease, key, ANY) for key in sorted(keys)))

    use(plane.kubeconfig, call)


def test_a_watch_outlives_its_server(plane: ControlPlane) -> None:
    async def call(cluster: KubeCluster) -> None:
        await clear(cluster)
        changes = cluster.watch(Lease, OURS)
        assert await names(changes, 1) == ["="]
        await cluster.create(lease("before"))
        assert await names(changes, 1) == ["+before"]
        await plane.aside(lambda: plane.kill(Program.APISERVER))
        with pytest.raises(Retry):
            await cluster.create(lease("while"))
        waiting = asyncio.ensure_future(names(changes, 1))
        await plane.aside(lambda: plane.start(Program.APISERVER))
        await created(cluster, lease("after"))
        long_ago = {"watch": "true", "resourceVersion": "1", "timeoutSeconds": "5"}
        told = await cluster.raw("GET", "/api/v1/nodes", params=long_ago)
        assert (told["type"], told["object"]["code"]) == ("ERROR", 410)
        first = await waiting
        # A server that has just begun may not know versions from before its time; then all is told anew.
        heard = first if "+after" in first else [*first, *await until(changes, "+after")]
        assert not any(one.startswith("-") for one in heard)
        await clear(cluster)

    use(plane.kubeconfig, call)


async def until(changes: AsyncIterator[Change], name: str) -> list[str]:
    found: list[str] = []
    while name not in found:
        found += await names(changes, 1)
    return found


def test_a_server_that_stands_still_is_given_up_in_time(plane: ControlPlane) -> None:
    async def call(cluster: KubeCluster) -> None:
        await clear(cluster)
        plane.pause(Program.APISERVER)
        begun = asyncio.get_running_loop().time()
        try:
            with pytest.raises(Retry, match="no answer in time") as caught:
                await cluster.read(Lease, Key("default", "l"))
        finally:
            plane.resume(Program.APISERVER)
        assert isinstance(caught.value.__cause__, TimeoutError)
        assert asyncio.get_running_loop().time() - begun < 40
        with pytest.raises(Gone):
            await cluster.read(Lease, Key("default", "l"))

    use(plane.kubeconfig, call)


def test_a_server_that_went_back_in_time_is_believed(fresh: ControlPlane) -> None:
    plane = fresh  # on what other tests left behind Kubernetes would write more than is lost

    async def call(cluster: KubeCluster) -> None:
        await clear(cluster)
        await cluster.create(lease("kept"))
        snapshot = await plane.aside(plane.snapshot)
        # More than a control plane writes when it starts: else nobody could tell one time from the other.
        await asyncio.gather(*(cluster.create(lease(f"lost-{number}")) for number in range(LOST)))
        changes = cluster.watch(Lease, OURS)
        keys, _ = await synced(changes)
        assert len(keys) == 1 + LOST
        await cluster.create(lease("last"))
        assert await names(changes, 1) == ["+last"]
        await plane.aside(lambda: plane.restore(snapshot))
        with pytest.raises(Rewound):
            await names(changes, 1)
        keys, _ = await synced(cluster.watch(Lease, OURS))
        assert [one.name for one in keys] == ["kept"]
        await clear(cluster)

    use(plane.kubeconfig, call)
