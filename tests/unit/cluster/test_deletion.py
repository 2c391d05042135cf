"""Objects go as a real API server lets them go: after their grace, their finalizers and what their owner wished."""

import random

import pytest

from jackfield.cluster.deletion import Deletion, Propagation
from jackfield.cluster.errors import ApiError
from jackfield.cluster.history import EventType, Stored
from jackfield.cluster.store import Precondition, Store, Write
from jackfield.codec import Raw
from jackfield.model.config import ConfigMap
from jackfield.model.event import Event
from jackfield.model.names import Key, Seconds, Uid, Version
from jackfield.model.pod import Pod

NOW = 1_700_000_000.0
POD = Key("d", "p")
MAP = Key("d", "m")
DRY = Deletion(dry_run=True)


class Clock:
    """A clock that somebody sets."""

    def __init__(self) -> None:
        self.now = Seconds(NOW)

    def __call__(self) -> Seconds:
        return self.now


def store_with(clock: Clock, *, on: str = "n", finalizers: tuple[str, ...] = ()) -> Store:
    store = Store(clock, random.Random("deletion"))  # noqa: S311 - no cryptography
    metadata: Raw = {"namespace": "d", "finalizers": list(finalizers)}
    spec: Raw = {"containers": [{"name": "c", "image": "i"}]}
    store.create(Pod, {"metadata": {"name": "p", **metadata}, "spec": spec})
    store.create(ConfigMap, {"metadata": {"name": "m", **metadata}})
    if on:
        store.bind(POD, on)
    return store


def marks(stored: Stored) -> tuple[object, object]:
    metadata = stored.raw["metadata"]
    return metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds")


def finalizers(stored: Stored) -> list[str]:
    found: list[str] = stored.raw["metadata"].get("finalizers", [])
    return found


# --- grace


@pytest.mark.parametrize(
    ("on", "asked", "granted"),
    [("n", None, 30), ("n", 7, 7), ("n", -3, 1), ("n", 0, None), ("", None, None), ("", 60, None)],
)
def test_only_a_pod_that_runs_somewhere_takes_time_to_end(
    on: str, asked: int | None, granted: int | None
) -> None:
    store = store_with(Clock(), on=on)
    stored = store.delete(Pod, POD, how=Deletion(asked))
    assert stored.gone == (granted is None)
    assert stored.raw["metadata"]["deletionGracePeriodSeconds"] == (granted or 0)


def test_a_pod_that_has_ended_goes_at_once() -> None:
    store = store_with(Clock())
    store.patch(Pod, POD, {"status": {"phase": "Failed"}}, Write(status=True))
    assert store.delete(Pod, POD, how=Deletion(60)).gone


def test_grace_is_cut_from_when_it_began_and_never_into_the_past() -> None:
    clock = Clock()
    store = store_with(clock)
    assert marks(store.delete(Pod, POD)) == ("2023-11-14T22:13:50Z", 30)
    clock.now = Seconds(NOW + 5)
    assert marks(store.delete(Pod, POD, how=Deletion(10))) == ("2023-11-14T22:13:30Z", 10)
    clock.now = Seconds(NOW + 8)
    assert marks(store.delete(Pod, POD, how=Deletion(3))) == ("2023-11-14T22:13:28Z", 1)


def test_a_pod_is_marked_before_it_goes_so_that_its_last_words_say_when() -> None:
    store = store_with(Clock(), on="")
    version = store.version
    gone = store.delete(Pod, POD)
    told = [(one.type, marks(one.stored)) for one in store.since(Pod, version)]
    mark = ("2023-11-14T22:13:20Z", 0)
    assert told == [(EventType.MODIFIED, mark), (EventType.DELETED, mark)]
    assert gone.raw["metadata"]["generation"] == 2


def test_other_objects_take_no_time_whatever_is_asked() -> None:
    store = store_with(Clock())
    gone = store.delete(ConfigMap, MAP, how=Deletion(60))
    assert gone.gone
    assert marks(gone) == (None, None)


# --- finalizers and propagation


