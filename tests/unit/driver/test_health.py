"""What the kubelet hears of devices' health, and when."""

import asyncio

import grpc
import grpc.aio
import pytest

from jackfield._proto import health_pb2
from jackfield.driver import health
from jackfield.driver.service import DeviceHealth, Health, HealthSource, Limits, Places, Service
from jackfield.testing.kubelet import Kubelet, Reported
from unit.driver.seat import DRIVER, Obedient, run, seat

NEVER = 3600.0
FINE = DeviceHealth("p", "a", Health.HEALTHY)
HOT = DeviceHealth("p", "b", Health.UNHEALTHY, "97 °C")
LOST = DeviceHealth("p", "b", Health.UNKNOWN)


def told(report: health_pb2.NodeWatchResourcesResponse) -> list[tuple[str, str, int, int, str]]:
    return [
        (one.device.pool_name, one.device.device_name, one.health, one.last_updated_time, one.message)
        for one in report.devices
    ]


def test_all_devices_are_reported_first_and_changes_at_once() -> None:
    async def main() -> None:
        source = HealthSource([FINE, HOT], NEVER, lambda: 9.5)
        reports = source.reports()
        assert told(await anext(reports)) == [("p", "a", 1, 9, ""), ("p", "b", 2, 9, "97 °C")]
        source.tell([FINE, LOST])
        assert told(await anext(reports)) == [("p", "a", 1, 9, ""), ("p", "b", 0, 9, "")]
        source.tell([])
        assert told(await anext(reports)) == []
        await reports.aclose()

    run(main())


def test_everybody_who_listens_hears_of_a_change() -> None:
    async def main() -> None:
        source = HealthSource([FINE], NEVER)
        listeners = [source.reports() for _ in range(3)]
        for one in listeners:
            await anext(one)
        hearing = [asyncio.ensure_future(anext(one)) for one in listeners]
        await asyncio.wait(hearing, timeout=0)
        source.tell([HOT])
        for report in await asyncio.gather(*hearing):
            assert [one.device.device_name for one in report.devices] == ["b"]
        for one in listeners:
            await one.aclose()

    run(main())


def test_health_is_reported_again_though_nothing_changed() -> None:
    async def main() -> None:
        times = iter(range(100))
        reports = HealthSource([FINE], 0.001, lambda: next(times)).reports()
        assert [told(await anext(reports)) for _ in range(3)] == [[("p", "a", 1, at, "")] for at in range(3)]
        await reports.aclose()

    run(main())


def test_health_told_twice_is_no_news() -> None:
    async def main() -> None:
        source = HealthSource([FINE], NEVER)
        reports = source.reports()
        await anext(reports)
        hearing = asyncio.ensure_future(anext(reports))
        source.tell([FINE])
        await asyncio.wait([hearing], timeout=0.02)
        assert not hearing.done()
        source.repeat()
        assert told(await hearing)
        await reports.aclose()

    run(main())


def test_the_kubelet_is_reminded_before_it_forgets() -> None:
    assert health.AGAIN_SECONDS < 30 / 2


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        ([HOT, LOST], [("b", 0, "")]),
        ([DeviceHealth("p", "b", Health.HEALTHY, "x" * 2000)], [("b", 1, "x" * 1024)]),
        ([DeviceHealth("p", "b", Health.HEALTHY, "\udcff!")], [("b", 1, "\\udcff!")]),
        ([DeviceHealth("p", "\udcff", Health.HEALTHY)], [("\\udcff", 1, "")]),
    ],
    ids=["twice", "long", "no text", "no name"],
)
def test_odd_health_is_reported_soberly(
    given: list[DeviceHealth], reported: list[tuple[str, int, str]]
) -> None:
    async def main() -> None:
        reports = HealthSource(given, NEVER).reports()
        report = await anext(reports)
        assert [(one.device.device_name, one.health, one.message) for one in report.devices] == reported
        await reports.aclose()

    run(main())


# --- over the socket


async def followed(places: Places, known: tuple[str, ...]) -> str:
    """Return which service the kubelet chose, after it has heard of a change."""
    source = HealthSource([FINE], NEVER)
    async with (
        Kubelet(places.registry, health_services=known) as kubelet,
        Service(DRIVER, Obedient(), places, source),
    ):
        plugin = await kubelet.registered(DRIVER)
        await kubelet.until(lambda: plugin.health == {("p", "a"): Reported("HEALTHY")})
        source.tell([HOT])
        await kubelet.until(lambda: plugin.health == {("p", "b"): Reported("UNHEALTHY", "97 °C")})
        assert plugin.reports == 2
        return plugin.health_service


@pytest.mark.parametrize(
    ("known", "chosen"),
    [
        (("v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"), "v1.DRAResourceHealth"),
        (("v1alpha1.DRAResourceHealth",), "v1alpha1.DRAResourceHealth"),
    ],
    ids=["1.37", "1.36"],
)
def test_a_kubelet_hears_of_health_in_its_own_version(known: tuple[str, ...], chosen: str) -> None:
    with seat() as places:
        assert run(followed(places, known)) == chosen


@pytest.mark.parametrize("version", ["v1", "v1alpha1"])
def test_a_driver_that_knows_nothing_of_health_is_listened_to_all_the_same_and_says_nothing(
    version: str,
) -> None:
    async def main(places: Places) -> None:
        async with grpc.aio.insecure_channel(f"unix:{places.service(DRIVER)}") as channel:
            watch: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream(
                f"/{version}.DRAResourceHealth/NodeWatchResources"
            )
            async with Service(DRIVER, Obedient(), places, None, Limits(stop_seconds=NEVER)):
                stream = watch(b"")
                first = health_pb2.NodeWatchResourcesResponse.FromString(await anext(aiter(stream)))
                assert list(first.devices) == []
                more = asyncio.ensure_future(anext(aiter(stream)))
                assert not stream.done()
            assert await stream.code() is grpc.StatusCode.OK
            assert isinstance((await asyncio.gather(more, return_exceptions=True))[0], StopAsyncIteration)

    with seat() as places:
        run(main(places))


def test_the_end_does_not_wait_for_whoever_listens() -> None:
    async def main(places: Places) -> None:
        limits = Limits(stop_seconds=NEVER)
        async with grpc.aio.insecure_channel(f"unix:{places.service(DRIVER)}") as channel:
            watch: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream(
                "/v1.DRAResourceHealth/NodeWatchResources"
            )
            async with Service(DRIVER, Obedient(), places, HealthSource([FINE], NEVER), limits):
                stream = watch(b"")
                await anext(aiter(stream))
            assert await stream.code() is grpc.StatusCode.OK

    with seat() as places:
        run(main(places))
