"""CEL as DRA uses it: device selectors, answered as Kubernetes answers them.

Knows expressions and devices. Must not know who asks. Compiling needs the extra `jackfield[cel]`.
"""

from jackfield.core.cel.faults import CompileError, EvaluationError, UnavailableError
from jackfield.core.cel.program import COST_MAX, EXPRESSION_BYTES_MAX, Program, compile  # noqa: A004 - its name says it
from jackfield.core.cel.subject import Subject, subject

__all__ = [
    "COST_MAX",
    "EXPRESSION_BYTES_MAX",
    "CompileError",
    "EvaluationError",
    "Program",
    "Subject",
    "UnavailableError",
    "compile",
    "subject",
]
