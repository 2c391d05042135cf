"""`jackfield run`: the controllers against a real API server and real fabric managers.

Knows in which order a process comes up and goes down. Must not know what is decided.
"""

import asyncio
import os
import secrets
import signal
import socket
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Final

import click
import msgspec

from jackfield import fabric
from jackfield.cli import cohdi, policy_file
from jackfield.cli.addresses import Place
from jackfield.cli.clock import SteadyClock, WallClock
from jackfield.cli.log import Log
from jackfield.cli.output import FAILED, OK, UNUSABLE
from jackfield.cli.policy_watch import PolicyWatch
from jackfield.cli.serving import Unheard, answering
from jackfield.controllers import app
from jackfield.controllers.clocks import keep_up
from jackfield.controllers.lead import REPLICAS, Identity, Leases
from jackfield.controllers.runner import Controller, Runner
from jackfield.controllers.store import Store
from jackfield.core import gates, policies
from jackfield.kube import connection
from jackfield.kube.client import KubeCluster
from jackfield.kube.definitions import apply_definitions
from jackfield.kube.gates import supported
from jackfield.metrics.controllers import Counting, Figured
from jackfield.metrics.probes import Answers
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposableResource
from jackfield.model.gates import Gates
from jackfield.model.names import FabricName, Seconds
from jackfield.model.node import HEARTBEATS
from jackfield.model.policy import Policy
from jackfield.model.taint import DeviceTaintRule
from jackfield.ports import Conflict, Fabric, Gone, Refused, Retry, World

PARTS: Final[dict[str, tuple[Controller, ...]]] = {
    "publisher": app.PUBLISHER,
    "scaler": app.SCALER,
    "operator": app.OPERATOR,
    "autoscaler": app.AUTOSCALER,
}
LEASE_SECONDS: Final = Seconds(10.0)
START_SECONDS_MAX: Final = Seconds(120.0)
"""How long an API server may be away while we start."""
GOODBYE_SECONDS_MAX: Final = Seconds(3.0)


class Unusable(Exception):  # noqa: N818 - a finding about what was given
    """What was given cannot be used; the message says why, and what to do."""


class Given(msgspec.Struct, frozen=True):
    """What the command line said."""

    kubeconfig: Path | None
    context: str | None
    policy: Path | None
    """None, as `fabrics`, where CoHDI's settings are to be taken over."""
    fabrics: Path | None
    parts: tuple[str, ...]
    identity: str
    layout: str
    listen: Place | None = None


def given(options: Mapping[str, object]) -> Given:
    """Return the options as they were meant; no part named means all of them."""
    return msgspec.convert(
        {**options, "parts": options["parts"] or tuple(PARTS)}, Given, dec_hook=lambda _, value: value
    )


def run(given: Given) -> int:
    """Run until told to end; return the exit status."""
    try:
        asyncio.run(_Process(given, Log(given.layout)).run())
    except (Unusable, Unheard, fabric.BadFabric, connection.BadConnection) as error:
        click.echo(f"jackfield run: {error}", err=True)
        return UNUSABLE
    except (Refused, BaseExceptionGroup) as error:
        if any(not isinstance(one, Refused) for one in leaves(error)):
            raise
        for refusal in leaves(error):
            click.echo(f"jackfield run: {refusal}", err=True)
        return FAILED
    return OK


def leaves(error: BaseException) -> list[BaseException]:
    """Return the errors of a group of groups."""
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [leaf for one in error.exceptions for leaf in leaves(one)]


def read_policy(path: Path) -> Policy:
    """Read a policy. Raises Unusable naming file, line, column and fault."""
    try:
        return policy_file.read(path)
    except policy_file.BadPolicy as error:
        raise Unusable(str(error)) from error


