"""Every right that a part of the controllers has is missed by something that it does: one by one each is taken away.

The parts run as processes of their own. A right is taken from a running part, something is done that needs it, the part
says that it may not, the right is given back, and what was begun comes to its end.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path

import msgspec
import pytest

from jackfield.codec import Raw
from jackfield.kube.permissions import ROLES, Part, Role, manifests
from jackfield.model.composition import ComposabilityRequest
from jackfield.model.fabric import Order
from jackfield.model.names import Key, ModelName, NodeName, OrderID
from jackfield.model.node import Node
from jackfield.model.pod import Pod
from jackfield.model.policy import DRIVER
from jackfield.sim.setting import Nodes
from jackfield.sim.spec import Batch, Refusals
from jackfield.testing.control_plane import ControlPlane
from real import deprived
from real.deprived import DRIVERS, VENDOR, Single, singles, words
from real.site import FABRIC, Line, Replica, Site
from real.test_permissions_flows import (
    PARTS,
    STAGE,
    WITH_RULES,
    Company,
    account,
    allocate,
    ask,
    ask_much,
    asks_for,
    cleared,
    explained,
    running,
)


class Case(msgspec.Struct, frozen=True):
    """A right that is taken away, and where it is missed."""

    right: Single
    number: int
    start: Callable[[Part], Awaitable[Replica]]
    """Starts a part once more."""

    @property
    def name(self) -> str:
        return f"case-{self.number}"

    @property
    def node(self) -> str:
        """A node that no other case has to do with: what one leaves behind ends by itself."""
        return f"n-{self.number + 1:02}"


Steps = AsyncGenerator[None, None]
"""What comes before the right is taken away; then what needs it; then, when it is back, the end of that."""
Flow = Callable[[Site, Case], Steps]
MERGE = "application/merge-patch+json"


class Court:
    """The four parts at work, and who takes rights away from them."""

    def __init__(self, company: Company) -> None:
        self.company = company
        self.site: Site = company.site
        self._made = {part: manifests(part, account(part), DRIVERS) for part in PARTS}

    async def deprive(self, one: Single) -> None:
        """Take it away, and wait until the API server says no."""
        for made in self._roles(one):
            await self._write(made, deprived.rules_without(made["rules"], one))
        await self.site.until(partial(self._allows, one, allowed=False))

    async def restore(self, one: Single) -> None:
        for made in self._roles(one):
            await self._write(made, made["rules"])
        await self.site.until(partial(self._allows, one, allowed=True))

    def _roles(self, one: Single) -> list[Raw]:
        of_part = self._made[part_of(one)]
        return [made for made in of_part if deprived.is_its_role(made, one)]

    async def _write(self, made: Raw, rules: list[Raw]) -> None:
        path = f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{made['metadata']['name']}"
        await self.site.cluster.raw("PATCH", path, {"rules": rules}, content_type=MERGE)

    async def hears(self, one: Single, since: int) -> bool:
        """Whether the part says that it may not."""
        with suppress(AssertionError):
            await self.site.until(lambda: self.told(one, since))
        return self.told(one, since)

    async def _allows(self, one: Single, *, allowed: bool) -> bool:
        resource, _, part = one.resource.partition("/")
        place = {"group": one.group, "resource": resource, "subresource": part, "name": one.name}
        spec = {
            "user": f"system:serviceaccount:jackfield:{part_of(one)}",
            "resourceAttributes": {"verb": one.verb, **place},
        }
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        answer = await self.site.cluster.raw("POST", path, body)
        return bool(answer["status"]["allowed"]) is allowed

    def told(self, one: Single, since: int) -> bool:
        """Whether the part has said since then that it may not."""
        return any(words(one) in f"{line.error} {line.because}" for line in self.lines(one)[since:])

    def lines(self, one: Single) -> list[Line]:
        part = part_of(one)
        return [line for each in self.site.replicas if each.name.startswith(part) for line in each.lines]


def part_of(one: Single) -> Part:
    """Return the part that has a right by its own role; what all have, the operator is asked for."""
    return next((part for part in PARTS if ROLES[part][1] is one.role), Part.OPERATOR)


# --- what is done


async def serve(site: Site, case: Case, device_class: str = "ours") -> Steps:
    """A pod gets a device."""
    yield
    await begin(site, case.name, device_class, case.node)
    yield
    await site.delete(Pod, case.name)


async def serve_another(site: Site, case: Case) -> Steps:
    """A pod gets a device on a node that has one already."""
    first = f"{case.name}-first"
    await begin(site, first, "ours", case.node)
    await site.until(partial(running, site, first), 90)
    yield
    await begin(site, case.name, "ours", case.node)
    yield
    await site.delete(Pod, first)
    await site.delete(Pod, case.name)


async def give_back(site: Site, case: Case, device_class: str = "ours") -> Steps:
    """A pod ends, and its device goes back into the pool."""
    await begin(site, case.name, device_class, case.node)
    await site.until(partial(running, site, case.name), 90)
    yield
    await site.delete(Pod, case.name)
    yield


async def give_one_back(site: Site, case: Case) -> Steps:
    """Of two pods on a node one ends: the request stays, and wants less."""
    other = f"{case.name}-other"
    for name in (case.name, other):
        await begin(site, name, "ours", case.node)
        await site.until(partial(running, site, name), 90)
    yield
    await site.delete(Pod, case.name)
    yield
    await site.delete(Pod, other)


async def fail(site: Site, case: Case) -> Steps:
    """Nothing can be attached to the node that a pod wants."""
    yield
    await begin(site, case.name, "ours", BAD[case.right.role])
    yield
    await site.delete(Pod, case.name)


async def leave_over(site: Site, case: Case) -> Steps:
    """A claim is allocated, and nobody wants it."""
    yield
    await allocate(site, case.name, case.node)
    yield
    await site.until(partial(cleared, site, case.name), 90)


async def go_astray(site: Site, case: Case) -> Steps:
    """A device of ours stands on a node, and in nobody's books."""
    yield
    (manager,) = site.hardware.managers.values()
    free = next(one for one in manager.inventory().devices if one.model == "V100" and not one.node)
    order = Order(OrderID(case.name), FABRIC, NodeName(case.node), ModelName("V100"), free.id)
    await site.fabrics[FABRIC].attach(order)
    yield


