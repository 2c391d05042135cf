"""Fsas Fabric Manager, Cluster Manager and their id_manager as paths and bytes, for adapter and face alike.

Knows how machines, resources, counts, tokens and errors are spelt. Must not know how they travel, or what for. What a
manager sends is checked here and believed afterwards: ids are fit to stand in a path, nothing is longer than it may be.
"""

import base64
from collections.abc import Mapping
from typing import Annotated, Final, TypeVar
from urllib.parse import quote, urlencode

import msgspec

T = TypeVar("T")

JSON: Final = "application/json"
FORM: Final = "application/x-www-form-urlencoded"
MODEL: Final = "model"
EQUAL: Final = "eq"
WORDS_MAX: Final = 300
"""So much of a manager's own words is passed on."""

Id = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,252}$")]
"""Begins with a letter or digit, so that it cannot be the way to a folder above."""
MaybeId = Annotated[str, msgspec.Meta(pattern=r"^([A-Za-z0-9][A-Za-z0-9._:-]{0,252})?$")]
Text = Annotated[str, msgspec.Meta(max_length=1000)]
Count = Annotated[int, msgspec.Meta(ge=0, le=100_000)]


class BadMessage(ValueError):  # noqa: N818 - a finding about what was received
    """Bytes that say nothing in this language; the message says where."""


# --- what both managers say of a device


class Condition(msgspec.Struct, frozen=True):
    """What a device must be like."""

    column: Text = ""
    operator: Text = ""
    value: Text | int | float | bool | None = None


def model_in(conditions: tuple[Condition, ...]) -> str:
    """Return the model that is asked for; empty if none is."""
    found = (one.value for one in conditions if one.column == MODEL and one.operator == EQUAL)
    return next((one for one in found if isinstance(one, str)), "")


def critical(op_status: str | None) -> bool:
    """Return whether the manager says that a device cannot be used."""
    return (op_status or "").startswith("2")


def healthy(op_status: str | None) -> bool:
    """Return whether the manager says that a device can be used, if with a warning; silence says nothing."""
    return (op_status or "").startswith(("0", "1"))


# --- the Fabric Manager


class Spec(msgspec.Struct, frozen=True):
    """What was asked for when a device was attached."""

    condition: tuple[Condition, ...] | None = ()


class Resource(msgspec.Struct, frozen=True):
    """A device on a machine."""

    res_uuid: Id
    res_type: Text
    res_name: Text | None = ""
    res_status: int | None = 0
    res_op_status: Text | None = ""
    res_serial_num: Text | None = ""
    res_spec: Spec | None = None

    @property
    def model(self) -> str:
        """The model it was asked for by; empty if the manager does not say."""
        return model_in((self.res_spec.condition or ()) if self.res_spec else ())


class Machine(msgspec.Struct, frozen=True):
    """A machine; a list of them need not show what is attached."""

    mach_uuid: Id
    fabric_id: int | None = None
    fabric_uuid: Text | None = ""
    mach_id: int | Text | None = None
    mach_name: Text | None = ""
    tenant_uuid: Text | None = ""
    mach_status: int | None = 0
    mach_status_detail: Text | None = ""
    resources: tuple[Resource, ...] | None = ()


class Machines(msgspec.Struct, frozen=True):
    """Some machines."""

    machines: tuple[Machine, ...] | None = ()


class MachinesAnswer(msgspec.Struct, frozen=True):
    """What every call about machines is answered with."""

    data: Machines


class Available(msgspec.Struct, frozen=True):
    """How many devices of a kind are free for the tenant in the fabric of a machine."""

    reserved_res_num_per_fabric: Count
    fabric_id: int | None = None


class Asked(msgspec.Struct, frozen=True, omit_defaults=True):
    """A device to attach, by what it must be like, or to detach, by its id."""

    res_type: Text
    res_num: Count
    res_uuid: MaybeId = ""
    res_spec: Spec | None = None


class AskedSpecs(msgspec.Struct, frozen=True):
    """Devices of a machine."""

    res_specs: tuple[Asked, ...]


class AskedMachine(msgspec.Struct, frozen=True):
    """A machine to change."""

    mach_uuid: Id
    resources: tuple[AskedSpecs, ...]


class AskedTenant(msgspec.Struct, frozen=True):
    """Whose machines are to be changed."""

    tenant_uuid: Text
    machines: tuple[AskedMachine, ...]


class Update(msgspec.Struct, frozen=True):
    """What is to become of a machine."""

    tenants: AskedTenant


FM: Final = "/fabric_manager/api/v1/machines"


def machines_path(tenant: str) -> str:
    """Return where the tenant's machines are listed."""
    return f"{FM}?{urlencode({'tenant_uuid': tenant})}"


def machine_path(tenant: str, machine: str) -> str:
    """Return where a machine is shown."""
    return f"{FM}/{quote(machine, safe='')}?{urlencode({'tenant_uuid': tenant})}"


