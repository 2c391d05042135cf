"""What a real API server says in protobuf we read as it says it in JSON, whatever the object."""

import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import msgspec
import pytest

from jackfield.cluster.face import protobuf
from jackfield.codec import Raw, RawValue
from jackfield.testing.control_plane import ControlPlane
from real import table_objects as made
from real.waiting import comes_true

CORE = "/api/v1/namespaces/default"
DEVICES = "/apis/resource.k8s.io/v1"
MERGE = "application/merge-patch+json"
PODS = 40


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    """A cluster of its own with objects in many states."""
    with ControlPlane() as plane:
        with plane.api() as api:
            assert comes_true(lambda: api.status(f"{CORE}/serviceaccounts/default")[0] == 200)
            for node in made.nodes():
                api.request("POST", "/api/v1/nodes", node)
            pods = made.Pods()
            for number in range(PODS):
                pod, status = pods.one(f"p{number}")
                api.request("POST", f"{CORE}/pods", pod)
                api.request("PATCH", f"{CORE}/pods/p{number}/status", {"status": status}, MERGE)
            for event in made.events("default"):
                api.request("POST", f"{CORE}/events", event)
            for name, said in made.MAPS.items():
                api.request("POST", f"{CORE}/configmaps", made.new("v1", "ConfigMap", f"m-{name}", **said))
            for name, said in made.SECRETS.items():
                api.request("POST", f"{CORE}/secrets", made.new("v1", "Secret", f"s-{name}", **said))
            for name, status in made.CLAIMS.items():
                claims = f"{DEVICES}/namespaces/default/resourceclaims"
                api.request("POST", claims, made.claim(name))
                if status:
                    api.request("PATCH", f"{claims}/{name}/status", {"status": status}, MERGE)
            for one in made.slices():
                api.request("POST", f"{DEVICES}/resourceslices", one)
        yield plane


def asked(plane: ControlPlane, path: str, accept: str) -> bytes:
    context = ssl.create_default_context(cafile=str(plane.certificate_authority))
    headers = {"Authorization": f"Bearer {plane.token()}", "Accept": accept}
    request = urllib.request.Request(f"{plane.server}{path}", headers=headers)  # noqa: S310 - https
    with urllib.request.urlopen(request, context=context) as answer:  # noqa: S310
        body: bytes = answer.read()
        return body


def said(value: RawValue) -> RawValue:
    """Return a value without what says nothing: null, and objects without members."""
    if isinstance(value, list):
        return [said(one) for one in value]
    if not isinstance(value, dict):
        return value
    members = {name: said(one) for name, one in value.items()}
    return {name: one for name, one in members.items() if one is not None and one != {}}


@pytest.mark.parametrize(
    ("home", "plural", "least"),
    [
        ("/api/v1", "pods", PODS),
        ("/api/v1", "nodes", 10),
        ("/api/v1", "namespaces", 4),
        ("/api/v1", "configmaps", 5),
        ("/api/v1", "secrets", 2),
        ("/api/v1", "serviceaccounts", 10),
        ("/api/v1", "events", 10),
        (DEVICES, "resourceclaims", 3),
        (DEVICES, "resourceslices", 3),
    ],
)
def test_protobuf_is_read_as_json_is(cluster: ControlPlane, home: str, plural: str, least: int) -> None:
    listed = msgspec.json.decode(asked(cluster, f"{home}/{plural}", "application/json"), type=Raw)
    assert len(listed["items"]) >= least
    for one in listed["items"]:
        metadata = one["metadata"]
        place = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
        path = f"{home}{place}/{plural}/{metadata['name']}"
        whole = msgspec.json.decode(asked(cluster, path, "application/json"), type=Raw)
        assert said(protobuf.object_of(asked(cluster, path, "application/vnd.kubernetes.protobuf"))) == said(
            whole
        )


def test_the_numbers_of_fields_are_those_of_go() -> None:
    root = Path(__file__).resolve().parents[2]
    written = subprocess.run(
        [sys.executable, root / "tools" / "protobuf", "-"], capture_output=True, text=True, check=True
    )
    assert written.stdout == resources.files(protobuf.__package__).joinpath(protobuf.FILE).read_text()
