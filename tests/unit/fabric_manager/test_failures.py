"""The failures that real managers are known for, each as a fault that can be asked for."""

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from jackfield.fabric_manager.faults import Fault, Kind
from jackfield.fabric_manager.hardware import Hardware, Machine
from jackfield.fabric_manager.manager import Manager
from jackfield.fabric_manager.server import Server
from jackfield.model.fabric import Done, Failed, Inventory, Order, Working
from jackfield.model.names import NodeName, PhysicalID, Seconds
from unit.fabric_manager.lab import (
    SMALL,
    SOON,
    TOKEN,
    attached,
    detached,
    lab,
    managing,
    on,
    order,
    places,
    serving,
)
from unit.fabric_manager.test_backends import Broken

A_WHILE = Seconds(0.1)


class Still:
    """A clock on which time passes when somebody says so, or sleeps."""

    def __init__(self) -> None:
        self.time = Seconds(1000.0)

    def now(self) -> Seconds:
        return self.time

    async def sleep(self, duration: Seconds) -> None:
        self.time = Seconds(self.time + duration)
        await asyncio.sleep(0)  # noqa: TID251 - a clock


async def waits(manager: Manager, of: Order) -> bool:
    """Whether an attach is still under way after a while."""
    answer = await manager.settle(lambda: manager.attach(of, "native"), of.id, A_WHILE)
    return answer == Working()


def suspends(manager: Manager) -> tuple[str, ...]:
    fault = manager.faults.suspended
    return fault.holds if fault else ()


# --- work


def test_suspended_work_goes_on_when_the_fault_is_cleared_even_after_a_restart(tmp_path: Path) -> None:
    async def first(manager: Manager) -> None:
        await manager.set_fault(Fault(Kind.SUSPEND, times=1, id="stopped"))
        assert await waits(manager, order("o"))
        assert suspends(manager) == ("o",)

    async def second(manager: Manager) -> None:
        assert await waits(manager, order("o"))
        assert suspends(manager) == ("o",)
        await manager.clear_fault("stopped")
        assert suspends(manager) == ()
        assert isinstance(await attached(manager, order("o")), Done)

    on(tmp_path, lab(), first)
    on(tmp_path, lab(), second)


def test_while_work_is_suspended_nothing_new_is_begun(tmp_path: Path) -> None:
    async def posted(session: aiohttp.ClientSession, server: Server, verb: str, of: Order) -> tuple[int, str]:
        url = f"{server.url}/v1/fabrics/rack-a/{verb}"
        async with session.post(url, data=msgspec.json.encode(of)) as answer:
            return answer.status, await answer.text()

    async def play(server: Server, session: aiohttp.ClientSession) -> None:
        manager = server.manager
        fault = Fault(Kind.SUSPEND, node=NodeName("n-1"), id="stopped", reason="a cable is loose")
        await manager.set_fault(fault)
        assert (await posted(session, server, "attach", order("q", "a-3", "n-2")))[0] == HTTPStatus.OK
        assert await waits(manager, order("o"))
        status, words = await posted(session, server, "attach", order("p", "a-2", "n-2"))
        assert status == HTTPStatus.CONFLICT
        assert "a cable is loose; it goes on when fault stopped is cleared" in words
        assert (await posted(session, server, "attach", order("o")))[0] == HTTPStatus.OK
        async with session.get(f"{server.url}/v1/fabrics/rack-a/inventory") as answer:
            assert answer.status == HTTPStatus.OK
        await manager.clear_fault("stopped")
        assert (await posted(session, server, "attach", order("p", "a-2", "n-2")))[0] == HTTPStatus.OK

    async def main() -> None:
        headers = {"Authorization": f"Bearer {TOKEN.reveal()}"}
        async with serving(tmp_path, lab()) as server, aiohttp.ClientSession(headers=headers) as session:
            await play(server, session)

    asyncio.run(main())


