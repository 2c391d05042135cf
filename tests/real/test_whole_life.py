"""A claim's whole life where nothing of Kubernetes is simulated: from the pool into a container, and back.

The scheduler, the kubelet and containerd are real, so are our three programs; a machine's PCI bus is a folder, and the
command of the fabric manager puts cards into it. Devices of ours are handed over by `bind`, those of a vendor's driver,
which is a stand-in on our kit, by `reschedule`.
"""

import sys
from collections.abc import Iterator

import pytest

from jackfield.model.composition import RELEASED, VISIBLE
from jackfield.model.node import HEARTBEATS
from jackfield.model.policy import DRIVER, READY, RESCHEDULE
from jackfield.testing.control_plane import (
    ControlPlane,
    ControlPlaneError,
    NodeProgram,
    NodeSettings,
    RealNode,
)
from jackfield.testing.sysfs import Process
from real.lives import (
    SHARED,
    TEMPLATES,
    claim,
    comes_back,
    conditions,
    restarts,
    runs,
    said_of,
    template,
    the_only,
    told,
    worker,
)
from real.pods import create, delete
from real.rack import FABRIC, Rack, built
from real.slots import CARDS, VENDORS
from real.test_driver_service import health_of
from real.vendor_driver import VENDOR

pytestmark = pytest.mark.node

(CARD,) = VENDORS
"""The one device of a vendor's in the pool."""


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
        create(plane, *map(template, TEMPLATES))
        leases = ("get", "leases", f"--namespace={HEARTBEATS}", "--output=name")
        rack.until("the node gives a sign of life", lambda: plane.kubectl(*leases) != "")
        yield rack
        plane.kubectl("delete", "resourceclaimtemplates", *TEMPLATES.values())


@pytest.fixture
def rack(site: Rack) -> Iterator[Rack]:
    """The rack, with everything in the pool; also after the test."""
    yield site
    sys.stderr.write(site.report())  # shown if the test has failed
    site.node.resume(NodeProgram.KUBELET)
    site.plugin.start()
    site.vendor.resume()
    site.vendor.start()
    site.plane.kubectl("delete", "pods", "--all")
    site.plane.kubectl("delete", "resourceclaims", "--all")
    site.until("everything is back in the pool", site.is_back)


# --- a good day


def test_a_pod_gets_a_device_out_of_the_pool_and_gives_it_back(rack: Rack) -> None:
    create(rack.plane, worker("train"))
    runs(rack, "train")
    seen = the_only(rack.listed("composableresources"))["status"]
    assert (seen["state"], conditions(seen)[VISIBLE]) == ("Online", "True")
    held = the_only(rack.listed("resourceclaims"))["status"]
    result = the_only(held["allocation"]["devices"]["results"])
    assert (result["driver"], result["pool"]) == (DRIVER, FABRIC)
    assert conditions(the_only(held["devices"]))[READY] == "True"
    (card,) = rack.attached()
    assert result["device"] == f"a100-{card}"
    assert rack.slots.on_bus == (card,)
    assert len(rack.specs()) == 1
    assert told(rack, "train") == said_of(rack, card)
    delete(rack.plane, "train")
    comes_back(rack)


def test_a_device_is_shown_as_healthy_while_the_node_sees_it_and_no_driver_lets_the_kubelet_ask_in_vain(
    rack: Rack,
) -> None:
    create(rack.plane, worker("train"))
    runs(rack, "train")
    rack.until("the pod's device is healthy", lambda: health_of(rack.plane, "train") == ["Healthy"])
    (card,) = rack.attached()
    rack.slots.loose.add(card)
    rack.until("the pod's device is not healthy", lambda: health_of(rack.plane, "train") == ["Unhealthy"])
    rack.slots.loose.discard(card)
    rack.until("the pod's device is healthy again", lambda: health_of(rack.plane, "train") == ["Healthy"])
    delete(rack.plane, "train")
    comes_back(rack)
    assert "code = Unimplemented" not in rack.node.log(NodeProgram.KUBELET)
    assert "Unsaid" not in rack.plugin.tail()


