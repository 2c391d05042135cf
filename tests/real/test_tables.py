"""Our tables are those of a real API server: same columns, same cells, for the same objects at the same moment."""

import ssl
import time
import urllib.request
from collections.abc import Iterator

import msgspec
import pytest

from jackfield.cluster import tables
from jackfield.cluster.tables import custom
from jackfield.codec import Raw, kinds
from jackfield.codec.definitions import definitions
from jackfield.model.meta import Object
from jackfield.model.names import Seconds
from jackfield.testing.control_plane import ControlPlane, Settings
from jackfield.testing.control_plane.api import Api
from real import table_objects as made
from real.accounts import put
from real.waiting import comes_true

TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
MERGE = "application/merge-patch+json"
SPACE = "tables"
CORE = f"/api/v1/namespaces/{SPACE}"
DEVICES = "/apis/resource.k8s.io/v1"
TICK_SECONDS = 0.25


# --- the cluster


SETTINGS = Settings(
    feature_gates=("DRADeviceTaintRules=true",),
    apiserver_flags=("--runtime-config=resource.k8s.io/v1beta2=true",),
)


@pytest.fixture(scope="module")
def exhibition() -> Iterator[ControlPlane]:
    """A cluster of its own, which has taint rules, with objects in all states."""
    with ControlPlane(SETTINGS) as plane:
        put(plane, *definitions(), made.definition())
        with plane.api() as api:
            for name in (SPACE, "tables-ending"):
                api.request("POST", "/api/v1/namespaces", made.new("v1", "Namespace", name))
            assert comes_true(lambda: api.status(f"{CORE}/serviceaccounts/default")[0] == 200)
            _nodes_and_pods(api)
            _small_things(api)
            _devices(api)
            assert comes_true(lambda: api.status(f"/apis/{made.GROUP}/v1/{made.PLURAL}")[0] == 200)
            _custom_resources(api)
        yield plane


def _nodes_and_pods(api: Api) -> None:
    for node in made.nodes():
        api.request("POST", "/api/v1/nodes", node)
    pods = made.Pods()
    for number in range(made.PODS):
        pod, status = pods.one(f"p{number}")
        api.request("POST", f"{CORE}/pods", pod)
        if number:  # one stays as it was born
            api.request("PATCH", f"{CORE}/pods/p{number}/status", {"status": status}, MERGE)
        if number % 5 == 0:
            api.request("DELETE", f"{CORE}/pods/p{number}")


def _small_things(api: Api) -> None:
    for event in made.events(SPACE):
        api.request("POST", f"{CORE}/events", event)
    held = {"finalizers": made.HOLD}
    for name, said in made.MAPS.items():
        api.request("POST", f"{CORE}/configmaps", made.new("v1", "ConfigMap", f"m-{name}", **said))
    for name, said in made.SECRETS.items():
        api.request("POST", f"{CORE}/secrets", made.new("v1", "Secret", f"s-{name}", **said))
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{SPACE}/leases"
    for name, spec in {"held": {"holderIdentity": "me"}, "free": {}}.items():
        api.request("POST", leases, made.new("coordination.k8s.io/v1", "Lease", name, spec=spec))
    ending = made.new("v1", "ConfigMap", "kept", metadata=held)
    api.request("POST", "/api/v1/namespaces/tables-ending/configmaps", ending)
    api.request("DELETE", "/api/v1/namespaces/tables-ending")


def _devices(api: Api) -> None:
    claims = f"{DEVICES}/namespaces/{SPACE}/resourceclaims"
    for name, status in made.CLAIMS.items():
        for deleted in (False, True):
            path = f"{claims}/{name}{'-deleted' if deleted else ''}"
            api.request("POST", claims, made.claim(path.rpartition("/")[2]))
            if status:
                api.request("PATCH", f"{path}/status", {"status": status}, MERGE)
            if deleted:
                api.request("DELETE", path)
    template = made.new(made.RESOURCE, "ResourceClaimTemplate", "t", spec={"spec": made.REQUESTS})
    api.request("POST", f"{DEVICES}/namespaces/{SPACE}/resourceclaimtemplates", template)
    api.request("POST", f"{DEVICES}/deviceclasses", made.new(made.RESOURCE, "DeviceClass", "c", spec={}))
    for one in made.slices():
        api.request("POST", f"{DEVICES}/resourceslices", one)
    for one in made.taint_rules():
        api.request("POST", "/apis/resource.k8s.io/v1beta2/devicetaintrules", one)


def _custom_resources(api: Api) -> None:
    now = Seconds(time.time())  # noqa: TID251 - the server's clock is this machine's
    for one in (*made.exhibits(), *made.aged(now)):
        api.request("POST", f"/apis/{made.GROUP}/v1/{made.PLURAL}", one)
    for plural, one, status in made.compositions():
        home = f"/apis/cro.hpsys.ibm.ie.com/v1alpha1/{plural}"
        api.request("POST", home, one)
        if status:
            api.request("PATCH", f"{home}/{one['metadata']['name']}/status", {"status": status}, MERGE)


# --- comparing


