"""Nodes without a machine: Ready, with room for pods, and nobody behind them.

Knows what a kubelet would have said. Must not know devices: those come by ResourceSlices.
"""

from collections.abc import Mapping

from jackfield.codec import Raw
from jackfield.testing.control_plane.api import Api

CAPACITY = {"cpu": "64", "memory": "512Gi", "ephemeral-storage": "1Ti", "pods": "110"}
HOSTNAME = "kubernetes.io/hostname"
NO_LABELS: Mapping[str, str] = {}
MERGE = "application/merge-patch+json"
TRANSITION = "2026-01-01T00:00:00Z"
"""When the nodes got ready. It matters to nobody, and so it is always the same."""


def fake_node(
    api: Api, name: str, labels: Mapping[str, str] = NO_LABELS, capacity: Mapping[str, str] = CAPACITY
) -> None:
    """Make one node that pods can be bound to."""
    api.request("POST", "/api/v1/nodes", _node(name, labels, capacity))
    # Admission taints every new node, and here runs nobody who would take the taint away.
    api.request("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": None}}, MERGE)


def _node(name: str, labels: Mapping[str, str], capacity: Mapping[str, str]) -> Raw:
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "there is no kubelet: the node is faked",
        "lastHeartbeatTime": TRANSITION,
        "lastTransitionTime": TRANSITION,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name, **labels}},
        "status": {"capacity": dict(capacity), "allocatable": dict(capacity), "conditions": [ready]},
    }
