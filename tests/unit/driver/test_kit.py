"""A driver on the kit, as the scheduler and the kubelet meet it: from its first slice to its last claim."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial

import pytest

from jackfield import driver
from jackfield.driver import metrics
from jackfield.model.event import Event
from unit.driver.lamps import CLASS, LAMPS, Lamps, claim
from unit.driver.site import NODE, Site, on_a_node


def cdi_devices(site: Site) -> dict[str, list[str]]:
    """Return what the CDI files give away, by full name: the variables."""
    files = [json.loads(path.read_text()) for path in sorted(site.places.cdi.glob("*"))]
    return {
        f"{file['kind']}={one['name']}": one["containerEdits"].get("env", [])
        for file in files
        for one in file["devices"]
    }


def listed(site: Site) -> dict[str, list[str]]:
    """Return the devices of all slices with their taints."""
    return {
        one.name: [taint.key for taint in one.taints] for each in site.slices() for one in each.spec.devices
    }


# --- a whole life


def test_a_claim_is_prepared_with_a_cdi_file_and_unprepared_without_a_trace() -> None:
    async def scene(site: Site) -> None:
        lamps = Lamps()
        site.apply(CLASS, claim("mine", 2))
        async with site.kubelet() as kubelet, site.kit(lamps) as kit:
            await kit.published()
            await kit.registered()
            assert kit.trouble == ""
            mine = await site.allocated("mine")
            outcome = (await kubelet.prepare(LAMPS, mine))[mine.uid]
            assert [(one.requests, one.pool, one.device) for one in outcome.devices] == [
                (("lamp",), NODE, "a"),
                (("lamp",), NODE, "b"),
            ]
            given = cdi_devices(site)
            assert [given[name] for one in outcome.devices for name in one.cdi] == [["LAMP=a"], ["LAMP=b"]]
            assert lamps.shares[0].published == driver.device("a", attributes={"colour": "warm"})
            assert (await kubelet.unprepare(LAMPS, mine))[mine.uid].error == ""
            assert cdi_devices(site) == {}
            await kit_is_counted(kit)

    async def kit_is_counted(kit: driver.Kit) -> None:
        figures = kit.figures().decode()
        for line in (
            f'jackfield_driver_claim_seconds_count{{driver="{LAMPS}",operation="prepare",result="ok"}} 1.0',
            f'jackfield_driver_slice_writes_total{{driver="{LAMPS}",result="ok",verb="create"}} 1.0',
            f'jackfield_driver_devices{{driver="{LAMPS}"}} 2.0',
            f'jackfield_driver_prepared_claims{{driver="{LAMPS}"}} 0.0',
            f'jackfield_driver_registered{{driver="{LAMPS}"}} 1.0',
            f'jackfield_driver_published{{driver="{LAMPS}"}} 1.0',
        ):
            assert f"\n{line}\n" in figures

    on_a_node(scene)


def test_a_driver_that_starts_again_knows_what_is_prepared_and_mends_its_files() -> None:
    async def scene(site: Site) -> None:
        site.apply(CLASS, claim("mine"))
        async with site.kubelet() as kubelet:
            async with site.kit(Lamps()) as kit:
                await kit.published()
                mine = await site.allocated("mine")
                await kubelet.registered(LAMPS)
                first = (await kubelet.prepare(LAMPS, mine))[mine.uid]
            await kubelet.gone(LAMPS)
            (file,) = site.places.cdi.glob("*")
            file.unlink()
            again = Lamps()
            async with site.kit(again) as kit:
                assert [(one.uid, one.device, one.notes) for one in again.restored] == [
                    (mine.uid, "a", {"plug": "p-a"})
                ]
                await kubelet.registered(LAMPS)
                assert (await kubelet.prepare(LAMPS, mine))[mine.uid] == first
                assert again.calls == []
                assert list(cdi_devices(site)) == [*first.devices[0].cdi]
                await kit.published()
        assert listed(site) == {"a": [], "b": []}

    on_a_node(scene)


def test_an_update_by_a_pod_beside_the_old_one_loses_neither_slices_nor_claims() -> None:
    async def scene(site: Site) -> None:
        site.apply(CLASS, claim("mine"))
        old, new = Lamps(), Lamps()
        async with site.kubelet() as kubelet:
            async with site.kit(old, pod_uid="old") as before:
                await before.published()
                mine = await site.allocated("mine")
                await kubelet.registered(LAMPS)
                first = (await kubelet.prepare(LAMPS, mine))[mine.uid]
                (one,) = site.slices()
                after = site.kit(new, pod_uid="new")
                await after.__aenter__()
                await kubelet.registered(LAMPS, 2)
                await after.published()
            try:
                await kubelet.registered(LAMPS, 1)
                assert site.slices() == [one]
                assert (await kubelet.prepare(LAMPS, mine))[mine.uid] == first
                assert (await kubelet.unprepare(LAMPS, mine))[mine.uid].error == ""
                assert (old.calls, new.calls) == (["prepare a"], ["unprepare a"])
            finally:
                await after.__aexit__(None, None, None)

    on_a_node(scene)


def test_two_drivers_in_one_process_do_not_disturb_each_other() -> None:
    class Fans(Lamps):
        name = "fans.example.com"

    async def scene(site: Site) -> None:
        site.apply(CLASS, claim("mine"))
        lamps, fans = Lamps(), Fans()
        async with site.kubelet() as kubelet, site.kit(lamps) as first, site.kit(fans) as second:
            await first.published()
            await second.published()
            mine = await site.allocated("mine")
            for name in (LAMPS, Fans.name):
                await kubelet.registered(name)
            (device,) = (await kubelet.prepare(LAMPS, mine))[mine.uid].devices
            assert device.device == "a"
            # The other one is asked for a claim that has nothing of it.
            assert (await kubelet.prepare(Fans.name, mine))[mine.uid].devices == ()
            assert (await kubelet.unprepare(Fans.name, mine))[mine.uid].error == ""
            assert list(cdi_devices(site)) == [*device.cdi]
            assert fans.calls == []
            assert b"lamps" not in second.figures()
            both = metrics.joined(first.counted(), second.counted()).decode()
            assert both.count("# HELP jackfield_driver_prepared_claims ") == 1
            assert f'jackfield_driver_prepared_claims{{driver="{LAMPS}"}} 1.0\n' in both
            assert 'jackfield_driver_prepared_claims{driver="fans.example.com"} 0.0\n' in both

    on_a_node(scene)


# --- what there is


def test_an_unhealthy_device_is_tainted_told_of_and_taken_back() -> None:
    async def scene(site: Site) -> None:
        lamps = Lamps()
        async with site.kubelet() as kubelet, site.kit(lamps) as kit:
            await kit.published()
            plugin = await kubelet.registered(LAMPS)
            lamps.sick = ["b"]
            lamps.changed()
            await site.until(lambda: listed(site) == {"a": [], "b": [f"{LAMPS}/unhealthy"]})
            await kubelet.until(lambda: (NODE, "b") in plugin.health)
            told = plugin.health[NODE, "b"]
            assert (told.health, told.message) == ("UNHEALTHY", "it flickers")
            assert b'unhealthy_devices{driver="lamps.example.com"} 1.0' in kit.figures()
            lamps.sick = []
            lamps.changed()
            await site.until(lambda: listed(site) == {"a": [], "b": []})

    on_a_node(scene)


def test_what_comes_and_goes_is_published_and_what_is_unsound_is_not() -> None:
    async def scene(site: Site) -> None:
        lamps = Lamps("a")
        async with site.kubelet(), site.kit(lamps) as kit:
            await kit.published()
            await kit.registered()
            lamps.names = ["a", "c"]
            kit.changed()
            await site.until(lambda: listed(site) == {"a": [], "c": []})
            lamps.names = ["a", "c", "c"]
            kit.changed()
            assert "two devices are called 'c'" in kit.trouble
            lamps.names = ["c"]
            kit.changed()
            await site.until(lambda: listed(site) == {"c": []})
            await kit.published()
            assert kit.trouble == ""

    on_a_node(scene)


def test_a_driver_without_health_says_nothing_of_it() -> None:
    class Plain(driver.Driver):
        name = "plain.example.com"

    async def scene(site: Site) -> None:
        async with site.kubelet() as kubelet, site.kit(Plain()) as kit:
            plugin = await kubelet.registered("plain.example.com")
            assert plugin.health_service == ""
            await kit.published()
        assert [one.spec.devices for one in site.slices()] == [()]

    on_a_node(scene)


def test_what_needs_nothing_but_a_name_is_prepared_with_nothing() -> None:
    class Plain(driver.Driver):
        name = LAMPS

        def pools(self) -> tuple[driver.Pool, ...]:
            return (driver.Pool((driver.device("a"),), name="shelf"),)

    async def scene(site: Site) -> None:
        site.apply(CLASS, claim("mine"))
        async with site.kubelet() as kubelet, site.kit(Plain()) as kit:
            await kit.published()
            mine = await site.allocated("mine")
            await kubelet.registered(LAMPS)
            (device,) = (await kubelet.prepare(LAMPS, mine))[mine.uid].devices
            assert (device.pool, len(cdi_devices(site))) == ("shelf", 1)
            assert (await kubelet.unprepare(LAMPS, mine))[mine.uid].error == ""

    on_a_node(scene)


def test_a_device_that_goes_while_a_claim_has_it_stays_published_tainted_until_it_is_unprepared() -> None:
    async def scene(site: Site) -> None:
        site.apply(CLASS, claim("mine"))
        missing = {"a": [f"{LAMPS}/unhealthy"], "b": []}
        async with site.kubelet() as kubelet:
            lamps = Lamps()
            async with site.kit(lamps) as kit:
                await kit.published()
                plugin = await kubelet.registered(LAMPS)
                mine = await site.allocated("mine")
                await kubelet.prepare(LAMPS, mine)
                lamps.names = ["b"]
                lamps.changed()
                await site.until(lambda: listed(site) == missing)
                await kubelet.until(lambda: (NODE, "a") in plugin.health)
                told = plugin.health[NODE, "a"]
                assert told.health == "UNHEALTHY"
                assert "gone while a claim has it" in told.message
                assert b'unhealthy_devices{driver="lamps.example.com"} 1.0' in kit.figures()
                await kit.published()
                (one,) = site.slices()
            await kubelet.gone(LAMPS)
            async with site.kit(Lamps("b")) as kit:  # which has never seen it
                await kit.published()
                assert site.slices() == [one]
                await kubelet.registered(LAMPS)
                assert (await kubelet.unprepare(LAMPS, mine))[mine.uid].error == ""
                await site.until(lambda: listed(site) == {"b": []})
                assert b'unhealthy_devices{driver="lamps.example.com"} 0.0' in kit.figures()

    on_a_node(scene)


def test_a_device_that_comes_back_while_a_claim_has_it_is_as_it_was() -> None:
    def shows(site: Site, wanted: dict[str, list[str]]) -> bool:
        return listed(site) == wanted

    async def scene(site: Site) -> None:
        site.apply(CLASS, claim("mine"))
        lamps = Lamps()
        async with site.kubelet() as kubelet, site.kit(lamps) as kit:
            await kit.published()
            await kubelet.registered(LAMPS)
            mine = await site.allocated("mine")
            await kubelet.prepare(LAMPS, mine)
            for names, taints in ((["b"], [f"{LAMPS}/unhealthy"]), (["a", "b"], [])):
                lamps.names = names
                lamps.changed()
                await site.until(partial(shows, site, {"a": taints, "b": []}))

    on_a_node(scene)


# --- what goes wrong


def test_a_damaged_checkpoint_is_told_once_on_the_node_and_what_is_lost_while_it_runs_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def events(site: Site) -> list[Event]:
        found = [one.object for one in site.store.list(Event).items if isinstance(one.object, Event)]
        return [one for one in found if one.source.component == LAMPS]

    async def scene(site: Site) -> None:
        site.apply(CLASS, claim("mine"))
        checkpoint = site.places.plugins / LAMPS / "checkpoint.jsonl"
        async with site.kubelet() as kubelet:
            async with site.kit(Lamps()) as kit:
                await kit.published()
                await kubelet.registered(LAMPS)
                mine = await site.allocated("mine")
                await kubelet.prepare(LAMPS, mine)
            checkpoint.write_bytes(checkpoint.read_bytes().replace(b"default", b"defamed"))
            await kubelet.gone(LAMPS)
            for _ in ("the life that finds it", "the next, which finds nothing"):
                async with site.kit(Lamps()) as kit:
                    await kit.published()
                    await site.until(lambda: len(events(site)) == 1)
            (event,) = events(site)
            assert (event.reason, event.involved_object.name) == ("CheckpointDamaged", NODE)
            assert "a line is damaged (probably claim 'defamed/mine'" in event.message
            await kubelet.gone(LAMPS)
            async with site.kit(Lamps()) as kit:
                await kit.published()
                await kubelet.registered(LAMPS)
                checkpoint.write_bytes(b"nonsense")
                assert (await kubelet.prepare(LAMPS, mine))[mine.uid].error == ""
                await site.until(lambda: len(events(site)) == 2)
            assert "its first line is missing or damaged" in caplog.text

    on_a_node(scene)


@pytest.mark.parametrize("names", [("a", "a"), ("A",)])
def test_a_driver_whose_devices_are_unsound_does_not_start(names: tuple[str, ...]) -> None:
    async def scene(site: Site) -> None:
        with pytest.raises(driver.BadDevice):
            async with site.kit(Lamps(*names)):
                pytest.fail("it started")

    on_a_node(scene)


def test_two_pools_of_one_name_are_told_of() -> None:
    class Twice(driver.Driver):
        name = LAMPS

        def pools(self) -> tuple[driver.Pool, ...]:
            return (driver.Pool(), driver.Pool(name=NODE))

    async def scene(site: Site) -> None:
        with pytest.raises(driver.BadDevice, match="two pools are called 'n1'"):
            await site.kit(Twice()).__aenter__()

    on_a_node(scene)


def test_an_effect_that_is_none_is_told_of_when_it_would_be_used() -> None:
    class Odd(Lamps):
        unhealthy_effect = "Maybe"

    async def scene(site: Site) -> None:
        odd = Odd()
        async with site.kit(odd) as kit:
            await kit.published()
            odd.sick = ["a"]
            kit.changed()
            assert "its effect is 'Maybe'" in kit.wrong
            assert b'unhealthy_devices{driver="lamps.example.com"} 0.0' in kit.figures()

    on_a_node(scene)


def test_a_driver_without_a_proper_name_is_refused_at_once() -> None:
    async def scene(site: Site) -> None:
        with pytest.raises(driver.BadDevice, match=r"such as gpu\.example\.com"):
            site.kit(driver.Driver())

    on_a_node(scene)


def test_a_driver_that_stops_looking_after_its_devices_is_not_taken_for_well() -> None:
    class Blind(Lamps):
        async def watch(self, changed: Callable[[], None]) -> None:
            del changed
            raise OSError("the bus is gone")

    async def scene(site: Site) -> None:
        async with site.kit(Blind()) as kit:
            with pytest.raises(OSError, match="the bus is gone"):
                await kit.failure()
            assert "does not look after its devices any more: OSError: the bus is gone" in kit.trouble

    on_a_node(scene)


def test_a_driver_with_nothing_to_watch_does_not_fail() -> None:
    enough = asyncio.Event()

    class Content(Lamps):
        async def watch(self, changed: Callable[[], None]) -> None:
            del changed
            await enough.wait()

    async def scene(site: Site) -> None:
        async with site.kit(Content()) as kit:
            await kit.published()
            failing = asyncio.create_task(kit.failure())
            for _ in range(2):
                await asyncio.wait([failing], timeout=0.02)
                assert not failing.done()
                enough.set()
            assert "the kubelet has not asked" in kit.trouble
            failing.cancel()
            await asyncio.wait([failing])

    on_a_node(scene)


def test_the_words_of_the_kit_need_neither_grpc_nor_a_web_server() -> None:
    heavy = "grpc", "google", "prometheus_client", "aiohttp", "click"
    code = (
        f"import sys; from jackfield import driver; print([one for one in {heavy} if one in sys.modules])\n"
        "sys.modules['grpc'] = None\n"
        "driver.Kit"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "[]\n"
    assert "ImportError: driver.Kit needs grpc: pip install 'jackfield[driver]'" in done.stderr
    assert all(getattr(driver, one) is not None for one in driver.__all__)
    unknown = "nothing"
    with pytest.raises(AttributeError, match=r"'jackfield\.driver' has no attribute 'nothing'"):
        getattr(driver, unknown)
