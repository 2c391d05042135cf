"""What survives kill -9: SQLite in WAL mode, every commit synchronous. The only module that knows the database.

Writes are made at once inside one open transaction, which is committed before anybody is answered: `committed` returns
when all that was written until now is on disk. Those who write in the same turn of the loop share a commit. Must not
know what the rows mean. After a commit that failed nothing is answered any more: memory is ahead of the disk then.
"""

import asyncio
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from jackfield.fabric_manager.orders import Entry, State
from jackfield.model.names import FabricName, NodeName, OrderID, PhysicalID, Seconds
from jackfield.ports import Retry

T = TypeVar("T")

VERSION: Final = "2"
MIGRATION: Final = """
ALTER TABLE orders ADD COLUMN at REAL NOT NULL DEFAULT 0;
UPDATE orders SET at = CAST(strftime('%s', 'now') AS REAL);
UPDATE meta SET value = '2' WHERE key = 'version' AND value = '1';
"""
"""From version 1, which did not know when an order ended: of all that have, the time begins now."""
EVENTS_MAX: Final = 100_000
"""Events kept; older ones are forgotten."""
EVENTS_AT_ONCE: Final = 1000
ENDED_AT_ONCE: Final = 1000
"""After so many that ended, those are forgotten whose time is over; twice as many at most, so that nobody waits."""

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS orders (
    id TEXT PRIMARY KEY, ended INTEGER NOT NULL, entry BLOB NOT NULL, at REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS live ON orders (ended) WHERE ended = 0;
CREATE TABLE IF NOT EXISTS since (name TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS notes (face TEXT, key TEXT, value BLOB NOT NULL, PRIMARY KEY (face, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events (number INTEGER PRIMARY KEY AUTOINCREMENT, event BLOB NOT NULL);
"""


class BadStore(Exception):  # noqa: N818 - a finding about a file
    """A database that cannot be used; the message says why and what to do."""


class Event(msgspec.Struct, frozen=True):
    """Something that happened to a device."""

    at: Seconds
    what: str
    """attached, detached, failed, vanished, back."""
    device: PhysicalID
    node: NodeName = NodeName("")
    owner: str = ""
    order: OrderID = OrderID("")
    reason: str = ""
    number: int = 0


class Memory(msgspec.Struct, frozen=True):
    """How long orders that ended are remembered, and how many at most; the oldest are forgotten first."""

    seconds: Seconds = Seconds(30 * 86400.0)
    orders: int = 1_000_000


class Store:
    """One process's hold of the database; nobody else can open it meanwhile."""

    def __init__(self, path: Path, fabric: FabricName, memory: Memory = Memory()) -> None:
        self._path = path
        self._memory = memory
        try:
            path.touch(mode=0o600)  # what SQLite puts beside it takes its mode
            self._database = sqlite3.connect(path, isolation_level=None, timeout=1.0)
            self._open(fabric)
        except (sqlite3.DatabaseError, OSError) as error:
            locked = "locked" in str(error)
            words = "another manager uses it" if locked else f"cannot be used: {error}"
            raise BadStore(f"{path}: {words}") from error
        self._batch: asyncio.Event | None = None
        self._told = 0
        self._ended = 0
        self._kept = sys.maxsize
        """How many that ended there are, or more: counting is left for when it may be too many."""
        self.broken = asyncio.Event()
        """Set when a commit failed; the process must end."""
        self.failure = ""

    def _open(self, fabric: FabricName) -> None:
        self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = FULL")
        self._database.executescript(SCHEMA)
        if not self._database.execute(
            "SELECT 1 FROM pragma_table_info('orders') WHERE name = 'at'"
        ).fetchone():
            self._database.executescript(f"BEGIN IMMEDIATE; {MIGRATION} COMMIT;")
        self._database.execute("BEGIN IMMEDIATE")
        self._settled_once("version", VERSION, "was written by another version of jackfield")
        self._settled_once("fabric", fabric, "belongs to another fabric")
        self._database.execute("COMMIT")

    def _settled_once(self, key: str, value: str, otherwise: str) -> None:
        row = self._database.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        if row is None:
            self._database.execute("INSERT INTO meta VALUES (?, ?)", (key, value))
        elif row[0] != value:
            raise BadStore(f"{self._path}: {otherwise}: {key} is {row[0]!r}, not {value!r}")

    def close(self) -> None:
        """Let go of it; what was not committed was not answered for."""
        self._database.close()

    # --- durability

    async def committed(self) -> None:
        """Return when all that was written until now is on disk. Raises Retry if it cannot be written."""
        batch = self._batch
        if batch is not None:
            await batch.wait()
        if self.failure:
            raise Retry(self.failure)

    def _write(self, statement: str, values: tuple[object, ...]) -> None:
        if self.failure:
            raise Retry(self.failure)
        self._guarded(lambda: self._begun(statement, values))

    def _begun(self, statement: str, values: tuple[object, ...]) -> None:
        if self._batch is None:
            self._database.execute("BEGIN IMMEDIATE")
            self._batch = asyncio.Event()
            # Whoever is ready in this turn of the loop writes into the same transaction.
            asyncio.get_running_loop().call_soon(self._commit)
        self._database.execute(statement, values)

    def _commit(self) -> None:
        batch, self._batch = self._batch, None
        try:
            self._guarded(lambda: self._database.execute("COMMIT"))
        except Retry:
            pass  # told to everybody who waits
        finally:
            if batch is not None:
                batch.set()

    def _guarded(self, work: Callable[[], object]) -> None:
        try:
            work()
        except sqlite3.Error as error:
            self.failure = f"{self._path} cannot be written: {error}"
            self.broken.set()
            raise Retry(self.failure) from error

    # --- orders

    def put(self, entry: Entry, now: Seconds) -> None:
        """Write what the books say of an order."""
        ended = entry.state is State.ENDED
        self._write(
            "INSERT OR REPLACE INTO orders VALUES (?, ?, ?, ?)",
            (entry.order.id, int(ended), msgspec.json.encode(entry), now),
        )
        if ended:
            if self._ended % ENDED_AT_ONCE == 0:
                self._forget(now)
            self._ended += 1
            self._kept += 1

    def _forget(self, now: Seconds) -> None:
        """Forget the oldest that ended: those whose time is over, and those that are too many."""
        # A row that is written anew goes to the end, so that the first are the oldest.
        oldest = self._database.execute(
            "SELECT id, at FROM orders WHERE ended = 1 ORDER BY rowid LIMIT ?", (2 * ENDED_AT_ONCE,)
        ).fetchall()
        if self._kept > self._memory.orders:
            self._kept = self._counted()
        surplus = self._kept - self._memory.orders
        for number, (order, at) in enumerate(oldest):
            if number >= surplus and at > now - self._memory.seconds:
                break
            self._write("DELETE FROM orders WHERE id = ?", (order,))
            self._kept -= 1

    def _counted(self) -> int:
        total, live = "SELECT count(*) FROM orders", "SELECT count(*) FROM orders WHERE ended = 0"
        return int(self._database.execute(f"SELECT ({total}) - ({live})").fetchone()[0])

    def entry(self, order: OrderID) -> Entry | None:
        """Return what the books say of an order, ended ones too."""
        row = self._database.execute("SELECT entry FROM orders WHERE id = ?", (order,)).fetchone()
        return msgspec.json.decode(row[0], type=Entry) if row else None

    def live(self) -> Iterator[Entry]:
        """Return all orders that have not ended, oldest first."""
        for (row,) in self._database.execute("SELECT entry FROM orders WHERE ended = 0 ORDER BY rowid"):
            yield msgspec.json.decode(row, type=Entry)

    # --- when anything came to where it is

    def since(self) -> dict[str, Seconds]:
        """Return when each device and machine last changed."""
        return dict(self._database.execute("SELECT name, at FROM since"))

    def stamp(self, name: str, at: Seconds) -> None:
        """Write when a device or machine changed."""
        self._write("INSERT OR REPLACE INTO since VALUES (?, ?)", (name, at))

    # --- what faces remember

    def notes(self, face: str) -> Mapping[str, bytes]:
        """Return all that a face wrote down."""
        return dict(self._database.execute("SELECT key, value FROM notes WHERE face = ?", (face,)))

    def note(self, face: str, key: str, value: bytes | None) -> None:
        """Write something down for a face, or forget it."""
        if value is None:
            self._write("DELETE FROM notes WHERE face = ? AND key = ?", (face, key))
        else:
            self._write("INSERT OR REPLACE INTO notes VALUES (?, ?, ?)", (face, key, value))

    # --- what happened

    def tell(self, event: Event) -> None:
        """Write an event down."""
        self._write("INSERT INTO events (event) VALUES (?)", (msgspec.json.encode(event),))
        self._told += 1
        if self._told % EVENTS_AT_ONCE == 0:
            self._write(
                "DELETE FROM events WHERE number <= (SELECT max(number) FROM events) - ?", (EVENTS_MAX,)
            )

    def events(self, after: int) -> tuple[Event, ...]:
        """Return what happened after that number, at most so many at once."""
        rows = self._database.execute(
            "SELECT number, event FROM events WHERE number > ? ORDER BY number LIMIT ?",
            (after, EVENTS_AT_ONCE),
        )
        return tuple(
            msgspec.structs.replace(msgspec.json.decode(event, type=Event), number=number)
            for number, event in rows
        )

    def latest(self, count: int) -> tuple[Event, ...]:
        """Return the latest events, so many at most, oldest first."""
        rows = self._database.execute("SELECT event FROM events ORDER BY number DESC LIMIT ?", (count,))
        return tuple(msgspec.json.decode(event, type=Event) for (event,) in reversed(rows.fetchall()))

    def last_event(self) -> int:
        """Return the number of the latest event; 0 if there is none."""
        row = self._database.execute("SELECT max(number) FROM events").fetchone()
        return int(row[0] or 0)