def update_path(tenant: str, machine: str) -> str:
    """Return where devices are attached (PATCH) and detached (DELETE)."""
    return f"{FM}/{quote(machine, safe='')}/update?{urlencode({'tenant_uuid': tenant})}"


def available_path(tenant: str, machine: str, kind: str, model: str) -> str:
    """Return where it says how many are free in a machine's fabric."""
    condition = msgspec.json.encode(Condition(MODEL, EQUAL, model)).decode()
    query = urlencode({"tenant_uuid": tenant, "res_type": kind, "condition": condition})
    return f"{FM}/{quote(machine, safe='')}/available-reserved-resources?{query}"


def attachment(tenant: str, machine: str, kind: str, model: str) -> bytes:
    """Return what asks for one more device of a model."""
    spec = Spec((Condition(MODEL, EQUAL, model),))
    return _update(tenant, machine, Asked(kind, 1, res_spec=spec))


def detachment(tenant: str, machine: str, kind: str, resource: str) -> bytes:
    """Return what asks for a device to be taken back."""
    return _update(tenant, machine, Asked(kind, 1, res_uuid=resource))


def _update(tenant: str, machine: str, asked: Asked) -> bytes:
    changed = AskedMachine(machine, (AskedSpecs((asked,)),))
    return msgspec.json.encode(Update(AskedTenant(tenant, (changed,))))


_machines = msgspec.json.Decoder(MachinesAnswer)
_available = msgspec.json.Decoder(Available)
_update_decoder = msgspec.json.Decoder(Update)


def machines(body: bytes) -> tuple[Machine, ...]:
    """Return the machines of an answer. Raises BadMessage."""
    return _decoded(_machines, body).data.machines or ()


def available(body: bytes) -> int:
    """Return how many are free. Raises BadMessage."""
    return _decoded(_available, body).reserved_res_num_per_fabric


def update(body: bytes) -> Update:
    """Return what is to become of a machine. Raises BadMessage."""
    return _decoded(_update_decoder, body)


# --- the Cluster Manager


class Expression(msgspec.Struct, frozen=True):
    """What all devices of a spec are like."""

    conditions: tuple[Condition, ...] | None = ()


class Selector(msgspec.Struct, frozen=True):
    """How a spec chooses."""

    version: Text | None = ""
    expression: Expression | None = None


class Product(msgspec.Struct, frozen=True):
    """What a device is."""

    resspec_uuid: Text | None = ""
    productname: Text | None = ""
    model: Text | None = ""
    vendor: Text | None = ""
    removable: bool | None = True


class Detail(msgspec.Struct, frozen=True):
    """What the Fabric Manager knows of a device."""

    res_uuid: MaybeId | None = ""
    res_type: Text | None = ""
    res_name: Text | None = ""
    res_status: int | Text | None = None
    res_op_status: Text | None = ""
    resspecs: tuple[Product, ...] | None = ()
    tenant_uuid: Text | None = ""
    mach_uuid: Text | None = ""


class CmDevice(msgspec.Struct, frozen=True):
    """A device that was asked for."""

    device_id: MaybeId | None = ""
    status: Text | None = ""
    status_reason: Text | None = ""
    detail: Detail | None = None


class CmSpec(msgspec.Struct, frozen=True):
    """A model, and how many of it a machine is to have."""

    spec_uuid: Id
    device_count: Count
    type: Text | None = ""
    selector: Selector | None = None
    min_resspec_count: Count | None = 0
    max_resspec_count: Count | None = 0
    devices: tuple[CmDevice, ...] | None = ()

    @property
    def model(self) -> str:
        """The model that the spec chooses; empty if it chooses otherwise."""
        expression = self.selector.expression if self.selector else None
        return model_in((expression.conditions or ()) if expression else ())


class CmMachine(msgspec.Struct, frozen=True):
    """A machine and what it is to have."""

    uuid: Id
    name: Text | None = ""
    status: Text | None = ""
    status_reason: Text | None = ""
    resspecs: tuple[CmSpec, ...] | None = ()


class CmCluster(msgspec.Struct, frozen=True):
    """The cluster that a machine is of."""

    machine: CmMachine
    cluster_uuid: Text | None = ""


class CmTenant(msgspec.Struct, frozen=True):
    """The tenant whose cluster it is."""

    cluster: CmCluster
    tenant_uuid: Text | None = ""


class CmAnswer(msgspec.Struct, frozen=True):
    """What a question about a machine is answered with."""

    data: CmTenant


class Increase(msgspec.Struct, frozen=True):
    """So many devices of a spec a machine is to have."""

    spec_uuid: Id
    device_count: Count


class Remove(msgspec.Struct, frozen=True):
    """So many are to be left when these are gone."""

    spec_uuid: Id
    device_count: Count
    devices: tuple[Id, ...]


