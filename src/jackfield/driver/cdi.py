"""What a container gets with a device, as a CDI spec that every runtime reads.

Knows the Container Device Interface: its fields, its names, and which version brought what. Must not know claims, nor
where a spec is written.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeVar

import msgspec

from jackfield.model.meta import Wire
from jackfield.ports import Refused

PATH_LENGTH_MAX: Final = 4095
"""What Linux takes, without the NUL at its end."""
VARIABLE_BYTES_MAX: Final = 131_071
"""A variable with its name; execve refuses more, and the container would not start."""
INTERFACE_LENGTH_MAX: Final = 15
READ_ONLY: Final = ("ro", "nosuid", "nodev", "bind")

HOOKS: Final = (
    "prestart",
    "createRuntime",
    "createContainer",
    "startContainer",
    "poststart",
    "poststop",
)

T = TypeVar("T")

_VENDOR = re.compile(r"[A-Za-z](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_CLASS = _VENDOR
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._:-]*[A-Za-z0-9])?")
_VARIABLE = re.compile(r"[!-<>-~]+")
_INTERFACE = re.compile(r"[!-.0-~]+")
_UNWRITABLE = re.compile("[\0\n\r\ud800-\udfff]")
_PERMISSIONS = re.compile(r"[rwm]*")
_TYPES = ("", "b", "c", "u", "p")


class DeviceNode(Wire, frozen=True):
    """A device node in the container. Numbers that are not told are looked up where the container starts."""

    path: str
    """Where the container sees it."""
    host_path: str = ""
    """Where it is on the node, if that is elsewhere."""
    type: str = ""
    """`c` or `b`; `u` and `p` are unbuffered ones and pipes."""
    major: int = 0
    minor: int = 0
    permissions: str = ""
    """Any of `r`, `w`, `m`; empty means all."""
    uid: int | None = None
    gid: int | None = None
    file_mode: int | None = None


class Mount(Wire, frozen=True):
    """A file or folder of the node in the container."""

    host_path: str
    container_path: str
    options: tuple[str, ...] = ()
    """None means a bind mount to read only; who wants another says all of it, such as `rw`, `bind`."""
    type: str = ""


class Hook(Wire, frozen=True):
    """A program of the node that the runtime starts at a moment of the container's life."""

    hook_name: str
    path: str
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    timeout: int | None = None


class NetDevice(Wire, frozen=True):
    """A network interface that moves into the container."""

    host_interface_name: str
    name: str
    """What it is called inside."""


class Edits(Wire, frozen=True):
    """What a container gets with a device. `one | other` is both; of variables the right one wins."""

    env: Mapping[str, str] = {}
    device_nodes: tuple[DeviceNode, ...] = ()
    mounts: tuple[Mount, ...] = ()
    hooks: tuple[Hook, ...] = ()
    net_devices: tuple[NetDevice, ...] = ()
    additional_gids: tuple[int, ...] = ()

    def __or__(self, other: "Edits") -> "Edits":
        """Return what both give; what both give alike is given once."""
        return Edits(
            env={**self.env, **other.env},
            device_nodes=_both(self.device_nodes, other.device_nodes),
            mounts=_both(self.mounts, other.mounts),
            hooks=_both(self.hooks, other.hooks),
            net_devices=_both(self.net_devices, other.net_devices),
            additional_gids=_both(self.additional_gids, other.additional_gids),
        )

    def __bool__(self) -> bool:
        """Whether there is anything in it."""
        return self != NOTHING


NOTHING: Final = Edits()


def spec(kind: str, devices: Mapping[str, Edits]) -> bytes:
    """Return the spec of these devices, in the lowest version that has what they use. Raises Refused.

    A device without edits is no device to a runtime, so it gets a variable that says only that it is there.
    """
    vendor, _, class_ = kind.partition("/")
    if not _VENDOR.fullmatch(vendor) or not _CLASS.fullmatch(class_):
        raise Refused(
            f"{kind!r} is no kind of CDI device: it is vendor/class, both of letters, digits and . _ -,"
            " beginning with a letter and ending in a letter or digit"
        )
    if not devices:
        raise Refused(f"a CDI spec of kind {kind} without a device is none")
    for name, edits in devices.items():
        _check_name(name)
        check(edits)
    whole = _Spec(
        cdi_version=_version(kind, devices),
        kind=kind,
        devices=tuple(_Device(name, _written(name, edits)) for name, edits in devices.items()),
    )
    return msgspec.json.format(msgspec.json.encode(whole), indent=2) + b"\n"


def check(edits: Edits) -> None:
    """Raise Refused if no runtime could do what is asked, or somebody tries a trick."""
    for words in _wrong(edits):
        raise Refused(words)


def check_qualified(name: str) -> None:
    """Raise Refused unless this is the full name of a CDI device, such as `nvidia.com/gpu=0`."""
    kind, equals, device = name.partition("=")
    vendor, _, class_ = kind.partition("/")
    parts = (_VENDOR.fullmatch(vendor), _CLASS.fullmatch(class_), _NAME.fullmatch(device))
    if not equals or not all(parts):
        raise Refused(f"{shown(name)} is not the name of a CDI device: it is vendor/class=name")


def shown(text: str) -> str:
    """Return a hostile text as it may stand in a message: quoted, escaped, and not too long."""
    length_max = 80
    return ascii(text if len(text) <= length_max else f"{text[:length_max]}...")


# --- versions

