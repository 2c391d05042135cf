"""`jackfield node`: the plugin on a node, against a real API server, a real kubelet and the machine itself.

Knows options, signals and exit statuses. Must not know what the plugin does.
"""

import asyncio
import gc
import os
import signal
from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Final

import click
import msgspec

from jackfield.cli.clock import WallClock
from jackfield.cli.log import Log
from jackfield.cli.output import FAILED, OK, UNUSABLE
from jackfield.cli.policy_watch import PolicyWatch
from jackfield.cli.run import Unusable, leaves, read_policy
from jackfield.codec.decoding import place
from jackfield.core.share import Sharing
from jackfield.driver.device import BadDevice
from jackfield.driver.sockets import Misplaced, Places
from jackfield.kube import connection
from jackfield.kube.client import KubeCluster
from jackfield.metrics import probes
from jackfield.model.names import NodeName
from jackfield.model.policy import Policy
from jackfield.node.gpus import Nvml, Specs
from jackfield.node.host import Manners
from jackfield.node.nvidia import ControlDaemons
from jackfield.node.plugin import NodePlugin, Nvidia, Settings
from jackfield.node.sysfs import Roots
from jackfield.ports import PortError, Refused

UNUSABLE_ERRORS: Final = (Unusable, Misplaced, BadDevice, Refused, connection.BadConnection)
"""What was given, or found, cannot be used: starting again changes nothing."""


class Given(msgspec.Struct, frozen=True):
    """What the command line said."""

    node_name: str
    policy: Path | None
    kubeconfig: Path | None
    context: str | None
    plugins: Path
    registry: Path
    cdi: Path
    pod_uid: str
    sysfs: Path
    proc: Path
    dev: Path
    pod_logs: Path
    net_devices: bool
    sharing: Path | None
    metrics_port: int | None
    health_port: int | None
    layout: str

    @property
    def settings(self) -> Settings:
        """What the plugin is told. Raises Unusable."""
        return Settings(
            NodeName(self.node_name),
            read_policy(self.policy) if self.policy is not None else Policy(),
            Places(self.plugins, self.registry, self.cdi, self.pod_uid),
            Roots(self.sysfs, self.proc, self.dev),
            Manners(self.pod_logs, interfaces=self.net_devices),
            Nvidia(
                Nvml(self.proc),
                Specs(self.cdi),
                ControlDaemons(),
                read_sharing(self.sharing) if self.sharing is not None else None,
            ),
        )


def given(options: Mapping[str, object]) -> Given:
    """Return the options as they were meant."""
    return msgspec.convert(options, Given, dec_hook=lambda _, value: value)


def read_sharing(path: Path) -> Sharing:
    """Read how GPUs are shared. Raises Unusable naming file, place and fault."""
    try:
        return msgspec.yaml.decode(path.read_bytes(), type=Sharing)
    except OSError as error:
        raise Unusable(f"{path}: cannot be read: {error.strerror}") from error
    except msgspec.ValidationError as error:
        where, what = place(error)
        raise Unusable(f"{path}: {where or 'the whole file'}: {what}") from error
    except msgspec.DecodeError as error:
        raise Unusable(f"{path}: not YAML: {error}") from error


def run(given: Given) -> int:
    """Run until told to end; return the exit status."""
    try:
        reached = connection.load(given.kubeconfig, given.context, os.environ)
        gc.freeze()  # what was imported stays: to look through it for garbage would keep the kubelet waiting
        asyncio.run(_until_told(given, reached))
    except (*UNUSABLE_ERRORS, OSError, PortError, BaseExceptionGroup) as error:
        found = leaves(error)
        if any(not isinstance(one, (*UNUSABLE_ERRORS, OSError, PortError)) for one in found):
            raise
        for one in found:
            click.echo(f"jackfield node: {one}", err=True)
        return UNUSABLE if any(isinstance(one, UNUSABLE_ERRORS) for one in found) else FAILED
    return OK


def _policy_read(log: Log, clock: WallClock, ok: bool, words: str) -> None:  # noqa: FBT001 - as Told says
    del ok
    for line in words.splitlines():
        log.note(clock.now(), line)


async def _until_told(given: Given, reached: connection.Connection) -> None:
    """Serve until a signal, or until something fails."""
    clock, log, loop, ended = WallClock(), Log(given.layout), asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(KubeCluster(reached, "jackfield-node"))
        settings = given.settings
        plugin = NodePlugin(settings, cluster, clock, log)
        log.view = plugin.view
        answers = probes.Answers(plugin.ready, plugin.figures)
        for port in dict.fromkeys((given.metrics_port, given.health_port)):
            if port is not None:
                await stack.enter_async_context(probes.served(port, answers))
        work = loop.create_task(plugin.run(lambda words: log.note(clock.now(), words)))
        if given.policy is not None:
            told = partial(_policy_read, log, clock)
            watch = PolicyWatch(given.policy, settings.policy, plugin.follow, told)
            watching = loop.create_task(watch.run(plugin.synced))
            stack.callback(watching.cancel)
        waiting = loop.create_task(ended.wait())
        await asyncio.wait((work, waiting), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if not work.done():
            log.note(clock.now(), "told to end; what is prepared stays prepared")
            work.cancel()
        await asyncio.wait((work,))
        if not work.cancelled():
            work.result()