class Resize(msgspec.Struct, frozen=True, omit_defaults=True):
    """One of the two."""

    increase_resource_count: Increase | None = None
    remove_resources: Remove | None = None


ADD_COMPLETE: Final = "ADD_COMPLETE"
ADD_FAILED: Final = "ADD_FAILED"
REMOVE_FAILED: Final = "REMOVE_FAILED"
ADDING: Final = "ADD_"
"""What the words for a device that is not there yet begin with, `ADD_COMPLETE` apart."""
REMOVING: Final = "REMOVE_"
"""What the words for a device that is on its way out begin with."""
SETTLED: Final = (ADD_COMPLETE, ADD_FAILED, REMOVE_FAILED)
CM: Final = "/cluster_manager/cluster_autoscaler/v3/tenants"


def cm_machine_path(tenant: str, cluster: str, machine: str) -> str:
    """Return where a machine is shown."""
    parts = (quote(one, safe="") for one in (tenant, cluster, machine))
    return "{}/{}/clusters/{}/machines/{}".format(CM, *parts)


def resize_path(tenant: str, cluster: str, machine: str) -> str:
    """Return where a machine's counts are changed."""
    return f"{cm_machine_path(tenant, cluster, machine)}/actions/resize"


_cm_machine = msgspec.json.Decoder(CmAnswer)
_resize = msgspec.json.Decoder(Resize)


def cm_machine(body: bytes) -> CmMachine:
    """Return a machine. Raises BadMessage."""
    return _decoded(_cm_machine, body).data.cluster.machine


def resize(body: bytes) -> Resize:
    """Return what is to become of a machine's counts. Raises BadMessage."""
    return _decoded(_resize, body)


# --- tokens


class Grant(msgspec.Struct, frozen=True):
    """A token and for how long it is good, as the id_manager says it."""

    access_token: Annotated[str, msgspec.Meta(pattern=r"^[\x21-\x7e]{1,65536}$")]
    expires_in: float | None = None


class _Claims(msgspec.Struct, frozen=True):
    exp: float | None = None


class _GrantError(msgspec.Struct, frozen=True):
    error: Annotated[str, msgspec.Meta(pattern=r"^[a-z_]{1,40}$")]


def token_path(realm: str) -> str:
    """Return where tokens are given out."""
    return f"/id_manager/realms/{quote(realm, safe='')}/protocol/openid-connect/token"


def token_form(fields: Mapping[str, str]) -> bytes:
    """Return what asks for a token."""
    return urlencode(fields).encode()


_grant = msgspec.json.Decoder(Grant)
_grant_error = msgspec.json.Decoder(_GrantError)
_claims = msgspec.json.Decoder(_Claims)


def grant(body: bytes) -> Grant:
    """Return a token. Raises BadMessage, which shows nothing of what was received."""
    try:
        return _grant.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    raise BadMessage("it is no token")


def expiry(token: str) -> float | None:
    """Return when a token that says so itself (a JWT) is good no more, in seconds since 1970."""
    parts = token.split(".")
    if len(parts) != len(("header", "payload", "signature")):
        return None
    try:
        payload = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        return _claims.decode(payload).exp
    except (ValueError, msgspec.DecodeError, RecursionError):
        return None


def grant_error(body: bytes) -> str:
    """Return the id_manager's word for what is wrong; empty if it has none. Its sentences may hold names."""
    try:
        return _grant_error.decode(body).error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""


# --- errors


class ErrorDetail(msgspec.Struct, frozen=True):
    """A code, and words or whatever the manager puts there."""

    code: str | int | None = ""
    message: object = None


class Error(msgspec.Struct, frozen=True, omit_defaults=True):
    """An error as both managers spell it; some stand-ins have only `error`."""

    status: int | str | None = None
    detail: ErrorDetail | str | None = None
    error: str | None = None


_error = msgspec.json.Decoder(Error)


def error(body: bytes) -> str:
    """Return the manager's code and words; empty if these are not a manager's."""
    try:
        told = _error.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    if isinstance(told.detail, ErrorDetail):
        message = told.detail.message
        if message is not None and not isinstance(message, str):
            message = msgspec.json.encode(message).decode(errors="replace")
        parts = (str(told.detail.code or ""), message or "")
        return _short(": ".join(one for one in parts if one))
    return _short(told.detail or told.error or "")


def _short(text: str) -> str:
    printable = "".join(letter if letter.isprintable() else " " for letter in text[: WORDS_MAX * 4])
    plain = " ".join(printable.split())
    return plain if len(plain) <= WORDS_MAX else f"{plain[:WORDS_MAX]}…"


def encode(message: msgspec.Struct) -> bytes:
    """Return the message as JSON."""
    return msgspec.json.encode(message)


def _decoded(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadMessage(str(error) or type(error).__name__) from error
