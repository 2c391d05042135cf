"""What containers get of a claim that is prepared."""

import json
import os
from pathlib import Path

import pytest

from jackfield.driver.cdi import Edits
from jackfield.driver.store import CHECKPOINT, Entry, Held
from jackfield.model.names import Key, Uid
from unit.driver.folders import DRIVER, GPU, Node, entry


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_every_device_has_a_name_of_its_own_after_those_of_others(node: Node) -> None:
    share = Held(("gpu",), "node-1", "gpu-0", share_id="s-1", cdi=("nvidia.com/gpu=0",))
    other = Held(("gpu",), "node-1", "gpu-0", share_id="s-2", edits=Edits(env={"A": "b"}))
    ids = node.opened().put(entry("a", share, other))
    assert ids == (
        ("nvidia.com/gpu=0", f"{DRIVER}/claim=uid-a-gpu-0-0"),
        (f"{DRIVER}/claim=uid-a-gpu-0-1",),
    )
    assert list(node.spec("a")) == ["uid-a-gpu-0-0", "uid-a-gpu-0-1"]
    assert node.spec("a")["uid-a-gpu-0-1"] == {"env": ["A=b"]}


def test_the_first_device_of_a_request_mounts_what_can_be_read_of_it(node: Node) -> None:
    one, two = Held(("gpu/large",), "node-1", "gpu-0"), Held(("gpu/large",), "node-1", "gpu-1")
    both = Held(("gpu/large", "nic"), "node-1", "nic-0", edits=Edits(env={"NIC": "0"}))
    node.opened().put(entry("a", one, two, both, pod_claim_name="all"))
    first, second, third = node.spec("a").values()
    place = "/var/run/kubernetes.io/dra-device-attributes/resourceclaimtemplates/all"
    options = ["ro", "nosuid", "nodev", "bind"]
    assert first == {
        "mounts": [
            {
                "hostPath": str(node.plugin / "metadata" / "uid-a_gpu.json"),
                "containerPath": f"{place}/gpu/{DRIVER}-metadata.json",
                "options": options,
            }
        ]
    }
    assert second == {"env": ["CDI_DEVICE_UID_A_GPU_1_1=present"]}
    assert third == {
        "env": ["NIC=0"],
        "mounts": [
            {
                "hostPath": str(node.plugin / "metadata" / "uid-a_nic.json"),
                "containerPath": f"{place}/nic/{DRIVER}-metadata.json",
                "options": options,
            }
        ],
    }


def generation(node: Node) -> object:
    text = (node.plugin / "metadata" / "uid-a_gpu.json").read_text()
    return json.JSONDecoder().raw_decode(text)[0]["metadata"]["generation"]


def test_the_generation_rises_when_what_can_be_read_changes_and_only_then(node: Node) -> None:
    store = node.opened()
    changes = (
        (entry("a"), 1),
        (entry("a"), 1),
        (entry("a", Held(("gpu",), "node-1", "gpu-0", notes={"of": "mine"}, attributes=GPU.attributes)), 1),
        (entry("a", Held(("gpu",), "node-1", "gpu-0")), 2),
        (entry("a"), 3),
    )
    for one, expected in changes:
        store.put(one)
        assert generation(node) == expected
        store = node.opened()
        assert generation(node) == expected


def test_what_could_be_read_of_a_request_goes_with_the_request(node: Node) -> None:
    store = node.opened()
    store.put(entry("a", GPU, Held(("nic",), "node-1", "nic-0")))
    store.put(entry("a", Held(("nic",), "node-1", "nic-0")))
    assert [one.name for one in (node.plugin / "metadata").iterdir()] == ["uid-a_nic.json"]


def test_a_claim_without_devices_has_no_file_but_is_remembered(node: Node) -> None:
    store = node.opened()
    store.put(entry("a"))
    assert store.put(Entry(Uid("uid-a"), Key("team", "a"))) == ()
    assert not list(node.cdi.iterdir())
    assert [one.uid for one in node.opened().entries()] == ["uid-a"]


def test_metadata_can_be_left_out(node: Node) -> None:
    node.opened().put(entry("a"))
    store = node.store(with_metadata=False)
    store.open()
    store.put(entry("b"))
    assert not list((node.plugin / "metadata").iterdir())
    for name in ("a", "b"):
        assert "mounts" not in node.spec(name)[f"uid-{name}-gpu-0-0"]


def test_runtimes_can_read_what_is_for_them_and_nobody_else_the_checkpoint(node: Node) -> None:
    before = os.umask(0o077)
    try:
        node.opened().put(entry("a"))
    finally:
        os.umask(before)
    modes = {Path(one).name: Path(one).stat().st_mode & 0o777 for one in node.files()}
    assert modes == {CHECKPOINT: 0o600, f"{DRIVER}_claim_uid-a.json": 0o644, "uid-a_gpu.json": 0o644}
