"""The embedded cluster behaves as the table says; `tests/real` holds a real API server to the same table."""

import asyncio
import random

import pytest

from conformance.cluster_objects import Behaviour
from conformance.cluster_table import BEHAVIOURS, PATIENCE_SECONDS
from jackfield.cluster.api import EmbeddedCluster
from jackfield.cluster.store import Store
from jackfield.model.names import Seconds


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda one: one.__name__)
def test_the_embedded_cluster_behaves_so(behaviour: Behaviour) -> None:
    cluster = EmbeddedCluster(Store(lambda: Seconds(1.7e9), random.Random("cluster")))  # noqa: S311 - no cryptography
    asyncio.run(asyncio.wait_for(behaviour(cluster), PATIENCE_SECONDS))
