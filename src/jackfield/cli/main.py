"""The command `jackfield`: what can be typed, and what each word means.

Knows commands and options. Must not know how anything is done: every command imports what it needs when it runs,
so that help comes up at once.
"""

from pathlib import Path
from typing import TextIO, TypedDict, Unpack

import click

from jackfield import __version__
from jackfield.cli.addresses import LISTEN
from jackfield.cli.dev import dev, duration
from jackfield.cli.dra import dra
from jackfield.cli.fabric import fabric
from jackfield.cli.looks import check, gather, status
from jackfield.cli.policy import policy
from jackfield.cli.torture import torture

SEED = click.option(
    "--seed",
    default=1,
    show_default=True,
    metavar="N",
    help="Draw all chance from this number; the same number, the same story.",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line instead of text.")


class Looks(TypedDict):
    """How the demo is shown."""

    speed: float
    as_json: bool
    plain: bool


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="jackfield %(version)s")
def main() -> None:
    """Patch accelerators out of a PCIe/CXL fabric's pool to running Kubernetes nodes.

    When a pod asks for a device that no node has, Jackfield attaches one from the pool, lets the scheduler bind the
    pod, and returns the device when nobody needs it. Begin with "jackfield demo": it needs no cluster and no GPU.
    """


main.add_command(dev)
main.add_command(dra)
main.add_command(fabric)
main.add_command(torture)
main.add_command(policy)
main.add_command(status)
main.add_command(check)
main.add_command(gather)


@main.command(short_help="Watch a pod get a GPU that no node had.")
@SEED
@JSON
@click.option(
    "--speed",
    default=8.0,
    show_default=True,
    metavar="X",
    help="In a terminal: seconds of the play per second of yours.",
)
@click.option("--plain", is_flag=True, help="Print plain lines at once, also in a terminal.")
@click.option("--live", is_flag=True, help="Play it in your own time, five minutes, with kubectl beside it.")
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="With --live: write the way in to FILE; it is removed in the end.",
)
def demo(seed: int, kubeconfig: Path | None, *, live: bool, **looks: Unpack[Looks]) -> None:
    """Watch a pod get a GPU that no node had, and a pod get a node that did not exist.

    Two workers have one GPU each, both in use; four more GPUs are in the fabric's pool. podA asks for a GPU, and one
    is attached to a running worker. podB asks for more memory than any node has, and a node is added. Then both end,
    and the GPU goes back to the pool. All of it runs on a simulated cluster inside this command.

    Exit status 0 means that all of it came true.
    """
    if live and (looks["as_json"] or looks["plain"]):
        raise click.UsageError("--live prints plain lines as they happen; leave out --json and --plain")
    if kubeconfig is not None and not live:
        raise click.UsageError("--kubeconfig needs --live: otherwise there is nothing to speak to")
    from jackfield.cli import demo as command

    if live:
        raise SystemExit(command.run_live(seed, kubeconfig))
    raise SystemExit(command.run(seed, **looks))


@main.command()
@click.argument("scenario", type=click.Path(path_type=Path), metavar="SCENARIO.yaml")
@SEED
@JSON
@click.option(
    "--all", "everything", is_flag=True, help="Also print steps that only keep books, and conflicts."
)
def sim(scenario: Path, seed: int, *, as_json: bool, everything: bool) -> None:
    """Play a scenario on a simulated cluster and print its story.

    A scenario is a stage (nodes, fabrics, policy), what happens on it, and what must be true in the end; see
    docs/simulation.md and the folder examples. Time is simulated: an hour of a small cluster takes seconds.

    Exit status 0 means that what it expects came true and nothing happened that must never happen, 1 that it did
    not, 2 that the scenario cannot be played.
    """
    from jackfield.cli import sim as command

    raise SystemExit(command.run(scenario, seed, as_json=as_json, everything=everything))


@main.command(short_help="Run a whole cluster in this process, for kubectl.")
@click.option(
    "--nodes",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="Have so many workers; as many as the world says by default, which is 3.",
)
@click.option(
    "--world",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Take nodes, fabrics, classes and policy from this scenario; its play is not played.",
)
@click.option(
    "--policy",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="With --fabrics: what may be attached, for how long and where: docs/policy.md.",
)
@click.option(
    "--fabrics",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Instead of a simulated fabric: where real managers are, as for jackfield run. Every machine becomes a node.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="P",
    help="Listen on this port of 127.0.0.1; one that is free by default.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the way in to FILE, as soon as the API answers; it is removed in the end.",
)
@click.option(
    "--for", "seconds", callback=duration, metavar="TIME", help="End by itself after 45s, 10m, 1h30m."
)
@click.option(
    "--log",
    type=click.Choice(["text", "json", "off"]),
    default="text",
    show_default=True,
    help="How to print what the controllers do; off prints nothing.",
)
def up(**options: object) -> None:
    """Run a whole cluster in this process, until Ctrl-C, and speak to it with kubectl.

    It has the part of the Kubernetes API that DRA needs, over HTTPS on 127.0.0.1, with a scheduler, kubelets, a
    simulated fabric and the controllers; no container runs, so that pods have no logs. Without --world it has three
    workers without a GPU, and GPUs and memory in a pool: create a pod that asks for one, and watch it come.
    examples/quickstart shows how. It needs no privileges, no network and no other program.

    All of its state is in memory: when it ends, by Ctrl-C, SIGTERM or --for, nothing is left.

    Exit status 0 means that it ended as it was told to, 1 that it could not start, 2 that an option or a file cannot
    be used.
    """
    if (options["policy"] is None) != (options["fabrics"] is None):
        raise click.UsageError("--policy and --fabrics belong together: say both, or neither")
    if options["fabrics"] is not None and (options["world"] is not None or options["nodes"] is not None):
        raise click.UsageError("--fabrics says which machines there are: leave out --world and --nodes")
    from jackfield.cli import up as command

    raise SystemExit(command.run(command.wanted(options)))


