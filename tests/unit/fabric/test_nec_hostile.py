"""Each hostile answer of a layout-apply is a clear error or does no harm, and no secret gets out."""

import asyncio
import base64
import logging
import random
import re
import traceback
from collections.abc import Callable

import msgspec
import pytest

from jackfield.codec import nec
from jackfield.codec.nec import Operation, Status
from jackfield.fabric.http import Answer, Request, Wire
from jackfield.fabric.nec import Service, Site, read_options
from jackfield.fabric.settings import Secret
from jackfield.fabric.vendors.nec import NecLayoutApply
from jackfield.model.fabric import Done, Failed, Inventory, Order, Working
from jackfield.model.names import ModelName, NodeName, OrderID, PhysicalID, Seconds
from jackfield.ports import Gone, PortError, Refused, Retry
from jackfield.sim import clock, loop
from unit.fabric.nec_bench import settings
from unit.fabric_manager.lab import FABRIC, TOKEN

CPU = "11111111-2222-3333-4444-555555555555"
DEVICE = "99999999-2222-3333-4444-555555555555"
SOURCE, DESTINATION = "22222222-2222-3333-4444-555555555555", "33333333-2222-3333-4444-555555555555"
ORDER = Order(OrderID("o-1"), FABRIC, NodeName("n-1"), ModelName("A100"), PhysicalID(DEVICE))
JOB = "636ddde1ba"
LIES = 4_000
USER = "a-user-of-this-test"
PAIR = base64.b64encode(f"{USER}:{TOKEN.reveal()}".encode()).decode()

Speaks = Callable[[Request], Answer]


class Hostile(Wire):
    """A wire on which somebody else answers."""

    def __init__(self, speaks: Speaks) -> None:
        super().__init__(settings("http://127.0.0.1:1"), nec.JSON)
        self._speaks = speaks

    async def call(self, request: Request) -> Answer:
        await asyncio.sleep(0)  # noqa: TID251 - lets others in between, as a real wire does
        return self._speaks(request)


def adapter(speaks: Speaks, user: str = "", wiring: str = "cpu") -> NecLayoutApply:
    given = settings("http://127.0.0.1:1", effectSeconds=2.0, queueSeconds=2.0, user=user, wiring=wiring)
    service = Service(Hostile(speaks), lambda: Secret(TOKEN.reveal()), user)
    return NecLayoutApply(Site(FABRIC, read_options(given), service, service), clock.running())


class Honest:
    """A manager that has one machine, and one device in its pool or on it."""

    def __init__(self, *, attached: bool = False, hostname: str = "n-1") -> None:
        self.attached = attached
        self._hostname = hostname
        self.jobs: list[nec.Job] = []
        self.begun = 0

    def __call__(self, request: Request) -> Answer:
        path = request.path.partition("?")[0]
        if request.method == "POST":
            (step,) = nec.procedures(request.body)
            self.attached = step.operation == Operation.CONNECT
            self.begun += 1
            self.jobs.insert(0, nec.Job(f"{JOB}{self.begun}", Status.COMPLETED, (step,)))
            return Answer(202, nec.encode(nec.Applied(self.jobs[0].apply_id)))
        if path == nec.APPLIES:
            return Answer(200, nec.encode(nec.Jobs(tuple(self.jobs[: nec.JOBS_SHOWN]), 1, 1)))
        if path.startswith(nec.APPLIES):
            return Answer(200, nec.encode(self.jobs[0]))
        if path == nec.NODES:
            return Answer(200, nec.encode(nec.Nodes((nec.Node(CPU, "n-1"),))))
        return Answer(200, nec.encode(nec.Resources(self.resources)))

    @property
    def resources(self) -> tuple[nec.Resource, ...]:
        fit = nec.State("Enabled", "OK")
        links = (nec.Link(CPU, "CPU"), nec.Link(DESTINATION, "eeio")) if self.attached else ()
        device = nec.Device(DEVICE, "GPU", "A100", serial_number="1", status=fit, links=links)
        source = nec.Device(
            SOURCE,
            "sourceFabricAdapter",
            links=(nec.Link(DESTINATION),),
            attribute={"deviceSpecificInformation": {"status": "eesv"}},
        )
        destination = nec.Device(
            DESTINATION,
            "destinationFabricAdapter",
            attribute={"deviceSpecificInformation": {"status": "eeio"}},
        )
        cpu = nec.Device(CPU, "CPU", attribute={"hostname": self._hostname})
        return tuple(nec.Resource(one, node_ids=(CPU,)) for one in (device, cpu, source, destination))


