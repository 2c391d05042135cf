"""From CoHDI to Jackfield on a real control plane, with Helm: every step, what each prints, and the way back.

CoHDI's objects are as its chart and its operator write them; what they attached was attached by the calls that they
make. Nothing is detached by coming over, and nothing is lost by uninstalling.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import msgspec
import yaml
from click.testing import CliRunner

from jackfield import codec, fabric
from jackfield.cli.clock import WallClock
from jackfield.cli.main import main
from jackfield.cli.output import FAILED, OK
from jackfield.codec import Raw
from jackfield.fabric import FabricSettings
from jackfield.kube.client import KubeCluster
from jackfield.kube.connection import load
from jackfield.kube.permissions import Account, Part, manifests
from jackfield.model.composition import ComposableResource
from jackfield.model.fabric import Done, Order
from jackfield.model.names import FabricName, Key, ModelName, NodeName, OrderID, Seconds
from jackfield.model.pod import Pod
from jackfield.model.policy import DeviceModel, Policy
from jackfield.ports import Retry
from jackfield.sim.chance import Chance, Fixed
from jackfield.sim.hardware import Hardware
from jackfield.sim.setting import Class, Nodes, Setting
from jackfield.testing.control_plane import ControlPlane
from jackfield.testing.control_plane.process import Nursery, Process
from real import accounts, cohdi
from real.pods import create
from real.site import Replica, Silent
from real.waiting import comes_true

FABRIC = FabricName("1")
ACCOUNT = Account("jackfield", "controllers")
SECONDS = 120.0
STAGE = Setting(
    nodes=(
        Nodes(
            "worker", 2, fabric=FABRIC, labels={"cohdi.io/fabric": "1", "cohdi.io/nvidia-a100-80gb": "true"}
        ),
    ),
    classes=(Class("gpu", f"device.driver == '{cohdi.DRIVER}'"),),
    policy=Policy(
        models=(
            DeviceModel(
                1,
                ModelName(cohdi.MODEL),
                "nvidia-a100-80gb",
                driver_name=cohdi.DRIVER,
                dra_attributes={"productName": "NVIDIA A100 80GB PCIe"},
            ),
        )
    ),
    pod_start=Fixed(Seconds(0.1)),
    pod_stop=Fixed(Seconds(0.1)),
    real_api=True,
)
INVENTORY: Raw = {
    "fabric": FABRIC,
    "machines": [{"name": f"worker-{one}", "labels": {"fsas-machine": f"worker-{one}"}} for one in (1, 2)],
    "devices": [{"name": "a100", "count": 4, "type": "gpu", "model": cohdi.MODEL}],
}
USED, IDLE = "gpu-6f0a4b0c-used", "gpu-6f0a4b0c-idle"
KEPT = 5
"""Both definitions, the ConfigMap, the Secret, and the namespace that these lie in."""
CLAIM_SPEC: Raw = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}


class Town:
    """A cluster with CoHDI, the hardware beside it, and the commands that an operator types."""

    cluster: KubeCluster
    manager: fabric.Line
    """A line of our own to the fabric manager."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane = plane
        self.folder = folder
        self.clock = WallClock()
        self.helm = cohdi.Helm(plane, folder)
        self.replicas: list[Replica] = []

    # --- what stands there

    def serve(self, nursery: Nursery) -> None:
        """Start the fabric manager, which speaks as Fsas' do."""
        state = self.folder / "state"
        (self.folder / "inventory.yaml").write_text(yaml.safe_dump(INVENTORY))
        words = ("--inventory", str(self.folder / "inventory.yaml"), "--state", str(state), "--port", "0")
        self.program = Process(nursery, jackfield("fabric", "serve", *words), self.folder / "manager.log")
        self.program.start()
        assert comes_true((state / "url").exists)
        self.url, self.token = ((state / name).read_text().strip() for name in ("url", "token"))

    def line(self) -> fabric.Line:
        """Return a line to the manager, by the calls that CoHDI's operator makes."""
        names = ("realm", "client_id", "client_secret", "username", "password")
        options = {
            "tenant": cohdi.TENANT,
            "credentialsPrefix": "X_",
            "fabricId": 1,
            "models": [{"name": cohdi.MODEL}],
            "machines": {f"worker-{one}": f"worker-{one}" for one in (1, 2)},
        }
        settings = FabricSettings(FABRIC, "fsas-fm", self.url, options=options)
        return fabric.load(settings, {f"X_{name.upper()}": self.token for name in names}, self.clock)

    async def attach(self, name: str) -> None:
        """Have a device attached and written into the books, as CoHDI's operator does."""
        order = Order(OrderID(name), FABRIC, NodeName("worker-1"), ModelName(cohdi.MODEL))
        while not isinstance(answer := await self.manager.attach(order), Done):
            await self.clock.sleep(Seconds(0.1))
        create(self.plane, cohdi.resource(name, "worker-1"))
        self.said(name, {"state": "Online", "device_id": answer.serial, "cdi_device_id": answer.device})

    def said(self, name: str, status: Raw) -> None:
        patch = msgspec.json.encode({"status": status}).decode()
        words = (f"composableresources/{name}", "--subresource=status", "--type=merge", f"--patch={patch}")
        self.plane.kubectl("patch", *words)

    def furnish(self) -> None:
        """Write the rest of CoHDI's books and its slice; have a pod that uses one of the devices."""
        children = {name: {"state": "Online", "node_name": "worker-1"} for name in (USED, IDLE)}
        made, shown = cohdi.request("worker-1", 2, children)
        # Its webhook, which nobody answers for here, would have let it pass.
        self.plane.kubectl("delete", "validatingwebhookconfigurations", "--all")
        create(self.plane, made, cohdi.placeholders(2))
        patch = msgspec.json.encode({"status": shown}).decode()
        words = (f"composabilityrequests/{cohdi.REQUEST}", "--subresource=status", "--type=merge")
        self.plane.kubectl("patch", *words, f"--patch={patch}")
        accounts.put(
            self.plane, cohdi.webhook(), *manifests(Part.CONTROLLERS, ACCOUNT, (cohdi.DRIVER,), cohdi=True)
        )
        accounts.way_in(self.plane, self.folder, ACCOUNT)
        self.pod("old", "worker-1")

    def pod(self, name: str, node: str) -> None:
        """Create a pod with a claim for a GPU of the vendor's driver, on a node."""
        claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name}}
        pod = {
            "containers": [{"name": "main", "image": "none", "resources": {"claims": [{"name": "gpu"}]}}],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
            "nodeSelector": {"kubernetes.io/hostname": node},
        }
        create(
            self.plane,
            {**claim, "spec": CLAIM_SPEC},
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": pod},
        )

    # --- what an operator types

    async def migrate(self, *words: str) -> tuple[int, str]:
        """Type the command; it has a loop of its own, and so a thread."""
        typed = ["migrate", "cohdi", "--kubeconfig", str(self.plane.kubeconfig), *words]
        done = await self.plane.aside(lambda: CliRunner().invoke(main, typed))
        return done.exit_code, done.output

    async def start(self) -> Replica:
        """Start `jackfield run` with nothing but a way in, as the account that `jackfield rbac --cohdi` made."""
        way = self.folder / f"{ACCOUNT.name}.kubeconfig"
        words = ["--kubeconfig", str(way), "--log", "json"]
        replica = Replica(words, f"run-{len(self.replicas)}", self.folder, identity="one")
        self.replicas.append(replica)
        await replica.start()
        return replica

    # --- what is so

    async def attached(self) -> dict[str, str]:
        """Return where every attached device is, as the manager shows it."""
        return {one.id: one.node for one in (await self.manager.inventory()).devices if one.node}

    async def books(self) -> dict[str, ComposableResource]:
        path = f"/apis/{cohdi.GROUP}/v1alpha1/composableresources"
        found, wrong = codec.decode_many(ComposableResource, (await self.cluster.raw("GET", path))["items"])
        assert wrong == ()
        return {one.metadata.name: one for one in found}

    async def ours(self, *names: str) -> bool:
        books = await self.books()
        return all(books[name].device is not None and books[name].state == "Online" for name in names)

    async def offers_both(self) -> bool:
        slices = (await self.cluster.raw("GET", "/apis/resource.k8s.io/v1/resourceslices"))["items"]
        here = [one["spec"].get("devices", ()) for one in slices if one["spec"].get("nodeName") == "worker-1"]
        return sum(map(len, here)) == len((USED, IDLE))

    def manifest(self) -> str:
        return self.helm.run("get", "manifest", cohdi.RELEASE)

    async def replicas_of_cohdi(self) -> list[int]:
        found = (await self.cluster.raw("GET", "/apis/apps/v1/deployments"))["items"]
        return [one["spec"]["replicas"] for one in found]

    async def runs(self, pod: str) -> bool:
        found = await self.cluster.read(Pod, Key("default", pod))
        return found.status.phase == "Running"

    async def until(self, what: str, condition: Callable[[], Awaitable[bool]]) -> None:
        """Wait until something is so."""
        deadline = self.clock.now() + SECONDS
        while not await self._holds(condition):
            assert self.clock.now() < deadline, f"not so in time: {what}\n{self.report()}"
            await self.clock.sleep(Seconds(0.2))

    async def _holds(self, condition: Callable[[], Awaitable[bool]]) -> bool:
        try:
            return await condition()
        except Retry:  # a definition that was just replaced is not served for a moment
            return False

    def report(self) -> str:
        lines = [
            f"{one.by} {one.object} {one.what} {one.because} {one.error}"
            for run in self.replicas
            for one in run.lines
        ]
        shown = ("get", "nodes,pods,resourceclaims,resourceslices,composableresources", "--output=wide")
        events = self.plane.kubectl("get", "events", "--sort-by=.metadata.creationTimestamp")
        errors = (one.errors for one in self.replicas)
        return "\n".join((*lines[-60:], *errors, self.plane.kubectl(*shown), events[-3000:]))


