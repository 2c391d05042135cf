"""Folders in which a driver writes: nothing is ever half written, and no symbolic link leads elsewhere.

Knows files, modes and locks. Must not know what is in the files.

Every step is one system call of `Calls`, by the folder's own descriptor: whoever plants a link, or swaps a folder for
another between two steps, moves nothing that we write to another place. Folders are opened anew for every errand, since
they may be deleted and made again while we run.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from jackfield.ports import Retry

FOLDER_MODE: Final = 0o755
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Without O_NONBLOCK a pipe that somebody put there would keep us for ever."""
_NO_FILE: Final = frozenset({errno.ENOENT, errno.ELOOP, errno.ENXIO, errno.EISDIR})
"""There is nothing, a link, a socket or a folder."""
_CHUNK: Final = 1 << 20
_ASIDE: Final = ".new"


class Calls:
    """The system calls by which anything changes, so that a test can end the world before any one of them."""

    def mkdir(self, name: str, mode: int, folder: int) -> None:
        """Make a folder."""
        os.mkdir(name, mode, dir_fd=folder)

    def create(self, name: str, mode: int, folder: int) -> int:
        """Open a file that was not there; a link is not followed."""
        return os.open(
            name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, mode, dir_fd=folder
        )

    def write(self, file: int, data: memoryview) -> int:
        """Write some of it."""
        return os.write(file, data)

    def chmod(self, file: int, mode: int) -> None:
        """Give it the mode, whatever the process's mask takes away."""
        os.fchmod(file, mode)

    def sync(self, file: int) -> None:
        """Wait until it survives a power cut."""
        os.fsync(file)

    def rename(self, old: str, new: str, folder: int) -> None:
        """Put the one in the other's place, at once."""
        os.rename(old, new, src_dir_fd=folder, dst_dir_fd=folder)

    def unlink(self, name: str, folder: int) -> None:
        """Remove the name; where it is a link, the link."""
        os.unlink(name, dir_fd=folder)


class Unreadable(Exception):  # noqa: N818 - a finding about a file
    """What has the file's name is no file of ours: a link, a folder, a device, or too long."""