async def need_a_node(site: Site, case: Case) -> Steps:
    """A pod fits no node."""
    yield
    await ask_much(site, case.name)
    yield
    await site.delete(Pod, case.name)


async def lose_a_label(site: Site, case: Case) -> Steps:
    """Somebody takes a node's label away."""
    label = "cohdi.io/a100"

    async def labelled() -> bool:
        return label in (await site.cluster.read(Node, Key("", case.node))).metadata.labels

    await site.until(labelled)
    yield
    body = {"metadata": {"labels": {label: None}}}
    await site.cluster.raw("PATCH", f"/api/v1/nodes/{case.node}", body, content_type=MERGE)
    yield


async def ask_by_hand(site: Site, case: Case) -> Steps:
    """Somebody asks for a device without a claim."""
    yield
    await ask(site, case.name, "A100", 1, case.node)
    yield
    await site.delete(ComposabilityRequest, case.name, "")


async def explain(site: Site, case: Case) -> Steps:
    """A request asks for more than there is, and is told so."""
    yield
    await ask(site, case.name, "H100", 2, case.node)
    yield
    await site.delete(ComposabilityRequest, case.name, "")


async def explain_again(site: Site, case: Case) -> Steps:
    """An operator that begins anew finds what it has told before."""
    await ask(site, case.name, "H100", 2, case.node)
    await site.until(lambda: explained(site, case.name))
    yield
    (old,) = [one for one in site.replicas if one.name.startswith(Part.OPERATOR) and one.status is None]
    await old.kill()
    await case.start(Part.OPERATOR)
    yield
    await site.delete(ComposabilityRequest, case.name, "")


async def begin(site: Site, name: str, device_class: str, node: str) -> None:
    await site.claim(name, asks_for(device_class))
    await site.pod(name, claim=name, node=node)


# --- which right is missed by what

