"""What the estimate knows of an operand, and what it says of a call.

Must not know how either is found out.
"""

import msgspec

from jackfield.core.cel.sizes import UNKNOWN, Path, Range
from jackfield.core.cel.syntax import Expr, Type


class Node(msgspec.Struct, frozen=True):
    """What is known of an operand."""

    expr: Expr
    type: Type
    path: Path | None
    known: Range | None

    @property
    def size(self) -> Range:
        """How large it can be."""
        return self.known or UNKNOWN


class Estimate(msgspec.Struct, frozen=True):
    """What a call costs, operands aside, and how large its result is, where that is known."""

    cost: Range
    size: Range | None = None