def read_fabrics(path: Path) -> tuple[fabric.FabricSettings, ...]:
    """Read where the managers are. Raises Unusable or BadFabric."""
    try:
        return fabric.parse(path.read_text(), str(path))
    except OSError as error:
        raise Unusable(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise Unusable(f"{path}: is not text") from error


class _Process:
    """One process, from the first line of its log to the last."""

    def __init__(self, given: Given, log: Log) -> None:
        self._given = given
        self._log = log
        self._clock = SteadyClock()
        self._environment: Mapping[str, str] = os.environ
        if given.policy is not None and given.fabrics is not None:
            self._policy, self._fabrics = read_policy(given.policy), read_fabrics(given.fabrics)
        self._connection = connection.load(given.kubeconfig, given.context, os.environ)
        if given.policy is None or given.fabrics is None:
            taken = cohdi.taken(self._connection, self._clock, self._note)
            self._policy, self._fabrics, self._environment = taken.policy, taken.fabrics, taken.environment
        self._figured = Figured((one.name for one in self._fabrics), self._clock)

    async def run(self) -> None:
        """Come up, run until a signal, go down."""
        ended = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
        async with AsyncExitStack() as stack:
            await self._answer(stack)
            cluster = await stack.enter_async_context(KubeCluster(self._connection, "jackfield"))
            cluster.tell(self._figured.api)
            lines = {one.name: fabric.load(one, self._environment, self._clock) for one in self._fabrics}
            fabrics: dict[FabricName, Fabric] = {
                name: await stack.enter_async_context(line) for name, line in lines.items()
            }
            work = asyncio.get_running_loop().create_task(self._work(cluster, fabrics))
            waiting = asyncio.get_running_loop().create_task(ended.wait())
            await asyncio.wait((work, waiting), return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            if not work.done():
                self._note("told to end")
                work.cancel()
            await asyncio.wait((work,))
            if not work.cancelled():
                work.result()

    async def _answer(self, stack: AsyncExitStack) -> None:
        """Answer whoever looks after us, from before there is anything to tell: why we are not ready is told too."""
        if self._given.listen is not None:
            answers = Answers(self._figured.trouble, self._figured.text)
            where = await stack.enter_async_context(answering(self._given.listen, answers))
            self._note(f"answers /metrics, /healthz and /readyz at {where}")

    async def _work(self, cluster: KubeCluster, managers: dict[FabricName, Fabric]) -> None:
        found = await self._prepared(cluster)
        fabrics = self._figured.counted(managers)
        world = World(cluster, self._clock, fabrics)
        me = self._identity()
        leases = Leases(cluster, self._clock, me, LEASE_SECONDS)
        leases.heard = self._note
        controllers = tuple(one for part in self._given.parts for one in PARTS[part])
        controllers = (*controllers, app.gatekeeper(found))
        store = Store(gates.fitted(self._policy, found))
        counting = self._figured.recorder(store, leases, fabrics)
        runner = Runner(world, store, controllers, counting.beside(self._log), leases)
        self._figured.watch(runner, leases, counting)
        self._log.view = store
        kinds = {
            kind: selection
            for kind, selection in app.KINDS.items()
            if kind is not DeviceTaintRule or found.taint_rules
        }
        self._note(f"replica {me.name} runs {', '.join(self._given.parts)} for {_listed(tuple(fabrics))}")
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(leases.run(lambda: self._took_over(runner, leases, tuple(fabrics))))
                group.create_task(runner.run(kinds))
                group.create_task(keep_up(WallClock(), self._clock), name="clock")
                if self._given.policy is not None:
                    take = partial(self._take_policy, runner, found)
                    told = partial(self._policy_read, counting)
                    watch = PolicyWatch(self._given.policy, self._policy, take, told)
                    group.create_task(watch.run(runner.synced), name="policy")
        finally:  # told to end, or ending by itself: nobody has to wait until the lease has run out
            with suppress(TimeoutError):
                async with asyncio.timeout(GOODBYE_SECONDS_MAX):
                    await leases.release()

    def _identity(self) -> Identity:
        """Who we are; processes that run other parts than ours lead beside us, also under the same name."""
        name, instance = self._given.identity or socket.gethostname(), secrets.token_hex(8)
        if set(self._given.parts) == set(PARTS):
            return Identity(name, instance)
        parts = "-".join(one for one in PARTS if one in self._given.parts)
        return Identity(f"{name}-{parts}", instance, parts)

    def _took_over(self, runner: Runner, leases: Leases, fabrics: tuple[FabricName, ...]) -> None:
        ours = tuple(one for one in fabrics if leases.leads(one))
        self._note(f"leads {_listed(ours)}")
        runner.look_again()

    def _take_policy(self, runner: Runner, found: Gates, policy: Policy) -> tuple[str, ...]:
        """Decide by another policy from now on, or return what keeps us from it."""
        store, fitted = runner.store, gates.fitted(policy, found)
        books = (*store.all(ComposableResource), *store.all(ResourceClaim))
        obstacles = policies.obstacles(store.policy, fitted, books)
        if not obstacles and fitted != store.policy:
            runner.follow(fitted)
        return obstacles

    def _policy_read(self, counting: Counting, ok: bool, words: str) -> None:  # noqa: FBT001 - as Told says
        counting.figures.policy_reloaded(ok, words)
        for line in words.splitlines():
            self._note(line)

    def _note(self, words: str) -> None:
        self._log.note(self._clock.now(), words)

    # --- coming up

    async def _prepared(self, cluster: KubeCluster) -> Gates:
        """Have the cluster as the controllers need it; what is lacking is told, with what to do about it."""
        deadline = self._clock.now() + START_SECONDS_MAX
        while True:
            try:
                return await self._prepare(cluster)
            except Retry as error:
                if self._clock.now() > deadline:
                    raise Refused(f"the API server cannot be used: {error}") from error
                self._note(f"waiting for the API server: {error}")
                await self._clock.sleep(max(Seconds(1.0), error.after))

    async def _prepare(self, cluster: KubeCluster) -> Gates:
        verdicts = await apply_definitions(cluster, self._clock, replace=self._given.policy is None)
        for verdict in verdicts:
            self._note(str(verdict))
        if not all(one.usable for one in verdicts):
            raise Refused("the definitions of our kinds cannot be used; see above")
        for name in (HEARTBEATS, REPLICAS):
            await self._have_namespace(cluster, name)
        found = await supported(cluster)
        findings = gates.findings(found)
        for finding in findings:
            self._note(str(finding))
        if any(one.grave for one in findings):
            raise Refused("no device can be handed over on this cluster as it is; see above")
        return found

    async def _have_namespace(self, cluster: KubeCluster, name: str) -> None:
        try:
            await cluster.raw("GET", f"/api/v1/namespaces/{name}")
        except Gone:
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            try:
                await cluster.raw("POST", "/api/v1/namespaces", body)
            except Conflict:
                return
            except Refused as refused:
                raise Refused(
                    f"namespace {name} is missing and may not be made: {refused}; "
                    f"make it: kubectl create namespace {name}"
                ) from refused


def _listed(fabrics: tuple[FabricName, ...]) -> str:
    return f"fabric {', '.join(fabrics)}" if fabrics else "no fabric"