class Shown(msgspec.Struct):
    """A table of the real server, whose rows bring their objects, and when it was made."""

    table: Raw
    since: float
    until: float

    @property
    def objects(self) -> list[Raw]:
        return [row["object"] for row in self.table["rows"]]

    @property
    def head(self) -> list[Raw]:
        return [{**one, "description": ""} for one in self.table["columnDefinitions"]]

    @property
    def moments(self) -> list[Seconds]:
        """Times so close together that no age between them is left out."""
        count = int((self.until - self.since) / TICK_SECONDS) + 1
        return [Seconds(self.since + one * (self.until - self.since) / count) for one in range(count + 1)]


def shown(plane: ControlPlane, path: str) -> Shown:
    context = ssl.create_default_context(cafile=str(plane.certificate_authority))
    headers = {"Authorization": f"Bearer {plane.token()}", "Accept": TABLE}
    address = f"{plane.server}{path}?includeObject=Object"
    request = urllib.request.Request(address, headers=headers)  # noqa: S310 - https
    since = time.time()  # noqa: TID251
    with urllib.request.urlopen(request, context=context) as answer:  # noqa: S310
        body = answer.read()
    return Shown(msgspec.json.decode(body, type=Raw), since, time.time())  # noqa: TID251


def conditions(row: Raw) -> list[Raw]:
    """Return the conditions of a row without their messages, which nobody shows."""
    return [{k: v for k, v in one.items() if k != "message"} for one in row.get("conditions", [])]


def differences(real: Shown, ours: list[Raw]) -> list[str]:
    """Return what differs: each cell must be as ours was at one of the moments."""
    found = []
    for number, row in enumerate(real.table["rows"]):
        printed = [one["rows"][number] for one in ours]
        choices = zip(*(one["cells"] for one in printed), strict=True)
        for column, cell, choice in zip(real.head, row["cells"], choices, strict=True):
            if not any(type(one) is type(cell) and one == cell for one in choice):
                found.append(
                    f"{row['object']['metadata']['name']} {column['name']}: {cell!r}, ours {choice[0]!r}"
                )
        if conditions(row) != printed[0].get("conditions", []):
            found.append(f"{row['object']['metadata']['name']}: {row.get('conditions')}")
    return found


def kind(api_version: str, name: str, plural: str) -> kinds.Kind:
    group, _, version = api_version.rpartition("/")
    known = kinds.by_kind(api_version, name)
    return known or kinds.Kind(Object, group, version, name, plural, namespaced=True, has_status=False)


# --- tests

LISTS = [
    ("v1", "Namespace", "/api/v1/namespaces", 6),
    ("v1", "Node", "/api/v1/nodes", 10),
    ("v1", "Pod", f"{CORE}/pods", made.PODS),
    ("v1", "Event", f"{CORE}/events", 10),
    ("v1", "ConfigMap", f"{CORE}/configmaps", 3),
    ("v1", "Secret", f"{CORE}/secrets", 2),
    ("v1", "ServiceAccount", f"{CORE}/serviceaccounts", 1),
    ("coordination.k8s.io/v1", "Lease", "/apis/coordination.k8s.io/v1/leases", 2),
    (made.RESOURCE, "DeviceClass", f"{DEVICES}/deviceclasses", 1),
    (made.RESOURCE, "ResourceSlice", f"{DEVICES}/resourceslices", 3),
    (made.RESOURCE, "ResourceClaim", f"{DEVICES}/resourceclaims", 6),
    (made.RESOURCE, "ResourceClaimTemplate", f"{DEVICES}/resourceclaimtemplates", 1),
    ("resource.k8s.io/v1beta2", "DeviceTaintRule", "/apis/resource.k8s.io/v1beta2/devicetaintrules", 2),
    (
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        3,
    ),
    *(
        (
            f"{one['spec']['group']}/{one['spec']['versions'][0]['name']}",
            one["spec"]["names"]["kind"],
            f"/apis/{one['spec']['group']}/v1alpha1/{one['spec']['names']['plural']}",
            2,
        )
        for one in definitions()
    ),
]


@pytest.mark.parametrize(("version", "name", "path", "least"), LISTS, ids=[one[1] for one in LISTS])
def test_a_table_is_the_real_one(
    exhibition: ControlPlane, version: str, name: str, path: str, least: int
) -> None:
    real = shown(exhibition, path)
    of = kind(version, name, path.rpartition("/")[2])
    assert len(real.objects) >= least
    assert tables.columns(of) == real.head
    ours = [tables.table(of, real.objects, now) for now in real.moments]
    assert {one["columnDefinitions"] == real.head for one in ours} == {True}
    assert differences(real, ours) == []
    assert {key: real.table[key] for key in ("kind", "apiVersion")} == {
        key: ours[0][key] for key in ("kind", "apiVersion")
    }


@pytest.mark.parametrize(("version", "columns"), [("v1", made.COLUMNS), ("v1alpha1", [])])
def test_a_custom_table_is_the_real_one(exhibition: ControlPlane, version: str, columns: list[Raw]) -> None:
    real = shown(exhibition, f"/apis/{made.GROUP}/{version}/{made.PLURAL}")
    printer = custom.printer(columns)
    assert len(real.objects) > len(made.EXHIBITS)
    assert printer.head == real.head
    ours: list[Raw] = [{"rows": [printer.row(one, now) for one in real.objects]} for now in real.moments]
    assert differences(real, ours) == []
