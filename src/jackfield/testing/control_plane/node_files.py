"""What the programs of a real node read: containerd's configuration, the kubelet's, and that of a network for pods.

Knows their fields, and paths as they are inside of the node's machine. Must not know processes.
"""

from pathlib import Path

import msgspec

from jackfield.codec import Raw

SOCKET = "/run/containerd/containerd.sock"
KUBELET_ROOT = "/var/lib/kubelet"
NETWORK = "/run/network"
RESOLVER = "/run/resolv.conf"
PAUSE = "jackfield.test/busybox:1"
"""Keeps a pod's namespaces open, and is the smallest image to write tests with."""
NO_NETWORK = (
    "this node has no network for pods, as it would need one that reaches out of the machine; "
    "write hostNetwork: true into the pod's spec"
)


class Choice(msgspec.Struct, frozen=True):
    """What differs from node to node."""

    cgroup: str
    port: int
    certificate: Path
    key: Path
    client_authority: Path
    feature_gates: tuple[str, ...] = ()
    kubelet: Raw = {}


def containerd(runc: Path) -> str:
    """Return containerd's configuration."""
    return f"""\
version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
address = "{SOCKET}"
[plugins.'io.containerd.internal.v1.opt']
path = "/var/lib/containerd/opt"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = "{PAUSE}"
[plugins.'io.containerd.cri.v1.runtime']
enable_cdi = true
cdi_spec_dirs = ["/etc/cdi", "/var/run/cdi"]
# Where a process may not make itself less killable than it was, a container cannot be either.
restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ["{NETWORK}"]
conf_dir = "{NETWORK}"
use_internal_loopback = true
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
BinaryName = "{runc}"
SystemdCgroup = false
"""


def kubelet(choice: Choice) -> Raw:
    """Return the kubelet's configuration: Kubernetes' defaults, but on loopback and in a corner of this machine."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": "127.0.0.1",
        "port": choice.port,
        "healthzPort": 0,
        "tlsCertFile": str(choice.certificate),
        "tlsPrivateKeyFile": str(choice.key),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(choice.client_authority)},
        },
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{choice.cgroup}",
        "failCgroupV1": False,
        "failSwapOn": False,
        # The rest of the machine is not the node's: it neither reserves nor defends it.
        "enforceNodeAllocatable": [],
        "evictionHard": {"imagefs.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%"},
        "imageGCHighThresholdPercent": 100,
        "makeIPTablesUtilChains": False,
        "resolvConf": RESOLVER,
        "volumePluginDir": f"{KUBELET_ROOT}/volume-plugins",
        "featureGates": dict(_gate(words) for words in choice.feature_gates),
        **choice.kubelet,
    }


def _gate(words: str) -> tuple[str, bool]:
    name, _, value = words.partition("=")
    return name, value.lower() == "true"


def network() -> dict[str, str]:
    """Return the files of a network that is there, so that the node is Ready, and refuses every pod with the reason."""
    listed = {"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "none"}]}
    refusal = {"cniVersion": "1.0.0", "code": 100, "msg": NO_NETWORK}
    words = msgspec.json.encode(refusal).decode().replace("'", "'\\''")
    # Taking a pod out of the network always succeeds: it was never in it.
    plugin = f"#!/bin/sh\n[ \"$CNI_COMMAND\" = DEL ] && exit\necho '{words}'\nexit 1\n"
    return {"none.conflist": msgspec.json.encode(listed).decode(), "none": plugin}
