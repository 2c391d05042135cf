"""Named formats: what a string must look like to be a label, a date, a UUID.

Knows Kubernetes' rules. Must not know expressions.
"""

import re
from collections.abc import Callable
from typing import Final

from jackfield.core.cel import times
from jackfield.core.cel.declarations import FORMATS
from jackfield.core.cel.faults import CelError
from jackfield.core.cel.values import FUNCTIONS, NONE, NamedFormat, Optional, overload

_LABEL: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_NAME: Final = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)"
_LABEL_MAX, _SUBDOMAIN_MAX = 63, 253


def _pattern(expression: str, longest: int, words: str) -> Callable[[str], str]:
    compiled = re.compile(expression, re.ASCII)

    def check(text: str) -> str:
        if len(text) > longest:
            return f"must be no more than {longest} bytes"
        return "" if compiled.fullmatch(text) else words

    return check


def _prefix(check: Callable[[str], str]) -> Callable[[str], str]:
    # A prefix may end in a dash, since something follows it.
    return lambda text: check(f"{text[:-1]}a" if text.endswith("-") else text)


def _qualified_name(text: str) -> str:
    prefix, slash, name = text.rpartition("/")
    if slash and (not prefix or _SUBDOMAIN(prefix)):
        return "prefix part must be a lowercase RFC 1123 subdomain"
    return _LABEL_VALUE(name) or ("" if name else "name part must be non-empty")


def _date(text: str) -> str:
    return _time(f"{text}T00:00:00Z")


def _time(text: str) -> str:
    try:
        times.parse_timestamp(text)
    except CelError:
        return "invalid date"
    return ""


def _uri(text: str) -> str:
    return "" if FUNCTIONS["isURL"](text) is True else "invalid URI"


_DNS_LABEL: Final = _pattern(
    _LABEL, _LABEL_MAX, "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'"
)
_SUBDOMAIN: Final = _pattern(
    rf"{_LABEL}(?:\.{_LABEL})*",
    _SUBDOMAIN_MAX,
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'",
)
_DNS_1035: Final = _pattern(
    r"[a-z](?:[-a-z0-9]*[a-z0-9])?",
    _LABEL_MAX,
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-'",
)
_LABEL_VALUE: Final = _pattern(
    rf"{_NAME}?",
    _LABEL_MAX,
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.'",
)
_UUID: Final = _pattern(
    r"[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}",
    36,
    "does not match the UUID format",
)
_BYTE: Final = _pattern(
    r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})",
    1 << 32,
    "invalid base64",
)

_CHECKS: Final[dict[str, Callable[[str], str]]] = {
    "dns1123Label": _DNS_LABEL,
    "dns1123LabelPrefix": _prefix(_DNS_LABEL),
    "dns1123Subdomain": _SUBDOMAIN,
    "dns1123SubdomainPrefix": _prefix(_SUBDOMAIN),
    "dns1035Label": _DNS_1035,
    "dns1035LabelPrefix": _prefix(_DNS_1035),
    "qualifiedName": _qualified_name,
    "labelValue": _LABEL_VALUE,
    "uri": _uri,
    "uuid": _UUID,
    "byte": _BYTE,
    "date": _date,
    "datetime": _time,
}


@overload("format.named", str)
def _named(name: str) -> Optional:
    return Optional(present=True, value=NamedFormat(name)) if name in FORMATS else NONE


@overload("validate", NamedFormat, str)
def _validate(form: NamedFormat, text: str) -> Optional:
    words = _CHECKS[form.name](text)
    return Optional(present=True, value=[words]) if words else NONE


def _declare(name: str) -> None:
    overload(f"format.{name}")(lambda: NamedFormat(name))


for _name in FORMATS:
    _declare(_name)
