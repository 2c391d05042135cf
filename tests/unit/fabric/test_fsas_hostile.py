"""Of ten thousand hostile answers each is a clear error or does no harm, and no secret gets out."""

import asyncio
import base64
import logging
import random
import traceback
from collections.abc import Callable

import msgspec
import pytest

from jackfield.codec import fsas
from jackfield.fabric import tokens
from jackfield.fabric.fsas import Client, Options, Site, credentials, read_options
from jackfield.fabric.http import Answer, Request, Wire
from jackfield.fabric.vendors.fsas_cm import ClusterOptions, FsasClusterManager
from jackfield.fabric.vendors.fsas_fm import FsasFabricManager
from jackfield.model.fabric import Done, Failed, Inventory, Order, Working
from jackfield.model.names import ModelName, NodeName, OrderID, PhysicalID, Seconds
from jackfield.ports import Gone, PortError, Refused, Retry
from jackfield.sim import clock, loop
from unit.fabric.fsas_bench import ENVIRONMENT, SECRETS, TYPES, settings
from unit.fabric_manager.lab import FABRIC

MACHINE = "11111111-2222-3333-4444-555555555555"
DEVICE = "99999999-2222-3333-4444-555555555555"
ORDER = Order(OrderID("o-1"), FABRIC, NodeName("n-1"), ModelName("A100"), PhysicalID(DEVICE))
BODIES = 10_000
ACCESS = "an-access-token-of-this-test"
CONDITION = (fsas.Condition(fsas.MODEL, fsas.EQUAL, "A100"),)
RESOURCE = fsas.Resource(
    DEVICE, "gpu", res_op_status="0", res_serial_num="GPU-1", res_spec=fsas.Spec(CONDITION)
)
MACHINES = fsas.MachinesAnswer(
    fsas.Machines((fsas.Machine(MACHINE, 1, mach_name="n-1", resources=(RESOURCE,)),))
)
DETAIL = fsas.Detail(res_uuid=DEVICE, res_op_status="0", resspecs=(fsas.Product(model="A100"),))
SPEC = fsas.CmSpec(
    "77777777-2222-3333-4444-555555555555",
    1,
    "gpu",
    fsas.Selector("1", fsas.Expression(CONDITION)),
    max_resspec_count=4,
    devices=(fsas.CmDevice("GPU-1", fsas.ADD_COMPLETE, "", DETAIL),),
)
COUNTED = fsas.CmAnswer(fsas.CmTenant(fsas.CmCluster(fsas.CmMachine(MACHINE, "n-1", resspecs=(SPEC,)))))

Speaks = Callable[[Request], Answer]


class Hostile(Wire):
    """A wire on which somebody else answers."""

    def __init__(self, kind: str, speaks: Speaks) -> None:
        super().__init__(settings(kind, "http://127.0.0.1:1"), fsas.JSON)
        self._speaks = speaks

    async def call(self, request: Request) -> Answer:
        await asyncio.sleep(0)  # noqa: TID251 - lets others in between, as a real wire does
        return self._speaks(request)


def adapter(kind: str, speaks: Speaks) -> FsasFabricManager | FsasClusterManager:
    return over(kind, Hostile(kind, speaks))


def over(kind: str, wire: Wire) -> FsasFabricManager | FsasClusterManager:
    given = settings(kind, "http://127.0.0.1:1", effectSeconds=2.0, queueSeconds=2.0)
    found = read_options(given, ClusterOptions) if kind == "fsas-cm" else read_options(given, Options)
    now = clock.running()
    site = Site(FABRIC, found, Client(wire, credentials(found, ENVIRONMENT), now), now)
    if isinstance(found, ClusterOptions):
        return FsasClusterManager(site, found.cluster)
    return FsasFabricManager(site)


