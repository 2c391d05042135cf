"""The image that Jackfield runs in, assembled without a registry, is taken by containerd and has all that it needs."""

import json
import tarfile
from pathlib import Path

import pytest

from jackfield import __version__
from jackfield.testing.control_plane import ControlPlane, RealNode
from real.pods import create, delete, pod, said

pytestmark = [pytest.mark.node, pytest.mark.image]

IMAGE = f"jackfield.dev/jackfield:{__version__}"
IMPORTS = """
import ctypes, importlib.util, os, sqlite3, ssl
assert os.path.exists(importlib.util.find_spec("grpc").cached), "its byte code is for another Python"
import grpc.aio, google.protobuf, prometheus_client
import jackfield.cli.node, jackfield.driver, jackfield.kube.client
assert ssl.create_default_context().cert_store_stats()["x509_ca"] > 50
print("all there")
"""

ASKS = """
import os, ssl, urllib.request
account = "/var/run/secrets/kubernetes.io/serviceaccount"
server = "https://{KUBERNETES_SERVICE_HOST}:{KUBERNETES_SERVICE_PORT}".format(**os.environ)
whole = urllib.request.Request(server + "/apis/resource.k8s.io/v1")
whole.add_header("Authorization", "Bearer " + open(account + "/token").read())
trusted = ssl.create_default_context(cafile=account + "/ca.crt")
print(urllib.request.urlopen(whole, context=trusted).status)
"""


@pytest.fixture(scope="module")
def node_with_image(node: RealNode, image: Path) -> RealNode:
    node.import_image(image)
    return node


def test_a_pod_of_the_image_runs_jackfield(plane: ControlPlane, node_with_image: RealNode) -> None:
    made = pod("version", image=IMAGE)
    made["spec"]["containers"][0]["args"] = ["--version"]
    create(plane, made)
    assert said(plane, node_with_image, "version") == f"jackfield {__version__}\n"
    delete(plane, "version")


def test_the_image_has_all_that_a_driver_imports(plane: ControlPlane, node_with_image: RealNode) -> None:
    create(plane, pod("imports", "/usr/bin/python3", "-c", IMPORTS, image=IMAGE))
    assert said(plane, node_with_image, "imports") == "all there\n"
    delete(plane, "imports")


def test_a_pod_asks_the_api_server_by_its_service_account(
    plane: ControlPlane, node_with_image: RealNode
) -> None:
    made = pod("asks", "/usr/bin/python3", "-c", ASKS, image=IMAGE)
    made["spec"]["containers"][0]["env"] = node_with_image.environment
    create(plane, made)
    assert said(plane, node_with_image, "asks") == "200\n"
    delete(plane, "asks")


def layers(image: Path) -> list[list[tarfile.TarInfo]]:
    """Return what is in each layer of an image."""
    with tarfile.open(image) as archive:
        manifest = archive.extractfile("manifest.json")
        assert manifest
        paths = json.load(manifest)[0]["Layers"]
        found = []
        for path in paths:
            with tarfile.open(fileobj=archive.extractfile(path)) as layer:
                found.append(layer.getmembers())
    return found


def test_nothing_of_the_machine_that_assembled_it_is_in_the_image(image: Path) -> None:
    members = [one for layer in layers(image) for one in layer]
    assert {(one.uid, one.gid, one.uname, one.gname) for one in members} == {(0, 0, "", "")}
    assert len({one.mtime for one in members}) == 1
    assert [one.name for one in members if one.mode & 0o6022 and not one.issym() and one.name != "tmp"] == []
    assert [one.name for one in members if one.name.endswith(("direct_url.json", "dist-packages/bin"))] == []
