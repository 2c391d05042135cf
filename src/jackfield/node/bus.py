"""What a node does to its PCI bus: look for devices, and remove one.

Knows the two files that do it, and that the kernel may take its time over either: a process of its own writes them, so
that nothing else waits and one that hangs can be left behind. Must not know why a device is removed.
"""

import asyncio
import errno
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from jackfield.model.names import Seconds
from jackfield.ports import Clock, Refused, Retry

WRITE_SECONDS_MAX: Final = Seconds(20.0)
"""The kernel has answered by then, or something is wrong with the device; it is asked again."""
GONE_SECONDS_MAX: Final = Seconds(5.0)
END_SECONDS_MAX: Final = Seconds(1.0)
LOOK_AGAIN: Final = Seconds(0.02)
FORBIDDEN: Final = (errno.EACCES, errno.EPERM, errno.EROFS)
_WRITE: Final = """
import os, sys
try:
    os.write(os.open(sys.argv[1], os.O_WRONLY | os.O_NOFOLLOW), b"1")
except OSError as error:
    sys.exit(f"{error.errno} {error.strerror}")
"""


class Bus:
    """The PCI bus of this machine, as far as it can be changed."""

    def __init__(self, sysfs: Path, clock: Clock) -> None:
        self._bus = sysfs / "bus" / "pci"
        self._clock = clock
        self._scanning: asyncio.Task[None] | None = None

    async def rescan(self) -> None:
        """Have the kernel look for devices; all who ask while it looks get one answer. Raises Retry, Refused."""
        if self._scanning is None or self._scanning.done():
            self._scanning = asyncio.get_running_loop().create_task(self._write(self._bus / "rescan"))
        await asyncio.shield(self._scanning)

    async def remove(self, address: str) -> None:
        """Have the kernel let go of a device, if it is there; returns when it is gone. Raises Retry, Refused."""
        folder = self._bus / "devices" / address
        if not folder.exists():
            return
        await self._write(folder / "remove")
        until = self._clock.now() + GONE_SECONDS_MAX
        while folder.exists():
            if self._clock.now() > until:
                raise Retry(f"the kernel was told to remove {address}, and it is still there")
            await self._clock.sleep(LOOK_AGAIN)

    async def _write(self, path: Path) -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", "-c", _WRITE, str(path), stderr=asyncio.subprocess.PIPE
        )
        try:
            async with asyncio.timeout(WRITE_SECONDS_MAX):
                _, said = await process.communicate()
        except TimeoutError:
            raise Retry(
                f"the kernel has not answered for {WRITE_SECONDS_MAX:.0f} s on {path}: a driver does not let go of "
                "its device; dmesg on the node says more"
            ) from None
        finally:
            await _end(process)
        if process.returncode:
            _explain(path, said.decode(errors="replace").strip())


async def _end(process: asyncio.subprocess.Process) -> None:
    """See that it has ended; one that the kernel does not let go is left behind."""
    if process.returncode is None:
        process.kill()
        with suppress(TimeoutError):
            async with asyncio.timeout(END_SECONDS_MAX):
                await process.wait()


def _explain(path: Path, said: str) -> None:
    number, _, words = said.partition(" ")
    code = int(number) if number.isdigit() else 0
    if code == errno.ENOENT and path.name == "remove":
        return  # gone already
    if code in FORBIDDEN:
        raise Refused(
            f"{path} may not be written ({words}): the plugin must run as root, privileged, with the host's /sys "
            "mounted writable; see docs/node.md"
        )
    if code == errno.ENOENT:
        raise Refused(f"{path} does not exist: see that --sysfs-root is where the host's sysfs is mounted")
    raise Retry(f"{path} cannot be written: {words or said}")
