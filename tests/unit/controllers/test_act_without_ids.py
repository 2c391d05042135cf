"""Devices that no order id names: who takes one, and when an attach is repeated."""

import asyncio

import pytest
from msgspec.structs import replace

from jackfield.controllers.act import act
from jackfield.model.composition import ComposableResource, ResourceState
from jackfield.model.fabric import Traits
from jackfield.model.meta import Object
from jackfield.model.plan import Adopt, Attach
from jackfield.ports import Apply, Conflict, Merge, Retry
from jackfield.testing import builders as b
from unit.controllers.actions import CR, D0, WHY, P, mark, order, version
from unit.controllers.bench import Bench, play


@pytest.mark.parametrize("booked", [True, False], ids=["another's", "nobody's"])
def test_an_attach_is_repeated_only_if_what_stands_there_is_in_anothers_books(*, booked: bool) -> None:
    """An old list shows resources that are gone: seed 321521 of the torture."""

    async def scene(bench: Bench) -> None:
        await bench.world.fabrics[b.FABRIC].attach(order())
        await bench.wait(6)
        bench.store.see(bench.manager.pool.inventory(), current=True)
        made = await bench.put(
            b.resource(state=ResourceState.ATTACHING, sent="attach 2026-01-01T00:00:00.000000Z")
        )
        other = b.resource("a100-9", on="n2", physical="0000", version="1")
        if booked:
            await bench.put(other)
        else:
            bench.store.put(other)
        again = Attach(
            phase=P, because=WHY, resource=CR, version=version(made), order=order(), mark_sent=True, ask=True
        )
        if booked:
            await bench.act(again)
            return
        with pytest.raises(Conflict, match=r"0000 on n1 is not in the books of a100-9\.rack-a any more"):
            await bench.act(again)
        assert bench.store.resource_with(b.FABRIC, D0) is None
        assert await bench.resource() == made, "nothing is noted as sent"

    play(scene, Traits(chooses_device=True, knows_orders=False))


class Distant:
    """The cluster at the end of a long line: what is written arrives a second later."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.watch, self.read = bench.client.watch, bench.client.read
        self.create, self.delete = bench.client.create, bench.client.delete

    async def write(self, patch: Merge | Apply) -> Object:
        await self._bench.wait(1)
        return await self._bench.client.write(patch)


@pytest.mark.parametrize("later", [0.0, 0.5, 2.0], ids=["side by side", "under way", "afterwards"])
def test_no_two_resources_take_one_device(later: float) -> None:
    """Each was decided on when neither had it: seen when two resources of one node waited, in a storm."""

    async def scene(bench: Bench) -> None:
        bench.store.see(bench.manager.pool.inventory(), current=True)
        first = await bench.put(b.resource("a100-1", state=ResourceState.ATTACHING))
        second = await bench.put(b.resource("a100-0", state=ResourceState.ATTACHING))
        hands = replace(bench.hands, world=replace(bench.world, cluster=Distant(bench)))

        async def adopt(one: ComposableResource, after: float) -> None:
            await bench.wait(after)
            name, at = one.metadata.name, version(one)
            await act(Adopt(phase=P, because=WHY, resource=name, version=at, device=D0), hands)

        ends = await asyncio.gather(adopt(first, 0.0), adopt(second, later), return_exceptions=True)
        assert [type(one) for one in ends] == [type(None), Conflict]
        assert (await bench.resource("a100-1.rack-a")).status.cdi_device_id == D0
        assert (await bench.resource("a100-0.rack-a")).status.cdi_device_id == ""

    play(scene, Traits(chooses_device=True, knows_orders=False))


class Lossy(Distant):
    """The same, at the end of a line on which the answer is lost and what was written arrives much later."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench)
        self.under_way: list[Merge | Apply] = []

    async def write(self, patch: Merge | Apply) -> Object:
        self.under_way.append(patch)
        raise Retry("no answer within 10 s")


@pytest.mark.parametrize("arrives", [True, False], ids=["arrives", "comes too late"])
def test_a_write_without_an_answer_keeps_its_device_from_others_while_it_may_arrive(*, arrives: bool) -> None:
    """Seen when two such writes in a row came late: seed 300336 of the torture."""

    async def scene(bench: Bench) -> None:
        bench.store.see(bench.manager.pool.inventory(), current=True)
        first = await bench.put(b.resource("a100-1", state=ResourceState.ATTACHING))
        second = await bench.put(b.resource("a100-0", state=ResourceState.ATTACHING))
        line = Lossy(bench)
        far = replace(bench.hands, world=replace(bench.world, cluster=line))
        took, takes = (
            Adopt(phase=P, because=WHY, resource=one.metadata.name, version=version(one), device=D0)
            for one in (first, second)
        )
        for _ in range(2):  # the same resource may try again
            with pytest.raises(Retry):
                await act(took, far)
        with pytest.raises(Conflict, match="another's by now"):
            await bench.act(takes)
        if arrives:
            bench.store.put(await bench.client.write(line.under_way[0]))
            with pytest.raises(Conflict, match="another's by now"):
                await bench.act(takes)
        else:
            await bench.act(mark(took.version))
            await bench.act(takes)
        assert (await bench.resource("a100-1.rack-a")).status.cdi_device_id == (D0 if arrives else "")
        assert (await bench.resource("a100-0.rack-a")).status.cdi_device_id == ("" if arrives else D0)

    play(scene, Traits(chooses_device=True, knows_orders=False))
