"""An applied configuration merged into a live object, and what its applier no longer says taken out again.

Knows shapes and paths. Must not know managers. No object is changed; what does not change is shared.
"""

from collections import deque
from collections.abc import Iterable, Iterator

from jackfield.cluster.ownership.fields import Path, Shape
from jackfield.codec import RawValue
from jackfield.codec.wire import OPAQUE

Tree = dict[str, "Tree"]
"""Paths by their elements; where a path ends there is an element without a name."""

_END = ""


def merged(live: RawValue, body: RawValue, shape: Shape) -> RawValue:
    """Return the live value with what the body says; nothing goes because the body does not say it."""
    if isinstance(live, dict) and isinstance(body, dict) and not shape.whole:
        said = {name: merged(live.get(name), value, shape.member(name)) for name, value in body.items()}
        return {**live, **said}
    if isinstance(live, list) and isinstance(body, list):
        old, new = shape.items_of(live), shape.items_of(body)
        if old and new is not None:
            return _merged_items((live, old), new, shape)
    return live if body is None and isinstance(live, dict | list) else body


def _merged_items(
    live: tuple[list[RawValue], dict[str, RawValue]], new: dict[str, RawValue], shape: Shape
) -> list[RawValue]:
    """Return the items of both: those of the body in its order, the others where they stood among them."""
    items, old = live
    left = deque(zip(shape.elements(items) or (), items, strict=True))
    shared = deque(element for element in new if element in old)
    result: list[RawValue] = []
    for element, item in new.items():
        result.extend(_before(element, left, shared, new))
        before = old.get(element)
        # Items that could not be told apart were owned as one, and give way as one.
        result.append(item if isinstance(before, tuple) else merged(before, item, shape.item))
        if shared and shared[0] == element:
            shared.popleft()
    result.extend(item for element, item in left if element not in new)
    return result


def _before(
    element: str, left: deque[tuple[str, RawValue]], shared: deque[str], new: dict[str, RawValue]
) -> Iterator[RawValue]:
    """Take from the live list what comes before an item of the body; yield what the body does not have."""
    while left:
        name, item = left[0]
        if name != element and shared and name == shared[0]:
            return
        left.popleft()
        if name not in new:
            yield item
        elif name == element or not shared:
            return


def pruned(raw: RawValue, shape: Shape, before: Iterable[Path], held: Iterable[Path]) -> RawValue:
    """Return the object without what was said before and nobody holds now; what is left empty becomes null."""
    return _pruned(raw, shape, (tree(before), tree(held)), doomed=False)


def _pruned(value: RawValue, shape: Shape, trees: tuple[Tree, Tree], *, doomed: bool) -> RawValue:
    """Take out what is doomed, as it or something it lies in is held by nobody; what nobody ever said stays."""
    before, held = trees
    if isinstance(value, dict) and not shape.whole:
        kept: dict[str, RawValue] = {}
        for name, inner in value.items():
            said, still = before.get(f"f:{name}"), held.get(f"f:{name}")
            if said is None:
                kept[name] = inner
                continue
            declared = shape.declares(name)
            gone = doomed or still is None or not (declared or _END in still)
            if not (gone and (declared or _END in said)):
                kept[name] = _pruned(inner, shape.member(name), (said, still or {}), doomed=gone)
        return kept or (None if value else value)  # what was empty before is not left empty by this
    items = shape.items_of(value) if isinstance(value, list) else None
    return value if items is None else _pruned_items(items, shape, trees, doomed=doomed)


def _pruned_items(
    items: dict[str, RawValue], shape: Shape, trees: tuple[Tree, Tree], *, doomed: bool
) -> RawValue:
    before, held = trees
    result: list[RawValue] = []
    for element, item in items.items():
        said, still = before.get(element), held.get(element)
        gone = doomed or still is None or _END not in still
        if said is None or not (gone and _END in said):
            left = item if said is None else _pruned(item, shape.item, (said, still or {}), doomed=gone)
            result.extend(left if isinstance(left, tuple) else (left,))
    return result or None


def tree(paths: Iterable[Path]) -> Tree:
    """Return the paths by their elements."""
    result: Tree = {}
    for path in paths:
        node = result
        for element in path:
            node = node.setdefault(element, {})
        node[_END] = {}
    return result


def solid(value: RawValue, live: RawValue) -> RawValue:
    """Return the value without members that have become null; what is the live one's own is not looked into."""
    if isinstance(value, dict) and value is not live:
        old = live if isinstance(live, dict) else {}
        return {
            name: solid(inner, old.get(name))
            if isinstance(inner, dict | list) and name not in OPAQUE
            else inner
            for name, inner in value.items()
            if inner is not None or (name in old and old[name] is None)
        }
    if isinstance(value, list) and value is not live:
        same = live if isinstance(live, list) and len(live) == len(value) else [None] * len(value)
        return [solid(one, other) for one, other in zip(value, same, strict=True)]
    return value