def honest(request: Request) -> Answer:
    """Answer as a manager does that has one machine with one device."""
    if request.path.startswith("/id_manager/"):
        return Answer(200, msgspec.json.encode({"access_token": ACCESS, "expires_in": 300}))
    if "available" in request.path:
        return Answer(200, fsas.encode(fsas.Available(3, 1)))
    if request.path.startswith(fsas.CM):
        return Answer(200, fsas.encode(COUNTED))
    return Answer(200, fsas.encode(MACHINES))


# --- mutations

WEIRD: tuple[object, ...] = (
    None, True, -1, 0, 2**63, 2**200, 1e308, "", "..", "../../..", "a/b", "\u202e", "x" * 100_000, [], {}, [[]],
    {"a": {}}, [None], "ADD_FAILED", "REMOVE_FAILED", "n-1", "\x00", "🦑", "%2e%2e", "A" * 254,
)  # fmt: skip


def mutated(value: object, chance: random.Random) -> object:
    """Return the value with something in it that nobody expects."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(sorted(value))
        other = {**value, key: mutated(value[key], chance)}
        if chance.random() < 0.1:
            del other[key]
        return other
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
        case _:
            return msgspec.json.encode(mutated(msgspec.json.decode(honestly), chance))


STATUSES = (200, 200, 200, 200, 200, 200, 204, 301, 400, 401, 403, 404, 409, 418, 429, 500, 502, 503)


class Liar:
    """Lies in one of the calls, or in all."""

    def __init__(self, chance: random.Random) -> None:
        self.lies = 0
        self._chance = chance
        self._about = chance.choice(
            ("id_manager", "available", "/machines", "cluster_manager", "update", "resize", "")
        )

    def __call__(self, request: Request) -> Answer:
        truth, chance = honest(request), self._chance
        if self._about not in request.path:
            return truth
        self.lies += 1
        headers = {"retry-after": chance.choice(("1", "-5", "9" * 400, "soon", "0.5", "\u0664"))}
        return Answer(chance.choice(STATUSES), body(truth.body, chance), headers)


def told(error: PortError) -> None:
    """An error is one of the port's, says something, is not endless, and holds no secret."""
    assert isinstance(error, Retry | Refused | Gone)
    words = str(error)
    assert 10 < len(words) < 3_000
    assert not any(secret in words for secret in (*SECRETS, ACCESS))


async def _tried(kind: str, chance: random.Random, liar: Liar) -> str:
    fabric = adapter(kind, liar)
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


@pytest.mark.parametrize("kind", TYPES)
def test_ten_thousand_hostile_answers_are_each_a_clear_error_or_do_no_harm(kind: str) -> None:
    async def main() -> dict[str, int]:
        seen: dict[str, int] = {}
        lies = 0
        while lies < BODIES:
            chance = random.Random(f"{kind}/{lies}")  # noqa: S311 - a test's chance
            liar = Liar(chance)
            outcome = await _tried(kind, chance, liar)
            seen[outcome] = seen.get(outcome, 0) + 1
            lies += max(1, liar.lies)
        return seen

    assert {"Retry", "Inventory", "Failed", "Done"} <= loop.run(main()).keys()


@pytest.mark.parametrize("kind", TYPES)
def test_no_answer_sends_us_anywhere_but_to_paths_of_the_manager(kind: str) -> None:
    asked: list[str] = []

    async def main() -> None:
        for number in range(500):
            liar = Liar(random.Random(f"paths/{number}"))  # noqa: S311 - likewise

            def speaks(request: Request, liar: Liar = liar) -> Answer:
                asked.append(request.path)
                return liar(request)

            async with adapter(kind, speaks) as fabric:
                try:
                    await fabric.inventory()
                except PortError as error:
                    told(error)

    loop.run(main())
    assert asked
    assert all(".." not in path and path.startswith(("/id_", "/fabric_m", "/cluster_m")) for path in asked)


