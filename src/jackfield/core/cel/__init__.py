"""CEL as DRA uses it: device selectors, answered as Kubernetes answers them.

Knows expressions and devices. Must not know who asks. Compiling needs the extra `jackfield[cel]`.
"""

from jackfield.core.cel.explain import Reason, Seen, why_not
from jackfield.core.cel.faults import CompileError, EvaluationError, UnavailableError
from jackfield.core.cel.paths import Path
from jackfield.core.cel.program import COST_MAX, EXPRESSION_BYTES_MAX, Program, compile  # noqa: A004 - its name says it
from jackfield.core.cel.subject import Subject, subject

__all__ = [
    "COST_MAX",
    "EXPRESSION_BYTES_MAX",
    "CompileError",
    "EvaluationError",
    "Path",
    "Program",
    "Reason",
    "Seen",
    "Subject",
    "UnavailableError",
    "compile",
    "subject",
    "why_not",
]
