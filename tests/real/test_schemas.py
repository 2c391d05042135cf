"""What the embedded API knows of types, resources and mistakes is what a real API server says."""

import http.client
import json
import random
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from importlib import resources
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest
import yaml

from jackfield.cluster import discovery, openapi, schema
from jackfield.cluster.schema import doubles, library
from jackfield.cluster.schema.node import Node
from jackfield.codec import Raw, RawValue
from jackfield.codec.definitions import definitions
from jackfield.codec.kinds import KINDS, Kind
from jackfield.testing.control_plane import ControlPlane, Settings
from real.waiting import comes_true

ROOT = Path(__file__).resolve().parents[2]
RULES_ON = Settings(
    feature_gates=("DRADeviceTaintRules=true",),
    apiserver_flags=("--runtime-config=resource.k8s.io/v1beta2=true",),
)
BODIES = 1000
PATHS = sorted(openapi.index()["paths"])
OURS = "apis/cro.hpsys.ibm.ie.com/v1alpha1"
UNSAID = ("description", "x-kubernetes-unions", "x-kubernetes-selectable-fields")
META = "io.k8s.apimachinery.pkg.apis.meta.v1"


@pytest.fixture(scope="module")
def server() -> Iterator[ControlPlane]:
    """A control plane that serves all our kinds."""
    with ControlPlane(RULES_ON) as started:
        started.kubectl("apply", "--filename=-", text=yaml.safe_dump_all(definitions()))
        assert comes_true(lambda: OURS in asked(started, "/openapi/v3")["paths"])
        yield started


def asked(plane: ControlPlane, path: str) -> Raw:
    with plane.api() as api:
        return api.request("GET", path)


def test_the_file_is_what_the_tool_makes(server: ControlPlane) -> None:
    tool = [sys.executable, str(ROOT / "tools" / "schemas"), str(server.kubeconfig), "-"]
    made = subprocess.run(tool, check=True, capture_output=True, text=True).stdout
    assert made == resources.files("jackfield.cluster.schema").joinpath(library.FILE).read_text("utf-8")


def bare(value: RawValue) -> RawValue:
    """Return a schema without descriptions, and with one spelling for references."""
    if isinstance(value, list):
        return [bare(one) for one in value]
    match value:
        case {"allOf": [{"$ref": ref}], **rest}:
            return {"$ref": ref, **bare(rest)}
        case dict():
            return {
                name: {key: bare(one) for key, one in part.items()} if name == "properties" else bare(part)
                for name, part in value.items()
                if name not in UNSAID
            }
        case _:
            return value


@pytest.mark.parametrize("path", PATHS)
def test_types_are_those_of_the_server(server: ControlPlane, path: str) -> None:
    theirs = asked(server, f"/openapi/v3/{path}")["components"]["schemas"]
    document = openapi.document(path)
    assert document is not None
    for name, one in document["components"]["schemas"].items():
        # Lists are all alike, and DeleteOptions belong to every group.
        if not name.endswith("List") and name != f"{META}.DeleteOptions":
            assert bare(one) == bare(theirs[name]), name


@pytest.mark.parametrize("path", discovery.prefixes())
def test_resources_are_those_of_the_server(server: ControlPlane, path: str) -> None:
    theirs = asked(server, path)
    mine = discovery.document(path)
    assert mine is not None
    listed = [one["name"] for one in mine["resources"]]
    shown = [one for one in theirs["resources"] if one["name"] in listed]
    if path == f"/{OURS}":  # the server lists what is defined by others in no order of its own
        shown.sort(key=lambda one: listed.index(one["name"]))
    assert mine["resources"] == shown
    assert {**mine, "resources": []} == {**theirs, "resources": []}


def test_groups_are_those_of_the_server_in_its_order(server: ControlPlane) -> None:
    mine = discovery.groups()["groups"]
    names = [one["name"] for one in mine]
    theirs = asked(server, "/apis")["groups"]
    assert mine == [one for one in theirs if one["name"] in names]


@pytest.mark.parametrize("plural", ["composabilityrequests", "composableresources"])
def test_kubectl_explains_our_kinds_as_documented(server: ControlPlane, plural: str) -> None:
    assert "-required-" in server.kubectl("explain", f"{plural}.spec", "--recursive")
    schemas = openapi.document(OURS)
    assert schemas is not None
    said = server.kubectl("explain", f"{plural}.spec")
    kind = next(one for one in KINDS if one.plural == plural)
    name = f"com.ie.ibm.hpsys.cro.v1alpha1.{kind.kind}"
    assert schemas["components"]["schemas"][name]["properties"]["spec"]["description"] in said


