"""Where the programs of a control plane come from: `tools/kube/build` of this checkout, or a folder that is named.

Knows their names, and how they are built. Must not know how they are run.
"""

import os
import signal
import subprocess
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from jackfield.testing.control_plane.errors import ControlPlaneError

UNABLE = 75
"""The exit status of a build that lacks Go or its modules."""


class Program(StrEnum):
    """What a control plane consists of, in the order in which it is started."""

    ETCD = "etcd"
    APISERVER = "kube-apiserver"
    CONTROLLER_MANAGER = "kube-controller-manager"
    SCHEDULER = "kube-scheduler"


class NodeProgram(StrEnum):
    """What a node consists of, in the order in which it is started."""

    CONTAINERD = "containerd"
    KUBELET = "kubelet"


KUBECTL = "kubectl"
KEYS = "keys"
NEEDED = (*Program, KUBECTL, KEYS)
CTR, RUNC, SHIM = "ctr", "runc", "containerd-shim-runc-v2"
TEST_IMAGE = "busybox.tar"
NEEDED_BY_NODES = (*NodeProgram, CTR, SHIM, RUNC, TEST_IMAGE)


def build_script(name: str = "build") -> Path:
    """Return what builds the programs; it is part of the repository, not of the package."""
    return Path(__file__).resolve().parents[4] / "tools" / "kube" / name


def built() -> Path:
    """Return the folder of the programs; what is missing is built, with its progress on standard error."""
    return checked(_printed("build", NEEDED, "the programs of Kubernetes cannot be built here; Go is needed"))


def node_built() -> Path:
    """Return the folder of the programs of a node, likewise."""
    return checked(_printed("node", NEEDED_BY_NODES, "no real node can run here"), NEEDED_BY_NODES)


def _printed(name: str, needed: Sequence[str], unable: str) -> Path:
    script = build_script(name)
    if not script.exists():
        raise ControlPlaneError(
            f"the programs of Kubernetes are built by tools/kube/{name}, which is in Jackfield's repository and not "
            f"here; name a folder that has them: {', '.join(needed)}"
        )
    status, printed = _run(script)
    if status == UNABLE:
        raise ControlPlaneError(f"{unable}, for the reason above")
    if status:
        raise ControlPlaneError(f"tools/kube/{name} ended with status {status}")
    return Path(printed.strip())


def _run(script: Path) -> tuple[int, str]:
    """Return how a build ended and what it printed. When we are interrupted, so is all that it has started."""
    with subprocess.Popen(  # noqa: S603 - the script is ours
        [script], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as build:
        try:
            printed, _ = build.communicate()
        except BaseException:
            os.killpg(build.pid, signal.SIGTERM)
            raise
    return build.returncode, printed


def checked(folder: Path, needed: Sequence[str] = NEEDED) -> Path:
    """Return the folder, if all programs are in it."""
    missing = [name for name in needed if not (folder / name).is_file()]
    if missing:
        raise ControlPlaneError(f"{folder} has no {', no '.join(missing)}")
    return folder.resolve()
