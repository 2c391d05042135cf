"""An expression, compiled: what it may cost, what it looks at, and whether a device matches.

Knows how the parts of this package fit together. Must not know requests or claims.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from jackfield.core.cel import advice, checks, cost, frontend, inplace, paths
from jackfield.core.cel.evaluate import evaluate
from jackfield.core.cel.faults import CelError, CompileError, EvaluationError, PanicError, UncertainError
from jackfield.core.cel.generate import Renderer
from jackfield.core.cel.meter import metered
from jackfield.core.cel.subject import Subject
from jackfield.core.cel.syntax import Checked, depth
from jackfield.core.cel.values import type_name

EXPRESSION_BYTES_MAX: Final = 10 * 1024
COST_MAX: Final = 1_000_000
_PROGRAMS_MAX: Final = 4096
_RENDERED_DEPTH_MAX: Final = 40
"""What is deeper is not written as Python, whose own parser has limits."""
_TOO_MUCH: Final = (RecursionError, MemoryError, OverflowError, ValueError)
"""What Python says of what is too much for it; a ValueError, of numbers with thousands of digits."""
_NO_BOOL: Final = {
    "int": "unsupported type conversion from 'int' to bool",
    "uint": "unsupported type conversion from 'uint' to bool",
    "double": "type conversion error from Double to 'bool'",
    "string": "unsupported native conversion from string to 'bool'",
    "bytes": "type conversion error from Bytes to 'bool'",
    "null_type": "type conversion error from 'null_type' to 'bool'",
    "list": "type conversion error from list to 'bool'",
    "map": "type conversion error from map to 'bool'",
    "kubernetes.NamedFormat": "type conversion error from 'Format' to 'bool'",
    "type": "type conversion not supported for 'type'",
}

Rendering = Callable[[object], object]


class Program:
    """A compiled expression."""

    __slots__ = ("_changing", "_costly", "_fast", "checked", "cost_max", "lists")

    def __init__(self, checked: Checked, *, lists: bool) -> None:
        self.checked = checked
        self.lists = lists
        """Whether attributes may hold lists."""
        self.cost_max = cost.cost_max(checked)
        """What it may cost, by the API server's estimate; above COST_MAX it is refused there."""
        self._costly = self.cost_max > COST_MAX
        self._changing = inplace.matters(checked.expr)
        rendered = not (self._costly or self._changing) and depth(checked.expr) <= _RENDERED_DEPTH_MAX
        self._fast: Rendering = Renderer(checked).function() if rendered else _undecided

    @property
    def output_type(self) -> str:
        """The static type of the answer: `bool`, or `google.protobuf.Any` where it shows only at run time."""
        return checks.full_name(self.checked.type_of(self.checked.expr))

    @property
    def paths(self) -> tuple[paths.Path, ...]:
        """The parts of a device it looks at: devices that agree in these get the same answer."""
        return paths.paths(self.checked.expr)

    @property
    def refusal(self) -> str:
        """Why the API server would not take it, though a scheduler would: too long, or too costly."""
        length = len(self.checked.source.encode())
        if length > EXPRESSION_BYTES_MAX:
            return f"must be no longer than {EXPRESSION_BYTES_MAX} bytes, this one has {length}"
        if self._costly:
            return f"too complex, exceeds cost limit: may cost {self.cost_max}, allowed are {COST_MAX}"
        return ""

    @property
    def advice(self) -> tuple[str, ...]:
        """Hints, where it compiles but hardly does what was meant."""
        return advice.for_accepted(self.checked, too_costly=self._costly)

    def matches(self, subject: Subject) -> bool:
        """Return whether the device matches; raises EvaluationError where there is no answer."""
        if subject.fault or (subject.list_fault and not self.lists):
            raise EvaluationError(subject.fault or subject.list_fault)
        try:
            answer = self._fast(subject)
        except Exception:  # noqa: BLE001 - whatever it is, the evaluation finds the words
            return self._decide(subject)
        if answer is True or answer is False:
            return answer
        return self._decide(subject)

    def _evaluate(self, subject: object) -> object:
        return evaluate(self.checked, subject)

    def _decide(self, subject: Subject) -> bool:
        seen = inplace.own(subject) if self._changing else subject
        try:
            answer = (metered(self.checked, COST_MAX) if self._costly else self._evaluate)(seen)
        except (CelError, PanicError) as error:
            raise EvaluationError(str(error)) from error
        except _TOO_MUCH as error:
            raise EvaluationError(f"internal error: {error}") from error
        if answer is True or answer is False:
            return answer
        name = "map" if isinstance(answer, Subject) else type_name(answer)
        plain = name.rpartition(".")[2]
        reason = _NO_BOOL.get(name, f"type conversion error from '{plain}' to 'bool'")
        raise EvaluationError(f"CEL result of type {name} could not be converted to bool: {reason}")


def _undecided(_subject: object) -> object:
    raise UncertainError


@lru_cache(maxsize=_PROGRAMS_MAX)
def compile(expression: str, *, lists: bool = False) -> Program:  # noqa: A001 - it is what it does
    """Return an expression ready for use; raises CompileError where Kubernetes would not take it.

    With `lists`, attributes may hold lists (the gate DRAListTypeAttributes).
    """
    try:
        checked = frontend.check(expression, lists=lists)
        checks.check(checked, lists=lists)
    except CompileError as error:
        raise CompileError(error.message, advice.for_refused(expression, error.message)) from error
    return Program(checked, lists=lists)
