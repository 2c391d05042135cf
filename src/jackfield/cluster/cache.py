"""What a controller has heard of one kind: its objects, findable by what matters to that controller.

Knows versions and indexes. Must not know what is indexed, or why.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Generic, TypeVar

from jackfield.model.meta import Object
from jackfield.model.names import Key

T = TypeVar("T", bound=Object)

IndexBy = Callable[[T], Iterable[Hashable]]


class Cache(Generic[T]):
    """The objects of one kind. An older version never replaces a newer one."""

    def __init__(self, indexes: Mapping[str, IndexBy[T]]) -> None:
        self._objects: dict[Key, T] = {}
        self._by = dict(indexes)
        self._found: dict[tuple[str, Hashable], dict[Key, None]] = {}

    def get(self, key: Key) -> T | None:
        """Return the object, or None if nobody has told of it."""
        return self._objects.get(key)

    def find(self, index: str, value: Hashable) -> tuple[T, ...]:
        """Return the objects that an index files under a value, in the order they came to be there."""
        return tuple(self._objects[key] for key in self._found.get((index, value), ()))

    def not_among(self, keys: frozenset[Key]) -> tuple[T, ...]:
        """Return the objects that a list of all that exist does not name."""
        return tuple(one for key, one in self._objects.items() if key not in keys)

    def put(self, new: T) -> bool:
        """Take an object in; returns False if it is known as well or better."""
        old = self._objects.get(new.key)
        if old is not None and _version(old) >= _version(new):
            return False
        if old is not None:
            self._unfile(old)
        self._objects[new.key] = new
        for index, value in self._filed(new):
            self._found.setdefault((index, value), {})[new.key] = None
        return True

    def drop(self, gone: T) -> bool:
        """Forget an object; returns False if a later one of that name is known, or none."""
        old = self._objects.get(gone.key)
        if old is None or _version(old) > _version(gone):
            return False
        self._unfile(old)
        del self._objects[gone.key]
        return True

    def _filed(self, one: T) -> Iterable[tuple[str, Hashable]]:
        return [(index, value) for index, by in self._by.items() for value in by(one)]

    def _unfile(self, old: T) -> None:
        for place in self._filed(old):
            filed = self._found[place]
            del filed[old.key]
            if not filed:
                del self._found[place]


def _version(one: Object) -> int:
    return int(one.metadata.resource_version or 0)
