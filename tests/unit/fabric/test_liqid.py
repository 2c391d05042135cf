"""Orders to a Liqid Director: one edit at a time, nothing left open, and what is shown is what counts."""

import asyncio
import re
from pathlib import Path

import msgspec
import pytest

from jackfield.codec import liqid
from jackfield.fabric import Line
from jackfield.fabric.http import Answer, Request, Unsent, Wire
from jackfield.fabric.liqid import Accepted, Busy, Client, Declined, Door, Sent, Site, Unknown, read_options
from jackfield.fabric.settings import Secret
from jackfield.fabric.vendors.liqid import LiqidDirector
from jackfield.fabric_manager.faces.liqid import Named
from jackfield.fabric_manager.faults import Fault, Kind
from jackfield.fabric_manager.server import Server
from jackfield.model.fabric import Done, Failed, Working
from jackfield.model.names import ModelName, NodeName, OrderID, PhysicalID, Seconds
from jackfield.ports import Refused, Retry
from unit.fabric.liqid_bench import (
    EDIT,
    ORDER,
    edits,
    line,
    play,
    posted,
    serving,
    settings,
    settled,
    there,
    told,
)
from unit.fabric_manager.lab import FABRIC, TOKEN, order
from unit.sim.hasty import Hasty

# --- how it goes