_VERSIONS = ("0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "1.1.0")
"""A reader refuses one lower than what is used needs, and an old one those it does not know: the lowest serves most."""


def _version(kind: str, devices: Mapping[str, Edits]) -> str:
    every = tuple(devices.values())
    needed = {
        "0.4.0": any(one.type for edits in every for one in edits.mounts),
        "0.5.0": any(one.host_path for edits in every for one in edits.device_nodes)
        or any(name[0].isdigit() for name in devices),
        "0.6.0": "." in kind.partition("/")[2],
        "0.7.0": any(edits.additional_gids for edits in every),
        "1.1.0": any(edits.net_devices for edits in every),
    }
    return next((one for one in reversed(_VERSIONS) if needed.get(one)), _VERSIONS[0])


# --- what is wrong with edits


def _wrong(edits: Edits) -> Iterator[str]:
    for name, value in edits.env.items():
        yield from _wrong_variable(name, value)
    for node in edits.device_nodes:
        yield from _wrong_node(node)
    for mount in edits.mounts:
        yield from _wrong_path("the mount's place on the node", mount.host_path)
        yield from _wrong_path("the mount's place in the container", mount.container_path)
        yield from _wrong_texts("an option of a mount", (*mount.options, mount.type))
    for hook in edits.hooks:
        yield from _wrong_hook(hook)
    yield from _wrong_net_devices(edits.net_devices)
    for group in edits.additional_gids:
        yield from _wrong_number("an additional group", group)


def _wrong_variable(name: str, value: str) -> Iterator[str]:
    if not _VARIABLE.fullmatch(name):
        yield f"{shown(name)} is no name of a variable: printable ASCII without blanks and ="
    yield from _wrong_texts(f"the value of variable {shown(name)}", (value,))
    if len(name) + len(value.encode(errors="replace")) + 1 > VARIABLE_BYTES_MAX:
        yield f"variable {shown(name)} is longer than the {VARIABLE_BYTES_MAX} bytes that Linux takes"


def _wrong_node(node: DeviceNode) -> Iterator[str]:
    yield from _wrong_path("the device node's place in the container", node.path)
    if node.host_path:
        yield from _wrong_path("the device node's place on the node", node.host_path)
    if node.type not in _TYPES:
        yield f"device node {node.path} has type {shown(node.type)}; there are c, b, u and p"
    if not _PERMISSIONS.fullmatch(node.permissions):
        yield f"device node {node.path} has permissions {shown(node.permissions)}; there are r, w and m"
    numbers = (node.major, node.minor, node.uid or 0, node.gid or 0, node.file_mode or 0)
    for number in numbers:
        yield from _wrong_number(f"a number of device node {node.path}", number)


def _wrong_hook(hook: Hook) -> Iterator[str]:
    if hook.hook_name not in HOOKS:
        yield f"{shown(hook.hook_name)} is no hook; there are {', '.join(HOOKS)}"
    yield from _wrong_path("the hook's program", hook.path)
    yield from _wrong_texts("an argument of a hook", hook.args)
    for variable in hook.env:
        name, _, value = variable.partition("=")
        yield from _wrong_variable(name, value)
    yield from _wrong_number("a hook's timeout", hook.timeout or 0)


def _wrong_net_devices(devices: tuple[NetDevice, ...]) -> Iterator[str]:
    for one in devices:
        for name in (one.host_interface_name, one.name):
            if len(name) > INTERFACE_LENGTH_MAX or not _INTERFACE.fullmatch(name) or name in {".", ".."}:
                yield f"{shown(name)} is no name of a network interface"
    for names in ([one.host_interface_name for one in devices], [one.name for one in devices]):
        if len(set(names)) < len(names):
            yield f"a network interface is named twice: {', '.join(names)}"


def _wrong_path(what: str, path: str) -> Iterator[str]:
    yield from _wrong_texts(what, (path,))
    parts = path.split("/")
    if not path.startswith("/") or ".." in parts or "." in parts or not path.strip("/"):
        yield f"{what} is {shown(path)}, which is no absolute path without . and .."
    if len(path.encode(errors="replace")) > PATH_LENGTH_MAX:
        yield f"{what} is longer than the {PATH_LENGTH_MAX} bytes that Linux takes: {shown(path)}"


def _wrong_texts(what: str, texts: Iterable[str]) -> Iterator[str]:
    """Tell what ends a line or a string where it is read again, and what is no text at all."""
    for text in texts:
        if _UNWRITABLE.search(text):
            yield f"{what} has a line break, a NUL or half a character in it: {shown(text)}"


def _wrong_number(what: str, number: int) -> Iterator[str]:
    if not 0 <= number < 1 << 32:
        yield f"{what} is {number}, which does not fit 32 bits without a sign"


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise Refused(
            f"{shown(name)} is no name of a CDI device: letters, digits and . _ : -,"
            " beginning and ending in a letter or digit"
        )


# --- the file


class _Written(Wire, frozen=True):
    """Edits as CDI spells them: variables are a list."""

    env: tuple[str, ...] = ()
    device_nodes: tuple[DeviceNode, ...] = ()
    mounts: tuple[Mount, ...] = ()
    hooks: tuple[Hook, ...] = ()
    net_devices: tuple[NetDevice, ...] = ()
    additional_gids: tuple[int, ...] = ()


class _Device(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    container_edits: _Written


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    cdi_version: str
    kind: str
    devices: tuple[_Device, ...]


def _written(name: str, edits: Edits) -> _Written:
    env = edits.env if edits else {f"CDI_DEVICE_{re.sub('[^A-Z0-9]', '_', name.upper())}": "present"}
    return _Written(
        env=tuple(f"{one}={value}" for one, value in sorted(env.items())),
        device_nodes=edits.device_nodes,
        mounts=tuple(msgspec.structs.replace(one, options=one.options or READ_ONLY) for one in edits.mounts),
        hooks=edits.hooks,
        net_devices=edits.net_devices,
        additional_gids=edits.additional_gids,
    )


def _both(left: tuple[T, ...], right: tuple[T, ...]) -> tuple[T, ...]:
    return (*left, *(one for one in right if one not in left))
