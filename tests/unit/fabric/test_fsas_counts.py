"""Cluster Manager's counts are absolute: one is changed only when it says what is there, and no order counts twice."""

import msgspec
import pytest

from jackfield.codec import fsas
from jackfield.fabric.http import Answer, Request
from jackfield.model.fabric import Done, Working
from jackfield.model.names import PhysicalID, Seconds
from jackfield.ports import Retry
from jackfield.sim import clock, loop
from unit.fabric.test_fsas_hostile import DETAIL, DEVICE, MACHINE, ORDER, SPEC, Hostile, honest, over


class Moving(Hostile):
    """A machine in whose spec something is under way for a second; notes what is asked of it, and when."""

    def __init__(self, status: str, count: int, after: fsas.CmSpec) -> None:
        super().__init__("fsas-cm", honest)
        self.changes: list[tuple[float, fsas.Resize]] = []
        self._begun = clock.running().now()
        moving = fsas.CmDevice("GPU-1", status, "", DETAIL)
        self._before = msgspec.structs.replace(SPEC, device_count=count, devices=(moving,))
        self._after = after

    async def call(self, request: Request) -> Answer:
        passed = clock.running().now() - self._begun
        if "resize" in request.path:
            self.changes.append((passed, fsas.resize(request.body)))
            return Answer(200, b"{}")
        if request.path.startswith(fsas.CM):
            spec = self._before if passed < 1.0 else self._after
            machine = fsas.CmMachine(MACHINE, "n-1", resspecs=(spec,))
            return Answer(200, fsas.encode(fsas.CmAnswer(fsas.CmTenant(fsas.CmCluster(machine)))))
        return await super().call(request)


EMPTY = msgspec.structs.replace(SPEC, device_count=0, devices=())


def test_a_device_that_another_process_has_taken_back_half_way_is_waited_for_not_removed_again() -> None:
    async def main() -> None:
        wire = Moving("REMOVE_PROGRESS", 0, EMPTY)
        async with over("fsas-cm", wire) as fabric:
            assert await fabric.detach(ORDER) == Working()
            assert await fabric.detach(ORDER) == Done(PhysicalID(DEVICE))
        assert wire.changes == []

    loop.run(main())


@pytest.mark.parametrize(
    ("status", "count", "after", "asked"),
    [
        ("ADD_PROGRESS", 1, SPEC, 2),
        ("REMOVE_PROGRESS", 0, EMPTY, 1),
        (fsas.ADD_COMPLETE, 2, SPEC, 2),
    ],
)
def test_a_count_is_changed_only_when_it_says_what_is_there(
    status: str, count: int, after: fsas.CmSpec, asked: int
) -> None:
    async def main() -> None:
        wire = Moving(status, count, after)
        async with over("fsas-cm", wire) as fabric:
            assert await fabric.attach(ORDER) == Working()
            await clock.running().sleep(Seconds(1.0))
        ((when, resize),) = wire.changes
        assert when >= 1.0
        assert resize == fsas.Resize(fsas.Increase(SPEC.spec_uuid, asked))

    loop.run(main())


class Wavering(Hostile):
    """A manager that attaches what it is asked for, then takes its word back: shows it in another state."""

    def __init__(self) -> None:
        super().__init__("fsas-cm", honest)
        self.shown = EMPTY
        self.counts: list[int] = []

    async def call(self, request: Request) -> Answer:
        if "resize" in request.path:
            asked = fsas.resize(request.body)
            if asked.increase_resource_count is not None:
                self.counts.append(asked.increase_resource_count.device_count)
                self.shown = SPEC
            else:
                self.shown = EMPTY
            return Answer(200, b"{}")
        if request.path.startswith(fsas.CM):
            machine = fsas.CmMachine(MACHINE, "n-1", resspecs=(self.shown,))
            return Answer(200, fsas.encode(fsas.CmAnswer(fsas.CmTenant(fsas.CmCluster(machine)))))
        return await super().call(request)

    def becomes(self, status: str) -> None:
        """Show the device in this state from now on."""
        self.shown = msgspec.structs.replace(SPEC, devices=(fsas.CmDevice("GPU-1", status, "", DETAIL),))


@pytest.mark.parametrize("status", ["ADD_PROGRESS", "ADD_PREPARE", "ADD_"])
def test_a_device_that_is_shown_as_coming_again_is_neither_there_nor_ordered_anew(status: str) -> None:
    async def main() -> None:
        wire = Wavering()
        async with over("fsas-cm", wire) as fabric:
            came = await fabric.attach(ORDER)
            assert came == Done(PhysicalID(DEVICE), "GPU-1")
            wire.becomes(status)
            assert [one.node for one in (await fabric.inventory()).devices] == []
            with pytest.raises(Retry, match=f"{DEVICE} is not on n-1 yet: {status}"):
                await fabric.attach(ORDER)
            wire.becomes(fsas.ADD_COMPLETE)
            assert await fabric.attach(ORDER) == came
        assert wire.counts == [1]

    loop.run(main())


def test_a_device_that_failed_to_come_after_all_is_taken_off_the_count_before_another_is_ordered() -> None:
    async def main() -> None:
        wire = Wavering()
        async with over("fsas-cm", wire) as fabric:
            came = await fabric.attach(ORDER)
            wire.becomes(fsas.ADD_FAILED)
            assert await fabric.attach(ORDER) == came
        assert wire.counts == [1, 1]

    loop.run(main())
