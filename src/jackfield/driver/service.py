"""A driver as the kubelet sees it: on one socket it registers, on another it prepares claims and tells of health.

Knows the kubelet's protocol. Must not know what preparing a claim takes: a `Preparer` does.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Final, Self

import grpc
import grpc.aio

from jackfield._proto import registration_pb2
from jackfield.driver import calls, listener, sockets
from jackfield.driver.health import DeviceHealth, Health, HealthSource, legible
from jackfield.driver.preparer import Answer, ClaimRef, PreparedDevice, Preparer
from jackfield.driver.sockets import Misplaced, Places
from jackfield.model.names import NEVER

__all__ = [
    "Answer",
    "ClaimRef",
    "DeviceHealth",
    "Health",
    "HealthSource",
    "Limits",
    "Misplaced",
    "Places",
    "PreparedDevice",
    "Preparer",
    "Registered",
    "Service",
]

LOG: Final = logging.getLogger(__name__)
PLUGIN_TYPE: Final = "DRAPlugin"
PLUGINS: Final = {
    "v1.DRAPlugin": "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin",
    "v1beta1.DRAPlugin": "k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin",
}
"""What we say that we serve, and gRPC's names for it. The kubelet takes the first that it knows."""
HEALTH: Final = {
    "v1.DRAResourceHealth": "v1.DRAResourceHealth",
    "v1alpha1.DRAResourceHealth": "v1alpha1.DRAResourceHealth",
}
"""Answered whether we say so or not: the kubelet of 1.36 asks every driver, and where nobody answers for it, tells so
in its log every five seconds for ever. A driver that knows nothing of health keeps the line and its silence."""

Handlers = tuple[grpc.GenericRpcHandler, ...]


class Limits(calls.Limits, frozen=True):
    """How much is done at a time, and how long anybody waits for it."""

    bounds: listener.Bounds = listener.Bounds()
    stop_seconds: float = 20.0
    """How long the end waits for what is under way; a pod has 30."""


class Registered:
    """Whether the kubelet has taken us; it can be waited for, as an `asyncio.Event` can."""

    def __init__(self, error: str) -> None:
        self.error = error
        """What stands in the way; nothing once we are registered."""
        self._event = asyncio.Event()

    def is_set(self) -> bool:
        """Return whether we are registered."""
        return self._event.is_set()

    async def wait(self) -> None:
        """Wait until we are."""
        await self._event.wait()

    def tell(self, *, registered: bool, error: str) -> None:
        """Take note of what the kubelet says."""
        if registered:
            self.error = ""
            self._event.set()
        else:
            self.error = f"the kubelet refused us: {legible(error) or 'it did not say why'}"
            self._event.clear()


class Service:
    """A driver on a node. While it is entered, the kubelet finds it and is answered."""

    def __init__(
        self,
        driver: str,
        preparer: Preparer,
        places: Places = Places(),
        health: HealthSource | None = None,
        limits: Limits = Limits(),
    ) -> None:
        self.driver = driver
        self._places = places
        self._health = health or HealthSource(again_seconds=NEVER)
        self._served = PLUGINS if health is None else PLUGINS | HEALTH
        self._limits = limits
        self._calls = calls.Calls(preparer, limits)
        self._ending = False
        service, registration = places.service(driver), places.registration(driver)
        self.registered = Registered(
            f"the kubelet has not asked at {registration} who we are: does it run, and look into that folder?"
        )
        self._service = listener.Listener(service, driver, self._service_handlers(), limits.bounds)
        self._registration = listener.Listener(
            registration, driver, self._registration_handlers(), limits.bounds
        )

    async def __aenter__(self) -> Self:
        """Listen on both sockets. Raises Misplaced."""
        for path in sockets.make_room(self.driver, self._places):
            LOG.warning("removed %s, left behind by a process that is gone", path)
        await self._service.open()
        try:
            # The kubelet calls as soon as it sees this one: all must be ready.
            await self._registration.open()
        except BaseException:
            await self._service.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the kubelet forget us first, so that it asks nothing more; then answer what it asked; then end."""
        clock = asyncio.get_running_loop()
        until = clock.time() + self._limits.stop_seconds
        await self._registration.close()
        self._ending = True
        self._health.repeat()
        await self._service.close(self._limits.stop_seconds)
        await self._calls.close(max(0.0, until - clock.time()))

    def trouble(self) -> str:
        """Return what keeps the kubelet from asking us, or nothing: the answer to a readiness probe."""
        gone = [str(one.path) for one in (self._registration, self._service) if one.lost]
        if gone:
            return f"somebody removed or replaced {' and '.join(gone)}: start the driver again"
        return self.registered.error

    def _registration_handlers(self) -> Handlers:
        methods: calls.Methods = {
            "GetInfo": grpc.unary_unary_rpc_method_handler(self._get_info),
            "NotifyRegistrationStatus": grpc.unary_unary_rpc_method_handler(self._notify),
        }
        return (grpc.method_handlers_generic_handler("pluginregistration.Registration", methods),)

    def _service_handlers(self) -> Handlers:
        """Return who answers for what we serve. For anything else gRPC does: UNIMPLEMENTED."""
        watch: calls.Methods = {"NodeWatchResources": grpc.unary_stream_rpc_method_handler(self._watch)}
        claims = self._calls.handlers()
        return tuple(
            grpc.method_handlers_generic_handler(full_name, watch if name in HEALTH else claims)
            for name, full_name in (PLUGINS | HEALTH).items()
        )

    async def _get_info(self, _: bytes, __: calls.Context) -> bytes:
        """Say who we are. The kubelet waits one second for this."""
        return registration_pb2.PluginInfo(
            type=PLUGIN_TYPE,
            name=self.driver,
            endpoint=str(self._service.path),
            supported_versions=self._served,
        ).SerializeToString()

    async def _notify(self, request: bytes, context: calls.Context) -> bytes:
        """Hear whether we are registered. A refusal is kept and told, not returned: the kubelet knows it."""
        status = await calls.read(registration_pb2.RegistrationStatus, request, context)
        self.registered.tell(registered=status.plugin_registered, error=status.error)
        if self.registered.is_set():
            LOG.info("the kubelet has registered %s", self.driver)
        else:
            LOG.error("%s; it will try again", self.registered.error)
        return registration_pb2.RegistrationStatusResponse().SerializeToString()

    async def _watch(self, _: bytes, __: calls.Context) -> AsyncIterator[bytes]:
        """Report health until somebody hangs up, or until the end, which must not wait for this."""
        async with contextlib.aclosing(self._health.reports()) as reports:
            async for report in reports:
                if self._ending:
                    return
                yield report.SerializeToString()
