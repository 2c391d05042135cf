"""Pods: how many containers are ready, what holds the pod up, how often it was restarted.

Knows containers' states and what follows from them for the pod. Must not know what makes a container fail.
"""

from typing import Final

import msgspec

from jackfield.cluster.tables.ages import age, instant
from jackfield.cluster.tables.column import AGE, NAME, NONE, WIDE, Column, Printer, Shown, as_shown, column
from jackfield.codec.wire import Raw
from jackfield.model.meta import Wire
from jackfield.model.names import Seconds

_ENDED: Final = ("Succeeded", "Failed")
_GATED: Final = "SchedulingGated"
_NODE_LOST: Final = "NodeLost"
"""The reason of a pod whose node nobody reaches."""


class _Waiting(Wire, frozen=True, gc=False):
    reason: str = ""


class _Running(Wire, frozen=True, gc=False):
    pass


class _Terminated(Wire, frozen=True, gc=False):
    reason: str = ""
    exit_code: int = 0
    signal: int = 0
    finished_at: str | None = None

    @property
    def end(self) -> str:
        """How it ended, in a word."""
        if self.reason:
            return self.reason
        return f"Signal:{self.signal}" if self.signal else f"ExitCode:{self.exit_code}"


class _State(Wire, frozen=True, gc=False):
    waiting: _Waiting = _Waiting()
    running: _Running | None = None
    terminated: _Terminated | None = None


class _ContainerStatus(Wire, frozen=True, gc=False):
    name: str = ""
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0
    state: _State = _State()
    last_state: _State = _State()

    @property
    def completed(self) -> bool:
        """Whether it ended well."""
        return self.state.terminated is not None and self.state.terminated.exit_code == 0

    @property
    def failed(self) -> bool:
        """Whether it ended badly and waits for nothing."""
        ended = self.state.terminated
        return ended is not None and ended.exit_code != 0 and not self.state.waiting.reason

    @property
    def word(self) -> str:
        """What it waits for or how it ended, if it has."""
        if self.state.waiting.reason or self.state.terminated is None:
            return self.state.waiting.reason
        return self.state.terminated.end

    @property
    def runs(self) -> bool:
        """Whether it runs and is ready."""
        state = self.state
        return (
            self.ready and state.running is not None and state.terminated is None and not state.waiting.reason
        )


class _Container(Wire, frozen=True, gc=False):
    name: str = ""
    restart_policy: str = ""


class _Gate(Wire, frozen=True, gc=False):
    condition_type: str = ""


class _Spec(Wire, frozen=True, gc=False):
    node_name: str = ""
    containers: tuple[_Container, ...] = ()
    init_containers: tuple[_Container, ...] = ()
    readiness_gates: tuple[_Gate, ...] = ()


class _Condition(Wire, frozen=True, gc=False):
    type: str = ""
    status: str = ""
    reason: str = ""


class _Address(Wire, frozen=True, gc=False):
    ip: str = ""


class _Status(Wire, frozen=True, gc=False):
    phase: str = ""
    reason: str = ""
    conditions: tuple[_Condition, ...] = ()
    init_container_statuses: tuple[_ContainerStatus, ...] = ()
    container_statuses: tuple[_ContainerStatus, ...] = ()
    nominated_node_name: str = ""
    pod_ip: str = msgspec.field(name="podIP", default="")
    pod_ips: tuple[_Address, ...] = msgspec.field(name="podIPs", default=())


class _Pod(Shown, frozen=True, gc=False):
    spec: _Spec = _Spec()
    status: _Status = _Status()


# --- initialization


def _sidecars(pod: _Pod) -> tuple[str, ...]:
    """Return the names of init containers that go on running beside the others."""
    if not pod.spec.init_containers:
        return ()
    return tuple(one.name for one in pod.spec.init_containers if one.restart_policy == "Always")


def _passed(pod: _Pod) -> int:
    """Return how many init containers have passed, so that the next may start."""
    statuses = pod.status.init_container_statuses
    if not statuses:
        return 0
    sidecars = _sidecars(pod)
    for number, one in enumerate(statuses):
        if not one.completed and not (one.started and one.name in sidecars):
            return number
    return len(statuses)


def _stuck(pod: _Pod) -> bool:
    """Return whether an init container has not passed."""
    return _passed(pod) < len(pod.status.init_container_statuses)


