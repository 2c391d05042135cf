"""Claims are prepared whole or not at all, once however often it is asked, and undone from memory."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TypeVar

import pytest
from msgspec.structs import replace

from jackfield import driver
from jackfield.cluster.api import Client, EmbeddedCluster
from jackfield.cluster.store import Store, Write
from jackfield.codec.encoding import encoded
from jackfield.driver.claims import Place
from jackfield.driver.preparer import Answer, ClaimRef
from jackfield.driver.preparing import Preparing
from jackfield.driver.store import PreparedStore
from jackfield.driver.writer import Writer
from jackfield.model.claim import DeviceRequestAllocationResult, ResourceClaim
from jackfield.model.device import Device
from jackfield.model.meta import Object
from jackfield.model.names import Key, NodeName, Seconds, Uid
from jackfield.ports import Refused, Retry
from unit.driver.lamps import LAMPS, Lamps, given
from unit.driver.test_claims import allocated

T = TypeVar("T", bound=Object)


class Line(Client):
    """A handle to the API whose line may be cut."""

    cut = False

    async def read(self, kind: type[T], key: Key) -> T:
        if self.cut:
            raise Retry("the API server is away")
        return await super().read(kind, key)


class Figures:
    """Counts what it is told."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, bool]] = []

    def claim(self, operation: str, seconds: float, *, done: bool) -> None:
        assert seconds >= 0
        self.seen.append((operation, done))


class Desk:
    """A driver, what it remembers, and an API server with claims."""

    def __init__(self, folder: Path) -> None:
        self._cluster = EmbeddedCluster(Store(lambda: Seconds(1.7e9), random.Random("claims")))  # noqa: S311 - a test
        self._folder = folder
        self.line = Line(self._cluster.store, self._cluster._feeds, "driver")  # noqa: SLF001 - as `client` does
        self.figures = Figures()
        self.lamps = Lamps()
        self.begin()

    def begin(self) -> None:
        """Start the driver, anew."""
        self.lamps = Lamps(*self.lamps.names)
        (self._folder / "plugins").mkdir(exist_ok=True)
        self.store = PreparedStore(LAMPS, self._folder / "plugins", self._folder / "cdi")
        assert self.store.open() == ()
        place = Place(LAMPS, NodeName("n1"), self._published)
        self.preparing = Preparing(self.lamps, self.line, Writer(self.store), place, self.figures)

    def _published(self, pool: str, device: str) -> Device | None:
        return Device(device) if pool == "n1" and device in self.lamps.names else None

    def allocate(self, name: str, *results: DeviceRequestAllocationResult) -> ClaimRef:
        """Have a claim allocated, anew if it was."""
        store, key = self._cluster.store, Key("default", name)
        if not any(one.key == key for one in store.list(ResourceClaim).items):
            request: dict[str, object] = {"name": "lamp", "exactly": {"deviceClassName": "lamp"}}
            if choice := results[0].request.partition("/")[2]:
                request = {"name": "lamp", "firstAvailable": [{"name": choice, "deviceClassName": "lamp"}]}
            metadata = {"name": name, "namespace": "default"}
            store.create(ResourceClaim, {"metadata": metadata, "spec": {"devices": {"requests": [request]}}})
        status = encoded(allocated(*results).status)
        store.patch(ResourceClaim, key, {"status": {"allocation": None}}, Write(status=True))
        stored = store.patch(ResourceClaim, key, {"status": status}, Write(status=True))
        return ClaimRef("default", name, stored.object.uid)

    def delete(self, name: str) -> None:
        """Have a claim gone."""
        key = Key("default", name)
        self._cluster.store.patch(ResourceClaim, key, {"status": None}, Write(status=True))
        self._cluster.store.delete(ResourceClaim, key)

    def files(self) -> list[str]:
        return sorted(path.name for path in (self._folder / "cdi").glob("*.json"))

    async def refusal(self, asked: Coroutine[object, object, object]) -> str:
        with pytest.raises((Refused, Retry)) as caught:
            await asked
        return str(caught.value)


def played(scene: Callable[[Desk], Coroutine[object, object, None]], folder: Path) -> None:
    async def play() -> None:
        await scene(Desk(folder))

    asyncio.run(play())


def devices(answer: Answer) -> list[tuple[tuple[str, ...], str, str, str]]:
    return [(one.requests, one.pool, one.device, one.share_id) for one in answer.devices]


# --- asked again


