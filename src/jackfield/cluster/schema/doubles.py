"""Names that stand twice in one object, of which JSON decoders keep the last and say nothing.

Knows JSON and YAML as texts. Must not know any schema.
"""

import json
from collections.abc import Iterable, Iterator

import yaml

from jackfield.codec import Raw, RawValue
from jackfield.core.cel.quoting import quoted


class Doubled(dict[str, RawValue]):
    """A JSON object with a name that stands in it twice: the last one counts, and `pairs` has them all."""

    pairs: list[tuple[str, RawValue]]


def parsed(body: bytes) -> RawValue:
    """Return what a JSON body says, with what it says twice; None for what is no JSON, which others complain of."""
    try:
        return json.loads(body.decode(errors="replace"), object_pairs_hook=_paired)
    except (ValueError, RecursionError):
        return None


def _paired(pairs: list[tuple[str, RawValue]]) -> Raw:
    once = dict(pairs)
    if len(once) == len(pairs):
        return once
    twice = Doubled(once)
    twice.pairs = pairs
    return twice


def members(value: Raw) -> Iterable[tuple[str, RawValue]]:
    """Return all that stands in an object, in its order, also what stands in it twice."""
    return value.pairs if isinstance(value, Doubled) else value.items()


def paths(value: RawValue, path: str = "") -> Iterator[str]:
    """Tell where something stands for a second time."""
    if isinstance(value, dict):
        seen: set[str] = set()
        for name, one in members(value):
            place = f"{path}.{name}" if path else name
            if name in seen:
                yield place
            seen.add(name)
            yield from paths(one, place)
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from paths(one, f"{path}[{index}]")


# --- YAML


def in_yaml(body: bytes) -> tuple[str, ...]:
    """Return what the YAML decoder says of keys that stand twice in a map."""
    try:
        root = yaml.compose(body, yaml.CSafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError):
        return ()
    return () if root is None else tuple(_keys(root, set()))


def _keys(node: yaml.Node, visited: set[int]) -> Iterator[str]:
    if id(node) in visited:  # an alias is the very node it stands for
        return
    visited.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for one in node.value:
            yield from _keys(one, visited)
    if isinstance(node, yaml.MappingNode):
        seen: set[tuple[str, str]] = set()
        for key, value in node.value:
            yield from _keys(value, visited)
            if not isinstance(key, yaml.ScalarNode):
                continue
            if (key.tag, key.value) in seen:
                yield f"line {value.start_mark.line + 1}: key {_key(key)} already set in map"
            seen.add((key.tag, key.value))


def _key(key: yaml.ScalarNode) -> str:
    return quoted(key.value) if key.tag.endswith(":str") else str(key.value)
