"""The chart renders what a real API server takes, whatever it is told; and refuses in words what makes no sense."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import msgspec
import pytest
import yaml

from jackfield import __version__
from jackfield.cli.main import main
from jackfield.codec import Raw
from jackfield.kube.permissions import Account, Part, admission, manifests
from jackfield.model import cohdi
from jackfield.testing.control_plane import ControlPlane, Snapshot
from real.accounts import put
from real.chart_values import BAD, EVERYTHING, GOOD, LAB
from real.helm import CHART, NAMESPACE, ROOT, HelmError, helm, of, rendered

RIGHTS = {
    "ServiceAccount",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
}
MANIFESTS = ROOT / "deploy" / "jackfield.yaml"
SPACES = (NAMESPACE, "jackfield-node", "jackfield-controllers")
COHDIS = (cohdi.DRIVER_NAMESPACE, cohdi.OPERATOR_NAMESPACE)
each_of_the_good = pytest.mark.parametrize("values", GOOD.values(), ids=GOOD)

Golden = Callable[[Path, str], None]


def space(name: str, **labels: str) -> Raw:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def others(plural: str, kind: str) -> Raw:
    """The definition of a kind of the Prometheus operator's, as far as the chart uses it."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.monitoring.coreos.com"},
        "spec": {
            "group": "monitoring.coreos.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [version],
        },
    }


@pytest.fixture(scope="module")
def prepared(plane: ControlPlane, empty: Snapshot) -> Iterator[ControlPlane]:
    """A cluster with the namespaces and definitions that objects of the chart stand on."""
    assert empty.path.exists(), "what was there before is what others come back to"
    definitions = (others("servicemonitors", "ServiceMonitor"), others("prometheusrules", "PrometheusRule"))
    strict = space("restricted", **{"pod-security.kubernetes.io/enforce": "restricted"})
    put(plane, *(space(name) for name in (*SPACES, *COHDIS)), strict, *definitions)
    plane.kubectl(
        "wait", "--for=condition=Established", "crd", *(one["metadata"]["name"] for one in definitions)
    )
    yield plane
    plane.kubectl("delete", "crd", *(one["metadata"]["name"] for one in definitions))


def takes(plane: ControlPlane, *objects: Raw) -> list[str]:
    """What the API server says to objects that it is asked about; it raises an error where it would not take one."""
    words = ("apply", "--server-side", "--dry-run=server", "--validate=strict", "--filename=-")
    return plane.kubectl(*words, text=yaml.safe_dump_all(objects)).splitlines()


# --- rendering


@each_of_the_good
def test_the_chart_has_no_fault_that_lint_finds(values: Raw) -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART), values=values)


@each_of_the_good
def test_each_object_is_accepted_by_a_real_api_server(prepared: ControlPlane, values: Raw) -> None:
    objects = rendered(values)
    assert len(takes(prepared, *objects)) == len(objects)


def test_the_objects_that_the_page_about_installing_shows_are_accepted(prepared: ControlPlane) -> None:
    page = (ROOT / "docs" / "install.md").read_text()
    shown = re.findall(r"^```yaml\n(apiVersion.*?)^```", page, re.DOTALL | re.MULTILINE)
    objects = [one for text in shown for one in yaml.safe_load_all(text)]
    assert len(takes(prepared, *objects)) == len(objects) > 1


@each_of_the_good
def test_every_argument_is_an_option_of_the_command(values: Raw) -> None:
    for pod in pods(rendered(values)):
        for container in pod["spec"]["containers"]:
            command: click.Command = main
            words: list[str] = container["args"]
            while isinstance(command, click.Group):
                command, words = command.commands[words[0]], words[1:]
            environment = ["--node-name=n"] if command.name == "node" else []
            command.make_context(command.name, [*words, *environment])


@pytest.mark.parametrize(("values", "words"), [one[1:] for one in BAD], ids=[one[0] for one in BAD])
def test_the_schema_refuses_bad_values_with_a_clear_message(values: Raw, words: str) -> None:
    with pytest.raises(HelmError) as refused:
        rendered(values)
    assert words in str(refused.value)


def test_the_chart_is_of_the_release_that_it_installs() -> None:
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert about["appVersion"] == __version__
    (container,) = of(rendered(), "Deployment", "jackfield-controllers")["spec"]["template"]["spec"][
        "containers"
    ]
    assert container["image"] == f"jackfield.dev/jackfield:{__version__}"