def test_work_that_hung_hangs_after_a_restart_too(tmp_path: Path) -> None:
    async def first(manager: Manager) -> None:
        await manager.set_fault(Fault(Kind.HANG, times=1))
        assert await waits(manager, order("o"))

    async def second(manager: Manager) -> None:
        assert await waits(manager, order("o"))
        await manager.clear_fault("fault-1")
        assert isinstance(await attached(manager, order("o")), Done)

    on(tmp_path, lab(), first)
    on(tmp_path, lab(), second)


def test_work_that_hangs_for_a_time_ends_by_itself(tmp_path: Path) -> None:
    async def main() -> None:
        clock = Still()
        async with managing(tmp_path, lab(), clock=clock) as manager:
            await manager.set_fault(Fault(Kind.HANG, seconds=Seconds(70.0)))
            assert isinstance(await attached(manager, order("o")), Done)
            assert clock.now() == 1070.0
            assert [one.holds for one in manager.faults] == [()]

    asyncio.run(main())


def test_what_is_only_pretended_moves_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        backend = Broken()
        async with managing(tmp_path, lab(), backend) as manager:
            await manager.set_fault(Fault(Kind.PRETEND, verb="attach", times=1))
            assert isinstance(await attached(manager, order("o")), Done)
            assert await places(manager) == {"a-1": "n-1"}
            assert backend.calls == []
            await manager.set_fault(Fault(Kind.PRETEND, verb="detach", times=1))
            assert isinstance(await detached(manager, order("o")), Done)
            assert await places(manager) == {}
            assert backend.calls == []

    asyncio.run(main())


# --- attaches


def test_a_swapped_device_is_another_of_the_same_model(tmp_path: Path) -> None:
    async def play(manager: Manager) -> None:
        await manager.set_fault(Fault(Kind.SWAP, times=1))
        answer = await attached(manager, order("o"))
        assert isinstance(answer, Done)
        known = manager.hardware.devices
        assert answer.device != "a-1"
        assert known[answer.device].batch.model == "A100"
        assert answer.serial == known[answer.device].serial

    on(tmp_path, lab(), play)


def test_a_device_that_went_astray_is_shown_where_it_is_and_taken_back_from_there(tmp_path: Path) -> None:
    async def main() -> None:
        backend = Broken()
        async with managing(tmp_path, lab(), backend) as manager:
            await manager.set_fault(Fault(Kind.ASTRAY, times=1))
            assert isinstance(await attached(manager, order("o")), Done)
            assert await places(manager) == {"a-1": "n-2"}
            told = await manager.events(0, Seconds(0.0))
            assert [(one.what, one.node) for one in told] == [("attached", "n-2")]
            assert isinstance(await detached(manager, order("o")), Done)
            assert await places(manager) == {}
        assert backend.calls == ["attach a-1 n-2", "detach a-1 n-2", "close"]

    asyncio.run(main())


def test_a_device_that_went_astray_takes_a_slot_where_it_is(tmp_path: Path) -> None:
    full = (Machine(name=NodeName("n"), count=2, slots=1),)
    of = Hardware(msgspec.structs.replace(SMALL, machines=full))

    async def play(manager: Manager) -> None:
        await manager.set_fault(Fault(Kind.ASTRAY))
        assert isinstance(await attached(manager, order("o")), Done)
        assert await attached(manager, order("p", "a-2", "n-2")) == Failed("all 1 slots of n-2 are taken")
        # There is room nowhere else: it ends where it was meant to.
        assert isinstance(await attached(manager, order("q", "a-2", "n-1")), Done)
        assert await places(manager) == {"a-1": "n-2", "a-2": "n-1"}

    on(tmp_path, of, play)