def test_a_claim_that_is_prepared_is_answered_alike_and_the_driver_is_not_asked_again(tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        mine = desk.allocate("mine", given("a"), given("b"))
        first = await desk.preparing.prepare(mine)
        assert devices(first) == [(("lamp",), "n1", "a", ""), (("lamp",), "n1", "b", "")]
        assert await desk.preparing.prepare(mine) == first
        desk.begin()
        assert await desk.preparing.prepare(mine) == first
        assert desk.lamps.calls == []
        assert desk.files() == [f"{LAMPS}_claim_{mine.uid}.json"]
        assert desk.figures.seen == [("prepare", True)] * 3

    played(scene, tmp_path)


def test_while_the_api_is_away_what_is_prepared_is_answered_and_nothing_else(tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        mine, other = desk.allocate("mine", given("a")), desk.allocate("other", given("b"))
        first = await desk.preparing.prepare(mine)
        desk.line.cut = True
        assert await desk.preparing.prepare(mine) == first
        assert await desk.refusal(desk.preparing.prepare(other)) == "the API server is away"
        assert await desk.refusal(desk.preparing.unprepare(other)) == "the API server is away"
        assert await desk.preparing.unprepare(mine) == ""
        assert desk.figures.seen[-3:] == [("prepare", False), ("unprepare", False), ("unprepare", True)]

    played(scene, tmp_path)


def test_the_alternative_that_was_chosen_is_told_to_the_driver_and_its_request_to_the_pod(
    tmp_path: Path,
) -> None:
    async def scene(desk: Desk) -> None:
        mine = desk.allocate("mine", replace(given("a"), request="lamp/warm"))
        assert devices(await desk.preparing.prepare(mine)) == [(("lamp",), "n1", "a", "")]
        assert desk.lamps.shares[0].requests == ("lamp/warm",)

    played(scene, tmp_path)


def test_a_claim_with_nothing_of_this_driver_is_prepared_with_nothing(tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        mine = desk.allocate("mine", given("x", driver="other.example.com"))
        assert await desk.preparing.prepare(mine) == Answer()
        assert desk.store.entries() == ()

    played(scene, tmp_path)


# --- all or nothing


def test_when_one_device_fails_all_of_the_call_are_undone_and_it_can_be_tried_again(tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        mine = desk.allocate("mine", given("a"), given("b"))
        desk.lamps.fails = {"prepare b": OSError("no current")}
        words = await desk.refusal(desk.preparing.prepare(mine))
        assert words == "device b could not be prepared: OSError: no current"
        assert desk.lamps.calls == ["prepare a", "prepare b", "unprepare b", "unprepare a"]
        assert (desk.files(), desk.store.entries()) == ([], ())
        desk.lamps.fails = {}
        assert len((await desk.preparing.prepare(mine)).devices) == 2

    played(scene, tmp_path)


def test_what_cannot_be_undone_is_told_too_and_the_rest_is_undone(tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        mine = desk.allocate("mine", given("a"), given("b"))
        desk.lamps.fails = {"prepare b": Refused("no current"), "unprepare b": Refused("the switch is stuck")}
        assert await desk.refusal(desk.preparing.prepare(mine)) == (
            "device b could not be prepared: no current; device b could not be unprepared: the switch is stuck"
        )
        assert desk.lamps.calls[-1] == "unprepare a"

    played(scene, tmp_path)


def test_a_driver_that_returns_something_else_is_told_what_is_taken(tmp_path: Path) -> None:
    class Wrong(Lamps):
        async def prepare(self, share: driver.Share) -> driver.Prepared:
            return [share]  # type: ignore[return-value]  # that is the mistake

    async def scene(desk: Desk) -> None:
        desk.preparing._driver = Wrong()  # noqa: SLF001 - another driver at the same desk
        mine = desk.allocate("mine", given("a"))
        assert "returned list; it takes Edits or Prepared" in await desk.refusal(desk.preparing.prepare(mine))

    played(scene, tmp_path)


# --- two claims


def test_a_device_that_another_claim_has_is_refused_until_that_is_unprepared(tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        mine, other = desk.allocate("mine", given("a")), desk.allocate("other", given("a"))
        await desk.preparing.prepare(mine)
        words = await desk.refusal(desk.preparing.prepare(other))
        assert words.startswith(f"device a of pool n1 is still prepared for claim default/mine ({mine.uid})")
        await desk.preparing.unprepare(mine)
        assert (await desk.preparing.prepare(other)).devices

    played(scene, tmp_path)


def test_a_device_that_is_being_prepared_for_another_claim_is_refused(tmp_path: Path) -> None:
    class Slow(Lamps):
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def prepare(self, share: driver.Share) -> driver.Prepared:
            self.begun.set()
            await self.go_on.wait()
            return await super().prepare(share)

    async def scene(desk: Desk) -> None:
        desk.preparing._driver = slow = Slow()  # noqa: SLF001 - another driver at the same desk
        mine, other = desk.allocate("mine", given("a")), desk.allocate("other", given("a"))
        first = asyncio.create_task(desk.preparing.prepare(mine))
        await slow.begun.wait()
        assert "still prepared for claim default/mine" in await desk.refusal(desk.preparing.prepare(other))
        # Nor does it take it away to be asked to undo what was never done for it.
        assert await desk.preparing.unprepare(other) == ""
        assert slow.calls == []
        slow.go_on.set()
        assert (await first).devices

    played(scene, tmp_path)


def test_whoever_looks_only_is_in_nobodys_way(tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        mine = desk.allocate("mine", given("a"))
        admin = desk.allocate("admin", replace(given("a"), admin_access=True))
        for one in (admin, mine):
            assert len((await desk.preparing.prepare(one)).devices) == 1
        await desk.preparing.unprepare(mine)
        assert (await desk.preparing.prepare(mine)).devices

    played(scene, tmp_path)


# --- undone


def test_a_claim_that_is_gone_from_the_api_is_unprepared_from_memory(tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        mine = desk.allocate("mine", given("a"), given("b"))
        await desk.preparing.prepare(mine)
        desk.delete("mine")
        desk.begin()
        assert await desk.preparing.unprepare(mine) == ""
        assert [(one.device, one.notes) for one in desk.lamps.shares] == [
            ("b", {"plug": "p-b"}),
            ("a", {"plug": "p-a"}),
        ]
        assert (desk.files(), desk.store.entries()) == ([], ())
        assert await desk.preparing.unprepare(mine) == ""
        assert "does not exist" in await desk.refusal(desk.preparing.prepare(mine))

    played(scene, tmp_path)


def test_what_could_not_be_undone_is_remembered_and_undone_later(tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        mine = desk.allocate("mine", given("a"), given("b"))
        await desk.preparing.prepare(mine)
        desk.lamps.fails = {"unprepare a": Retry("the switch is stuck")}
        words = await desk.refusal(desk.preparing.unprepare(mine))
        assert words == "device a could not be unprepared: the switch is stuck"
        assert len(desk.store.entries()) == 1
        desk.lamps.fails = {}
        assert await desk.preparing.unprepare(mine) == ""
        assert desk.store.entries() == ()

    played(scene, tmp_path)


def test_what_an_earlier_life_left_half_prepared_is_undone_as_the_claim_says(tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        mine = desk.allocate("mine", given("a"))
        assert await desk.preparing.unprepare(mine) == ""
        assert desk.lamps.calls == ["unprepare a"]
        stranger = replace(mine, uid=Uid("another"))
        assert await desk.preparing.unprepare(stranger) == ""
        assert desk.lamps.calls == ["unprepare a"]

    played(scene, tmp_path)


def test_a_claim_that_never_was_prepared_takes_nothing_away_from_who_has_it(tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        mine, other = desk.allocate("mine", given("a")), desk.allocate("other", given("a"))
        await desk.preparing.prepare(mine)
        assert await desk.preparing.unprepare(other) == ""
        assert desk.lamps.calls == ["prepare a"]

    played(scene, tmp_path)


def test_a_claim_that_was_allocated_anew_loses_what_it_had_and_gets_what_it_has(tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        mine = desk.allocate("mine", given("a"))
        await desk.preparing.prepare(mine)
        assert desk.allocate("mine", given("b")) == mine
        assert devices(await desk.preparing.prepare(mine)) == [(("lamp",), "n1", "b", "")]
        assert desk.lamps.calls == ["prepare a", "unprepare a", "prepare b"]
        desk.allocate("mine", given("x", driver="other.example.com"))
        assert await desk.preparing.prepare(mine) == Answer()
        assert (desk.lamps.calls[-1], desk.files(), desk.store.entries()) == ("unprepare b", [], ())

    played(scene, tmp_path)


def test_a_device_that_is_not_published_any_more_stays_prepared_for_who_has_it(tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        mine, other = desk.allocate("mine", given("a")), desk.allocate("other", given("b"))
        first = await desk.preparing.prepare(mine)
        desk.lamps.names = []
        assert await desk.preparing.prepare(mine) == first
        assert "is not on node n1" in await desk.refusal(desk.preparing.prepare(other))

    played(scene, tmp_path)


# --- what cannot be written down


class Full:
    """While it is open, the disk takes nothing: another's folder lies where files are made."""

    def __init__(self, folder: Path) -> None:
        self._aside = folder / "plugins" / LAMPS / ".checkpoint.jsonl.new"

    def __enter__(self) -> None:
        self._aside.mkdir()

    def __exit__(self, *_: object) -> None:
        self._aside.rmdir()


def test_what_cannot_be_written_down_is_told_and_written_when_it_can(tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        mine = desk.allocate("mine", given("a"))
        with Full(tmp_path):
            words = await desk.refusal(desk.preparing.prepare(mine))
            assert "cannot be written: checkpoint.jsonl" in words
            assert desk.store.entries() == ()
        assert (await desk.preparing.prepare(mine)).devices
        assert desk.lamps.calls == ["prepare a"]
        assert [one.uid for one in desk.store.entries()] == [mine.uid]
        assert await desk.preparing.unprepare(mine) == ""
        assert desk.lamps.calls == ["prepare a", "unprepare a"]

    played(scene, tmp_path)


def test_what_was_not_written_down_is_undone_though_its_claim_is_gone(tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        mine, other = desk.allocate("mine", given("a"), given("b")), desk.allocate("other", given("a"))
        with Full(tmp_path):
            await desk.refusal(desk.preparing.prepare(mine))
        desk.delete("mine")
        assert "still prepared for claim default/mine" in await desk.refusal(desk.preparing.prepare(other))
        desk.lamps.fails = {"unprepare a": Retry("the switch is stuck")}
        assert "the switch is stuck" in await desk.refusal(desk.preparing.unprepare(mine))
        desk.lamps.fails = {}
        desk.lamps.shares.clear()
        assert await desk.preparing.unprepare(mine) == ""
        assert [(one.device, one.notes) for one in desk.lamps.shares] == [
            ("b", {"plug": "p-b"}),
            ("a", {"plug": "p-a"}),
        ]
        assert (await desk.preparing.prepare(other)).devices
        desk.lamps.calls.clear()
        assert await desk.preparing.unprepare(mine) == ""
        assert desk.lamps.calls == []

    played(scene, tmp_path)


def test_what_another_life_has_undone_is_not_remembered_here(tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        mine, other = desk.allocate("mine", given("a")), desk.allocate("other", given("a"))
        await desk.preparing.prepare(mine)
        PreparedStore(LAMPS, tmp_path / "plugins", tmp_path / "cdi").remove(mine.uid)
        assert (await desk.preparing.prepare(other)).devices

    played(scene, tmp_path)


def test_what_was_not_written_down_and_is_not_the_claims_any_more_is_undone(tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        mine = desk.allocate("mine", given("a"))
        with Full(tmp_path):
            await desk.refusal(desk.preparing.prepare(mine))
        desk.allocate("mine", given("x", driver="other.example.com"))
        assert await desk.preparing.prepare(mine) == Answer()
        assert desk.lamps.calls == ["prepare a", "unprepare a"]
        assert (await desk.preparing.prepare(desk.allocate("other", given("a")))).devices

    played(scene, tmp_path)


def test_what_nobody_could_ever_write_down_is_undone_at_once_and_the_driver_asked_again(
    tmp_path: Path,
) -> None:
    class Odd(Lamps):
        async def prepare(self, share: driver.Share) -> driver.Prepared:
            made = await super().prepare(share)
            return replace(made, cdi=("no name",)) if share.device in self.sick else made

    async def scene(desk: Desk) -> None:
        desk.preparing._driver = odd = Odd()  # noqa: SLF001 - another driver at the same desk
        mine = desk.allocate("mine", given("a"))
        first = await desk.preparing.prepare(mine)
        desk.allocate("mine", given("a"), given("b"))
        odd.sick, odd.calls = ["b"], []
        assert "'no name'" in await desk.refusal(desk.preparing.prepare(mine))
        assert odd.calls == ["prepare b", "unprepare b"]
        odd.fails = {"unprepare b": Retry("the switch is stuck")}
        assert (await desk.refusal(desk.preparing.prepare(mine))).endswith("the switch is stuck")
        assert [one.device for one in desk.store.entries()[0].held] == ["a"]
        odd.sick, odd.calls, odd.fails = [], [], {}
        assert (await desk.preparing.prepare(mine)).devices[0] == first.devices[0]
        assert odd.calls == ["prepare b"]

    played(scene, tmp_path)