class Folder:
    """One folder. The base is the operator's choice and may lead over links; the parts below it must be folders."""

    def __init__(self, base: Path, *parts: str, calls: Calls | None = None) -> None:
        self.path = Path(base, *parts).absolute()
        self._base = base.absolute()
        self._parts = parts
        self._calls = calls or Calls()

    def below(self, part: str) -> "Folder":
        """Return a folder in this one."""
        return Folder(self._base, *self._parts, part, calls=self._calls)

    def make(self) -> None:
        """Make it unless it is there, so that a power cut takes neither it nor any name in it. Raises Retry."""
        with self._errors("be made"), self._opened(make=True, durable=True):
            pass

    def names(self) -> tuple[str, ...]:
        """Return what is there, in order; nothing if the folder is not. Raises Retry."""
        with self._errors("be read"):
            try:
                with self._opened(make=False) as folder:
                    return tuple(sorted(os.listdir(folder)))  # noqa: PTH208 - of the very folder, whatever its path
            except FileNotFoundError:
                return ()

    def read(self, name: str, bytes_max: int) -> bytes | None:
        """Return what is in the file, None if there is none. Raises Unreadable, Retry."""
        with self._errors(f"be read: {name}"):
            try:
                with self._opened(make=False) as folder:
                    return _read(folder, name, bytes_max)
            except FileNotFoundError:
                return None

    def head(self, name: str, count: int) -> bytes:
        """Return how the file begins; nothing if there is none that can be read. Raises Retry.

        By its path, in three calls, since it is asked for several times a claim. Whoever leads us to another file by a
        link gains nothing: one that begins otherwise is read anew, as above, and one that does not is the same to us.
        """
        with self._errors(f"be read: {name}"):
            try:
                file = os.open(f"{self.path}/{name}", _FILE)
                try:
                    return os.read(file, count)
                finally:
                    os.close(file)
            except OSError as error:
                if error.errno in _NO_FILE:
                    return b""
                raise

    def write(self, name: str, data: bytes, mode: int, *, durable: bool) -> None:
        """Put it there, all of it or nothing of it; what is durable survives a power cut. Raises Retry."""
        with self._errors(f"be written: {name}"), self._opened(make=True) as folder:
            self._replace(folder, name, data, mode, durable=durable)

    def put(self, files: Mapping[str, bytes], mode: int) -> int:
        """Write those that are not there as they should be, and return how many that were. Raises Retry."""
        if not files:
            return 0
        with self._errors(f"be written: {', '.join(files)}"), self._opened(make=True) as folder:
            wrong = [name for name, data in files.items() if not _has(folder, name, data)]
            for name in wrong:
                self._replace(folder, name, files[name], mode, durable=False)
        return len(wrong)

    def remove(self, *names: str, durable: bool) -> None:
        """Remove these if they are there; what is durable does not come back with a power cut. Raises Retry."""
        with self._errors(f"be cleared of {', '.join(names)}"):
            try:
                with self._opened(make=False) as folder:
                    removed = [name for name in names if self._unlink(folder, name)]
                    if removed and durable:
                        self._calls.sync(folder)
            except FileNotFoundError:
                return

    def rename(self, old: str, new: str) -> None:
        """Give it another name, whatever it is. Raises Retry."""
        with self._errors(f"have {old} set aside in it"), self._opened(make=False) as folder:
            self._calls.rename(old, new, folder)
            self._calls.sync(folder)

    def leftovers(self) -> tuple[str, ...]:
        """Return files that somebody who was killed did not finish. Raises Retry."""
        return tuple(name for name in self.names() if name.startswith(".") and name.endswith(_ASIDE))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep all others out who ask for the same, in this process or another, until it is left or we die.

        During a rolling update the old and the new instance of a driver share their folders. Raises Retry.
        """
        with self._errors("be locked"), self._opened(make=True) as folder:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield

    # --- by descriptor

    @contextmanager
    def _opened(self, *, make: bool, durable: bool = False) -> Iterator[int]:
        folder = os.open(self._base, _FOLDER)
        try:
            for part in self._parts:
                inner = self._inner(folder, part, make=make)
                outer, folder = folder, inner
                try:
                    if durable:
                        self._calls.sync(outer)
                finally:
                    os.close(outer)
            if durable:
                self._calls.sync(folder)
            yield folder
        finally:
            os.close(folder)

    def _inner(self, folder: int, part: str, *, make: bool) -> int:
        try:
            return os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
        except FileNotFoundError:
            if not make:
                raise
        with suppress(FileExistsError):
            self._calls.mkdir(part, FOLDER_MODE, folder)
        return os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)

    def _replace(self, folder: int, name: str, data: bytes, mode: int, *, durable: bool) -> None:
        new = f".{name}{_ASIDE}"
        self._fill(folder, new, data, mode, durable=durable)
        self._calls.rename(new, name, folder)
        if durable:
            self._calls.sync(folder)

    def _fill(self, folder: int, name: str, data: bytes, mode: int, *, durable: bool) -> None:
        file = self._created(folder, name, mode)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[self._calls.write(file, rest) :]
            self._calls.chmod(file, mode)
            if durable:
                self._calls.sync(file)
        finally:
            os.close(file)

    def _created(self, folder: int, name: str, mode: int) -> int:
        with suppress(FileExistsError):
            return self._calls.create(name, mode, folder)
        self._unlink(folder, name)  # of somebody who was killed
        return self._calls.create(name, mode, folder)

    def _unlink(self, folder: int, name: str) -> bool:
        try:
            self._calls.unlink(name, folder)
        except FileNotFoundError:
            return False
        return True

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise Retry(f"{self.path} cannot {what}: {_words(error)}") from error


@contextmanager
def _file(folder: int, name: str) -> Iterator[int]:
    try:
        file = os.open(name, _FILE, dir_fd=folder)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENXIO}:
            raise Unreadable(f"{name} is a link or a socket, no file") from error
        raise
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise Unreadable(f"{name} is a folder, a pipe or a device, no file")
        yield file
    finally:
        os.close(file)


def _read(folder: int, name: str, bytes_max: int) -> bytes:
    data = bytearray()
    with _file(folder, name) as file:
        while chunk := os.read(file, _CHUNK):
            data += chunk
            if len(data) > bytes_max:
                raise Unreadable(f"{name} is longer than {bytes_max} bytes")
    return bytes(data)


def _has(folder: int, name: str, data: bytes) -> bool:
    """Whether this, and nothing else, is in the file."""
    try:
        return _read(folder, name, len(data)) == data
    except (FileNotFoundError, Unreadable):
        return False


def _words(error: OSError) -> str:
    match error.errno:
        case errno.ELOOP | errno.ENOTDIR:
            return "there is a link or a file where a folder should be; remove it, or name another folder"
        case errno.EISDIR | errno.ENOTEMPTY:
            return "there is a folder where a file should be; remove it"
        case errno.EEXIST:
            return "somebody else makes files of ours at the same moment; find out who"
        case errno.ENOENT:
            return "the folder above it does not exist; is this where the kubelet and the container runtime look?"
        case errno.ENOSPC | errno.EDQUOT:
            return "the disk is full; make room"
        case errno.EROFS:
            return "it is mounted read-only; mount it to be written"
        case errno.EACCES | errno.EPERM:
            return "permission denied; the driver must run as root, with the node's own folder mounted"
        case _:
            return error.strerror or str(error)
