"""A rack around a real node: a fabric manager, our controllers, our plugin and a vendor's driver, all as programs.

The manager's own command puts a card into a slot of the machine, or takes it out. Knows how the parts hang together and
how they are asked. Must not know what should come of it.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import msgspec
import yaml

from jackfield.codec import Raw
from jackfield.codec.definitions import definitions
from jackfield.driver.store import CHECKPOINT
from jackfield.kube.permissions import RBAC, RBAC_VERSION, Account, Part, admission, manifests
from jackfield.model.policy import DRIVER
from jackfield.testing.control_plane import ControlPlane, RealNode
from jackfield.testing.control_plane.credentials import Proof
from jackfield.testing.control_plane.process import Nursery, Process
from real import vendor_driver
from real.accounts import controllers, put
from real.example_drivers import documents
from real.pods import POD_SECONDS, create
from real.slots import MOVE, OURS, VENDORS, Slots
from real.vendor_driver import VENDOR
from real.waiting import comes_true

FABRIC: Final = "rack-a"
MODEL: Final = "A100"
VENDORS_MODEL: Final = "H100"
PLUGIN: Final = Account("jackfield", "node")
VENDORS_ACCOUNT: Final = "system:serviceaccount:default:vendor-driver"
STOP_SECONDS: Final = 20.0
POLICY: Final = {
    "models": [
        {
            "index": 1,
            "cdi-model-name": MODEL,
            "k8s-device-name": "a100",
            "driver-name": DRIVER,
            "dra-attributes": {"productName": MODEL},
        },
        # A driver that is not ours: its devices are handed over by `reschedule`.
        {"index": 2, "cdi-model-name": VENDORS_MODEL, "k8s-device-name": "h100", "driver-name": VENDOR},
    ],
    "holdSeconds": 0,
    "inventorySeconds": 2,
    # Plugins are killed here for as long as a slow machine likes.
    "heartbeatSeconds": 300,
}


def _class(name: str, driver: str) -> Raw:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": f"device.driver == {driver!r}"}}]},
    }


CLASSES: Final = {DRIVER: _class("fabric-gpu", DRIVER), VENDOR: _class("vendors-gpu", VENDOR)}
"""What is asked for, by driver: the pool's devices and those on the nodes have the same."""
VENDORS_RIGHTS: Final[tuple[Raw, ...]] = (
    {
        "apiVersion": RBAC_VERSION,
        "kind": "ClusterRole",
        "metadata": {"name": "vendor-driver"},
        "rules": next(
            one["rules"] for one in documents("pizza-driver", "install.yaml") if one["kind"] == "ClusterRole"
        ),
    },
    {
        "apiVersion": RBAC_VERSION,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "vendor-driver"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "vendor-driver"},
        "subjects": [{"kind": "User", "apiGroup": RBAC, "name": VENDORS_ACCOUNT}],
    },
)
"""What every driver on the kit needs, and no more."""


