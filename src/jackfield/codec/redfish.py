"""Redfish as paths and bytes, as far as composing goes, for adapter and face alike: DSP0266, DSP2046, DSP2050.

Knows how systems, resource blocks, zones, tasks, sessions and errors are spelt. Must not know how they travel, or what
for. What a service sends is checked here and believed afterwards: links are paths of the same service, nothing is
longer than it may be. Whatever may be null or left out is, somewhere; so almost nothing is required.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final, TypeVar
from urllib.parse import urlsplit

import msgspec

T = TypeVar("T")

JSON: Final = "application/json"
WORDS_MAX: Final = 300
"""So much of a service's own words is passed on."""
MESSAGES_MAX: Final = 8
LOCATION_MAX: Final = 2000

# --- names

VERSIONS: Final = "/redfish"
ROOT: Final = "/redfish/v1"
SERVICE_ROOT: Final = "/redfish/v1/"
SESSIONS: Final = "/redfish/v1/SessionService/Sessions"
SYSTEMS: Final = "/redfish/v1/Systems"
COMPOSITION: Final = "/redfish/v1/CompositionService"
BLOCKS: Final = "/redfish/v1/CompositionService/ResourceBlocks"
ZONES: Final = "/redfish/v1/CompositionService/ResourceZones"
TASKS: Final = "/redfish/v1/TaskService/Tasks"
TASK_MONITORS: Final = "/redfish/v1/TaskService/TaskMonitors"

ID: Final = "@odata.id"
TYPE: Final = "@odata.type"
ETAG: Final = "@odata.etag"
COUNT: Final = "Members@odata.count"
NEXT_LINK: Final = "Members@odata.nextLink"
EXTENDED_INFO: Final = "@Message.ExtendedInfo"
REQUESTED_COUNT: Final = "@Redfish.RequestedCount"
ADD_BLOCK: Final = "#ComputerSystem.AddResourceBlock"
REMOVE_BLOCK: Final = "#ComputerSystem.RemoveResourceBlock"
TOKEN_HEADER: Final = "X-Auth-Token"  # noqa: S105 - the header's name


class CompositionState(StrEnum):
    """What a resource block is doing; a service may know more words."""

    UNUSED = "Unused"
    COMPOSING = "Composing"
    COMPOSED = "Composed"
    COMPOSED_AND_AVAILABLE = "ComposedAndAvailable"
    FAILED = "Failed"
    UNAVAILABLE = "Unavailable"


class TaskState(StrEnum):
    """How far a task has come."""

    NEW = "New"
    STARTING = "Starting"
    RUNNING = "Running"
    SUSPENDED = "Suspended"
    INTERRUPTED = "Interrupted"
    PENDING = "Pending"
    STOPPING = "Stopping"
    COMPLETED = "Completed"
    KILLED = "Killed"
    EXCEPTION = "Exception"
    SERVICE = "Service"
    CANCELLING = "Cancelling"
    CANCELLED = "Cancelled"


ENDED_ILL: Final = (TaskState.KILLED, TaskState.EXCEPTION, TaskState.CANCELLED)
ENDED: Final = (TaskState.COMPLETED, *ENDED_ILL)


class BlockType(StrEnum):
    """What a resource block is of, as far as we ask."""

    COMPUTE = "Compute"
    PROCESSOR = "Processor"
    MEMORY = "Memory"
    NETWORK = "Network"
    COMPUTER_SYSTEM = "ComputerSystem"


class ProcessorType(StrEnum):
    """What a processor is, as far as we ask."""

    CPU = "CPU"
    GPU = "GPU"
    FPGA = "FPGA"
    ACCELERATOR = "Accelerator"


ABSENT: Final = "Absent"
"""The state of what is listed and not there."""
UNUSABLE: Final = (ABSENT, "Disabled", "UnavailableOffline", "Updating", "InTest", "Quiesced")


class Health(StrEnum):
    """How a resource is."""

    OK = "OK"
    WARNING = "Warning"
    CRITICAL = "Critical"


# --- what is read


class BadMessage(ValueError):  # noqa: N818 - a finding about what was received
    """Bytes that say nothing in this language; the message says where."""


