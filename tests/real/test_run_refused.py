"""`jackfield run` on a real API server that does not want it: says why in a line, ends, and has written nothing."""

import asyncio
import signal
import sys
from pathlib import Path

import yaml

from jackfield.cli.output import FAILED, OK, UNUSABLE
from jackfield.codec import Raw
from jackfield.testing.control_plane import ControlPlane
from jackfield.testing.control_plane.loopback import free_ports
from real.site import Site, setting


def changed(plane: ControlPlane, folder: Path, **user_or_server: str) -> Path:
    """The administrator's kubeconfig with another token or server."""
    config: Raw = yaml.safe_load(plane.kubeconfig.read_text())
    if "token" in user_or_server:
        for one in config["users"]:
            one["user"] = {"token": user_or_server["token"]}
    if "server" in user_or_server:
        for one in config["clusters"]:
            one["cluster"]["server"] = user_or_server["server"]
    path = folder / "changed.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


async def started(folder: Path, kubeconfig: Path, *words: str) -> asyncio.subprocess.Process:
    (folder / "policy.yaml").write_text("models: []\n")
    (folder / "fabrics.yaml").write_text("fabrics: []\n")
    files = ("--policy", str(folder / "policy.yaml"), "--fabrics", str(folder / "fabrics.yaml"))
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "jackfield", "run", *files, "--kubeconfig", str(kubeconfig), *words),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


def ended(folder: Path, kubeconfig: Path, *words: str) -> tuple[int, str, str]:
    """Run until it ends by itself; return its status, its log and what it complained of."""

    async def main() -> tuple[int, str, str]:
        process = await started(folder, kubeconfig, *words)
        out, err = await asyncio.wait_for(process.communicate(), 60)
        return process.returncode or 0, out.decode(), err.decode()

    return asyncio.run(main())


def nothing_written(plane: ControlPlane) -> bool:
    kinds = plane.kubectl("get", "customresourcedefinitions,resourceslices,leases,namespaces", "-A", "-oname")
    return "jackfield" not in kinds and "composab" not in kinds


def test_a_token_that_is_wrong_ends_the_run(fresh: ControlPlane, tmp_path: Path) -> None:
    nobody = changed(fresh, tmp_path, token="nobodys")  # noqa: S106 - no token of this cluster
    status, log, complaint = ended(tmp_path, nobody)
    assert status == FAILED
    assert "Unauthorized" in log + complaint
    assert complaint.startswith("jackfield run: ")
    assert len(complaint.splitlines()) == 1
    assert nothing_written(fresh)


def test_who_may_do_nothing_is_told_what_to_ask_for(fresh: ControlPlane, tmp_path: Path) -> None:
    status, log, complaint = ended(tmp_path, fresh.kubeconfig_for("alice"))
    assert status == FAILED
    assert "composableresources.cro.hpsys.ibm.ie.com is needed, and we may not write it" in log
    assert complaint.startswith("jackfield run: the definitions of our kinds cannot be used")
    assert nothing_written(fresh)


def test_a_context_that_does_not_exist_is_named(fresh: ControlPlane, tmp_path: Path) -> None:
    status, log, complaint = ended(tmp_path, fresh.kubeconfig, "--context", "elsewhere")
    assert (status, log) == (UNUSABLE, "")
    assert "elsewhere" in complaint
    assert len(complaint.splitlines()) == 1
    assert nothing_written(fresh)


def test_a_server_that_is_not_there_is_waited_for_and_named_until_told_to_end(
    fresh: ControlPlane, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    nowhere = changed(fresh, tmp_path, server=f"https://127.0.0.1:{port}")

    async def main() -> tuple[int, str, str]:
        process = await started(tmp_path, nowhere)
        assert process.stdout is not None
        first = await asyncio.wait_for(process.stdout.readline(), 60)
        process.send_signal(signal.SIGTERM)
        _, err = await asyncio.wait_for(process.communicate(), 20)
        return process.returncode or 0, first.decode(), err.decode()

    status, first, complaint = asyncio.run(main())
    assert (status, complaint) == (OK, "")
    assert "waiting for the API server" in first
    assert str(port) in first


def test_of_two_replicas_with_one_name_one_ends_and_the_other_works(
    fresh: ControlPlane, tmp_path: Path
) -> None:
    async def scene() -> None:
        async with Site(fresh, setting(nodes=2, devices=2), tmp_path) as site:
            await site.template()
            await site.pod("p", template="gpu")
            await site.until(lambda: site.phases("Running", 1))
            await site.replica(identity="replica-1").start()
            await site.until(lambda: any(one.status is not None for one in site.replicas))
            (ended_one,) = [one for one in site.replicas if one.status is not None]
            assert ended_one.status == FAILED
            assert "another process runs as replica 'replica-1'" in ended_one.errors
            await site.pod("q", template="gpu")
            await site.until(lambda: site.phases("Running", 2))
            assert site.attaches == 2

    asyncio.run(scene())