def test_a_list_without_end_does_not_become_questions_without_end() -> None:
    endless = fsas.encode(
        fsas.MachinesAnswer(
            fsas.Machines(
                tuple(fsas.Machine(f"m-{number}", 1, mach_name=f"n-{number}") for number in range(50_000))
            )
        )
    )
    asked: list[str] = []

    def speaks(request: Request) -> Answer:
        asked.append(request.path)
        return Answer(200, endless) if request.path.startswith(f"{fsas.FM}?") else honest(request)

    async def main() -> None:
        async with adapter("fsas-fm", speaks) as fabric:
            with pytest.raises(Retry, match="more than 2000 machines are shown"):
                await fabric.inventory()

    loop.run(main())
    assert len(asked) == 2


def test_a_managers_own_words_are_shown_on_one_line_and_not_at_length() -> None:
    bad = fsas.CmDevice("GPU-2", fsas.ADD_FAILED, "no\n\x1b[2J" + "x" * 990, DETAIL)
    worse = msgspec.structs.replace(DETAIL, res_uuid="88888888-2222-3333-4444-555555555555")
    came = msgspec.structs.replace(
        SPEC, devices=(*(SPEC.devices or ()), msgspec.structs.replace(bad, detail=worse))
    )
    sent: list[str] = []

    def speaks(request: Request) -> Answer:
        if "resize" in request.path:
            sent.append(request.path)
        if request.path.startswith(fsas.CM) and len(sent) == 1:
            machine = fsas.CmMachine(MACHINE, "n-1", resspecs=(came,))
            return Answer(200, fsas.encode(fsas.CmAnswer(fsas.CmTenant(fsas.CmCluster(machine)))))
        return honest(request)

    async def main() -> None:
        async with adapter("fsas-cm", speaks) as fabric:
            answer = await fabric.attach(msgspec.structs.replace(ORDER, device=PhysicalID("")))
            assert isinstance(answer, Failed)
            assert "did not come: no [2Jxxx" in answer.reason
            assert answer.reason.isprintable()

    loop.run(main())


# --- a token that is refused


class Slow(Hostile):
    """Turns the first change away, some seconds after it came, and notes what was asked."""

    def __init__(self, kind: str, seconds: float) -> None:
        super().__init__(kind, honest)
        self.changes: list[str] = []
        self._seconds = Seconds(seconds)

    async def call(self, request: Request) -> Answer:
        if "update" not in request.path and "resize" not in request.path:
            return await super().call(request)
        self.changes.append(request.headers["Authorization"])
        await clock.running().sleep(self._seconds)
        return Answer(401, b"") if len(self.changes) == 1 else honest(request)


@pytest.mark.parametrize(("seconds", "sent"), [(0.1, 2), (10.0, 1)])
@pytest.mark.parametrize("kind", TYPES)
def test_a_call_is_repeated_with_a_new_token_only_if_it_was_turned_away_at_the_door(
    kind: str, seconds: float, sent: int
) -> None:
    async def main() -> int:
        wire = Slow(kind, seconds)
        async with over(kind, wire) as fabric:
            await fabric.attach(msgspec.structs.replace(ORDER, device=PhysicalID("")))
            await clock.running().sleep(Seconds(seconds * 3))
        return len(wire.changes)

    assert loop.run(main()) == sent


# --- secrets


def echo(request: Request) -> Answer:
    """Give a token, and for the rest repeat all that was said, as a careless manager's debug page does."""
    if request.path.startswith("/id_manager/"):
        return honest(request)
    said = f"{request.headers} {request.body.decode()}"
    return Answer(400, fsas.encode(fsas.Error(detail=fsas.ErrorDetail("E1", said))))


def echo_login(request: Request) -> Answer:
    return Answer(
        400, msgspec.json.encode({"error": request.body.decode(), "error_description": request.body.decode()})
    )


def echo_token(request: Request) -> Answer:
    """Give no token, but show what may be one."""
    return Answer(200, request.body + ACCESS.encode())


