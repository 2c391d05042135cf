"""GPU sharing on a real API server and a real scheduler: what we publish is taken, and what we ask for is given.

No kubelet is here: what is seen is who gets what. Plain pods that say `nvidia.com/gpu: 1` are the real scheduler's
business alone.
"""

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from jackfield.codec import decode
from jackfield.codec.encoding import encode
from jackfield.core import offer as slices
from jackfield.core import share
from jackfield.core.share import Partitions, Shares, Sharing, Source
from jackfield.model.claim import ResourceClaim
from jackfield.model.names import NodeName
from jackfield.model.slice import ResourceSlice
from jackfield.testing.control_plane import ControlPlane, fake_node
from jackfield.testing.nvidia import Gpus
from real.waiting import comes_true

EXAMPLE = Path(__file__).parents[2] / "examples" / "gpu-sharing"
DRIVER = "node.jackfield.dev"
NODE = "gpu-node"


def example() -> slices.Pool:
    """Return what the example's driver publishes."""
    spec = importlib.util.spec_from_file_location("gpu_sharing", EXAMPLE / "driver.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (pool,) = module.everything().pools()
    assert isinstance(pool, slices.Pool)
    return pool


def publish(plane: ControlPlane, pool: slices.Pool, node: str = NODE) -> list[str]:
    """Create the pool's slices; return their names."""
    steps = slices.steps(slices.Publisher(DRIVER, NodeName(node)), (pool,), ())
    made = [one.slice for one in steps if isinstance(one, slices.Create)]
    for one in made:
        plane.kubectl("create", "--filename=-", text=msgspec.json.encode(encode(one)).decode())
    return [one.metadata.name for one in made]


def claims(plane: ControlPlane) -> Iterator[ResourceClaim]:
    """Yield all claims, as they are."""
    listed = msgspec.json.decode(
        plane.kubectl("get", "resourceclaims", "--output=json"), type=dict[str, object]
    )
    for one in msgspec.convert(listed["items"], list[dict[str, object]]):
        yield decode(ResourceClaim, msgspec.json.encode(one))


def bound(plane: ControlPlane, *pods: str) -> bool:
    nodes = [plane.kubectl("get", "pod", one, "--output=jsonpath={.spec.nodeName}") for one in pods]
    return set(nodes) == {NODE}


def test_everything_in_the_example_is_given_and_plain_pods_get_a_claim_of_their_own(
    fresh: ControlPlane,
) -> None:
    with fresh.api() as api:
        fake_node(api, NODE, {})
    publish(fresh, example())
    for name in ("classes", "partition", "shares", "mps", "plain"):
        fresh.kubectl("create", f"--filename={EXAMPLE / name}.yaml")
    pods = ("quarter-1", "quarter-2", "sharing-small", "sharing-large", "side-by-side", "plain")
    assert comes_true(lambda: bound(fresh, *pods), seconds=60)
    found = {one.metadata.name: one for one in claims(fresh)}
    plain = [one for name, one in found.items() if name.startswith("plain-extended-resources-")]
    assert [len(one.results) for one in plain] == [1]
    given = [result.device for one in found.values() for result in one.results if not result.share_id]
    assert len(given) == len(set(given)) == 4
    small, large = (found[name].results[0] for name in ("small-share", "large-share"))
    assert small.device == large.device
    assert dict(small.consumed_capacity) == {"memory": "3Gi", "shares": "1"}
    assert dict(large.consumed_capacity) == {"memory": "12Gi", "shares": "4"}


@pytest.mark.parametrize("sharing", [Sharing(Partitions.ON_DEMAND, Shares()), Sharing(Partitions.ON_DEMAND)])
def test_all_partitions_of_eight_gpus_are_valid_for_the_api_server(
    plane: ControlPlane, sharing: Sharing
) -> None:
    gpus = Gpus.of("NVIDIA A100-SXM4-40GB", 8).gpus()
    offers = [share.offer(Source(f"gpu-{index}", gpu), sharing) for index, gpu in enumerate(gpus)]
    pool = slices.Pool(
        tuple(device for one in offers for device in one.devices),
        tuple(counters for one in offers for counters in one.counters),
    )
    names = publish(plane, pool, "eight-gpus")
    try:
        stored = [
            decode(ResourceSlice, plane.kubectl("get", "resourceslice", one, "--output=json").encode())
            for one in names
        ]
        assert sum(len(one.spec.devices) for one in stored) == 208
        assert sum(len(one.spec.shared_counters) for one in stored) == 8
        assert all(device.consumes_counters for one in stored for device in one.spec.devices)
    finally:
        plane.kubectl("delete", "resourceslices", *names)
