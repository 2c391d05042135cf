"""What is wrong with a CEL expression.

Knows the limits of length and cost, and whom to ask. Must not know CEL. An installation without its compiler takes
expressions as they are.
"""

from collections.abc import Iterator

from jackfield.cluster import errors
from jackfield.cluster.errors import Cause
from jackfield.core import cel


def expression(field: str, text: str) -> Iterator[Cause]:
    """Yield what is wrong with an expression that selects devices."""
    if len(text.encode()) > cel.EXPRESSION_BYTES_MAX:
        yield errors.too_long(field, cel.EXPRESSION_BYTES_MAX)
        return
    try:
        program = cel.compile(text)
    except cel.UnavailableError:
        return
    except cel.CompileError as error:
        yield errors.invalid_value(field, text, str(error))
        return
    if program.cost_max > cel.COST_MAX:
        yield errors.forbidden(field, "too complex, exceeds cost limit")
