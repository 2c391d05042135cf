"""A rack around a real node: a fabric manager, our controllers and our plugin as programs, and the machine's PCI bus.

The manager's own command puts a card into a slot of the machine, or takes it out; the bus shows it when the kernel is
told to look. Knows how the parts hang together and how they are asked. Must not know what should come of it.
"""

import asyncio
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, Self

import msgspec
import yaml

from jackfield.cli.clock import WallClock
from jackfield.codec import Raw
from jackfield.codec.definitions import definitions
from jackfield.driver.store import CHECKPOINT
from jackfield.kube.permissions import Account, Part, admission, manifests
from jackfield.model.names import Seconds
from jackfield.model.policy import DRIVER
from jackfield.testing.control_plane import ControlPlane, RealNode
from jackfield.testing.control_plane.process import Nursery, Process
from jackfield.testing.sysfs import Machine, PciDevice
from real.accounts import controllers, put
from real.pods import POD_SECONDS, create
from real.waiting import comes_true

FABRIC: Final = "rack-a"
MODEL: Final = "A100"
CARDS: Final = {"gpu-1": PciDevice("0000:17:00.0", minor=0), "gpu-2": PciDevice("0000:65:00.0", minor=1)}
"""What the manager's devices are on the bus. The driver learns its UUID from the card: it is in the slot's file."""
PLUGIN: Final = Account("jackfield", "node")
LOOK_SECONDS: Final = Seconds(0.05)
STOP_SECONDS: Final = 20.0
# Run by the manager as MOVE SLOTS attach|detach DEVICE MACHINE. What is half written is in no slot yet.
MOVE: Final = """#!/bin/sh
set -e
case "$2" in
attach) [ -e "$1/$3" ] || { printf %s "$JACKFIELD_SERIAL" >"$1/.$3"; mv "$1/.$3" "$1/$3"; } ;;
detach) rm -f "$1/$3" ;;
esac
"""
POLICY: Final = {
    "models": [
        {
            "index": 1,
            "cdi-model-name": MODEL,
            "k8s-device-name": "a100",
            "driver-name": DRIVER,
            "dra-attributes": {"productName": MODEL},
        }
    ],
    "holdSeconds": 0,
    "inventorySeconds": 2,
}
CLASS: Final[Raw] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "fabric-gpu"},
    "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]},
}


class Slots:
    """The slots of a machine, and its kernel, which runs in a thread of its own while the context is open."""

    def __init__(self, folder: Path) -> None:
        self.machine = Machine(folder / "machine")
        self.folder = folder / "slots"
        self.folder.mkdir()
        self.torn_out: list[str] = []
        """Cards that were taken out while the bus still had them."""
        for card in CARDS.values():
            # A character device that anybody can read from: it has to be a real one for a container to get it.
            os.mknod(self.machine.dev / f"nvidia{card.minor}", stat.S_IFCHR | 0o666, os.makedev(1, 5))
        self._in: set[str] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="kernel")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def taken(self) -> tuple[str, ...]:
        """The cards that are in a slot."""
        return tuple(sorted(one.name for one in self.folder.iterdir() if one.name in CARDS))

    @property
    def on_bus(self) -> tuple[str, ...]:
        """The cards that the kernel knows."""
        return tuple(name for name, card in CARDS.items() if self._link(card).exists())

    def uuid(self, name: str) -> str:
        """Return the UUID of a card that is in a slot: the manager has it written there."""
        return (self.folder / name).read_text()

    def _link(self, card: PciDevice) -> Path:
        return self.machine.sysfs / "bus/pci/devices" / card.address

    async def _run(self) -> None:
        clock = WallClock()
        async with self.machine:
            while not self._over.is_set():
                self._look()
                await clock.sleep(LOOK_SECONDS)

    def _look(self) -> None:
        taken = set(self.taken)
        for name in sorted(taken - self._in):
            card = msgspec.structs.replace(CARDS[name], uuid=self.uuid(name), driver="nvidia")
            self.machine.plug_unseen(card)
        for name in sorted(self._in - taken):
            if self._link(CARDS[name]).exists():
                self.torn_out.append(name)
                self.machine.pull(CARDS[name].address)
        self._in = taken


