"""A claim's whole life where nothing of Kubernetes is simulated: from the pool into a container, and back.

The scheduler, the kubelet and containerd are real, so are our three programs; a machine's PCI bus is a folder, and the
command of the fabric manager puts cards into it.
"""

import sys
from collections.abc import Iterator

import pytest

from jackfield.codec import Raw
from jackfield.model.composition import VISIBLE
from jackfield.model.policy import DRIVER, READY
from jackfield.testing.control_plane import (
    ControlPlane,
    ControlPlaneError,
    NodeProgram,
    NodeSettings,
    RealNode,
)
from real.pods import create, delete, pod, status
from real.rack import CARDS, CLASS, FABRIC, Rack, built

pytestmark = pytest.mark.node

WORDS = "env | grep ^JACKFIELD_DEVICE_ | sort; stat -c '%n %t:%T' /dev/nvidia*; head -c 4 /dev/nvidia* | od -An -tx1"
LINES = 4
SPEC: Raw = {
    "devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": CLASS["metadata"]["name"]}}]}
}
CLAIM: Raw = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "shared"},
    "spec": SPEC,
}
TEMPLATE: Raw = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "a-gpu"},
    "spec": {"spec": SPEC},
}


@pytest.fixture(scope="module")
def node(plane: ControlPlane) -> Iterator[RealNode]:
    """A node that tries again soon what has failed: by default a kubelet waits for more than a minute."""
    settings = NodeSettings(kubelet={"syncFrequency": "2s"})
    try:
        with RealNode(plane, "gpu-node", settings) as started:
            yield started
    except ControlPlaneError as error:
        raise pytest.fail.Exception(f"there is no real node here: {error}", pytrace=False) from None


