"""`jackfield up`: a whole cluster in this process, spoken to by kubectl, until somebody ends it.

Knows in which order it comes up and goes down, and what to print. Must not know how any part of it works.
"""

import asyncio
import os
import random
import secrets
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from importlib import resources
from pathlib import Path
from typing import Final

import click
import msgspec

from jackfield import fabric
from jackfield.cli import kubeconfigs, output
from jackfield.cli import run as configuration
from jackfield.cli.clock import WallClock
from jackfield.cli.log import LAYOUTS, Kept, Log
from jackfield.cluster import bootstrap
from jackfield.cluster.face import certificates
from jackfield.cluster.face.api import Api
from jackfield.cluster.face.server import LOOPBACK, ApiServer, Gate
from jackfield.cluster.store import Store
from jackfield.model.names import NEVER, FabricName, Seconds
from jackfield.model.node import Node
from jackfield.model.policy import DRIVER
from jackfield.ports import Clock, Fabric, PortError, Refused
from jackfield.sim import scenario as scenarios
from jackfield.sim.chance import Chance
from jackfield.sim.setting import Class, Nodes, Setting
from jackfield.sim.world import Outside, SimWorld

ANY_OF_OURS: Final = f'device.driver == "{DRIVER}"'
CONTEXT: Final = "jackfield-up"
KUBERNETES: Final = "v1.36.4"
"""The Kubernetes whose API this speaks."""
LOOK_SECONDS: Final = Seconds(0.1)
CALM_LOOKS: Final = 3
"""How many times in a row nothing may have held us up before the cluster is said to be up."""
READY_SECONDS_MAX: Final = Seconds(120.0)
"""How long nodes may take before the cluster is said to be up all the same."""
EVENTS_MAX: Final = 20_000
"""Events remembered of each kind, for watches that come back."""


class Wanted(msgspec.Struct, frozen=True):
    """What was typed."""

    nodes: int | None
    world: Path | None
    port: int
    kubeconfig: Path | None
    seconds: int | None
    log: str
    policy: Path | None
    fabrics: Path | None


def wanted(options: Mapping[str, object]) -> Wanted:
    """Return the options as they were meant."""
    return msgspec.convert(options, Wanted, dec_hook=lambda _, value: value)


def run(wanted: Wanted) -> int:
    """Run it to its end; return the exit status."""
    if wanted.kubeconfig and (reason := kubeconfigs.not_ours(wanted.kubeconfig, CONTEXT)):
        click.echo(f"jackfield up: {reason}", err=True)
        return output.UNUSABLE
    try:
        setting, managers = _setting(wanted), _managers(wanted)
        with _paper(wanted.log) as paper:
            asyncio.run(_run(_Cluster(wanted, setting, managers, paper)))
    except (scenarios.BadScenarioError, configuration.Unusable, fabric.BadFabric) as error:
        return _told(output.UNUSABLE, error)
    except (_UnusableError, OSError) as error:
        return _told(output.FAILED, error)
    except BaseExceptionGroup as group:
        leaves = configuration.leaves(group)
        if all(isinstance(one, Refused) for one in leaves):
            return _told(output.UNUSABLE, *leaves)
        if all(isinstance(one, OSError) for one in leaves):
            return _told(output.FAILED, *leaves)
        raise
    return output.OK


def _told(code: int, *errors: BaseException) -> int:
    for error in errors:
        click.echo(f"jackfield up: {error}", err=True)
    return code


class _UnusableError(Exception):
    """What is around us cannot be used; the message says what, and what to do."""


def _setting(wanted: Wanted) -> Setting:
    """Return the world as it is wanted: from a file or the small one of our own, with so many nodes."""
    if wanted.policy is not None:
        return Setting(classes=(Class("gpu", ANY_OF_OURS),), policy=configuration.read_policy(wanted.policy))
    if wanted.world is not None:
        setting = scenarios.read(wanted.world).setting
    else:
        text = resources.files("jackfield.sim").joinpath("world.yaml").read_text()
        setting = scenarios.parse(text, "world.yaml").setting
    if wanted.nodes is None:
        return setting
    if not setting.nodes:
        raise scenarios.BadScenarioError("--nodes: the world has no kind of node to have more of")
    first, *others = setting.nodes
    return msgspec.structs.replace(
        setting, nodes=(msgspec.structs.replace(first, count=wanted.nodes), *others)
    )


def _managers(wanted: Wanted) -> tuple[fabric.FabricSettings, ...]:
    return configuration.read_fabrics(wanted.fabrics) if wanted.fabrics is not None else ()


@contextmanager
def _paper(layout: str) -> Iterator[Kept]:
    """What the controllers' steps are written on; they are shown after the greeting."""
    if layout in LAYOUTS:
        yield Kept(sys.stdout)
        return
    with Path(os.devnull).open("w") as nobody:
        yield Kept(nobody)


class _Cluster(msgspec.Struct, frozen=True):
    """What is to be brought up, and who hears of it."""

    wanted: Wanted
    setting: Setting
    managers: tuple[fabric.FabricSettings, ...]
    paper: Kept