class Rack:
    """Everything that is ours around a real node."""

    def __init__(self, plane: ControlPlane, node: RealNode, folder: Path, slots: Slots) -> None:
        self.plane = plane
        self.node = node
        self.slots = slots
        self.plugin = self._plugin(folder)
        self.checkpoint = node.plugins / DRIVER / CHECKPOINT
        self._state = folder / "fabric"
        self._nursery = Nursery()
        inventory = {
            "fabric": FABRIC,
            "machines": [{"name": node.name, "slots": 4}],
            "devices": [{"name": "gpu", "model": MODEL, "count": len(CARDS)}],
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

    def start(self, folder: Path) -> None:
        """Start the programs; what they need of each other they wait for themselves."""
        (folder / "policy.yaml").write_text(yaml.safe_dump(POLICY))
        (folder / "node.kubeconfig").write_text(yaml.safe_dump(bound(self.plane, self.node.name)))
        self.plugin.start()
        self.manager.start()
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
        logs = {"controllers": self.operator, "plugin": self.plugin, "manager": self.manager}
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

    def specs(self) -> list[Path]:
        """Return the CDI files of what is prepared."""
        return [*self.node.cdi.glob(f"{DRIVER}*")]

    def starts_plugin(self) -> None:
        """Start the plugin, and wait until it serves."""
        before = self._servings()
        self.plugin.start()
        self.until("the plugin serves", lambda: self._servings() > before)

    def _servings(self) -> int:
        return self.plugin.log.read_text().count(f"serves {self.node.name}")

    def is_back(self) -> bool:
        """Whether every device is in the pool, on the bus as well as in the books."""
        if self.slots.taken or self.slots.on_bus or self.listed("composableresources"):
            return False
        return self.attached() == ()

    def offered(self) -> list[str]:
        """Return what the scheduler is offered of the fabric."""
        slices = [one["spec"] for one in self.listed("resourceslices")]
        return sorted(
            one["name"] for piece in slices if piece["driver"] == DRIVER for one in piece.get("devices", ())
        )


def jackfield(*words: str) -> tuple[str, ...]:
    """Return how our own program is run."""
    return (sys.executable, "-m", "jackfield", *words)


def bound(plane: ControlPlane, node: str) -> Raw:
    """Return a kubeconfig with the token that the plugin's pod on a node would have."""
    words = (f"--namespace={PLUGIN.namespace}", "--bound-object-kind=Node", f"--bound-object-name={node}")
    token = plane.kubectl("create", "token", PLUGIN.name, *words).strip()
    config: Raw = yaml.safe_load(plane.kubeconfig.read_text())
    config["users"] = [{"name": one["name"], "user": {"token": token}} for one in config["users"]]
    return config


@contextmanager
def built(plane: ControlPlane, node: RealNode, folder: Path) -> Iterator[Rack]:
    """Build a rack around a node, each program with the rights it is given by `jackfield rbac` and no others."""
    rights = (*manifests(Part.NODE, PLUGIN), *admission(PLUGIN))
    with ExitStack() as stack:
        stack.enter_context(controllers(plane, folder))
        put(plane, *definitions(), *rights)
        stack.callback(plane.kubectl, "delete", "--filename=-", text=yaml.safe_dump_all(rights))
        plane.kubectl("wait", "--for=condition=Established", "crd", "--all")
        create(plane, CLASS)
        stack.callback(plane.kubectl, "delete", "deviceclass", CLASS["metadata"]["name"])
        stack.callback(plane.kubectl, "delete", "resourceslices", f"--field-selector=spec.driver={DRIVER}")
        slots = stack.enter_context(Slots(folder))
        rack = Rack(plane, node, folder, slots)
        stack.callback(rack.close)
        rack.start(folder)
        yield rack
