"""Which static types go together, and what type parameters stand for.

Knows Kubernetes' rules of assignment. Must not know expressions.
"""

from collections.abc import Sequence
from typing import Final

from jackfield.core.cel.syntax import DYN, Type

ERROR: Final = Type("!error!")
NULL: Final = Type("null_type")
STEPS_MAX: Final = 1_000_000
_OPEN: Final = ("dyn", "any", ERROR.name)
_PRIMITIVE: Final = ("bool", "bytes", "double", "int", "string", "uint")
_AGGREGATES: Final = ("list", "map", "type")


class TooComplexError(Exception):
    """Finding out what goes together takes too long."""


def is_param(one: Type) -> bool:
    """Whether a type is one that is not known yet."""
    return one.name[0] == "~"


def is_dyn(one: Type) -> bool:
    """Whether a type is known at run time only."""
    return one.name in ("dyn", "any")


def shown(one: Type) -> str:
    """Return a type as Kubernetes' messages have it."""
    if one.name == NULL.name:
        return "null"
    name = one.name.removeprefix("~")
    return f"{name}({', '.join(map(shown, one.params))})" if one.params else name


def unwrapped(one: Type) -> Type:
    """Return what a wrapper wraps; anything else is itself."""
    return one.params[0] if one.name == "wrapper" else one


def _is_nullable(one: Type) -> bool:
    return one.name == "wrapper" or one.name not in (*_PRIMITIVE, *_AGGREGATES)


def _less_specific(one: Type, other: Type) -> bool:
    if is_dyn(one) or is_param(one):
        return True
    if is_dyn(other) or is_param(other):
        return False
    one, other = unwrapped(one), unwrapped(other)
    if one.name != other.name or len(one.params) != len(other.params):
        return False
    if one.name == "type":
        return True
    for inner, theirs in zip(one.params, other.params, strict=True):  # noqa: SIM110 - see Bindings
        if not _less_specific(inner, theirs):
            return False
    return True


def most_general(one: Type, other: Type) -> Type:
    """Return the more general of two types that go together."""
    return one if _less_specific(one, other) else other


class Bindings:
    """What each type parameter stands for, as far as it is known."""

    def __init__(self) -> None:
        self._bound: dict[str, Type] = {}
        self._count = 0
        self._steps = 0

    def fresh(self) -> Type:
        """Return a type parameter that nobody has used."""
        self._count += 1
        return Type(f"~_var{self._count - 1}")

    def instance(self, params: Sequence[str], types: Sequence[Type]) -> list[Type]:
        """Return types with fresh parameters in the place of their own."""
        fresh = {name: self.fresh() for name in params}
        return [_renamed(one, fresh) for one in types]

    def assignable(self, one: Type, other: Type) -> bool:
        """Whether two types go together; if they do, what this says of type parameters is remembered."""
        return self.all_assignable((one,), (other,))

    def all_assignable(self, ones: Sequence[Type], others: Sequence[Type]) -> bool:
        """Whether types go together one by one; only if all of them do, anything is remembered."""
        if len(ones) != len(others):
            return False
        before = self._bound
        self._bound = before.copy()
        if self._each_assignable(ones, others):
            return True
        self._bound = before
        return False

    # Plain loops here and below: a generator on each level would halve the depth that Python allows.

    def _each_assignable(self, ones: Sequence[Type], others: Sequence[Type]) -> bool:
        for one, other in zip(ones, others, strict=True):  # noqa: SIM110 - see above
            if not self._assignable(one, other):
                return False
        return True

    def _assignable(self, one: Type, other: Type) -> bool:
        self._spend()
        if is_param(other):
            valid, bound = self._substitutes(one, other)
            if valid or bound:
                return valid
        if is_param(one):
            return self._substitutes(other, one)[0]
        if one.name in _OPEN or other.name in _OPEN:
            return True
        if NULL in (one, other):
            return _is_nullable(other if one == NULL else one)
        one, other = unwrapped(one), unwrapped(other)
        if one.name != other.name:
            return False
        if one.name == "type":
            return True
        return len(one.params) == len(other.params) and self._each_assignable(one.params, other.params)

    def _substitutes(self, one: Type, param: Type) -> tuple[bool, bool]:
        """Return whether a type may stand for a parameter, and whether something does already."""
        if one == param:
            return True, True
        known = self._bound.get(param.name)
        if known is None:
            free = not self._occurs(param, one)
            if free:
                self._bound[param.name] = one
            return free, False
        if one == known:
            return True, True
        if not self._assignable(one, known):
            return False, True
        wider = most_general(one, known)
        if not self._occurs(param, wider):
            self._bound[param.name] = wider
        return True, True

    def _occurs(self, param: Type, within: Type) -> bool:
        self._spend()
        if within == param:
            return True
        if is_param(within):
            known = self._bound.get(within.name)
            return known is not None and self._occurs(param, known)
        for one in within.params:  # noqa: SIM110 - see above
            if self._occurs(param, one):
                return True
        return False

    def resolved(self, one: Type, *, closed: bool = False) -> Type:
        """Return a type with all that is known put in; if closed, what is not known is dyn."""
        self._spend()
        known = self._bound.get(one.name)
        if known is not None:
            return self.resolved(known, closed=closed)
        if closed and is_param(one):
            return DYN
        if not one.params:
            return one
        parts: list[Type] = []
        for part in one.params:
            parts.append(self.resolved(part, closed=closed))  # noqa: PERF401 - see above
        return Type(one.name, tuple(parts))

    def _spend(self) -> None:
        self._steps += 1
        if self._steps > STEPS_MAX:
            raise TooComplexError


def _renamed(one: Type, names: dict[str, Type]) -> Type:
    if not one.params:
        return names.get(one.name, one)
    return Type(one.name, tuple(_renamed(part, names) for part in one.params))