QUOTAS = (
    (Fault(Kind.QUOTA, limit=2), Failed("the quota is used up: 2 of 2 devices")),
    (Fault(Kind.QUOTA, limit=2, reason="tenant has 2"), Failed("tenant has 2")),
    (Fault(Kind.QUOTA, limit=1, face="redfish"), Done),
    (Fault(Kind.QUOTA, limit=2, node=NodeName("n-1")), Done),
    (Fault(Kind.QUOTA, limit=1, node=NodeName("n-1")), Failed("the quota is used up: 1 of 1 devices")),
    (Fault(Kind.QUOTA, limit=3), Done),
)


@pytest.mark.parametrize(("quota", "expected"), QUOTAS)
def test_nobody_gets_more_than_the_quota(tmp_path: Path, quota: Fault, expected: Failed | type[Done]) -> None:
    async def play(manager: Manager) -> None:
        assert isinstance(await attached(manager, order("o")), Done)
        assert isinstance(await attached(manager, order("p", "a-2", "n-2")), Done)
        await manager.set_fault(quota)
        answer = await attached(manager, order("q", "a-3"))
        if isinstance(expected, Failed):
            assert answer == expected
            assert isinstance(await detached(manager, order("o")), Done)
            assert isinstance(await attached(manager, order("r", "a-3")), Done)
        else:
            assert isinstance(answer, expected)

    on(tmp_path, lab(), play)


# --- what is there


def test_a_machine_cut_off_is_not_shown_and_what_is_ordered_for_it_waits(tmp_path: Path) -> None:
    async def play(manager: Manager) -> None:
        assert isinstance(await attached(manager, order("o")), Done)
        await manager.set_fault(Fault(Kind.CUT, node=NodeName("n-1"), id="cut"))
        shown = await manager.inventory("native")
        assert [one.node for one in shown.machines] == ["n-2"]
        assert PhysicalID("a-1") not in {one.id for one in shown.devices}
        assert PhysicalID("a-2") in {one.id for one in shown.devices}
        assert await waits(manager, order("p", "a-2"))
        assert isinstance(await attached(manager, order("q", "a-3", "n-2")), Done)
        await manager.clear_fault("cut")
        assert isinstance(await attached(manager, order("p", "a-2")), Done)
        assert await places(manager) == {"a-1": "n-1", "a-2": "n-1", "a-3": "n-2"}
        told = [(one.what, one.node) for one in await manager.events(0, Seconds(0.0))]
        assert ("cut", "n-1") in told
        assert ("back", "n-1") in told

    on(tmp_path, lab(), play)


def where(shown: Inventory) -> dict[str, tuple[str, str]]:
    return {str(one.id): (str(one.node), str(one.order)) for one in shown.devices if one.node}


def test_what_was_detached_is_still_reported_and_what_was_attached_not_yet(tmp_path: Path) -> None:
    clock = Still()

    async def first(manager: Manager) -> None:
        assert isinstance(await attached(manager, order("o")), Done)
        before = await manager.inventory("native")
        clock.time = Seconds(1010.0)
        await manager.set_fault(Fault(Kind.STALE, id="old"))
        clock.time = Seconds(1020.0)
        assert isinstance(await detached(manager, order("o")), Done)
        assert isinstance(await attached(manager, order("p", "a-2", "n-2")), Done)
        assert await manager.inventory("native") == before

    async def second(manager: Manager) -> None:
        assert where(await manager.inventory("native")) == {"a-1": ("n-1", "o")}
        await manager.clear_fault("old")
        assert where(await manager.inventory("native")) == {"a-2": ("n-2", "p")}

    async def main() -> None:
        for play in (first, second):
            async with managing(tmp_path, lab(), clock=clock) as manager:
                await play(manager)

    asyncio.run(main())