def jackfield(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "jackfield", *words)


@asynccontextmanager
async def town(plane: ControlPlane, folder: Path) -> AsyncIterator[Town]:
    """A cluster in which CoHDI has attached two devices to worker-1, of which a pod uses one."""
    here = Town(plane, folder)
    async with AsyncExitStack() as stack:
        nursery = Nursery()
        stack.callback(nursery.close)
        await plane.aside(partial(here.serve, nursery))
        stack.callback(here.program.stop, 20.0)
        here.manager = await stack.enter_async_context(here.line())
        here.cluster = await stack.enter_async_context(KubeCluster(load(plane.kubeconfig), "hardware"))
        await plane.aside(partial(accounts.put, plane, *accounts.SPACES))
        await plane.aside(partial(here.helm.install, cohdi.objects(here.url, here.token)))
        await plane.aside(partial(plane.kubectl, "wait", "--for=condition=Established", "crd", "--all"))
        hardware = Hardware(STAGE, here.clock, Chance(1), Silent(), lambda _: here.cluster)
        hardware.mirror(FABRIC, here.manager)
        await stack.enter_async_context(hardware)
        stack.push_async_callback(_killed, here)
        await here.attach(USED)
        await here.attach(IDLE)
        await here.until("the vendor's driver offers both", here.offers_both)
        await plane.aside(here.furnish)
        await here.until("the pod runs", partial(here.runs, "old"))
        yield here


