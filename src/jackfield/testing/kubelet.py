"""A double of the kubelet, as far as a DRA driver meets it: for the tests of whoever writes one.

    async with Kubelet(registry) as kubelet:
        await kubelet.registered("gpu.example.com")
        outcome = (await kubelet.prepare("gpu.example.com", Claim("default", "a", uid)))[uid]

It looks at the sockets of a folder, registers who listens there or says why not, asks the newest plugin of a driver
that can be reached, follows its health reports, and forgets it when its socket goes. It keeps the kubelet's time-outs.
It has no pods, no checkpoint, and deletes no ResourceSlices. Knows the protocol. Must not know any driver's inside.
"""

import asyncio
import contextlib
import stat
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar

import grpc
import grpc.aio
import msgspec
from google.protobuf.message import Message

from jackfield._proto import dra_pb2, health_pb2, registration_pb2
from jackfield.controllers.ending import is_ending

PLUGIN_SERVICES: Final = ("v1.DRAPlugin", "v1beta1.DRAPlugin")
"""What a kubelet of 1.34 and later asks. One of 1.33 knows only the second."""
HEALTH_SERVICES: Final = ("v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth")
"""By preference. One of 1.36 and older knows only the second."""
PREPARE_SECONDS: Final = 45.0
GET_INFO_SECONDS: Final = 1.0
NOTIFY_SECONDS: Final = 5.0
AGAIN_SECONDS: Final = 0.5
"""After which it first tries a registration or a stream of reports again. The kubelet waits longer each time."""

M = TypeVar("M", bound=Message)


class Claim(msgspec.Struct, frozen=True):
    """A claim, as far as the kubelet tells a driver of it."""

    namespace: str
    name: str
    uid: str


class Device(msgspec.Struct, frozen=True):
    """A device that a driver has prepared."""

    requests: tuple[str, ...]
    pool: str
    device: str
    cdi: tuple[str, ...] = ()
    share_id: str = ""


class Outcome(msgspec.Struct, frozen=True):
    """What a driver answered for one claim."""

    devices: tuple[Device, ...] = ()
    error: str = ""


class Reported(msgspec.Struct, frozen=True):
    """What a driver last reported of one device's health."""

    health: str
    """`HEALTHY`, `UNHEALTHY` or `UNKNOWN`."""
    message: str = ""


class KubeletError(Exception):
    """A driver could not be asked, or answered in a way that the kubelet takes for none."""


class Plugin:
    """A plugin that is registered."""

    def __init__(self, socket: Path, info: registration_pb2.PluginInfo, service: str, health: str) -> None:
        self.socket = socket
        self.driver = info.name
        self.endpoint = info.endpoint or str(socket)
        self.supported = tuple(info.supported_versions)
        self.service = service
        """Which of the supported services is asked for claims."""
        self.health_service = health
        self.health: dict[tuple[str, str], Reported] = {}
        """By pool and device; empty while no reports come."""
        self.reports = 0
        """How many have come."""
        self.channel = _channel(self.endpoint)

    @property
    def connected(self) -> bool:
        """Whether it can be reached; if not, it is tried."""
        return self.channel.get_state(try_to_connect=True) is grpc.ChannelConnectivity.READY


