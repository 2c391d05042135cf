"""Pods are completed as a real API server completes them. The whole of it is held to one in tests/real."""

import pytest

from jackfield.cluster import pod_defaults
from jackfield.codec import Raw, copied


def completed(**spec: object) -> Raw:
    raw: Raw = copied({"containers": [{"name": "c", "image": "i:1"}], **spec})
    pod_defaults.complete(raw)
    return raw


def container(**fields: object) -> Raw:
    (only,) = completed(containers=[{"name": "c", "image": "i:1", **fields}])["containers"]
    assert isinstance(only, dict)
    return only


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("app", "Always"),
        ("app:latest", "Always"),
        ("host:5000/app", "Always"),
        ("host:5000/app:latest", "Always"),
        ("app:1", "IfNotPresent"),
        ("host:5000/app:1", "IfNotPresent"),
        ("app@sha256:00", "IfNotPresent"),
        ("app:latest@sha256:00", "Always"),
        ("", "IfNotPresent"),
    ],
)
def test_an_image_that_may_change_is_always_fetched(image: str, policy: str) -> None:
    assert container(image=image)["imagePullPolicy"] == policy
    volumes = [{"name": "v", "image": {"reference": image}}]
    assert completed(volumes=volumes)["volumes"][0]["image"]["pullPolicy"] == policy


@pytest.mark.parametrize(
    ("resources", "requests"),
    [
        ({"limits": {"cpu": "1"}}, {"cpu": "1"}),
        (
            {"limits": {"cpu": "1", "memory": "1024Mi"}, "requests": {"cpu": 0.5}},
            {"cpu": "500m", "memory": "1Gi"},
        ),
        ({"requests": {"cpu": "0.1"}}, {"cpu": "100m"}),
    ],
)
def test_what_is_limited_is_requested_and_amounts_are_spelt_in_one_way(resources: Raw, requests: Raw) -> None:
    assert container(resources=resources)["resources"]["requests"] == requests


def test_what_says_nothing_is_left_out() -> None:
    spec = completed(hostNetwork=False, nodeSelector={}, tolerations=[], volumes=[])
    assert not {"hostNetwork", "nodeSelector", "tolerations", "volumes"} & spec.keys()
    found = container(env=[{"name": "A", "value": ""}], command=[], tty=False, resources={"limits": {}})
    assert found["env"] == [{"name": "A"}]
    assert found["resources"] == {}
    assert not {"command", "tty"} & found.keys()


def test_a_probe_is_told_how_often_and_where() -> None:
    probe = container(livenessProbe={"httpGet": {"port": 80}, "periodSeconds": 3})["livenessProbe"]
    assert probe == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 3,
        "successThreshold": 1,
        "failureThreshold": 3,
    }


def test_on_the_hosts_network_a_port_is_the_hosts() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 82}]
    spec = completed(hostNetwork=True, containers=[{"name": "c", "image": "i", "ports": ports}])
    assert [(one["hostPort"], one["protocol"]) for one in spec["containers"][0]["ports"]] == [
        (80, "TCP"),
        (82, "TCP"),
    ]


VOLUMES: dict[str, tuple[Raw, Raw]] = {
    "nothing": ({}, {"emptyDir": {}}),
    "a size": ({"emptyDir": {"sizeLimit": "1024Mi"}}, {"emptyDir": {"sizeLimit": "1Gi"}}),
    "a secret": ({"secret": {"secretName": "s"}}, {"secret": {"secretName": "s", "defaultMode": 420}}),
    "a mode": (
        {"configMap": {"name": "m", "defaultMode": 0}},
        {"configMap": {"name": "m", "defaultMode": 0}},
    ),
    "a path": ({"hostPath": {"path": "/"}}, {"hostPath": {"path": "/", "type": ""}}),
    "a token": (
        {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
        {
            "projected": {
                "sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}],
                "defaultMode": 420,
            }
        },
    ),
    "a field": (
        {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "f"}}]}},
        {
            "downwardAPI": {
                "items": [{"path": "p", "fieldRef": {"fieldPath": "f", "apiVersion": "v1"}}],
                "defaultMode": 420,
            }
        },
    ),
}


@pytest.mark.parametrize(("written", "stored"), VOLUMES.values(), ids=VOLUMES)
def test_a_volume_comes_from_somewhere(written: Raw, stored: Raw) -> None:
    assert completed(volumes=[{"name": "v", **written}])["volumes"] == [{"name": "v", **stored}]


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        ([{}], "BestEffort"),
        ([{"requests": {"example.com/gpu": "1"}}], "BestEffort"),
        ([{"requests": {"cpu": "0"}}], "BestEffort"),
        ([{"requests": {"cpu": "1"}}], "Burstable"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}}], "Guaranteed"),
        ([{"limits": {"cpu": "1"}}], "Burstable"),
        ([{"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}], "Burstable"),
        ([{"limits": {"cpu": "1000m", "memory": "1Gi"}, "requests": {"cpu": "1"}}], "Guaranteed"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}}, {}], "Burstable"),
    ],
)
def test_quality_is_by_what_all_containers_ask_for(resources: list[Raw], quality: str) -> None:
    containers = [
        {"name": f"c{place}", "image": "i", "resources": one} for place, one in enumerate(resources)
    ]
    assert pod_defaults.quality(completed(containers=containers)) == quality
    init = completed(containers=containers[:1], initContainers=containers[1:])
    assert pod_defaults.quality(init) == quality


def test_quality_is_by_what_the_pod_asks_for_if_it_does() -> None:
    limits = {"cpu": "1", "memory": "1Gi"}
    assert pod_defaults.quality(completed(resources={"limits": limits})) == "Guaranteed"


def test_a_complete_spec_stays_as_it_is() -> None:
    spec = completed(volumes=[{"name": "v"}], serviceAccount="a", terminationGracePeriodSeconds=-1)
    again: Raw = copied(spec)
    pod_defaults.complete(again)
    assert again == spec
    assert spec["terminationGracePeriodSeconds"] == 1
    assert spec["serviceAccountName"] == "a"


def test_a_status_says_even_what_nobody_said() -> None:
    status: Raw = {
        "conditions": [{"type": "Ready"}],
        "podIP": "10.0.0.1",
        "containerStatuses": [{"name": "c"}],
    }
    pod_defaults.complete_status(status)
    assert status["conditions"] == [{"type": "Ready", "lastProbeTime": None, "lastTransitionTime": None}]
    assert status["podIPs"] == [{"ip": "10.0.0.1"}]
    assert status["containerStatuses"] == [
        {
            "name": "c",
            "state": {},
            "lastState": {},
            "ready": False,
            "restartCount": 0,
            "image": "",
            "imageID": "",
        }
    ]
