"""Which pod is next, and when."""

from collections.abc import Callable

import pytest

from jackfield.cluster.scheduling.filters import Plugin
from jackfield.cluster.scheduling.scheduling_queue import UNSCHEDULABLE_MAX, Entry, Lengths, SchedulingQueue
from jackfield.model.names import NEVER, Key, Seconds, Time, Uid

FIT = frozenset({Plugin.NODE_RESOURCES_FIT})
CLAIMS = frozenset({Plugin.DYNAMIC_RESOURCES})


def at(time: float) -> Seconds:
    return Seconds(time)


def put(queue: SchedulingQueue, name: str, priority: int = 0, created: str = "2026-01-01") -> Entry:
    entry = queue.enter(Key("default", name), Uid(name), priority=priority, created=Time(created))
    queue.activate(entry)
    return entry


def popped(queue: SchedulingQueue, now: float) -> Entry:
    entry = queue.pop(at(now))
    assert entry is not None
    return entry


def names(queue: SchedulingQueue, now: float) -> list[str]:
    found = []
    while (entry := queue.pop(at(now))) is not None:
        found.append(entry.key.name)
    return found


def test_priority_comes_before_age_and_age_before_arrival() -> None:
    queue = SchedulingQueue()
    put(queue, "late", created="2026-01-02")
    put(queue, "second")
    put(queue, "third")
    put(queue, "first", priority=10, created="2026-01-03")
    assert names(queue, 0) == ["first", "second", "third", "late"]


def test_a_refused_pod_waits_for_an_event_of_who_refused_it() -> None:
    queue = SchedulingQueue()
    put(queue, "p")
    queue.refuse(popped(queue, 0), CLAIMS, at(0))
    assert not queue.wake(FIT, at(20))
    assert names(queue, 20) == []
    assert queue.wake(CLAIMS, at(20))
    assert names(queue, 20) == ["p"]


def test_only_the_pods_named_are_woken() -> None:
    queue = SchedulingQueue()
    for name in ("p", "q"):
        put(queue, name)
        queue.refuse(popped(queue, 0), CLAIMS, at(0))
    assert queue.wake_each([Key("default", "q"), Key("default", "unknown")], Plugin.DYNAMIC_RESOURCES, at(20))
    assert not queue.wake_each([Key("default", "p")], Plugin.NODE_RESOURCES_FIT, at(20))
    assert names(queue, 20) == ["q"]


def test_a_refused_pod_is_taken_out_of_its_backoff_when_nothing_else_is_to_do() -> None:
    queue = SchedulingQueue()
    put(queue, "p")
    queue.refuse(popped(queue, 0), CLAIMS, at(0))
    assert queue.wake(CLAIMS, at(0.5))
    assert queue.lengths() == Lengths(active=0, backoff=1, unschedulable=0)
    put(queue, "fresh", created="2026-02-01")
    assert names(queue, 0.5) == ["fresh", "p"]


@pytest.mark.parametrize(("errors", "seconds"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (40, 10)])
def test_errors_double_the_backoff_up_to_ten_seconds(errors: int, seconds: float) -> None:
    queue = SchedulingQueue()
    put(queue, "p")
    queue.fail(popped(queue, 1000), at(1000))
    for _ in range(errors - 1):
        entry = queue.entry(Key("default", "p"))
        assert entry is not None
        queue.activate(entry)
        queue.fail(popped(queue, 1000), at(1000))
    assert queue.due() == at(1000 + seconds)
    assert names(queue, 1000 + seconds - 0.01) == []
    assert names(queue, 1000 + seconds) == ["p"]


def test_a_refusal_ends_a_row_of_errors() -> None:
    queue = SchedulingQueue()
    put(queue, "p")
    for now in (0, 10, 20):
        queue.fail(popped(queue, now), at(now))
    entry = popped(queue, 30)
    queue.refuse(entry, CLAIMS, at(30))
    assert entry.backoff_until() == at(31)


def test_a_pod_nothing_happens_for_is_tried_again_after_five_minutes() -> None:
    queue = SchedulingQueue()
    put(queue, "p")
    queue.refuse(popped(queue, 7), CLAIMS, at(7))
    assert queue.due() == 7 + UNSCHEDULABLE_MAX
    assert names(queue, 306) == []
    assert names(queue, 307) == ["p"]


def test_a_parked_pod_waits_for_its_own_event_and_has_no_backoff() -> None:
    queue = SchedulingQueue()
    put(queue, "p")
    queue.park(popped(queue, 0), Plugin.DYNAMIC_RESOURCES, at(0))
    assert not queue.wake(CLAIMS, at(0))
    assert queue.wake_each([Key("default", "p")], Plugin.DYNAMIC_RESOURCES, at(0))
    assert queue.lengths().active == 1


