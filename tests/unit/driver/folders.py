"""A node's two folders for one test, and claims to be prepared on it."""

import json
from collections.abc import Mapping
from pathlib import Path

from jackfield.driver.cdi import DeviceNode, Edits
from jackfield.driver.store import CHECKPOINT, Entry, Held, PreparedStore
from jackfield.model.device import DeviceAttribute
from jackfield.model.names import Key, PhysicalID, Uid
from unit.driver.disk import Quick

DRIVER = "gpu.example.com"
GPU = Held(
    ("gpu",),
    "node-1",
    "gpu-0",
    physical=PhysicalID("P-7"),
    edits=Edits(env={"UUID": "GPU-1"}, device_nodes=(DeviceNode("/dev/gpu0"),)),
    notes={"partition": "9"},
    attributes={"model": DeviceAttribute(string="A100")},
)


def entry(name: str, *held: Held, pod_claim_name: str = "") -> Entry:
    return Entry(Uid(f"uid-{name}"), Key("team", name), held or (GPU,), pod_claim_name)


class Node:
    """One node's folders."""

    def __init__(self, root: Path) -> None:
        self.plugins, self.cdi = root / "plugins", root / "cdi"
        self.plugin = self.plugins / DRIVER
        self.checkpoint = self.plugin / CHECKPOINT
        self.plugins.mkdir(exist_ok=True)

    def store(
        self, calls: Quick | None = None, driver: str = DRIVER, *, with_metadata: bool = True
    ) -> PreparedStore:
        return PreparedStore(
            driver, self.plugins, self.cdi, with_metadata=with_metadata, calls=calls or Quick()
        )

    def opened(self, calls: Quick | None = None) -> PreparedStore:
        store = self.store(calls)
        store.open()
        return store

    def spec(self, name: str) -> Mapping[str, Mapping[str, object]]:
        """Return what each device of a claim brings."""
        read = json.loads((self.cdi / f"{DRIVER}_claim_uid-{name}.json").read_text())
        assert read["kind"] == f"{DRIVER}/claim"
        return {one["name"]: one["containerEdits"] for one in read["devices"]}

    def files(self) -> dict[str, bytes]:
        both = (*self.plugin.rglob("*"), *self.cdi.rglob("*"))
        return {str(one): one.read_bytes() for one in both if one.is_file()}
