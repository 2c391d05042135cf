"""What is prepared on this node: the checkpoint, and the files that follow from it.

Knows in which order to write, so that a kill at any moment leaves nothing wrong. Must not know how a device is
prepared.

The checkpoint is what is true. It is written first and removed last: whatever file of ours exists, the checkpoint knows
its claim, and a device is never taken for free while a CDI file still gives it away. All other files follow from the
checkpoint; whoever is killed before they are written finds them written by the next `open`, or when the kubelet asks
again. Hence only the checkpoint has to survive a power cut.

Two instances of a driver may have the store open (a rolling update): writing is under a lock, and what the other has
written is seen. The same lock keeps threads of one instance apart, so that one may write while another reads: what is
read is what was durable last, as one value, and does not wait for the disk.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from jackfield.driver import checkpoint
from jackfield.driver.cdi import shown
from jackfield.driver.checkpoint import Record
from jackfield.driver.entry import ENTRY_BYTES_MAX, check, check_uid
from jackfield.driver.entry import Entry as Entry  # noqa: PLC0414 - part of the store's words
from jackfield.driver.entry import Held as Held  # noqa: PLC0414 - likewise
from jackfield.driver.entry import Network as Network  # noqa: PLC0414 - likewise
from jackfield.driver.files import Calls, Folder, Unreadable
from jackfield.driver.given import Given
from jackfield.model.names import Uid
from jackfield.ports import Refused, Retry

T = TypeVar("T")

CHECKPOINT: Final = "checkpoint.jsonl"
HEAD_BYTES: Final = 256
"""The first line is shorter, and says by its revision which writing this is."""
DAMAGED_MAX: Final = 16
"""So many files with damaged lines are kept."""

_DRIVER = re.compile(
    r"(?=.{1,63}\Z)[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*"
)


class _Known(msgspec.Struct, frozen=True):
    """What the checkpoint says, replaced as a whole."""

    lines: Mapping[Uid, bytes] = {}
    records: Mapping[Uid, Record] = {}
    revision: int = 0
    head: bytes | None = None
    """How the file begins that we know; None if we do not know what is there."""
    entries: tuple[Entry, ...] = ()
    """Those of the records: the same value as long as nothing is written, so that others can tell by it."""


class PreparedStore:
    """The claims that are prepared here. One thread may change it while another looks; any call may raise Retry."""

    def __init__(
        self, driver: str, plugins: Path, cdi: Path, *, with_metadata: bool = True, calls: Calls | None = None
    ) -> None:
        if not _DRIVER.fullmatch(driver):
            raise Refused(
                f"{shown(driver)} is no name of a driver: a DNS name of at most 63 characters that begins with a letter"
            )
        self.driver = driver
        self._plugin = Folder(plugins, driver, calls=calls)
        self._cdi = cdi
        self._given = Given(
            driver,
            Folder(cdi.parent, cdi.name, calls=calls),
            self._plugin.below("metadata"),
            with_metadata=with_metadata,
        )
        self._known = _Known()
        self._coming: bytes | None = None
        """How the file begins that is being written: whoever looks meanwhile need not wait for it."""
        self._unsure = False
        """Whether there may be something in the file that a power cut would take."""
        self._damaged = b""
        """Lines that must be kept beside before the file is written again."""
        self._findings: list[str] = []
        self._damage: list[str] = []

    # --- what others ask for

    def open(self) -> tuple[str, ...]:
        """Read what is there, mend what can be mended, and return what was found wrong, in words.

        Raises Refused, and touches nothing, where a newer version of the driver wrote the checkpoint.
        """
        self._plugin.make()
        with self._plugin.locked():
            self._load()
            if self._findings:
                self._try(self._commit, self._known.lines, self._known.records)
            self._try(self._mend)
        return self.findings()

    def findings(self) -> tuple[str, ...]:
        """Return what was found wrong since this was last asked, in words."""
        found, self._findings = tuple(self._findings), []
        return found

    def damage(self) -> tuple[str, ...]:
        """Return those findings by which claims may have been forgotten, since this was last asked."""
        found, self._damage = tuple(self._damage), []
        return found

    @property
    def revision(self) -> int:
        """Rises by every write of the checkpoint."""
        return self._known.revision

    def entries(self) -> tuple[Entry, ...]:
        """Return the claims that are prepared, the oldest first; the same tuple as long as nothing changes."""
        return self._look().entries

    def get(self, uid: Uid) -> Entry | None:
        """Return what is prepared for the claim."""
        record = self._look().records.get(uid)
        return record.entry if record is not None else None

    def remembered(self, uid: Uid) -> Entry | None:
        """Return what was prepared for the claim when this was last looked at, or written by us."""
        record = self._known.records.get(uid)
        return record.entry if record is not None else None

    def put(self, entry: Entry) -> tuple[tuple[str, ...], ...]:
        """Write it down, and give each device away: returns the names by which a runtime knows each one held.

        The same entry again changes nothing but what is missing. Raises Refused if a name or a value in it is none.
        """
        return self.put_all((entry,))[0]

    def put_all(self, entries: Sequence[Entry]) -> tuple[tuple[tuple[str, ...], ...], ...]:
        """Do so with all of them, in one write: waiting for the disk is what takes the time."""
        return self.change(entries, ())

    def remove(self, uid: Uid) -> None:
        """Take the devices back, and forget the claim; nothing happens if it is not known."""
        self.remove_all((uid,))

    def remove_all(self, uids: Sequence[Uid]) -> None:
        """Do so with all of them, in one write."""
        self.change((), uids)

    def change(
        self, entries: Sequence[Entry], removed: Sequence[Uid]
    ) -> tuple[tuple[tuple[str, ...], ...], ...]:
        """Put all entries and remove all others named, in one write; no claim is among both. Returns what `put` does.

        What is removed is taken back before the write, what is put is given away after it: at any moment the
        checkpoint has all that any file gives away.
        """
        for entry in entries:
            check(entry)
        for uid in removed:
            check_uid(uid)
        with self._plugin.locked():
            self._refresh()
            before = self._known.records
            # First what gives the devices away: while the checkpoint has the claim, nobody takes them for free.
            if removed:
                self._given.take(removed)
            wanted = {one.uid: one for one in entries}
            self._write(self._changed(wanted.values()), removed)
            self._given.give([self._known.records[uid] for uid in wanted])
            again = [uid for uid in wanted if uid in before]
            if again:
                records = [self._known.records[uid] for uid in again]
                self._given.take_needless(records, lambda uid: uid in again)
        return tuple(self.ids(entry) for entry in entries)

    def _changed(self, entries: Iterable[Entry]) -> dict[Uid, Record]:
        """Return what is to be written of these; nothing of those that are there as they are."""
        before = self._known.records
        return {one.uid: self._next(before.get(one.uid), one) for one in entries if not self._has(one)}

    def _write(self, new: Mapping[Uid, Record], removed: Sequence[Uid]) -> None:
        known = self._known
        if new or any(uid in known.lines for uid in removed):
            lines = {uid: _line(record) for uid, record in new.items()}
            self._commit(
                {**_without(known.lines, removed), **lines}, {**_without(known.records, removed), **new}
            )

    def strays(self) -> tuple[Uid, ...]:
        """Return claims of which there is a CDI file, but nothing is known, since their entry was damaged.

        Their containers may still run, so the files stay until the claim is removed, or put again.
        """
        return self._strays(self._look().records)

    def _strays(self, records: Mapping[Uid, Record]) -> tuple[Uid, ...]:
        return tuple(uid for uid in self._given.uids() if uid not in records)

    def ids(self, entry: Entry) -> tuple[tuple[str, ...], ...]:
        """Return the names by which a runtime knows each device held."""
        return self._given.ids(entry)

    # --- the checkpoint

    def _look(self) -> _Known:
        """Return what is there, what another instance may have written too."""
        before = self._heads()
        head = self._plugin.head(CHECKPOINT, HEAD_BYTES)
        # What we ourselves are writing is not there before it is durable; nobody else writes meanwhile. What we read
        # may be from before a write of ours that has ended since: whoever asked for the lock then would wait for the
        # disk, behind the next one.
        if self._known.head is None or head not in (*before, *self._heads()):
            with self._plugin.locked():
                self._refresh()
        return self._known

    def _heads(self) -> tuple[bytes | None, bytes | None]:
        """Return how the file begins, and how it will, as far as it is ours."""
        return self._known.head, self._coming

    def _refresh(self) -> None:
        """See the same, with the lock in hand; what is seen is then safe."""
        if self._unsure:
            self._plugin.make()
            self._unsure = False
        if not self._is_old():
            return
        if self._known.head and not self._plugin.head(CHECKPOINT, HEAD_BYTES):
            self._findings.append(f"{self._plugin.path / CHECKPOINT}: it vanished, and is written again")
            # Nobody of ours removes it: what we remember is true.
            self._commit(self._known.lines, self._known.records)
        else:
            self._load()

    def _is_old(self) -> bool:
        return self._known.head is None or self._plugin.head(CHECKPOINT, HEAD_BYTES) != self._known.head

    def _has(self, entry: Entry) -> bool:
        record = self._known.records.get(entry.uid)
        return record is not None and record.entry == entry

    def _load(self) -> None:
        self._known = replace(self._known, head=None)
        place = self._plugin.path / CHECKPOINT
        try:
            data = self._plugin.read(CHECKPOINT, checkpoint.BYTES_MAX)
        except Unreadable as error:
            self._set_aside(str(error))
            data = None
        try:
            content = checkpoint.content(data) if data is not None else checkpoint.Content()
        except Refused as error:
            raise Refused(f"{place}: {error}") from None
        self._damaged = content.damaged
        self._found_damaged(*(f"{place}: {words}" for words in content.findings))
        self._known = _known(content.lines, content.records, content.revision, data or b"")

    def _commit(self, lines: Mapping[Uid, bytes], records: Mapping[Uid, Record]) -> None:
        revision = self._known.revision + 1
        data = checkpoint.file(lines.values(), revision)
        if len(data) > checkpoint.BYTES_MAX:
            raise Refused(
                f"{self._plugin.path / CHECKPOINT} would be longer than {checkpoint.BYTES_MAX} bytes"
            )
        self._keep_damaged()
        self._unsure, self._coming = True, data[:HEAD_BYTES]
        try:
            self._plugin.write(CHECKPOINT, data, 0o600, durable=True)
            self._known = _known(lines, records, revision, data)
        finally:
            self._coming = None
        self._unsure = False

    def _keep_damaged(self) -> None:
        if not self._damaged:
            return
        name = f"damaged-{checkpoint.checksum(self._damaged)}.jsonl"
        kept = self._kept()
        if name not in kept and len(kept) >= DAMAGED_MAX:
            self._findings.append(
                f"{self._plugin.path}: {DAMAGED_MAX} files with damaged lines are there already, so that these are"
                " not kept; look at them, and delete them"
            )
        else:
            self._plugin.write(name, self._damaged, 0o600, durable=True)
            self._findings.append(f"{self._plugin.path / name}: the damaged lines are kept here")
        self._damaged = b""

    def _set_aside(self, words: str) -> None:
        """Give whatever has the checkpoint's name and is no file another one."""
        kept = self._kept()
        free = (f"damaged-{number}" for number in range(DAMAGED_MAX))
        name = next((one for one in free if one not in kept), "")
        self._found_damaged(f"{self._plugin.path}: {words}; it is set aside as {name or 'nothing'}")
        if name:
            self._plugin.rename(CHECKPOINT, name)

    def _found_damaged(self, *words: str) -> None:
        self._findings += words
        self._damage += words

    def _kept(self) -> tuple[str, ...]:
        return tuple(name for name in self._plugin.names() if name.startswith("damaged-"))

    def _next(self, old: Record | None, entry: Entry) -> Record:
        """Return the record to write; its generation is raised when what containers can read has changed."""
        if old is None:
            return Record(entry)
        kept = Record(entry, old.generation)
        if self._given.metadata_files(kept) == self._given.metadata_files(old):
            return kept
        return Record(entry, old.generation + 1)

    # --- mending

    def _mend(self) -> None:
        self._plugin.remove(*(one for one in self._plugin.leftovers() if CHECKPOINT in one), durable=False)
        self._given.take_leftovers()
        records = self._known.records
        count = self._given.give(records.values())
        if count:
            self._findings.append(
                f"{count} files of prepared claims were missing or not as they should be, and are written again"
                " (after a restart of the node this is as it should be)"
            )
        strays = self._strays(records)
        self._given.take_needless(records.values(), lambda uid: uid not in strays)
        if strays:
            self._findings.append(
                f"{self._cdi}: nothing is known of {len(strays)} claims that have a CDI file here:"
                f" {', '.join(strays)}; the files stay until the kubelet asks to unprepare them"
            )

    def _try(self, what: Callable[..., None], *arguments: object) -> None:
        """Do it, or tell why not: a driver that runs is of more use than one that does not start."""
        try:
            what(*arguments)
        except (Retry, Refused) as error:
            self._findings.append(str(error))


def _known(lines: Mapping[Uid, bytes], records: Mapping[Uid, Record], revision: int, data: bytes) -> _Known:
    entries = tuple(one.entry for one in records.values())
    return _Known(lines, records, revision, data[:HEAD_BYTES], entries)


def _line(record: Record) -> bytes:
    entry, line = record.entry, checkpoint.line(record)
    if len(line) > ENTRY_BYTES_MAX:
        raise Refused(
            f"claim {entry.claim} has {len(line)} bytes to be remembered, at most {ENTRY_BYTES_MAX} are taken"
        )
    return line


def _without(values: Mapping[Uid, T], uids: Sequence[Uid]) -> dict[Uid, T]:
    return {key: value for key, value in values.items() if key not in uids}
