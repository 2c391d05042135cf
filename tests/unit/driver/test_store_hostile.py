"""The store against names that are paths, values that are traps, and links that lead elsewhere."""

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jackfield.driver.cdi import DeviceNode, Edits
from jackfield.driver.entry import ENTRY_BYTES_MAX, HELD_MAX, check
from jackfield.driver.store import CHECKPOINT, DAMAGED_MAX, Entry, Held, PreparedStore
from jackfield.model.device import DeviceAttribute
from jackfield.model.names import Key, Uid
from jackfield.ports import Refused, Retry
from unit.driver.disk import Quick

DRIVER = "gpu.example.com"
HELD = Held(("gpu",), "node-1", "gpu-0", edits=Edits(env={"A": "b"}))
ENTRY = Entry(Uid("uid-a"), Key("team", "a"), (HELD,))


class Node:
    """A node's folders, and all else that is on its disk."""

    def __init__(self, root: Path) -> None:
        self.root, self.plugins, self.cdi, self.outside = (
            root,
            root / "plugins",
            root / "cdi",
            root / "outside",
        )
        self.plugin = self.plugins / DRIVER
        for folder in (self.plugins, self.plugin, self.plugin / "metadata", self.cdi, self.outside):
            folder.mkdir()
        (self.outside / "passwd").write_text("root")
        (self.outside / "folder").mkdir()

    def store(self) -> PreparedStore:
        return PreparedStore(DRIVER, self.plugins, self.cdi, calls=Quick())

    def elsewhere(self) -> dict[str, str]:
        """Return all that is not ours, with what is in it."""
        found = {
            str(one): one.read_text() if one.is_file() else "" for one in sorted(self.outside.rglob("*"))
        }
        return {**found, **{str(one): "" for one in self.root.iterdir()}}


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def changed(**fields: object) -> Entry:
    return msgspec.structs.replace(ENTRY, **fields)


def held(**fields: object) -> Entry:
    return changed(held=(msgspec.structs.replace(HELD, **fields),))


TRICKS = (
    "../../outside/x",
    "/etc/cron.d/x",
    "..",
    ".",
    "a/../b",
    "a\0b",
    "a\nb",
    "a b",
    "",
    "ä",
    "x" * 300,
    "a_b",
)
NAMES: dict[str, Callable[[str], Entry]] = {
    "uid": lambda trick: changed(uid=Uid(trick)),
    "namespace": lambda trick: changed(claim=Key(trick, "a")),
    "claim": lambda trick: changed(claim=Key("team", trick)),
    "pool": lambda trick: held(pool=trick),
    "device": lambda trick: held(device=trick),
    "request": lambda trick: held(requests=(trick,)),
    "alternative": lambda trick: held(requests=(f"gpu/{trick}",)),
    "attribute": lambda trick: held(attributes={f"-{trick}": DeviceAttribute(int_=1)}),
}


@pytest.mark.parametrize("make", NAMES.values(), ids=NAMES)
def test_names_that_are_paths_or_traps_are_refused_and_nothing_is_written(
    make: Callable[[str], Entry], node: Node
) -> None:
    store = node.store()
    store.open()
    before = sorted(node.root.rglob("*"))
    for trick in TRICKS:
        with pytest.raises(Refused) as refused:
            store.put(make(trick))
        assert str(refused.value).isprintable()
        assert len(str(refused.value)) < 300
    assert sorted(node.root.rglob("*")) == before


@pytest.mark.parametrize("trick", TRICKS)
def test_a_uid_that_is_a_path_removes_nothing(trick: str, node: Node) -> None:
    store = node.store()
    store.open()
    before = sorted(node.root.rglob("*"))
    with pytest.raises(Refused, match="is no uid"):
        store.remove(Uid(trick))
    assert sorted(node.root.rglob("*")) == before


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (changed(pod_claim_name="../x"), "that a pod gives a claim"),
        (changed(held=(HELD,) * (HELD_MAX + 1)), f"at most {HELD_MAX} are taken"),
        (held(share_id="../x"), "is no id of a share"),
        (held(cdi=("nvidia.com/gpu=../0",)), "is not the name of a CDI device"),
        (held(pool="a//b"), "is no name of a pool"),
        (held(pool="a/../b"), "is no name of a pool"),
        (held(requests=("a/b/c",)), "is no name of a request"),
        (held(edits=Edits(env={"A": "b\nLD_PRELOAD=/x"})), "a line break"),
        (held(edits=Edits(device_nodes=(DeviceNode("/dev/../etc"),))), "no absolute path"),
        (held(attributes={"a": DeviceAttribute()}), "not exactly one value"),
        (held(attributes={"a": DeviceAttribute(int_=1, string="x")}), "not exactly one value"),
        (held(attributes={f"a{n}": DeviceAttribute(int_=1) for n in range(33)}), "at most 32 are taken"),
        (held(notes={"a": "x" * ENTRY_BYTES_MAX}), f"at most {ENTRY_BYTES_MAX} are taken"),
        (held(notes={"a": "\ud800"}), "cannot be written down"),
    ],
)
def test_values_that_are_traps_are_refused_in_words(bad: Entry, words: str, node: Node) -> None:
    store = node.store()
    store.open()
    before = sorted(node.root.rglob("*"))
    with pytest.raises(Refused, match=words):
        store.put(bad)
    assert sorted(node.root.rglob("*")) == before
    assert store.entries() == ()