@pytest.mark.parametrize(
    ("there", "how", "left"),
    [
        ((), Propagation.UNSAID, []),
        ((), Propagation.BACKGROUND, []),
        ((), Propagation.FOREGROUND, ["foregroundDeletion"]),
        ((), Propagation.ORPHAN, ["orphan"]),
        (("a/b",), Propagation.ORPHAN, ["a/b", "orphan"]),
        (("orphan",), Propagation.UNSAID, ["orphan"]),
        (("orphan", "a/b"), Propagation.BACKGROUND, ["a/b"]),
        (("orphan",), Propagation.FOREGROUND, ["foregroundDeletion"]),
        (("orphan",), Propagation.BACKGROUND, []),
    ],
)
def test_what_becomes_of_dependents_is_written_as_a_finalizer(
    there: tuple[str, ...], how: Propagation, left: list[str]
) -> None:
    store = store_with(Clock(), finalizers=there)
    stored = store.delete(ConfigMap, MAP, how=Deletion(propagation=how))
    assert stored.gone == (not left)
    if left:
        assert finalizers(stored) == left
        assert marks(stored) == ("2023-11-14T22:13:20Z", 0)


def test_a_second_wish_replaces_the_first_and_nothing_new_is_no_version() -> None:
    store = store_with(Clock(), finalizers=("a/b",))
    first = store.delete(ConfigMap, MAP, how=Deletion(propagation=Propagation.ORPHAN))
    assert store.delete(ConfigMap, MAP) is first
    second = store.delete(ConfigMap, MAP, how=Deletion(propagation=Propagation.FOREGROUND))
    assert finalizers(second) == ["a/b", "foregroundDeletion"]


def test_events_have_no_dependents() -> None:
    store = store_with(Clock())
    about = {"kind": "Pod", "namespace": "d", "name": "p"}
    store.create(Event, {"metadata": {"name": "e", "namespace": "d"}, "involvedObject": about})
    assert store.delete(Event, Key("d", "e"), how=Deletion(propagation=Propagation.FOREGROUND)).gone


def test_a_running_pod_gets_its_grace_and_its_finalizer() -> None:
    store = store_with(Clock())
    stored = store.delete(Pod, POD, how=Deletion(propagation=Propagation.FOREGROUND))
    assert finalizers(stored) == ["foregroundDeletion"]
    assert marks(stored)[1] == 30
    ended = store.delete(Pod, POD, how=Deletion(0))
    assert not ended.gone
    assert store.patch(Pod, POD, {"metadata": {"finalizers": None}}).gone


# --- dry runs, evictions, preconditions


@pytest.mark.parametrize("on", ["", "n"])
def test_a_deletion_that_is_a_dry_run_leaves_everything_as_it_was(on: str) -> None:
    store = store_with(Clock(), on=on)
    before, version = store.get(Pod, POD), store.version
    would = store.delete(Pod, POD, how=DRY)
    assert would.gone == (not on)
    assert marks(would)[1] == (30 if on else 0)
    assert would.raw["metadata"]["resourceVersion"] == before.raw["metadata"]["resourceVersion"]
    assert store.delete(ConfigMap, MAP, how=DRY).gone
    assert store.get(Pod, POD) is before
    assert store.version == version
    assert store.since(Pod, version) == ()


def test_an_evicted_pod_says_so_and_goes() -> None:
    store = store_with(Clock())
    version = store.version
    store.evict(POD, how=DRY)
    assert store.version == version
    evicted = store.evict(POD)
    said = {one["type"]: one["reason"] for one in evicted.raw["status"]["conditions"] if "reason" in one}
    assert said == {"DisruptionTarget": "EvictionByEvictionAPI"}
    assert marks(evicted)[1] == 30


@pytest.mark.parametrize(
    ("when", "words"),
    [
        (Precondition(uid=Uid("x")), "the UID in the precondition (x) does not match the UID in record"),
        (Precondition(version=Version("1")), "The object might have been modified"),
    ],
)
def test_neither_is_done_to_another(when: Precondition, words: str) -> None:
    store = store_with(Clock())
    for call in (store.evict, lambda key, when: store.delete(Pod, key, when)):
        with pytest.raises(ApiError) as caught:
            call(POD, when)
        assert caught.value.code == 409
        assert words in caught.value.message