def test_all_containers_of_a_pod_get_the_device_of_their_one_claim(rack: Rack) -> None:
    create(rack.plane, worker("pair", containers=2))
    runs(rack, "pair")
    (card,) = rack.attached()
    assert [told(rack, "pair", one) for one in ("c0", "c1")] == [said_of(rack, card)] * 2
    delete(rack.plane, "pair")
    comes_back(rack)


def test_a_device_stays_until_the_last_pod_of_its_claim_has_gone(rack: Rack) -> None:
    create(rack.plane, claim(), worker("first", shares=True), worker("second", shares=True))
    for name in ("first", "second"):
        runs(rack, name)
    (card,) = rack.attached()
    assert [told(rack, one) for one in ("first", "second")] == [said_of(rack, card)] * 2
    delete(rack.plane, "first")
    # Whoever comes now is given the same device: it was never on its way out.
    create(rack.plane, worker("third", shares=True))
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


def test_a_plugin_that_dies_while_a_device_comes_and_while_it_goes_is_waited_for(rack: Rack) -> None:
    rack.plugin.kill()
    create(rack.plane, worker("brave"))
    rack.until("a card is in its slot", lambda: bool(rack.slots.taken))
    (card,) = rack.slots.taken
    assert not rack.slots.on_bus
    rack.starts_plugin()
    runs(rack, "brave")
    assert told(rack, "brave") == said_of(rack, card)
    user = Process(4711, "monitor", opens=(f"/dev/nvidia{CARDS[card].minor}",))
    rack.slots.machine.run(user)
    delete(rack.plane, "brave")
    rack.until("it is said who is in the way", lambda: "monitor (pid 4711)" in released(rack))
    rack.plugin.kill()
    rack.slots.machine.end(user.pid)
    assert rack.slots.on_bus == (card,)
    rack.starts_plugin()
    comes_back(rack)


def released(rack: Rack) -> str:
    """Return what the node says of the only device that is to go."""
    told = the_only(rack.listed("composableresources"))["status"].get("conditions", ())
    return next((one["message"] for one in told if one["type"] == RELEASED), "")


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
    rack.checkpoint().write_bytes(b"\0" * rack.checkpoint().stat().st_size)  # as after a power cut
    rack.starts_plugin()
    assert "checkpoint" in rack.plugin.tail()
    assert (restarts(rack, "survives"), rack.slots.on_bus) == ([0], (card,))
    delete(rack.plane, "survives")
    comes_back(rack)


def test_a_claim_that_was_made_anew_gets_the_device_when_its_namesake_is_unprepared(rack: Rack) -> None:
    create(rack.plane, claim(), worker("old", shares=True))
    runs(rack, "old")
    (card,) = rack.attached()
    before, (spec,) = uid(rack), rack.specs()
    rack.plugin.kill()
    # From now on the kubelet has a claim of this name that nobody else knows any more.
    rack.plane.kubectl("delete", "pod", "old", "--force", "--grace-period=0")
    rack.plane.kubectl("delete", "resourceclaim", SHARED)
    create(rack.plane, claim(), worker("new", shares=True))
    rack.until("the new claim is allocated", lambda: given(rack) == [f"a100-{card}"])
    assert (rack.slots.on_bus, rack.specs(), before in spec.name) == ((card,), [spec], True)
    rack.starts_plugin()
    runs(rack, "new")
    after, (spec,) = uid(rack), rack.specs()
    assert (before != after, after in spec.name) == (True, True)
    assert told(rack, "new") == said_of(rack, card)
    delete(rack.plane, "new")
    comes_back(rack)


def uid(rack: Rack) -> str:
    """Return the uid of the only claim."""
    found: str = the_only(rack.listed("resourceclaims"))["metadata"]["uid"]
    return found


