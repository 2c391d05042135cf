"""Small ordered indexes, kept current by adding and removing one object at a time.

Knows keys and values. Must not know what they are.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
N = TypeVar("N")
V = TypeVar("V")


class Index(Generic[K, N, V]):
    """Values by key, each under a name of its own; reading costs what is read.

    They come by their names, or in an order that somebody gives.
    """

    def __init__(self, order: Callable[[V], object] | None = None) -> None:
        self._order = order
        self._values: dict[K, dict[N, V]] = {}

    def add(self, key: K, name: N, value: V) -> None:
        """Put the value under the key, in place of one of the same name."""
        self._values.setdefault(key, {})[name] = value

    def remove(self, key: K, name: N) -> None:
        """Take the value of that name away; a missing one is fine."""
        values = self._values.get(key)
        if values is not None:
            values.pop(name, None)
            if not values:
                del self._values[key]

    def get(self, key: K) -> tuple[V, ...]:
        """Return the values under the key, in order."""
        values = self._values.get(key)
        if not values:
            return ()
        if len(values) == 1:
            return tuple(values.values())
        if self._order is None:  # nobody has to be asked for each of them
            return tuple([values[name] for name in sorted(values)])  # type: ignore[type-var] # any name that sorts
        return tuple(sorted(values.values(), key=self._order))  # type: ignore[arg-type] # any order that sorts

    def first(self, key: K) -> V | None:
        """Return the first of the values under the key, or None."""
        values = self._values.get(key)
        if not values:
            return None
        if len(values) == 1:
            return next(iter(values.values()))
        if self._order is None:
            return values[min(values)]  # type: ignore[type-var] # likewise
        return min(values.values(), key=self._order)  # type: ignore[arg-type] # likewise

    def count(self, key: K) -> int:
        """Return how many values there are under the key."""
        return len(self._values.get(key, ()))