URI_PATTERN: Final = r"^(?!.*(\.\.|%2[eEfF]|%5[cC]))/redfish/[A-Za-z0-9._~!$&'()*+,;=:@%/?-]{1,1000}\Z"
Uri = Annotated[str, msgspec.Meta(pattern=URI_PATTERN)]
"""A path of the same service: where credentials may go."""
Text = Annotated[str, msgspec.Meta(max_length=1000)]
Words = Annotated[str, msgspec.Meta(max_length=100_000)]
Number = Annotated[float, msgspec.Meta(ge=0, le=2**60)]


class _Read(msgspec.Struct, frozen=True, kw_only=True, rename="pascal", omit_defaults=True):
    """Something that a service shows."""


class Link(_Read, frozen=True, kw_only=True, rename="pascal", omit_defaults=True):
    """A reference; where something was expanded, more stands beside it."""

    uri: Uri = msgspec.field(name=ID)


class Resource(Link, frozen=True, kw_only=True, rename="pascal", omit_defaults=True):
    """What every resource has."""

    etag: Text | None = msgspec.field(name=ETAG, default="")
    id: Text | None = ""
    """Empty where only a reference was given."""
    name: Text | None = ""


class Status(_Read, frozen=True, kw_only=True, rename="pascal", omit_defaults=True):
    """How a resource is."""

    state: Text | None = ""
    health: Text | None = ""

    @property
    def usable(self) -> bool:
        """Whether nothing is said against using it; a warning is not."""
        return self.health != Health.CRITICAL and self.state not in UNUSABLE


class Expand(_Read, frozen=True, kw_only=True, rename="pascal", omit_defaults=True):
    """What of `$expand` a service knows."""

    no_links: bool | None = False
    levels: bool | None = False
    max_levels: int | None = None


class Features(_Read, frozen=True, kw_only=True, rename="pascal", omit_defaults=True):
    """What a service can do for those who ask for it."""

    expand_query: Expand | None = None


class RootLinks(_Read, frozen=True, kw_only=True, rename="pascal", omit_defaults=True):
    """Where a session is made."""

    sessions: Link | None = None


class Agent(_Read, frozen=True, kw_only=True, rename="pascal", omit_defaults=True):
    """Whom Sunfish passes changes of a resource on to."""

    managing_agent: Link | None = None


class Oem(_Read, frozen=True, kw_only=True, rename="pascal", omit_defaults=True):
    """What Sunfish adds to what its agents show."""

    sunfish: Agent | None = msgspec.field(name="Sunfish_RM", default=None)


class ServiceRoot(Resource, frozen=True, kw_only=True, rename="pascal", omit_defaults=True):
    """The way in."""

    systems: Link | None = None
    composition_service: Link | None = None
    event_service: Link | None = None
    links: RootLinks | None = None
    protocol_features_supported: Features | None = None


class CompositionService(Resource, frozen=True, kw_only=True, rename="pascal", omit_defaults=True):
    """Where blocks and zones are."""

    resource_blocks: Link | None = None
    resource_zones: Link | None = None


class EventService(Resource, frozen=True, kw_only=True, rename="pascal", omit_defaults=True):
    """Where events come from."""

    server_sent_event_uri: Uri | None = None
    service_enabled: bool | None = True


class Collection(Resource, frozen=True, kw_only=True, rename="pascal", omit_defaults=True):
    """Members, each a reference or the whole resource; more of them behind the link."""

    members: tuple[msgspec.Raw, ...] = ()
    next_link: Uri | None = msgspec.field(name=NEXT_LINK, default=None)


class SystemLinks(_Read, frozen=True, kw_only=True, rename="pascal", omit_defaults=True):
    """What a system, or a zone, is made of."""

    resource_blocks: tuple[Link, ...] | None = None


class Target(_Read, frozen=True, kw_only=True, rename="pascal", omit_defaults=True):
    """Where an action is posted to."""

    target: Uri | None = msgspec.field(name="target", default=None)


class SystemActions(_Read, frozen=True, kw_only=True, rename="pascal", omit_defaults=True):
    """What can be done to a system, as far as we would."""

    add: Target | None = msgspec.field(name=ADD_BLOCK, default=None)
    remove: Target | None = msgspec.field(name=REMOVE_BLOCK, default=None)


