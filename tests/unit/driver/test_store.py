"""The store as a driver uses it: what is remembered, what containers get, and who else may be there."""

import errno
import os
import threading
from pathlib import Path

import pytest

from jackfield.driver import checkpoint
from jackfield.driver.entry import ENTRY_BYTES_MAX
from jackfield.driver.files import Folder
from jackfield.driver.store import CHECKPOINT, DAMAGED_MAX, Held
from jackfield.model.names import Uid
from jackfield.ports import Refused, Retry
from unit.driver.disk import Failing, Quick
from unit.driver.folders import DRIVER, Node, entry


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


# --- what is remembered


def test_what_was_put_is_there_after_a_restart(node: Node) -> None:
    first, second = entry("a", pod_claim_name="gpus"), entry("b")
    store = node.opened()
    assert store.open() == ()
    store.put(first)
    store.put(second)
    again = node.store()
    assert again.open() == ()
    assert again.entries() == store.entries() == (first, second)
    assert again.get(first.uid) == first
    assert again.get(Uid("other")) is None


def test_a_store_needs_no_opening_to_be_read(node: Node) -> None:
    node.opened().put(entry("a"))
    assert node.store().get(Uid("uid-a")) == entry("a")


def test_what_was_removed_leaves_no_trace(node: Node) -> None:
    store = node.opened()
    before = set(node.files())
    store.put(entry("a"))
    store.remove(Uid("uid-a"))
    assert set(node.files()) - {str(node.checkpoint)} == before
    assert store.entries() == node.opened().entries() == ()


def test_to_remove_what_is_not_there_changes_nothing(node: Node) -> None:
    calls = Quick()
    store = node.opened(calls)
    store.put(entry("a"))
    before = node.files()
    store.remove(Uid("uid-b"))
    assert node.files() == before


def test_the_same_entry_again_writes_nothing(node: Node) -> None:
    calls = Quick()
    store = node.opened(calls)
    ids = store.put(entry("a"))
    calls.steps.clear()
    assert store.put(entry("a")) == ids
    assert node.opened(calls).put(entry("a")) == ids
    assert calls.steps == ["sync", "sync"]  # of the folder and the one above it, when it was opened


def test_what_others_deleted_or_changed_is_written_again_when_the_kubelet_asks_again(node: Node) -> None:
    store = node.opened()
    store.put(entry("a"))
    before = node.files()
    for path in before:
        if path != str(node.checkpoint):
            Path(path).unlink()
            store.put(entry("a"))
            assert node.files() == before
            Path(path).write_text("{}")
            store.put(entry("a"))
            assert node.files() == before


def test_after_a_restart_of_the_node_the_files_are_back(node: Node) -> None:
    store = node.opened()
    store.put_all((entry("a"), entry("b")))
    before = node.files()
    for one in node.cdi.iterdir():
        one.unlink()
    node.cdi.rmdir()  # it lies in memory
    (found,) = node.store().open()
    assert found.startswith("2 files of prepared claims were missing")
    assert node.files() == before


def test_to_put_many_costs_as_many_waits_as_to_put_one(node: Node) -> None:
    calls = Quick()
    store = node.opened(calls)
    waits = []
    for number, count in enumerate((1, 1, 50, 50)):
        calls.steps.clear()
        ids = store.put_all(tuple(entry(f"{number}-{one}") for one in range(count)))
        assert len(ids) == count
        waits.append(calls.steps.count("sync"))
        calls.steps.clear()
        store.remove_all(tuple(Uid(f"uid-{number}-{one}") for one in range(count)))
        waits.append(calls.steps.count("sync"))
    assert waits == [2, 3] * 4


def test_of_two_entries_for_one_claim_the_later_is_put(node: Node) -> None:
    store = node.opened()
    old, new = entry("a"), entry("a", Held(("gpu",), "node-1", "gpu-1"))
    store.put(old)
    store.put_all((new, old))
    assert store.get(old.uid) == old
    store.put_all((old, new))
    assert store.get(old.uid) == new


# --- damage


def damage(node: Node, old: bytes, new: bytes) -> bytes:
    data = node.checkpoint.read_bytes()
    assert old in data
    node.checkpoint.write_bytes(data.replace(old, new))
    return next(line for line in node.checkpoint.read_bytes().splitlines(keepends=True) if new in line)


