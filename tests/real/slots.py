"""The slots of a machine that exists nowhere, and its kernel: what a fabric manager puts in, the PCI bus shows.

Some slots are dumb: the kernel finds what is in them when it is told to look, and a card is taken off the bus before it
is pulled. Others tell the kernel themselves, as slots for hot-plug do. Knows cards, slots and the bus. Must not know
who wants them.
"""

import asyncio
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

import msgspec

from jackfield.cli.clock import WallClock
from jackfield.model.names import Seconds
from jackfield.testing.sysfs import Machine, PciDevice
from real.vendor_driver import PCI_DEVICE

OURS: Final = {"gpu-1": PciDevice("0000:17:00.0", minor=0), "gpu-2": PciDevice("0000:65:00.0", minor=1)}
"""What the manager's devices are on the bus. The driver learns its UUID from the card: it is in the slot's file."""
VENDORS: Final = {"hot-1": PciDevice("0000:b1:00.0", device=PCI_DEVICE, minor=2)}
"""Those for the vendor's driver; they go into slots that tell the kernel themselves."""
CARDS: Final = OURS | VENDORS
LOOK_SECONDS: Final = Seconds(0.05)
# Run by the manager as MOVE SLOTS attach|detach DEVICE MACHINE. What is half written is in no slot yet.
MOVE: Final = """#!/bin/sh
set -e
case "$2" in
attach) [ -e "$1/$3" ] || { printf %s "$JACKFIELD_SERIAL" >"$1/.$3"; mv "$1/.$3" "$1/$3"; } ;;
detach) rm -f "$1/$3" ;;
esac
"""


class Slots:
    """The slots of a machine, and its kernel, which runs in a thread of its own while the context is open."""

    def __init__(self, folder: Path, prepared: Callable[[], bool]) -> None:
        self.machine = Machine(folder / "machine")
        self.folder = folder / "slots"
        self.folder.mkdir()
        self.torn_out: list[str] = []
        """Cards that were taken out while the bus, or somebody who had the vendor's prepared, still had them."""
        self.loose: set[str] = set()
        """Cards that have fallen off the bus, though they are in their slots."""
        self._off: set[str] = set()
        self._prepared = prepared
        for card in CARDS.values():
            # A character device that anybody can read from: it has to be a real one for a container to get it.
            os.mknod(self.machine.dev / f"nvidia{card.minor}", stat.S_IFCHR | 0o666, os.makedev(1, 5))
        self._in: set[str] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="kernel")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def taken(self) -> tuple[str, ...]:
        """The cards that are in a slot."""
        return tuple(sorted(one.name for one in self.folder.iterdir() if one.name in CARDS))

    @property
    def on_bus(self) -> tuple[str, ...]:
        """The cards that the kernel knows."""
        return tuple(name for name, card in CARDS.items() if self._link(card).exists())

    def uuid(self, name: str) -> str:
        """Return the UUID of a card that is in a slot: the manager has it written there."""
        return (self.folder / name).read_text()

    def _link(self, card: PciDevice) -> Path:
        return self.machine.sysfs / "bus/pci/devices" / card.address

    async def _run(self) -> None:
        clock = WallClock()
        async with self.machine:
            while not self._over.is_set():
                self._look()
                await clock.sleep(LOOK_SECONDS)

    def _look(self) -> None:
        taken = set(self.taken)
        for name in sorted(taken - self._in):
            if name in VENDORS:
                self.machine.plug(self._card(name))
            else:
                self.machine.plug_unseen(self._card(name))
        for name in sorted(self._in - taken):
            if self._link(CARDS[name]).exists():
                if name in OURS or self._prepared():
                    self.torn_out.append(name)
                self.machine.pull(CARDS[name].address)
        self._in = taken
        loose = set(self.loose)
        for name in sorted(loose - self._off):
            self.machine.pull(CARDS[name].address)
        for name in sorted(self._off - loose):
            self.machine.plug(self._card(name))
        self._off = loose

    def _card(self, name: str) -> PciDevice:
        return msgspec.structs.replace(CARDS[name], uuid=self.uuid(name), driver="nvidia")
