"""A release is installed, upgraded, uninstalled and installed again while pods hold devices: none of them notices."""

import asyncio
import shutil
from pathlib import Path

import msgspec
import yaml

from jackfield.codec import Raw
from jackfield.codec.definitions import definitions
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposableResource, ResourceState
from jackfield.model.names import Seconds
from jackfield.model.pod import Pod
from jackfield.model.policy import Policy
from jackfield.testing.control_plane import ControlPlane
from real.chart_site import ChartSite
from real.helm import CHART, RELEASE, helm
from real.site import Line, Replica, setting

PREVIOUS = "0.0.9"
POLICY = Policy(hold_seconds=Seconds(1.0), inventory_seconds=Seconds(2.0))
BY_LIMIT: Raw = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "by-limit", "namespace": "default"},
    "spec": {
        "containers": [{"name": "main", "image": "none", "resources": {"limits": {"jackfield.dev/gpu": "1"}}}]
    },
}


def previous(folder: Path) -> Path:
    """A chart as it might have been one release ago: there is none yet, so it is this one under an older version."""
    copy = shutil.copytree(CHART, folder / "previous" / "jackfield")
    about = yaml.safe_load((copy / "Chart.yaml").read_text())
    (copy / "Chart.yaml").write_text(yaml.safe_dump({**about, "version": PREVIOUS, "appVersion": PREVIOUS}))
    said = helm("package", str(copy), f"--destination={folder}")
    return Path(said.strip().rpartition(" ")[2])


async def runs(site: ChartSite, *names: str) -> None:
    """Wait until these pods run."""

    async def running() -> bool:
        there = await site.pods()
        return all(name in there and there[name].status.phase == "Running" for name in names)

    await site.until(running, 90)


async def books(site: ChartSite) -> list[tuple[str, str, ResourceState, str]]:
    """What is written of each device: object, uid, state, claim."""
    found = await site.resources()
    assert all(isinstance(one, ComposableResource) for one in found)
    return sorted((one.metadata.name, one.metadata.uid, one.state, str(one.record)) for one in found)


async def allocations(site: ChartSite) -> list[str]:
    claims = [one for one in await site.all(ResourceClaim) if isinstance(one, ResourceClaim)]
    return sorted(f"{one.metadata.name} {[str(result.id) for result in one.results]}" for one in claims)


def forbidden(*replicas: Replica) -> list[Line]:
    """What they were not allowed to do."""
    return [line for one in replicas for line in one.lines if "forbidden" in line.error + line.because]


def running_release(plane: ControlPlane) -> str:
    (found,) = msgspec.json.decode(
        helm("list", "--all-namespaces", "--output=json", kubeconfig=plane.kubeconfig)
    )
    assert found["name"] == RELEASE
    return str(found["chart"])


def test_nothing_is_lost_by_upgrade_uninstall_and_install_while_devices_are_attached(
    fresh: ControlPlane, tmp_path: Path
) -> None:
    async def scene(site: ChartSite) -> None:
        await site.template()
        await site.pod("by-claim", template="gpu")
        fresh.kubectl("create", "--filename=-", text=msgspec.json.encode(BY_LIMIT).decode())
        await runs(site, "by-claim", "by-limit")
        before = await books(site), await allocations(site), site.attached
        assert len(before[0]) == len(site.attached) == 2

        async def unchanged() -> None:
            await runs(site, "by-claim", "by-limit")
            assert (await books(site), await allocations(site), site.attached) == before
            assert site.attaches == 2

        # An upgrade, as a Deployment rolls: a new replica comes, then an old one goes.
        assert running_release(fresh) == f"jackfield-{PREVIOUS}"
        site.chart = CHART
        site.helm("upgrade")
        assert running_release(fresh) != f"jackfield-{PREVIOUS}"
        (old,) = site.replicas
        new = await site.started()
        assert await old.stop() == 0
        await unchanged()

        assert forbidden(old, new) == []

        # Everything of the release goes, and nothing else. Helm deletes Deployments before the roles of their pods.
        assert await new.stop() == 0
        kept = site.uninstall()
        assert "jackfield-node" in kept  # Helm says what it left
        assert fresh.kubectl("get", "clusterroles", "--selector=app.kubernetes.io/name=jackfield") == ""
        assert len(fresh.kubectl("get", "crd", "--output=name").split()) == len(definitions())
        await unchanged()

        # The next install finds what is there, and serves it to its end.
        assert "kubectl get resourceslices" in site.helm("install")
        next_one = await site.started()
        await site.delete(Pod, "by-claim")
        await site.until(lambda: len(site.attached) == 1, 90)
        await runs(site, "by-limit")
        await site.delete(Pod, "by-limit")
        await site.until(lambda: not site.attached, 90)
        await site.until(site.none_left)
        await site.pod("again", template="gpu")
        await runs(site, "again")
        assert forbidden(next_one) == []

    async def main() -> None:
        stage = setting(nodes=2, devices=3, policy=POLICY)
        async with ChartSite(fresh, stage, tmp_path, previous(tmp_path)) as site:
            await scene(site)

    asyncio.run(main())
