"""How a driver meets the kubelet: it is found, registered, asked, and goes in order."""

import asyncio
import contextlib
import socket
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import grpc.aio
import pytest
from msgspec.structs import replace

from jackfield._proto import dra_pb2
from jackfield.driver.service import (
    Answer,
    ClaimRef,
    HealthSource,
    Limits,
    Misplaced,
    Places,
    PreparedDevice,
    Service,
)
from jackfield.ports import Refused, Retry
from jackfield.testing.kubelet import Device, Kubelet, KubeletError, Outcome
from unit.driver.seat import DRIVER, Gate, Obedient, claim, run, seat

OLD = "0f7f2d3e-8d0a-4c52-9a53-1f8f6e3f8a11"
NEW = "5a3d94a2-0a57-4f0e-b9c5-6b7a0d1e2c33"
NEVER = 3600.0
PREPARED = Outcome((Device(("gpu",), "pool-a", "gpu-0", ("example.com/gpu=u-gpu-0",)),))


@contextlib.asynccontextmanager
async def meeting(
    places: Places, preparer: Obedient, limits: Limits = Limits()
) -> AsyncIterator[tuple[Kubelet, Service]]:
    async with (
        Kubelet(places.registry) as kubelet,
        Service(DRIVER, preparer, places, None, limits) as service,
    ):
        await kubelet.registered(DRIVER)
        yield kubelet, service


# --- registration


@pytest.mark.parametrize(
    ("known", "asked"),
    [
        (("v1.DRAPlugin", "v1beta1.DRAPlugin"), "v1.DRAPlugin"),
        (("v1beta1.DRAPlugin", "v1.DRAPlugin"), "v1.DRAPlugin"),
        (("v1beta1.DRAPlugin",), "v1beta1.DRAPlugin"),
    ],
    ids=["1.34", "any order", "1.33"],
)
def test_a_kubelet_asks_in_the_newest_version_that_it_knows(known: tuple[str, ...], asked: str) -> None:
    async def main(places: Places) -> None:
        async with Kubelet(places.registry, known) as kubelet, Service(DRIVER, Obedient(), places) as service:
            await service.registered.wait()
            assert service.trouble() == ""
            plugin = kubelet.plugin(DRIVER)
            assert plugin.supported == ("v1.DRAPlugin", "v1beta1.DRAPlugin")
            assert (plugin.service, plugin.endpoint) == (asked, str(places.service(DRIVER)))
            assert await kubelet.prepare(DRIVER, claim()) == {"uid-a": PREPARED}
            assert await kubelet.unprepare(DRIVER, claim()) == {"uid-a": Outcome()}

    with seat() as places:
        run(main(places))


def test_a_driver_with_health_says_so_after_its_plugin_versions() -> None:
    async def main(places: Places) -> tuple[str, ...]:
        async with (
            Kubelet(places.registry) as kubelet,
            Service(DRIVER, Obedient(), places, HealthSource()),
        ):
            return (await kubelet.registered(DRIVER)).supported

    with seat() as places:
        plugin = ("v1.DRAPlugin", "v1beta1.DRAPlugin")
        assert run(main(places)) == (*plugin, "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth")


def test_a_refusal_is_told_until_the_kubelet_takes_us() -> None:
    async def main(places: Places) -> None:
        async with Service(DRIVER, Obedient(), places) as service:
            assert f"has not asked at {places.registration(DRIVER)}" in service.trouble()
            async with Kubelet(places.registry, ("v9.DRAPlugin",)) as kubelet:
                words = await kubelet.refused()
                assert service.trouble() == service.registered.error == f"the kubelet refused us: {words}"
                assert not service.registered.is_set()
            async with Kubelet(places.registry):
                await service.registered.wait()
                assert service.trouble() == ""
            async with Kubelet(places.registry, ("v9.DRAPlugin",)) as kubelet:
                await kubelet.refused()
                assert not service.registered.is_set()

    with seat() as places:
        run(main(places))


def test_a_restarted_kubelet_finds_us_again() -> None:
    async def main(places: Places) -> None:
        async with Service(DRIVER, Obedient(), places):
            for _ in range(2):
                async with Kubelet(places.registry) as kubelet:
                    await kubelet.registered(DRIVER)
                    assert await kubelet.prepare(DRIVER, claim()) == {"uid-a": PREPARED}

    with seat() as places:
        run(main(places))


def test_a_driver_can_be_made_before_any_loop_runs() -> None:
    async def main(service: Service, places: Places) -> None:
        async with Kubelet(places.registry) as kubelet, service:
            await kubelet.registered(DRIVER)
            assert await kubelet.prepare(DRIVER, claim()) == {"uid-a": PREPARED}

    with seat() as places:
        run(main(Service(DRIVER, Obedient(), places), places))


