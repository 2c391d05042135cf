"""The command line that every driver gets: `driver.main(MyDriver())`.

Knows options, signals and exit statuses. Must not know what the driver does.
"""

import asyncio
import gc
import logging
import os
import signal
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final, NoReturn

import click
import msgspec

from jackfield import ports
from jackfield.driver.device import BadDevice
from jackfield.driver.driver import Driver
from jackfield.driver.kit import Kit
from jackfield.driver.sockets import Misplaced, Places
from jackfield.kube import connection
from jackfield.kube.client import KubeCluster
from jackfield.metrics import probes

OK: Final = 0
FAILED: Final = 1
UNUSABLE: Final = 2
"""What was given cannot be used: starting again changes nothing."""
LOG: Final = logging.getLogger(__name__)


class Given(msgspec.Struct, frozen=True):
    """What the command line said."""

    node_name: str
    kubeconfig: Path | None
    context: str | None
    plugins: Path
    registry: Path
    cdi: Path
    pod_uid: str
    metrics_port: int | None
    health_port: int | None
    log_level: str

    @property
    def places(self) -> Places:
        """The folders."""
        return Places(self.plugins, self.registry, self.cdi, self.pod_uid)


_FOLDER: Final = click.Path(path_type=Path, file_okay=False)
_FILE: Final = click.Path(path_type=Path, dir_okay=False)
_PORT: Final = click.IntRange(0, 65535)
OPTIONS: Final = (
    click.Option(
        ["--node-name"],
        envvar="NODE_NAME",
        show_envvar=True,
        required=True,
        help="The node this runs on, as the API names it; in a pod, spec.nodeName.",
    ),
    click.Option(
        ["--kubeconfig"], type=_FILE, help="How to reach the API server; in a pod, its service account."
    ),
    click.Option(["--context"], help="Which context of the kubeconfig."),
    click.Option(
        ["--plugins-dir", "plugins"],
        type=_FOLDER,
        default=Places().plugins,
        show_default=True,
        help="The kubelet's folder for plugins; the driver's own lies in it.",
    ),
    click.Option(
        ["--registry-dir", "registry"],
        type=_FOLDER,
        default=Places().registry,
        show_default=True,
        help="The folder where the kubelet looks for drivers.",
    ),
    click.Option(
        ["--cdi-dir", "cdi"],
        type=_FOLDER,
        default=Places().cdi,
        show_default=True,
        help="The folder where the container runtime looks for CDI files.",
    ),
    click.Option(
        ["--pod-uid"],
        envvar="POD_UID",
        show_envvar=True,
        default="",
        help="The pod's metadata.uid: then an update starts the new pod beside the old one (kubelet 1.33 and newer).",
    ),
    click.Option(["--metrics-port"], type=_PORT, help="Answer /metrics here. Without it nobody is answered."),
    click.Option(
        ["--health-port"],
        type=_PORT,
        help="Answer /healthz and /readyz here; may be the same port. Without it nobody is answered.",
    ),
    click.Option(
        ["--log-level"],
        type=click.Choice(["debug", "info", "warning", "error"]),
        default="info",
        show_default=True,
        help="What is worth a line.",
    ),
)


def main(driver: Driver, arguments: list[str] | None = None) -> NoReturn:
    """Run the driver as its command line says, until a signal; ends the process with its exit status."""
    command(driver).main(arguments, prog_name=Path(sys.argv[0]).name)


def command(driver: Driver) -> click.Command:
    """Return the driver's command, for programs that have others beside it."""

    def callback(**options: object) -> None:
        given = msgspec.convert(options, Given, dec_hook=lambda _, value: value)
        logging.basicConfig(
            level=given.log_level.upper(), stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s"
        )
        sys.exit(run(driver, given))

    return click.Command(
        driver.name or "driver",
        callback=callback,
        params=list(OPTIONS),
        help=f"The DRA driver {driver.name}: publishes this node's devices, and prepares claims for the kubelet.",
    )


def run(driver: Driver, given: Given) -> int:
    """Run it to its end; return the exit status."""
    try:
        reached = connection.load(given.kubeconfig, given.context, os.environ)
        gc.freeze()  # what was imported stays: to look through it for garbage would keep the kubelet waiting
        asyncio.run(_until_told(driver, given, reached))
    except (BadDevice, Misplaced, connection.BadConnection, ports.Refused) as error:
        click.echo(f"{driver.name}: {error}", err=True)
        return UNUSABLE
    except (OSError, ports.PortError) as error:
        click.echo(f"{driver.name}: {error}", err=True)
        return FAILED
    return OK


async def _until_told(driver: Driver, given: Given, reached: connection.Connection) -> None:
    """Serve until a signal, or until something fails."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(KubeCluster(reached, driver.name))
        kit = await stack.enter_async_context(Kit(driver, cluster, given.node_name, given.places))
        answers = probes.Answers(lambda: kit.trouble, kit.figures)
        for port in dict.fromkeys((given.metrics_port, given.health_port)):
            if port is not None:
                where = await stack.enter_async_context(probes.served(port, answers))
                LOG.info("answering /metrics, /healthz and /readyz at port %d", where)
        LOG.info("%s serves node %s", driver.name, given.node_name)
        failing, leaving = loop.create_task(kit.failure()), loop.create_task(ended.wait())
        await asyncio.wait((failing, leaving), return_when=asyncio.FIRST_COMPLETED)
        leaving.cancel()
        if not failing.done():
            failing.cancel()
            LOG.info("told to end; slices and prepared claims stay as they are")
        else:
            failing.result()
