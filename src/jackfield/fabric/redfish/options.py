"""What an operator says of a Redfish service, and in what services differ that an operator need not know.

Knows values and what is wrong with them. Must not know the wire.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final, TypeVar
from urllib.parse import urlsplit

import msgspec

from jackfield.fabric.settings import BadFabric, FabricSettings, options
from jackfield.model.fabric import Traits
from jackfield.model.names import Seconds

O = TypeVar("O", bound="Options")  # noqa: E741 - options

SPAN_MAX: Final = Seconds(3600.0)
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
Span = Annotated[Seconds, msgspec.Meta(gt=0, le=SPAN_MAX)]


class Authentication(StrEnum):
    """How calls prove who sends them."""

    SESSION = "session"
    BASIC = "basic"
    NONE = "none"


class Composition(StrEnum):
    """Who chooses the device: we, or the service."""

    SPECIFIC = "specific"
    CONSTRAINED = "constrained"


class Identity(StrEnum):
    """What a device is known by, wherever it is."""

    BLOCK = "block"
    SERIAL = "serial"
    UUID = "uuid"


class Model(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A model of device that this fabric offers."""

    name: Name
    """What we call it: the `cdi-model-name` of the policy."""
    model: str = ""
    """What the service calls it; the same where nothing is said."""
    type: Name = "gpu"
    """What kind of device it is: gpu, fpga, accelerator, cxlmemory, nic, drive."""

    @property
    def shown(self) -> str:
        """What the service calls it."""
        return self.model or self.name


REQUESTS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "gpu": ("Processors", {"ProcessorType": "GPU"}),
    "fpga": ("Processors", {"ProcessorType": "FPGA"}),
    "accelerator": ("Processors", {"ProcessorType": "Accelerator"}),
    "cxlmemory": ("Memory", {}),
    "nic": ("NetworkInterfaces", {}),
}
"""Under which name a kind of device is asked for where the service chooses, and by what else than its model."""


class Options(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What an operator says of a fabric behind a Redfish service."""

    composition: Composition = Composition.SPECIFIC
    """Who chooses the device: `specific` is we, `constrained` the service."""
    authentication: Authentication = Authentication.SESSION
    """How calls prove who sends them: by `session`, `basic`, or `none`."""
    credentials_directory: str = ""
    """A folder with the files `username` and `password`: a mounted Secret."""
    credentials_prefix: str = ""
    """What the names of variables begin with that hold the same, as `RACK_A_` of `RACK_A_PASSWORD`."""
    models: Annotated[tuple[Model, ...], msgspec.Meta(max_length=1000)] = ()
    """The models that are offered; all of them, by the service's names, where none is named."""
    machines: Mapping[str, Name] = {}
    """The system's Id or UUID for every node. Left out, a node is the system of that HostName."""
    slots: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 8
    """How many devices a machine can have; Redfish does not say."""
    identity: Identity = Identity.BLOCK
    """What a device is known by: its resource `block`, or its own `serial` or `uuid`."""
    foreign: tuple[str, ...] = ()
    """Devices, by id or serial number, that are somebody else's: they are never touched."""
    client: str = ""
    """Our name in the blocks' `Client`, where the service has that: what bears another is somebody else's."""
    actions: bool = True
    """Whether AddResourceBlock and RemoveResourceBlock are used where announced; else systems are patched."""
    reserve: bool = True
    """Whether a block is reserved before it is composed."""
    reservation_seconds: Span = Seconds(300.0)
    """A reservation that has led to nothing for so long was left behind, and counts no more."""
    events: bool = True
    """Whether the service's events are listened to where it offers a stream of them."""
    effect_seconds: Span = Seconds(180.0)
    """A call that the service was sent takes effect within this time, or never."""
    queue_seconds: Span = Seconds(120.0)
    """How long an order may wait for its machine, or for a service that is busy, before it is sent."""
    jobs: Annotated[int, msgspec.Meta(ge=1, le=64)] = 8
    """How many orders are carried out at a time."""

    @property
    def chooses(self) -> bool:
        """Whether the service chooses the device."""
        return self.composition is Composition.CONSTRAINED

    @property
    def traits(self) -> Traits:
        """How the manager differs from others."""
        within = Seconds(self.queue_seconds + self.effect_seconds)
        return Traits(chooses_device=self.chooses, knows_orders=False, call_timeout=within, jobs=self.jobs)

    def named(self, kind: str, shown: str) -> str:
        """Return what we call a model that the service shows; empty if it is not offered."""
        if not self.models:
            return shown
        offered = (one.name for one in self.models if one.type == kind and one.shown == shown)
        return next(offered, "")

    def asked(self, kind: str, name: str) -> str:
        """Return what the service calls a model of ours."""
        return next((one.shown for one in self.models if one.type == kind and one.name == name), name)


class Dialect(msgspec.Struct, frozen=True):
    """In what services differ."""

    name: str
    """What it is called in words for people."""
    actions: bool = True
    """Whether it may have actions."""
    names_itself: bool = False
    """Whether a change must name what it changes once more, in its body."""
    plain_errors: bool = False
    """Whether it says no in plain text."""
    placed_by_system: bool = False
    """Whether only the systems' lists of blocks say what is where; what the blocks say of that may be old."""
    agents: bool = False
    """Whether machine and block must be of one agent."""


def read_options(settings: FabricSettings, kind: type[O]) -> O:
    """Return the options as they are meant. Raises BadFabric naming the setting."""
    found = options(settings, kind)
    wrong = next((one for one in (*_access_faults(settings, found), *_content_faults(found)) if one), "")
    if wrong:
        raise BadFabric(wrong)
    return found


def _access_faults(settings: FabricSettings, found: Options) -> tuple[str, ...]:
    named = bool(found.credentials_directory) + bool(found.credentials_prefix)
    needed = found.authentication is not Authentication.NONE
    path = urlsplit(settings.url).path.strip("/")
    return (
        "tokenFile, tokenVariable: Redfish has users; say options.credentialsDirectory or credentialsPrefix"
        if settings.token_file or settings.token_variable
        else "",
        "options: exactly one of credentialsDirectory and credentialsPrefix is needed"
        if needed and named != 1
        else "",
        "options.authentication: none means that nobody asks who we are, yet there are credentials"
        if not needed and named
        else "",
        f"url: has the path /{path}, yet Redfish always begins at /redfish/v1; leave it out" if path else "",
    )


def _content_faults(found: Options) -> tuple[str, ...]:
    names = [one.name for one in found.models]
    shown = [(one.type, one.shown) for one in found.models]
    systems = [one.lower() for one in found.machines.values()]
    unasked = [one.type for one in found.models if found.chooses and one.type not in REQUESTS]
    return (
        "options.models: two have one name" if len(names) > len(set(names)) else "",
        "options.models: two are one model of the service" if len(shown) > len(set(shown)) else "",
        "options.machines: two nodes are one system" if len(systems) > len(set(systems)) else "",
        "options.models: is needed with constrained composition: free devices are counted by model"
        if found.chooses and not found.models
        else "",
        f"options.models: a service can choose {', '.join(REQUESTS)}, not {unasked[0]}" if unasked else "",
        "options.client: must be printable"
        if not found.client.isprintable() or len(found.client) > 1000  # noqa: PLR2004 - as long as any name
        else "",
    )
