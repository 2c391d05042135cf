"""An expression, compiled: what it may cost, what it looks at, and whether a device matches.

Knows how the parts of this package fit together. Must not know requests or claims.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from jackfield.core.cel import advice, checks, cost, frontend, paths
from jackfield.core.cel.faults import CelError, CompileError, EvaluationError, PanicError, UncertainError
from jackfield.core.cel.generate import Renderer
from jackfield.core.cel.meter import metered
from jackfield.core.cel.subject import Subject
from jackfield.core.cel.syntax import Checked
from jackfield.core.cel.values import type_name

EXPRESSION_BYTES_MAX: Final = 10 * 1024
COST_MAX: Final = 1_000_000
_PROGRAMS_MAX: Final = 4096
_TOO_MUCH: Final = (RecursionError, MemoryError, OverflowError, ValueError)
"""What Python says of what is too much for it; a ValueError, of numbers with thousands of digits."""
_NO_BOOL: Final = {
    "int": "unsupported type conversion from 'int' to bool",
    "string": "unsupported native conversion from string to 'bool'",
    "kubernetes.Semver": "type conversion error from 'Semver' to 'bool'",
}

Rendering = Callable[[object], object]


class Program:
    """A compiled expression."""

    __slots__ = ("_costly", "_fast", "_precise", "checked", "cost_max", "lists")

    def __init__(self, checked: Checked, *, lists: bool) -> None:
        self.checked = checked
        self.lists = lists
        """Whether attributes may hold lists."""
        self.cost_max = cost.cost_max(checked)
        """What it may cost, by the API server's estimate; above COST_MAX it is refused there."""
        self._costly = self.cost_max > COST_MAX
        self._fast: Rendering = _undecided if self._costly else Renderer(checked, precise=False).function()
        self._precise: Rendering | None = None

    @property
    def output_type(self) -> str:
        """The static type of the answer: `bool`, or `google.protobuf.Any` where it shows only at run time."""
        name = str(self.checked.type_of(self.checked.expr))
        return "google.protobuf.Any" if name == "any" else name

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
        except Exception:  # noqa: BLE001 - whatever it is, the precise rendering finds the words
            return self._decide(subject)
        if answer is True or answer is False:
            return answer
        return self._decide(subject)

    def _decide(self, subject: Subject) -> bool:
        if self._precise is None:
            precise = Renderer(self.checked, precise=True)
            self._precise = metered(self.checked, COST_MAX) if self._costly else precise.function()
        try:
            answer = self._precise(subject)
        except (CelError, PanicError) as error:
            raise EvaluationError(str(error)) from error
        except _TOO_MUCH as error:
            raise EvaluationError(f"internal error: {error}") from error
        if answer is True or answer is False:
            return answer
        name = type_name(answer)
        reason = _NO_BOOL.get(name, f"it is a {name}")
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