def test_a_damaged_entry_is_kept_beside_and_the_others_survive(node: Node) -> None:
    store = node.opened()
    store.put_all(tuple(entry(name) for name in "abc"))
    line = damage(node, b'"name":"b"', b'"name":"x"')
    again = node.store()
    damaged, kept, stray = again.open()
    assert damaged == f"{node.checkpoint}: a line is damaged (probably claim 'team/x', uid 'uid-b')"
    (file,) = node.plugin.glob("damaged-*")
    assert kept == f"{file}: the damaged lines are kept here"
    assert file.read_bytes() == line
    assert "nothing is known of 1 claims that have a CDI file here: uid-b;" in stray
    assert [one.uid for one in again.entries()] == ["uid-a", "uid-c"]


def test_what_gives_devices_to_a_claim_that_was_lost_stays_until_it_is_unprepared(node: Node) -> None:
    node.opened().put(entry("a"))
    node.checkpoint.unlink()
    before = node.files()
    store = node.opened()
    assert store.strays() == (Uid("uid-a"),)
    assert node.files() == before  # containers that run may start again
    assert node.store().open() == store.open() != ()
    store.remove(Uid("uid-a"))
    assert store.strays() == ()
    assert node.store().open() == ()
    assert not list(node.cdi.iterdir())


def test_a_claim_that_was_lost_is_known_again_once_it_is_put(node: Node) -> None:
    node.opened().put(entry("a"))
    node.checkpoint.write_bytes(b"")
    store = node.opened()
    store.put(entry("a"))
    assert store.strays() == ()
    assert node.store().open() == ()


@pytest.mark.parametrize("data", [b"", b"\0" * 4096, b"{}\n", b"[" * 100_000, b"\xff\xfe"])
def test_a_checkpoint_that_is_none_does_not_keep_the_driver_from_starting(node: Node, data: bytes) -> None:
    node.plugin.mkdir()
    node.checkpoint.write_bytes(data)
    store = node.store()
    assert store.open()
    store.put(entry("a"))
    kept = b"".join(one.read_bytes() for one in node.plugin.glob("damaged-*"))
    assert kept.rstrip(b"\n") == data.rstrip(b"\n")
    assert node.store().open() == ()


def test_a_checkpoint_longer_than_any_of_ours_is_set_aside_unread(node: Node) -> None:
    node.plugin.mkdir()
    node.checkpoint.touch()
    os.truncate(node.checkpoint, checkpoint.BYTES_MAX + 1)
    store = node.store()
    (found,) = store.open()
    assert found.endswith(f"is longer than {checkpoint.BYTES_MAX} bytes; it is set aside as damaged-0")
    store.put(entry("a"))
    assert node.store().open() == ()


def test_a_checkpoint_that_would_be_too_long_to_be_read_is_not_written(node: Node) -> None:
    store = node.opened()
    store.put(entry("a"))
    before = node.files()
    large = Held(("gpu",), "node-1", "gpu-0", notes={"a": "x" * (ENTRY_BYTES_MAX - 1000)})
    with pytest.raises(Refused, match="would be longer than"):
        store.put_all(tuple(entry(f"large-{number}", large) for number in range(65)))
    assert node.files() == before
    assert store.entries() == (entry("a"),)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (errno.ENOSPC, "cannot be written: checkpoint.jsonl: the disk is full; make room"),
        (errno.EROFS, "it is mounted read-only"),
        (errno.EACCES, "permission denied; the driver must run as root"),
        (errno.EIO, "Input/output error"),
    ],
)
def test_what_the_disk_does_not_let_us_do_is_told_in_words(error: int, words: str, node: Node) -> None:
    node.opened()
    store = node.store(Failing(3, error))
    store.open()
    with pytest.raises(Retry) as retry:
        store.put(entry("a"))
    assert words in str(retry.value)
    assert str(retry.value).startswith(str(node.plugin))


