"""Lives of pods with devices out of a pool: how they begin, what they say, and that they leave nothing behind.

Knows pods and what their containers print. Must not know what happens to them in between.
"""

from jackfield.codec import Raw
from jackfield.model.policy import DRIVER
from real.pods import pod, status
from real.rack import CLASSES, Rack
from real.slots import CARDS, VENDORS
from real.vendor_driver import VENDOR

WORDS = (
    "env | grep -E '^(JACKFIELD_DEVICE|GPU)_' | sort; stat -c '%n %t:%T' /dev/nvidia*; "
    "head -c 4 /dev/nvidia* | od -An -tx1"
)
LINES = 4
SHARED = "shared"
TEMPLATES = {DRIVER: "a-gpu", VENDOR: "a-vendors-gpu"}
"""Of claims, by driver."""


def _spec(driver: str) -> Raw:
    exactly = {"deviceClassName": CLASSES[driver]["metadata"]["name"]}
    return {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}


def claim(driver: str = DRIVER) -> Raw:
    """Return a claim for as many pods as like."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": SHARED},
        "spec": _spec(driver),
    }


def template(driver: str) -> Raw:
    """Return what claims of single pods are made from."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": TEMPLATES[driver]},
        "spec": {"spec": _spec(driver)},
    }


def worker(name: str, driver: str = DRIVER, *, shares: bool = False, containers: int = 1) -> Raw:
    """Return a pod whose containers say which device they got, and stay; its claim is its own, or the shared one."""
    source = {"resourceClaimName": SHARED} if shares else {"resourceClaimTemplateName": TEMPLATES[driver]}
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
    where = [f"/dev/nvidia{CARDS[card].minor} 1:5", " 00 00 00 00"]
    if card in VENDORS:
        return [f"GPU_ADDRESS={CARDS[card].address}", f"GPU_UUID={rack.slots.uuid(card)}", *where]
    name = f"JACKFIELD_DEVICE_A100_{card.upper().replace('-', '_')}"
    return [f"{name}={rack.slots.uuid(card)}", f"{name}_ADDRESS={CARDS[card].address}", *where]


def comes_back(rack: Rack) -> None:
    """Wait until everything is back in the pool; nothing is left on the node, and nobody was torn away from it."""
    rack.until("everything is back in the pool", rack.is_back)
    assert rack.specs() + rack.specs(VENDOR) == []
    assert rack.slots.torn_out == []
    assert rack.offered() == ["a100-gpu-1", "a100-gpu-2"]
    rack.until("the vendor's device is the fabric's alone", lambda: rack.offered(VENDOR) == ["h100-hot-1"])


def the_only(objects: list[Raw]) -> Raw:
    """Return the one that there is."""
    (one,) = objects
    return one


def conditions(of: Raw) -> dict[str, str]:
    """Return the conditions of an object's status."""
    return {one["type"]: one["status"] for one in of.get("conditions", ())}


def restarts(rack: Rack, name: str) -> list[int]:
    """Return how often each container of a pod was started again."""
    return [one["restartCount"] for one in status(rack.plane, name)["containerStatuses"]]
