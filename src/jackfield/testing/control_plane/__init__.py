"""A real Kubernetes control plane on loopback: `with ControlPlane() as plane: plane.kubectl("get", "nodes")`.

Public, for tests against a real API server and scheduler, and, inside of `with RealNode(plane) as node`, against a real
kubelet and containerd. Linux, and Go for the first time (`tools/kube/build`); nodes also need root (`tools/kube/node`).
"""

from jackfield.testing.control_plane.audit import WRITES, Entry
from jackfield.testing.control_plane.binaries import NodeProgram, Program
from jackfield.testing.control_plane.credentials import ADMIN, CONTEXT, Proof
from jackfield.testing.control_plane.errors import ControlPlaneError
from jackfield.testing.control_plane.nodes import fake_node
from jackfield.testing.control_plane.plane import ControlPlane, Snapshot
from jackfield.testing.control_plane.real_node import NodeSettings, RealNode
from jackfield.testing.control_plane.settings import Settings, User, binding_timeout

__all__ = [
    "ADMIN",
    "CONTEXT",
    "WRITES",
    "ControlPlane",
    "ControlPlaneError",
    "Entry",
    "NodeProgram",
    "NodeSettings",
    "Program",
    "Proof",
    "RealNode",
    "Settings",
    "Snapshot",
    "User",
    "binding_timeout",
    "fake_node",
]
