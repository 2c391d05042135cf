"""Functions on strings. Positions count characters.

Knows Go's answers at the edges. Must not know expressions.
"""

from typing import Final

from jackfield.core.cel.faults import CelError, LimitError
from jackfield.core.cel.quoting import ESCAPES
from jackfield.core.cel.values import overload

_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005"
    "\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_TEXT_MAX: Final = 10_000_000


def _outside(position: int) -> CelError:
    return CelError(f"index out of range: {position}")


@overload("contains", str, str)
def _contains(text: str, part: str) -> bool:
    return part in text


@overload("startsWith", str, str)
def _starts_with(text: str, part: str) -> bool:
    return text.startswith(part)


@overload("endsWith", str, str)
def _ends_with(text: str, part: str) -> bool:
    return text.endswith(part)


@overload("contains", object, object)
@overload("startsWith", object, object)
@overload("endsWith", object, object)
def _no_text(_text: object, _part: object) -> bool:
    raise CelError("no such overload")


@overload("charAt", str, int)
def _char_at(text: str, position: int) -> str:
    if not 0 <= position <= len(text):
        raise _outside(position)
    return text[position : position + 1]


@overload("indexOf", str, str)
def _index_of(text: str, part: str) -> int:
    return _index_from(text, part, 0)


@overload("indexOf", str, str, int)
def _index_from(text: str, part: str, start: int) -> int:
    if not part:
        return start
    if start < 0:
        raise _outside(start)
    return text.find(part, start)


@overload("lastIndexOf", str, str)
def _last_index_of(text: str, part: str) -> int:
    return text.rfind(part)


@overload("lastIndexOf", str, str, int)
def _last_index_from(text: str, part: str, start: int) -> int:
    if not part:
        return start
    if start < 0:
        raise _outside(start)
    return text.rfind(part, 0, start + len(part)) if start < len(text) else -1


@overload("lowerAscii", str)
def _lower(text: str) -> str:
    return text.translate(_LOWER)


@overload("upperAscii", str)
def _upper(text: str) -> str:
    return text.translate(_UPPER)


@overload("replace", str, str, str)
def _replace(text: str, old: str, new: str) -> str:
    return _replace_some(text, old, new, -1)


@overload("replace", str, str, str, int)
def _replace_some(text: str, old: str, new: str, count: int) -> str:
    # Kubernetes has no limit here; a few of these in a row would fill any memory.
    if (text.count(old) + 1) * len(new) > _TEXT_MAX:
        raise LimitError(f"replace makes a text of more than {_TEXT_MAX} characters")
    return text.replace(old, new, max(count, -1))


@overload("split", str, str)
def _split(text: str, separator: str) -> list[str]:
    return text.split(separator) if separator else list(text)


@overload("split", str, str, int)
def _split_some(text: str, separator: str, limit: int) -> list[str]:
    if limit < 0:
        return _split(text, separator)
    if limit == 0:
        return []
    if separator:
        return text.split(separator, limit - 1)
    return [*text[: limit - 1], text[limit - 1 :]] if len(text) >= limit else list(text)


@overload("substring", str, int)
def _substring_from(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise _outside(start)
    return text[start:]


@overload("substring", str, int, int)
def _substring(text: str, start: int, end: int) -> str:
    if start > end:
        raise CelError(f"invalid substring range. start: {start}, end: {end}")
    for position in (start, end):
        if not 0 <= position <= len(text):
            raise _outside(position)
    return text[start:end]


@overload("trim", str)
def _trim(text: str) -> str:
    return text.strip(_SPACE)


@overload("join", list)
def _join(parts: list[object]) -> str:
    return _join_with(parts, "")


@overload("join", list, str)
def _join_with(parts: list[object], separator: str) -> str:
    strings: list[str] = []
    for one in parts:
        if not isinstance(one, str):
            raise CelError(f"join: invalid input: {one}" if strings else "no such overload: join(list)")
        strings.append(one)
    return separator.join(strings)


@overload("strings.quote", str)
def _quote(text: str) -> str:
    return '"' + "".join(ESCAPES.get(character, character) for character in text) + '"'
