"""The embedded cluster behaves as the table says, in memory and over HTTP; `tests/real` asks a real API server."""

import asyncio
import random
from pathlib import Path

import pytest

from conformance.cluster_objects import Behaviour
from conformance.cluster_table import BEHAVIOURS, PATIENCE_SECONDS
from jackfield.cli import up
from jackfield.cli.clock import WallClock
from jackfield.cluster.api import EmbeddedCluster
from jackfield.cluster.store import Store
from jackfield.kube.client import KubeCluster
from jackfield.kube.connection import load
from jackfield.model.account import ServiceAccount
from jackfield.model.names import Seconds


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda one: one.__name__)
def test_the_embedded_cluster_behaves_so(behaviour: Behaviour) -> None:
    cluster = EmbeddedCluster(Store(lambda: Seconds(1.7e9), random.Random("cluster")))  # noqa: S311 - no cryptography
    asyncio.run(asyncio.wait_for(behaviour(cluster), PATIENCE_SECONDS))


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda one: one.__name__)
def test_the_embedded_cluster_behaves_so_over_http(behaviour: Behaviour, tmp_path: Path) -> None:
    async def tried() -> None:
        clock = WallClock()
        store = up.new_store(clock)
        for namespace in ("default", "kube-system"):
            store.create(ServiceAccount, {"metadata": {"name": "default", "namespace": namespace}})
        async with up.serving(store, clock) as server:
            path = tmp_path / "kubeconfig"
            path.write_bytes(up.way_in(server))
            async with KubeCluster(load(path)) as cluster:
                await asyncio.wait_for(behaviour(cluster), PATIENCE_SECONDS)

    asyncio.run(tried())
