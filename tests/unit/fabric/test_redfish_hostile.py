"""Of thousands of hostile answers each is a clear error or does no harm, and none leads us elsewhere or on for ever."""

import random
from collections.abc import Callable, Coroutine

import msgspec
import pytest

from jackfield.codec import redfish
from jackfield.fabric.http import Answer, Request
from jackfield.fabric.redfish.adapter import RedfishFabric
from jackfield.model.fabric import Failed
from jackfield.model.names import Seconds
from jackfield.ports import Refused, Retry
from jackfield.sim import clock
from unit.fabric.redfish_paper import EXPANDS, ORDER, Document, Paper, block, play, system

SEEDS = range(250)
STATUSES = (
    200,
    200,
    200,
    200,
    201,
    202,
    204,
    304,
    301,
    400,
    401,
    403,
    404,
    405,
    409,
    412,
    428,
    429,
    500,
    503,
)
WEIRD: tuple[object, ...] = (
    None, True, -1, 2**63, 1e308, "", "..", "/redfish/v1/../../etc", "https://elsewhere/redfish/v1/x", "\u202e",
    "x" * 2000, [], {}, [None], {"@odata.id": "/redfish/v1/Systems"}, "Composing", "Composed", "\x00",
)  # fmt: skip


def spoilt(value: object, chance: random.Random) -> object:
    """Return the value with something in it that nobody expects."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(sorted(value))
        return {**value, key: spoilt(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.8:
        place = chance.randrange(len(value))
        return [*value[:place], spoilt(value[place], chance), *value[place + 1 :]] * chance.choice((1, 1, 3))
    return chance.choice(WEIRD)


class Hostile:
    """Answers now and then with something else."""

    def __init__(self, paper: Paper, chance: random.Random) -> None:
        self._paper = paper
        self._chance = chance
        self._likely = chance.choice((0.05, 0.3, 0.9))
        self._busy = False

    def __call__(self, request: Request) -> Answer | None:
        if self._busy or self._chance.random() > self._likely:
            return None
        self._busy = True
        honest = self._paper.speak(request)
        self._busy = False
        self._paper.asked.pop()
        chance = self._chance
        status = chance.choice(STATUSES) if chance.random() < 0.3 else honest.status
        where = chance.choice(("https://elsewhere/x", redfish.SYSTEMS, "", "\r\nX: 1"))
        headers = {"location": where, "retry-after": chance.choice(("1", "-1", "999999999999", "soon"))}
        return Answer(status, self._body(honest.body), {**honest.headers, **headers})

    def _body(self, honest: bytes) -> bytes:
        match self._chance.randrange(6):
            case 0:
                return honest[: self._chance.randrange(len(honest) + 1)]
            case 1:
                return b"[" * self._chance.choice((10, 100_000))
            case 2:
                return self._chance.randbytes(100)
            case _:
                document = msgspec.json.decode(honest) if honest else {}
                return msgspec.json.encode(spoilt(document, self._chance))


def lab(chance: random.Random) -> Paper:
    own: Document = {"ResourceBlockType": ["Compute"]}
    features = EXPANDS if chance.random() < 0.5 else None
    return Paper(
        system("n-1", "own"),
        system("n-2"),
        block("own", "Composed", own),
        block("b-1"),
        block("b-2"),
        features=features,
    )


@pytest.mark.parametrize("mode", [{}, {"actions": False}, {"composition": "constrained"}], ids=str)
def test_whatever_is_answered_every_question_has_an_end(mode: dict[str, object]) -> None:
    answers = 0
    for seed in SEEDS:
        chance = random.Random(f"{seed}/{mode}")  # noqa: S311 - no secret is made of it
        paper = lab(chance)
        paper.instead = Hostile(paper, chance)

        async def scene(fabric: RedfishFabric, paper: Paper = paper) -> None:
            for call in (fabric.inventory, lambda: fabric.attach(ORDER), lambda: fabric.detach(ORDER)):
                for _ in range(2):
                    await asked(call)
                    await clock.running().sleep(Seconds(20.0))
            assert len(paper.asked) < 2500

        play(paper, scene, effectSeconds=4.0, queueSeconds=4.0, **mode)
        answers += len(paper.asked)
        assert all(one.path.startswith("/redfish/") and ".." not in one.path for one in paper.asked)
    assert answers > 3_000


async def asked(call: Callable[[], Coroutine[object, object, object]]) -> None:
    """Ask; what is raised is the port's, and what is said can be shown."""
    said = ""
    try:
        answer = await call()
    except (Retry, Refused) as error:
        said = str(error)
    else:
        said = answer.reason if isinstance(answer, Failed) else ""
    assert said.isprintable()


def test_a_machine_never_loses_the_blocks_it_is_built_of() -> None:
    sent = 0
    for seed in SEEDS:
        chance = random.Random(f"own/{seed}")  # noqa: S311 - no secret is made of it
        paper = lab(chance)
        paper.instead = Hostile(paper, chance)

        async def scene(fabric: RedfishFabric) -> None:
            for call in (fabric.inventory, lambda: fabric.attach(ORDER), lambda: fabric.detach(ORDER)):
                await asked(call)
                await clock.running().sleep(Seconds(20.0))

        play(paper, scene, effectSeconds=4.0, queueSeconds=4.0)
        play(paper, scene, effectSeconds=4.0, queueSeconds=4.0, actions=False)
        assert all(b"own" not in one.body for one in paper.calls("POST", f"{redfish.SYSTEMS}/"))
        lists = [one.body for one in paper.calls("PATCH", f"{redfish.SYSTEMS}/n-1")]
        assert all(b"/own" in one for one in lists)
        sent += len(lists)
    assert sent > 20
