"""What containers can read of their devices."""

import json

import pytest

from jackfield.driver import metadata
from jackfield.driver.entry import Entry, Held, Network
from jackfield.model.device import DeviceAttribute
from jackfield.model.names import Key, Uid

DRIVER = "gpu.example.com"


def documents(data: bytes) -> list[dict[str, object]]:
    """Read a stream as one does who knows JSON and nothing else."""
    decoder, text, found = json.JSONDecoder(), data.decode(), []
    while text:
        one, end = decoder.raw_decode(text)
        found.append(one)
        text = text[end:].lstrip()
    return found


def test_a_file_says_the_same_in_every_version_the_newest_first() -> None:
    held = Held(
        ("gpu",),
        "node-1",
        "gpu-0",
        attributes={
            "model": DeviceAttribute(string="A100"),
            "index": DeviceAttribute(int_=0),
            "ecc": DeviceAttribute(bool_=False),
            "driverVersion": DeviceAttribute(version="1.0.0"),
            "resource.kubernetes.io/numaNode": DeviceAttribute(ints=(0, 1)),
        },
        network=Network("net1", ("10.0.0.2/24",), "02:00:00:00:00:01"),
    )
    entry = Entry(Uid("u-1"), Key("team", "train"), (held,))
    beta, alpha = documents(metadata.files(DRIVER, entry, 4)["gpu"])
    assert beta == {
        "apiVersion": "metadata.resource.k8s.io/v1beta1",
        "kind": "DeviceMetadata",
        "metadata": {"name": "train", "namespace": "team", "uid": "u-1", "generation": 4},
        "requests": [
            {
                "name": "gpu",
                "devices": [
                    {
                        "driver": DRIVER,
                        "pool": "node-1",
                        "name": "gpu-0",
                        "attributes": {
                            "model": {"string": "A100"},
                            "index": {"int": 0},
                            "ecc": {"bool": False},
                            "driverVersion": {"version": "1.0.0"},
                            "resource.kubernetes.io/numaNode": {"ints": [0, 1]},
                        },
                        "networkData": {
                            "interfaceName": "net1",
                            "ips": ["10.0.0.2/24"],
                            "hardwareAddress": "02:00:00:00:00:01",
                        },
                    }
                ],
            }
        ],
    }
    assert alpha == {**beta, "apiVersion": "metadata.resource.k8s.io/v1alpha1"}


def test_each_request_has_a_file_of_its_own() -> None:
    entry = Entry(
        Uid("u-1"),
        Key("team", "train"),
        (
            Held(("gpu/large",), "node-1", "gpu-0"),
            Held(("gpu/large",), "node-1", "gpu-1"),
            Held(("nic", "spare"), "node-1", "nic-0"),
            Held((), "node-1", "for-all"),
        ),
        pod_claim_name="devices",
    )
    files = metadata.files(DRIVER, entry, 1)
    assert list(files) == ["gpu", "nic", "spare"]
    gpu, _ = documents(files["gpu"])
    assert gpu["podClaimName"] == "devices"
    assert gpu["requests"] == [
        {
            "name": "gpu/large",
            "devices": [
                {"driver": DRIVER, "pool": "node-1", "name": "gpu-0"},
                {"driver": DRIVER, "pool": "node-1", "name": "gpu-1"},
            ],
        }
    ]
    nic, _ = documents(files["nic"])
    assert nic["requests"] == [
        {"name": "nic", "devices": [{"driver": DRIVER, "pool": "node-1", "name": "nic-0"}]}
    ]


@pytest.mark.parametrize(
    ("pod_claim_name", "request_name", "path"),
    [
        ("", "gpu", "resourceclaims/train/gpu"),
        ("", "gpu/large", "resourceclaims/train/gpu"),
        ("devices", "gpu", "resourceclaimtemplates/devices/gpu"),
    ],
)
def test_a_container_finds_the_file_where_the_protocol_says(
    pod_claim_name: str, request_name: str, path: str
) -> None:
    entry = Entry(Uid("u-1"), Key("team", "train"), (), pod_claim_name)
    assert metadata.container_path(DRIVER, entry, request_name) == (
        f"/var/run/kubernetes.io/dra-device-attributes/{path}/gpu.example.com-metadata.json"
    )