def test_a_device_is_known_by_its_name_and_read_back_with_its_serial_number(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        done = await settled(server, fabric.attach)
        (device,) = await there(fabric)
        assert done == Done(PhysicalID("a-1"), device.serial)
        assert (device.id, device.model, device.type, device.ours) == ("a-1", "A100", "gpu", True)
        assert await settled(server, fabric.detach) == Done(ORDER.device)
        assert await there(fabric) == ()
        assert await fabric.detach(msgspec.structs.replace(ORDER, device=PhysicalID(""))) == Done()

    play(tmp_path, scene, 1.0)


def test_a_device_can_be_known_by_its_serial_number(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        device = next(one for one in (await fabric.inventory()).devices if one.model == "H100")
        assert device.id == device.serial != "h-1"
        meant = msgspec.structs.replace(ORDER, model=ModelName("H100"), device=device.id)
        assert await settled(server, fabric.attach, meant) == Done(device.id, device.serial)
        assert server.manager.books.holder(PhysicalID("h-1")) is not None

    play(tmp_path, scene, identity="serial")


def test_two_orders_for_one_device_are_carried_out_in_the_order_they_came(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        assert await posted(server, liqid.EDIT) == (200, "")
        late = msgspec.structs.replace(ORDER, id=OrderID("o-2"), node=NodeName("n-2"))
        assert isinstance(await fabric.attach(ORDER), Working)
        assert isinstance(await fabric.attach(late), Working)
        await server.manager.clock.sleep(Seconds(20.0))
        assert await posted(server, liqid.EDIT_CANCEL) == (200, "")
        assert isinstance(await settled(server, fabric.attach), Done)
        failed = await settled(server, fabric.attach, late)
        assert isinstance(failed, Failed)
        assert failed.reason.endswith("device a-1 is taken by n-1")
        assert await there(fabric, "n-2") == ()

    play(tmp_path, scene, queueSeconds=3600.0, editSeconds=3600.0)


def test_what_an_operator_calls_foreign_is_shown_and_not_touched(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        assert isinstance(await settled(server, fabric.attach), Done)
        async with line(server.url, server.manager.clock, foreign=["a-1"]) as careful:
            (device,) = await there(careful)
            assert not device.ours
            with pytest.raises(Refused, match="device a-1 was attached by somebody else"):
                await settled(server, careful.detach)
            foreign = msgspec.structs.replace(ORDER, id=OrderID("o-2"), foreign=True)
            assert await settled(server, careful.detach, foreign) == Done(ORDER.device)

    play(tmp_path, scene)


# --- edits of others, and edits left behind


def test_an_edit_of_somebody_else_is_waited_for_and_told(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        assert await posted(server, liqid.EDIT) == (200, "")
        words = r"^nothing was done: \S+ 409: machine n-1 is being edited .* \(409\); n-1 is being edited or reprog"
        while not re.search(words, str(await told(server, fabric.attach))):
            continue  # on a slow machine it may be told first that there was no time
        assert edits(server) == {"n-1"}, "it is left alone"
        assert await posted(server, liqid.EDIT_CANCEL) == (200, "")
        assert isinstance(await settled(server, fabric.attach), Done)

    play(tmp_path, scene, queueSeconds=10.0, editSeconds=3600.0)


def test_an_edit_that_was_left_behind_is_cancelled(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        assert await posted(server, liqid.EDIT) == (200, "")
        begun = server.manager.clock.now()
        assert isinstance(await settled(server, fabric.attach), Done)
        assert server.manager.clock.now() - begun >= EDIT
        assert [one.id for one in await there(fabric)] == ["a-1"]

    play(tmp_path, scene)


@pytest.mark.parametrize(("pause", "moving"), [(120.0, False), (50.0, True)], ids=["two edits", "at work"])
def test_what_may_be_another_edit_or_is_at_work_is_not_taken_for_left_behind(
    tmp_path: Path, pause: float, *, moving: bool
) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        assert await posted(server, liqid.EDIT) == (200, "")
        await told(server, fabric.attach)
        if moving:
            await server.manager.attach(order("by-hand", "a-5"), "somebody")
        await server.manager.clock.sleep(Seconds(pause))
        await told(server, fabric.attach)
        assert edits(server) == {"n-1"}

    play(tmp_path, scene, queueSeconds=10.0, editSeconds=55.0)


def test_an_edit_of_one_machine_keeps_no_order_for_another(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        assert await posted(server, liqid.EDIT, "n-2") == (200, "")
        kept = msgspec.structs.replace(
            ORDER, id=OrderID("o-2"), node=NodeName("n-2"), device=PhysicalID("a-2")
        )
        waiting = asyncio.create_task(settled(server, fabric.attach, kept))
        assert isinstance(await settled(server, fabric.attach), Done)
        assert not waiting.done()
        assert await posted(server, liqid.EDIT_CANCEL, "n-2") == (200, "")
        assert isinstance(await waiting, Done)

    play(tmp_path, scene, queueSeconds=3600.0, editSeconds=3600.0, jobs=1)


def test_a_process_that_ends_in_the_middle_of_an_edit_cancels_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as server, asyncio.timeout(30.0):
            await server.manager.set_fault(Fault(Kind.LATE, verb="attach", seconds=Seconds(300.0), times=1))
            async with line(server.url, server.manager.clock) as fabric:
                assert isinstance(await fabric.attach(ORDER), Working)
                while not [one for one in server.manager.faults if one.seen]:
                    await server.manager.clock.sleep(Seconds(0.1))
                assert edits(server) == {"n-1"}
            assert edits(server) == set()
            assert server.manager.books.holder(ORDER.device) is None
            assert server.manager.store.notes("liqid-keys") == {}, "the key is deleted"

    asyncio.run(main())


# --- lost answers and refusals


@pytest.mark.parametrize("verb", ["token", "edit", "attach", "reprogram"])
@pytest.mark.parametrize("kind", [Kind.LOST, Kind.STATUS, Kind.UNAUTHORIZED])
def test_whatever_call_goes_wrong_the_device_comes_once(tmp_path: Path, kind: Kind, verb: str) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        await server.manager.set_fault(Fault(kind, verb=verb, times=1, status=502))
        answer = await settled(server, fabric.attach)
        while not isinstance(answer, Done):  # an answer that was lost may be all that is known for a while
            answer = await settled(server, fabric.attach)
        assert [one.id for one in await there(fabric)] == ["a-1"]
        assert sum(event.what == "attached" for event in server.manager.store.events(0)) == 1
        assert await posted(server, liqid.EDIT) == (200, ""), "no edit is left open"

    play(tmp_path, scene, 1.0, effectSeconds=60.0, editSeconds=70.0)


@pytest.mark.parametrize("verb", ["edit", "detach", "reprogram"])
def test_whatever_answer_is_lost_the_device_goes(tmp_path: Path, verb: str) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        assert isinstance(await settled(server, fabric.attach), Done)
        await server.manager.set_fault(Fault(Kind.LOST, verb=verb, times=1))
        assert await settled(server, fabric.detach) == Done(ORDER.device)
        assert await there(fabric) == ()

    play(tmp_path, scene, 1.0)


@pytest.mark.parametrize("verb", ["edit", "attach", "reprogram"])
def test_a_refusal_fails_the_order_in_the_directors_words_and_the_edit_is_cancelled(
    tmp_path: Path, verb: str
) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        await server.manager.set_fault(Fault(Kind.STATUS, verb=verb, times=2, status=400, reason="no power"))
        answer = await settled(server, fabric.attach)
        assert isinstance(answer, Failed)
        assert answer.reason == f"{server.url}: 400: no power (400)"
        assert edits(server) == set()
        assert isinstance(await settled(server, fabric.attach), Done)

    play(tmp_path, scene)


def test_a_refusal_for_what_another_process_did_meanwhile_is_no_failure(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        await server.manager.set_fault(
            Fault(Kind.STATUS, verb="attach", times=1, status=400, reason="in use")
        )
        assert isinstance(await settled(server, fabric.attach), Done)
        await server.manager.set_fault(Fault(Kind.STATUS, verb="detach", times=1, status=400, reason="gone"))
        assert await settled(server, fabric.detach) == Done(ORDER.device)

    play(tmp_path, scene)


# --- what the Director says and what it shows


@pytest.mark.parametrize("kind", [Kind.WRONG, Kind.SWAP])
def test_another_device_than_was_meant_is_given_back(tmp_path: Path, kind: Kind) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        await server.manager.set_fault(Fault(kind, verb="attach", times=1))
        answer = await settled(server, fabric.attach)
        assert isinstance(answer, Failed)
        assert re.search(r"not a-1 came to n-1 but (h-1|a-2); it was taken back$", answer.reason)
        assert await there(fabric) == ()

    play(tmp_path, scene, 1.0)


def test_reprogramming_that_brings_nothing_fails_the_order(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        await server.manager.set_fault(Fault(Kind.FAIL, verb="attach", times=1))
        answer = await settled(server, fabric.attach)
        assert isinstance(answer, Failed)
        assert re.search(r"agreed, but a-1 did not come to n-1 within 30 s, and reprogr", answer.reason)
        assert isinstance(await settled(server, fabric.attach), Done)

    play(tmp_path, scene)


def test_reprogramming_that_does_not_end_is_cancelled_and_brings_nothing_later(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        hanging = await server.manager.set_fault(Fault(Kind.HANG, verb="attach", times=1))
        assert isinstance(await settled(server, fabric.attach), Failed)
        await server.manager.clear_fault(hanging.id)
        while server.manager.books.holder(ORDER.device) is not None:
            await server.manager.clock.sleep(Seconds(0.5))
        assert await there(fabric) == ()
        assert isinstance(await settled(server, fabric.attach), Done)

    play(tmp_path, scene)


def test_what_others_hold_is_told_in_the_directors_words(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        await server.manager.attach(order("by-hand"), "somebody")
        while not await there(fabric):
            await server.manager.clock.sleep(Seconds(0.5))
        answer = await settled(server, fabric.detach)
        assert isinstance(answer, Failed)
        assert answer.reason.endswith("403: device a-1 was attached by somebody (403)")

    play(tmp_path, scene)


class Through(Wire):
    """A wire to the manager on which somebody else answers some calls first."""

    def __init__(self, url: str, answers: dict[str, list[bytes]]) -> None:
        super().__init__(settings(url), liqid.JSON)
        self._answers = answers

    async def call(self, request: Request) -> Answer:
        waiting = self._answers.get(request.path)
        return Answer(200, waiting.pop(0)) if waiting else await super().call(request)


def through(server: Server, answers: dict[str, list[bytes]]) -> LiqidDirector:
    given, clock = read_options(settings(server.url)), server.manager.clock
    wire = Through(server.url, answers)
    door = Door(wire, given, lambda: TOKEN, clock)
    return LiqidDirector(Site(FABRIC, given, Client(wire, door)), clock)


def test_a_director_that_takes_another_device_is_told_to_forget_it(tmp_path: Path) -> None:
    async def scene(server: Server, _: Line) -> None:
        other = liqid.answer(liqid.GroupRelation(liqid.Status("a-2"), Named(server.manager).group))
        async with through(server, {liqid.KINDS["gpu"].relation: [other, other]}) as fabric:
            answer = await settled(server, fabric.attach)
            assert isinstance(answer, Failed)
            assert answer.reason.endswith("the Director took a-2 instead of a-1; the edit was cancelled")
            assert edits(server) == set()
            assert isinstance(await settled(server, fabric.attach), Done)

    play(tmp_path, scene)


def test_an_error_with_a_status_of_success_is_an_error(tmp_path: Path) -> None:
    async def scene(server: Server, _: Line) -> None:
        no = liqid.refusal(41, "the machine is in edit mode")
        async with through(server, {liqid.EDIT: [no] * 3, liqid.MACHINES: [no]}) as fabric:
            with pytest.raises(Retry, match=r"41: the machine is in edit mode \(200\)$"):
                await fabric.inventory()
            assert isinstance(await settled(server, fabric.attach), Done)

    play(tmp_path, scene)


# --- keys


def test_a_key_that_is_not_accepted_any_more_is_followed_by_another(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        before = await fabric.inventory()
        await server.manager.clock.sleep(Seconds(10.0))
        await server.manager.set_fault(Fault(Kind.UNAUTHORIZED, verb="inventory", times=1))
        assert await fabric.inventory() == before
        assert len(server.manager.store.notes("liqid-keys")) == 1

    play(tmp_path, scene)


def test_without_a_user_the_token_is_a_key(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        assert len((await fabric.inventory()).devices) == 11
        assert server.manager.store.notes("liqid-keys") == {}

    play(tmp_path, scene, user="")


def test_a_password_that_was_refused_is_not_shown_again(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as server:
            given = settings(server.url)
            wire, clock = Counting(given, liqid.JSON), server.manager.clock
            door = Door(wire, read_options(given), lambda: Secret("a-wrong-password"), clock)
            for words in (r"gives no key: it answered 401", r"not accepted; .* not shown again for 15 min"):
                with pytest.raises(Retry, match=words) as caught:
                    await door.key()
                assert "a-wrong-password" not in str(caught.value)
            assert wire.calls == 2, "once to tidy up, once to ask"
            await wire.close()

    asyncio.run(main())


class Counting(Wire):
    """A wire that counts."""

    calls = 0

    async def call(self, request: Request) -> Answer:
        self.calls += 1
        return await super().call(request)


# --- how calls end


class Scripted(Wire):
    """A wire on which one answer comes, or none."""

    def __init__(self, answer: Answer | Retry) -> None:
        super().__init__(settings("http://127.0.0.1:1"), liqid.JSON)
        self._said = answer

    async def call(self, _: Request) -> Answer:
        if isinstance(self._said, Retry):
            raise self._said
        return self._said


SAYS_NO = liqid.refusal(7, "no")
BASE = "http://127.0.0.1:1"
ENDS: tuple[tuple[Answer | Retry, Sent], ...] = (
    (Answer(200, liqid.answer()), Accepted(liqid.answer())),
    (Answer(200, SAYS_NO), Declined(f"{BASE}: 7: no (200)", 200)),
    (Answer(409, SAYS_NO), Busy(f"{BASE}: 7: no (409)", conflict=True)),
    (Answer(429, b"", {"retry-after": "9"}), Busy(f"{BASE}: it answered with status 429", Seconds(9.0))),
    (Answer(503, b"", {"retry-after": "9"}), Busy(f"{BASE}: it answered with status 503", Seconds(9.0))),
    (Answer(503, SAYS_NO), Unknown(f"{BASE}: 7: no (503)")),
    (Answer(422, SAYS_NO), Declined(f"{BASE}: 7: no (422)", 422)),
    (Answer(404, b"<html>"), Unknown(f"{BASE}: it answered with status 404")),
    (Answer(401, SAYS_NO), Busy(f"{BASE}: 7: no (401)", Seconds(30.0))),
    (Unsent("nobody there", Seconds(2.0)), Busy("nobody there", Seconds(2.0))),
    (Retry("no answer"), Unknown("no answer")),
)


@pytest.mark.parametrize(("answer", "sent"), ENDS, ids=[str(end) for _, end in ENDS])
def test_a_call_ends_as_its_answer_says(answer: Answer | Retry, sent: Sent) -> None:
    async def main() -> None:
        wire = Scripted(answer)
        options = read_options(settings(BASE, user=""))
        door = Door(wire, options, lambda: Secret("a-key"), Hasty())
        assert await Client(wire, door).change("POST", liqid.EDIT, b"{}") == sent

    asyncio.run(main())
