"""Where a driver's files lie on a node: folders, and the two sockets on which the kubelet finds and asks it.

Knows the kubelet's folders, how sockets are named, and which of them nobody listens on any more. Must not know what is
said on them.
"""

import errno
import hashlib
import os
import re
import secrets
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

PATH_BYTES_MAX: Final = 107
"""What the kernel allows for the path of a socket: 108 with the zero behind it."""
UNFINISHED_BYTES: Final = 9
"""How long the name of an unfinished socket is."""
SHARED_MODE: Final = 0o750
"""Of the kubelet's folders, should they not be there yet: as it makes them itself."""
PRIVATE_MODE: Final = 0o700
"""Of the driver's own folder: nobody but its owner asks for claims to be prepared, or reads what is."""
DRIVER_NAME: Final = re.compile(
    r"(?=.{1,63}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
)
"""A DNS subdomain, as the API wants it; nothing else may become part of a path."""
POD_UID: Final = re.compile(r"[A-Za-z0-9][-A-Za-z0-9]{0,62}")


class Misplaced(Exception):  # noqa: N818 - named for what is wrong
    """A driver cannot live here; the words say why, and what to do."""


class Places(msgspec.Struct, frozen=True):
    """The folders that a driver uses. They must have the same paths in its container as on the node."""

    plugins: Path = Path("/var/lib/kubelet/plugins")
    registry: Path = Path("/var/lib/kubelet/plugins_registry")
    cdi: Path = Path("/var/run/cdi")
    pod_uid: str = ""
    """Set for a rolling update: then the next pod's sockets come up beside this one's (kubelet 1.33 and newer)."""

    def folder(self, driver: str) -> Path:
        """Return the driver's own folder."""
        return self.plugins / checked(driver)

    def registration(self, driver: str) -> Path:
        """Return the socket by which the kubelet gets to know the driver."""
        whole, short = checked(driver), digest(driver)
        if not self.pod_uid:
            return _short_enough(self.registry, f"{whole}-reg.sock", f"{short}-reg.sock")
        return _short_enough(
            self.registry,
            f"{whole}-{self.pod_uid}-reg.sock",
            f"{whole}-{digest(self.pod_uid)}-reg.sock",
            f"{short}-{digest(self.pod_uid)}-reg.sock",
        )

    def service(self, driver: str) -> Path:
        """Return the socket on which the driver is asked to prepare claims."""
        folder = self.folder(driver)
        if not self.pod_uid:
            return _short_enough(folder, "dra.sock")
        return _short_enough(folder, f"dra-{self.pod_uid}.sock", f"{digest(self.pod_uid)}.sock")


def checked(driver: str) -> str:
    """Return the name of a driver, if it is one."""
    if not DRIVER_NAME.fullmatch(driver):
        raise Misplaced(
            f"{driver[:100]!r} is no name for a driver: it takes small letters, digits, hyphens and dots between them, "
            "at most 63, such as gpu.example.com"
        )
    return driver


def digest(name: str) -> str:
    """Return eight letters that stand for a name, the same each time."""
    return hashlib.sha256(name.encode()).hexdigest()[:8]


def unfinished(path: Path, driver: str) -> Path:
    """Return where a socket is made before it is shown under its name: the kubelet passes over names with a dot first.

    It is another one each time, since two processes may begin at once.
    """
    return path.with_name(f".{digest(driver)[:4]}{secrets.token_hex(2)}")


def make_room(driver: str, places: Places) -> tuple[Path, ...]:
    """Make the folders, and return the sockets that were removed: those of this driver on which nobody listens.

    A killed process leaves its sockets behind, and the kubelet would knock at them for ever. Raises Misplaced where
    somebody does listen on a socket that is to be ours, or where something else lies in its place.
    """
    if places.pod_uid and not POD_UID.fullmatch(places.pod_uid):
        raise Misplaced(
            f"{places.pod_uid[:100]!r} is no uid of a pod: give the pod's metadata.uid, or nothing"
        )
    ours = (places.registration(driver), places.service(driver))
    for folder in (places.registry, places.plugins):
        _make_folder(folder, SHARED_MODE)
    _make_folder(places.folder(driver), PRIVATE_MODE)
    _keep_private(places.folder(driver))
    for path in ours:
        _check_free(path)
    dead = tuple(path for path in sorted(_ours(driver, places)) if not listened_on(path))
    for path in dead:
        path.unlink(missing_ok=True)
    return dead


def listened_on(path: Path) -> bool:
    """Return whether some process listens on a socket; where that cannot be told, one does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as probe:
        return probe.connect_ex(os.fspath(path)) not in {errno.ECONNREFUSED, errno.ENOENT}


def taken(path: Path) -> Misplaced:
    """Return the words for a socket on which another process listens."""
    return Misplaced(
        f"another process serves this driver at {path}: stop it first, or give each its pod's uid (--pod-uid), "
        "with which two live side by side during an update"
    )


def _check_free(path: Path) -> None:
    """Make sure that a socket can be made here: nothing is there, or what a dead process left."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise Misplaced(
            f"{path} should be our socket, but something else lies there: look at it, and remove it"
        )
    if listened_on(path):
        raise taken(path)


def _ours(driver: str, places: Places) -> Iterator[Path]:
    """Yield the sockets that belong to this driver, whichever of its pods made them."""
    uid = r"(-[-0-9a-f]{8,36})?"
    registration = rf"({re.escape(driver)}|{digest(driver)}){uid}-reg\.sock"
    service = rf"(dra{uid}|[0-9a-f]{{8}})\.sock"
    begun = rf"\.{digest(driver)[:4]}[0-9a-f]{{4}}"
    for folder, names in ((places.registry, registration), (places.folder(driver), service)):
        for path in folder.iterdir():
            if re.fullmatch(f"{names}|{begun}", path.name) and stat.S_ISSOCK(path.lstat().st_mode):
                yield path


def _make_folder(folder: Path, mode: int) -> None:
    if not folder.is_absolute():
        raise Misplaced(f"{folder} is no absolute path, and the kubelet would look for it elsewhere")
    try:
        folder.mkdir(mode, parents=True, exist_ok=True)
    except OSError as error:
        words = (
            f"cannot make {folder}: {error.strerror}; is the node's folder mounted here, and is this root?"
        )
        raise Misplaced(words) from error


def _keep_private(folder: Path) -> None:
    """Take from others what they may do in our folder: a pod's volume makes it for everybody to read."""
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise Misplaced(
            f"{folder} should be our own folder, but is a link, or belongs to user {status.st_uid}: "
            "look at what is in it, and remove it"
        )
    if stat.S_IMODE(status.st_mode) & ~PRIVATE_MODE:
        folder.chmod(PRIVATE_MODE)


def _short_enough(folder: Path, *names: str) -> Path:
    """Return the first of the names with which the path, finished or not, is short enough for a socket."""
    for name in names:
        if len(os.fsencode(folder)) + 1 + max(len(name), UNFINISHED_BYTES) <= PATH_BYTES_MAX:
            return folder / name
    raise Misplaced(
        f"{folder} is too long for a socket in it: its path may have {PATH_BYTES_MAX} bytes, and {names[-1]} comes on "
        "top; use a shorter folder, or a shorter name for the driver"
    )