@main.command(short_help="Run the controllers against a cluster.")
@click.option(
    "--policy",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="What may be attached, for how long and where: docs/policy.md. Without it CoHDI's settings are taken over.",
)
@click.option(
    "--fabrics",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where the fabric managers are and how they are spoken to: docs/running.md.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="How the API server is reached; without it as kubectl would, or as the pod we are in.",
)
@click.option("--context", metavar="NAME", help="Take this context of the kubeconfig.")
@click.option(
    "--only",
    "parts",
    type=click.Choice(["publisher", "scaler", "operator", "autoscaler"]),
    multiple=True,
    help="Run only this part; may be said more than once. All of them run by default.",
)
@click.option(
    "--identity",
    default="",
    metavar="NAME",
    help="This replica's name, the same after a restart; the host's name by default.",
)
@click.option(
    "--log",
    "layout",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How lines are laid out.",
)
@LISTEN
def run(**options: object) -> None:
    """Run the controllers against a cluster, until SIGTERM or Ctrl-C.

    They apply the definitions of our two kinds, say which feature gates are off and what that means, and then watch:
    nothing is polled but the fabric managers. Any number of replicas may run; the fabrics are divided among them, and
    one that dies is replaced within seconds. A line of the log says what was done, to what, and why.

    Without --policy and --fabrics they go by what CoHDI left in the cluster: docs/migration.md.

    Exit status 0 means that it was told to end, 1 that the cluster cannot be used, 2 that a file cannot.
    """
    if (options["policy"] is None) != (options["fabrics"] is None):
        raise click.UsageError("--policy and --fabrics belong together: say both, or neither")
    from jackfield.cli import run as command

    raise SystemExit(command.run(command.given(options)))


@main.command(short_help="Run the plugin of a node: devices come, are prepared, and go.")
@click.option(
    "--node-name",
    envvar="NODE_NAME",
    required=True,
    metavar="NAME",
    help="The node this runs on, as the API names it; in a pod, spec.nodeName. [env: NODE_NAME]",
)
@click.option(
    "--policy",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="What the operator chose, as for jackfield run; the defaults without it.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="How the API server is reached; without it as kubectl would, or as the pod we are in.",
)
@click.option("--context", metavar="NAME", help="Take this context of the kubeconfig.")
@click.option(
    "--plugins-dir",
    "plugins",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("/var/lib/kubelet/plugins"),
    show_default=True,
    metavar="DIR",
    help="The kubelet's folder for plugins; ours lies in it.",
)
@click.option(
    "--registry-dir",
    "registry",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("/var/lib/kubelet/plugins_registry"),
    show_default=True,
    metavar="DIR",
    help="The folder where the kubelet looks for plugins.",
)
@click.option(
    "--cdi-dir",
    "cdi",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("/var/run/cdi"),
    show_default=True,
    metavar="DIR",
    help="The folder where the container runtime looks for CDI files.",
)
@click.option(
    "--pod-uid",
    envvar="POD_UID",
    default="",
    metavar="UID",
    help="The pod's metadata.uid: then an update starts the new pod beside the old one. [env: POD_UID]",
)
@click.option(
    "--sysfs-root",
    "sysfs",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("/sys"),
    show_default=True,
    metavar="DIR",
    help="Where the host's sysfs is: devices are found, and removed, there.",
)
@click.option(
    "--proc-root",
    "proc",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("/proc"),
    show_default=True,
    metavar="DIR",
    help="Where the host's proc is: who has a device open is found there.",
)
@click.option(
    "--dev-root",
    "dev",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("/dev"),
    show_default=True,
    metavar="DIR",
    help="Where the host's device files are, on the host and here alike.",
)
@click.option(
    "--pod-logs",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("/var/log/pods"),
    show_default=True,
    metavar="DIR",
    help="Where the kubelet keeps logs, in folders that say whose pod a process belongs to.",
)
@click.option(
    "--net-devices/--no-net-devices",
    default=False,
    help="Move network interfaces into containers with their device; the runtime must know CDI 1.1. Off by default.",
)
@click.option(
    "--sharing",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="How the node's own NVIDIA GPUs are shared; without it each serves one claim at a time.",
)
@click.option("--metrics-port", type=click.IntRange(0, 65535), metavar="PORT", help="Answer /metrics here.")
@click.option(
    "--health-port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Answer /healthz and /readyz here; may be the same port.",
)
@click.option(
    "--log",
    "layout",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How lines are laid out.",
)
def node(**options: object) -> None:
    """Run the plugin of one node, until SIGTERM or Ctrl-C.

    It sees devices come and go, says so on this node's ComposableResources, prepares claims for the kubelet, and lets a
    device go when nobody holds it any more. A Lease says that it lives; without it the node is offered nothing. What it
    needs on the node, and why, stands in docs/node.md.

    Exit status 0 means that it was told to end, 1 that something failed that may work the next time, 2 that what was
    given, or found on the node, cannot be used.
    """
    from jackfield.cli import node as command

    raise SystemExit(command.run(command.given(options)))


