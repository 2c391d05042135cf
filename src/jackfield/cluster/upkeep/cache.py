"""What a controller has heard: objects of several kinds, findable by what matters to that controller.

Knows versions and indexes. Must not know what is indexed, or why.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar, cast

from jackfield.model.meta import Object
from jackfield.model.names import Key

T = TypeVar("T", bound=Object)

IndexBy = Callable[[T], Iterable[Hashable]]
Index = tuple[type[Object], str]


class Cache:
    """The objects heard of. An older version never replaces a newer one."""

    def __init__(self) -> None:
        self._objects: dict[type[Object], dict[Key, Object]] = {}
        self._by: dict[type[Object], dict[str, IndexBy[Object]]] = {}
        self._filed: dict[tuple[Index, Hashable], dict[Key, None]] = {}

    def index(self, kind: type[T], **by: IndexBy[T]) -> None:
        """File objects of a kind by what these functions say; to be called before there are any."""
        self._by[kind] = cast("dict[str, IndexBy[Object]]", dict(by))

    def get(self, kind: type[T], key: Key) -> T | None:
        """Return the object, or None if nobody has told of it."""
        return cast("T | None", self._of(kind).get(key))

    def find(self, kind: type[T], index: str, value: Hashable) -> tuple[T, ...]:
        """Return the objects filed under a value, in the order they came to be there."""
        objects = self._of(kind)
        keys = self._filed.get(((kind, index), value), ())
        return tuple(cast("T", objects[key]) for key in keys)

    def not_among(self, kind: type[T], keys: frozenset[Key]) -> tuple[T, ...]:
        """Return the objects of a kind that a list of all that exist does not name."""
        return tuple(cast("T", one) for key, one in self._of(kind).items() if key not in keys)

    def put(self, new: Object) -> bool:
        """Take an object in; returns False if it is known as well or better."""
        objects, key = self._of(type(new)), new.key
        old = objects.get(key)
        if old is not None and _version(old) >= _version(new):
            return False
        if old is not None:
            self._unfile(old)
        objects[key] = new
        for place in self._places(new):
            self._filed.setdefault(place, {})[key] = None
        return True

    def drop(self, gone: Object) -> bool:
        """Forget an object; returns False if a later one of that name is known, or none."""
        objects = self._of(type(gone))
        old = objects.get(gone.key)
        if old is None or _version(old) > _version(gone):
            return False
        self._unfile(old)
        del objects[gone.key]
        return True

    def _of(self, kind: type[Object]) -> dict[Key, Object]:
        return self._objects.setdefault(kind, {})

    def _places(self, one: Object) -> list[tuple[Index, Hashable]]:
        kind = type(one)
        indexes: Mapping[str, IndexBy[Object]] = self._by.get(kind, {})
        return [((kind, index), value) for index, by in indexes.items() for value in by(one)]

    def _unfile(self, old: Object) -> None:
        for place in self._places(old):
            filed = self._filed[place]
            del filed[old.key]
            if not filed:
                del self._filed[place]


def _version(one: Object) -> int:
    return int(one.metadata.resource_version or 0)