class Kubelet:
    """The kubelet's plugin side. While it is entered it looks at the registry folder."""

    def __init__(
        self,
        registry: Path,
        services: tuple[str, ...] = PLUGIN_SERVICES,
        health_services: tuple[str, ...] = HEALTH_SERVICES,
        look_seconds: float = 0.02,
    ) -> None:
        self.plugins: dict[str, list[Plugin]] = {}
        """By driver, in the order in which they were registered."""
        self.refusals: dict[Path, str] = {}
        """Why the plugin at a socket is not registered, as it was told."""
        self.unreachable: dict[Path, str] = {}
        """Sockets at which nobody answers, or not in time, and what was found instead."""
        self._registry = registry
        self._services = services
        self._health_services = health_services
        self._look_seconds = look_seconds
        self._known: dict[Path, tuple[int, asyncio.Task[None]]] = {}
        self._looking: asyncio.Task[None]
        self._changed = asyncio.Condition()

    async def __aenter__(self) -> Self:
        """Begin to look."""
        self._looking = asyncio.create_task(self._look())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop, as a kubelet that is restarted: nobody is told."""
        await _ended(self._looking)
        for socket in tuple(self._known):
            await self._forget(socket)

    # --- what a test waits for, and looks at

    async def registered(self, driver: str, count: int = 1) -> Plugin:
        """Wait until a driver has so many plugins, and return the newest."""
        await self.until(lambda: len(self.plugins.get(driver, ())) == count)
        return self.plugins[driver][-1]

    async def gone(self, driver: str) -> None:
        """Wait until a driver has no plugin."""
        await self.until(lambda: driver not in self.plugins)

    async def refused(self) -> str:
        """Wait until a plugin is refused, and return why."""
        await self.until(lambda: bool(self.refusals))
        return next(iter(self.refusals.values()))

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds, which is asked whenever anything happened here."""
        async with self._changed:
            await self._changed.wait_for(holds)

    def plugin(self, driver: str) -> Plugin:
        """Return the plugin that is asked: the newest that is connected, or else the newest."""
        plugins = self.plugins.get(driver)
        if not plugins:
            raise KubeletError(f"DRA driver {driver} is not registered")
        return next((one for one in reversed(plugins) if one.connected), plugins[-1])

    # --- what it asks

    async def prepare(
        self, driver: str, *claims: Claim, seconds: float = PREPARE_SECONDS
    ) -> dict[str, Outcome]:
        """Have claims prepared, in one call; return the outcomes by uid. Raises KubeletError."""
        request = dra_pb2.NodePrepareResourcesRequest(claims=map(_claim, claims))
        response = await self._call(driver, request, dra_pb2.NodePrepareResourcesResponse, seconds)
        return _of_all(claims, {uid: _outcome(one) for uid, one in response.claims.items()})

    async def unprepare(
        self, driver: str, *claims: Claim, seconds: float = PREPARE_SECONDS
    ) -> dict[str, Outcome]:
        """Have claims unprepared, in one call; return the outcomes by uid. Raises KubeletError."""
        request = dra_pb2.NodeUnprepareResourcesRequest(claims=map(_claim, claims))
        response = await self._call(driver, request, dra_pb2.NodeUnprepareResourcesResponse, seconds)
        return _of_all(claims, {uid: Outcome(error=one.error) for uid, one in response.claims.items()})

    async def _call(self, driver: str, request: Message, answer: type[M], seconds: float) -> M:
        plugin = self.plugin(driver)
        method = request.DESCRIPTOR.name.removesuffix("Request")
        ask = plugin.channel.unary_unary(
            f"/k8s.io.kubelet.pkg.apis.dra.{plugin.service}/{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=answer.FromString,
        )
        try:
            return await ask(request, timeout=seconds)
        except grpc.aio.AioRpcError as error:
            raise KubeletError(f"{method} failed: {error.code().name}: {error.details()}") from error
        except asyncio.CancelledError as error:
            if is_ending():
                raise
            raise KubeletError(f"{method} failed: CANCELLED: the plugin was let go meanwhile") from error

    # --- registration

    async def _look(self) -> None:
        while True:
            present = _sockets(self._registry)
            for socket, (inode, _) in tuple(self._known.items()):
                if present.get(socket) != inode:
                    await self._forget(socket)
            for socket, inode in present.items():
                if socket not in self._known:
                    self._known[socket] = inode, asyncio.create_task(self._serve(socket))
            await _pause(self._look_seconds)

    async def _forget(self, socket: Path) -> None:
        _, serving = self._known.pop(socket)
        await _ended(serving)
        self.refusals.pop(socket, None)
        self.unreachable.pop(socket, None)
        await self._tell()

    async def _serve(self, socket: Path) -> None:
        """Register who listens at a socket, and follow what it reports, until its socket goes."""
        while (info := await self._introduced(socket)) is None:
            await self._tell()
            await _pause(AGAIN_SECONDS)
        async with self._listed(socket, info) as plugin:
            with contextlib.suppress(
                grpc.aio.AioRpcError
            ):  # who does not want to hear it is registered all the same
                await _notify(socket, "")
            await self._tell()
            await self._follow(plugin)

    async def _introduced(self, socket: Path) -> registration_pb2.PluginInfo | None:
        """Return who listens at a socket, if it can be registered; if not, say so."""
        try:
            info = await _ask_for_info(socket)
            self.unreachable.pop(socket, None)
            objection = self._objection(socket, info)
            if not objection:
                self.refusals.pop(socket, None)
                return info
            await _notify(socket, objection)
        except grpc.aio.AioRpcError as error:
            self.unreachable[socket] = f"{error.code().name}: {error.details()}"
        else:
            self.refusals[socket] = objection
        return None

    @contextlib.asynccontextmanager
    async def _listed(self, socket: Path, info: registration_pb2.PluginInfo) -> AsyncIterator[Plugin]:
        # For claims the plugin's order counts, for health the kubelet's.
        service = next(one for one in info.supported_versions if one in self._services)
        health = next((one for one in self._health_services if one in info.supported_versions), "")
        plugin = Plugin(socket, info, service, health)
        plugins = self.plugins.setdefault(info.name, [])
        plugins.append(plugin)
        try:
            yield plugin
        finally:
            plugins.remove(plugin)
            if not plugins:
                del self.plugins[info.name]
            await plugin.channel.close()

    def _objection(self, socket: Path, info: registration_pb2.PluginInfo) -> str:
        served = list(info.supported_versions)
        if info.type != "DRAPlugin":
            return f"no handler registered for plugin type: {info.type} at socket {socket}"
        if not set(served) & set(self._services):
            return f"none of services supported by the plugin ({served}) are supported by the kubelet"
        if any(one.endpoint == info.endpoint for one in self.plugins.get(info.name, ())):
            return f"endpoint {info.endpoint} already registered for DRA driver plugin {info.name}"
        return ""

    # --- health

    async def _follow(self, plugin: Plugin) -> None:
        """Take in what a plugin reports of its devices, for as long as it is registered."""
        watch = plugin.channel.unary_stream(
            f"/{plugin.health_service}/NodeWatchResources",
            request_serializer=health_pb2.NodeWatchResourcesRequest.SerializeToString,
            response_deserializer=health_pb2.NodeWatchResourcesResponse.FromString,
        )
        wanted = bool(plugin.health_service)
        while wanted:
            try:
                async for response in watch(health_pb2.NodeWatchResourcesRequest()):
                    plugin.health = {_device_key(one): _reported(one) for one in response.devices}
                    plugin.reports += 1
                    await self._tell()
            except grpc.aio.AioRpcError as error:
                wanted = error.code() is not grpc.StatusCode.UNIMPLEMENTED
            plugin.health = {}
            await self._tell()
            await _pause(AGAIN_SECONDS)
        # There is nothing to hear; it is registered all the same, until it is forgotten.
        await asyncio.Event().wait()

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()


