"""Every kind has its columns, whatever its objects lack."""

import msgspec
import pytest

from jackfield.cluster import tables
from jackfield.codec import Raw, RawValue, copied, kinds
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import CLAIM, ComposableResource
from jackfield.model.event import Event
from jackfield.model.meta import Object
from jackfield.model.names import Seconds, rfc3339, rfc3339_micro
from jackfield.model.node import Node
from jackfield.model.taint import DeviceTaintRule

NOW = Seconds(1.8e9)
CREATED = rfc3339(Seconds(NOW - 60))


def kind(name: str, group: str = "") -> kinds.Kind:
    return kinds.Kind(Object, group, "v1", name, f"{name.lower()}s", namespaced=True, has_status=False)


def cells(of: kinds.Kind, **members: RawValue) -> list[RawValue]:
    meta = {"name": "o", "creationTimestamp": CREATED, **members.pop("metadata", {})}
    found: list[RawValue] = tables.table(of, [{"metadata": meta, **members}], NOW)["rows"][0]["cells"]
    return found


# --- columns

COLUMNS = {
    "Namespace": "Name Status Age",
    "Node": "Name Status Roles Age Version (Internal-IP) (External-IP) (OS-Image) (Kernel-Version) (Container-Runtime)",
    "Pod": "Name Ready Status Restarts Age (IP) (Node) (Nominated_Node) (Readiness_Gates)",
    "Event": "Last_Seen Type Reason Object (Subobject) (Source) Message (First_Seen) (Count) (Name)",
    "Lease": "Name Holder Age",
    "DeviceClass": "Name Age",
    "ResourceSlice": "Name Node Driver Pool Age",
    "ResourceClaim": "Name State Age",
    "ResourceClaimTemplate": "Name Age",
    "DeviceTaintRule": "Name Key Value Effect TimeAdded Age",
    "ComposabilityRequest": "Name Type Model Size Node State Age (Policy) (Error)",
    "ComposableResource": "Name Type Model Node State Device Age (UUID) (Claim) (Error)",
}


def spelt(column: Raw) -> str:
    name = str(column["name"]).replace(" ", "_")
    return {0: name, 1: f"({name})"}[column["priority"]]


@pytest.mark.parametrize("of", [one for one in kinds.KINDS if one.kind in COLUMNS], ids=lambda one: one.kind)
def test_a_kind_has_its_columns_and_the_wide_ones_in_their_places(of: kinds.Kind) -> None:
    assert " ".join(spelt(one) for one in tables.columns(of)) == COLUMNS[of.kind]


def test_every_kind_has_a_table_of_its_own() -> None:
    other = tables.columns(kind("Unheard", "of.example.com"))
    assert [one["name"] for one in other] == ["Name", "Created At"]
    assert [one.kind for one in kinds.KINDS if tables.columns(one) == other] in (
        [],
        ["CustomResourceDefinition"],
    )


@pytest.mark.parametrize("of", kinds.KINDS, ids=lambda one: one.kind)
def test_one_column_is_the_name_and_every_column_says_all_that_clients_ask(of: kinds.Kind) -> None:
    columns = tables.columns(of)
    assert [one["name"] for one in columns if one["format"] == "name"] == ["Name"]
    for one in columns:
        assert list(one) == ["name", "type", "format", "description", "priority"]


@pytest.mark.parametrize("of", kinds.KINDS, ids=lambda one: one.kind)
@pytest.mark.parametrize(
    "rest",
    [
        {},
        {"spec": None, "status": None, "data": None, "series": None},
        {"spec": {}, "status": {}},
        {"spec": 5, "status": ["x"], "message": {}, "data": "x"},
        {
            "spec": {"nodeName": 5, "taint": [], "pool": 7},
            "status": {"conditions": {}, "containerStatuses": [5]},
        },
        {"metadata": {"name": "o", "creationTimestamp": 5, "labels": 7, "annotations": None}},
    ],
)
def test_a_row_has_all_its_cells_and_its_name_whatever_the_object_is_like(of: kinds.Kind, rest: Raw) -> None:
    one: Raw = {"metadata": {"name": "o"}, **rest}
    before = copied(one)
    table = tables.table(of, [one], NOW)
    assert one == before
    (row,) = table["rows"]
    assert len(row["cells"]) == len(table["columnDefinitions"])
    assert "o" in row["cells"]
    assert msgspec.json.decode(msgspec.json.encode(table)) == table