# --- mistakes


VALUES: list[RawValue] = [
    *("x", "", "2020-01-01T00:00:00Z", "2020-13-01T00:00:00.000000Z", "1Gi", "1x", "YWJj", "YQ", 'é\n"'),
    *(True, None, 7, -1, 0, 3.5, 2**31, 10**11),
    *({}, {"a": 1}, {"a": "b"}, {"a": None}, [], ["x"], [1], [{}], [None], [[1]], [True]),
]
STRANGE = ("zz", "Spec", "metadataa", "b.c", 'q"x', "ü", "\n")
SAMPLES: dict[str, RawValue] = {
    "string": "x",
    "integer": 1,
    "boolean": True,
    "number": 1,
    "quantity": "1",
    "int-or-string": 1,
    "any": {},
}
DEPTH_MAX = 7


def some(dice: random.Random, node: Node, wrong: float, depth: int = 0) -> str:
    """Return a JSON text that is mostly right, with fields that are unknown or stand twice."""
    if dice.random() < wrong:
        return json.dumps(dice.choice(VALUES))
    if node.type == "array" and node.items is not None:
        return f"[{','.join(some(dice, node.items, wrong, depth + 1) for _ in range(dice.randint(0, 2)))}]"
    if node.type != "object":
        return "null" if node.format == "date-time" else json.dumps(SAMPLES[node.type])
    names = ("a", "b") if node.is_map else tuple(node.members)
    pairs = [strange_or(dice, node, names, wrong, depth) for _ in range(dice.randint(0, 3)) if names]
    return f"{{{','.join(pairs if depth < DEPTH_MAX else ())}}}"


def strange_or(dice: random.Random, node: Node, names: tuple[str, ...], wrong: float, depth: int) -> str:
    name = dice.choice(STRANGE) if dice.random() < 0.08 and not node.is_map else dice.choice(names)
    member = node.member(name)
    value = json.dumps(dice.choice(VALUES)) if member is None else some(dice, member, wrong, depth + 1)
    return f"{json.dumps(name)}:{value}"


def body(dice: random.Random, kind: Kind) -> bytes:
    node = schema.of(kind)
    assert node is not None
    names = [one for one in node.members if one not in ("apiVersion", "kind")]
    wrong = dice.choice((0, 0.01, 0.1))
    parts = [strange_or(dice, node, tuple(names), wrong, 0) for _ in range(dice.randint(1, 3))]
    return f'{{"apiVersion":"{kind.api_version}","kind":"{kind.kind}",{",".join(parts)}}}'.encode()


def mine(kind: Kind, content: bytes) -> str:
    raw: Raw = doubles.parsed(content)
    wrong = schema.strict.mismatch_in(kind, raw)
    found = schema.strict.errors(kind, content)
    words = wrong or (f"strict decoding error: {', '.join(found)}" if found else "")
    return (
        f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {words}'
        if words
        else ""
    )


def theirs(connection: http.client.HTTPSConnection, token: str, kind: Kind, content: bytes) -> str:
    prefix = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
    space = "/namespaces/default" if kind.namespaced else ""
    path = f"{prefix}{space}/{kind.plural}?dryRun=All&fieldValidation=Strict"
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection.request("POST", path, content, headers)
    said: Raw = msgspec.json.decode(connection.getresponse().read())
    words = str(said.get("message", ""))
    return words if "cannot be handled as a" in words else ""


def test_odd_bodies_are_refused_in_the_words_of_the_server(server: ControlPlane) -> None:
    dice = random.Random(1)  # noqa: S311 - the same bodies every time
    context = ssl.create_default_context(cafile=str(server.certificate_authority))
    address = urlsplit(server.server)
    link = http.client.HTTPSConnection(str(address.hostname), address.port, context=context, timeout=10)
    refused = 0
    with closing(link):
        for _ in range(BODIES):
            kind = dice.choice(KINDS)
            content = body(dice, kind)
            said = theirs(link, server.token(), kind, content)
            assert mine(kind, content) == said, content
            refused += bool(said)
    assert BODIES / 4 < refused < BODIES
