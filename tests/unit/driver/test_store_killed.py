"""The store under a process that is killed, a disk that fails and a power cut: at every step there is."""

import errno
import itertools
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jackfield.driver import checkpoint
from jackfield.driver.cdi import DeviceNode, Edits
from jackfield.driver.entry import Entry, Held
from jackfield.driver.files import Calls
from jackfield.driver.store import PreparedStore
from jackfield.model.names import Key, Uid
from jackfield.ports import Retry
from unit.driver.disk import Deadly, DeadlyAndForgetful, Failing, FailingAndForgetful, Killed, Quick

DRIVER = "gpu.example.com"


def entry(name: str, *requests: str, variable: str = "x") -> Entry:
    held = (
        Held((request,), "node-1", f"gpu-{number}", edits=Edits(env={"A": variable}))
        for number, request in enumerate(requests)
    )
    return Entry(Uid(f"uid-{name}"), Key("team", name), tuple(held))


Act = Callable[[PreparedStore], object]
FIRST, SECOND, OTHER = entry("a", "one", "two"), entry("a", "two", variable="y"), entry("b", "one")
PLAY: tuple[tuple[Act, tuple[Entry, ...]], ...] = (
    # What the kubelet asks for, and what is prepared once it is done.
    (lambda store: store.put(FIRST), (FIRST,)),
    (lambda store: store.put_all((SECOND, OTHER)), (SECOND, OTHER)),
    (lambda store: store.put(entry("b")), (SECOND, entry("b"))),
    (lambda store: store.remove(SECOND.uid), (entry("b"),)),
    (lambda store: store.put(FIRST), (entry("b"), FIRST)),
)


OPEN_AND_PUT: tuple[Act, ...] = (lambda store: store.open(), lambda store: store.put(FIRST))


def expected(done: int) -> dict[str, Entry]:
    """Return what is prepared after so many acts."""
    return {one.uid: one for one in PLAY[done - 1][1]} if done else {}


def after(done: int) -> list[dict[str, Entry]]:
    """Return what may be prepared when somebody was stopped after so many acts, in the midst of the next."""
    return [expected(count) for count in (done, done + 1) if count <= len(PLAY)]


@contextmanager
def node(*, damaged: bool = False) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "plugins").mkdir()
        if damaged:
            store = opened(root)
            store.put(entry("x", "one"))
            file = root / "plugins" / DRIVER / "checkpoint.jsonl"
            file.write_bytes(file.read_bytes().replace(b"gpu-0", b"gpu-9"))
        yield root


def opened(root: Path, calls: Calls | None = None) -> PreparedStore:
    store = PreparedStore(DRIVER, root / "plugins", root / "cdi", calls=calls or Quick())
    store.open()
    return store


def files(root: Path) -> dict[str, str]:
    """Return all files, without what a checkpoint says of its own history."""
    found = {
        str(one.relative_to(root)): one.read_text()
        for one in sorted(root.rglob("*"))
        if one.is_file() and one.name != "checkpoint.jsonl"
    }
    return {name: text.replace(str(root), "") for name, text in found.items()}


def known(root: Path) -> dict[str, Entry]:
    """Return what the checkpoint says, read as by a stranger; damage is told by a test's end."""
    file = root / "plugins" / DRIVER / "checkpoint.jsonl"
    content = checkpoint.content(file.read_bytes()) if file.exists() else checkpoint.Content()
    assert content.findings == ()
    return {uid: record.entry for uid, record in content.records.items()}


def given(root: Path) -> list[str]:
    """Return the claims that have a CDI file, each of which a runtime could read."""
    found = sorted((root / "cdi").glob("*.json")) if (root / "cdi").exists() else []
    for one in found:
        spec = json.loads(one.read_text())
        for device in spec["devices"]:
            for mount in device["containerEdits"].get("mounts", ()):
                assert Path(mount["hostPath"]).exists()
    return [one.name.removeprefix(f"{DRIVER}_claim_").removesuffix(".json") for one in found]


def asked_again(root: Path, done: int) -> dict[str, str]:
    """Start anew, ask for what was not answered, then for the rest; return what is left."""
    store = PreparedStore(DRIVER, root / "plugins", root / "cdi", calls=Quick())
    assert not [words for words in store.open() if "written again" not in words]
    before = {one.uid: one for one in store.entries()}
    assert before in after(done)
    assert set(given(root)) == {uid for uid, one in before.items() if one.held}
    for act, _ in PLAY[done:]:
        act(store)
    return files(root)


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, str]:
    with node() as root:
        store = opened(root)
        for number, (act, _) in enumerate(PLAY):
            act(store)
            assert {one.uid: one for one in store.entries()} == known(root) == expected(number + 1)
            assert given(root) == sorted(uid for uid, one in expected(number + 1).items() if one.held)
        return files(root)