# --- mutations

WEIRD: tuple[object, ...] = (
    None, True, -1, 0, 2**63, 2**200, 1e308, "", "..", "../../..", "a/b", "\u202e", "x" * 100_000, [], {}, [[]],
    {"a": {}}, [None], "SUSPENDED", "IN_PROGRESS", "FAILED", "RESTING", "n-1", "\x00", "🦑", "%2e%2e", CPU, DEVICE,
)  # fmt: skip


def mutated(value: object, chance: random.Random) -> object:
    """Return the value with something in it that nobody expects."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(sorted(value))
        changed = {**value, key: mutated(value[key], chance)}
        if chance.random() < 0.1:
            del changed[key]
        return changed
    if isinstance(value, list) and value and chance.random() < 0.9:
        place = chance.randrange(len(value))
        grown = [*value[:place], mutated(value[place], chance), *value[place + 1 :]]
        return grown * chance.choice((1, 1, 1, 2, 50))
    return chance.choice(WEIRD)


def body(honestly: bytes, chance: random.Random) -> bytes:
    match chance.randrange(8):
        case 0:
            return honestly[: chance.randrange(len(honestly) + 1)]
        case 1:
            place = chance.randrange(len(honestly))
            return honestly[:place] + chance.randbytes(chance.randrange(1, 9)) + honestly[place + 1 :]
        case 2:
            deep = chance.choice((10, 1_000, 100_000))
            return chance.choice(
                (b"[" * deep, b'{"data":' * deep, b"<html>", b"", b"\xff\xfe", b"null", b"NaN")
            )
        case 3:
            code = chance.choice((nec.ALREADY_RUNNING, nec.SUSPENDED_EXISTS, "E40001", "", "\x00"))
            return nec.encode(nec.Error(code, chance.choice(WEIRD[11:])))
        case _:
            return msgspec.json.encode(mutated(msgspec.json.decode(honestly), chance))


STATUSES = (
    200,
    200,
    200,
    200,
    202,
    202,
    204,
    301,
    400,
    401,
    403,
    404,
    405,
    409,
    409,
    418,
    429,
    500,
    502,
    503,
)


class Liar:
    """Lies in one of the calls, or in all."""

    def __init__(self, chance: random.Random) -> None:
        self.lies = 0
        self.begun = 0
        self._chance = chance
        self._honest = Honest(attached=chance.random() < 0.5, hostname=chance.choice(("n-1", "")))
        self._about = chance.choice(
            (nec.RESOURCES, nec.NODES, f"{nec.APPLIES}?", nec.APPLIES, f"{nec.APPLIES}/", "")
        )

    def __call__(self, request: Request) -> Answer:
        truth, chance = self._honest(request), self._chance
        self.begun = self._honest.begun
        if self._about not in request.path or chance.random() < 0.2:
            return truth
        self.lies += 1
        headers = {"retry-after": chance.choice(("1", "-5", "9" * 400, "soon", "0.5", "\u0664"))}
        return Answer(chance.choice(STATUSES), body(truth.body, chance), headers)


def told(error: PortError) -> None:
    """An error is one of the port's, says something, is not endless, and holds no secret."""
    assert isinstance(error, Retry | Refused | Gone)
    words = str(error)
    assert 10 < len(words) < 3_000
    assert TOKEN.reveal() not in words


async def _tried(chance: random.Random, liar: Liar) -> str:
    fabric = adapter(liar, wiring=chance.choice(("cpu", "fabricAdapter")))
    call = chance.choice((fabric.inventory, lambda: fabric.attach(ORDER), lambda: fabric.detach(ORDER)))
    outcome = "none"
    async with fabric:
        for _ in range(3):
            try:
                answer = await call()
            except PortError as error:
                told(error)
                outcome = type(error).__name__
            else:
                assert isinstance(answer, Inventory | Working | Done | Failed)
                outcome = type(answer).__name__
                if isinstance(answer, Failed):
                    assert 10 < len(answer.reason) < 3_000
            await clock.running().sleep(Seconds(1.0))
    return outcome