def test_a_removed_pod_never_comes_back() -> None:
    queue = SchedulingQueue()
    for name in ("active", "waiting", "failed", "binding"):
        put(queue, name)
    entries = {name: queue.entry(Key("default", name)) for name in ("active", "waiting", "failed", "binding")}
    for _ in range(4):
        popped(queue, 0)
    for entry in entries.values():
        assert entry is not None
    waiting, failed, binding = entries["waiting"], entries["failed"], entries["binding"]
    assert waiting is not None
    assert failed is not None
    assert binding is not None
    queue.refuse(waiting, CLAIMS, at(0))
    queue.fail(failed, at(0))
    put(queue, "active")
    for name in entries:
        queue.remove(Key("default", name))
    queue.fail(binding, at(0))
    queue.refuse(binding, CLAIMS, at(0))
    assert not queue.wake(CLAIMS, at(500))
    assert queue.due() == NEVER
    assert names(queue, 500) == []
    assert queue.lengths() == Lengths(0, 0, 0)


def test_a_pod_of_the_same_name_starts_afresh() -> None:
    queue = SchedulingQueue()
    put(queue, "p")
    old = popped(queue, 0)
    put(queue, "p")
    queue.fail(old, at(0))
    assert names(queue, 0) == ["p"]
    assert queue.due() == NEVER


# --- pods that are alike


def crowd(queue: SchedulingQueue, *pods: str) -> None:
    """Let pods wait for devices that are all alike."""
    for name in pods:
        put(queue, name)
    for _ in pods:
        queue.refuse(popped(queue, 0), CLAIMS, at(0), b"alike")


def test_of_pods_alike_the_first_alone_is_woken() -> None:
    queue = SchedulingQueue()
    crowd(queue, "p", "q", "r")
    queue.wake(CLAIMS, at(20))
    entry = popped(queue, 20)
    assert entry.key.name == "p"
    queue.refuse(entry, CLAIMS, at(20), b"alike")
    assert names(queue, 20) == []


def placed(queue: SchedulingQueue, entry: Entry) -> None:
    queue.placed(entry)


def failed(queue: SchedulingQueue, entry: Entry) -> None:
    queue.fail(entry, at(20))


def removed(queue: SchedulingQueue, entry: Entry) -> None:
    queue.remove(entry.key)


def parked(queue: SchedulingQueue, entry: Entry) -> None:
    queue.park(entry, Plugin.DYNAMIC_RESOURCES, at(20))


def refused_otherwise(queue: SchedulingQueue, entry: Entry) -> None:
    queue.refuse(entry, CLAIMS, at(20), b"another")


@pytest.mark.parametrize("ended", [placed, failed, removed, parked, refused_otherwise])
def test_the_next_pod_alike_follows_unless_the_first_was_refused_alike(
    ended: Callable[[SchedulingQueue, Entry], None],
) -> None:
    queue = SchedulingQueue()
    crowd(queue, "p", "q", "r")
    queue.wake(CLAIMS, at(20))
    ended(queue, popped(queue, 20))
    following = popped(queue, 20)
    assert following.key.name == "q"
    queue.refuse(following, CLAIMS, at(20), b"alike")
    assert names(queue, 20) == []


def test_a_leader_that_is_removed_before_its_turn_hands_on() -> None:
    queue = SchedulingQueue()
    crowd(queue, "p", "q")
    queue.wake(CLAIMS, at(20))
    queue.remove(Key("default", "p"))
    assert names(queue, 20) == ["q"]


def test_the_leader_of_a_crowd_is_the_most_important_not_the_first_refused() -> None:
    queue = SchedulingQueue()
    crowd(queue, "p")
    put(queue, "high", priority=9)
    queue.refuse(popped(queue, 1), CLAIMS, at(1), b"alike")
    queue.wake(CLAIMS, at(20))
    assert names(queue, 20) == ["high"]


def test_a_crowd_wakes_to_the_events_of_all_its_members() -> None:
    queue = SchedulingQueue()
    crowd(queue, "p")
    put(queue, "q")
    queue.refuse(popped(queue, 0), FIT, at(0), b"alike")
    assert queue.wake(FIT, at(20))


def test_two_events_wake_two() -> None:
    queue = SchedulingQueue()
    crowd(queue, "p", "q", "r")
    queue.wake(CLAIMS, at(20))
    queue.wake(CLAIMS, at(20))
    assert queue.lengths() == Lengths(active=2, backoff=0, unschedulable=1)