# --- sockets


def test_sockets_are_for_their_owner_alone_and_nothing_else_is_left_beside_them() -> None:
    async def main(places: Places) -> None:
        async with Service(DRIVER, Obedient(), places):
            sockets = [path for path in places.plugins.parent.rglob("*") if not path.is_dir()]
            assert sorted(sockets) == sorted([places.registration(DRIVER), places.service(DRIVER)])
            assert {stat.S_IMODE(path.stat().st_mode) for path in sockets} == {0o600}
        assert not [path for path in places.plugins.parent.rglob("*") if not path.is_dir()]

    with seat() as places:
        run(main(places))


def test_a_successor_of_a_killed_process_is_registered() -> None:
    async def main(places: Places) -> None:
        for path in (places.registration(DRIVER), places.service(DRIVER)):
            path.parent.mkdir(parents=True)
            dead(path)
        async with meeting(places, Obedient()) as (kubelet, _):
            assert await kubelet.prepare(DRIVER, claim()) == {"uid-a": PREPARED}

    with seat() as places:
        run(main(places))


def test_a_second_process_does_not_disturb_the_first() -> None:
    async def main(places: Places) -> None:
        async with meeting(places, Obedient()) as (kubelet, service):
            with pytest.raises(Misplaced, match="another process serves this driver"):
                async with Service(DRIVER, Obedient(), places):
                    pass
            assert await kubelet.prepare(DRIVER, claim()) == {"uid-a": PREPARED}
            assert service.trouble() == ""

    with seat() as places:
        run(main(places))


def test_during_an_update_the_newer_of_two_pods_is_asked_and_the_older_can_go() -> None:
    async def main(places: Places) -> None:
        first, second = Obedient(), Obedient()
        async with Kubelet(places.registry) as kubelet:
            async with contextlib.AsyncExitStack() as old:
                await old.enter_async_context(Service(DRIVER, first, replace(places, pod_uid=OLD)))
                await kubelet.registered(DRIVER)
                await kubelet.prepare(DRIVER, claim("a"))
                async with Service(DRIVER, second, replace(places, pod_uid=NEW)):
                    await connected(kubelet, 2)
                    await kubelet.prepare(DRIVER, claim("b"))
                    await old.aclose()
                    await kubelet.registered(DRIVER)
                    await kubelet.unprepare(DRIVER, claim("a"))
            await kubelet.gone(DRIVER)
        assert first.calls == ["prepare a", "end a"]
        assert second.calls == ["prepare b", "end b", "unprepare a", "end a"]

    with seat() as places:
        run(main(places))


@pytest.mark.parametrize("which", ["registration", "service"])
def test_a_socket_that_somebody_removed_is_told_and_its_successor_is_left_alone(which: str) -> None:
    async def main(places: Places) -> None:
        path: Path = getattr(places, which)(DRIVER)
        told = f"somebody removed or replaced {path}: start the driver again"
        async with meeting(places, Obedient()) as (_, service):
            remove(path)
            assert service.trouble() == told
            dead(path)
            assert service.trouble() == told

    with seat() as places:
        run(main(places))
        assert getattr(places, which)(DRIVER).exists()


def remove(path: Path) -> None:
    path.unlink()


