"""Liqid Director as paths and bytes, for adapter and face alike.

Knows how machines, groups, devices, relations, keys and errors are spelt. Must not know how they travel, or what for.
What a Director sends is checked here and believed afterwards: names can be printed, nothing is longer than it may be.
A Director wants whole objects back: what it showed is kept as it was, also what has no name here.
"""

from collections.abc import Mapping
from typing import Annotated, Final, Generic, TypeVar
from urllib.parse import quote

import msgspec

T = TypeVar("T")

JSON: Final = "application/json"
KEY_HEADER: Final = "X-API-Key"
PREFIX: Final = "/liqid/api/v2"
DIGESTS: Final = f"{PREFIX}/digest"
GROUPS: Final = f"{PREFIX}/group"
MACHINES: Final = f"{PREFIX}/machine"
PREDEVICES: Final = f"{PREFIX}/predevice"
EDIT: Final = f"{PREFIX}/fabric/edit"
EDIT_CANCEL: Final = f"{EDIT}/cancel"
REPROGRAM: Final = f"{PREFIX}/fabric/reprogram"
REPROGRAM_CANCEL: Final = f"{REPROGRAM}/cancel"
WORDS_MAX: Final = 300
"""So much of a Director's own words is passed on."""

Id = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,252}$")]
Text = Annotated[str, msgspec.Meta(max_length=1000)]
Number = Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)]
Key = Annotated[str, msgspec.Meta(pattern=r"^[!-~]{1,4000}$")]
"""What can stand in a header."""


class BadMessage(ValueError):  # noqa: N818 - a finding about what was received
    """Bytes that say nothing in this language; the message says where."""


class Kind(msgspec.Struct, frozen=True):
    """What the paths call a type of device, which differs from path to path."""

    info: str
    status: str
    relate: str

    @property
    def infos(self) -> str:
        """Where models and serial numbers are."""
        return f"{PREFIX}/device/info/{self.info}"

    @property
    def statuses(self) -> str:
        """Where devices are shown as a relation must name them; all of them, not only those in no group."""
        return f"{PREFIX}/status/{self.status}"

    @property
    def relation(self) -> str:
        """Where a device is put on a machine that is being edited, or taken from it."""
        return f"{PREFIX}/relate/{self.relate}"


KINDS: Final[Mapping[str, Kind]] = {
    "gpu": Kind("gpu", "gpu", "gpu"),
    "fpga": Kind("fpga", "fpga", "fpga"),
    "nic": Kind("link", "network", "network"),
    "drive": Kind("ssd", "storage", "storage"),
    "cxlmemory": Kind("mem", "mem", "memory"),
}
"""Types of devices by our words for them."""


# --- what a Director shows


class Machine(msgspec.Struct, frozen=True):
    """A machine; edits and reprogramming are about one."""

    mach_id: Number
    mach_name: Text
    grp_id: Number
    fabr_id: Number = 0
    index: Number = 0
    comp_name: Text = ""
    p2p: Text = "off"


class Group(msgspec.Struct, frozen=True):
    """Machines, and the devices that they can have."""

    grp_id: Number
    group_name: Text
    fabr_id: Number = 0
    pod_id: Number = -1


class Predevice(msgspec.Struct, frozen=True):
    """Where a device is. SDKs differ in whether numbers are sent as numbers or as text."""

    name: Id
    grp_id: Number | Text | None = None
    mach_id: Number | Text | None = None
    dev_type: Text | None = None
    gname: Text | None = None
    mname: Text | None = None

    @property
    def group(self) -> int:
        """The group it is in; 0 if it is in none."""
        return _number(self.grp_id)

    @property
    def machine(self) -> int:
        """The machine it is on; 0 if it is on none."""
        return _number(self.mach_id)


def _number(shown: int | str | None) -> int:
    """Return an id; whatever is none, such as `n/a`, is 0."""
    if isinstance(shown, str):
        return int(shown) if shown.isascii() and shown.isdigit() and len(shown) < len("1000000000") else 0
    return max(shown or 0, 0)


class Info(msgspec.Struct, frozen=True):
    """What a device is, wherever it is."""

    name: Id
    model: Text | None = None
    vendor: Text | None = None
    serial_num: Text | None = None
    device_state: Text | None = None


class Status(msgspec.Struct, frozen=True):
    """A device as a relation names it."""

    name: Id
    dev_id: Number | Text | None = None
    device_state: Text | None = None
    device_type: Text | None = None


class Shown(msgspec.Struct, Generic[T], frozen=True):
    """Something that was shown, and its bytes, to be sent back as they were."""

    value: T
    raw: bytes


# --- what a Director is told


class GroupRelation(msgspec.Struct, frozen=True, rename="camel"):
    """A device of a group."""

    device_status: Status
    group: Group


class Relation(msgspec.Struct, frozen=True, rename="camel"):
    """A device of a group on a machine."""

    group_device_relator: GroupRelation
    machine: Machine


