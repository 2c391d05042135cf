"""Fields that a definition does not name: an API server drops them on the way in.

Knows that the model names all fields of CoHDI's kinds. Must not be used for kinds of which it names only some.
"""

from collections.abc import Callable, Mapping
from functools import cache

import msgspec

from jackfield.codec import Raw, RawValue

Prune = Callable[[RawValue], RawValue]


def pruned(kind: type[msgspec.Struct], raw: Raw) -> Raw:
    """Return what a kind's definition knows of `spec` and `status`; parts with nothing unknown are the same."""
    members = _members(kind)
    return {name: members[name](raw[name]) for name in ("spec", "status") if name in raw and name in members}


@cache
def _members(kind: type[msgspec.Struct]) -> Mapping[str, Prune]:
    return {
        one.encode_name: _prune(msgspec.inspect.type_info(one.type)) for one in msgspec.structs.fields(kind)
    }


def _prune(info: msgspec.inspect.Type) -> Prune:
    match info:
        case msgspec.inspect.StructType(cls=struct):
            return lambda value: _object(struct, value)
        case msgspec.inspect.UnionType(types=types):
            inner = [one for one in types if not isinstance(one, msgspec.inspect.NoneType)]
            return _prune(inner[0]) if len(inner) == 1 else _same
        case msgspec.inspect.VarTupleType(item_type=item):
            return _each(_prune(item))
        case msgspec.inspect.DictType(value_type=item):
            return _every(_prune(item))
        case _:
            return _same


def _object(struct: type[msgspec.Struct], value: RawValue) -> RawValue:
    if not isinstance(value, dict):
        return value
    members = _members(struct)
    return _kept(value, {name: members[name](one) for name, one in value.items() if name in members})


def _each(prune: Prune) -> Prune:
    return lambda value: [prune(one) for one in value] if isinstance(value, list) else value


def _every(prune: Prune) -> Prune:
    def members(value: RawValue) -> RawValue:
        return {name: prune(one) for name, one in value.items()} if isinstance(value, dict) else value

    return members


def _same(value: RawValue) -> RawValue:
    return value


def _kept(before: Raw, after: Raw) -> Raw:
    """Equal parts stay the same, by which the store knows that nothing changed."""
    return before if before == after else after
