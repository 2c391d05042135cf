"""What the programs of a real node read says what was chosen, in their own formats."""

import subprocess
import tomllib
from pathlib import Path

import msgspec
import pytest

from jackfield.codec import Raw
from jackfield.testing.control_plane import node_files

CHOICE = node_files.Choice(
    cgroup="a-group", port=1234, certificate=Path("/k/c"), key=Path("/k/k"), client_authority=Path("/k/a")
)


def test_containerd_is_told_where_devices_are_described_and_which_runc_to_use() -> None:
    read = tomllib.loads(node_files.containerd(Path("/where/runc is")))
    runtime = read["plugins"]["io.containerd.cri.v1.runtime"]
    assert (runtime["enable_cdi"], runtime["cdi_spec_dirs"]) == (True, ["/etc/cdi", "/var/run/cdi"])
    assert runtime["containerd"]["runtimes"]["runc"]["options"]["BinaryName"] == "/where/runc is"
    assert read["grpc"]["address"] == node_files.SOCKET


@pytest.mark.parametrize("place", ["root", "state"])
def test_containerd_writes_only_where_a_machine_has_folders_of_its_own(place: str) -> None:
    read = tomllib.loads(node_files.containerd(Path("/runc")))
    opt = read["plugins"]["io.containerd.internal.v1.opt"]["path"]
    assert read[place].startswith(("/run/", "/var/lib/"))
    assert opt.startswith("/var/lib/")


@pytest.mark.parametrize(
    ("changed", "field", "value"),
    [
        (CHOICE, "cgroupRoot", "/a-group"),
        (CHOICE, "port", 1234),
        (CHOICE, "featureGates", {}),
        (
            msgspec.structs.replace(CHOICE, feature_gates=("A=true", "B=false")),
            "featureGates",
            {"A": True, "B": False},
        ),
        (msgspec.structs.replace(CHOICE, kubelet={"maxPods": 3}), "maxPods", 3),
        (msgspec.structs.replace(CHOICE, kubelet={"port": 99}), "port", 99),
    ],
)
def test_the_kubelet_is_told_what_was_chosen(changed: node_files.Choice, field: str, value: object) -> None:
    assert node_files.kubelet(changed)[field] == value


def test_strangers_get_nothing_from_the_kubelet() -> None:
    told = node_files.kubelet(CHOICE)
    assert told["authentication"]["anonymous"] == {"enabled": False}
    assert told["authorization"] == {"mode": "Webhook"}
    assert told["address"] == "127.0.0.1"


@pytest.mark.parametrize(
    ("command", "status", "words"),
    [("ADD", 1, node_files.NO_NETWORK), ("DEL", 0, ""), ("CHECK", 1, node_files.NO_NETWORK)],
)
def test_the_network_refuses_pods_with_the_reason_and_lets_them_go(
    tmp_path: Path, command: str, status: int, words: str
) -> None:
    files = node_files.network()
    (tmp_path / "none").write_text(files["none"])
    run = subprocess.run(
        ["/bin/sh", str(tmp_path / "none")], env={"CNI_COMMAND": command}, capture_output=True, check=False
    )
    answer: Raw = msgspec.json.decode(run.stdout) if run.stdout else {}
    assert (run.returncode, answer.get("msg", "")) == (status, words)
    listed: Raw = msgspec.json.decode(files["none.conflist"])
    # A network that is named as one of its files would have its plugins looked for in that file.
    assert listed["name"] not in files
