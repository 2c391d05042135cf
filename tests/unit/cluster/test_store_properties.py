"""What is true of the store after any sequence of writes."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from jackfield.cluster.errors import ApiError
from jackfield.cluster.history import EventType
from jackfield.cluster.store import Store, Write
from jackfield.codec import Raw, copied
from jackfield.model.composition import ComposableResource
from jackfield.model.names import Key, Seconds, named

NAMES = ("a", "b", "c")
LABELS = ("x", "y", "z")

writes = st.lists(
    st.tuples(
        st.sampled_from(("create", "label", "status", "hold", "release", "delete")),
        st.sampled_from(NAMES),
        st.integers(0, 3),
    ),
    max_size=30,
)
applies = st.lists(
    st.tuples(
        st.sampled_from(("one", "two", "three")),
        st.dictionaries(st.sampled_from(LABELS), st.sampled_from("12")),
    ),
    max_size=20,
)


def new_store() -> Store:
    return Store(lambda: Seconds(1.7e9), random.Random("properties"))  # noqa: S311 - no cryptography


def write(store: Store, verb: str, name: str, number: int) -> None:
    key = named(name)
    match verb:
        case "create":
            spec = {"type": "gpu", "model": "", "target_node": ""}
            store.create(ComposableResource, {"metadata": {"name": name}, "spec": spec})
        case "label":
            store.patch(ComposableResource, key, {"metadata": {"labels": {"n": f"{number}"}}})
        case "status":
            store.patch(
                ComposableResource, key, {"status": {"state": "", "error": f"{number}"}}, Write(status=True)
            )
        case "hold":
            store.patch(ComposableResource, key, {"metadata": {"finalizers": ["a/b"]}})
        case "release":
            store.patch(ComposableResource, key, {"metadata": {"finalizers": None}})
        case _:
            store.delete(ComposableResource, key)


def contents(store: Store) -> dict[Key, Raw]:
    return {one.key: one.raw for one in store.list(ComposableResource).items}


@given(writes)
@settings(max_examples=150, deadline=None)
def test_a_list_and_the_events_after_it_are_the_list_now(steps: list[tuple[str, str, int]]) -> None:
    store = new_store()
    lists = [(store.version, contents(store))]
    for verb, name, number in steps:
        before = copied(contents(store))
        version = store.version
        try:
            write(store, verb, name, number)
        except ApiError:
            assert contents(store) == before
            assert store.version == version
        lists.append((store.version, contents(store)))
    for version, listed in lists:
        replayed = dict(listed)
        for event in store.since(ComposableResource, version):
            if event.type is EventType.DELETED:
                del replayed[event.stored.key]
            else:
                replayed[event.stored.key] = event.stored.raw
        assert replayed == contents(store)


@given(writes)
@settings(max_examples=100, deadline=None)
def test_versions_rise_with_every_event_and_types_tell_the_truth(steps: list[tuple[str, str, int]]) -> None:
    store = new_store()
    for verb, name, number in steps:
        try:
            write(store, verb, name, number)
        except ApiError:
            continue
    alive: set[Key] = set()
    for expected, event in enumerate(store.since(ComposableResource, 0), start=1):
        assert event.version == expected == event.stored.version
        assert event.stored.object.metadata.resource_version == str(expected)
        key = event.stored.key
        assert (event.type is EventType.ADDED) == (key not in alive)
        alive ^= {key} if event.type is not EventType.MODIFIED else set()


@given(applies)
@settings(max_examples=200, deadline=None)
def test_a_field_is_there_exactly_while_somebody_applies_it(steps: list[tuple[str, dict[str, str]]]) -> None:
    store = new_store()
    write(store, "create", "a", 0)
    owners: dict[str, set[str]] = {label: set() for label in LABELS}
    values: dict[str, str] = {}
    for manager, labels in steps:
        body = {"metadata": {"labels": labels}} if labels else {}
        how = Write(manager=manager, force=True)
        stored = store.apply(ComposableResource, named("a"), body, how)
        for label in LABELS:
            owners[label].discard(manager)
            if label in labels:
                # Whoever changes a value by force is its only owner; whoever agrees owns it too.
                owners[label] = {manager, *(owners[label] if values.get(label) == labels[label] else ())}
                values[label] = labels[label]
            elif not owners[label]:
                values.pop(label, None)
        assert stored.raw["metadata"].get("labels", {}) == values