def test_a_table_of_nothing_has_columns() -> None:
    table = tables.table(kinds.of(Node), [], NOW)
    assert list(table) == ["kind", "apiVersion", "metadata", "columnDefinitions", "rows"]
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert table["columnDefinitions"] == tables.columns(kinds.of(Node))
    assert table["rows"] == []


def test_a_null_is_nothing_and_takes_nothing_else_away() -> None:
    status = {
        "conditions": [{"type": "Ready", "status": "True", "reason": None}],
        "nodeInfo": None,
        "addresses": None,
    }
    assert cells(kinds.of(Node), status=status)[1] == "Ready"


# --- kinds


@pytest.mark.parametrize(
    ("of", "members", "expected"),
    [
        (kind("Namespace"), {"status": {"phase": "Active"}}, ["o", "Active", "60s"]),
        (kind("ConfigMap"), {}, ["o", 0, "60s"]),
        (kind("ConfigMap"), {"data": {"a": "", "b": ""}, "binaryData": {"c": ""}}, ["o", 3, "60s"]),
        (
            kind("Secret"),
            {"type": "Opaque", "data": {"a": ""}, "stringData": {"b": ""}},
            ["o", "Opaque", 1, "60s"],
        ),
        (kind("ServiceAccount"), {}, ["o", "60s"]),
        (kind("CustomResourceDefinition", "apiextensions.k8s.io"), {}, ["o", CREATED]),
        (kind("Lease", "coordination.k8s.io"), {"spec": {"holderIdentity": "me"}}, ["o", "me", "60s"]),
        (kind("Lease", "coordination.k8s.io"), {}, ["o", "", "60s"]),
    ],
)
def test_small_kinds_say_what_they_hold(of: kinds.Kind, members: Raw, expected: list[RawValue]) -> None:
    assert cells(of, **members) == expected


@pytest.mark.parametrize(
    ("deleted", "status", "state"),
    [
        (False, {}, "pending"),
        (False, {"reservedFor": [{}]}, "pending"),
        (False, {"allocation": {}}, "allocated"),
        (False, {"allocation": {}, "reservedFor": [{}]}, "allocated,reserved"),
        (True, {}, "deleted"),
        (True, {"allocation": {}}, "deleted,allocated"),
        (True, {"allocation": {}, "reservedFor": [{}]}, "deleted,allocated,reserved"),
    ],
)
def test_a_claim_is_pending_until_it_is_allocated(status: Raw, state: str, *, deleted: bool) -> None:
    meta = {"deletionTimestamp": CREATED} if deleted else {}
    assert cells(kinds.of(ResourceClaim), metadata=meta, status=status) == ["o", state, "60s"]


def test_a_taint_rule_tells_since_when_it_taints_if_it_does() -> None:
    taint = {"key": "k", "value": "v", "effect": "NoExecute"}
    rule = kinds.of(DeviceTaintRule)
    assert cells(rule, spec={"taint": taint}) == ["o", "k", "v", "NoExecute", "", "60s"]
    added = {**taint, "timeAdded": rfc3339(Seconds(NOW - 3))}
    assert cells(rule, spec={"taint": added}) == ["o", "k", "v", "NoExecute", "3s", "60s"]


ROLE = "node-role.kubernetes.io/"


@pytest.mark.parametrize(
    ("ready", "cordoned", "status"),
    [
        ([], False, "Unknown"),
        ([], True, "Unknown,SchedulingDisabled"),
        (["True"], False, "Ready"),
        (["True"], True, "Ready,SchedulingDisabled"),
        (["False"], False, "NotReady"),
        (["Unknown"], True, "NotReady,SchedulingDisabled"),
        (["False", "True"], False, "Ready"),
    ],
)
def test_a_node_is_ready_or_not_and_cordoned_or_not(ready: list[str], status: str, *, cordoned: bool) -> None:
    conditions = [
        {"type": "DiskPressure", "status": "True"},
        *({"type": "Ready", "status": one} for one in ready),
    ]
    found = cells(kinds.of(Node), spec={"unschedulable": cordoned}, status={"conditions": conditions})
    assert found[1] == status


@pytest.mark.parametrize(
    ("labels", "roles"),
    [
        ({}, "<none>"),
        ({f"{ROLE}": "x", "kubernetes.io/role": ""}, "<none>"),
        ({f"{ROLE}worker": ""}, "worker"),
        ({f"{ROLE}z": "", "kubernetes.io/role": "m", f"{ROLE}a": "x", f"{ROLE}m": ""}, "a,m,z"),
    ],
)
def test_a_nodes_roles_are_its_labels_in_order(labels: Raw, roles: str) -> None:
    assert cells(kinds.of(Node), metadata={"labels": labels})[2] == roles