async def _killed(here: Town) -> None:
    for one in here.replicas:
        await one.kill()


# --- the rehearsal


def test_coming_over_from_cohdi_detaches_nothing_and_every_step_can_be_undone(
    fresh: ControlPlane, tmp_path: Path
) -> None:
    asyncio.run(rehearsal(fresh, tmp_path))


async def rehearsal(plane: ControlPlane, folder: Path) -> None:
    async with town(plane, folder) as here:
        before = await here.attached()
        assert before == {"a100-1": "worker-1", "a100-2": "worker-1"}
        await protected(here)
        await stopped(here)
        await taken_over(here)
        assert await here.attached() == before
        await there_and_back(here)
        await served(here)
        await uninstalled(here)
        await returned(here)


async def protected(here: Town) -> None:
    """Look, protect, take that back, protect again; ours does not start while CoHDI runs."""
    status, said = await here.migrate()
    assert (status, "next: jackfield migrate cohdi --apply" in said) == (OK, True), said
    assert "fabric 1: fsas-fm at" in said
    assert "books: 1 requests, 2 resources: 2 Online" in said
    assert here.manifest().count("helm.sh/resource-policy: keep") == 0, "a look writes nothing"
    status, said = await here.migrate("--apply")
    assert "done: helm uninstall cohdi leaves CustomResourceDefinition/composableresources." in said
    assert here.manifest().count("helm.sh/resource-policy: keep") == KEPT
    status, said = await here.migrate("--undo")
    assert here.manifest().count("helm.sh/resource-policy: keep") == 0, said
    await here.migrate("--apply")
    refused = await here.start()
    await here.until("it ends", partial(ended, refused))
    assert refused.status == FAILED
    assert "Deployment composable-dra/dds-controller-manager still runs" in refused.errors


