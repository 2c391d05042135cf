"""Our processes may do what they do, and nothing else."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar, get_args

import pytest
from msgspec.structs import replace

from jackfield.codec import kinds
from jackfield.controllers import app
from jackfield.controllers.act import Hands, act
from jackfield.controllers.events import Teller
from jackfield.controllers.lead import REPLICAS, Identity, Leases
from jackfield.kube.permissions import Account, Part, Right, admission, manifests, rights
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import FINALIZER, ComposableResource
from jackfield.model.device import DeviceTaint
from jackfield.model.event import Event
from jackfield.model.lease import Lease
from jackfield.model.meta import Object, ObjectMeta
from jackfield.model.names import Key, Seconds, Uid, Version
from jackfield.model.node import HEARTBEATS, Node
from jackfield.model.plan import (
    AddNode,
    AnyAction,
    Blame,
    DropTaint,
    FreeResource,
    Hold,
    LabelNode,
    LetGo,
    MarkVisible,
    PutResource,
    PutSlice,
    PutTaint,
    Release,
    RemoveCDI,
    Rescan,
    WriteCDI,
)
from jackfield.model.slice import ResourceSlice
from jackfield.model.taint import DeviceTaintRule, DeviceTaintRuleSpec
from jackfield.ports import EVERYTHING, Apply, Change, Cluster, Conflict, Gone, Merge, Selection
from jackfield.testing import builders as b
from unit.controllers.actions import ANY, CLAIM, CR, D0, DEVICE, GUARDED, OLD, WHY, P, clear
from unit.controllers.bench import Bench, play

T = TypeVar("T", bound=Object)
Used = set[tuple[str, str]]

ON_THE_NODE: tuple[type[AnyAction], ...] = (Rescan, MarkVisible, Release, Hold, LetGo, WriteCDI, RemoveCDI)
NEVER_ON_A_CLUSTER: tuple[type[AnyAction], ...] = (AddNode,)
"""A real node is not added by writing its object."""


class Watched:
    """A Cluster that notes which verb is used on what."""

    def __init__(self, inner: Cluster, used: Used) -> None:
        self._inner = inner
        self._used = used

    def _note(self, kind: type[Object], *verbs: str, status: bool = False) -> None:
        names = kinds.of(kind)
        self._used.update((f"{names.resource}/status" if status else names.resource, verb) for verb in verbs)

    def watch(self, kind: type[T], selection: Selection = EVERYTHING) -> AsyncIterator[Change]:
        self._note(kind, "list", "watch")
        return self._inner.watch(kind, selection)

    async def read(self, kind: type[T], key: Key) -> T:
        self._note(kind, "get")
        return await self._inner.read(kind, key)

    async def create(self, new: T) -> T:
        self._note(type(new), "create")
        return await self._inner.create(new)

    async def write(self, patch: Merge | Apply) -> Object:
        self._note(patch.kind, "patch", status=patch.status)
        return await self._inner.write(patch)

    async def delete(self, kind: type[Object], key: Key, version: Version) -> None:
        self._note(kind, "delete")
        await self._inner.delete(kind, key, version)


# --- every action, as far as the cluster hears of it

RULE = DeviceTaintRule(
    metadata=ObjectMeta(name="t"), spec=DeviceTaintRuleSpec(DeviceTaint("k", effect="NoSchedule"))
)
NEW = ObjectMeta(name="new")
MADE: list[Callable[[Version], AnyAction]] = [
    *GUARDED,
    lambda at: clear(at, ask_pods=True),
    lambda at: PutSlice(
        phase=P,
        because=WHY,
        slice=replace(b.vendor_slice("GPU-1"), metadata=replace(NEW, resource_version=at)),
    ),
    lambda _: LabelNode(phase=P, because=WHY, node=b.NODE, labels={"a": "b"}),
    lambda _: Blame(phase=P, because=WHY, node=b.NODE, device=DEVICE, at=b.NOW),
    lambda _: PutResource(phase=P, because=WHY, resource=replace(b.resource("a100-2"), metadata=NEW)),
    lambda _: PutTaint(phase=P, because=WHY, rule=RULE),
    lambda _: DropTaint(phase=P, because=WHY, name="old", version=ANY),
    lambda _: Rescan(phase=P, because=WHY, node=b.NODE, resource=CR),
    lambda _: WriteCDI(
        phase=P, because=WHY, node=b.NODE, claim=CLAIM, uid=Uid("u"), device=DEVICE, physical=D0, cdi="GPU-1"
    ),
    lambda _: RemoveCDI(phase=P, because=WHY, node=b.NODE, claim=CLAIM, uid=Uid("u")),
]


def used(wanted: Callable[[AnyAction], bool]) -> Used:
    """Return what the cluster is asked for by all actions of a kind, each tried on a world of its own.

    Tried on an old version, an action meets a conflict, but what it asks for first has been asked by then.
    """
    verbs: Used = set()
    for action in (made(at) for made in MADE for at in (ANY, OLD)):
        if wanted(action):
            play(partial(tried, action=action, verbs=verbs))
    return verbs


async def tried(bench: Bench, action: AnyAction, verbs: Used) -> None:
    await bench.put(b.node())
    await bench.put(b.claim("c"))
    await bench.put(b.request(1, finalizers=(FINALIZER,)))
    held = await bench.put(b.resource(finalizers=(FINALIZER,), holder="u"))
    await bench.put(replace(RULE, metadata=ObjectMeta(name="old")))
    with suppress(Conflict, Gone):
        await act(action, watched(bench, verbs))
    if isinstance(action, FreeResource):  # asked twice: to go, and then to be let go
        bench.store.put(await bench.cluster.read(ComposableResource, held.key))
        with suppress(Conflict, Gone):
            await act(action, watched(bench, verbs))


def watched(bench: Bench, verbs: Used) -> Hands:
    return replace(bench.hands, world=replace(bench.world, cluster=Watched(bench.client, verbs)))


def events_used() -> Used:
    verbs: Used = set()

    async def scene(bench: Bench) -> None:
        claim = await bench.put(b.claim("c"))
        for _ in ("in one life", "in the next"):
            teller = Teller(Watched(bench.client, verbs), bench.clock)
            teller.tell(claim, Event(reason="Waits", message="for a device"))
            writing = asyncio.create_task(teller.run())
            await bench.wait(1.0)
            writing.cancel()
            with suppress(asyncio.CancelledError):
                await writing

    play(scene)
    return verbs


def leads_used() -> Used:
    verbs: Used = set()

    async def scene(bench: Bench) -> None:
        leases = Leases(Watched(bench.client, verbs), bench.clock, Identity("r", "1"), Seconds(10.0))
        leading = asyncio.create_task(leases.run(lambda: None))
        await bench.wait(30.0)
        leading.cancel()
        with suppress(asyncio.CancelledError):
            await leading
        await leases.release()

    play(scene)
    return verbs


def kinds_watched(part: Iterable[type[Object]]) -> Used:
    return {(kinds.of(kind).resource, verb) for kind in part for verb in ("list", "watch")}


def granted(part: Part, *beside: str) -> Used:
    """Return what a part may do, but for what no action needs."""
    return {
        (f"{plural}.{one.group}{slash}{sub}" if one.group else one.resource, verb)
        for one in rights(part)
        for plural, slash, sub in [one.resource.partition("/")]
        for verb in one.verbs
        if one.resource not in beside
    }


def test_every_action_is_tried() -> None:
    tried_ones = {type(made(ANY)) for made in MADE}
    assert set(get_args(AnyAction)) - tried_ones == set(NEVER_ON_A_CLUSTER)


def test_the_controllers_may_do_exactly_what_their_actions_do() -> None:
    acted = used(lambda action: not isinstance(action, ON_THE_NODE))
    expected = acted | events_used() | leads_used() | kinds_watched(app.KINDS)
    asked_only = (
        "resourceclaims/driver",
        "resourceclaims/binding",
        "customresourcedefinitions",
        "namespaces",
    )
    assert granted(Part.CONTROLLERS, *asked_only) == expected


def test_the_plugin_of_a_node_may_do_exactly_what_it_does() -> None:
    acted = used(lambda action: isinstance(action, ON_THE_NODE))
    reads = {(kinds.of(kind).resource, "get") for kind in (ResourceClaim, Node)}
    lives = {(kinds.of(Lease).resource, verb) for verb in ("create", "patch")}
    publishes = {
        (kinds.of(ResourceSlice).resource, verb) for verb in ("list", "watch", "create", "patch", "delete")
    }
    assert granted(Part.NODE) == acted | reads | lives | publishes | kinds_watched(app.NODE_KINDS)


def test_a_plugin_is_kept_to_its_own_node() -> None:
    policy, binding = admission(Account("ours", "we"))
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]
    assert "system:serviceaccount:ours:we" in policy["spec"]["matchConditions"][0]["expression"]
    guarded = {
        one for rule in policy["spec"]["matchConstraints"]["resourceRules"] for one in rule["resources"]
    }
    written = {one.resource for one in rights(Part.NODE) if {"create", "patch", "delete"} & set(one.verbs)}
    assert guarded == written


# --- as the API wants it


def right(part: Part, resource: str, drivers: tuple[str, ...] = ("a.example", "b.example")) -> Right:
    (found,) = found_rights(part, resource, drivers)
    return found


def found_rights(part: Part, resource: str, drivers: tuple[str, ...] = ()) -> tuple[Right, ...]:
    return tuple(one for one in rights(part, drivers) if one.resource == resource)


def test_conditions_may_be_written_of_the_policys_drivers_only() -> None:
    driver = right(Part.CONTROLLERS, "resourceclaims/driver")
    assert driver.names == ("a.example", "b.example")
    assert driver.verbs == ("arbitrary-node:patch",)


def test_an_allocation_may_be_cleared_everywhere() -> None:
    binding = right(Part.CONTROLLERS, "resourceclaims/binding")
    assert (binding.verbs, binding.names, binding.namespace) == (("patch",), (), "")


def test_only_our_own_definitions_may_be_touched() -> None:
    assert right(Part.CONTROLLERS, "customresourcedefinitions").names == (
        "composabilityrequests.cro.hpsys.ibm.ie.com",
        "composableresources.cro.hpsys.ibm.ie.com",
    )


@pytest.mark.parametrize("part", list(Part))
def test_every_right_has_a_reason_and_no_wildcard(part: Part) -> None:
    for one in rights(part):
        assert one.why
        assert "*" not in (one.group, one.resource, *one.verbs)


@pytest.mark.parametrize(
    ("part", "namespaces"), [(Part.CONTROLLERS, (HEARTBEATS, REPLICAS)), (Part.NODE, (HEARTBEATS,))]
)
def test_leases_are_reached_in_their_namespaces_alone(part: Part, namespaces: tuple[str, ...]) -> None:
    assert tuple(one.namespace for one in found_rights(part, "leases")) == namespaces


def test_the_controllers_keep_no_nodes_lease_and_see_no_other_namespace() -> None:
    heartbeats, _ = found_rights(Part.CONTROLLERS, "leases")
    assert heartbeats.verbs == ("list", "watch")
    namespaces = right(Part.CONTROLLERS, "namespaces")
    assert (namespaces.verbs, namespaces.names) == (("get",), (HEARTBEATS, REPLICAS))


@pytest.mark.parametrize("part", list(Part))
def test_the_account_is_bound_to_roles_that_hold_every_right_once(part: Part) -> None:
    made = manifests(part, Account("ours", "we"))
    roles = {Part.CONTROLLERS: 2, Part.NODE: 1}[part]
    assert [one["kind"] for one in made] == [
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        *("Role", "RoleBinding") * roles,
    ]
    account, *rest = made
    assert account["metadata"] == {"name": "we", "namespace": "ours"}
    for role, binding in zip(rest[::2], rest[1::2], strict=True):
        assert binding["metadata"] == role["metadata"]
        assert binding["roleRef"]["kind"] == role["kind"]
        assert binding["roleRef"]["name"] == role["metadata"]["name"]
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "we", "namespace": "ours"}]
    rules = [rule for role in rest[::2] for rule in role["rules"]]
    assert [rule["resources"] for rule in rules] == [[one.resource] for one in rights(part)]


# --- in the documents


def table() -> str:
    lines = ["| part | group | resource | verbs | what for |", "|---|---|---|---|---|"]
    for part in Part:
        for one in rights(part):
            verbs = ", ".join(f"`{verb}`" for verb in one.verbs)
            where = f" in `{one.namespace}`" if one.namespace else " (by name)" if one.names else ""
            group = f"`{one.group}`" if one.group else "core"
            lines.append(f"| {part} | {group} | `{one.resource}`{where} | {verbs} | {one.why} |")
    return "".join(f"{line}\n" for line in lines)


def test_every_right_is_documented_with_its_reason(golden: Callable[[Path, str], None]) -> None:
    part = re.compile(
        r"(?<=<!-- begin RIGHTS: written by `make golden` -->\n).*?(?=<!-- end RIGHTS -->)", re.DOTALL
    )
    document = Path(__file__).resolve().parents[3] / "docs" / "permissions.md"
    written, count = part.subn(lambda _: table(), document.read_text())
    assert count == 1, "the marks between which the table stands are gone"
    golden(document, written)
