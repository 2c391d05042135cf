"""What can be chosen about a control plane. Knows names and defaults. Must not know what becomes of them."""

import msgspec

from jackfield.codec import Raw


class User(msgspec.Struct, frozen=True):
    """Somebody who has a token. What they may do is up to RBAC, and at first it is next to nothing."""

    name: str
    groups: tuple[str, ...] = ()


class Settings(msgspec.Struct, frozen=True):
    """A control plane with Kubernetes' own defaults, unless said otherwise."""

    users: tuple[User, ...] = ()
    feature_gates: tuple[str, ...] = ()
    """For all of Kubernetes' programs, as in `DRADeviceTaints=true`."""
    etcd_flags: tuple[str, ...] = ()
    apiserver_flags: tuple[str, ...] = ()
    controller_manager_flags: tuple[str, ...] = ()
    scheduler_flags: tuple[str, ...] = ()
    scheduler: Raw = {}
    """Fields of KubeSchedulerConfiguration; see `binding_timeout`."""
    audit: bool = False
    """Whether the API server keeps a log of who asked what, for `ControlPlane.audited`."""
    keep: bool = False
    """Whether the folder with logs and data stays when all is over."""
    start_seconds_max: float = 60
    """How long each program may take until it is ready."""


def binding_timeout(seconds: int) -> Raw:
    """Return the scheduler's configuration in which a pod waits so long for its binding conditions."""
    args = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "DynamicResourcesArgs",
        "bindingTimeout": f"{seconds}s",
    }
    plugin = {"name": "DynamicResources", "args": args}
    return {"profiles": [{"schedulerName": "default-scheduler", "pluginConfig": [plugin]}]}