def related(status: bytes, group: bytes, machine: bytes) -> bytes:
    """Return the relation of what was shown, word for word."""
    inner = {"deviceStatus": msgspec.Raw(status), "group": msgspec.Raw(group)}
    return msgspec.json.encode({"groupDeviceRelator": inner, "machine": msgspec.Raw(machine)})


def relation(body: bytes) -> Relation:
    """Return what device is meant, and which machine. Raises BadMessage."""
    return _decoded(_relation, body)


def machine(body: bytes) -> Machine:
    """Return the machine that an edit is about. Raises BadMessage."""
    return _decoded(_machine, body)


# --- answers


class Digest(msgspec.Struct, frozen=True):
    """A key, and the label by which it can be deleted."""

    digest_key: Key
    digest_label: Text = ""
    digest_id: Number = 0


class Error(msgspec.Struct, frozen=True):
    """What went wrong."""

    code: Number = 0
    message: Text | None = None
    type: Text | None = None


class Answer(msgspec.Struct, frozen=True):
    """What every answer is made of; an error may come with any status."""

    code: Number = 0
    errors: tuple[Error, ...] | None = None
    data: tuple[msgspec.Raw, ...] | None = None


class Wrapper(msgspec.Struct, frozen=True):
    """What every answer is wrapped in."""

    response: Answer


def digest_path(label: str) -> str:
    """Return where a key is made and deleted."""
    return f"{DIGESTS}/{quote(label, safe='')}"


def digest(body: bytes) -> str:
    """Return the key that was made. Raises BadMessage."""
    found = _all(_digest, body)
    if len(found) != 1:
        raise BadMessage(f"there are {len(found)} keys instead of one")
    return found[0].value.digest_key


def machines(body: bytes) -> tuple[Shown[Machine], ...]:
    """Return the machines. Raises BadMessage."""
    return _all(_machine, body)


def groups(body: bytes) -> tuple[Shown[Group], ...]:
    """Return the groups. Raises BadMessage."""
    return _all(_group, body)


def predevices(body: bytes) -> tuple[Predevice, ...]:
    """Return where devices are. Raises BadMessage."""
    return tuple(one.value for one in _all(_predevice, body))


def infos(body: bytes) -> tuple[Info, ...]:
    """Return what devices are. Raises BadMessage."""
    return tuple(one.value for one in _all(_info, body))


def statuses(body: bytes) -> tuple[Shown[Status], ...]:
    """Return devices as relations name them. Raises BadMessage."""
    return _all(_status, body)


def placed(body: bytes) -> str:
    """Return the name of the device that a relation was made of. Raises BadMessage."""
    found = _all(_placed, body)
    if len(found) != 1:
        raise BadMessage(f"there are {len(found)} relations instead of one")
    return found[0].value.device_status.name


def error(body: bytes) -> str:
    """Return what the Director says went wrong; empty if it says nothing of the kind."""
    try:
        told = _wrapper.decode(body).response
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    if not told.code and not told.errors:
        return ""
    words = [_words(one) for one in told.errors or ()]
    return _short("; ".join(one for one in words if one) or f"code {told.code}")


def _words(one: Error) -> str:
    return ": ".join(part for part in (str(one.code or ""), one.message or one.type or "") if part)


def answer(*data: object) -> bytes:
    """Return an answer of these."""
    return msgspec.json.encode({"response": {"code": 0, "errors": None, "data": data}})


def refusal(code: int, words: str) -> bytes:
    """Return an answer that says no."""
    told = {"code": code, "message": words[:1000], "type": "ERROR"}
    return msgspec.json.encode({"response": {"code": code, "errors": [told], "data": None}})


_wrapper: Final = msgspec.json.Decoder(Wrapper)
_digest: Final = msgspec.json.Decoder(Digest)
_machine: Final = msgspec.json.Decoder(Machine)
_group: Final = msgspec.json.Decoder(Group)
_predevice: Final = msgspec.json.Decoder(Predevice)
_info: Final = msgspec.json.Decoder(Info)
_status: Final = msgspec.json.Decoder(Status)
_placed: Final = msgspec.json.Decoder(GroupRelation)
_relation: Final = msgspec.json.Decoder(Relation)


def _all(reader: msgspec.json.Decoder[T], body: bytes) -> tuple[Shown[T], ...]:
    found = _decoded(_wrapper, body).response.data
    return tuple(Shown(_decoded(reader, one), bytes(one)) for one in found or ())


def _decoded(reader: msgspec.json.Decoder[T], body: bytes | msgspec.Raw) -> T:
    try:
        return reader.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as found:
        raise BadMessage(_short(str(found))) from None
    except RecursionError:
        raise BadMessage("it is nested too deeply") from None


def _short(text: str) -> str:
    printable = "".join(letter if letter.isprintable() else " " for letter in text[: WORDS_MAX * 4])
    plain = " ".join(printable.split())
    return plain if len(plain) <= WORDS_MAX else f"{plain[:WORDS_MAX]}…"