theirs = partial(serve, device_class="theirs")
BAD = {Role.SCALER: "bad-1", Role.OPERATOR: "bad-2"}
"""Nodes on which nothing can be attached: who has failed on one for a while is not sent there again."""
FLOWS: dict[tuple[Role, str, str], Flow] = {
    (Role.SHARED, "create", "events"): explain,
    (Role.SHARED, "get", "events"): explain_again,
    (Role.SHARED, "patch", "events"): explain_again,
    (Role.PUBLISHER, "patch", "resourceslices"): serve,
    (Role.PUBLISHER, "patch", "nodes"): lose_a_label,
    (Role.SCALER, "create", "composabilityrequests"): serve,
    (Role.SCALER, "patch", "composabilityrequests"): serve_another,
    (Role.SCALER, "delete", "composabilityrequests"): give_back,
    (Role.SCALER, "create", "composableresources"): go_astray,
    (Role.SCALER, "patch", "composableresources"): serve,
    (Role.SCALER, "get", "resourceclaims"): give_back,
    (Role.SCALER, "patch", "resourceclaims"): fail,
    (Role.SCALER, "patch", "resourceclaims/status"): serve,
    (Role.SCALER, "arbitrary-node:patch", f"resourceclaims/driver {DRIVER}"): serve,
    (Role.SCALER, "arbitrary-node:patch", f"resourceclaims/driver {VENDOR}"): theirs,
    (Role.SCALER, "patch", "resourceclaims/binding"): leave_over,
    (Role.OPERATOR, "get", "composabilityrequests"): ask_by_hand,
    (Role.OPERATOR, "patch", "composabilityrequests"): ask_by_hand,
    (Role.OPERATOR, "patch", "composabilityrequests/status"): ask_by_hand,
    (Role.OPERATOR, "get", "composableresources"): give_back,
    (Role.OPERATOR, "create", "composableresources"): serve,
    (Role.OPERATOR, "patch", "composableresources"): give_back,
    (Role.OPERATOR, "delete", "composableresources"): give_one_back,
    (Role.OPERATOR, "patch", "composableresources/status"): serve,
    (Role.OPERATOR, "create", "devicetaintrules"): partial(give_back, device_class="theirs"),
    (Role.OPERATOR, "delete", "devicetaintrules"): partial(give_back, device_class="theirs"),
    (Role.OPERATOR, "patch", "nodes"): fail,
    (Role.AUTOSCALER, "create", "nodes"): need_a_node,
}
RIGHTS = tuple(
    one for role in (Role.PUBLISHER, Role.SCALER, Role.OPERATOR, Role.AUTOSCALER) for one in singles(role)
)
EVENTS = tuple(one for one in singles(Role.SHARED) if one.resource == "events")
ALL = (*EVENTS, *RIGHTS)
MANY = msgspec.structs.replace(
    STAGE,
    nodes=(Nodes("n", len(ALL), fabric=FABRIC), Nodes("bad", len(BAD), fabric=FABRIC)),
    fabrics=(
        msgspec.structs.replace(
            STAGE.fabrics[0],
            batches=tuple(
                Batch(ModelName(name), count) for name, count in (("A100", 40), ("V100", 8), ("H100", 1))
            ),
            refusals=Refusals(nodes=tuple(map(NodeName, BAD.values()))),
        ),
    ),
)
"""A node for every case."""


def flow_of(one: Single) -> Flow:
    return FLOWS[one.role, one.verb, f"{one.resource} {one.name}".strip()]


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """A control plane that serves DeviceTaintRules, with an audit log."""
    with ControlPlane(WITH_RULES) as started:
        yield started


@pytest.mark.slow
def test_without_one_right_of_its_role_a_part_stops_where_it_needs_it_says_so_and_goes_on_when_it_has_it(
    plane: ControlPlane, tmp_path: Path
) -> None:
    unmissed = asyncio.run(scene(Company(plane, tmp_path, MANY)))
    assert unmissed == []


async def scene(company: Company) -> list[str]:
    """Take every right away, one after the other; return those that nobody missed."""
    await company.plane.aside(company.employ)
    async with company.site as site:
        for part in PARTS:
            await company.start(part)
        await site.until(lambda: all("leads" in str(one.lines) for one in site.replicas))
        court = Court(company)
        cases = [Case(one, number, company.start) for number, one in enumerate(ALL)]
        unmissed = [str(case.right) for case in cases if not await is_missed(court, case)]
        await site.until(lambda: not site.attached, 120)
        await site.until(site.none_left, 60)
        for replica in site.replicas:
            with suppress(ProcessLookupError):
                await replica.stop()
    return unmissed


async def is_missed(court: Court, case: Case) -> bool:
    """Have something done that needs a right, without it; return whether the part says so."""
    async with aclosing(flow_of(case.right)(court.site, case)) as steps:
        await anext(steps)
        await court.deprive(case.right)
        since = len(court.lines(case.right))
        await anext(steps)
        missed = await court.hears(case.right, since)
        await court.restore(case.right)
        with suppress(StopAsyncIteration):
            await anext(steps)
    return missed
