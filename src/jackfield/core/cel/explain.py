"""Why a device does not match: the smallest part of the expression that says no, and what it saw.

Knows how answers come about. Must not know who asks.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from jackfield.core.cel import unparse
from jackfield.core.cel.conversions import text_of
from jackfield.core.cel.faults import CelError, LimitError, PanicError
from jackfield.core.cel.meter import metered
from jackfield.core.cel.paths import steps_of
from jackfield.core.cel.program import COST_MAX, Program
from jackfield.core.cel.shapes import Bind, shape
from jackfield.core.cel.subject import Subject
from jackfield.core.cel.syntax import Call, Comprehension, Expr, children
from jackfield.core.cel.values import Optional, Semver
from jackfield.model.quantity import Quantity

_DEVICE_ONLY: Final = 1
_DEPTH_MAX: Final = 60
"""Further down nobody follows."""


class Seen(msgspec.Struct, frozen=True):
    """A part of the device, as the expression names it, and what stood there."""

    part: str
    value: str


class Reason(msgspec.Struct, frozen=True):
    """Why an expression did not match. An empty expression means that it did."""

    expression: str = ""
    """The part of the expression that decided."""
    wanted: bool = True
    """What that part should have said."""
    seen: tuple[Seen, ...] = ()
    error: str = ""
    """Why that part had no answer, if so."""

    def __str__(self) -> str:
        if not self.expression:
            return "it matches"
        found = ", ".join(f"{one.part} is {one.value}" for one in self.seen)
        verdict = self.error or ("is false" if self.wanted else "is true")
        return f"{self.expression}: {verdict}{f' ({found})' if found else ''}"


def why_not(program: Program, subject: Subject) -> Reason:
    """Return why the device does not match."""
    fault = subject.fault or ("" if program.lists else subject.list_fault)
    if fault:
        return Reason(program.checked.source, error=fault)
    return _Search(program, subject).reason(program.checked.expr, (), wanted=True) or Reason()


class _Search:
    """Asks ever smaller parts of one expression about one device."""

    def __init__(self, program: Program, subject: Subject) -> None:
        self._program = program
        self._subject = subject
        self._depth = 0

    def _value(self, expr: Expr, around: tuple[Comprehension, ...]) -> object:
        for bind in reversed(around):
            expr = msgspec.structs.replace(bind, result=expr)
        checked = msgspec.structs.replace(self._program.checked, expr=expr)
        return metered(checked, COST_MAX)(self._subject)

    def reason(self, expr: Expr, around: tuple[Comprehension, ...], *, wanted: bool) -> Reason | None:
        """Return why a part does not say what is wanted, or None where it does."""
        self._depth += 1
        found = self._found(expr, around, wanted=wanted)
        self._depth -= 1
        return found

    def _found(self, expr: Expr, around: tuple[Comprehension, ...], *, wanted: bool) -> Reason | None:
        error = ""
        try:
            if self._value(expr, around) is wanted:
                return None
        except LimitError as fault:
            return Reason(unparse.text(expr), wanted, error=str(fault))
        except (CelError, PanicError) as fault:
            error = str(fault)
        deeper = self._deeper(expr, around, wanted=wanted) if self._depth < _DEPTH_MAX else None
        return deeper or Reason(unparse.text(expr), wanted, self._seen(expr, around), error)

    def _deeper(self, expr: Expr, around: tuple[Comprehension, ...], *, wanted: bool) -> Reason | None:
        if isinstance(expr, Comprehension) and isinstance(shape(expr), Bind):
            return self.reason(expr.result, (*around, expr), wanted=wanted)
        match expr:
            case Call(function="!_", args=(inner,)):
                return self.reason(inner, around, wanted=not wanted)
            case Call(function="_&&_", args=operands) if wanted:
                return self._first(operands, around, wanted=True)
            case Call(function="_||_", args=operands) if not wanted:
                return self._first(operands, around, wanted=False)
            case Call(function="_?_:_", args=(condition, then, otherwise)):
                try:
                    chosen = then if self._value(condition, around) is True else otherwise
                except (CelError, PanicError):
                    return self.reason(condition, around, wanted=True)
                return self.reason(chosen, around, wanted=wanted)
            case _:
                return None

    def _first(
        self, operands: Iterable[Expr], around: tuple[Comprehension, ...], *, wanted: bool
    ) -> Reason | None:
        reasons = [self.reason(one, around, wanted=wanted) for one in operands]
        found = [one for one in reasons if one is not None]
        # A plain no says more than an error beside it.
        return next((one for one in found if not one.error), found[0] if found else None)

    def _seen(self, expr: Expr, around: tuple[Comprehension, ...]) -> tuple[Seen, ...]:
        found: dict[str, Seen] = {}
        for part in self._parts(expr, around):
            name = unparse.text(part)
            try:
                found[name] = Seen(name, _shown(self._value(part, around)))
            except (CelError, PanicError):
                found[name] = Seen(name, "absent")
        return tuple(found.values())

    def _parts(self, expr: Expr, around: tuple[Comprehension, ...]) -> list[Expr]:
        """Return the largest nodes that are parts of the device, outside of loops."""
        scope: dict[str, tuple[str, ...]] = {}
        for bind in around:
            steps = steps_of(bind.init, scope)
            scope |= {bind.accu_var: steps} if steps is not None else {}
        found: list[Expr] = []
        waiting = [expr]
        while waiting:
            one = waiting.pop()
            steps = steps_of(one, scope)
            if steps is None or (isinstance(one, Call) and one.function == "@in"):
                waiting.extend((one.range,) if isinstance(one, Comprehension) else reversed(children(one)))
            elif len(steps) > _DEVICE_ONLY:
                found.append(one)
        return found


def _shown(value: object) -> str:
    match value:
        case str():
            return f'"{value}"'
        case Optional():
            return _shown(value.value) if value.present else "absent"
        case dict():
            return "{" + ", ".join(f"{key}: {_shown(one)}" for key, one in value.items()) + "}"
        case list():
            return f"[{', '.join(map(_shown, value))}]"
        case Semver():
            return value.text
        case Quantity():
            return str(value)
        case _:
            return text_of(value)
