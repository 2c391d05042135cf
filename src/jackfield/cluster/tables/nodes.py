"""Nodes: whether they are ready, what they are for, what runs on them.

Knows conditions, labels and addresses of nodes. Must not know who writes them.
"""

from typing import Final

from jackfield.cluster.tables.ages import UNKNOWN
from jackfield.cluster.tables.column import AGE, NAME, NONE, WIDE, Column, Printer, Shown, as_shown, column
from jackfield.model.meta import Wire

_ROLE_PREFIX: Final = "node-role.kubernetes.io/"
_ROLE: Final = "kubernetes.io/role"


class _Condition(Wire, frozen=True, gc=False):
    type: str = ""
    status: str = ""


class _Address(Wire, frozen=True, gc=False):
    type: str = ""
    address: str = ""


class _Info(Wire, frozen=True, gc=False):
    kubelet_version: str = ""
    os_image: str = ""
    kernel_version: str = ""
    architecture: str = ""
    container_runtime_version: str = ""


class _Spec(Wire, frozen=True, gc=False):
    unschedulable: bool = False


class _Status(Wire, frozen=True, gc=False):
    conditions: tuple[_Condition, ...] = ()
    addresses: tuple[_Address, ...] = ()
    node_info: _Info = _Info()


class _Node(Shown, frozen=True, gc=False):
    spec: _Spec = _Spec()
    status: _Status = _Status()


def _status(node: _Node) -> str:
    ready = [one.status == "True" for one in node.status.conditions if one.type == "Ready"]
    words = ("Ready" if ready[-1] else "NotReady") if ready else "Unknown"
    return f"{words},SchedulingDisabled" if node.spec.unschedulable else words


def _roles(node: _Node) -> str:
    labels = node.metadata.labels
    roles = {one.removeprefix(_ROLE_PREFIX) for one in labels if one.startswith(_ROLE_PREFIX)}
    roles.add(labels.get(_ROLE, ""))
    return ",".join(sorted(roles - {""})) or NONE


def _kernel(node: _Node) -> str:
    info = node.status.node_info
    kernel = info.kernel_version or UNKNOWN
    return f"{kernel} ({info.architecture})" if info.architecture else kernel


def _address(name: str, kind: str) -> Column[_Node]:
    def cell(node: _Node) -> str:
        return next((one.address for one in node.status.addresses if one.type == kind), NONE)

    return column(name, cell, WIDE)


NODE: Final = Printer[_Node](
    as_shown(_Node),
    (
        NAME,
        column("Status", _status),
        column("Roles", _roles),
        AGE,
        column("Version", lambda one: one.status.node_info.kubelet_version),
        _address("Internal-IP", "InternalIP"),
        _address("External-IP", "ExternalIP"),
        column("OS-Image", lambda one: one.status.node_info.os_image or UNKNOWN, WIDE),
        column("Kernel-Version", _kernel, WIDE),
        column(
            "Container-Runtime", lambda one: one.status.node_info.container_runtime_version or UNKNOWN, WIDE
        ),
    ),
)
