"""An evening's drill on the real scheduler: what goes wrong, what the operator sees and does, and that it helped.

docs/operations.md tells the same evening in words; what is quoted there is what is seen here.
"""

import asyncio
import re
import signal
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
import yaml

from jackfield.model.claim import ResourceClaim
from jackfield.model.names import Key, PhysicalID, Seconds
from jackfield.model.node import Node
from jackfield.model.pod import Pod
from jackfield.model.policy import NamespaceRule, Policy
from jackfield.sim.fabric import FINE, Call, Fate
from jackfield.sim.spec import Refusals
from jackfield.testing.control_plane import ControlPlane
from real.site import FABRIC, TOKEN, Replica, Site, setting

OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"
DEVICES = 6
POLICY = Policy(
    hold_seconds=Seconds(2.0),
    inventory_seconds=Seconds(1.0),
    heartbeat_seconds=Seconds(8.0),
    blame_seconds=Seconds(45.0),  # a node on which two devices failed is not well before it runs out
    quota_wait_seconds=Seconds(5.0),
    namespaces=(NamespaceRule("team-a", quota={"A100": 1}),),
)


class Cable:
    """Faults: a manager that answers while somebody has plugged it in."""

    def __init__(self) -> None:
        self.cut = False

    def fate(self, call: Call) -> Fate:
        """Return the fate of a call."""
        del call
        return Fate(error="the manager is being restarted") if self.cut else FINE


class Evening(Site):
    """A site whose token stands in a file, and whose replicas can be asked how they are."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        made = setting(nodes=4, devices=DEVICES, attach=0.3, policy=POLICY)
        made = msgspec.structs.replace(made, heartbeat=Seconds(2.0))
        super().__init__(plane, made, folder, replicas=2)
        self.folder = folder
        self.said = ""
        self.cable = Cable()
        self.faults = self.cable

    def _write_files(self, url: str) -> None:
        super()._write_files(url)
        self.token.write_text(TOKEN)
        fabrics = [{"name": FABRIC, "type": "native", "url": url, "tokenFile": str(self.token)}]
        (self.folder / "fabrics.yaml").write_text(yaml.safe_dump({"fabrics": fabrics}))

    def _arguments(self) -> list[str]:
        return [*super()._arguments(), "--listen", "127.0.0.1:0"]

    @property
    def token(self) -> Path:
        return self.folder / "token"

    def write_policy(self, policy: Policy) -> None:
        """Change the policy's file, as an edited ConfigMap does."""
        chosen = msgspec.structs.replace(policy, models=self.stage.policy.models)
        fresh = self.folder / "policy.new"
        fresh.write_text(yaml.safe_dump(msgspec.to_builtins(chosen)))
        fresh.rename(self.folder / "policy.yaml")

    async def status(self) -> tuple[int, dict[str, Any], str]:
        """What `jackfield status` says: exit status, as JSON, and everything as one text."""
        words = [
            *("--policy", str(self.folder / "policy.yaml"), "--fabrics", str(self.folder / "fabrics.yaml"))
        ]
        words += ["--kubeconfig", str(self.kubeconfig), "--json"]
        asked = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "jackfield", "status", *words),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, errors = await asked.communicate()
        assert asked.returncode in {0, 1}, errors.decode()
        self.said = out.decode()
        return asked.returncode or 0, msgspec.json.decode(out), self.said

    def report(self) -> str:
        """What is wrong, with what `jackfield status` said last."""
        return f"{super().report()}\n{self.said}"

    async def shows(self, words: str, seconds: float = 60) -> None:
        """Wait until `jackfield status` says it, in trouble; the page for operators must quote it."""
        assert words in OPERATIONS.read_text(), f"docs/operations.md does not say: {words}"

        async def said() -> bool:
            return words in (await self.status())[2]

        await self.until(said, seconds)

    async def is_well(self, seconds: float = 90) -> None:
        """Wait until `jackfield status` finds nothing wrong, nobody waits, and nothing is under way."""

        async def well() -> bool:
            code, found, _ = await self.status()
            return code == 0 and not found["waits"] and not found["orders"]

        await self.until(well, seconds)

    async def metric(self, line: str) -> float:
        """What the replicas together show: the sum of all lines that match."""
        total = 0.0
        async with aiohttp.ClientSession() as session:
            for replica in self.replicas:
                if replica.status is None:
                    async with session.get(f"{_address(replica)}/metrics") as answer:
                        text = await answer.text()
                    found = (re.fullmatch(rf"{line} (\S+)", one) for one in text.splitlines())
                    total += sum(float(one[1]) for one in found if one)
        return total

    async def metric_rises(self, line: str, above: float = 0.0, seconds: float = 60) -> None:
        """Wait until the figure that an alert looks at is there."""

        async def risen() -> bool:
            return await self.metric(line) > above

        await self.until(risen, seconds)

    async def runs(self, *pods: str, namespace: str = "default", seconds: float = 90) -> None:
        """Wait until these pods run."""

        async def running() -> bool:
            there = [await self.cluster.read(Pod, Key(namespace, name)) for name in pods]
            return all(one.status.phase == "Running" for one in there)

        await self.until(running, seconds)


def ended(replica: Replica) -> bool:
    """Whether a replica has gone down as it was told to."""
    return replica.status == 0


def _address(replica: Replica) -> str:
    """Where a replica answers: the last place that it named, since it may have been started again."""
    found = [re.search(r"answers /metrics.* at (\S+)", one.because) for one in replica.lines]
    return f"http://{[one[1] for one in found if one][-1]}"


# --- the evening


