"""The kubelet's messages: generated from our files, and on the wire what the kubelet reads and writes."""

import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf.message import Message

from jackfield._proto import dra_pb2, health_pb2, registration_pb2

SOURCE = Path(__file__).resolve().parents[3] / "src"
PROTO = SOURCE / "jackfield" / "_proto"
FILES = sorted(path.relative_to(SOURCE).as_posix() for path in PROTO.glob("*.proto"))


def test_generating_again_changes_nothing(tmp_path: Path) -> None:
    command = [
        *(sys.executable, "-m", "grpc_tools.protoc", f"-I{SOURCE}"),
        *(f"--python_out={tmp_path}", f"--pyi_out={tmp_path}", *FILES),
    ]
    subprocess.run(command, check=True)
    anew = {path.name: path.read_text() for path in (tmp_path / "jackfield" / "_proto").iterdir()}
    assert len(anew) == 2 * len(FILES)
    assert {path.name: path.read_text() for path in PROTO.glob("*_pb2.py*")} == anew, "run make proto"


CLAIM = dra_pb2.Claim(namespace="n", uid="u", name="c")
DEVICE = dra_pb2.Device(
    request_names=["r"], pool_name="p", device_name="d", cdi_device_ids=["v/c=x"], share_id="s"
)
INFO = registration_pb2.PluginInfo(type="t", name="n", endpoint="e", supported_versions=["v"])
HEALTH = health_pb2.DeviceHealth(
    device=health_pb2.DeviceIdentifier(pool_name="p", device_name="d"),
    health=health_pb2.UNHEALTHY,
    last_updated_time=1,
    health_check_timeout_seconds=2,
    message="m",
)


@pytest.mark.parametrize(
    ("message", "wire"),
    [
        (INFO, b"\x0a\x01t\x12\x01n\x1a\x01e\x22\x01v"),
        (registration_pb2.RegistrationStatus(plugin_registered=True, error="e"), b"\x08\x01\x12\x01e"),
        (CLAIM, b"\x0a\x01n\x12\x01u\x1a\x01c"),
        (dra_pb2.NodePrepareResourcesRequest(claims=[CLAIM]), b"\x0a\x09\x0a\x01n\x12\x01u\x1a\x01c"),
        (dra_pb2.NodeUnprepareResourcesRequest(claims=[CLAIM]), b"\x0a\x09\x0a\x01n\x12\x01u\x1a\x01c"),
        (DEVICE, b"\x0a\x01r\x12\x01p\x1a\x01d\x22\x05v/c=x\x2a\x01s"),
        (dra_pb2.Device(pool_name="p"), b"\x12\x01p"),
        (dra_pb2.NodePrepareResourceResponse(devices=[dra_pb2.Device()], error="e"), b"\x0a\x00\x12\x01e"),
        (
            dra_pb2.NodePrepareResourcesResponse(
                claims={"u": dra_pb2.NodePrepareResourceResponse(error="e")}
            ),
            b"\x0a\x08\x0a\x01u\x12\x03\x12\x01e",
        ),
        (
            dra_pb2.NodeUnprepareResourcesResponse(
                claims={"u": dra_pb2.NodeUnprepareResourceResponse(error="e")}
            ),
            b"\x0a\x08\x0a\x01u\x12\x03\x0a\x01e",
        ),
        (HEALTH, b"\x0a\x06\x0a\x01p\x12\x01d\x10\x02\x18\x01\x20\x02\x2a\x01m"),
        (
            health_pb2.NodeWatchResourcesResponse(
                devices=[health_pb2.DeviceHealth(health=health_pb2.HEALTHY)]
            ),
            b"\x0a\x02\x10\x01",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_message_is_on_the_wire_what_the_kubelet_expects(message: Message, wire: bytes) -> None:
    assert message.SerializeToString(deterministic=True) == wire