def test_thousands_of_hostile_answers_are_each_a_clear_error_or_do_no_harm() -> None:
    async def main() -> dict[str, int]:
        seen: dict[str, int] = {}
        lies = 0
        while lies < LIES:
            chance = random.Random(f"nec/{lies}")  # noqa: S311 - a test's chance
            liar = Liar(chance)
            outcome = await _tried(chance, liar)
            seen[outcome] = seen.get(outcome, 0) + 1
            lies += max(1, liar.lies)
            assert liar.begun <= 3
        return seen

    assert {"Retry", "Inventory", "Failed", "Done", "Working"} <= loop.run(main()).keys()


def test_no_answer_sends_us_anywhere_but_to_paths_of_the_manager() -> None:
    asked: list[str] = []

    async def main() -> None:
        for number in range(300):
            chance = random.Random(f"paths/{number}")  # noqa: S311 - likewise
            liar = Liar(chance)

            def speaks(request: Request, liar: Liar = liar) -> Answer:
                asked.append(request.path)
                return liar(request)

            async with adapter(speaks) as fabric:
                for call in (fabric.attach, fabric.detach):
                    try:
                        await call(ORDER)
                    except PortError as error:
                        told(error)

    loop.run(main())
    assert len(asked) > 300
    assert all(".." not in path and path.startswith(nec.PREFIX) for path in asked)


# --- answers that are worth a case of their own


@pytest.mark.parametrize(("verb", "rollback"), [("attach", "true"), ("detach", "false")])
def test_a_state_that_has_no_known_name_is_waited_for_cancelled_and_told(verb: str, rollback: str) -> None:
    asked: list[str] = []
    honest = Honest(attached=verb == "detach")

    def speaks(request: Request) -> Answer:
        asked.append(f"{request.method} {request.path}")
        if request.path.startswith(f"{nec.APPLIES}/"):
            return Answer(200, nec.encode(nec.Job(JOB, "RESTING")))
        return honest(request)

    async def main() -> str:
        async with adapter(speaks) as fabric:
            for _ in range(100):
                try:
                    answer = await (fabric.attach if verb == "attach" else fabric.detach)(ORDER)
                except Retry as error:
                    return str(error)
                assert answer == Working()
                await clock.running().sleep(Seconds(1.0))
        raise AssertionError("it was never told")

    assert "layout apply 636ddde1ba1 has not ended within 2 s, nor after it was cancelled" in loop.run(main())
    assert [one for one in asked if one.startswith("PUT")] == [
        f"PUT {nec.APPLIES}/{JOB}1?action=cancel&rollbackOnCancel={rollback}"
    ]


@pytest.mark.parametrize("status", [404, 405])
def test_a_manager_without_a_list_of_jobs_is_worked_with_all_the_same(status: int) -> None:
    honest = Honest()

    def speaks(request: Request) -> Answer:
        listed = request.method == "GET" and request.path.startswith(f"{nec.APPLIES}?")
        return Answer(status, b"<html>") if listed else honest(request)

    async def main() -> None:
        async with adapter(speaks) as fabric:
            assert await fabric.attach(ORDER) == Done(ORDER.device, "1")
            assert await fabric.detach(ORDER) == Done(ORDER.device)

    loop.run(main())
    assert honest.begun == 2


def test_a_suspended_job_that_no_list_shows_is_told_all_the_same() -> None:
    honest = Honest()

    def speaks(request: Request) -> Answer:
        if request.method == "POST":
            return Answer(409, nec.encode(nec.Error(nec.SUSPENDED_EXISTS, "Suspended data exist.")))
        return honest(request)

    async def main() -> None:
        async with adapter(speaks) as fabric:
            with pytest.raises(
                Retry, match=r"layout apply \(look for it in the list\) is SUSPENDED"
            ) as caught:
                await fabric.attach(ORDER)
            assert caught.value.after == 60.0

    loop.run(main())


def test_a_call_that_was_turned_away_at_the_door_began_nothing() -> None:
    honest = Honest()

    def speaks(request: Request) -> Answer:
        return Answer(401, b"<html>") if request.method == "POST" else honest(request)

    async def main() -> None:
        async with adapter(speaks) as fabric:
            with pytest.raises(
                Retry, match=r"^nothing was done: http://127.0.0.1:1: it answered with status 401$"
            ):
                await fabric.attach(ORDER)

    loop.run(main())