def _channel(path: str) -> grpc.aio.Channel:
    """Return a connection of its own, which comes back soon after a plugin did."""
    options = [
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 1000),
    ]
    return grpc.aio.insecure_channel(f"unix:{path}", options=options)


async def _ask_for_info(socket: Path) -> registration_pb2.PluginInfo:
    async with _channel(str(socket)) as channel:
        call = channel.unary_unary(
            "/pluginregistration.Registration/GetInfo",
            request_serializer=registration_pb2.InfoRequest.SerializeToString,
            response_deserializer=registration_pb2.PluginInfo.FromString,
        )
        return await call(registration_pb2.InfoRequest(), timeout=GET_INFO_SECONDS)


async def _notify(socket: Path, objection: str) -> None:
    async with _channel(str(socket)) as channel:
        call = channel.unary_unary(
            "/pluginregistration.Registration/NotifyRegistrationStatus",
            request_serializer=registration_pb2.RegistrationStatus.SerializeToString,
            response_deserializer=registration_pb2.RegistrationStatusResponse.FromString,
        )
        status = registration_pb2.RegistrationStatus(plugin_registered=not objection, error=objection)
        await call(status, timeout=NOTIFY_SECONDS)


def _sockets(folder: Path) -> dict[Path, int]:
    """Return the sockets of a folder with what tells one from its successor; the kubelet passes over leading dots."""
    found = {}
    for path in sorted(folder.glob("[!.]*")):
        with contextlib.suppress(FileNotFoundError):
            status = path.lstat()
            if stat.S_ISSOCK(status.st_mode):
                found[path] = status.st_ino
    return found


def _claim(claim: Claim) -> dra_pb2.Claim:
    return dra_pb2.Claim(namespace=claim.namespace, name=claim.name, uid=claim.uid)


def _outcome(one: dra_pb2.NodePrepareResourceResponse) -> Outcome:
    devices = (
        Device(
            tuple(each.request_names),
            each.pool_name,
            each.device_name,
            tuple(each.cdi_device_ids),
            each.share_id,
        )
        for each in one.devices
    )
    return Outcome(tuple(devices), one.error)


def _of_all(claims: tuple[Claim, ...], outcomes: Mapping[str, Outcome]) -> dict[str, Outcome]:
    """Return the outcomes, if there is one for each claim and no other."""
    asked = {claim.uid for claim in claims}
    for uid in outcomes:
        if uid not in asked:
            raise KubeletError(f"the driver returned a result for unknown claim UID {uid}")
    if len(outcomes) != len(asked):
        raise KubeletError(f"the driver skipped {len(asked) - len(outcomes)} ResourceClaims")
    return dict(outcomes)


def _device_key(one: health_pb2.DeviceHealth) -> tuple[str, str]:
    return one.device.pool_name, one.device.device_name


def _reported(one: health_pb2.DeviceHealth) -> Reported:
    return Reported(health_pb2.HealthStatus.Name(one.health), one.message)


async def _pause(seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(asyncio.Event().wait(), seconds)


async def _ended(task: asyncio.Task[None]) -> None:
    """Cancel a task and wait until it is gone; what went wrong in it before is raised."""
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