async def _run(cluster: _Cluster) -> None:
    """Bring it up and keep it so until somebody ends it, at whatever point that is."""
    loop = asyncio.get_running_loop()
    ended = endings()
    life, leaving = loop.create_task(_live(cluster)), loop.create_task(ended.wait())
    await asyncio.wait((life, leaving), return_when=asyncio.FIRST_COMPLETED)
    leaving.cancel()
    if not life.done():
        life.cancel()
        await asyncio.wait((life,))
    if not life.cancelled():
        life.result()
    click.echo("gone, and all its objects with it", err=True)


async def _live(cluster: _Cluster) -> None:
    clock, wanted = WallClock(), cluster.wanted
    store = new_store(clock)
    async with AsyncExitStack() as stack:
        fabrics = {
            one.name: await stack.enter_async_context(fabric.load(one, os.environ, clock))
            for one in cluster.managers
        }
        setting = await _with_machines(cluster.setting, fabrics)
        server = await _served(stack, serving(store, clock, wanted.port))
        outside = Outside(store, server.gate.certificates.authority.decode(), fabrics)
        chance = Chance(secrets.randbits(32))
        log = Log(wanted.log if wanted.log in LAYOUTS else "text", cluster.paper)
        await stack.enter_async_context(SimWorld(setting, clock, chance, log, outside))
        await _settled(store, clock)
        path = stack.enter_context(kubeconfigs.appearing(wanted.kubeconfig, way_in(server)))
        click.echo(_greeting(setting, tuple(fabrics), path, wanted.seconds))
        cluster.paper.hand_out()
        await clock.sleep(Seconds(wanted.seconds or NEVER))
        click.echo(f"ended after {wanted.seconds} s, as asked", err=True)


async def _served(stack: AsyncExitStack, server: ApiServer) -> ApiServer:
    try:
        return await stack.enter_async_context(server)
    except OSError as error:
        raise _UnusableError(f"{LOOPBACK}:{server.gate.port} cannot be used: {error.strerror}") from error


async def _settled(store: Store, clock: Clock) -> None:
    """Wait until nodes are ready and a call would be answered at once: thousands of them take some seconds."""
    until = clock.now() + READY_SECONDS_MAX
    calm = 0
    while calm < CALM_LOOKS and (began := clock.now()) < until:
        await clock.sleep(LOOK_SECONDS)
        prompt = clock.now() - began < 2 * LOOK_SECONDS
        calm = calm + 1 if prompt and _nodes_are_ready(store) else 0


def _nodes_are_ready(store: Store) -> bool:
    nodes = [one.object for one in store.list(Node).items]
    return all(isinstance(one, Node) and one.ready for one in nodes)


async def _with_machines(setting: Setting, fabrics: Mapping[FabricName, Fabric]) -> Setting:
    """Return the setting with a node for every machine of these fabrics."""
    nodes: list[Nodes] = []
    for name, one in fabrics.items():
        try:
            machines = (await one.inventory()).machines
        except PortError as error:
            words = "see that it runs, and that the fabrics file has its address and credentials"
            raise _UnusableError(f"the manager of fabric {name} cannot be asked: {error}; {words}") from error
        nodes += [Nodes(machine.node, fabric=name, slots=machine.slots) for machine in machines]
    return msgspec.structs.replace(setting, nodes=(*setting.nodes, *nodes))


def endings() -> asyncio.Event:
    """Return what is set when somebody wants us to end."""
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    return ended


def new_store(clock: Clock) -> Store:
    """Return a store that serves as an API, whose names and uids nobody can foresee."""
    store = Store(clock.now, random.SystemRandom(), events_max=EVENTS_MAX, served=True, books=True)
    bootstrap.furnish(store, clock.now())
    return store


def serving(store: Store, clock: Clock, port: int = 0) -> ApiServer:
    """Return an API server over the store, with a certificate and a token that nobody had before."""
    gate = Gate(certificates.made(clock.now(), LOOPBACK), secrets.token_urlsafe(24), port)
    return ApiServer(store, Api(store, clock.now, KUBERNETES, _wrong), clock, gate)


def way_in(server: ApiServer) -> bytes:
    """Return the kubeconfig for a server that is up."""
    gate = server.gate
    return kubeconfigs.text(CONTEXT, server.url, gate.certificates.authority, gate.token).encode()


def _wrong(what: str) -> None:
    click.echo(f"a mistake of ours, which is worth a report: {what}", err=True)


def _greeting(
    setting: Setting, managed: tuple[FabricName, ...], kubeconfig: Path, seconds: int | None
) -> str:
    nodes = sum(one.count for one in setting.nodes)
    pools = [
        f"{sum(batch.count for batch in one.batches)} devices in the pool of {one.name}"
        for one in setting.fabrics
    ]
    pools += [f"the devices of fabric {one}" for one in managed]
    classes = ", ".join(one.name for one in setting.classes) or "none"
    end = f"by itself after {seconds} s, or with Ctrl-C" if seconds else "with Ctrl-C"
    return (
        f"A cluster is up: {nodes} nodes, {', '.join(pools) or 'no fabric'}; device classes: {classes}.\n"
        "In another terminal:\n\n"
        f"  export KUBECONFIG={kubeconfig.absolute()}\n"
        "  kubectl get nodes,deviceclasses\n\n"
        f"All of it is in memory: it ends {end}, and nothing of it is left then.\n"
    )