async def the_manager_is_down(site: Evening) -> None:
    """What runs goes on; who asks now waits, and is served when the manager is back."""
    site.cable.cut = True
    await site.pod("late", template="gpu")
    await site.shows("the manager of fabric rack-a does not answer")
    await site.metric_rises(
        r'jackfield_fabric_calls_total\{fabric="rack-a",result="retry",verb="inventory"\}'
    )
    assert await site.phase("late") == "Pending"
    site.cable.cut = False
    await site.runs("late")
    await site.delete(Pod, "late")


async def the_credentials_are_wrong(site: Evening) -> None:
    """A wrong token in the Secret: told in words; the right one is taken up without a restart."""
    site.token.write_text("not-the-token")
    for replica in site.replicas[:2]:
        assert await replica.stop() == 0
        await replica.start()
    await site.shows("the token is not accepted")
    await site.pod("unlucky", template="gpu")
    site.token.write_text(TOKEN)
    await site.runs("unlucky")
    await site.delete(Pod, "unlucky")


async def the_pool_is_exhausted(site: Evening) -> None:
    """One pod more than there are devices: it says so, and gets the first that comes back."""
    names = [f"many-{number}" for number in range(DEVICES)]
    for name in names:
        await site.pod(name, template="gpu")
    await site.shows("cannot allocate all claims", 120)
    assert await site.metric(r'jackfield_devices\{fabric="rack-a",model="A100",state="free"\}') == 0
    await site.delete(Pod, "steady")
    await site.runs(*names)
    for name in names:
        await site.delete(Pod, name)
    await site.pod("steady", template="gpu")
    await site.runs("steady")


async def a_quota_is_hit(site: Evening) -> None:
    """The namespace's second claim waits and says for what; a higher quota is in force without a restart."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}}
    await site.cluster.raw("POST", "/api/v1/namespaces", body)
    await site.until(lambda: _account(site, "team-a"))
    for name in ("one", "two"):
        await site.claim(name, namespace="team-a")
        await site.pod(name, claim=name, namespace="team-a")
    await site.shows("the quota of its namespace")
    rule = NamespaceRule("team-a", quota={"A100": 2})
    site.write_policy(msgspec.structs.replace(POLICY, namespaces=(rule,)))
    await site.runs("one", "two", namespace="team-a", seconds=120)
    for name in ("one", "two"):
        await site.delete(Pod, name, "team-a")
        await site.delete(ResourceClaim, name, "team-a")


async def _account(site: Evening, namespace: str) -> bool:
    listed = await site.cluster.raw("GET", f"/api/v1/namespaces/{namespace}/serviceaccounts")
    return bool(listed["items"])


async def a_device_is_broken(site: Evening) -> None:
    """It fails, its pod gets another one, and the failure is on the node and in the figures."""
    await site.until(lambda: len(site.attached) == 1)  # else an idle one that works would do
    manager = site.hardware.managers[FABRIC]
    free = tuple(PhysicalID(one.id) for one in manager.inventory().devices if not one.node)
    manager.refusals = Refusals(
        devices=free
    )  # one of them is tried first, and not everybody knows yet which are free
    await site.pod("patient", template="gpu")
    await site.metric_rises(
        r'jackfield_attach_failures_total\{fabric="rack-a",model="A100",reason="ManagerFailed"\}'
    )
    manager.refusals = Refusals(devices=free[:1])
    await site.runs("patient", seconds=180)
    manager.refusals = Refusals()
    await site.delete(Pod, "patient")


async def a_node_is_lost(site: Evening) -> None:
    """Its plugin is silent, so nothing is given to it; once it is deleted its device comes back to the pool."""
    await site.pod("castaway", template="gpu")
    await site.runs("castaway")
    node = (await site.pods())["castaway"].spec.node_name
    site.hardware.machines.silence(node)
    await site.shows("has given no sign of life")
    before = site.hardware.managers[FABRIC].counts.detaches
    grace: dict[str, object] = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
    await site.cluster.raw("DELETE", "/api/v1/namespaces/default/pods/castaway", grace)
    await site.delete(Node, node, "")
    await site.until(lambda: site.hardware.managers[FABRIC].counts.detaches > before, 120)


async def an_upgrade_in_the_middle_of_a_burst(site: Evening) -> None:
    """Every pod runs, and nothing is attached twice, while each replica is replaced in turn."""
    names = [f"burst-{number}" for number in range(4)]
    before = site.attaches
    for name in names:
        await site.pod(name, template="gpu")
    for replica in site.replicas[:2]:
        replica.signal(signal.SIGTERM)
        await site.until(partial(ended, replica))
        await replica.start()
        await site.clock.sleep(Seconds(1.0))
    await site.runs(*names, seconds=120)
    assert site.attaches - before <= len(names)
    for name in names:
        await site.delete(Pod, name)


INCIDENTS: tuple[Callable[[Evening], Awaitable[None]], ...] = (
    the_manager_is_down,
    the_credentials_are_wrong,
    the_pool_is_exhausted,
    a_quota_is_hit,
    a_device_is_broken,
    an_upgrade_in_the_middle_of_a_burst,
    a_node_is_lost,
)


def test_an_evening_of_incidents_ends_well(
    fresh: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def evening() -> None:
        async with Evening(fresh, tmp_path) as site:
            await site.template()
            await site.pod("steady", template="gpu")
            await site.runs("steady")
            await site.is_well()
            for incident in INCIDENTS:
                began = site.clock.now()
                await incident(site)
                await site.is_well()
                await site.runs("steady")
                with capsys.disabled():
                    sys.stderr.write(f"{incident.__name__}: {site.clock.now() - began:.0f} s\n")

    asyncio.run(evening())


def test_the_page_for_operators_tells_every_incident() -> None:
    text = OPERATIONS.read_text().lower()
    assert not [one.__name__ for one in INCIDENTS if one.__name__.replace("_", " ") not in text]
