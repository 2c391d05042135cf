"""Our processes may do what they do, and nothing else."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar, get_args

import pytest
from msgspec.structs import replace

from jackfield.codec import kinds
from jackfield.controllers import app
from jackfield.controllers.act import act
from jackfield.controllers.events import Teller
from jackfield.controllers.lead import REPLICAS, Identity, Leases
from jackfield.controllers.writing import Hands
from jackfield.kube.permissions import (
    ROLES,
    Account,
    Part,
    Right,
    Role,
    admission,
    manifests,
    remedy,
    rights,
)
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
    Adopt,
    AnyAction,
    Attach,
    Blame,
    ClearClaim,
    CountAttempt,
    DeleteRequest,
    DeleteResource,
    Detach,
    DropTaint,
    ForgetClaim,
    FreeRequest,
    FreeResource,
    Hold,
    KeepRequest,
    LabelNode,
    LetGo,
    MarkMissing,
    MarkReleased,
    MarkState,
    MarkVictim,
    MarkVisible,
    PutRequest,
    PutRequestStatus,
    PutResource,
    PutSlice,
    PutTaint,
    RecordClaim,
    Release,
    RemoveCDI,
    Rescan,
    SetCondition,
    TakeOver,
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

DONE_BY: dict[Role, tuple[type[AnyAction], ...]] = {
    Role.PUBLISHER: (PutSlice, LabelNode),
    Role.SCALER: (
        *(PutRequest, DeleteRequest, MarkVictim, PutResource),
        *(RecordClaim, SetCondition, CountAttempt, ForgetClaim, ClearClaim),
    ),
    Role.OPERATOR: (
        *(KeepRequest, FreeRequest, PutRequestStatus, PutResource, DeleteResource, FreeResource, TakeOver),
        *(MarkState, Attach, Adopt, Detach, PutTaint, DropTaint, MarkMissing, MarkReleased, Blame),
    ),
    Role.AUTOSCALER: (AddNode,),
    Role.NODE: (Rescan, MarkVisible, Release, Hold, LetGo, WriteCDI, RemoveCDI),
}
"""Who does what; a surplus device is put into the books by the scaler."""


class Watched:
    """A Cluster that notes which verb is used on what."""

    def __init__(self, inner: Cluster, used: Used) -> None:
        self._inner = inner
        self._used = used

    def _note(self, kind: type[Object], *verbs: str, status: bool = False) -> None:
        names = kinds.of(kind)
        self._used.update((f"{names.resource}/status" if status else names.resource, verb) for verb in verbs)

    def watch(self, kind: type[T], selection: Selection = EVERYTHING) -> AsyncGenerator[Change, None]:
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
    lambda _: AddNode(phase=P, because=WHY, node=replace(b.node("new"), metadata=NEW)),
    lambda _: PutTaint(phase=P, because=WHY, resource=CR, rule=RULE),
    lambda _: DropTaint(phase=P, because=WHY, name="old", version=ANY, ask="gone"),
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


def granted(role: Role, *beside: str) -> Used:
    """Return what a role holds, but for what no action needs."""
    return {
        (f"{plural}.{one.group}{slash}{sub}" if one.group else one.resource, verb)
        for one in rights(role)
        for plural, slash, sub in [one.resource.partition("/")]
        for verb in one.verbs
        if one.resource not in beside
    }


def test_every_action_is_tried_and_has_somebody_who_does_it() -> None:
    assert {type(made(ANY)) for made in MADE} == set(get_args(AnyAction))
    assert {one for done in DONE_BY.values() for one in done} == set(get_args(AnyAction))


@pytest.mark.parametrize("role", [Role.PUBLISHER, Role.SCALER, Role.OPERATOR, Role.AUTOSCALER])
def test_each_part_may_do_exactly_what_its_actions_do_beside_what_all_may(role: Role) -> None:
    acted = used(lambda action: isinstance(action, DONE_BY[role]))
    own = granted(role, "resourceclaims/driver", "resourceclaims/binding")
    assert own == acted - granted(Role.SHARED)


def test_what_all_share_is_what_every_process_does_whatever_it_runs() -> None:
    expected = events_used() | leads_used() | kinds_watched(app.KINDS)
    probed = {(kinds.of(ResourceSlice).resource, "create")}
    assert granted(Role.SHARED, "customresourcedefinitions", "namespaces") == expected | probed


def test_the_plugin_of_a_node_may_do_exactly_what_it_does() -> None:
    acted = used(lambda action: isinstance(action, DONE_BY[Role.NODE]))
    reads = {(kinds.of(kind).resource, "get") for kind in (ResourceClaim, Node)}
    lives = {(kinds.of(Lease).resource, verb) for verb in ("create", "patch")}
    publishes = {
        (kinds.of(ResourceSlice).resource, verb) for verb in ("list", "watch", "create", "patch", "delete")
    }
    warns = {(kinds.of(Event).resource, "create")}
    assert granted(Role.NODE) == acted | reads | lives | publishes | warns | kinds_watched(app.NODE_KINDS)


def test_a_plugin_is_kept_to_its_own_node() -> None:
    policy, binding = admission(Account("ours", "we"))
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]
    assert "system:serviceaccount:ours:we" in policy["spec"]["matchConditions"][0]["expression"]
    guarded = {
        one for rule in policy["spec"]["matchConstraints"]["resourceRules"] for one in rule["resources"]
    }
    written = {one.resource for one in rights(Role.NODE) if {"create", "patch", "delete"} & set(one.verbs)}
    assert guarded == written


# --- as the API wants it


def right(role: Role, resource: str, drivers: tuple[str, ...] = ("a.example", "b.example")) -> Right:
    (found,) = found_rights(role, resource, drivers)
    return found


def found_rights(role: Role, resource: str, drivers: tuple[str, ...] = ()) -> tuple[Right, ...]:
    return tuple(one for one in rights(role, drivers) if one.resource == resource)


def test_conditions_may_be_written_of_the_policys_drivers_only() -> None:
    driver = right(Role.SCALER, "resourceclaims/driver")
    assert driver.names == ("a.example", "b.example")
    assert driver.verbs == ("arbitrary-node:patch",)


def test_an_allocation_may_be_cleared_everywhere() -> None:
    binding = right(Role.SCALER, "resourceclaims/binding")
    assert (binding.verbs, binding.names, binding.namespace) == (("patch",), (), "")


def test_only_our_own_definitions_may_be_touched() -> None:
    assert right(Role.SHARED, "customresourcedefinitions").names == (
        "composabilityrequests.cro.hpsys.ibm.ie.com",
        "composableresources.cro.hpsys.ibm.ie.com",
    )


@pytest.mark.parametrize("role", list(Role))
def test_every_right_has_a_reason_and_no_wildcard(role: Role) -> None:
    for one in rights(role):
        assert one.why
        assert "*" not in (one.group, one.resource, *one.verbs)


@pytest.mark.parametrize(
    ("role", "namespaces"), [(Role.SHARED, (HEARTBEATS, REPLICAS)), (Role.NODE, (HEARTBEATS,))]
)
def test_leases_are_reached_in_their_namespaces_alone(role: Role, namespaces: tuple[str, ...]) -> None:
    assert tuple(one.namespace for one in found_rights(role, "leases")) == namespaces


def test_the_controllers_keep_no_nodes_lease_and_see_no_other_namespace() -> None:
    heartbeats, _ = found_rights(Role.SHARED, "leases")
    assert heartbeats.verbs == ("list", "watch")
    namespaces = right(Role.SHARED, "namespaces")
    assert (namespaces.verbs, namespaces.names) == (("get",), (HEARTBEATS, REPLICAS))


def test_secrets_are_read_only_where_cohdis_settings_are_used_and_only_its_own() -> None:
    assert [role for role in Role if found_rights(role, "secrets")] == [Role.MIGRATION]
    secret = right(Role.MIGRATION, "secrets")
    assert (secret.verbs, secret.names, secret.namespace) == (
        ("get",),
        ("composable-dra-secret",),
        "composable-dra",
    )


@pytest.mark.parametrize("cohdi", [False, True])
@pytest.mark.parametrize("part", list(Part))
def test_the_account_is_bound_to_roles_that_hold_every_right_once(part: Part, *, cohdi: bool) -> None:
    account, *rest = manifests(part, Account("ours", "we"), cohdi=cohdi)
    assert account["metadata"] == {"name": "we", "namespace": "ours"}
    for role, binding in zip(rest[::2], rest[1::2], strict=True):
        place = {key: value for key, value in role["metadata"].items() if key == "namespace"}
        assert binding["metadata"] == {"name": f"{role['metadata']['name']}:ours:we", **place}
        assert binding["kind"] == f"{role['kind']}Binding"
        assert role["kind"] == ("Role" if place else "ClusterRole")
        assert binding["roleRef"]["kind"] == role["kind"]
        assert binding["roleRef"]["name"] == role["metadata"]["name"]
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "we", "namespace": "ours"}]
    roles = (*ROLES[part], *((Role.MIGRATION,) if cohdi and part is not Part.NODE else ()))
    held = [rule["resources"] for role in rest[::2] for rule in role["rules"]]
    assert sorted(held) == sorted([one.resource] for role in roles for one in rights(role))
    clusterwide = {role["metadata"]["name"] for role in rest[::2] if role["kind"] == "ClusterRole"}
    assert clusterwide == {f"jackfield-{role}" for role in roles}


# --- a right that is missing

FORBIDDEN = (
    'x is forbidden: User "system:serviceaccount:{account}" cannot {verb} resource "{resource}" '
    'in API group "resource.k8s.io" at the cluster scope'
)
GRANTS = "grant it: jackfield rbac --part {part} --namespace ns --service-account {name} | kubectl apply -f -"


@pytest.mark.parametrize(
    ("account", "verb", "resource", "part"),
    [
        ("ns:jackfield-scaler", "patch", "resourceclaims/status", "scaler"),
        ("ns:jackfield-scaler", "arbitrary-node:patch", "resourceclaims/driver", "scaler"),
        ("ns:anybody", "patch", "resourceclaims/status", "controllers"),
        ("ns:jackfield-publisher", "list", "nodes", "publisher"),
        ("ns:my-node", "get", "resourceclaims", "node"),
        ("ns:anybody", "delete", "resourceslices", "node"),
    ],
)
def test_the_words_of_a_refusal_lead_to_the_command_that_grants_the_right(
    account: str, verb: str, resource: str, part: str
) -> None:
    words = FORBIDDEN.format(account=account, verb=verb, resource=resource)
    assert remedy(words) == GRANTS.format(part=part, name=account.partition(":")[2])


def test_the_right_to_read_cohdis_settings_is_granted_by_its_own_word() -> None:
    words = FORBIDDEN.format(account="ns:jackfield-operator", verb="get", resource="secrets")
    assert "jackfield rbac --part operator --namespace ns" in remedy(words)
    assert remedy(words).endswith("--service-account jackfield-operator --cohdi | kubectl apply -f -")
    assert "--part controllers" in remedy(FORBIDDEN.format(account="ns:any", verb="get", resource="secrets"))


def test_a_right_that_nothing_of_ours_needs_is_called_that() -> None:
    words = FORBIDDEN.format(account="ns:other", verb="create", resource="pods/exec")
    assert remedy(words) == "no part of Jackfield needs this; is other another's account?"


@pytest.mark.parametrize(
    "words", ["spec.size: must not be negative", 'User "alice" cannot get resource "pods"']
)
def test_a_refusal_that_speaks_of_no_account_has_no_remedy_here(words: str) -> None:
    assert remedy(words) == ""


# --- in the documents


def table() -> str:
    lines = ["| role | group | resource | verbs | what for |", "|---|---|---|---|---|"]
    for role in Role:
        for one in rights(role):
            verbs = ", ".join(f"`{verb}`" for verb in one.verbs)
            place = f" in `{one.namespace}`" if one.namespace else ""
            where = f"{place} (by name)" if one.names else place
            group = f"`{one.group}`" if one.group else "core"
            lines.append(f"| {role} | {group} | `{one.resource}`{where} | {verbs} | {one.why} |")
    return "".join(f"{line}\n" for line in lines)


def test_every_right_is_documented_with_its_reason(golden: Callable[[Path, str], None]) -> None:
    part = re.compile(
        r"(?<=<!-- begin RIGHTS: written by `make golden` -->\n).*?(?=<!-- end RIGHTS -->)", re.DOTALL
    )
    document = Path(__file__).resolve().parents[3] / "docs" / "permissions.md"
    written, count = part.subn(lambda _: table(), document.read_text())
    assert count == 1, "the marks between which the table stands are gone"
    golden(document, written)
