"""NEC's layout-apply and configuration manager (project-cdim) as paths and bytes, for adapter and face alike.

Knows how procedures, jobs, resources, nodes and errors are spelt. Must not know how they travel, or what for. What a
manager sends is checked here and believed afterwards: ids are fit to stand in a path, nothing is longer than it may be.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final, TypeVar
from urllib.parse import quote, urlencode

import msgspec

T = TypeVar("T")

JSON: Final = "application/json"
PREFIX: Final = "/cdim/api/v1"
APPLIES: Final = f"{PREFIX}/layout-apply"
RESOURCES: Final = f"{PREFIX}/resources"
NODES: Final = f"{PREFIX}/nodes"
ALREADY_RUNNING: Final = "E40010"
SUSPENDED_EXISTS: Final = "E40027"
WORDS_MAX: Final = 300
"""So much of a manager's own words is passed on."""
JOBS_SHOWN: Final = 20
"""So many jobs are asked for, the newest: only the newest of all can be under way."""

Id = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,252}$")]
"""Begins with a letter or digit, so that it cannot be the way to a folder above."""
Text = Annotated[str, msgspec.Meta(max_length=1000)]
Word = Annotated[str, msgspec.Meta(max_length=100)]
"""A status or a time: short enough to be passed on."""
Number = Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)]


class BadMessage(ValueError):  # noqa: N818 - a finding about what was received
    """Bytes that say nothing in this language; the message says where."""


# --- layout-apply


class Operation(StrEnum):
    """What a procedure does."""

    CONNECT = "connect"
    DISCONNECT = "disconnect"
    BOOT = "boot"
    SHUTDOWN = "shutdown"


class Status(StrEnum):
    """How far a job, its rollback or one of its procedures is."""

    IN_PROGRESS = "IN_PROGRESS"
    CANCELING = "CANCELING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"
    SUSPENDED = "SUSPENDED"
    SKIPPED = "SKIPPED"


ENDED: Final = (Status.COMPLETED, Status.FAILED, Status.CANCELED)
"""What a job never leaves again."""
UNDER_WAY: Final = (Status.IN_PROGRESS, Status.CANCELING, Status.SUSPENDED)
"""While a job is in one of these no other begins; a word that nobody knows is neither of these nor of those."""

_PROCEDURE: Final[Mapping[str, str]] = {
    "operation_id": "operationID",
    "target_cpu": "targetCPUID",
    "target_device": "targetDeviceID",
    "source": "sourceDeviceID",
    "destination": "destinationDeviceID",
}


class Procedure(msgspec.Struct, frozen=True, omit_defaults=True, rename=_PROCEDURE):
    """One step of a job. The open source names CPU and device, the product the fabric adapter and the device."""

    operation_id: Number
    operation: Text
    """One of `Operation`, as far as it is ours to say."""
    dependencies: tuple[Number, ...]
    target_cpu: Id | None = None
    target_device: Id | None = None
    source: Id | None = None
    destination: Id | None = None

    @property
    def port(self) -> str:
        """To what the device is connected, or is to be."""
        return self.target_cpu or self.source or ""

    @property
    def device(self) -> str:
        """The device that is moved."""
        return self.target_device or self.destination or ""


class Procedures(msgspec.Struct, frozen=True):
    """What a job is to do."""

    procedures: tuple[Procedure, ...]


