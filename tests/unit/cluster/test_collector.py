"""What belongs to nobody any more goes; what still belongs to somebody stays."""

import asyncio
import random
from collections.abc import Callable

import pytest

from jackfield.cli.clock import WallClock
from jackfield.cluster.api import EmbeddedCluster
from jackfield.cluster.deletion import Deletion, Propagation
from jackfield.cluster.history import Stored
from jackfield.cluster.store import Store
from jackfield.cluster.upkeep.collector import Collector, remaining
from jackfield.codec import Raw
from jackfield.model.config import ConfigMap
from jackfield.model.meta import ObjectMeta, OwnerReference
from jackfield.model.names import Key, Seconds, Time, Uid
from jackfield.model.pod import Pod


def owner(uid: str) -> OwnerReference:
    return OwnerReference(api_version="v1", kind="Pod", name=uid, uid=Uid(uid))


@pytest.mark.parametrize(
    ("owners", "gone", "deleting", "expected"),
    [
        ((), (), False, None),
        (("a",), (), False, None),
        (("a",), ("a",), False, ()),
        (("a", "b"), ("a",), False, ("b",)),
        (("a", "b"), ("a", "b"), False, ()),
        (("a",), ("a",), True, None),
    ],
)
def test_the_owners_that_remain(
    owners: tuple[str, ...], gone: tuple[str, ...], expected: tuple[str, ...] | None, *, deleting: bool
) -> None:
    dependent = Pod(
        metadata=ObjectMeta(
            name="p",
            owner_references=tuple(owner(one) for one in owners),
            deletion_timestamp=Time("2026-01-01T00:00:00Z") if deleting else Time(""),
        )
    )
    found = remaining(dependent, lambda one: one.uid in gone)
    assert (None if found is None else tuple(one.uid for one in found)) == expected


# --- owners that wait


FOREGROUND, ORPHAN = Propagation.FOREGROUND, Propagation.ORPHAN


def new(name: str, *owners: Stored, blocks: bool = True, **metadata: object) -> Raw:
    references = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": one.key.name,
            "uid": one.object.uid,
            "blockOwnerDeletion": blocks,
        }
        for one in owners
    ]
    return {"metadata": {"name": name, "namespace": "d", "ownerReferences": references, **metadata}}


def left_after(make: Callable[[Store], None], how: Propagation) -> dict[str, list[str]]:
    """Return what is left, with its owners, when `owner` was deleted and the collector is done."""

    async def scene() -> dict[str, list[str]]:
        clock = WallClock()
        store = Store(clock.now, random.Random("collector"))  # noqa: S311 - a test's chance
        collector = Collector(EmbeddedCluster(store).client("collector"), clock)
        task = asyncio.create_task(collector.run())
        make(store)
        store.delete(ConfigMap, Key("d", "owner"), how=Deletion(propagation=how))
        for _ in range(200):
            await clock.sleep(Seconds(0.001))
        task.cancel()
        found = [one.object.metadata for one in store.list(ConfigMap).items]
        return {one.name: [owner.name for owner in one.owner_references] for one in found}

    return asyncio.run(scene())


def family(store: Store) -> None:
    owner = store.create(ConfigMap, new("owner"))
    other = store.create(ConfigMap, new("other"))
    store.create(ConfigMap, new("child", owner))
    store.create(ConfigMap, new("shared", owner, other))


def held(store: Store) -> None:
    owner = store.create(ConfigMap, new("owner"))
    store.create(ConfigMap, new("child", owner, finalizers=["example.com/hold"]))


def held_but_not_blocking(store: Store) -> None:
    owner = store.create(ConfigMap, new("owner"))
    store.create(ConfigMap, new("child", owner, blocks=False, finalizers=["example.com/hold"]))


@pytest.mark.parametrize(
    ("make", "how", "left"),
    [
        (family, Propagation.BACKGROUND, {"other": [], "shared": ["other"]}),
        (family, ORPHAN, {"other": [], "child": [], "shared": ["other"]}),
        (family, FOREGROUND, {"other": [], "shared": ["other"]}),
        (held, FOREGROUND, {"owner": [], "child": ["owner"]}),
        (held_but_not_blocking, FOREGROUND, {"child": ["owner"]}),
    ],
)
def test_an_owner_goes_when_its_dependents_are_gone_or_have_forgotten_it(
    make: Callable[[Store], None], how: Propagation, left: dict[str, list[str]]
) -> None:
    assert left_after(make, how) == left