STALE: tuple[tuple[Fault, dict[str, tuple[str, str]]], ...] = (
    (Fault(Kind.STALE, seconds=Seconds(15.0)), {"a-1": ("n-1", "o")}),
    (Fault(Kind.STALE, seconds=Seconds(25.0)), {}),
    (Fault(Kind.STALE, seconds=Seconds(5.0)), {"a-2": ("n-2", "p")}),
    (
        Fault(Kind.STALE, seconds=Seconds(15.0), device=PhysicalID("a-1")),
        {"a-1": ("n-1", "o"), "a-2": ("n-2", "p")},
    ),
    (Fault(Kind.STALE, seconds=Seconds(15.0), device=PhysicalID("a-2")), {}),
    (
        Fault(Kind.STALE, seconds=Seconds(15.0), node=NodeName("n-1")),
        {"a-1": ("n-1", "o"), "a-2": ("n-2", "p")},
    ),
    (Fault(Kind.STALE, seconds=Seconds(15.0), face="redfish"), {"a-2": ("n-2", "p")}),
)


@pytest.mark.parametrize(("fault", "shown"), STALE)
def test_what_is_shown_is_so_many_seconds_old(
    tmp_path: Path, fault: Fault, shown: dict[str, tuple[str, str]]
) -> None:
    async def main() -> None:
        clock = Still()
        async with managing(tmp_path, lab(), clock=clock) as manager:
            clock.time = Seconds(1000.0)
            assert isinstance(await attached(manager, order("o")), Done)
            clock.time = Seconds(1010.0)
            assert isinstance(await detached(manager, order("o")), Done)
            assert isinstance(await attached(manager, order("p", "a-2", "n-2")), Done)
            clock.time = Seconds(1020.0)
            await manager.set_fault(fault)
            assert where(await manager.inventory("native")) == shown
            clock.time = Seconds(1100.0)
            assert where(await manager.inventory("native")) == {"a-2": ("n-2", "p")}

    asyncio.run(main())


def test_somebody_elses_device_is_somebody_elses_in_the_past_too(tmp_path: Path) -> None:
    async def main() -> None:
        clock = Still()
        async with managing(tmp_path, lab(), clock=clock) as manager:
            assert isinstance(await attached(manager, order("o"), "hand"), Done)
            await manager.set_fault(Fault(Kind.STALE))
            clock.time = Seconds(1010.0)
            assert isinstance(await detached(manager, order("o"), "hand"), Done)
            (shown,) = [one for one in (await manager.inventory("native")).devices if one.node]
            assert (shown.ours, shown.order, shown.since) == (False, "", 1000.0)
            machines = {one.node: one.since for one in (await manager.inventory("native")).machines}
            assert machines == {"n-1": 1000.0, "n-2": 0.0}

    asyncio.run(main())


CM = "cluster_manager/cluster_autoscaler/v3/tenants/t/clusters/c/machines"
FM = "fabric_manager/api/v1/machines"


class Fsas:
    """A client of the two managers that know no order ids."""

    def __init__(self, server: Server, session: aiohttp.ClientSession) -> None:
        self._base = server.url
        self._session = session
        self.machine = ""

    async def get(self, path: str) -> tuple[int, str]:
        async with self._session.get(f"{self._base}/{path}?tenant_uuid=t") as answer:
            return answer.status, await answer.text()

    async def machines(self) -> list[str]:
        found = msgspec.json.decode((await self.get(FM))[1])["data"]["machines"]
        return [str(one["mach_uuid"]) for one in found]

    async def specs(self) -> list[dict[str, Any]]:
        """Return what CM has of the first machine, by model."""
        told = msgspec.json.decode((await self.get(f"{CM}/{self.machine}"))[1])
        return [*told["data"]["cluster"]["machine"]["resspecs"]]

    async def counted(self) -> list[tuple[int, list[str]]]:
        """Return how many of each model there are, and their states."""
        return [(one["device_count"], [it["status"] for it in one["devices"]]) for one in await self.specs()]

    async def resized(self, count: int) -> int:
        """Ask for so many of the first model; return the status."""
        wanted = {"spec_uuid": (await self.specs())[0]["spec_uuid"], "device_count": count}
        url = f"{self._base}/{CM}/{self.machine}/actions/resize"
        async with self._session.post(url, json={"increase_resource_count": wanted}) as answer:
            return answer.status


