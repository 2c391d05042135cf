"""`jackfield up` refuses what it cannot use, comes up, serves whoever has the token, and leaves nothing behind."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from jackfield.cli.clock import WallClock
from jackfield.cli.main import main
from jackfield.fabric.settings import Secret
from jackfield.kube.client import KubeCluster
from jackfield.kube.connection import load
from jackfield.model.claim import (
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from jackfield.model.fabric import Machine
from jackfield.model.meta import ObjectMeta
from jackfield.model.names import FabricName, Key, ModelName, NodeName, Seconds
from jackfield.model.node import Node
from jackfield.model.pod import Container, Pod, PodResourceClaim, PodSpec
from jackfield.ports import Changed, Synced
from jackfield.sim.chance import Chance, Fixed
from jackfield.sim.face import Face, lines
from jackfield.sim.manager import Manager
from jackfield.sim.spec import Batch, FabricSpec

SECONDS_MAX = 60.0
MODEL = "NVIDIA-A100-PCIE-40GB"
POLICY = {"models": [{"index": 0, "cdi-model-name": MODEL, "k8s-device-name": "a100"}]}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--nodes=0"], "0 is not in the range 1<=x<=10000"),
        (["--port=70000"], "70000 is not in the range 0<=x<=65535"),
        (["--world=nowhere.yaml"], "nowhere.yaml: cannot be read: No such file or directory"),
        (["--for=soon"], "'soon' is not a time such as 45s, 10m or 1h30m"),
        (["--kubeconfig=no/such/folder/config"], "no/such/folder is no folder"),
        (["--policy=p.yaml"], "--policy and --fabrics belong together: say both, or neither"),
        (["--fabrics=f.yaml"], "--policy and --fabrics belong together: say both, or neither"),
        (["--policy=p.yaml", "--fabrics=f.yaml"], "p.yaml: cannot be read: No such file or directory"),
        (["--policy=p", "--fabrics=f", "--nodes=2"], "leave out --world and --nodes"),
        (["--log=loud"], "'loud' is not one of 'text', 'json', 'off'"),
    ],
)
def test_options_that_cannot_be_used_are_named(words: list[str], said: str) -> None:
    done = CliRunner().invoke(main, ["up", *words])
    assert done.exit_code == 2
    assert said in done.output


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("setting: [", "not YAML"),
        ("setting: {nodes: [{count: 3}]}", "nodes[0]: Object missing required field `name`"),
        ("setting: {nodes: [{name: a, fabric: none}]}", "there is no fabric 'none'"),
        ("{}", "missing required field `setting`"),
    ],
)
def test_a_world_that_cannot_be_is_refused_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    world = tmp_path / "world.yaml"
    world.write_text(text)
    done = CliRunner().invoke(main, ["up", f"--world={world}"])
    assert done.exit_code == 2
    assert said in done.output
    assert str(world) in done.output


@pytest.mark.parametrize("command", ["up --world", "sim"])
@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("classes: [{name: gpu, expression: device.foo}]", "undefined field 'foo'"),
        ("classes: [{name: Gp U}]", 'DeviceClass.resource.k8s.io "Gp U" is invalid: metadata.name'),
        ("nodes: [{name: N_1}]", 'Node "N_1" is invalid: metadata.name'),
        ("nodes: [{name: n, cpu: lots}]", "quantities must match"),
        ("nodes: [{name: n, count: -1}]", "Expected `int` >= 0"),
    ],
)
def test_a_world_that_no_server_takes_is_refused_in_its_words(
    tmp_path: Path, command: str, setting: str, said: str
) -> None:
    world = tmp_path / "world.yaml"
    world.write_text(f"setting: {{{setting}}}")
    done = CliRunner().invoke(main, [*command.split(), str(world)])
    assert (done.exit_code, done.exception.__class__) == (2, SystemExit)
    assert said in done.output


def test_a_manager_that_does_not_answer_is_named_with_what_to_see_to(tmp_path: Path) -> None:
    fabrics = [{"name": "rack-b", "type": "native", "url": f"http://127.0.0.1:{free_port()}"}]
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(POLICY))
    (tmp_path / "fabrics.yaml").write_text(yaml.safe_dump({"fabrics": fabrics}))
    files = [f"--{name}={tmp_path / name}.yaml" for name in ("policy", "fabrics")]
    done = CliRunner().invoke(main, ["up", *files])
    assert done.exit_code == 1
    assert "the manager of fabric rack-b cannot be asked: " in done.output
    assert "see that it runs" in done.output


def test_a_world_without_nodes_cannot_have_more_of_them(tmp_path: Path) -> None:
    world = tmp_path / "world.yaml"
    world.write_text("setting: {}")
    done = CliRunner().invoke(main, ["up", f"--world={world}", "--nodes=5"])
    assert (done.exit_code, "no kind of node to have more of" in done.output) == (2, True)


def test_a_port_that_is_taken_is_named() -> None:
    async def scene() -> None:
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, running("--port", str(port)) as process:
            assert process.stderr is not None
            said = (await process.stderr.read()).decode()
            assert await process.wait() == 1
            assert f"127.0.0.1:{port} cannot be used: " in said

    play(scene)


def test_it_ends_by_itself_and_takes_its_kubeconfig_along(tmp_path: Path) -> None:
    async def scene() -> None:
        kubeconfig = tmp_path / "config"
        async with running("--kubeconfig", str(kubeconfig), "--for", "3s", "--log", "off") as process:
            await until(kubeconfig.exists)
            assert kubeconfig.stat().st_mode & 0o777 == 0o600
            async with KubeCluster(load(kubeconfig)) as cluster:
                assert await names(cluster) == ["worker-1", "worker-2", "worker-3"]
            out, said = await process.communicate()
            assert process.returncode == 0
            assert "All of it is in memory" in out.decode()
            assert "ended after 3 s, as asked" in said.decode()
        assert not kubeconfig.exists()

    play(scene)


def test_a_file_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    mine = tmp_path / "config"
    mine.write_text("current-context: production\n")
    done = CliRunner().invoke(main, ["up", f"--kubeconfig={mine}"])
    assert done.exit_code == 2
    assert "exists and is not a kubeconfig of this command" in done.output
    assert mine.read_text() == "current-context: production\n"


def test_the_way_in_to_another_that_runs_is_not_taken_away(tmp_path: Path) -> None:
    async def scene() -> None:
        kubeconfig, beside = tmp_path / "config", tmp_path / "config.new"
        beside.write_text("precious")
        async with running("--kubeconfig", str(kubeconfig), "--log", "off") as first:
            await until(kubeconfig.exists)
            before = kubeconfig.read_bytes()
            async with running("--kubeconfig", str(kubeconfig)) as second:
                _, said = await second.communicate()
                assert (second.returncode, b"a cluster that still runs" in said) == (2, True)
            assert kubeconfig.read_bytes() == before
            first.kill()
            await first.communicate()
        async with running("--kubeconfig", str(kubeconfig), "--for", "1s") as third:
            await third.communicate()
            assert third.returncode == 0
        assert beside.read_text() == "precious"

    play(scene)


def test_it_can_be_ended_while_it_comes_up(tmp_path: Path) -> None:
    async def scene() -> None:
        port, kubeconfig = free_port(), tmp_path / "config"
        words = ("--nodes", "3000", "--port", str(port), "--kubeconfig", str(kubeconfig))
        async with running(*words) as process:
            await until(lambda: listens(port))
            process.send_signal(signal.SIGINT)
            out, said = await process.communicate()
            assert (process.returncode, out, said) == (0, b"", b"gone, and all its objects with it\n")

    play(scene)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    async def scene() -> None:
        kubeconfig = tmp_path / "config"
        async with running("--kubeconfig", str(kubeconfig), "--nodes", "2") as process:
            await until(kubeconfig.exists)
            process.send_signal(number)
            _, said = await process.communicate()
            assert (process.returncode, said.decode()) == (0, "gone, and all its objects with it\n")
        assert not kubeconfig.exists()

    play(scene)


def test_a_real_manager_is_ordered_from_and_its_machines_are_the_nodes(tmp_path: Path) -> None:
    spec = FabricSpec(
        name=FabricName("rack-b"),
        machines=(Machine(NodeName("blade-1"), 2), Machine(NodeName("blade-2"), 2)),
        batches=(Batch(ModelName(MODEL), 3),),
        attach=Fixed(Seconds(0.2)),
    )

    async def scene() -> None:
        manager = Manager(spec, WallClock(), Chance(1))
        token = Secret("a-token-of-this-test")
        async with Face(lines({spec.name: manager}), token) as face:
            fabrics = [{"name": spec.name, "type": "native", "url": face.url, "tokenVariable": "UP_TOKEN"}]
            (tmp_path / "policy.yaml").write_text(yaml.safe_dump(POLICY))
            (tmp_path / "fabrics.yaml").write_text(yaml.safe_dump({"fabrics": fabrics}))
            files = [f"--{name}={tmp_path / name}.yaml" for name in ("policy", "fabrics")]
            environment = {**os.environ, "UP_TOKEN": token.reveal()}
            kubeconfig = tmp_path / "config"
            words = (*files, "--kubeconfig", str(kubeconfig))
            async with running(*words, environment=environment) as process:
                await until(kubeconfig.exists)
                async with KubeCluster(load(kubeconfig)) as cluster:
                    assert await names(cluster) == ["blade-1", "blade-2"]
                    await a_pod_with_a_device(cluster)
                process.send_signal(signal.SIGTERM)
                await process.communicate()
        assert manager.counts.attaches == 1
        manager.stop()

    play(scene)


# --- words of these scenes


def play(scene: Callable[[], Coroutine[None, None, None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(SECONDS_MAX):
            await scene()

    asyncio.run(bounded())


@asynccontextmanager
async def running(
    *words: str, environment: dict[str, str] | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Have it run as a user would, in a process of its own, which is ended in any case."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "jackfield", "up", *words),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def listens(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await WallClock().sleep(Seconds(0.05))


async def names(cluster: KubeCluster) -> list[str]:
    found = []
    async for change in cluster.watch(Node):
        if isinstance(change, Synced):
            break
        assert isinstance(change, Changed)
        found.append(change.object.key.name)
    return sorted(found)


async def a_pod_with_a_device(cluster: KubeCluster) -> None:
    """Create a pod that asks for one, and wait until it runs."""
    asked = DeviceRequest("gpu", exactly=ExactDeviceRequest("gpu"))
    spec = ResourceClaimSpec(devices=DeviceClaim(requests=(asked,)))
    metadata = ObjectMeta(name="one", namespace="default")
    await cluster.create(ResourceClaim(metadata=metadata, spec=spec))
    used = PodResourceClaim("gpu", resource_claim_name="one")
    pod = PodSpec(containers=(Container("main", "none"),), resource_claims=(used,))
    await cluster.create(Pod(metadata=metadata, spec=pod))
    while (await cluster.read(Pod, Key("default", "one"))).status.phase != "Running":
        await WallClock().sleep(Seconds(0.2))