def given(rack: Rack) -> list[str]:
    """Return the devices that the only claim was given."""
    allocation = the_only(rack.listed("resourceclaims")).get("status", {}).get("allocation", {})
    return [one["device"] for one in allocation.get("devices", {}).get("results", ())]


# --- a vendor's driver: what is attached goes round once, and is the vendor's then


def test_a_vendors_driver_is_handed_a_device_out_of_the_pool_for_as_long_as_a_pod_has_it(rack: Rack) -> None:
    create(rack.plane, claim(VENDOR), worker("first", VENDOR, shares=True, containers=2))
    runs(rack, "first")
    seen = the_only(rack.listed("composableresources"))["status"]
    assert (seen["state"], seen["device_id"]) == ("Online", rack.slots.uuid(CARD))
    result = the_only(the_only(rack.listed("resourceclaims"))["status"]["allocation"]["devices"]["results"])
    assert (result["driver"], result["pool"]) == (VENDOR, rack.node.name)
    assert [result["device"]] == [one for one in rack.offered(VENDOR) if one != f"h100-{CARD}"]
    assert RESCHEDULE in [one["reason"] for one in rack.listed("events")]
    assert (rack.attached(), rack.slots.on_bus, len(rack.specs(VENDOR))) == ((CARD,), (CARD,), 1)
    create(rack.plane, worker("second", VENDOR, shares=True))
    runs(rack, "second")
    everybody = [told(rack, *one) for one in (("first", "c0"), ("first", "c1"), ("second", "c0"))]
    assert everybody == [said_of(rack, CARD)] * 3
    delete(rack.plane, "first")
    assert (rack.slots.on_bus, len(rack.specs(VENDOR))) == ((CARD,), 1)
    delete(rack.plane, "second")
    comes_back(rack)


def test_a_vendors_driver_that_dies_at_every_step_delays_everything_and_spoils_nothing(rack: Rack) -> None:
    rack.vendor.kill()
    create(rack.plane, worker("patient", VENDOR))
    rack.until("the device is on the bus", lambda: rack.slots.on_bus == (CARD,))
    # It is attached, and nobody says so: no claim is sent round for what no driver offers.
    assert the_only(rack.listed("composableresources"))["status"]["state"] == "Attaching"
    rack.vendor.start()
    rack.until("the device is offered on the node, too", lambda: len(rack.offered(VENDOR)) > 1)
    rack.vendor.pause()
    rack.until("the pod is bound", lambda: bool(the_only(rack.listed("pods"))["spec"].get("nodeName")))
    assert rack.specs(VENDOR) == []
    rack.vendor.kill()
    rack.starts_vendor()
    runs(rack, "patient")
    assert told(rack, "patient") == said_of(rack, CARD)
    everything_is_lost_but_the_pod(rack)
    rack.vendor.kill()
    rack.plane.kubectl("delete", "pod", "patient", "--wait=false")
    rack.until("its containers have ended", lambda: rack.node.containers() == ())
    assert (rack.slots.on_bus, len(rack.specs(VENDOR))) == ((CARD,), 1)
    rack.starts_vendor()
    comes_back(rack)


def everything_is_lost_but_the_pod(rack: Rack) -> None:
    """Lose the vendor's driver, its checkpoint, the kubelet, and with it the driver's slices; the pod goes on."""
    rack.vendor.kill()
    checkpoint = rack.checkpoint(VENDOR)
    checkpoint.write_bytes(b"\0" * checkpoint.stat().st_size)
    rack.node.kill(NodeProgram.KUBELET)
    rack.node.start(NodeProgram.KUBELET)
    rack.until("the kubelet has deleted the slices", lambda: rack.offered(VENDOR) == [f"h100-{CARD}"])
    rack.starts_vendor()
    assert "checkpoint" in rack.vendor.tail()
    rack.until("the device is offered on the node again", lambda: len(rack.offered(VENDOR)) > 1)
    runs(rack, "patient")
    assert (restarts(rack, "patient"), rack.slots.on_bus, rack.slots.torn_out) == ([0], (CARD,), [])
