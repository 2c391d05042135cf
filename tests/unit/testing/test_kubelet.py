"""The double of the kubelet refuses what the kubelet refuses."""

import asyncio
import contextlib
import re
import socket
import tempfile
from collections.abc import AsyncIterator, Coroutine, Iterator
from pathlib import Path
from typing import TypeVar

import grpc
import grpc.aio
import msgspec
import pytest

from jackfield._proto import dra_pb2, health_pb2, registration_pb2
from jackfield.testing.kubelet import Claim, Kubelet, KubeletError, Outcome, Reported

DRIVER = "gpu.example.com"
A, B = Claim("default", "a", "uid-a"), Claim("default", "b", "uid-b")
T = TypeVar("T")


class Script(msgspec.Struct, frozen=True):
    """What a plugin says."""

    type: str = "DRAPlugin"
    endpoint: str = ""
    services: tuple[str, ...] = ("v1.DRAPlugin",)
    answered: tuple[str, ...] = ()
    """The uids for which it has an answer."""
    deaf: bool = False
    """It ends with an error whoever tells it that it is registered."""


class Plugin:
    """A plugin that answers by its script, on one socket."""

    def __init__(self, path: Path, script: Script) -> None:
        self._path = path
        self._script = script
        self.told: list[tuple[bool, str]] = []
        self.reported = asyncio.Event()

    async def info(self, _: bytes, __: object) -> bytes:
        return registration_pb2.PluginInfo(
            type=self._script.type,
            name=DRIVER,
            endpoint=self._script.endpoint or str(self._path),
            supported_versions=self._script.services,
        ).SerializeToString()

    async def notify(self, request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        status = registration_pb2.RegistrationStatus.FromString(request)
        self.told.append((status.plugin_registered, status.error))
        if self._script.deaf:
            await context.abort(grpc.StatusCode.UNKNOWN, "do not want to know")
        return b""

    async def prepare(self, _: bytes, __: object) -> bytes:
        answers = {uid: dra_pb2.NodePrepareResourceResponse() for uid in self._script.answered}
        return dra_pb2.NodePrepareResourcesResponse(claims=answers).SerializeToString()

    async def watch(self, _: bytes, __: object) -> AsyncIterator[bytes]:
        device = health_pb2.DeviceIdentifier(pool_name="p", device_name="d")
        report = health_pb2.DeviceHealth(device=device, health=health_pb2.HEALTHY)
        yield health_pb2.NodeWatchResourcesResponse(devices=[report]).SerializeToString()
        await self.reported.wait()


@contextlib.asynccontextmanager
async def serving(path: Path, script: Script = Script()) -> AsyncIterator[Plugin]:
    plugin = Plugin(path, script)
    server = grpc.aio.server()
    unary = grpc.unary_unary_rpc_method_handler
    services: dict[str, dict[str, grpc.RpcMethodHandler[bytes, bytes]]] = {
        "pluginregistration.Registration": {
            "GetInfo": unary(plugin.info),
            "NotifyRegistrationStatus": unary(plugin.notify),
        },
        "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin": {"NodePrepareResources": unary(plugin.prepare)},
        "v1.DRAResourceHealth": {"NodeWatchResources": grpc.unary_stream_rpc_method_handler(plugin.watch)},
    }
    handlers = [grpc.method_handlers_generic_handler(name, methods) for name, methods in services.items()]
    server.add_generic_rpc_handlers(tuple(handlers))
    server.add_insecure_port(f"unix:{path}")
    await server.start()
    try:
        yield plugin
    finally:
        await server.stop(0)


def run(main: Coroutine[object, object, T]) -> T:
    return asyncio.run(asyncio.wait_for(main, 300))


@pytest.fixture
def registry() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="jf", dir="/tmp") as folder:
        yield Path(folder)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (Script(type="CSIPlugin"), "no handler registered for plugin type: CSIPlugin"),
        (Script(services=()), r"none of services supported by the plugin \(\[\]\)"),
        (Script(services=("v1alpha3.DRAPlugin", "1.0.0")), "none of services supported by the plugin"),
    ],
    ids=["another type", "no service", "old services"],
)
def test_a_plugin_that_the_kubelet_would_refuse_is_refused_and_told_why(
    registry: Path, script: Script, words: str
) -> None:
    async def main() -> None:
        async with serving(registry / "a.sock", script) as plugin, Kubelet(registry) as kubelet:
            refusal = await kubelet.refused()
            assert re.match(words, refusal)
            assert plugin.told[0] == (False, refusal)
            with pytest.raises(KubeletError, match="is not registered"):
                await kubelet.prepare(DRIVER, A)

    run(main())


