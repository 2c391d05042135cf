"""Kr8s does with the embedded API what it does with a real one."""

import asyncio

import kr8s
import kr8s.asyncio
import pytest
from kr8s.asyncio.objects import ConfigMap, Node, Pod, new_class

POD = {
    "metadata": {"name": "p", "namespace": "default", "labels": {"app": "x"}},
    "spec": {"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "i"}]},
}
Resource = new_class(
    "ComposableResource", "cro.hpsys.ibm.ie.com/v1alpha1", namespaced=False, plural="composableresources"
)


def test_it_creates_lists_patches_and_deletes(kubeconfig: str) -> None:
    async def story() -> None:
        api = await kr8s.asyncio.api(kubeconfig=kubeconfig)
        pod = await Pod(POD, api=api)
        await pod.create()
        assert [one.name async for one in api.get("pods", namespace="default", label_selector="app=x")] == [
            "p"
        ]
        await pod.patch({"metadata": {"labels": {"b": "1"}}})
        assert pod.labels == {"app": "x", "b": "1"}
        await pod.patch([{"op": "remove", "path": "/metadata/labels/b"}], type="json")
        assert pod.labels == {"app": "x"}
        await pod.label(c="2")
        await pod.annotate({"note": "words"})
        assert pod.annotations == {"note": "words"}
        await pod.delete(grace_period=0)
        await pod.wait("delete", timeout=10)
        assert not await pod.exists()
        with pytest.raises(kr8s.NotFoundError):
            await Pod.get("p", namespace="default", api=api)

    asyncio.run(story())


def test_it_watches_and_waits_for_conditions(kubeconfig: str) -> None:
    async def story() -> None:
        api = await kr8s.asyncio.api(kubeconfig=kubeconfig)
        node = await Node({"metadata": {"name": "n"}}, api=api)
        await node.create()
        ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        waiting = asyncio.ensure_future(node.wait("condition=Ready", timeout=15))
        await node.patch(ready, subresource="status")
        await waiting
        told = []
        async for kind, one in api.watch("nodes"):
            told.append((kind, one.name))
            if kind == "ADDED":
                await node.cordon()
            if kind == "MODIFIED":
                assert one.raw["spec"]["unschedulable"]
                await node.delete()
            if kind == "DELETED":
                break
        assert told == [("ADDED", "n"), ("MODIFIED", "n"), ("DELETED", "n")]

    asyncio.run(story())


def test_it_finds_our_own_kinds_by_discovery(kubeconfig: str) -> None:
    async def story() -> None:
        api = await kr8s.asyncio.api(kubeconfig=kubeconfig)
        spec = {"type": "gpu", "model": "A100", "target_node": "n"}
        resource = await Resource({"metadata": {"name": "r"}, "spec": spec}, api=api)
        await resource.create()
        found = [one async for one in api.get("composableresources.cro.hpsys.ibm.ie.com")]
        assert [one.spec.model for one in found] == ["A100"]
        await resource.patch({"status": {"state": "Online"}}, subresource="status")
        assert resource.status.state == "Online"
        kinds = {one["kind"] for one in await api.api_resources()}
        assert {"Pod", "ResourceClaim", "ComposableResource"} <= kinds
        assert (await api.version())["major"] == "1"

    asyncio.run(story())


def test_many_objects_come_in_pages(kubeconfig: str) -> None:
    async def story() -> None:
        api = await kr8s.asyncio.api(kubeconfig=kubeconfig)
        for number in range(120):
            data = {"metadata": {"name": f"m{number:03}", "namespace": "default"}}
            await (await ConfigMap(data, api=api)).create()
        found = [one.name async for one in api.get("configmaps", namespace="default")]
        assert found == [f"m{number:03}" for number in range(120)]

    asyncio.run(story())