class ComputerSystem(Resource, frozen=True, kw_only=True, rename="pascal", omit_defaults=True):
    """A machine."""

    host_name: Text | None = ""
    uuid: Text | None = msgspec.field(name="UUID", default="")
    serial_number: Text | None = ""
    status: Status | None = None
    links: SystemLinks | None = None
    actions: SystemActions | None = None
    oem: Oem | None = None

    @property
    def lists_blocks(self) -> bool:
        """Whether it says what it is made of, be it nothing."""
        return self.links is not None and self.links.resource_blocks is not None

    @property
    def blocks(self) -> tuple[str, ...]:
        """Where the blocks are that it is made of."""
        return tuple(one.uri for one in (self.links.resource_blocks or ())) if self.links else ()


class PartLinks(_Read, frozen=True, kw_only=True, rename="pascal", omit_defaults=True):
    """What a part leads to."""

    network_adapter: Link | None = None


class MemorySummary(_Read, frozen=True, kw_only=True, rename="pascal", omit_defaults=True):
    """What memory a processor has."""

    total_memory_size_mib: Number | None = msgspec.field(name="TotalMemorySizeMiB", default=None)


class Part(Resource, frozen=True, kw_only=True, rename="pascal", omit_defaults=True):
    """A device in a block: a processor, memory, a drive, an interface."""

    processor_type: Text | None = ""
    model: Text | None = ""
    manufacturer: Text | None = ""
    part_number: Text | None = ""
    serial_number: Text | None = ""
    uuid: Text | None = msgspec.field(name="UUID", default="")
    memory_summary: MemorySummary | None = None
    capacity_mib: Number | None = msgspec.field(name="CapacityMiB", default=None)
    capacity_bytes: Number | None = None
    status: Status | None = None
    links: PartLinks | None = None


class CompositionStatus(_Read, frozen=True, kw_only=True, rename="pascal", omit_defaults=True):
    """What a block is doing, and whether somebody keeps it."""

    composition_state: Text | None = ""
    reserved: bool | None = False
    max_compositions: int | None = None
    number_of_compositions: int | None = None
    sharing_capable: bool | None = False
    sharing_enabled: bool | None = False


class BlockLinks(_Read, frozen=True, kw_only=True, rename="pascal", omit_defaults=True):
    """Where a block is used, and what it can go with."""

    computer_systems: tuple[Link, ...] | None = ()
    zones: tuple[Link, ...] | None = ()


class ResourceBlock(Resource, frozen=True, kw_only=True, rename="pascal", omit_defaults=True):
    """What is composed: the smallest thing that can be given to a machine."""

    resource_block_type: tuple[Text, ...] | None = ()
    composition_status: CompositionStatus | None = None
    client: Text | None = ""
    status: Status | None = None
    processors: tuple[Part, ...] | None = ()
    memory: tuple[Part, ...] | None = ()
    drives: tuple[Part, ...] | None = ()
    network_interfaces: tuple[Part, ...] | None = ()
    ethernet_interfaces: tuple[Part, ...] | None = ()
    links: BlockLinks | None = None
    oem: Oem | None = None

    @property
    def state(self) -> str:
        """What it is doing, in the service's word."""
        return (self.composition_status.composition_state or "") if self.composition_status else ""

    @property
    def reserved(self) -> bool:
        """Whether somebody keeps it."""
        return bool(self.composition_status and self.composition_status.reserved)

    @property
    def composed(self) -> bool:
        """Whether it is part of a machine."""
        return self.state in {CompositionState.COMPOSED, CompositionState.COMPOSED_AND_AVAILABLE}

    @property
    def systems(self) -> tuple[str, ...]:
        """Where the machines are that it is part of."""
        return tuple(one.uri for one in (self.links.computer_systems or ())) if self.links else ()

    @property
    def zones(self) -> tuple[str, ...]:
        """Where the zones are that it is in."""
        return tuple(one.uri for one in (self.links.zones or ())) if self.links else ()


class Zone(Resource, frozen=True, kw_only=True, rename="pascal", omit_defaults=True):
    """Blocks that can go together."""

    links: SystemLinks | None = None

    @property
    def blocks(self) -> tuple[str, ...]:
        """Where its blocks are."""
        return tuple(one.uri for one in (self.links.resource_blocks or ())) if self.links else ()


class Message(_Read, frozen=True, kw_only=True, rename="pascal", omit_defaults=True):
    """Something that a service has to say."""

    message: Words | None = ""
    message_id: Text | None = ""

    @property
    def words(self) -> str:
        """What it says; its id where that is all."""
        return self.message or self.message_id or ""


