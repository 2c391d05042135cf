"""Parses and type-checks: the seam between an expression's text and all who read it.

Knows the order of steps and how mistakes are shown. Must not know what is done with an expression.
"""

from collections.abc import Iterable
from typing import Final

from jackfield.core.cel import checker, parser
from jackfield.core.cel.faults import CompileError
from jackfield.core.cel.parser import WHOLE, Mistake
from jackfield.core.cel.syntax import Checked
from jackfield.core.cel.unify import TooComplexError

_SHOWN_MAX: Final = 100
_LINE_MAX: Final = 16_384
_ASCII: Final = 0x80


def check(source: str, *, lists: bool = False) -> Checked:
    """Return the expression, parsed and type-checked; raise CompileError where Kubernetes' checker would refuse."""
    try:
        source.encode()
    except UnicodeEncodeError as error:
        raise CompileError("compilation failed: ERROR: <input>:1:1: Syntax error: no valid text") from error
    parsed = parser.parse(source)
    if parsed.mistakes:
        raise refused(source, parsed.mistakes)
    try:
        found = checker.check(parsed.expr, parsed.positions, lists=lists)
    except TooComplexError as error:
        raise refused(source, (Mistake(WHOLE, "its types are too complex"),)) from error
    if found.mistakes:
        raise refused(source, found.mistakes)
    return Checked(source, found.expr, found.types, found.overloads, parsed.positions)


def refused(source: str, mistakes: Iterable[Mistake]) -> CompileError:
    """Return the error that shows mistakes in the order of their places, as Kubernetes shows them."""
    ordered = sorted(mistakes, key=lambda one: one.at)
    shown = [_shown(source, one) for one in ordered[:_SHOWN_MAX]]
    if len(ordered) > _SHOWN_MAX:
        shown.append(f"{len(ordered) - _SHOWN_MAX} more errors were truncated")
    return CompileError("compilation failed: " + "\n".join(shown))


def _shown(source: str, mistake: Mistake) -> str:
    if mistake.at == WHOLE:
        return f"ERROR: <input>:-1:0: {mistake.words}"
    line = source.count("\n", 0, mistake.at) + 1
    start = source.rfind("\n", 0, mistake.at) + 1
    column = mistake.at - start
    text = source[start:].partition("\n")[0].replace("\t", " ")
    words = f"ERROR: <input>:{line}:{column + 1}: {mistake.words}"
    if len(text.encode()) > _LINE_MAX:
        return words
    dots = "".join("." if ord(one) < _ASCII else "\uff0e" for one in text[:column])
    mark = "^" if ord((text[column:] or " ")[0]) < _ASCII else "\uff3e"
    return f"{words}\n | {text}\n | {dots}{mark}"
