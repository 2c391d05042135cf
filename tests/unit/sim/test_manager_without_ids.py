"""A simulated manager without order ids is as dangerous as real ones."""

import msgspec
import pytest

from jackfield.model.fabric import Done, Failed, Working
from jackfield.model.names import PhysicalID, Seconds
from jackfield.ports import Refused, Retry
from jackfield.sim.chance import Fixed
from jackfield.sim.manager import Manager
from jackfield.sim.spec import FabricSpec, Foreign, Refusals
from unit.sim.small_fabric import (
    A100,
    BLIND,
    N0,
    N1,
    TOLD,
    after,
    attach,
    detach,
    on,
    order,
    play,
    with_jobs,
)


def test_without_ids_an_attach_asked_twice_is_two_devices() -> None:
    async def scenario(manager: Manager) -> None:
        assert attach(manager, order()) == Working()
        assert attach(manager, order()) == Working()
        await after(10)
        assert on(manager, N0) == ["0000", "0001"]
        assert {device.order for device in manager.inventory().devices} == {""}

    play(BLIND, scenario)


def test_without_ids_a_named_device_is_attached_once() -> None:
    async def scenario(manager: Manager) -> None:
        wanted = order(device="0001")
        assert [attach(manager, wanted), attach(manager, wanted)] == [Working(), Working()]
        await after(10)
        assert isinstance(attach(manager, wanted), Done)
        assert detach(manager, wanted) == Working()
        with pytest.raises(Retry, match="being detached"):
            attach(manager, wanted)

    play(TOLD, scenario)


def test_without_ids_a_device_that_is_about_to_be_turned_round_cannot_be_had() -> None:
    async def scenario(manager: Manager) -> None:
        wanted = order(device="0001")
        attach(manager, wanted)
        await after(5)
        assert attach(manager, wanted) == Working()
        detach(manager, wanted)
        with pytest.raises(Retry, match="being detached"):
            attach(manager, wanted)

    play(TOLD, scenario)


def test_without_ids_a_device_can_be_attached_again_after_it_failed_or_was_detached() -> None:
    async def scenario(manager: Manager) -> None:
        wanted = order(device="0001")
        manager.refusals = Refusals(nodes=(N0,))
        attach(manager, wanted)
        await after(10)
        assert attach(manager, wanted) == Failed("the link to n0 does not come up")
        manager.refusals = Refusals()
        assert attach(manager, wanted) == Working()
        await after(10)
        detach(manager, wanted)
        await after(10)
        assert attach(manager, wanted) == Working()

    play(TOLD, scenario)


def test_without_ids_a_success_makes_an_older_failure_forgotten() -> None:
    async def scenario(manager: Manager) -> None:
        manager.refusals = Refusals(devices=(PhysicalID("0000"),))
        attach(manager, order())
        await after(1)
        attach(manager, order())
        await after(20)
        assert on(manager, N0) == ["0001"]
        assert attach(manager, order()) == Working()

    play(BLIND, scenario)


def test_without_ids_a_job_may_take_as_long_as_a_call() -> None:
    async def scenario(manager: Manager) -> None:
        attach(manager, order())
        await after(60)
        assert len(on(manager, N0)) == 1

    play(msgspec.structs.replace(BLIND, attach=Fixed(Seconds(60.0))), scenario)


def test_without_ids_any_detach_pulls_the_device_it_names() -> None:
    async def scenario(manager: Manager) -> None:
        attach(manager, order("a", device="0001"))
        await after(10)
        assert detach(manager, order("b", device="0001")) == Working()
        await after(10)
        assert on(manager, N0) == []

    play(TOLD, scenario)


def test_without_ids_a_failure_is_told_to_whoever_asks_next_for_the_same() -> None:
    async def scenario(manager: Manager) -> None:
        manager.refusals = Refusals(nodes=(N0,))
        attach(manager, order())
        await after(10)
        assert attach(manager, order(node=N1)) == Working()
        assert attach(manager, order()) == Failed("the link to n0 does not come up")
        assert attach(manager, order()) == Working()

    play(BLIND, scenario)


@pytest.mark.parametrize("spec", [BLIND, TOLD])
def test_without_ids_a_job_that_takes_too_long_has_no_effect(spec: FabricSpec) -> None:
    async def scenario(manager: Manager) -> None:
        attach(manager, order(device="0000"))
        await after(60)
        assert not manager.busy
        assert on(manager, N0) == []
        answer = attach(manager, order(device="0000"))
        assert answer == Failed("attach of 0000 was not done within 60 s")

    play(msgspec.structs.replace(spec, attach=Fixed(Seconds(61.0))), scenario)


def test_without_ids_a_job_that_waits_too_long_has_no_effect() -> None:
    async def scenario(manager: Manager) -> None:
        for number in range(3):
            attach(manager, order(str(number)))
        await after(200)
        assert len(on(manager, N0)) == 2

    play(with_jobs(msgspec.structs.replace(BLIND, attach=Fixed(Seconds(25.0))), 1), scenario)


def test_without_ids_what_somebody_else_attached_is_not_detached() -> None:
    async def scenario(manager: Manager) -> None:
        with pytest.raises(Refused, match="attached by somebody else"):
            detach(manager, order(device="0000"))

    play(msgspec.structs.replace(TOLD, foreign=(Foreign(N0, A100),)), scenario)