@pytest.fixture(scope="module")
def site(plane: ControlPlane, node: RealNode, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    """A rack for all tests of this file: each leaves it as it was."""
    with built(plane, node, tmp_path_factory.mktemp("rack")) as rack:
        create(plane, TEMPLATE)
        yield rack
        plane.kubectl("delete", "resourceclaimtemplate", "a-gpu")


@pytest.fixture
def rack(site: Rack) -> Iterator[Rack]:
    """The rack, with everything in the pool; also after the test."""
    yield site
    sys.stderr.write(site.report())  # shown if the test has failed
    site.node.resume(NodeProgram.KUBELET)
    site.plugin.start()
    site.plane.kubectl("delete", "pods", "--all")
    site.plane.kubectl("delete", "resourceclaims", "--all")
    site.until("everything is back in the pool", site.is_back)


def worker(name: str, *, claim: str = "", containers: int = 1) -> Raw:
    """Return a pod whose containers say which device they got, and stay; its claim is its own unless it is named."""
    source = {"resourceClaimName": claim} if claim else {"resourceClaimTemplateName": "a-gpu"}
    # With a moment of grace a pod is gone from the API only when the kubelet has done with it.
    made = pod(
        name, "/bin/sh", "-c", f"{WORDS}; exec sleep infinity", spec={"terminationGracePeriodSeconds": 1}
    )
    (first,) = made["spec"]["containers"]
    first["resources"] = {"claims": [{"name": "gpu"}]}
    made["spec"]["containers"] = [{**first, "name": f"c{number}"} for number in range(containers)]
    made["spec"]["resourceClaims"] = [{"name": "gpu", **source}]
    return made


def runs(rack: Rack, name: str) -> None:
    """Wait until all containers of a pod run."""

    def all_run() -> bool:
        found = status(rack.plane, name).get("containerStatuses", ())
        return bool(found) and all("running" in one["state"] for one in found)

    rack.until(f"pod {name} runs", all_run)


def told(rack: Rack, name: str, container: str = "c0") -> list[str]:
    """Return what a container said of its device, when it has said all."""

    def lines() -> list[str]:
        return rack.plane.kubectl("logs", name, f"--container={container}").splitlines()

    rack.until(f"{container} of {name} has said all", lambda: len(lines()) == LINES)
    return lines()


def said_of(rack: Rack, card: str) -> list[str]:
    """Return what a container with a card has to say."""
    name = f"JACKFIELD_DEVICE_A100_{card.upper().replace('-', '_')}"
    return [
        f"{name}={rack.slots.uuid(card)}",
        f"{name}_ADDRESS={CARDS[card].address}",
        f"/dev/nvidia{CARDS[card].minor} 1:5",
        " 00 00 00 00",
    ]


def comes_back(rack: Rack) -> None:
    """Wait until everything is back in the pool; nothing is left on the node, and nobody was torn away from it."""
    rack.until("everything is back in the pool", rack.is_back)
    assert rack.specs() == []
    assert rack.slots.torn_out == []
    assert rack.offered() == ["a100-gpu-1", "a100-gpu-2"]


def the_only(objects: list[Raw]) -> Raw:
    (one,) = objects
    return one


def conditions(of: Raw) -> dict[str, str]:
    return {one["type"]: one["status"] for one in of.get("conditions", ())}


def restarts(rack: Rack, name: str) -> list[int]:
    return [one["restartCount"] for one in status(rack.plane, name)["containerStatuses"]]


# --- a good day


def test_a_pod_gets_a_device_out_of_the_pool_and_gives_it_back(rack: Rack) -> None:
    create(rack.plane, worker("train"))
    runs(rack, "train")
    seen = the_only(rack.listed("composableresources"))["status"]
    assert (seen["state"], conditions(seen)[VISIBLE]) == ("Online", "True")
    claim = the_only(rack.listed("resourceclaims"))["status"]
    result = the_only(claim["allocation"]["devices"]["results"])
    assert (result["driver"], result["pool"]) == (DRIVER, FABRIC)
    assert conditions(the_only(claim["devices"]))[READY] == "True"
    (card,) = rack.attached()
    assert result["device"] == f"a100-{card}"
    assert rack.slots.on_bus == (card,)
    assert len(rack.specs()) == 1
    assert told(rack, "train") == said_of(rack, card)
    delete(rack.plane, "train")
    comes_back(rack)


def test_all_containers_of_a_pod_get_the_device_of_their_one_claim(rack: Rack) -> None:
    create(rack.plane, worker("pair", containers=2))
    runs(rack, "pair")
    (card,) = rack.attached()
    assert [told(rack, "pair", one) for one in ("c0", "c1")] == [said_of(rack, card)] * 2
    delete(rack.plane, "pair")
    comes_back(rack)


def test_a_device_stays_until_the_last_pod_of_its_claim_has_gone(rack: Rack) -> None:
    create(rack.plane, CLAIM, worker("first", claim="shared"), worker("second", claim="shared"))
    for name in ("first", "second"):
        runs(rack, name)
    (card,) = rack.attached()
    assert [told(rack, one) for one in ("first", "second")] == [said_of(rack, card)] * 2
    delete(rack.plane, "first")
    # Whoever comes now is given the same device: it was never on its way out.
    create(rack.plane, worker("third", claim="shared"))
    runs(rack, "third")
    assert told(rack, "third") == said_of(rack, card)
    delete(rack.plane, "second", "third")
    comes_back(rack)


# --- a bad day


def test_a_plugin_that_dies_before_it_prepares_what_is_bound_does_so_when_it_is_back(rack: Rack) -> None:
    rack.node.pause(NodeProgram.KUBELET)
    create(rack.plane, worker("waits"))
    rack.until("the pod is bound", lambda: bool(the_only(rack.listed("pods"))["spec"].get("nodeName")))
    rack.plugin.kill()
    rack.node.resume(NodeProgram.KUBELET)
    assert rack.specs() == []
    rack.starts_plugin()
    runs(rack, "waits")
    assert told(rack, "waits") == said_of(rack, *rack.attached())
    delete(rack.plane, "waits")
    comes_back(rack)


def test_a_device_is_not_taken_from_a_pod_that_ended_while_the_plugin_was_dead_until_it_is_unprepared(
    rack: Rack,
) -> None:
    create(rack.plane, worker("ends"))
    runs(rack, "ends")
    (card,) = rack.attached()
    rack.plugin.kill()
    rack.plane.kubectl("delete", "pod", "ends", "--wait=false")
    rack.until("its containers have ended", lambda: rack.node.containers() == ())
    assert (rack.slots.on_bus, len(rack.specs())) == ((card,), 1)
    rack.starts_plugin()
    comes_back(rack)


def test_a_pod_and_its_device_outlive_the_kubelet(rack: Rack) -> None:
    create(rack.plane, worker("outlives"))
    runs(rack, "outlives")
    (card,) = rack.attached()
    rack.node.kill(NodeProgram.KUBELET)
    rack.node.start(NodeProgram.KUBELET)
    runs(rack, "outlives")
    assert restarts(rack, "outlives") == [0]
    assert rack.slots.on_bus == (card,)
    delete(rack.plane, "outlives")
    comes_back(rack)


def test_with_a_damaged_checkpoint_nothing_is_let_go_before_the_kubelet_says_so(rack: Rack) -> None:
    create(rack.plane, worker("survives"))
    runs(rack, "survives")
    (card,) = rack.attached()
    rack.plugin.kill()
    rack.checkpoint.write_bytes(b"\0" * rack.checkpoint.stat().st_size)  # as after a power cut
    rack.starts_plugin()
    assert "checkpoint" in rack.plugin.tail()
    assert (restarts(rack, "survives"), rack.slots.on_bus) == ([0], (card,))
    delete(rack.plane, "survives")
    comes_back(rack)
