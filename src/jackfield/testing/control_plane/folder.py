"""The folder that a control plane lives in, and what happens to it when its owner was killed.

A folder holds a file that its owner keeps locked. A lock ends with its owner, however that ends, so whoever makes the
next folder knows which ones nobody needs any more. Knows folders. Must not know what is in them.
"""

import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import IO

PREFIX = "jackfield-control-plane-"
LOCK = "owner"


class Folder:
    """A new folder outside of the checkout, which only we can read."""

    def __init__(self, *, keep: bool, parent: Path | None = None) -> None:
        place = parent or Path(tempfile.gettempdir())
        sweep(place)
        self.keep = keep
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
        # A folder that is kept has no lock, and so is never swept away. Elsewhere the file gets its name
        # when it is locked, so that nobody meets it unlocked.
        self._lock = None if keep else _locked(self.path)

    def file(self, name: str, text: str) -> Path:
        """Write a file that only we can read; return its path."""
        path = self.path / name
        path.parent.mkdir(exist_ok=True)
        path.touch(mode=0o600)
        path.write_text(text, encoding="utf-8")
        return path

    def close(self) -> None:
        """Remove the folder, unless it is to be kept."""
        if self._lock:
            shutil.rmtree(self.path)
            self._lock.close()
            self._lock = None


def sweep(place: Path) -> tuple[Path, ...]:
    """Remove the folders whose owners are gone; return them."""
    return tuple(folder for folder in sorted(place.glob(f"{PREFIX}*")) if _abandoned(folder))


def _locked(folder: Path) -> IO[bytes]:
    file = (folder / f"{LOCK}.new").open("wb")
    fcntl.flock(file, fcntl.LOCK_EX)
    (folder / f"{LOCK}.new").rename(folder / LOCK)
    return file


def _abandoned(folder: Path) -> bool:
    try:
        if folder.lstat().st_uid != os.getuid():
            return False
        with (folder / LOCK).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)
    except OSError:  # kept, in use, or just removed by another
        return False
    return True
