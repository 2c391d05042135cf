"""Amounts that change when they are compared, as Kubernetes' do.

There, comparing an amount with one that is stored as a decimal stores it as a decimal, too, and such an amount is no
integer, whatever its value. Knows who is changed by whom. Must not know expressions beyond their calls.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from jackfield.core.cel.operators import Domains
from jackfield.core.cel.subject import Subject
from jackfield.core.cel.syntax import Call, Expr, walk
from jackfield.core.cel.values import Sum
from jackfield.model.quantity import Quantity

_CHANGING: Final = ("compareTo", "isGreaterThan", "isLessThan")
_TELLING: Final = ("isInteger", "asInteger")


def matters(expr: Expr) -> bool:
    """Whether an expression both compares amounts and asks whether one is an integer."""
    called = {node.function for node in walk(expr) if isinstance(node, Call)}
    return not called.isdisjoint(_CHANGING) and not called.isdisjoint(_TELLING)


class Amounts:
    """Which amounts have changed during one evaluation."""

    def __init__(self) -> None:
        self._changed: dict[int, tuple[Quantity, Quantity]] = {}
        """By identity; the first of a pair is only there so that no other gets its identity."""

    def given(self, function: str, args: Sequence[object]) -> list[object]:
        """Return what a function is given in place of its arguments, after which they may have changed."""
        now = [self._changed[id(one)][1] if id(one) in self._changed else one for one in args]
        match now:
            case [Quantity(decimal=False) as left, Quantity(decimal=True)] if function in _CHANGING:
                self._changed[id(args[0])] = (left, msgspec.structs.replace(left, decimal=True))
        return now

    @staticmethod
    def own(made: object) -> object:
        """Return an amount that is nobody else's; amounts that are written alike are read only once."""
        return (
            msgspec.structs.replace(made)
            if isinstance(made, Quantity) and not isinstance(made, Sum)
            else made
        )


def own(subject: Subject) -> Subject:
    """Return a device whose amounts are nobody else's."""
    made = Subject(subject.driver, multiple=subject.multiple)
    made.attributes = subject.attributes
    made.capacity = Domains(
        {
            domain: {name: Amounts.own(one) for name, one in amounts.items()}
            for domain, amounts in subject.capacity.items()
        }
    )
    return made