def echo_decoded(request: Request) -> Answer:
    if request.path.startswith("/id_manager/"):
        return honest(request)
    return Answer(200, msgspec.json.encode({"data": {request.headers["Authorization"]: 1}}))


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("speaks", [echo, echo_login, echo_token, echo_decoded, honest])
def test_no_secret_is_in_an_error_a_log_line_or_a_representation(
    kind: str, speaks: Speaks, caplog: pytest.LogCaptureFixture
) -> None:
    shown: list[str] = []

    async def main() -> None:
        async with adapter(kind, speaks) as fabric:
            for call in (fabric.inventory, lambda: fabric.attach(ORDER), lambda: fabric.detach(ORDER)):
                try:
                    shown.append(repr(await call()))
                except PortError as error:
                    shown.extend(traceback.format_exception(error))
                    shown.append(f"{error!r} {vars(error)} {error.__cause__!r} {error.__context__!r}")
            site = fabric._site  # noqa: SLF001 - what a debugger would print
            held = site.client._tokens  # noqa: SLF001 - likewise
            parts = (fabric, site, site.client, site.wire, held)
            shown.extend(f"{one!r} {one} {vars(one)}" for one in parts)
            shown.append(repr([*asyncio.all_tasks()]))

    with caplog.at_level(logging.DEBUG):
        loop.run(main())
    everything = "\n".join((*shown, caplog.text))
    assert len(everything) > 100
    leaked = [secret for secret in (*SECRETS, ACCESS) if secret in everything]
    assert leaked == []


# --- tokens


def token(exp: float) -> str:
    payload = base64.urlsafe_b64encode(msgspec.json.encode({"exp": exp})).rstrip(b"=").decode()
    return f"e30.{payload}.x"


@pytest.mark.parametrize(
    ("given", "lasts"),
    [
        ({"expires_in": 100}, 75.0),
        ({"expires_in": 300}, 270.0),
        ({"exp": 400.0}, 370.0),
        ({}, 45.0),
        ({"expires_in": 0}, 0.0),
        ({"expires_in": -1}, 0.0),
    ],
)
def test_a_token_is_renewed_in_time_and_asked_for_once_by_all_who_wait(
    given: dict[str, float], lasts: float
) -> None:
    asked: list[float] = []

    def speaks(request: Request) -> Answer:
        now = clock.running().now()
        asked.append(now)
        form = request.body.decode()
        assert "grant_type=password" in form
        assert "response_type=id_token+token" in form
        text = token(now + given["exp"]) if "exp" in given else f"token-{len(asked)}"
        more = {"expires_in": given["expires_in"]} if "expires_in" in given else {}
        return Answer(200, msgspec.json.encode({"access_token": text, **more}))

    async def main() -> None:
        now = clock.running()
        source = tokens.from_environment("RACK_A_", tokens.GrantType.PASSWORD, ENVIRONMENT)
        held = tokens.Tokens(Hostile("fsas-fm", speaks), source, now)
        begun = now.now()
        first = await asyncio.gather(*(held.current() for _ in range(20)))
        if not lasts:
            assert len(asked) == 20
            return
        assert len(asked) == 1
        await now.sleep(Seconds(lasts - 1.0))
        assert await held.current() is first[0]
        await now.sleep(Seconds(2.0))
        assert await held.current() is not first[0]
        assert asked[1] - begun == pytest.approx(lasts + 1.0)
        refused = await held.current()
        renewed = await asyncio.gather(*(held.other_than(refused) for _ in range(20)))
        assert len(asked) == 3
        assert len({one.reveal() for one in renewed}) == 1

    loop.run(main())


def test_client_credentials_need_and_send_no_user() -> None:
    sent: list[str] = []

    def speaks(request: Request) -> Answer:
        sent.append(request.body.decode())
        return honest(request)

    async def main() -> None:
        few = {
            name: text
            for name, text in ENVIRONMENT.items()
            if "USERNAME" not in name and "PASSWORD" not in name
        }
        source = tokens.from_environment("RACK_A_", tokens.GrantType.CLIENT_CREDENTIALS, few)
        await tokens.Tokens(Hostile("fsas-fm", speaks), source, clock.running()).current()

    loop.run(main())
    assert "grant_type=client_credentials" in sent[0]
    assert "username" not in sent[0]
