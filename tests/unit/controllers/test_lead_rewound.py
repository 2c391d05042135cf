"""Leases after a backup of the API was restored: what a Lease shows is old, and its owner lives."""

import pytest

from jackfield.controllers.lead import INSTANCE, REPLICAS
from jackfield.model.lease import Lease
from jackfield.model.names import Key, Seconds, Version, rfc3339_micro
from jackfield.ports import Merge
from unit.controllers.replicas import EVERY, LEASE, Stage, play, share


def test_a_lease_that_a_restored_backup_shows_is_outlived() -> None:
    async def scene(stage: Stage) -> None:
        one = stage.start("one")
        await stage.wait(1.0)
        body = {"metadata": {"annotations": {INSTANCE: "before"}}}
        await stage.cluster.write(Merge(Lease, Key(REPLICAS, "one"), Version(""), body))
        await stage.wait(0.1)
        assert not one.led
        assert await stage.until(lambda: one.led == EVERY) == pytest.approx(LEASE - 0.1, abs=0.1)

    play(scene)


@pytest.mark.parametrize("others", [(), ("two",)], ids=["alone", "with another"])
def test_who_hears_that_time_went_back_leads_again_when_its_lease_is_written_anew(
    others: tuple[str, ...],
) -> None:
    """Its Lease may be lost, and whoever starts then would take it for dead: two would ask one manager."""

    async def scene(stage: Stage) -> None:
        one = (await stage.two())[0] if others else stage.start("one")
        await stage.wait(1.0)
        one.leases.doubt()
        assert not one.led
        took = await stage.until(lambda: one.led == share("one", *others))
        assert took == pytest.approx(LEASE if others else 0.0, abs=0.1)

    play(scene)


@pytest.mark.parametrize("comes", ["two", "three"])
def test_who_leads_by_a_renewal_that_a_restored_backup_has_lost_is_not_taken_for_dead(comes: str) -> None:
    """Neither by one whose own lease had run out, as it was seen, nor by one who was never there."""

    async def scene(stage: Stage) -> None:
        one, two = await stage.two()
        two.wire.away = True
        await stage.until(lambda: one.led == EVERY)
        if comes != "two":
            two.wire.away = False
            await two.end()
        await stage.until(lambda: one.leases.left() > LEASE - 0.1)
        body = {"spec": {"renewTime": rfc3339_micro(Seconds(stage.clock.now() - 3600.0))}}
        await stage.cluster.write(Merge(Lease, Key(REPLICAS, "one"), Version(""), body))
        one.wire.away = one.wire.deaf = True  # it leads for as long as it knows that nobody else can
        two.wire.away = False
        came = two if comes == "two" else stage.start(comes)
        await stage.wait(LEASE - 0.5)
        assert one.led == EVERY
        assert await stage.names() == sorted(("one", comes))
        await stage.until(lambda: came.led == EVERY)

    play(scene)