async def stopped(here: Town) -> None:
    """CoHDI is not stopped in the middle of an order; and it can be started again."""
    here.said(IDLE, {"state": "Attaching"})
    status, said = await here.migrate("--apply")
    assert (status, f"in the way: ComposableResource {IDLE} on worker-1 is Attaching" in said) == (
        FAILED,
        True,
    )
    assert await here.replicas_of_cohdi() == [1, 1, 1]
    here.said(IDLE, {"state": "Online"})
    assert (
        "done: Deployment composable-dra/composable-dra-driver stopped" in (await here.migrate("--apply"))[1]
    )
    assert await here.replicas_of_cohdi() == [0, 0, 0]
    assert (
        "done: Deployment composable-dra/composable-dra-driver runs again with 1"
        in (await here.migrate("--undo"))[1]
    )
    assert await here.replicas_of_cohdi() == [1, 1, 1]
    status, said = await here.migrate("--apply")
    assert (status, await here.replicas_of_cohdi()) == (OK, [0, 0, 0])
    assert "next: jackfield rbac --part controllers --cohdi --driver gpu.nvidia.com" in said


async def taken_over(here: Town) -> None:
    """Ours starts with no settings of its own and takes over what is attached, by its own role."""
    await here.start()
    await here.until("both are ours", partial(here.ours, USED, IDLE))
    assert "next: helm uninstall cohdi --namespace cohdi" in (await here.migrate())[1]


async def there_and_back(here: Town) -> None:
    """After ours has run, CoHDI can be started again, and finds its books as they were but for annotations."""
    status, said = await here.migrate("--undo")
    assert (status, "Jackfield still runs (one): stop it first" in said) == (FAILED, True)
    assert await here.replicas_of_cohdi() == [0, 0, 0]
    assert await here.replicas[-1].stop() == OK
    await here.migrate("--undo")
    assert await here.replicas_of_cohdi() == [1, 1, 1]
    kept = await here.books()
    assert [(kept[one].status.state, kept[one].request) for one in (USED, IDLE)] == [
        ("Online", cohdi.REQUEST)
    ] * 2
    await here.migrate("--apply")
    await here.start()


async def served(here: Town) -> None:
    """A new pod on the other node gets a device from the pool, in `reschedule`; nobody else's is touched."""
    before = await here.attached()
    here.pod("new", "worker-2")
    await here.until("the new pod runs", partial(here.runs, "new"))
    assert [node for one, node in (await here.attached()).items() if one not in before] == ["worker-2"]
    assert (await here.attached()).items() > before.items()
    assert await here.runs("old")


async def uninstalled(here: Town) -> None:
    """`helm uninstall` takes CoHDI away and leaves books and settings; ours starts again from these alone."""
    said = here.helm.run("uninstall", cohdi.RELEASE)
    assert "kept due to the resource policy" in said
    assert await here.replicas_of_cohdi() == []
    assert {USED, IDLE} <= (await here.books()).keys()
    assert await here.replicas[-1].stop() == OK
    again = await here.start()
    await here.until("it leads", partial(leads, again))
    assert (
        f"next: kubectl delete --wait=false composabilityrequests {cohdi.REQUEST}"
        in (await here.migrate())[1]
    )


async def returned(here: Town) -> None:
    """What CoHDI's scaler asked for goes back to the pool when nobody uses it, and not before."""
    here.plane.kubectl("delete", "--wait=false", "composabilityrequests", cohdi.REQUEST)
    await here.until("the idle one is back", partial(is_back, here))
    assert (await here.attached())["a100-1"] == "worker-1"
    assert await here.runs("old")
    assert await here.runs("new")


async def is_back(here: Town) -> bool:
    return "a100-2" not in await here.attached()


async def ended(replica: Replica) -> bool:
    return replica.status is not None


async def leads(replica: Replica) -> bool:
    return any("leads fabric 1" in one.because for one in replica.lines)
