"""`'%s'.format([…])`, at run time and, for literals, before it.

Knows the clauses. Must not know expressions beyond the types of arguments.
"""

import math
import re
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from jackfield.core.cel.conversions import double_text, text_of
from jackfield.core.cel.faults import CelError, LimitError
from jackfield.core.cel.quoting import quoted
from jackfield.core.cel.values import Duration, Timestamp, TypeValue, UInt, Unlike, overload, type_name

_NESTED_MAX: Final = 1_000_000
_DEFAULT_PRECISION: Final = 6
_PRECISION_MAX: Final = 999
"""Kubernetes has no limit here; many such clauses in a row would fill any memory."""
_SUPERSCRIPT: Final = str.maketrans("0123456789-+", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺")
_CLAUSE: Final = re.compile(r"%(?:\.([0-9]*))?(.?)", re.DOTALL)

ACCEPTED: Final = {
    "s": (
        "list",
        "map",
        "int",
        "uint",
        "double",
        "bool",
        "string",
        "timestamp",
        "bytes",
        "duration",
        "type",
        "null_type",
    ),
    "d": ("int", "uint"),
    "f": ("double", "string"),
    "e": ("double", "string"),
    "b": ("int", "uint", "bool"),
    "x": ("int", "uint", "string", "bytes"),
    "X": ("int", "uint", "string", "bytes"),
    "o": ("int", "uint"),
}
"""Which static types each clause takes."""

_WORDS: Final = {
    "s": "string clause can only be used on strings, bools, bytes, ints, doubles, "
    "maps, lists, types, durations, and timestamps",
    "d": "decimal clause can only be used on integers",
    "f": "fixed-point clause can only be used on doubles",
    "e": "scientific clause can only be used on doubles",
    "b": "only integers and bools can be formatted as binary",
    "x": "only integers, byte buffers, and strings can be formatted as hex",
    "X": "only integers, byte buffers, and strings can be formatted as hex",
    "o": "octal clause can only be used on integers",
}


class Clause(msgspec.Struct, frozen=True):
    """One `%…` of a format."""

    verb: str
    precision: int = _DEFAULT_PRECISION
    index: int = 0
    """Which argument it prints."""


def parts(form: str, given: int) -> Iterator[str | Clause]:
    """Tell the texts and clauses of a format for so many arguments; raises CelError."""
    at = used = 0
    for found in _CLAUSE.finditer(form):
        yield form[at : found.start()]
        at = found.end()
        if found[0] == "%%":
            yield "%"
            continue
        if found[0] == "%":
            raise CelError("unexpected end of string")
        if used >= given:
            raise CelError(f"index {used} out of range")
        yield _clause(found[1], found[2], used)
        used += 1
    yield form[at:]


def _clause(digits: str | None, verb: str, index: int) -> Clause:
    if digits is not None and not verb:
        raise _no_precision("could not find end of precision specifier")
    if digits == "":
        raise _no_precision(
            'error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax'
        )
    if digits is not None and len(digits) > len(str(_PRECISION_MAX)):
        raise _no_precision(f"more than {_PRECISION_MAX} digits")
    if verb not in ACCEPTED:
        raise CelError(f'could not parse formatting clause: unrecognized formatting clause "{verb}"')
    return Clause(verb, int(digits or _DEFAULT_PRECISION), index)


def _no_precision(reason: str) -> CelError:
    return CelError(f"could not parse formatting clause: error while parsing precision: {reason}")


def refusal(verb: str, name: str) -> str:
    """Return why a clause does not take values of a type."""
    return f"error during formatting: {_WORDS[verb]}, was given {name}"


@overload("format", str, list)
def _format(form: str, args: list[object]) -> str:
    made = (
        part if isinstance(part, str) else _RENDER[part.verb](args[part.index], part)
        for part in parts(form, len(args))
    )
    return "".join(made)


def _refuse(clause: Clause, value: object) -> CelError:
    return CelError(refusal(clause.verb, type_name(value)))


def _string(value: object, clause: Clause) -> str:
    match value:
        case None:
            return "null"
        case list() | dict():
            return _nested(value)
        case TypeValue():
            return value.name
        case bytes():
            return _decoded(value)
        case str() | bool() | int() | float() | Duration() | Timestamp():
            return text_of(value)
        case _:
            raise _refuse(clause, value)


def _decoded(value: bytes) -> str:
    try:
        return text_of(value)
    except CelError as error:
        raise CelError(f'error during formatting: could not convert argument "{error}" to string') from error


def _key(key: object) -> str:
    if isinstance(key, Unlike):
        raise CelError(
            f"error during formatting: no formatting function for map key of type {type_name(key.value)}"
        )
    return _nested(key)


def _bounded(text: str) -> str:
    if len(text) > _NESTED_MAX:
        raise LimitError(f"format makes a text of more than {_NESTED_MAX} characters")
    return text


def _nested(value: object) -> str:
    """Return a value as it would be written in an expression."""
    match value:
        case str():
            return quoted(value)
        case bytes():
            return f"b{quoted(_decoded(value))}"
        case float():
            return f"{value:.6f}" if math.isfinite(value) else quoted(double_text(value))
        case list():
            return _bounded(f"[{', '.join(map(_nested, value))}]")
        case dict():
            entries = sorted((_key(key), _nested(item)) for key, item in value.items())
            return _bounded("{" + ", ".join(f"{key}:{item}" for key, item in entries) + "}")
        case Timestamp():
            return f'timestamp("{text_of(value)}")'
        case Duration():
            return f'duration("{text_of(value)}")'
        case None | bool() | int() | TypeValue():
            return _string(value, Clause("s"))
        case _:
            raise CelError(f"error during formatting: no formatting function for {type_name(value)}")


def _decimal(value: object, clause: Clause) -> str:
    if type(value) not in (int, UInt):
        raise _refuse(clause, value)
    return str(value)


def _number(value: object, clause: Clause) -> float:
    if value in ("NaN", "Infinity", "-Infinity"):
        return float(str(value))
    if type(value) is not float:
        raise _refuse(clause, value)
    return value


def _special(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    return "∞" if number == float("inf") else "-∞" if number == float("-inf") else ""


def _fixed(value: object, clause: Clause) -> str:
    number = _number(value, clause)
    return _special(number) or f"{number:,.{clause.precision}f}"


def _scientific(value: object, clause: Clause) -> str:
    number = _number(value, clause)
    mantissa, _, exponent = f"{number:.{_DEFAULT_PRECISION}e}".partition("e")
    power = exponent.removeprefix("+").translate(_SUPERSCRIPT)
    # Kubernetes prints in US English, and takes the precision for a width.
    return (_special(number) or f"{mantissa}\u00d710{power}").rjust(clause.precision)


def _binary(value: object, clause: Clause) -> str:
    if type(value) not in (int, UInt, bool):
        raise _refuse(clause, value)
    return f"{value:b}"


def _octal(value: object, clause: Clause) -> str:
    if type(value) not in (int, UInt):
        raise _refuse(clause, value)
    return f"{value:o}"


def _hex(value: object, clause: Clause) -> str:
    match value:
        case bool():
            raise _refuse(clause, value)
        case int():
            text = f"{value:x}"
        case str():
            text = value.encode("utf-8", "surrogatepass").hex()
        case bytes():
            text = value.hex()
        case _:
            raise _refuse(clause, value)
    return text.upper() if clause.verb == "X" else text


_RENDER: Final[dict[str, Callable[[object, Clause], str]]] = {
    "s": _string,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "o": _octal,
    "x": _hex,
    "X": _hex,
}
