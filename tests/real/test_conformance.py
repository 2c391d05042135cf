"""A real API server behaves as the table says, to which the embedded cluster is held as well."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from conformance.cluster_objects import Behaviour
from conformance.cluster_table import BEHAVIOURS, PATIENCE_SECONDS
from jackfield.cli.clock import WallClock
from jackfield.kube import definitions
from jackfield.kube.client import KubeCluster
from jackfield.kube.connection import load
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposabilityRequest, ComposableResource
from jackfield.model.meta import Object
from jackfield.model.names import Version
from jackfield.model.pod import Pod
from jackfield.model.slice import ResourceSlice
from jackfield.ports import Changed, Gone, Merge, Synced
from jackfield.testing.control_plane import ControlPlane, Snapshot

TOUCHED: Final[tuple[type[Object], ...]] = (
    ComposableResource,
    ComposabilityRequest,
    ResourceSlice,
    ResourceClaim,
    Pod,
)
"""The kinds that behaviours are about; none of these objects may be there before."""


@pytest.fixture(scope="module")
def prepared(plane: ControlPlane, empty: Snapshot) -> Path:
    """An API server that knows CoHDI's two kinds, and has no nodes that pods could be bound to."""
    plane.restore(empty)

    async def main() -> None:
        async with KubeCluster(load(plane.kubeconfig)) as cluster:
            await definitions.apply_definitions(cluster, WallClock())

    asyncio.run(main())
    return plane.kubeconfig


@asynccontextmanager
async def swept(kubeconfig: Path) -> AsyncIterator[KubeCluster]:
    async with KubeCluster(load(kubeconfig)) as cluster:
        await sweep(cluster)
        try:
            yield cluster
        finally:
            await sweep(cluster)


async def sweep(cluster: KubeCluster) -> None:
    for kind in TOUCHED:
        async for change in cluster.watch(kind):
            if isinstance(change, Synced):
                break
            assert isinstance(change, Changed)
            await remove(cluster, change.object)


async def remove(cluster: KubeCluster, one: Object) -> None:
    kind, anyhow = type(one), Version("")
    try:
        if one.metadata.finalizers:
            await cluster.write(Merge(kind, one.key, anyhow, {"metadata": {"finalizers": None}}))
        if kind is Pod:
            path = f"/api/v1/namespaces/{one.metadata.namespace}/pods/{one.metadata.name}"
            await cluster.raw("DELETE", path, params={"gracePeriodSeconds": "0"})
        else:
            await cluster.delete(kind, one.key, anyhow)
    except Gone:
        return


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda one: one.__name__)
def test_a_real_api_server_behaves_so(prepared: Path, behaviour: Behaviour) -> None:
    async def main() -> None:
        async with swept(prepared) as cluster:
            await asyncio.wait_for(behaviour(cluster), PATIENCE_SECONDS)

    asyncio.run(main())