def test_so_many_damaged_files_are_kept_and_no_more(node: Node) -> None:
    store, found = node.opened(), list[str]()
    for number in range(DAMAGED_MAX + 2):
        store.put(entry("a", Held(("gpu",), "node-1", f"gpu-{number}")))
        damage(node, b'"name":"a"', b'"name":"x"')
        store = node.store()
        found = list(store.open())
    assert any("look at them, and delete them" in words for words in found)
    assert len(list(node.plugin.glob("damaged-*"))) == DAMAGED_MAX


def test_a_checkpoint_that_vanishes_is_written_again_since_its_claims_still_hold_their_devices(
    node: Node,
) -> None:
    store = node.opened()
    store.put(entry("a"))
    node.checkpoint.unlink()
    assert store.entries() == (entry("a"),)
    assert node.opened().entries() == (entry("a"),)
    (found,) = store.open()
    assert "vanished" in found


def test_a_newer_checkpoint_is_refused_and_stays_as_it_is(node: Node) -> None:
    store = node.opened()
    store.put(entry("a"))
    node.checkpoint.write_bytes(
        checkpoint.file((checkpoint.line(checkpoint.Record(entry("b"))),), 9, version=2)
    )
    before = node.files()
    for act in (
        lambda: node.store().open(),
        lambda: store.put(entry("c")),
        lambda: store.remove(Uid("uid-a")),
        store.entries,
        store.open,
    ):
        with pytest.raises(Refused, match=r"checkpoint\.jsonl: it was written by a newer version") as refused:
            act()
        assert "run the newer one, or move the file away" in str(refused.value)
    assert node.files() == before


# --- who else is there


def test_two_instances_see_what_the_other_has_written(node: Node) -> None:
    old, new = node.opened(), node.opened()
    old.put(entry("a"))
    assert new.get(Uid("uid-a")) == entry("a")
    new.put(entry("b"))
    old.put(entry("c"))
    new.remove(Uid("uid-a"))
    assert old.entries() == new.entries() == (entry("b"), entry("c"))


def test_nobody_writes_while_another_does(node: Node) -> None:
    store, done = node.opened(), threading.Event()

    def put() -> None:
        store.put(entry("a"))
        done.set()

    writer = threading.Thread(target=put)
    with Folder(node.plugins, DRIVER).locked():
        writer.start()
        assert not done.wait(0.05)
        assert not node.checkpoint.exists()
    assert done.wait(300)
    writer.join()
    assert store.entries() == (entry("a"),)


def test_instances_that_write_at_once_lose_nothing(node: Node) -> None:
    def put(first: str) -> None:
        store = node.store()
        for number in range(20):
            store.put(entry(f"{first}-{number}"))

    writers = [threading.Thread(target=put, args=(first,)) for first in "abc"]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
    store = node.store()
    assert store.open() == ()
    assert len(store.entries()) == 60


def test_a_driver_touches_no_file_of_another(node: Node) -> None:
    others = [
        node.cdi / f"{DRIVER}.other_claim_uid-a.json",
        node.cdi / f"other.{DRIVER}_claim_uid-a.json",
        node.cdi / f"{DRIVER}_metadata_uid-a_gpu.json",
        node.cdi / ".other.example.com_claim_uid-a.json.new",
        node.cdi / "nvidia.yaml",
        node.plugin / "dra.sock",
        node.plugin / ".state.new",
        node.plugin / "metadata" / "readme",
    ]
    ours = [
        node.cdi / f".{DRIVER}_claim_uid-a.json.new",
        node.plugin / f".{CHECKPOINT}.new",
        node.plugin / "metadata" / ".uid-a_gpu.json.new",
    ]
    for one in (*others, *ours):
        one.parent.mkdir(parents=True, exist_ok=True)
        one.write_text("x")
    store = node.store()
    assert store.open() == ()
    assert not any(one.exists() for one in ours)
    store.put(entry("a"))
    store.remove(Uid("uid-a"))
    assert all(one.read_text() == "x" for one in others)


def test_two_drivers_share_a_node(node: Node) -> None:
    one, other = node.opened(), node.store(driver=f"{DRIVER}.other")
    other.open()
    one.put(entry("a"))
    other.put(entry("b"))
    assert one.entries() == (entry("a"),)
    assert (one.strays(), other.strays()) == ((), ())
    other.remove(Uid("uid-a"))
    assert node.store().open() == ()
    assert list(node.spec("a")) == ["uid-a-gpu-0-0"]