def _initialized(pod: _Pod) -> bool:
    """Return whether the containers proper matter."""
    return not _stuck(pod) or _condition(pod, "Initialized") == "True"


def _condition(pod: _Pod, kind: str) -> str:
    return next((one.status for one in pod.status.conditions if one.type == kind), "")


# --- columns


def _ready(pod: _Pod) -> str:
    # Those that passed and have not completed are sidecars.
    passed = pod.status.init_container_statuses[: _passed(pod)]
    ready = sum([one.ready and not one.completed for one in passed])
    if _initialized(pod):
        ready += sum([one.runs for one in pod.status.container_statuses])
    return f"{ready}/{len(pod.spec.containers) + len(_sidecars(pod))}"


def _status(pod: _Pod) -> str:
    if pod.metadata.deletion_timestamp is not None:
        if pod.status.reason == _NODE_LOST:
            return "Unknown"
        if pod.status.phase not in _ENDED:
            return "Terminating"
    words = _holdup(pod) if _stuck(pod) else _said(pod)
    return _outcome(pod, words) if _initialized(pod) else words


def _said(pod: _Pod) -> str:
    """Return what the pod itself says it is."""
    if any(one.type == "PodScheduled" and one.reason == _GATED for one in pod.status.conditions):
        return _GATED
    return pod.status.reason or pod.status.phase


def _holdup(pod: _Pod) -> str:
    """Return what the init container that has not passed waits for, or how it failed."""
    passed = _passed(pod)
    state = pod.status.init_container_statuses[passed].state
    if state.terminated is not None:
        return f"Init:{state.terminated.end}"
    if state.waiting.reason not in {"", "PodInitializing"}:
        return f"Init:{state.waiting.reason}"
    return f"Init:{passed}/{len(pod.spec.init_containers)}"


def _outcome(pod: _Pod, words: str) -> str:
    """Return what the first container with something to say makes of the pod.

    One that completed is overruled by those that still run, if the pod is ready, and by the first that failed.
    """
    statuses = pod.status.container_statuses
    words = next((said for one in statuses if (said := one.word)), words)
    if words != "Completed":
        return words
    runs = any(one.runs for one in statuses)
    if runs and any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions):
        return "Running"
    failed = next((one.word for one in statuses if one.failed), "")
    return failed or ("NotReady" if runs else words)


def _restarts(pod: _Pod, now: Seconds) -> str:
    counted = _counted(pod)
    restarts = sum([one.restart_count for one in counted])
    if not restarts:
        return "0"
    ended = [one.last_state.terminated for one in counted if one.last_state.terminated]
    times = [one.finished_at for one in ended if one.finished_at]
    return f"{restarts} ({age(max(times, key=_order), now)} ago)" if times else str(restarts)


def _counted(pod: _Pod) -> tuple[_ContainerStatus, ...]:
    """Return those whose restarts are the pod's: init containers until they are done, sidecars always."""
    if not pod.status.init_container_statuses:
        return pod.status.container_statuses
    reached = pod.status.init_container_statuses[: _passed(pod) + 1]
    if not _initialized(pod):
        return reached
    sidecars = _sidecars(pod)
    return (*(one for one in reached if one.name in sidecars), *pod.status.container_statuses)


def _order(time: str) -> float:
    return instant(time) or 0.0


def _address(pod: _Pod) -> str:
    return pod.status.pod_ip or next((one.ip for one in pod.status.pod_ips), "") or NONE


def _gates(pod: _Pod) -> str:
    gates = pod.spec.readiness_gates
    if not gates:
        return NONE
    met = sum(_condition(pod, one.condition_type) == "True" for one in gates)
    return f"{met}/{len(gates)}"


def _conditions(pod: _Pod) -> list[Raw]:
    phase = pod.status.phase
    return [{"type": "Completed", "status": "True", "reason": phase}] if phase in _ENDED else []


POD: Final = Printer[_Pod](
    as_shown(_Pod),
    (
        NAME,
        column("Ready", _ready),
        column("Status", _status),
        Column("Restarts", _restarts),
        AGE,
        column("IP", _address, WIDE),
        column("Node", lambda one: one.spec.node_name or NONE, WIDE),
        column("Nominated Node", lambda one: one.status.nominated_node_name or NONE, WIDE),
        column("Readiness Gates", _gates, WIDE),
    ),
    _conditions,
)
