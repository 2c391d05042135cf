"""`'%s'.format([…])`, at run time and, for literals, before it.

Knows the clauses. Must not know expressions beyond the types of arguments.
"""

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from jackfield.core.cel.conversions import double_text, text_of
from jackfield.core.cel.faults import CelError
from jackfield.core.cel.values import Duration, Timestamp, TypeValue, UInt, overload, type_name

_DEFAULT_PRECISION: Final = 6
_PRECISION_MAX: Final = 100
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
    precision: int


def parts(form: str) -> Iterator[str | Clause]:
    """Tell the texts and clauses of a format; raises CelError."""
    at = 0
    for found in _CLAUSE.finditer(form):
        if found.start() < at:
            continue
        yield form[at : found.start()]
        at = found.end()
        if found[2] == "%" and found[1] is None:
            yield "%"
            continue
        if not found[2]:
            raise CelError("unexpected end of string")
        if found[2] not in ACCEPTED:
            raise CelError(f'could not parse formatting clause: unrecognized formatting clause "{found[2]}"')
        precision = int(found[1]) if found[1] else _DEFAULT_PRECISION
        if found[1] == "" or precision > _PRECISION_MAX:
            raise CelError("error while parsing precision: could not convert precision to integer")
        yield Clause(found[2], precision)
    yield form[at:]


def refusal(verb: str, name: str) -> str:
    """Return why a clause does not take values of a type."""
    return f"error during formatting: {_WORDS[verb]}, was given {name}"


@overload("format", str, list)
def _format(form: str, args: list[object]) -> str:
    made: list[str] = []
    used = 0
    for part in parts(form):
        if isinstance(part, str):
            made.append(part)
            continue
        if used >= len(args):
            raise CelError(f"index {used} out of range")
        made.append(_RENDER[part.verb](args[used], part))
        used += 1
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
        case str() | bool() | int() | float() | bytes() | Duration() | Timestamp():
            return text_of(value)
        case _:
            raise _refuse(clause, value)


def _nested(value: object) -> str:
    match value:
        case str():
            return json.dumps(value, ensure_ascii=False)
        case bytes():
            return f"b{json.dumps(text_of(value), ensure_ascii=False)}"
        case float():
            return f"{value:.6f}" if math.isfinite(value) else double_text(value)
        case list():
            return f"[{', '.join(map(_nested, value))}]"
        case dict():
            return (
                "{"
                + ", ".join(sorted(f"{_nested(key)}:{_nested(item)}" for key, item in value.items()))
                + "}"
            )
        case Timestamp():
            return f'timestamp("{text_of(value)}")'
        case Duration():
            return f'duration("{text_of(value)}")'
        case None | bool() | int() | TypeValue():
            return _string(value, Clause("s", 0))
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
    # Kubernetes prints in US English, with a narrow no-break space around the cross.
    power = exponent.removeprefix("+").translate(_SUPERSCRIPT)
    return _special(number) or f"{mantissa}\u202f\u00d7\u202f10{power}"


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