class Task(Resource, frozen=True, kw_only=True, rename="pascal", omit_defaults=True):
    """Work that takes its time."""

    task_state: Text | None = ""
    task_status: Text | None = ""
    task_monitor: Uri | None = None
    messages: tuple[Message, ...] | None = ()


class _ErrorBody(msgspec.Struct, frozen=True, kw_only=True):
    code: Text | None = ""
    message: Words | None = ""
    info: tuple[Message, ...] | None = msgspec.field(name=EXTENDED_INFO, default=())


class _Error(msgspec.Struct, frozen=True, kw_only=True):
    error: _ErrorBody


def decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    """Return what reads such a resource; made once, used often."""
    return msgspec.json.Decoder(kind)


def decoded(reader: msgspec.json.Decoder[T], body: bytes | msgspec.Raw) -> T:
    """Return what was sent. Raises BadMessage."""
    try:
        return reader.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadMessage(str(error) or type(error).__name__) from error


# --- what is sent


Body = dict[str, object]
"""What a change says, before it is bytes."""


def reservation(*, reserved: bool, client: str = "") -> Body:
    """Return what keeps a block for us, under our name if we have one, or lets it go."""
    kept: Body = {"CompositionStatus": {"Reserved": reserved}}
    return {**kept, "Client": client if reserved else None} if client else kept


def credentials(user_name: str, password: str) -> Body:
    """Return what a session is asked for with."""
    return {"UserName": user_name, "Password": password}


def block_action(block: str, block_etag: str = "") -> Body:
    """Return what AddResourceBlock and RemoveResourceBlock are told."""
    told: Body = {"ResourceBlock": {ID: block}}
    return {**told, "ResourceBlockETag": block_etag} if block_etag else told


def block_list(blocks: tuple[str, ...]) -> Body:
    """Return what makes these, and no others, the blocks of a machine."""
    return {"Links": {"ResourceBlocks": [{ID: one} for one in blocks]}}


def request(members: str, properties: Mapping[str, str], count: int) -> Body:
    """Return what asks a service for so many more devices, such as of `Processors`, of its own choice."""
    return {members: {"Members": [{REQUESTED_COUNT: count, **properties}]}}


# --- errors


def error(body: bytes) -> str:
    """Return the service's words; empty if these are not a Redfish service's."""
    told = _told(body)
    return words(told.info or ()) or short(told.message or "") or short(told.code or "")


def failed(body: bytes) -> bool:
    """Return whether a service says that it did its work, and that the work failed."""
    told = _told(body)
    named = (told.code or "", *(one.message_id or "" for one in (told.info or ())[:MESSAGES_MAX]))
    return any(one.endswith(".OperationFailed") for one in named)


def _told(body: bytes) -> _ErrorBody:
    try:
        return _error.decode(body).error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _ErrorBody()


def words(messages: tuple[Message, ...]) -> str:
    """Return what the messages say, those that are no more than politeness left out."""
    told = dict.fromkeys(one.words for one in messages[:MESSAGES_MAX] if one.words)
    return short(" ".join(told))


def short(text: str) -> str:
    """Return the text on one line, as much as is passed on."""
    printable = "".join(letter if letter.isprintable() else " " for letter in text[: WORDS_MAX * 4])
    plain = " ".join(printable.split())
    return plain if len(plain) <= WORDS_MAX else f"{plain[:WORDS_MAX]}…"


def tag(header: str, member: str | None = "") -> str:
    """Return the ETag to send back, from header or body; empty if there is none that can stand in a header."""
    found = header or member or ""
    return found if _TAG.fullmatch(found) else ""


_TAG: Final = re.compile(r'(W/)?"[\x21\x23-\x7e]{0,500}"')
_URI: Final = re.compile(URI_PATTERN)
_error = msgspec.json.Decoder(_Error)


def location(header: str) -> str:
    """Return the path that a Location leads to, here or by a whole address; empty if it leads nowhere of ours."""
    parts = urlsplit(header) if len(header) <= LOCATION_MAX else urlsplit("")
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    return path if _URI.match(path) else ""


def encode(message: msgspec.Struct | Body) -> bytes:
    """Return the message as JSON."""
    return msgspec.json.encode(message)