OTHER = nec.Resource(nec.Device("44444444-2222-3333-4444-555555555555", "CPU", attribute={"hostname": "n-2"}))
NAMESAKE = nec.Resource(
    nec.Device("44444444-2222-3333-4444-555555555555", "CPU", attribute={"hostname": "n-1"})
)
TWICE = nec.Resource(nec.Device(DEVICE, "GPU", "A100"))
BETWEEN = nec.Resource(
    nec.Device("a", "GPU", "A100", links=(nec.Link(CPU, "CPU"), nec.Link(OTHER.device.device_id, "CPU")))
)


@pytest.mark.parametrize(
    ("more", "error", "words"),
    [
        ((TWICE,), Retry, "a device is shown twice; it may be moving"),
        ((OTHER, BETWEEN), Retry, "device a is shown on two machines; it may be moving"),
        ((NAMESAKE,), Refused, "two machines are called 'n-1'; options.machines is needed"),
    ],
)
def test_a_configuration_that_contradicts_itself_is_not_believed(
    more: tuple[nec.Resource, ...], error: type[PortError], words: str
) -> None:
    honest = Honest()

    def speaks(request: Request) -> Answer:
        if request.path.startswith(nec.RESOURCES):
            return Answer(200, nec.encode(nec.Resources((*honest.resources, *more))))
        return honest(request)

    async def main() -> None:
        async with adapter(speaks) as fabric:
            with pytest.raises(error, match=f"^http://127.0.0.1:1: {re.escape(words)}$"):
                await fabric.inventory()

    loop.run(main())


@pytest.mark.parametrize("wiring", ["cpu", "fabricAdapter"])
@pytest.mark.parametrize(("hostname", "readings"), [("n-1", 1), ("", 2)])
def test_a_node_is_found_by_the_hostname_of_its_cpu_or_else_by_its_name(
    hostname: str, readings: int, wiring: str
) -> None:
    honest, asked = Honest(hostname=hostname), list[str]()

    def speaks(request: Request) -> Answer:
        asked.append(request.path)
        return honest(request)

    async def main() -> None:
        async with adapter(speaks, wiring=wiring) as fabric:
            assert [one.node for one in (await fabric.inventory()).machines] == ["n-1"]

    loop.run(main())
    assert len(asked) == readings


@pytest.mark.parametrize(
    ("user", "proof"), [("", f"Bearer {TOKEN.reveal()}"), (USER, f"Basic {PAIR}")], ids=["bearer", "basic"]
)
def test_the_token_is_sent_as_it_is_or_as_a_users_password(user: str, proof: str) -> None:
    honest, shown = Honest(), set[str]()

    def speaks(request: Request) -> Answer:
        shown.add(request.headers["Authorization"])
        return honest(request)

    async def main() -> None:
        async with adapter(speaks, user) as fabric:
            await fabric.inventory()
            await fabric.attach(ORDER)

    loop.run(main())
    assert shown == {proof}


# --- secrets


def echo(request: Request) -> Answer:
    """Repeat all that was said, as a careless manager's debug page does."""
    return Answer(400, nec.encode(nec.Error("E40001", f"{request.headers} {request.body.decode()}")))


def echo_decoded(request: Request) -> Answer:
    return Answer(200, msgspec.json.encode({request.headers["Authorization"]: [], "resources": [1]}))


@pytest.mark.parametrize("user", ["", USER])
@pytest.mark.parametrize("speaks", [echo, echo_decoded, Honest()], ids=["echo", "echo decoded", "honest"])
def test_no_secret_is_in_an_error_a_log_line_or_a_representation(
    speaks: Speaks, user: str, caplog: pytest.LogCaptureFixture
) -> None:
    shown: list[str] = []

    async def main() -> None:
        async with adapter(speaks, user) as fabric:
            for call in (fabric.inventory, lambda: fabric.attach(ORDER), lambda: fabric.detach(ORDER)):
                try:
                    shown.append(repr(await call()))
                except PortError as error:
                    shown.extend(traceback.format_exception(error))
                    shown.append(f"{error!r} {vars(error)} {error.__cause__!r} {error.__context__!r}")
            site = fabric._site  # noqa: SLF001 - what a debugger would print
            parts = (fabric, site, site.applies, site.applies.wire)
            shown.extend(f"{one!r} {one} {vars(one)}" for one in parts)
            shown.append(repr([*asyncio.all_tasks()]))

    with caplog.at_level(logging.DEBUG):
        loop.run(main())
    everything = "\n".join((*shown, caplog.text))
    assert len(everything) > 100
    assert [secret for secret in (TOKEN.reveal(), PAIR) if secret in everything] == []