def asked(tmp_path: Path, play: Callable[[Server, Fsas], Awaitable[None]]) -> None:
    async def main() -> None:
        headers = {"Authorization": f"Bearer {TOKEN.reveal()}"}
        async with serving(tmp_path, lab()) as server, aiohttp.ClientSession(headers=headers) as session:
            client = Fsas(server, session)
            client.machine = (await client.machines())[0]
            await play(server, client)

    asyncio.run(main())


def test_a_count_may_be_as_old_as_a_list(tmp_path: Path) -> None:
    async def play(server: Server, client: Fsas) -> None:
        manager = server.manager
        assert isinstance(await attached(manager, order("o"), "fsas"), Done)
        await manager.set_fault(Fault(Kind.STALE, id="old"))
        assert isinstance(await attached(manager, order("p", "a-2"), "fsas"), Done)
        assert await client.counted() == [(1, ["ADD_COMPLETE"]), (0, [])]
        assert isinstance(await detached(manager, order("o"), "fsas"), Done)
        assert await client.counted() == [(1, ["ADD_COMPLETE"]), (0, [])]
        assert isinstance(await detached(manager, order("p", "a-2"), "fsas"), Done)
        assert await client.counted() == [(1, ["ADD_COMPLETE"]), (0, [])]
        await manager.clear_fault("old")
        assert await client.counted() == [(0, []), (0, [])]

    asked(tmp_path, play)


def test_a_machine_cut_off_is_not_reached_by_any_protocol(tmp_path: Path) -> None:
    async def play(server: Server, client: Fsas) -> None:
        await server.manager.set_fault(Fault(Kind.CUT, node=NodeName("n-1"), id="cut"))
        assert client.machine not in await client.machines()
        for path in (f"{FM}/{client.machine}", f"{CM}/{client.machine}"):
            status, words = await client.get(path)
            assert status == HTTPStatus.SERVICE_UNAVAILABLE
            assert "machine n-1 cannot be reached" in words
        await server.manager.clear_fault("cut")
        assert client.machine in await client.machines()
        assert await client.counted() == [(0, []), (0, [])]

    asked(tmp_path, play)


def test_a_count_that_is_sent_twice_is_two_devices(tmp_path: Path) -> None:
    """What a client without order ids does after a time-out; `tests/unit/fabric` has its side of it."""

    async def play(server: Server, client: Fsas) -> None:
        await server.manager.set_fault(Fault(Kind.LOST, face="fsas", verb="attach", times=1))
        with pytest.raises(aiohttp.ClientError):
            await client.resized(1)
        assert await client.resized(2) == HTTPStatus.OK
        for number in range(2):
            assert [one.what for one in await server.manager.events(number, SOON)][:1] == ["attached"]
        assert len(await places(server.manager)) == 2

    asked(tmp_path, play)


# --- names


def test_a_fault_of_the_same_name_replaces_the_first(tmp_path: Path) -> None:
    async def play(manager: Manager) -> None:
        await manager.set_fault(Fault(Kind.VANISH, device=PhysicalID("a-1"), id="gone"))
        await manager.set_fault(Fault(Kind.VANISH, device=PhysicalID("a-2"), id="gone"))
        shown = {str(one.id) for one in (await manager.inventory("native")).devices}
        assert "a-1" in shown
        assert "a-2" not in shown
        assert (await manager.set_fault(Fault(Kind.FAIL))).id == "fault-1"
        assert [one.id for one in manager.faults] == ["gone", "fault-1"]

    on(tmp_path, lab(), play)


def test_a_hang_that_is_set_anew_lets_go_of_what_it_held(tmp_path: Path) -> None:
    async def play(manager: Manager) -> None:
        await manager.set_fault(Fault(Kind.HANG, id="slow"))
        assert await waits(manager, order("o"))
        await manager.set_fault(Fault(Kind.HANG, id="slow"))
        assert isinstance(await attached(manager, order("o")), Done)

    on(tmp_path, lab(), play)