@pytest.mark.parametrize(
    ("info", "addresses", "wide"),
    [
        ({}, [], ["", "<none>", "<none>", "<unknown>", "<unknown>", "<unknown>"]),
        (
            {
                "kubeletVersion": "v1",
                "osImage": "os",
                "kernelVersion": "6",
                "architecture": "arm64",
                "containerRuntimeVersion": "c",
            },
            [("Hostname", "h"), ("InternalIP", "1"), ("InternalIP", "2"), ("ExternalIP", "3")],
            ["v1", "1", "3", "os", "6 (arm64)", "c"],
        ),
        (
            {"architecture": "arm64"},
            [],
            ["", "<none>", "<none>", "<unknown>", "<unknown> (arm64)", "<unknown>"],
        ),
    ],
)
def test_a_node_tells_its_addresses_and_what_it_runs(
    info: Raw, addresses: list[tuple[str, str]], wide: list[str]
) -> None:
    status = {"nodeInfo": info, "addresses": [{"type": of, "address": one} for of, one in addresses]}
    assert cells(kinds.of(Node), status=status)[4:] == wide


# --- events

OLD: Raw = {
    "firstTimestamp": rfc3339(Seconds(NOW - 90)),
    "lastTimestamp": rfc3339(Seconds(NOW - 30)),
    "count": 4,
}
TIMED: Raw = {"eventTime": rfc3339_micro(Seconds(NOW - 50))}
SERIES: Raw = {"series": {"count": 7, "lastObservedTime": rfc3339_micro(Seconds(NOW - 5))}}


@pytest.mark.parametrize(
    ("event", "last", "first", "count"),
    [
        ({}, "<unknown>", "<unknown>", 1),
        (OLD, "30s", "90s", 4),
        ({"firstTimestamp": OLD["firstTimestamp"], "lastTimestamp": None}, "90s", "90s", 1),
        ({"firstTimestamp": None, "lastTimestamp": OLD["lastTimestamp"]}, "30s", "<unknown>", 1),
        (TIMED, "50s", "50s", 1),
        ({**TIMED, **SERIES}, "5s", "50s", 7),
        ({**OLD, **TIMED, **SERIES}, "5s", "90s", 7),
        ({**OLD, "series": {}}, "<unknown>", "90s", 0),
    ],
)
def test_an_event_was_seen_first_and_last_as_its_writer_says_it(
    event: Raw, last: str, first: str, count: int
) -> None:
    found = cells(kinds.of(Event), **event)
    assert (found[0], found[7], found[8]) == (last, first, count)


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({}, ["", "", "", "", "", ""]),
        (
            {
                "type": "Normal",
                "reason": "R",
                "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "f"},
            },
            ["Normal", "R", "pod/p", "f", "", ""],
        ),
        ({"involvedObject": {"kind": "ResourceClaim"}}, ["", "", "resourceclaim", "", "", ""]),
        ({"source": {"component": "c"}, "message": " \n a\n b\u2003\n"}, ["", "", "", "", "c", "a\n b"]),
        ({"source": {"component": "c", "host": "h"}, "message": "\x1ca"}, ["", "", "", "", "c, h", "\x1ca"]),
        ({"reportingComponent": "r", "reportingInstance": "i"}, ["", "", "", "", "r, i", ""]),
        ({"source": {"host": "h"}, "reportingComponent": "r"}, ["", "", "", "", "r, h", ""]),
        (
            {"source": {"component": "c", "host": "h"}, "reportingComponent": "r", "reportingInstance": "i"},
            ["", "", "", "", "c, h", ""],
        ),
    ],
)
def test_an_event_tells_what_happened_to_what_and_who_says_so(event: Raw, expected: list[str]) -> None:
    assert cells(kinds.of(Event), **event)[1:7] == expected


# --- our own kinds


def test_a_resource_of_ours_is_shown_as_its_definition_says() -> None:
    found = cells(
        kinds.of(ComposableResource),
        metadata={"annotations": {CLAIM: "ns/c"}},
        spec={"type": "gpu", "model": "A100", "target_node": "n1"},
        status={"state": "Online", "device_id": "GPU-1"},
    )
    assert found == ["o", "gpu", "A100", "n1", "Online", None, "60s", "GPU-1", "ns/c", None]