def test_the_manifests_for_kubectl_are_rendered_from_the_chart(golden: Golden) -> None:
    run = helm("template", "jackfield", str(CHART), f"--namespace={NAMESPACE}")
    spaced = space(NAMESPACE, **{"pod-security.kubernetes.io/enforce": "privileged"})
    head = "# Written by `make manifests` from charts/jackfield, with no values: docs/install.md says how to use it.\n"
    golden(MANIFESTS, f"{head}---\n{yaml.safe_dump(spaced, sort_keys=False)}{run}")


def test_the_manifests_for_kubectl_begin_with_the_namespaces_that_the_others_are_in() -> None:
    kinds = [one["kind"] for one in yaml.safe_load_all(MANIFESTS.read_text())]
    assert kinds[: len(SPACES)] == ["Namespace"] * len(SPACES)


# --- what is promised of the objects


def pods(objects: list[Raw]) -> list[Raw]:
    """The pods that the objects would make."""
    return [
        one["spec"]["template"]
        for one in objects
        if one["kind"] in {"Deployment", "DaemonSet", "StatefulSet"}
    ]


@pytest.mark.parametrize(
    ("values", "drivers", "takes_over"),
    [
        (
            {"policy": {"models": EVERYTHING["policy"]["models"]}},
            ("fabric.jackfield.dev", "gpu.nvidia.com"),
            False,
        ),
        (GOOD["CoHDI's settings"], ("gpu.example.com", "gpu.nvidia.com"), True),
    ],
    ids=["a policy", "CoHDI's settings"],
)
def test_the_charts_rights_are_those_that_jackfield_rbac_prints(
    values: Raw, drivers: tuple[str, ...], *, takes_over: bool
) -> None:
    found = [one for one in rendered(values) if one["kind"] in RIGHTS]
    for one in found:
        del one["metadata"]["labels"]
    controllers, node = (Account(NAMESPACE, f"jackfield-{part}") for part in (Part.CONTROLLERS, Part.NODE))
    wanted = (
        *manifests(Part.CONTROLLERS, controllers, drivers, cohdi=takes_over),
        *manifests(Part.NODE, node),
        *admission(node),
    )

    def ordered(objects: list[Raw]) -> list[bytes]:
        return sorted(msgspec.json.encode(one, order="sorted") for one in objects)

    assert ordered(found) == ordered([*wanted])


def test_a_part_alone_is_bound_to_its_role_alone() -> None:
    found = rendered({"controllers": {"parts": ["publisher"]}, "node": {"enabled": False}})
    bound = sorted(one["roleRef"]["name"] for one in found if one["kind"] == "ClusterRoleBinding")
    assert bound == ["jackfield-publisher", "jackfield-shared"]


def test_all_but_the_plugin_run_where_pod_security_is_restricted(prepared: ControlPlane) -> None:
    for template in pods(rendered({"fabricManager": LAB, "node": {"enabled": False}})):
        spec = {**template["spec"], "serviceAccountName": "default"}
        spec["volumes"] = [*spec["volumes"], {"name": "state", "emptyDir": {}}]
        # A priority is the API server's own to admit; this is about rights.
        made = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "restricted"},
            "spec": spec,
        }
        assert takes(prepared, made)


def test_alerts_and_dashboard_are_in_the_release_as_they_are_in_their_files() -> None:
    found = rendered(GOOD["everything"])
    alerts = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())
    assert of(found, "PrometheusRule", "jackfield")["spec"] == alerts
    dashboard = msgspec.json.decode((CHART / "files" / "dashboard.json").read_bytes())
    assert (
        msgspec.json.decode(of(found, "ConfigMap", "jackfield-dashboard")["data"]["jackfield.json"])
        == dashboard
    )


def test_no_secret_is_made_of_values() -> None:
    assert [one for values in GOOD.values() for one in rendered(values) if one["kind"] == "Secret"] == []


def test_only_what_is_read_once_starts_pods_anew() -> None:
    def read(values: Raw, kind: str, name: str) -> Raw:
        found: Raw = of(rendered(values), kind, name)["spec"]["template"]
        return found

    fabrics, policy = {"fabrics": EVERYTHING["fabrics"]}, {"policy": {"holdSeconds": 1}}
    controllers, node = ("Deployment", "jackfield-controllers"), ("DaemonSet", "jackfield-node")
    assert read(policy, *controllers) == read({}, *controllers)
    assert read(fabrics, *controllers) != read({}, *controllers)
    assert read({**fabrics, **policy}, *node) == read({}, *node)
    assert read({"policy": {"localDevices": [{"name": "gpu"}]}}, *node) != read({}, *node)
