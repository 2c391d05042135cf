"""Since when a device or a machine is as it is: from when this process first saw it so, and no longer."""

from jackfield.fabric.sights import Sights
from jackfield.model.fabric import FabricDevice, Inventory, Machine
from jackfield.model.names import FabricName, ModelName, NodeName, PhysicalID, Seconds


class Hands:
    """A clock whose hands are moved by hand."""

    def __init__(self) -> None:
        self.time = Seconds(100.0)

    def now(self) -> Seconds:
        return self.time

    async def sleep(self, duration: Seconds) -> None:
        self.time = Seconds(self.time + duration)


def seen(places: dict[str, str]) -> Inventory:
    devices = tuple(
        FabricDevice(PhysicalID(name), ModelName("A100"), node=NodeName(node))
        for name, node in places.items()
    )
    machines = (Machine(NodeName("n-1")), Machine(NodeName("n-2")))
    return Inventory(FabricName("rack-a"), machines=machines, devices=devices)


def since(shown: Inventory) -> dict[str, float]:
    machines = [(str(one.node), float(one.since)) for one in shown.machines]
    return dict(machines + [(one.id, one.since) for one in shown.devices])


def test_what_stays_keeps_its_time_and_what_moves_begins_anew() -> None:
    clock = Hands()
    sights = Sights(clock)
    first = sights.shown(seen({"a": "n-1", "b": "", "c": "n-2"}))
    assert since(first) == {"n-1": 100.0, "n-2": 100.0, "a": 100.0, "b": 100.0, "c": 100.0}
    clock.time = Seconds(200.0)
    assert sights.shown(seen({"a": "n-1", "b": "", "c": "n-2"})) is first
    second = sights.shown(seen({"a": "n-1", "b": "n-1", "c": "n-2"}))
    assert since(second) == {"n-1": 200.0, "n-2": 100.0, "a": 100.0, "b": 200.0, "c": 100.0}
    clock.time = Seconds(300.0)
    third = sights.shown(seen({"b": "n-2", "c": "n-2"}))
    assert since(third) == {"n-1": 300.0, "n-2": 300.0, "b": 300.0, "c": 100.0}
    clock.time = Seconds(400.0)
    again = sights.shown(seen({"a": "n-1", "b": "n-2", "c": "n-2"}))
    assert since(again) == {"n-1": 400.0, "n-2": 300.0, "a": 400.0, "b": 300.0, "c": 100.0}