def test_a_kill_at_any_step_leaves_a_store_that_is_right_once_the_kubelet_asks_again(
    undisturbed: dict[str, str],
) -> None:
    for at in itertools.count():
        with node() as root:
            done, calls = 0, Deadly(at)
            try:
                store = opened(root, calls)
                for act, _ in PLAY:
                    act(store)
                    done += 1
            except Killed:
                # Nothing gives a device away that the checkpoint does not know to be held.
                assert set(given(root)) <= set(known(root)), at
                assert known(root) in after(done), at
            assert asked_again(root, done) == undisturbed, (at, done, calls.steps[-1:])
            if done == len(PLAY):
                break
    assert at > 50  # the disk did see all those steps


def test_a_step_that_fails_is_told_in_words_and_all_is_right_when_asked_again(
    undisturbed: dict[str, str],
) -> None:
    for at in itertools.count():
        with node() as root:
            calls = Failing(at, errno.EIO)
            store = PreparedStore(DRIVER, root / "plugins", root / "cdi", calls=calls)
            told = []
            for act in (lambda one: one.open(), *(act for act, _ in PLAY)):
                try:
                    act(store)
                except Retry as retry:
                    told.append(str(retry))
                    assert set(given(root)) <= set(known(root)), at
                    act(store)
            assert files(root) == undisturbed, at
            assert {one.uid: one for one in store.entries()} == known(root) == expected(len(PLAY))
            if at >= len(calls.steps):
                break
            assert len(told) == 1, at
            assert told[0].startswith(str(root)), told


def test_a_power_cut_at_any_step_loses_nothing_that_was_answered() -> None:
    for at in itertools.count():
        with node() as root:
            done = 0
            calls = DeadlyAndForgetful(at)
            calls.watch(root)
            try:
                store = opened(root, calls)
                for act, _ in PLAY:
                    act(store)
                    done += 1
            except Killed:
                pass
            calls.cut_power()
            assert known(root) in after(done), (at, done)
            left = {one.name.removeprefix(f"{DRIVER}_claim_")[:5] for one in (root / "cdi").glob("*.json")}
            assert left <= set(known(root)), at
            asked_again(root, done)
            if done == len(PLAY):
                break


def test_what_is_answered_after_a_kill_is_safe_from_a_power_cut_though_nothing_was_left_to_write() -> None:
    for at in itertools.count():
        with node() as root:
            calls = DeadlyAndForgetful(at)
            calls.watch(root)
            try:
                opened(root, calls).put(FIRST)
                killed = False
            except Killed:
                killed = True
            calls.start_anew()
            opened(root, calls).put(FIRST)
            calls.cut_power()
            assert known(root) == {FIRST.uid: FIRST}, at
            if not killed:
                break


def test_what_is_answered_after_a_failure_is_safe_from_a_power_cut_though_nothing_was_left_to_write() -> None:
    for at in itertools.count():
        with node() as root:
            calls = FailingAndForgetful(at)
            calls.watch(root)
            store = PreparedStore(DRIVER, root / "plugins", root / "cdi", calls=calls)
            for act in OPEN_AND_PUT:
                try:
                    act(store)
                except Retry:
                    act(store)
            calls.cut_power()
            assert known(root) == {FIRST.uid: FIRST}, at
            if at >= len(calls.steps):
                break


def test_a_kill_while_a_damaged_checkpoint_is_mended_loses_neither_the_sound_nor_the_damaged() -> None:
    for at in itertools.count():
        with node(damaged=True) as root:
            damaged = (root / "plugins" / DRIVER / "checkpoint.jsonl").read_text().splitlines()[1]
            calls = Deadly(at)
            try:
                opened(root, calls)
                killed = False
            except Killed:
                killed = True
            store = opened(root)
            kept = [one.read_text() for one in (root / "plugins" / DRIVER).glob("damaged-*")]
            assert kept == [f"{damaged}\n"], at
            assert store.entries() == ()
            assert store.strays() == (Uid("uid-x"),)
            assert given(root) == ["uid-x"]
            store.remove(Uid("uid-x"))
            assert given(root) == []
            if not killed:
                break
    assert at > 5


def test_a_disk_that_fails_does_not_keep_a_driver_from_starting_nor_loses_the_damaged_lines() -> None:
    for at in itertools.count():
        with node(damaged=True) as root:
            calls = Failing(at, errno.ENOSPC)
            store = PreparedStore(DRIVER, root / "plugins", root / "cdi", calls=calls)
            try:
                found = store.open()
            except Retry:
                assert len(calls.steps) <= 2  # where the folder itself cannot be made sure of
                found = store.open()
            assert any("probably claim 'team/x'" in words for words in found), at
            device = Held(("one",), "node-1", "gpu-1", edits=Edits(device_nodes=(DeviceNode("/dev/a"),)))
            new = Entry(Uid("uid-y"), Key("team", "y"), (device,))
            try:
                store.put(new)
            except Retry:
                store.put(new)
            assert list(known(root)) == ["uid-y"]
            assert len(list((root / "plugins" / DRIVER).glob("damaged-*"))) == 1, at
            if at >= len(calls.steps):
                break
