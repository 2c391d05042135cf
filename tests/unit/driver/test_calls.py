"""Calls that make no sense are answered soberly, and hurt nobody."""

import asyncio

import grpc
import grpc.aio
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from jackfield._proto import dra_pb2
from jackfield.driver import calls
from jackfield.driver.listener import Bounds
from jackfield.driver.service import Limits, Places, Service
from unit.driver.seat import DRIVER, Gate, Obedient, run, seat

PREPARE = "NodePrepareResources"
UNPREPARE = "NodeUnprepareResources"
V1 = "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"
BOUNDS = Bounds(message_bytes=10_000, calls=8)
LIMITS = Limits(claims=20, bounds=BOUNDS, stop_seconds=0.0)
Answers = dict[str, tuple[int, str]]


async def asked(path: object, method: str, request: bytes) -> bytes:
    alone = [
        ("grpc.use_local_subchannel_pool", 1)
    ]  # callers would share a connection, and wait for each other
    async with grpc.aio.insecure_channel(f"unix:{path}", options=alone) as channel:
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(method)
        return await call(request)


def answers(preparer: Obedient, method: str, request: bytes) -> Answers:
    """Return for every claim how many devices there are, and the error."""

    async def main(places: Places) -> bytes:
        async with Service(DRIVER, preparer, places, None, LIMITS):
            return await asked(places.service(DRIVER), f"/{V1}/{method}", request)

    with seat() as places:
        wire = run(main(places))
    if method == PREPARE:
        prepared = dra_pb2.NodePrepareResourcesResponse.FromString(wire).claims
        return {uid: (len(one.devices), one.error) for uid, one in prepared.items()}
    unprepared = dra_pb2.NodeUnprepareResourcesResponse.FromString(wire).claims
    return {uid: (0, one.error) for uid, one in unprepared.items()}


def wanted(*claims: tuple[str, str, str]) -> bytes:
    return dra_pb2.NodePrepareResourcesRequest(
        claims=[dra_pb2.Claim(namespace=namespace, name=name, uid=uid) for namespace, name, uid in claims]
    ).SerializeToString()


@pytest.mark.parametrize("method", [PREPARE, UNPREPARE])
@pytest.mark.parametrize(
    ("request_bytes", "errors", "asked_for"),
    [
        (b"", {}, []),
        (wanted(("n", "a", "u"), ("n", "a", "u")), {"u": ""}, ["a"]),
        (
            wanted(("n", "a", "u"), ("n", "b", "u"), ("n", "c", "w")),
            {"u": "two claims are said to have uid u: n/a and n/b", "w": ""},
            ["c"],
        ),
        (wanted(("n", "a", "u")) + b"\xba\x3e\x05later", {"u": ""}, ["a"]),
        (b"\x0a\x0e\x0a\x01n\x12\x01u\x1a\x01a\xa2\x06\x02xy", {"u": ""}, ["a"]),
    ],
    ids=["none", "twice", "two with one uid", "an unknown field", "one in a claim"],
)
def test_an_odd_call_is_answered(
    method: str, request_bytes: bytes, errors: dict[str, str], asked_for: list[str]
) -> None:
    preparer = Obedient()
    found = answers(preparer, method, request_bytes)
    assert {uid: error for uid, (_, error) in found.items()} == errors
    assert sorted(one.name for one in preparer.claims) == asked_for


@pytest.mark.parametrize(
    "claim",
    [
        ("", "a", "u"),
        ("n", "", "u"),
        ("n", "a", ""),
        ("..", "a", "u"),
        ("n", "../a", "u"),
        ("n", "a/b", "u"),
        ("n", "a", "../../../etc/x"),
        ("n", "a", "u/v"),
        ("n", "a", "u\0"),
        ("n", "a", "u\n"),
        ("n", "a", "-u"),
        ("n", "a", "u" * 64),
        ("n" * 64, "a", "u"),
        ("n", "a" * 254, "u"),
        ("N", "a", "u"),
        ("n", "ä", "u"),
    ],
    ids=repr,
)
def test_what_cannot_be_a_claim_is_refused_and_nobody_is_asked(claim: tuple[str, str, str]) -> None:
    preparer = Obedient()
    found = answers(preparer, PREPARE, wanted(claim, ("n", "good", "good")))
    devices, error = found.pop(claim[2])
    assert devices == 0
    assert error.startswith("no claim has this namespace, name and uid: ")
    assert found == {"good": (1, "")}
    assert [one.name for one in preparer.claims] == ["good"]