@pytest.mark.parametrize("name", ["", "..", "../x", "a/b", "1a.example.com", "a_b", "a.", "x" * 64, "a\n"])
def test_a_driver_that_could_not_have_a_folder_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="is no name of a driver"):
        PreparedStore(name, tmp_path, tmp_path / "cdi")


# --- what others plant

OURS = (
    "plugins/gpu.example.com/checkpoint.jsonl",
    "plugins/gpu.example.com/.checkpoint.jsonl.new",
    "plugins/gpu.example.com/metadata/uid-a_gpu.json",
    "plugins/gpu.example.com/metadata/.uid-a_gpu.json.new",
    "cdi/gpu.example.com_claim_uid-a.json",
    "cdi/.gpu.example.com_claim_uid-a.json.new",
)
FOLDERS = ("plugins/gpu.example.com", "plugins/gpu.example.com/metadata", "cdi")


def link_to_file(at: Path, outside: Path) -> None:
    at.symlink_to(outside / "passwd")


def link_to_folder(at: Path, outside: Path) -> None:
    at.symlink_to(outside / "folder")


def link_to_nothing(at: Path, outside: Path) -> None:
    at.symlink_to(outside / "new")


def link_to_itself(at: Path, outside: Path) -> None:
    del outside
    at.symlink_to(at)


def hard_link(at: Path, outside: Path) -> None:
    at.hardlink_to(outside / "passwd")


def pipe(at: Path, outside: Path) -> None:
    del outside
    os.mkfifo(at)


def folder(at: Path, outside: Path) -> None:
    del outside
    at.mkdir()


def file(at: Path, outside: Path) -> None:
    del outside
    at.write_text("x")


def listening(at: Path, outside: Path) -> None:
    del outside
    with socket.socket(socket.AF_UNIX) as one:
        before = Path.cwd()
        os.chdir(at.parent)  # a socket's path is short
        try:
            one.bind(at.name)
        finally:
            os.chdir(before)


PLANTS = (
    link_to_file,
    link_to_folder,
    link_to_nothing,
    link_to_itself,
    hard_link,
    pipe,
    folder,
    file,
    listening,
)


def tries(store: PreparedStore) -> Iterator[Callable[[], object]]:
    yield store.open
    yield lambda: store.put(ENTRY)
    yield lambda: store.put(held(device="gpu-1"))
    yield lambda: store.remove(ENTRY.uid)


def trouble(act: Callable[[], object]) -> str:
    try:
        act()
    except (Retry, Refused) as error:
        return str(error)
    return ""


@pytest.mark.parametrize("plant", PLANTS)
@pytest.mark.parametrize("name", OURS)
def test_nothing_is_written_where_a_planted_file_leads(
    name: str, plant: Callable[[Path, Path], None], node: Node
) -> None:
    before = node.elsewhere()
    for number in range(4):
        store = node.store()
        for count, act in enumerate(tries(store)):
            if count == number:
                at = node.root / name
                if at.exists():
                    at.unlink()
                plant(at, node.outside)
            if told := trouble(act):
                assert plant is folder, told  # nothing but a folder stands in the way
                assert "remove it" in told
                (node.root / name).rmdir()
                act()
            assert node.elsewhere() == before
        assert store.entries() == ()
        assert not [one for one in node.cdi.iterdir() if not one.name.startswith(".")]


@pytest.mark.parametrize("plant", [link_to_folder, link_to_nothing, link_to_itself, pipe, file])
@pytest.mark.parametrize("name", FOLDERS)
def test_nothing_is_written_where_a_planted_folder_leads(
    name: str, plant: Callable[[Path, Path], None], node: Node
) -> None:
    before = node.elsewhere()
    at, aside = node.root / name, node.root / f"{name}.aside"
    for number in range(3):
        store = node.store()
        for count, act in enumerate(tries(store)):
            if count == number:
                at.rename(aside)
                plant(at, node.outside)
                trouble(act)  # or none: to open, and to remove what is not there, may go well
                with pytest.raises(Retry, match="a link or a file where a folder should be; remove it"):
                    store.put(ENTRY)
                assert node.outside.exists()
                at.unlink()
                aside.rename(at)
                assert node.elsewhere() == before
            act()
        assert store.entries() == ()
    assert node.elsewhere() == before


