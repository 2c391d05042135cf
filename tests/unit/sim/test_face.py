"""The native face shows a manager as it is, to whoever has the token, with all that may befall a call on its way."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress

import aiohttp
import pytest

from jackfield.codec import native
from jackfield.fabric.native import NativeFabric
from jackfield.fabric.settings import FabricSettings, Secret
from jackfield.model.fabric import Done, Progress, Working
from jackfield.model.names import NEVER, FabricName, PhysicalID, Seconds
from jackfield.ports import Gone, Refused, Retry
from jackfield.sim.chance import Chance
from jackfield.sim.fabric import FINE, Call, Fate, Verb
from jackfield.sim.face import ORDER_BYTES_MAX, Face, lines
from jackfield.sim.manager import Manager
from unit.sim.hasty import Hasty
from unit.sim.small_fabric import FABRIC, N0, SPEC, order

TOKEN = Secret("a-token-of-this-test")


class OneFate:
    """The first attach has this fate; everything else is fine."""

    def __init__(self, fate: Fate) -> None:
        self._left = [fate]

    def fate(self, call: Call) -> Fate:
        return self._left.pop() if call.verb is Verb.ATTACH and self._left else FINE


CLOCK = Hasty()
Scene = Callable[[Manager, Face, NativeFabric], Awaitable[None]]


def play(scene: Scene, fate: Fate = FINE, *, patience: float = 5.0) -> None:
    async def main() -> None:
        manager = Manager(SPEC, CLOCK, Chance(1))
        async with Face(lines({FABRIC: manager}, OneFate(fate)), TOKEN) as face:
            settings = FabricSettings(FABRIC, "native", face.url, call_timeout_seconds=Seconds(patience))
            async with NativeFabric(settings, lambda: TOKEN) as fabric:
                await scene(manager, face, fabric)
        manager.stop()

    asyncio.run(main())


async def settled(fabric: NativeFabric) -> Progress:
    answer: Progress = Working()
    while isinstance(answer, Working):
        with suppress(Retry):  # a machine that is slow itself
            answer = await fabric.attach(order("a", device="0001"))
        await CLOCK.sleep(Seconds(1.0))
    return answer


@pytest.mark.parametrize(
    ("fate", "words"),
    [
        (Fate(lost=True), "closed instead of an answer"),
        (Fate(late=Seconds(20.0)), "closed instead of an answer"),
        (Fate(error="too many sessions"), "too many sessions"),
        (Fate(slow=NEVER), "no answer within 0.3 s"),
    ],
)
def test_a_call_that_meets_its_fate_is_asked_again_and_is_one_order(fate: Fate, words: str) -> None:
    async def scene(manager: Manager, _: Face, fabric: NativeFabric) -> None:
        with pytest.raises(Retry, match=words):
            await fabric.attach(order("a", device="0001"))
        assert await settled(fabric) == Done(PhysicalID("0001"), manager.inventory().devices[1].serial)
        await CLOCK.sleep(Seconds(60.0))
        assert manager.counts.attaches == 1
        assert [one.id for one in (await fabric.inventory()).devices if one.node == N0] == ["0001"]

    play(scene, fate, patience=0.3)


def test_a_call_that_is_repeated_on_its_way_is_one_order() -> None:
    async def scene(manager: Manager, _: Face, fabric: NativeFabric) -> None:
        assert isinstance(await settled(fabric), Done)
        await CLOCK.sleep(Seconds(60.0))
        assert manager.counts.attaches == 1

    play(scene, Fate(again=Seconds(30.0)))


def test_an_inventory_is_the_same_object_until_something_moves() -> None:
    async def scene(manager: Manager, _: Face, fabric: NativeFabric) -> None:
        first = await fabric.inventory()
        assert first == manager.inventory()
        assert await fabric.inventory() is first
        assert isinstance(await settled(fabric), Done)
        assert await fabric.inventory() == manager.inventory() != first

    play(scene)


def test_a_fabric_that_is_not_served_is_gone() -> None:
    async def scene(_: Manager, face: Face, __: NativeFabric) -> None:
        other = FabricSettings(FabricName("rack9"), "native", face.url)
        async with NativeFabric(other, lambda: TOKEN) as fabric:
            with pytest.raises(Gone, match="there is no fabric 'rack9' here"):
                await fabric.inventory()

    play(scene)


def test_what_the_manager_refuses_is_refused() -> None:
    async def scene(_: Manager, __: Face, fabric: NativeFabric) -> None:
        await fabric.attach(order("a"))
        with pytest.raises(Refused, match="order a was placed for A100 on n0"):
            await fabric.attach(order("a", node=SPEC.machines[1].node))

    play(scene)


def test_the_token_may_be_replaced_while_the_line_is_open() -> None:
    async def scene(_: Manager, face: Face, __: NativeFabric) -> None:
        tokens = [TOKEN, Secret("an-old-one"), Secret("")]
        settings = FabricSettings(FABRIC, "native", face.url)
        async with NativeFabric(settings, tokens.pop) as fabric:
            for _attempt in range(2):
                with pytest.raises(Retry, match="the token is not accepted"):
                    await fabric.inventory()
            assert (await fabric.inventory()).fabric == FABRIC

    play(scene)


# --- for those who speak to it by hand

ATTACH = native.path(FABRIC, "attach")
ASKED: list[tuple[str, str, bytes, int, str]] = [
    ("GET", native.path(FABRIC, "inventory"), b"", 200, ""),
    ("POST", ATTACH, native.encode(order("a")), 200, ""),
    ("POST", ATTACH, b"attach, please", 500, "bug"),
    ("POST", ATTACH, b'{"id": "a"}', 500, "bug"),
    ("POST", ATTACH, native.encode(order("a")).replace(b"rack0", b"rack1"), 500, "bug"),
    ("POST", ATTACH, b" " * (ORDER_BYTES_MAX + 1), 413, "http"),
    ("GET", ATTACH, b"", 405, "http"),
    ("GET", "/v2/fabrics", b"", 404, "http"),
    ("GET", native.path(FabricName("rack9"), "inventory"), b"", 404, "gone"),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "word"), ASKED)
def test_every_answer_that_is_no_success_is_a_problem(
    method: str, path: str, body: bytes, status: int, word: str
) -> None:
    async def scene(_: Manager, face: Face, __: NativeFabric) -> None:
        proof = {"Authorization": f"Bearer {TOKEN.reveal()}"}
        async with (
            aiohttp.ClientSession(headers=proof) as session,
            session.request(method, f"{face.url}{path}", data=body) as answer,
        ):
            said = json.loads(await answer.read())
            assert answer.status == status
        if word:
            assert answer.content_type == native.PROBLEM_JSON
            assert (said["type"], said["status"]) == (f"urn:jackfield:problem:{word}", status)

    play(scene)


@pytest.mark.parametrize(
    "proof", ["", "Bearer", "Bearer ", "Bearer wrong", f"Basic {TOKEN.reveal()}", "Bearer é"]
)
def test_nothing_is_shown_to_whoever_lacks_the_token(proof: str) -> None:
    async def scene(_: Manager, face: Face, __: NativeFabric) -> None:
        headers = {"Authorization": proof} if proof else {}
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.get(f"{face.url}/anything") as answer,
        ):
            assert answer.status == 401
            assert answer.headers["WWW-Authenticate"] == "Bearer"

    play(scene)


def test_two_faces_cannot_have_one_port() -> None:
    async def scene(manager: Manager, face: Face, _: NativeFabric) -> None:
        port = int(face.url.rpartition(":")[2])
        with pytest.raises(OSError, match="address already in use"):
            async with Face(lines({FABRIC: manager}), TOKEN, port):
                pass

    play(scene)


def test_an_answer_is_held_back_until_there_is_news() -> None:
    async def scene(manager: Manager, face: Face, fabric: NativeFabric) -> None:
        del manager, face
        assert isinstance(await fabric.attach(order("a", device="0001")), Done)

    play(scene)


def test_whoever_does_not_ask_for_it_is_answered_at_once() -> None:
    async def scene(manager: Manager, face: Face, fabric: NativeFabric) -> None:
        del manager, fabric
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {TOKEN.reveal()}"}) as session:
            path = f"{face.url}{native.path(FABRIC, 'attach')}"
            async with session.post(path, data=native.encode(order("a", device="0001"))) as response:
                assert native.progress(await response.read()) == Working()

    play(scene)
