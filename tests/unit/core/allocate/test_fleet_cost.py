"""What questions about many nodes cost: searches and calls are counted, since seconds depend on who else computes."""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from types import CodeType, FrameType

from msgspec.structs import replace

from jackfield.core import allocate
from jackfield.core.allocate.search import Search
from jackfield.model.claim import ResourceClaim, ResourceClaimStatus
from jackfield.model.device import Device, DeviceAttribute
from jackfield.model.slice import ResourceSlice
from unit.core.allocate.small_world import World, claim, device, node, request, same, selects, slice_

MODELS = ("a", "b", "c", "d")
FABRIC = 64
RATIO_MAX = 1.20


class Calls:
    """Counts calls of Python functions: all of them, and searches."""

    def __init__(self) -> None:
        self.count = 0
        self.searches = 0
        self._search: CodeType = Search.run.__code__

    def of(self, work: Callable[[], object]) -> None:
        sys.setprofile(self._called)
        work()
        sys.setprofile(None)

    def _called(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            self.count += 1
            self.searches += frame.f_code is self._search


def searches(work: Callable[[], object]) -> int:
    calls = Calls()
    calls.of(work)
    return calls.searches


def gpus(number: int, count: int = 4) -> tuple[Device, ...]:
    return tuple(device(f"d{each}", model=MODELS[number % 4], memory="4Gi") for each in range(count))


def own(name: str, listed: Sequence[Device]) -> ResourceSlice:
    return slice_(listed, f"of-{name}", name, node_name=name)


def wanting(number: int, name: str) -> ResourceClaim:
    expression = f"device.attributes['gpu.example.com'].model == '{MODELS[number % 4]}'"
    return claim(request("r", 1 + number % 3, selectors=selects(expression)), name=name)


def fleet(nodes: int) -> allocate.Fleet:
    """Return nodes of four models, and a pool of all models for all of them."""
    names = [f"n{number:04}" for number in range(nodes)]
    slices = [own(name, gpus(number)) for number, name in enumerate(names)]
    fabric = [device(f"f{each}", model=MODELS[each % 4], memory="4Gi") for each in range(FABRIC)]
    slices.append(slice_(fabric, "fabric", "zz-fabric"))
    return allocate.Fleet(World(slices).allocator(), [node(name) for name in names])


def first(nodes: allocate.Fleet, wanted: ResourceClaim) -> None:
    found = nodes.first_from([wanted], node("n0050").name)
    assert isinstance(found, allocate.Fit)
    nodes.hold(replace(wanted, status=ResourceClaimStatus(allocation=found.allocations[0])))


def every(nodes: allocate.Fleet, wanted: ResourceClaim) -> None:
    fitting = nodes.fitting([wanted])
    found = nodes.first_in([wanted], [fitting.first])
    assert isinstance(found, allocate.Fit)
    nodes.hold(replace(wanted, status=ResourceClaimStatus(allocation=found.allocations[0])))


def calls(nodes: int, ask: Callable[[allocate.Fleet, ResourceClaim], None]) -> int:
    world, counted = fleet(nodes), Calls()
    for number in range(4):
        ask(world, wanting(number, f"early{number}"))
    for number in range(40):
        counted.of(partial(ask, world, wanting(number, f"c{number}")))
    return counted.count


def test_the_first_fit_costs_the_same_whether_there_are_100_nodes_or_2000() -> None:
    assert calls(2000, first) <= RATIO_MAX * calls(100, first)


def test_asking_about_all_nodes_costs_the_same_whether_there_are_100_or_2000() -> None:
    assert calls(2000, every) <= RATIO_MAX * calls(100, every)


def test_a_claim_that_fits_nowhere_costs_the_same_whether_there_are_100_nodes_or_2000() -> None:
    def ask(nodes: allocate.Fleet, wanted: ResourceClaim) -> None:
        (one,) = wanted.spec.devices.requests
        selectors = one.exactly.selectors if one.exactly is not None else ()
        found = nodes.first_from([claim(request(count=32, selectors=selectors))], node("n0050").name)
        assert isinstance(found, allocate.Nowhere)

    assert calls(2000, ask) <= RATIO_MAX * calls(100, ask)


def test_nodes_that_all_differ_cost_a_claim_of_a_known_kind_no_more() -> None:
    def costs(count: int) -> int:
        names = [f"n{number:04}" for number in range(count)]
        slices = [own(name, [unique(one, name) for one in gpus(0)]) for name in names]
        nodes = allocate.Fleet(World(slices).allocator(), [node(name) for name in names])
        every(nodes, wanting(0, "first"))
        counted = Calls()
        for number in range(0, 40, 4):
            counted.of(partial(every, nodes, wanting(number, f"c{number}")))
        return counted.count

    assert costs(500) <= RATIO_MAX * costs(50)


def unique(one: Device, name: str) -> Device:
    return replace(one, attributes={**one.attributes, "uuid": DeviceAttribute(string=f"{name}/{one.name}")})


def test_one_search_answers_for_all_nodes_that_look_alike() -> None:
    nodes = fleet(100)

    assert searches(lambda: nodes.fitting([wanting(0, "c")])) == 2  # nodes of the model, and all others


def test_devices_that_differ_in_what_no_claim_asks_about_look_alike() -> None:
    names = [f"n{number}" for number in range(20)]
    slices = [own(name, [unique(one, name) for one in gpus(0)]) for name in names]
    nodes = allocate.Fleet(World(slices).allocator(), [node(name) for name in names])
    by_uuid = claim(request(count=1), constraints=[same("uuid")])

    assert searches(lambda: nodes.fitting([wanting(0, "c")])) == 1
    assert searches(lambda: nodes.fitting([by_uuid])) == 20


def test_which_devices_of_a_kind_are_in_use_makes_no_difference() -> None:
    nodes = fleet(80)
    for number in range(0, 80, 4):
        pool = f"n{number:04}"
        results = World([own(pool, gpus(0))]).allocations(claim(request()), at=node(pool))
        taken = replace(results[0].devices.results[0], device=f"d{number % 3}")
        devices = replace(results[0].devices, results=(taken,))
        status = ResourceClaimStatus(allocation=replace(results[0], devices=devices))
        nodes.hold(replace(claim(request(), name=f"held{number}"), status=status))

    assert searches(lambda: nodes.fitting([wanting(0, "c")])) == 2


def test_devices_pinned_to_a_node_and_in_use_make_no_difference() -> None:
    names = [f"n{number}" for number in range(20)]
    pinned = [replace(one, name=f"p{name}", node_name=name) for name in names for one in gpus(0, 1)]
    open_ones = [replace(one, all_nodes=True) for one in gpus(0, 3)]
    slices = [slice_([*pinned, *open_ones], "fabric", "fabric", per_device_node_selection=True)]
    nodes = allocate.Fleet(World(slices).allocator(), [node(name) for name in names])
    assert searches(lambda: nodes.fitting([wanting(0, "c")])) == 20

    for name in names:
        wanted = claim(request(), name=f"on-{name}")
        found = nodes.first_in([wanted], [node(name).name])
        assert isinstance(found, allocate.Fit)
        assert found.allocations[0].devices.results[0].device == f"p{name}"
        nodes.hold(replace(wanted, status=ResourceClaimStatus(allocation=found.allocations[0])))

    assert searches(lambda: nodes.fitting([wanting(0, "c")])) == 1