@pytest.mark.parametrize(
    ("method", "request_bytes", "code", "words"),
    [
        (f"/{V1}/{PREPARE}", b"\xff", "INVALID_ARGUMENT", "this is no NodePrepareResourcesRequest"),
        (f"/{V1}/{UNPREPARE}", b"\x0a\x05x", "INVALID_ARGUMENT", "this is no NodeUnprepareResourcesRequest"),
        (f"/{V1}/{PREPARE}", b"\x0a\x03\x12\x01\xff", "INVALID_ARGUMENT", "this is no Node"),
        (f"/{V1}/{PREPARE}", b"\x0a\x00" * 21, "INVALID_ARGUMENT", "21 claims in one call; at most 20"),
        (f"/{V1}/{PREPARE}", b"\x0a\x00" * 9000, "RESOURCE_EXHAUSTED", "larger than max"),
        (f"/{V1}/NodeForgetResources", b"", "UNIMPLEMENTED", ""),
        (f"/{V1.replace('v1', 'v1alpha3')}/{PREPARE}", b"", "UNIMPLEMENTED", ""),
        ("/", b"", "UNIMPLEMENTED", ""),
    ],
    ids=["no message", "half of one", "no text", "many", "large", "method", "version", "nothing"],
)
def test_a_call_that_is_none_is_refused(method: str, request_bytes: bytes, code: str, words: str) -> None:
    async def main(places: Places) -> None:
        async with Service(DRIVER, Obedient(), places, None, LIMITS):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await asked(places.service(DRIVER), method, request_bytes)
            assert refused.value.code().name == code
            assert words in (refused.value.details() or "")

    with seat() as places:
        run(main(places))


def test_more_calls_than_allowed_are_refused_at_once() -> None:
    async def main(places: Places) -> None:
        gate = Gate()
        limits = Limits(bounds=Bounds(calls=2))
        async with Service(DRIVER, Obedient(gate), places, None, limits):
            path, method = places.service(DRIVER), f"/{V1}/{PREPARE}"
            under_way = [
                asyncio.create_task(asked(path, method, wanted(("n", name, name)))) for name in ("a", "b")
            ]
            await gate.crowded(2)
            with pytest.raises(grpc.aio.AioRpcError, match="limit exceeded") as refused:
                await asked(path, method, wanted(("n", "c", "c")))
            assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            gate.open()
            await asyncio.gather(*under_way)

    with seat() as places:
        run(main(places))


def test_the_kubelet_is_answered_before_it_hangs_up() -> None:
    assert calls.Limits().answer_seconds <= 45 - calls.Limits().spare_seconds


# --- noise

SOBER = {grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT}
METHODS = [
    f"/{V1}/{PREPARE}",
    f"/{V1}/{UNPREPARE}",
    f"/{V1.replace('v1', 'v1beta1')}/{PREPARE}",
    "/pluginregistration.Registration/GetInfo",
    "/pluginregistration.Registration/NotifyRegistrationStatus",
]
TEXTS = st.one_of(st.sampled_from(["n", "a", "u", "..", "a/b", "\0"]), st.text(max_size=300))


@st.composite
def noise(draw: st.DrawFn) -> tuple[str, bytes]:
    """Return bytes, or a message of odd texts, some of whose bytes may be spoilt."""
    method = draw(st.sampled_from(METHODS))
    if draw(st.booleans()):
        return method, draw(st.binary(max_size=200))
    message = bytearray(wanted(*draw(st.lists(st.tuples(TEXTS, TEXTS, TEXTS), max_size=5))))
    for at, byte in draw(st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=3)):
        if message:
            message[at % len(message)] = byte
    return method, bytes(message)


async def code(path: object, method: str, request: bytes) -> grpc.StatusCode:
    try:
        await asked(path, method, request)
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


async def survived(places: Places, requests: list[tuple[str, bytes]]) -> None:
    for method, request in requests:
        path = places.registration(DRIVER) if "Registration" in method else places.service(DRIVER)
        assert await code(path, method, request) in SOBER, (method, request)
    good = await asked(places.service(DRIVER), METHODS[0], wanted(("n", "good", "good")))
    assert len(dra_pb2.NodePrepareResourcesResponse.FromString(good).claims["good"].devices) == 1


def test_no_noise_gets_through_or_harms_whoever_comes_next() -> None:
    preparer = Obedient()
    with seat() as places, asyncio.Runner() as runner:
        service = Service(DRIVER, preparer, places, None, LIMITS)
        runner.run(service.__aenter__())

        @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(requests=st.lists(noise(), max_size=8))
        @example(requests=[(METHODS[0], b"\x0a\x07\x12\x05\xed\xa0\x80ab")])
        def hold(requests: list[tuple[str, bytes]]) -> None:
            runner.run(survived(places, requests))

        try:
            hold()
        finally:
            runner.run(service.__aexit__(None, None, None))
    for one in preparer.claims:
        assert calls.NAMESPACE.fullmatch(one.namespace)
        assert calls.NAME.fullmatch(one.name)
        assert calls.UID.fullmatch(one.uid)