def test_one_endpoint_is_not_registered_twice(registry: Path) -> None:
    async def main() -> None:
        async with serving(registry / "a.sock"), Kubelet(registry) as kubelet:
            await kubelet.registered(DRIVER)
            async with serving(registry / "b.sock", Script(endpoint=str(registry / "a.sock"))):
                assert await kubelet.refused() == (
                    f"endpoint {registry / 'a.sock'} already registered for DRA driver plugin {DRIVER}"
                )
            await kubelet.until(lambda: not kubelet.refusals)
            assert len(kubelet.plugins[DRIVER]) == 1

    run(main())


def test_a_socket_where_nobody_answers_is_no_plugin(registry: Path) -> None:
    path = registry / "a.sock"

    async def main() -> None:
        async with Kubelet(registry) as kubelet:
            await kubelet.until(lambda: path in kubelet.unreachable)
            assert (kubelet.plugins, kubelet.refusals) == ({}, {})
            path.unlink()
            await kubelet.until(lambda: not kubelet.unreachable)

    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))
    run(main())


def test_files_and_names_with_a_dot_first_are_passed_over(registry: Path) -> None:
    async def main() -> None:
        async with serving(registry / ".a.sock"), serving(registry / "z.sock"), Kubelet(registry) as kubelet:
            plugin = await kubelet.registered(DRIVER)
            assert plugin.socket == registry / "z.sock"
            assert kubelet.refusals == {}

    (registry / "b.sock").write_text("")
    run(main())


def test_a_plugin_that_does_not_want_to_hear_is_registered_all_the_same(registry: Path) -> None:
    async def main() -> None:
        script = Script(deaf=True, answered=("uid-a",))
        async with serving(registry / "a.sock", script), Kubelet(registry) as kubelet:
            await kubelet.registered(DRIVER)
            assert await kubelet.prepare(DRIVER, A) == {"uid-a": Outcome()}

    run(main())


@pytest.mark.parametrize(
    ("answered", "words"),
    [
        (("uid-a",), "skipped 1 ResourceClaims"),
        ((), "skipped 2 ResourceClaims"),
        (("uid-a", "uid-c"), "unknown claim UID uid-c"),
    ],
    ids=["one left out", "both left out", "another one"],
)
def test_a_driver_that_does_not_answer_for_every_claim_fails(
    registry: Path, answered: tuple[str, ...], words: str
) -> None:
    async def main() -> None:
        script = Script(answered=answered)
        async with serving(registry / "a.sock", script), Kubelet(registry) as kubelet:
            await kubelet.registered(DRIVER)
            with pytest.raises(KubeletError, match=words):
                await kubelet.prepare(DRIVER, A, B)
            with pytest.raises(KubeletError, match="NodeUnprepareResources failed: UNIMPLEMENTED"):
                await kubelet.unprepare(DRIVER, A)

    run(main())


def test_a_plugin_is_forgotten_with_its_socket_and_its_successor_is_registered(registry: Path) -> None:
    async def main() -> None:
        async with Kubelet(registry) as kubelet:
            for _ in range(2):
                async with serving(registry / "a.sock"):
                    await kubelet.registered(DRIVER)
                await kubelet.gone(DRIVER)

    run(main())


def test_health_is_forgotten_when_reports_end(registry: Path) -> None:
    async def main() -> None:
        script = Script(services=("v1.DRAPlugin", "v1.DRAResourceHealth"))
        async with serving(registry / "a.sock", script) as served, Kubelet(registry) as kubelet:
            plugin = await kubelet.registered(DRIVER)
            await kubelet.until(lambda: plugin.health == {("p", "d"): Reported("HEALTHY")})
            served.reported.set()
            await kubelet.until(lambda: not plugin.health)

    run(main())


def test_a_health_service_that_is_not_there_does_no_harm(registry: Path) -> None:
    async def main() -> None:
        script = Script(services=("v1.DRAPlugin", "v1alpha1.DRAResourceHealth"))
        async with serving(registry / "a.sock", script), Kubelet(registry) as kubelet:
            plugin = await kubelet.registered(DRIVER)
            assert plugin.health_service == "v1alpha1.DRAResourceHealth"
            assert plugin.reports == 0
            assert await kubelet.prepare(DRIVER) == {}

    run(main())
