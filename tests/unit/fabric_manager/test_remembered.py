"""What is remembered of orders that ended: for how long, how many, and what is lost then."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec

from jackfield.fabric_manager import hardware
from jackfield.fabric_manager.hardware import Hardware
from jackfield.fabric_manager.manager import Manager
from jackfield.fabric_manager.orders import Entry, State
from jackfield.fabric_manager.store import ENDED_AT_ONCE, Memory, Store
from jackfield.model.fabric import Done, Failed
from jackfield.model.names import NodeName, OrderID, PhysicalID, Seconds
from unit.fabric_manager.lab import FABRIC, SMALL, attached, detached, lab, on, order

HOUR = Seconds(3600.0)


def ended(number: int, state: State = State.ENDED) -> Entry:
    return Entry(order(f"o-{number}"), "native", state, PhysicalID("a-1"), closed=True)


def remembered(store: Store, numbers: range) -> list[int]:
    return [one for one in numbers if store.entry(OrderID(f"o-{one}")) is not None]


def kept(folder: Path, memory: Memory, work: list[tuple[Entry, Seconds]]) -> list[int]:
    """Return which orders are still known after all of these were written."""

    async def main() -> list[int]:
        with closing(Store(folder / "manager.db", FABRIC, memory)) as store:
            for entry, at in work:
                store.put(entry, at)
            await store.committed()
            return remembered(store, range(len(work) + 1))

    return asyncio.run(main())


def test_an_id_stays_closed_for_its_time_and_is_forgotten_then(tmp_path: Path) -> None:
    early = [(ended(number), Seconds(number)) for number in range(ENDED_AT_ONCE)]
    later = [(ended(ENDED_AT_ONCE + number), Seconds(HOUR + 500.0)) for number in range(ENDED_AT_ONCE)]
    found = kept(tmp_path, Memory(HOUR, 10**6), early + later)
    # An hour after the first five hundred ended, they and nobody else are forgotten.
    assert found == [*range(501, 2 * ENDED_AT_ONCE)]


def test_of_too_many_the_oldest_are_forgotten(tmp_path: Path) -> None:
    work = [(ended(number), Seconds(0.0)) for number in range(3 * ENDED_AT_ONCE + 1)]
    found = kept(tmp_path, Memory(HOUR, ENDED_AT_ONCE), work)
    assert found == [*range(2 * ENDED_AT_ONCE + 1, 3 * ENDED_AT_ONCE + 1)]


def test_an_order_that_holds_a_device_is_never_forgotten(tmp_path: Path) -> None:
    holding = [(ended(0, State.ATTACHED), Seconds(0.0))]
    work = [(ended(number), Seconds(10 * HOUR)) for number in range(1, 2 * ENDED_AT_ONCE)]
    assert kept(tmp_path, Memory(HOUR, 1), holding + work)[:2] == [0, ENDED_AT_ONCE + 1]


def test_an_order_that_is_asked_about_again_begins_its_time_anew(tmp_path: Path) -> None:
    work = [(ended(number), Seconds(number)) for number in range(ENDED_AT_ONCE)]
    again = (ended(3), Seconds(HOUR))
    last = (ended(ENDED_AT_ONCE), Seconds(2 * HOUR - 1.0))
    more = [(ended(ENDED_AT_ONCE + number), Seconds(2 * HOUR - 1.0)) for number in range(1, ENDED_AT_ONCE)]
    found = kept(tmp_path, Memory(HOUR, 10**6), [*work, again, last, *more])
    assert 3 in found
    assert 2 not in found
    assert 4 not in found


def test_a_forgotten_id_is_a_new_order_and_its_detach_is_done(tmp_path: Path) -> None:
    async def play(manager: Manager) -> None:
        for name in ("o", "p"):
            assert isinstance(await attached(manager, order(name)), Done)
            assert isinstance(await detached(manager, order(name)), Done)
            assert isinstance(await attached(manager, order(name)), Failed)

    async def after(manager: Manager) -> None:
        assert isinstance(await attached(manager, order("o")), Done)
        assert isinstance(await detached(manager, order("o")), Done)
        assert isinstance(await detached(manager, order("p")), Done)

    on(tmp_path, lab(), play)
    with closing(sqlite3.connect(tmp_path / "manager.db")) as database, database:
        database.execute("DELETE FROM orders")
    on(tmp_path, lab(), after)


def test_what_was_there_before_is_taken_over_once_even_if_its_order_is_forgotten(tmp_path: Path) -> None:
    before = hardware.Attached(device=PhysicalID("a-3"), machine=NodeName("n-2"))
    of = Hardware(msgspec.structs.replace(SMALL, attached=(before,)))

    async def first(manager: Manager) -> None:
        assert isinstance(await detached(manager, order("before/a-3", "a-3", "n-2"), "before"), Done)

    async def second(manager: Manager) -> None:
        assert manager.books.holder(PhysicalID("a-3")) is None

    on(tmp_path, of, first)
    with closing(sqlite3.connect(tmp_path / "manager.db")) as database, database:
        database.execute("DELETE FROM orders")
    on(tmp_path, of, second)


OLD = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE orders (id TEXT PRIMARY KEY, ended INTEGER NOT NULL, entry BLOB NOT NULL);
INSERT INTO meta VALUES ('version', '1'), ('fabric', 'rack-a');
"""


def test_a_database_of_the_version_before_is_taken_over_with_its_orders(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "manager.db")) as database, database:
        database.executescript(OLD)
        entry = (
            '{"order":{"id":"o","fabric":"rack-a","node":"n-1","model":"A100","device":"a-1"},'
            '"owner":"native","state":"ended","device":"a-1","closed":true}'
        )
        database.execute("INSERT INTO orders VALUES ('o', 1, ?)", (entry.encode(),))

    async def first(manager: Manager) -> None:
        assert isinstance(await attached(manager, order("o")), Failed)
        assert isinstance(await attached(manager, order("p")), Done)

    async def second(manager: Manager) -> None:
        assert isinstance(await attached(manager, order("p")), Done)
        assert isinstance(await detached(manager, order("p")), Done)
        assert isinstance(await attached(manager, order("o")), Failed)

    on(tmp_path, lab(), first)
    on(tmp_path, lab(), second)