class Result(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What became of a procedure."""

    operation_id: Number = msgspec.field(name="operationID")
    status: Word = ""
    status_code: int | None = None
    response_body: object = None
    started_at: Word | None = None
    ended_at: Word | None = None


class Job(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A layout apply. While it runs, a manager need not show more of it than its id and status."""

    apply_id: Id = msgspec.field(name="applyID")
    status: Word = ""
    procedures: tuple[Procedure, ...] | None = None
    apply_result: tuple[Result, ...] | None = None
    started_at: Word | None = None
    ended_at: Word | None = None
    canceled_at: Word | None = None
    execute_rollback: bool | None = None
    rollback_status: Word | None = None
    rollback_procedures: tuple[Procedure, ...] | None = None
    rollback_result: tuple[Result, ...] | None = None
    rollback_started_at: Word | None = None
    rollback_ended_at: Word | None = None
    resume_procedures: tuple[Procedure, ...] | None = None
    resume_result: tuple[Result, ...] | None = None
    suspended_at: Word | None = None
    resumed_at: Word | None = None

    @property
    def suspended(self) -> bool:
        """Whether it waits for an operator, who must resume or cancel it."""
        return Status.SUSPENDED in {self.status, self.rollback_status}

    @property
    def under_way(self) -> bool:
        """Whether the manager begins no other because of it."""
        return self.status in UNDER_WAY or self.rollback_status in UNDER_WAY

    @property
    def ended(self) -> bool:
        """Whether it, and its rollback if there is one, are over."""
        return self.status in ENDED and (not self.rollback_status or self.rollback_status in ENDED)

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices that it moves, as far as they are shown."""
        steps = (self.procedures, self.rollback_procedures, self.resume_procedures)
        return tuple(one.device for some in steps for one in some or ())

    @property
    def reason(self) -> str:
        """The manager's words about what failed; empty if there are none."""
        lists = (self.resume_result, self.rollback_result, self.apply_result)
        failed = (one for some in lists for one in some or () if one.status == Status.FAILED)
        return next((words for one in failed if (words := _told(one.response_body))), "")


class Applied(msgspec.Struct, frozen=True, rename={"apply_id": "applyID"}):
    """That a job has begun."""

    apply_id: Id


class Jobs(msgspec.Struct, frozen=True, rename="camel"):
    """Some jobs."""

    apply_results: tuple[Job, ...] | None = ()
    count: int | None = 0
    total_count: int | None = 0


def apply_path(job: str) -> str:
    """Return where a job is shown, cancelled and resumed."""
    return f"{APPLIES}/{quote(job, safe='')}"


def newest_path() -> str:
    """Return where the newest jobs are listed, with what they do."""
    fields = [("fields", "procedures"), ("fields", "resumeProcedures")]
    return f"{APPLIES}?{urlencode([*fields, ('sortBy', 'startedAt'), ('orderBy', 'desc'), ('limit', JOBS_SHOWN)])}"


def cancel_path(job: str, *, rollback: bool) -> str:
    """Return where a job is cancelled."""
    return f"{apply_path(job)}?action=cancel&rollbackOnCancel={'true' if rollback else 'false'}"


# --- the configuration manager


class State(msgspec.Struct, frozen=True):
    """How a device is."""

    state: Text | None = ""
    health: Text | None = ""


class Link(msgspec.Struct, frozen=True, rename={"device": "deviceID"}):
    """What a device is connected to."""

    device: Text
    type: Text | None = ""


class Constraints(msgspec.Struct, frozen=True, rename="camel"):
    """What a device cannot be parted from."""

    non_removable_devices: tuple[Link, ...] | None = ()


class Device(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What the hardware says of itself; managers add to it."""

    device_id: Id = msgspec.field(name="deviceID")
    type: Text | None = ""
    model: Text | None = None
    manufacturer: Text | None = None
    serial_number: Text | int | None = None
    status: State | None = None
    power_state: Text | None = None
    device_switch_info: Text | None = None
    links: tuple[Link, ...] | None = None
    constraints: Constraints | None = None
    attribute: object = None

    def fixed_to(self, port: str) -> bool:
        """Whether it cannot be parted from what it is connected to."""
        bound = (self.constraints.non_removable_devices or ()) if self.constraints else ()
        return any(one.device == port for one in bound)


class Annotation(msgspec.Struct, frozen=True):
    """What operators say of a device."""

    available: bool | None = True


class Resource(msgspec.Struct, frozen=True):
    """A device, and what the manager knows of its use."""

    device: Device
    detected: bool | None = True
    node_ids: tuple[Text, ...] | None = msgspec.field(default=(), name="nodeIDs")
    annotation: Annotation | None = None
    groups: tuple[Text, ...] | None = msgspec.field(default=(), name="resourceGroupIDs")

    @property
    def usable(self) -> bool:
        """What the manager calls available: enabled, healthy, and not kept back by an operator."""
        status = self.device.status or State()
        fit = ((status.state or "").lower(), (status.health or "").lower()) == ("enabled", "ok")
        return fit and (self.annotation is None or self.annotation.available is not False)


class Resources(msgspec.Struct, frozen=True):
    """Some resources."""

    resources: tuple[Resource, ...] | None
    count: int | None = 0


class Node(msgspec.Struct, frozen=True):
    """A machine and what is connected to it; the open source gives it no name."""

    id: Id
    name: Text | None = ""
    resources: tuple[Resource, ...] | None = ()


class Nodes(msgspec.Struct, frozen=True):
    """Some nodes."""

    nodes: tuple[Node, ...] | None
    count: int | None = 0


def attribute(device: Device, *names: str) -> str:
    """Return a text among the attributes, which are whatever a manager puts there; empty if there is none."""
    found: object = device.attribute
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, str) and len(found) <= WORDS_MAX else ""


# --- bytes

_applied = msgspec.json.Decoder(Applied)
_job = msgspec.json.Decoder(Job)
_jobs = msgspec.json.Decoder(Jobs)
_procedures = msgspec.json.Decoder(Procedures)
_resources = msgspec.json.Decoder(Resources)
_nodes = msgspec.json.Decoder(Nodes)


def applied(body: bytes) -> str:
    """Return the id of the job that has begun. Raises BadMessage."""
    return _decoded(_applied, body).apply_id


def job(body: bytes) -> Job:
    """Return a job. Raises BadMessage."""
    return _decoded(_job, body)


def jobs(body: bytes) -> tuple[Job, ...]:
    """Return the jobs of a list. Raises BadMessage."""
    return _decoded(_jobs, body).apply_results or ()


def procedures(body: bytes) -> tuple[Procedure, ...]:
    """Return what a job is to do. Raises BadMessage."""
    return _decoded(_procedures, body).procedures


def resources(body: bytes) -> tuple[Resource, ...]:
    """Return the resources of a list. Raises BadMessage."""
    return _decoded(_resources, body).resources or ()


def nodes(body: bytes) -> tuple[Node, ...]:
    """Return the nodes of a list. Raises BadMessage."""
    return _decoded(_nodes, body).nodes or ()


def encode(message: msgspec.Struct) -> bytes:
    """Return the message as JSON."""
    return msgspec.json.encode(message)


# --- errors


class Error(msgspec.Struct, frozen=True):
    """An error as both services spell it; the message of one about a request is a list."""

    code: Text | int | None = ""
    message: object = None


_error = msgspec.json.Decoder(Error)


def error(body: bytes) -> tuple[str, str]:
    """Return the manager's code, and code and words; both empty if these are not a manager's."""
    try:
        told = _error.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "", ""
    code = str(told.code or "")
    return code, _words(code, told.message)


def _told(body: object) -> str:
    if isinstance(body, dict):
        code = body.get("code")
        return _words(code if isinstance(code, str) else "", body.get("message"))
    return _words("", body)


def _words(code: str, message: object) -> str:
    if message is not None and not isinstance(message, str):
        message = msgspec.json.encode(message).decode(errors="replace")
    return _short(": ".join(one for one in (code, message or "") if one))


def _short(text: str) -> str:
    printable = "".join(letter if letter.isprintable() else " " for letter in text[: WORDS_MAX * 4])
    plain = " ".join(printable.split())
    return plain if len(plain) <= WORDS_MAX else f"{plain[:WORDS_MAX]}…"


def _decoded(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadMessage(str(error) or type(error).__name__) from error
