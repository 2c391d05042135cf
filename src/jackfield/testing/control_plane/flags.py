"""The words that each program is started with. Knows their flags. Must not know processes."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from jackfield.codec import Raw
from jackfield.testing.control_plane.binaries import Program
from jackfield.testing.control_plane.credentials import Credentials
from jackfield.testing.control_plane.settings import Settings, User

LOOPBACK = "127.0.0.1"
ISSUER = "https://kubernetes.default.svc"
SERVICES = "10.96.0.0/16"
KUBELETS_CLIENT = User("kube-apiserver-kubelet-client", ("system:masters",))
"""Who asks kubelets for logs, when a user asks the API server."""
AUDIT_POLICY: Raw = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "nonResourceURLs": ["*"]},
        {"level": "Metadata"},
    ],
}


class Places(msgspec.Struct, frozen=True):
    """Where everything is that the flags name."""

    folder: Path
    etcd_peers: int
    ports: Mapping[Program, int]
    kubeconfigs: Mapping[Program, Path]

    def address(self, program: Program) -> str:
        """Return where a program listens."""
        return f"https://{LOOPBACK}:{self.ports[program]}"


def etcd(places: Places, keys: Credentials, settings: Settings) -> tuple[str, ...]:
    """Return etcd's flags: one member, which believes the kernel that what is written is written."""
    clients, peers = places.address(Program.ETCD), f"https://{LOOPBACK}:{places.etcd_peers}"
    return (
        "--name=jackfield",
        f"--data-dir={places.folder / 'etcd'}",
        f"--listen-client-urls={clients}",
        f"--advertise-client-urls={clients}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=jackfield={peers}",
        *(
            f"--{kind}{flag}={keys.file(name)}"
            for kind in ("", "peer-")
            for flag, name in (
                ("cert-file", "server.crt"),
                ("key-file", "server.key"),
                ("trusted-ca-file", "ca.crt"),
            )
        ),
        "--client-cert-auth",
        "--peer-client-cert-auth",
        "--unsafe-no-fsync",
        *settings.etcd_flags,
    )


def apiserver(places: Places, keys: Credentials, settings: Settings) -> tuple[str, ...]:
    """Return the API server's flags: RBAC, tokens, certificates and service accounts, all of it on loopback."""
    audit = (
        f"--audit-policy-file={places.folder / 'audit-policy.yaml'}",
        f"--audit-log-path={places.folder / 'audit.log'}",
    )
    certificate, key = keys.certificate(KUBELETS_CLIENT)
    return (
        *_serving(places, keys, Program.APISERVER),
        f"--advertise-address={LOOPBACK}",
        # Endpoints must not be on loopback; without a reconciler nobody tries.
        "--endpoint-reconciler-type=none",
        f"--etcd-servers={places.address(Program.ETCD)}",
        f"--etcd-cafile={keys.file('ca.crt')}",
        f"--etcd-certfile={keys.file('server.crt')}",
        f"--etcd-keyfile={keys.file('server.key')}",
        "--authorization-mode=Node,RBAC",
        f"--token-auth-file={keys.tokens}",
        f"--client-ca-file={keys.file('ca.crt')}",
        # Nobody has a certificate of this name; without the flags the others complain all the time.
        f"--requestheader-client-ca-file={keys.file('ca.crt')}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--service-account-issuer={ISSUER}",
        f"--service-account-key-file={keys.file('service-accounts.pub')}",
        f"--service-account-signing-key-file={keys.file('service-accounts.key')}",
        f"--service-cluster-ip-range={SERVICES}",
        f"--kubelet-client-certificate={certificate}",
        f"--kubelet-client-key={key}",
        f"--kubelet-certificate-authority={keys.file('ca.crt')}",
        "--allow-privileged=true",
        *(audit if settings.audit else ()),
        *_gates(settings),
        *settings.apiserver_flags,
    )


def controller_manager(places: Places, keys: Credentials, settings: Settings) -> tuple[str, ...]:
    """Return the controller manager's flags; nodes are left alone, since nobody beats for those that are faked."""
    return (
        *_serving(places, keys, Program.CONTROLLER_MANAGER),
        *_asking(places, Program.CONTROLLER_MANAGER),
        "--controllers=*,-nodelifecycle,-nodeipam",
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={keys.file('service-accounts.key')}",
        f"--root-ca-file={keys.file('ca.crt')}",
        f"--cluster-signing-cert-file={keys.file('ca.crt')}",
        f"--cluster-signing-key-file={keys.file('ca.key')}",
        "--leader-elect=false",
        *_gates(settings),
        *settings.controller_manager_flags,
    )


def scheduler(places: Places, keys: Credentials, settings: Settings) -> tuple[str, ...]:
    """Return the scheduler's flags; the rest of what it is told is in its configuration."""
    return (
        *_serving(places, keys, Program.SCHEDULER),
        *_asking(places, Program.SCHEDULER),
        f"--config={places.folder / 'scheduler.yaml'}",
        *_gates(settings),
        *settings.scheduler_flags,
    )


def scheduler_configuration(places: Places, settings: Settings) -> Raw:
    """Return the scheduler's configuration."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(places.kubeconfigs[Program.SCHEDULER])},
        "leaderElection": {"leaderElect": False},
        **settings.scheduler,
    }


def _serving(places: Places, keys: Credentials, program: Program) -> tuple[str, ...]:
    return (
        f"--bind-address={LOOPBACK}",
        f"--secure-port={places.ports[program]}",
        f"--tls-cert-file={keys.file('server.crt')}",
        f"--tls-private-key-file={keys.file('server.key')}",
    )


def _asking(places: Places, program: Program) -> tuple[str, ...]:
    """Return how a program asks the API server, for its work and for who may read its metrics."""
    kinds = ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")
    return tuple(f"--{kind}={places.kubeconfigs[program]}" for kind in kinds)


def _gates(settings: Settings) -> tuple[str, ...]:
    return (f"--feature-gates={','.join(settings.feature_gates)}",) if settings.feature_gates else ()