@pytest.mark.parametrize("plant", [link_to_file, link_to_nothing, link_to_folder, pipe, folder, listening])
def test_what_has_the_checkpoints_place_and_is_no_file_is_set_aside_unread(
    plant: Callable[[Path, Path], None], node: Node
) -> None:
    plant(node.plugin / CHECKPOINT, node.outside)
    planted = (node.plugin / CHECKPOINT).lstat()
    store = node.store()
    (found,) = store.open()
    assert found.endswith("no file; it is set aside as damaged-0")
    assert (node.plugin / "damaged-0").lstat().st_ino == planted.st_ino
    assert sorted(one.name for one in node.plugin.iterdir()) == [CHECKPOINT, "damaged-0", "metadata"]


def test_so_many_links_are_set_aside_and_no_more(node: Node) -> None:
    names = [f"damaged-{number}" for number in range(DAMAGED_MAX)]
    for name in (*names, "nothing"):
        store = node.store()
        link_to_file(node.plugin / CHECKPOINT, node.outside)
        (found,) = store.open()
        assert f"it is set aside as {name}" in found
        store.put(ENTRY)
        store.remove(ENTRY.uid)
        (node.plugin / CHECKPOINT).unlink()
    assert (node.outside / "passwd").read_text() == "root"


class Racing(Quick):
    """Somebody plants a link at the very moment when a file is made."""

    def __init__(self, target: Path) -> None:
        super().__init__()
        self._target = target

    def create(self, name: str, mode: int, folder: int) -> int:
        os.symlink(self._target, name, dir_fd=folder)
        return super().create(name, mode, folder)


@pytest.mark.parametrize("target", ["passwd", "missing"])
def test_a_link_that_is_planted_in_between_leads_nowhere(target: str, node: Node) -> None:
    before = node.elsewhere()
    store = PreparedStore(DRIVER, node.plugins, node.cdi, calls=Racing(node.outside / target))
    store.open()
    with pytest.raises(Retry, match="somebody else makes files of ours at the same moment"):
        store.put(ENTRY)
    assert node.elsewhere() == before


def test_a_folder_above_that_is_a_link_is_the_operators_choice(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "lib").mkdir()
    (tmp_path / "var-run").symlink_to(tmp_path / "run")
    (tmp_path / "plugins").symlink_to(tmp_path / "lib")
    store = PreparedStore(DRIVER, tmp_path / "plugins", tmp_path / "var-run" / "cdi", calls=Quick())
    assert store.open() == ()
    store.put(ENTRY)
    assert [one.name for one in (tmp_path / "run" / "cdi").iterdir()] == [f"{DRIVER}_claim_uid-a.json"]
    assert (tmp_path / "lib" / DRIVER / CHECKPOINT).is_file()


def test_folders_that_are_not_where_they_were_said_to_be_are_told(tmp_path: Path) -> None:
    store = PreparedStore(DRIVER, tmp_path / "missing", tmp_path / "cdi")
    with pytest.raises(Retry, match="does not exist; is this where the kubelet"):
        store.open()
    (tmp_path / "plugins").mkdir()
    store = PreparedStore(DRIVER, tmp_path / "plugins", tmp_path / "missing" / "cdi")
    store.open()
    with pytest.raises(Retry, match="does not exist; is this where the kubelet"):
        store.put(ENTRY)


words = st.text(max_size=12) | st.sampled_from(TRICKS)
any_entry = st.builds(
    Entry,
    words.map(Uid),
    st.builds(Key, words, words),
    st.lists(
        st.builds(
            Held,
            st.lists(words, max_size=2).map(tuple),
            words,
            words,
            words,
            cdi=st.lists(words, max_size=1).map(tuple),
            attributes=st.dictionaries(words, st.builds(DeviceAttribute, string=words), max_size=1),
        ),
        max_size=2,
    ).map(tuple),
    words,
)


@settings(deadline=None)
@given(any_entry)
def test_what_is_not_refused_is_no_path(entry: Entry) -> None:
    if told := trouble(lambda: check(entry)):
        assert told.isprintable()
        return
    names = [entry.uid, entry.claim.name, entry.pod_claim_name]
    for one in entry.held:
        names += [one.device, one.share_id, *(part for name in one.requests for part in name.split("/"))]
    assert all("/" not in name and "\0" not in name and name not in {".", ".."} for name in names)