@main.command()
@click.argument("name", metavar="OBJECT")
@click.option(
    "--scenario",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Play this scenario; the demo's is the default.",
)
@click.option(
    "--from",
    "source",
    type=click.File("r"),
    metavar="FILE",
    help='Read the lines that "sim --json" printed; - is standard input.',
)
@SEED
@JSON
def story(name: str, scenario: Path | None, source: TextIO | None, seed: int, *, as_json: bool) -> None:
    """Print one object's life, a line for each step.

    OBJECT is claim/NAMESPACE/NAME, pod/NAMESPACE/NAME, node/NAME, device/DRIVER/POOL/DEVICE, resource/NAME or
    request/NAME. The beginning of a name will do if only one object begins like that. Each line says when, to what,
    in which phase of a claim's life, what was done, which function decided it, and why.
    """
    from jackfield.cli import story as command

    raise SystemExit(command.run(name, scenario, source, seed, as_json=as_json))


@main.group()
def migrate() -> None:
    """Come over from another program that attaches devices, step by step, each of which can be undone."""


@migrate.command(name="cohdi", short_help="Check a cluster with CoHDI, and take the next step.")
@click.option("--apply", is_flag=True, help="Take the next step, if it is one of protect and stop.")
@click.option("--undo", is_flag=True, help="Undo the last step that was taken.")
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="How the API server is reached; without it as kubectl would, or as the pod we are in.",
)
@click.option("--context", metavar="NAME", help="Take this context of the kubeconfig.")
@JSON
def migrate_cohdi(**options: object) -> None:
    """Check a cluster with CoHDI, say where the migration stands and what comes next.

    Without --apply and --undo nothing is written. The steps: protect what Jackfield needs from "helm uninstall"; stop
    CoHDI; start Jackfield, which takes over what is attached and detaches nothing; uninstall CoHDI; let devices that
    CoHDI asked for go when their pods end. It is an administrator's command: docs/migration.md.

    Exit status 0 means that nothing is in the way of the next step, 1 that something is or that the cluster did not
    let us, 2 that an option or what Helm wrote cannot be used.
    """
    if options["apply"] and options["undo"]:
        raise click.UsageError("--apply and --undo contradict each other")
    from jackfield.cli import migrate as command

    raise SystemExit(command.run(command.given(options)))


@main.command(short_help="Print the two custom resource definitions.")
def crds() -> None:
    """Print the definitions of ComposabilityRequest and ComposableResource, as YAML.

    An administrator applies them with "jackfield crds | kubectl apply -f -". They take all that CoHDI's own definitions
    take, so CoHDI's components go on working with them. docs/crds.md describes them.
    """
    from jackfield.cli import manifests as command

    command.crds()


@main.command(short_help="Print a service account with exactly the rights that it needs.")
@click.option(
    "--part",
    type=click.Choice(["controllers", "publisher", "scaler", "operator", "autoscaler", "node"]),
    required=True,
    help="The process: all controllers, those of one part (run --only), or the plugin that runs on every node.",
)
@click.option(
    "--namespace",
    default="jackfield",
    show_default=True,
    metavar="NAME",
    help="The namespace of the service account.",
)
@click.option(
    "--service-account",
    "name",
    default="",
    metavar="NAME",
    help="The service account; jackfield- and the part's name is the default.",
)
@click.option(
    "--driver",
    "drivers",
    multiple=True,
    default=("fabric.jackfield.dev",),
    show_default=True,
    metavar="NAME",
    help="A DRA driver whose devices are in the policy; give it once for each.",
)
@click.option(
    "--cohdi",
    is_flag=True,
    help="Also let the controllers read CoHDI's settings, for run without --policy and --fabrics.",
)
def rbac(part: str, namespace: str, name: str, drivers: tuple[str, ...], *, cohdi: bool) -> None:
    """Print a service account, its roles and their bindings, as YAML.

    The roles hold what the process does and nothing else; an admission policy besides keeps the plugin of a node to the
    objects of its own node. Leases of the nodes' plugins are in the namespace jackfield-node, those of the controllers'
    replicas in jackfield-controllers; both have to exist. docs/permissions.md says what each right is for.
    """
    from jackfield.cli import manifests as command

    command.rbac(part, namespace, name, drivers, cohdi=cohdi)