def dead(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


async def connected(kubelet: Kubelet, count: int) -> None:
    """Wait until so many plugins can be reached, as the kubelet sees to it that they can."""
    await kubelet.registered(DRIVER, count)
    for plugin in kubelet.plugins[DRIVER]:
        await plugin.channel.channel_ready()


# --- claims


def test_all_that_is_prepared_reaches_the_kubelet() -> None:
    devices = (
        PreparedDevice(("gpu", "spare"), "pool-a", "gpu-0", ("v/c=a", "v/c=b"), "share-1"),
        PreparedDevice((), "pool-b", "gpu-1"),
    )

    async def instead(_: ClaimRef) -> Answer:
        return Answer(devices)

    async def main(places: Places) -> dict[str, Outcome]:
        async with meeting(places, Obedient(instead)) as (kubelet, _):
            return await kubelet.prepare(DRIVER, claim())

    expected = tuple(Device(one.requests, one.pool, one.device, one.cdi, one.share_id) for one in devices)
    with seat() as places:
        assert run(main(places)) == {"uid-a": Outcome(expected)}


def test_a_claim_comes_with_namespace_name_and_uid() -> None:
    async def main(places: Places) -> list[ClaimRef]:
        preparer = Obedient()
        async with meeting(places, preparer) as (kubelet, _):
            await kubelet.prepare(DRIVER, claim("a", OLD))
        return preparer.claims

    with seat() as places:
        (got,) = run(main(places))
        assert (str(got.key), got.uid) == ("default/a", OLD)


def test_claims_of_one_call_are_prepared_side_by_side() -> None:
    async def main(places: Places) -> None:
        gate = Gate()
        async with meeting(places, Obedient(gate)) as (kubelet, _):
            call = asyncio.create_task(kubelet.prepare(DRIVER, claim("a"), claim("b"), claim("c")))
            await gate.crowded(3)
            gate.open()
            assert set(await call) == {"uid-a", "uid-b", "uid-c"}

    with seat() as places:
        run(main(places))


def test_no_more_claims_than_allowed_are_prepared_at_a_time() -> None:
    async def main(places: Places) -> None:
        gate = Gate()
        async with meeting(places, Obedient(gate), Limits(side_by_side=2)) as (kubelet, _):
            call = asyncio.create_task(kubelet.prepare(DRIVER, *(claim(name) for name in "abcdef")))
            await gate.crowded(2)
            gate.open()
            assert len(await call) == 6
            assert gate.inside_most == 2

    with seat() as places:
        run(main(places))


def test_what_takes_too_long_goes_on_in_its_turn_and_is_answered_when_asked_again() -> None:
    async def main(places: Places) -> None:
        gate = Gate()
        preparer = Obedient(gate)
        async with meeting(places, preparer, Limits(answer_seconds=0.05)) as (kubelet, _):
            words = [
                (await ask(DRIVER, claim()))["uid-a"].error
                for ask in (
                    kubelet.prepare,
                    kubelet.prepare,
                    kubelet.unprepare,
                    kubelet.unprepare,
                    kubelet.prepare,
                )
            ]
            assert words == [
                "to prepare claim default/a takes longer than a call may; it goes on, ask again",
                "to prepare claim default/a takes longer than a call may; it goes on, ask again",
                "claim default/a waits for its turn behind others that are under way; ask again",
                "claim default/a waits for its turn behind others that are under way; ask again",
                "cannot prepare claim default/a yet: what was asked before is still under way; ask again",
            ]
            gate.open()
            while (await kubelet.prepare(DRIVER, claim()))["uid-a"] != PREPARED:
                pass
        assert gate.inside_most == 1
        assert preparer.calls[:5] == ["prepare a", "end a", "unprepare a", "end a", "prepare a"]

    with seat() as places:
        run(main(places))


def test_other_claims_of_a_call_are_answered_though_one_takes_too_long() -> None:
    gate = Gate()

    async def instead(wanted: ClaimRef) -> Answer:
        return await gate(wanted) if wanted.name == "slow" else Answer()

    async def main(places: Places) -> dict[str, Outcome]:
        limits = Limits(answer_seconds=0.05, stop_seconds=0.0)
        async with meeting(places, Obedient(instead), limits) as (kubelet, _):
            while True:
                outcomes = await kubelet.prepare(DRIVER, claim("slow"), claim("quick"))
                if not outcomes["uid-quick"].error:
                    return outcomes

    with seat() as places:
        outcomes = run(main(places))
        assert "takes longer than a call may" in outcomes["uid-slow"].error
        assert outcomes["uid-quick"] == Outcome()


def test_a_caller_with_less_time_than_the_kubelet_is_answered_within_it() -> None:
    async def main(places: Places) -> dict[str, Outcome]:
        limits = Limits(spare_seconds=30.0, stop_seconds=0.0)
        async with meeting(places, Obedient(Gate()), limits) as (kubelet, _):
            return await kubelet.prepare(DRIVER, claim(), seconds=30.1)

    with seat() as places:
        assert "ask again" in run(main(places))["uid-a"].error


def test_a_call_goes_on_though_the_kubelet_hangs_up() -> None:
    async def main(places: Places) -> list[str]:
        gate = Gate()
        preparer = Obedient(gate)
        async with meeting(places, preparer) as (kubelet, _):
            call = asyncio.create_task(kubelet.prepare(DRIVER, claim()))
            await gate.crowded()
            call.cancel()
            await asyncio.wait([call])
            again = asyncio.create_task(kubelet.unprepare(DRIVER, claim("b")))
            await gate.crowded(2)
            gate.open()
            await again
        return preparer.calls

    with seat() as places:
        assert "cancelled a" not in run(main(places))


@pytest.mark.parametrize(
    ("raised", "words"),
    [
        (Refused("the claim is for node-b"), "the claim is for node-b"),
        (Retry(""), "Retry"),
        (
            ValueError("no such model"),
            "could not prepare claim default/bad: ValueError: no such model; the driver's log says where",
        ),
        (
            OSError(28, "no space"),
            "could not prepare claim default/bad: OSError: [Errno 28] no space; the driver's log says where",
        ),
        (ValueError("x" * 5000), f"could not prepare claim default/bad: ValueError: {'x' * 5000}"[:1024]),
        (Refused("a file named \udcff"), "a file named \\udcff"),
    ],
    ids=["refused", "nothing said", "a mistake", "the world", "long", "no text"],
)
def test_what_a_driver_raises_is_told_of_that_claim_alone(raised: Exception, words: str) -> None:
    async def instead(wanted: ClaimRef) -> Answer:
        if wanted.name == "bad":
            raise raised
        return Answer()

    async def main(places: Places) -> dict[str, Outcome]:
        async with meeting(places, Obedient(instead)) as (kubelet, _):
            return await kubelet.prepare(DRIVER, claim("bad"), claim("good"))

    with seat() as places:
        assert run(main(places)) == {"uid-bad": Outcome(error=words), "uid-good": Outcome()}


def test_what_cannot_be_unprepared_is_told() -> None:
    async def instead(wanted: ClaimRef) -> Answer:
        return Answer(error="process 7 holds it" if wanted.name == "held" else "")

    async def main(places: Places) -> dict[str, Outcome]:
        async with meeting(places, Obedient(instead)) as (kubelet, _):
            return await kubelet.unprepare(DRIVER, claim("held"), claim("free"))

    with seat() as places:
        assert run(main(places)) == {"uid-held": Outcome(error="process 7 holds it"), "uid-free": Outcome()}


@pytest.mark.parametrize(
    "answer",
    [
        None,
        Answer((PreparedDevice(("r",), "p", "\udcff"),)),
        Answer((PreparedDevice(("r",), "p", cast("str", 7)),)),
    ],
    ids=["nothing", "no text", "no name"],
)
def test_an_answer_that_is_none_is_told_of_that_claim_alone(answer: Answer | None) -> None:
    async def instead(wanted: ClaimRef) -> Answer:
        return cast("Answer", answer) if wanted.name == "bad" else Answer()

    async def main(places: Places) -> dict[str, Outcome]:
        async with meeting(places, Obedient(instead)) as (kubelet, _):
            return await kubelet.prepare(DRIVER, claim("bad"), claim("good"))

    with seat() as places:
        outcomes = run(main(places))
        assert outcomes["uid-bad"].error.startswith("the driver's answer cannot be told to the kubelet: ")
        assert outcomes["uid-good"] == Outcome()


# --- the end


def test_the_end_waits_for_what_is_under_way_after_the_kubelet_was_let_go() -> None:
    async def main(places: Places) -> None:
        gate = Gate()
        preparer = Obedient(gate)
        async with Kubelet(places.registry) as kubelet, contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(
                Service(DRIVER, preparer, places, None, Limits(stop_seconds=NEVER))
            )
            await kubelet.registered(DRIVER)
            plugin = kubelet.plugin(DRIVER)
            async with grpc.aio.insecure_channel(f"unix:{plugin.endpoint}") as channel:
                # By a connection of its own: the kubelet's ends when it lets go.
                call = channel.unary_unary(
                    "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources",
                    request_serializer=dra_pb2.NodePrepareResourcesRequest.SerializeToString,
                    response_deserializer=dra_pb2.NodePrepareResourcesResponse.FromString,
                )(
                    dra_pb2.NodePrepareResourcesRequest(
                        claims=[dra_pb2.Claim(namespace="n", name="a", uid="u")]
                    )
                )
                await gate.crowded()
                end = asyncio.create_task(stack.aclose())
                await kubelet.gone(DRIVER)
                assert not end.done()
                gate.open()
                assert len((await call).claims["u"].devices) == 1
                await end
        assert preparer.calls == ["prepare a", "end a"]

    with seat() as places:
        run(main(places))


def test_the_end_comes_though_a_call_never_ends() -> None:
    async def main(places: Places) -> list[str]:
        gate = Gate()
        preparer = Obedient(gate)
        async with meeting(places, preparer, Limits(stop_seconds=0.05)) as (kubelet, _):
            call = asyncio.create_task(kubelet.prepare(DRIVER, claim()))
            await gate.crowded()
        with pytest.raises(KubeletError):
            await call
        # Now, since the loop's own end would cancel it too.
        return list(preparer.calls)

    with seat() as places:
        assert run(main(places)) == ["prepare a", "cancelled a", "end a"]
