"""Disks that go wrong at a chosen step, under the very store that drivers use; and one that forgets in a power cut.

Every step is one system call that changes something. None of them waits for a real disk: what must survive is a
question of the order of the steps, and `Forgetful` knows it.
"""

import errno
import os
import threading
from pathlib import Path

from jackfield.driver.files import Calls


class Quick(Calls):
    """Does everything but wait, and counts."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def step(self, what: str) -> None:
        self.steps.append(what)

    def mkdir(self, name: str, mode: int, folder: int) -> None:
        self.step(f"mkdir {name}")
        super().mkdir(name, mode, folder)

    def create(self, name: str, mode: int, folder: int) -> int:
        self.step(f"create {name}")
        return super().create(name, mode, folder)

    def write(self, file: int, data: memoryview) -> int:
        self.step("write")
        return super().write(file, data)

    def chmod(self, file: int, mode: int) -> None:
        self.step("chmod")
        super().chmod(file, mode)

    def sync(self, file: int) -> None:
        del file
        self.step("sync")

    def rename(self, old: str, new: str, folder: int) -> None:
        self.step(f"rename {old} {new}")
        super().rename(old, new, folder)

    def unlink(self, name: str, folder: int) -> None:
        self.step(f"unlink {name}")
        super().unlink(name, folder)


class Killed(BaseException):
    """The process is dead."""


class Deadly(Quick):
    """Kills the process before its n-th step, half through it if it is a write; the dead take no further step."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self._at = at

    def kill_at(self, at: int) -> None:
        """Kill before this step instead."""
        self._at = at

    def start_anew(self) -> None:
        """Be the disk of another process, which lives."""
        self._at = -1

    def step(self, what: str) -> None:
        if len(self.steps) == self._at:
            raise Killed(what)
        super().step(what)

    def write(self, file: int, data: memoryview) -> int:
        if len(self.steps) == self._at:
            os.write(file, data[: len(data) // 2])
        return super().write(file, data)


class Failing(Quick):
    """Refuses the n-th step once; a write has then done half."""

    def __init__(self, at: int, error: int = errno.ENOSPC) -> None:
        super().__init__()
        self._at = at
        self._error = error

    def step(self, what: str) -> None:
        super().step(what)
        if len(self.steps) == self._at + 1:
            raise OSError(self._error, os.strerror(self._error), what)

    def write(self, file: int, data: memoryview) -> int:
        if len(self.steps) == self._at:
            os.write(file, data[: len(data) // 2])
        return super().write(file, data)


class Forgetful(Quick):
    """Remembers what a power cut leaves: of a file what was in it, of a folder which names it had, when it was synced.

    A folder itself is there once the folder above it was synced. Nothing is kept by luck: the worst disk there may be.
    """

    def watch(self, root: Path) -> None:
        """Begin with what is there."""
        self._root = root
        self._contents: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}
        for folder, _, _ in os.walk(root):
            self._remember(Path(folder))

    def _remember(self, path: Path) -> None:
        if path.is_dir():
            self._names[path.stat().st_ino] = {one.name: one.lstat().st_ino for one in path.iterdir()}
        else:
            self._contents[path.stat().st_ino] = path.read_bytes()

    def sync(self, file: int) -> None:
        super().sync(file)
        self._remember(Path(f"/proc/self/fd/{file}").readlink())

    def cut_power(self) -> None:
        """Leave on the disk what would be there after it."""
        self._leave(self._root)

    def _leave(self, folder: Path) -> None:
        names = self._names.get(folder.stat().st_ino, {})
        inner = [one for one in folder.iterdir() if one.is_dir() and names.get(one.name) == one.stat().st_ino]
        for one in inner:
            self._leave(one)
        for one in folder.iterdir():
            if one not in inner:
                _delete(one)
        for name, number in names.items():
            if not (folder / name).exists():
                (folder / name).write_bytes(self._contents.get(number, b""))


class DeadlyAndForgetful(Forgetful, Deadly):
    """Kills, and then the power is cut."""


class FailingAndForgetful(Forgetful, Failing):
    """Fails, and then the power is cut."""


def _delete(path: Path) -> None:
    if path.is_dir():
        for one in path.iterdir():
            _delete(one)
        path.rmdir()
    else:
        path.unlink()


class Patient(Quick):
    """Waits for the disk when it is told to, and goes on when it may; so do two threads meet."""

    def __init__(self) -> None:
        super().__init__()
        self.slow = False
        self.waiting = threading.Event()
        """Somebody waits for the disk."""
        self.may_go_on = threading.Semaphore(0)

    def sync(self, file: int) -> None:
        super().sync(file)
        if self.slow:
            self.waiting.set()
            self.may_go_on.acquire()