class Rack:
    """Everything that is ours around a real node."""

    def __init__(self, plane: ControlPlane, node: RealNode, folder: Path, slots: Slots) -> None:
        self.plane = plane
        self.node = node
        self.slots = slots
        self.plugin = self._plugin(folder)
        self.vendor = self._vendor()
        self._state = folder / "fabric"
        self._nursery = Nursery()
        inventory = {
            "fabric": FABRIC,
            "machines": [{"name": node.name, "slots": 4}],
            "devices": [
                {"name": "gpu", "model": MODEL, "count": len(OURS)},
                {"name": "hot", "model": VENDORS_MODEL, "count": len(VENDORS)},
            ],
            "backend": {"kind": "script", "command": [str(folder / "move"), str(slots.folder)]},
        }
        (folder / "move").write_text(MOVE)
        (folder / "move").chmod(0o755)
        (folder / "inventory.yaml").write_text(yaml.safe_dump(inventory))
        serve = (
            "fabric",
            "serve",
            "--inventory",
            str(folder / "inventory.yaml"),
            "--state",
            str(self._state),
        )
        self.manager = Process(self._nursery, jackfield(*serve, "--port", "0"), folder / "manager.log")
        self.operator = self._operator(folder)

    def _operator(self, folder: Path) -> Process:
        words = ("--policy", str(folder / "policy.yaml"), "--fabrics", str(folder / "fabrics.yaml"))
        who = ("--kubeconfig", str(folder / "controllers.kubeconfig"), "--identity", "replica-1")
        return Process(self._nursery, jackfield("run", *words, *who), folder / "operator.log")

    def _plugin(self, folder: Path) -> Process:
        machine = self.slots.machine
        return self.node.program(
            "jackfield-node",
            *jackfield("node", "--node-name", self.node.name, "--policy", str(folder / "policy.yaml")),
            *("--kubeconfig", str(folder / "node.kubeconfig"), "--sysfs-root", str(machine.sysfs)),
            *("--proc-root", str(machine.proc), "--dev-root", str(machine.dev)),
        )

    def _vendor(self) -> Process:
        who = self.plane.kubeconfig_for(VENDORS_ACCOUNT, by=Proof.CERTIFICATE)
        return self.node.program(
            "vendor-driver",
            *(sys.executable, vendor_driver.__file__, str(self.slots.machine.dev.parent)),
            *(f"--node-name={self.node.name}", f"--kubeconfig={who}"),
        )

    def start(self, folder: Path) -> None:
        """Start the programs; what they need of each other they wait for themselves."""
        (folder / "policy.yaml").write_text(yaml.safe_dump(POLICY))
        (folder / "node.kubeconfig").write_text(yaml.safe_dump(bound(self.plane, self.node.name)))
        for one in (self.plugin, self.vendor, self.manager):
            one.start()
        self.until("the manager listens", (self._state / "url").exists)
        fabric = {
            "name": FABRIC,
            "type": "native",
            "url": (self._state / "url").read_text().strip(),
            "tokenFile": str(self._state / "token"),
        }
        (folder / "fabrics.yaml").write_text(yaml.safe_dump({"fabrics": [fabric]}))
        self.operator.start()

    def close(self) -> None:
        """End the programs."""
        self.plugin.kill()
        self.vendor.kill()
        for one in (self.operator, self.manager):
            one.stop(STOP_SECONDS)
        self._nursery.close()

    # --- how it is asked

    def until(self, what: str, condition: Callable[[], bool]) -> None:
        """Wait until something is so. A failure says what everybody had to say."""
        if not comes_true(condition, seconds=POD_SECONDS):
            raise AssertionError(f"not so in time: {what}\n{self.report()}")

    def report(self) -> str:
        """What the programs last said, and what the API has."""
        logs = {
            "controllers": self.operator,
            "plugin": self.plugin,
            "vendor's driver": self.vendor,
            "manager": self.manager,
        }
        said = (f"--- {name}, exit status {one.status}:\n{one.tail()}" for name, one in logs.items())
        objects = self.plane.kubectl(
            "get", "pods,resourceclaims,resourceslices,composableresources", "--output=wide"
        )
        events = self.plane.kubectl("get", "events", "--sort-by=.metadata.creationTimestamp")
        return "\n".join((*said, "--- the API:", objects, events, f"--- slots: {self.slots.taken}"))

    def attached(self) -> tuple[str, ...]:
        """Return the devices that the manager's books have on the node."""
        run = subprocess.run(
            jackfield("fabric", "ls", "--json", "--state", str(self._state)),
            capture_output=True,
            text=True,
            check=True,
        )
        devices = msgspec.json.decode(run.stdout)["inventory"]["devices"]
        return tuple(one["id"] for one in devices if one["node"] == self.node.name)

    def listed(self, kind: str) -> list[Raw]:
        """Return all objects of a kind."""
        found: list[Raw] = msgspec.json.decode(self.plane.kubectl("get", kind, "--output=json"))["items"]
        return found

    def specs(self, driver: str = DRIVER) -> list[Path]:
        """Return the CDI files of what is prepared."""
        return [*self.node.cdi.glob(f"{driver}_claim_*")]

    def checkpoint(self, driver: str = DRIVER) -> Path:
        """Return where a driver writes down what is prepared."""
        return self.node.plugins / driver / CHECKPOINT

    def starts_plugin(self) -> None:
        """Start the plugin, and wait until it serves."""
        self._starts(self.plugin, f"serves {self.node.name}")

    def starts_vendor(self) -> None:
        """Start the vendor's driver, and wait until the kubelet knows it."""
        self._starts(self.vendor, f"has registered {VENDOR}")

    def _starts(self, program: Process, words: str) -> None:
        before = program.log.read_text().count(words)
        program.start()
        self.until(f"it {words}", lambda: program.log.read_text().count(words) > before)

    def is_back(self) -> bool:
        """Whether every device is in the pool, on the bus as well as in the books."""
        if self.slots.taken or self.slots.on_bus or self.listed("composableresources"):
            return False
        return self.attached() == ()

    def offered(self, driver: str = DRIVER) -> list[str]:
        """Return what the scheduler is offered under a driver's name, by the fabric and by the node."""
        slices = [one["spec"] for one in self.listed("resourceslices")]
        return sorted(
            one["name"] for piece in slices if piece["driver"] == driver for one in piece.get("devices", ())
        )


def jackfield(*words: str) -> tuple[str, ...]:
    """Return how our own program is run."""
    return (sys.executable, "-m", "jackfield", *words)


def bound(plane: ControlPlane, node: str, account: Account = PLUGIN) -> Raw:
    """Return a kubeconfig with the token that the plugin's pod on a node would have."""
    words = (f"--namespace={account.namespace}", "--bound-object-kind=Node", f"--bound-object-name={node}")
    token = plane.kubectl("create", "token", account.name, *words).strip()
    config: Raw = yaml.safe_load(plane.kubeconfig.read_text())
    config["users"] = [{"name": one["name"], "user": {"token": token}} for one in config["users"]]
    return config


@contextmanager
def built(plane: ControlPlane, node: RealNode, folder: Path) -> Iterator[Rack]:
    """Build a rack around a node. Each program has the rights that it needs and no others, ours by `jackfield rbac`."""
    rights = (*manifests(Part.NODE, PLUGIN), *admission(PLUGIN), *VENDORS_RIGHTS)
    with ExitStack() as stack:
        stack.enter_context(controllers(plane, folder, (DRIVER, VENDOR)))
        put(plane, *definitions(), *rights)
        stack.callback(plane.kubectl, "delete", "--filename=-", text=yaml.safe_dump_all(rights))
        plane.kubectl("wait", "--for=condition=Established", "crd", "--all")
        for driver, one in CLASSES.items():
            create(plane, one)
            stack.callback(plane.kubectl, "delete", "deviceclass", one["metadata"]["name"])
            stack.callback(
                plane.kubectl, "delete", "resourceslices", f"--field-selector=spec.driver={driver}"
            )
        slots = stack.enter_context(Slots(folder, lambda: any(node.cdi.glob(f"{VENDOR}_claim_*"))))
        rack = Rack(plane, node, folder, slots)
        stack.callback(rack.close)
        rack.start(folder)
        yield rack
