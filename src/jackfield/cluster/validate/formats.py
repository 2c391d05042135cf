"""How names, versions and amounts must be spelt.

Knows Kubernetes' formats, one function each; every answer is all that is wrong, or nothing. Must not know any field.
"""

import ipaddress
import re
from typing import Final

from jackfield.model import quantity

LABEL_MAX: Final = 63
SUBDOMAIN_MAX: Final = 253
DRIVER_MAX: Final = 63
IDENTIFIER_MAX: Final = 32
POOL_MAX: Final = 253
PORT_MAX: Final = 15

Wrong = tuple[str, ...]
"""What is wrong, in Kubernetes' words; empty if nothing is."""

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME_PART: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VALUE: Final = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_PORT: Final = re.compile(r"[-a-z0-9]+")
_ENDS: Final = "and must start and end with an alphanumeric character"
_NAME_WORDS: Final = f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS}"
_CONFIG_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_WORD: Final = re.compile(r"[a-z][a-z0-9]*")
_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_NUMBER: Final = r"(0|[1-9]\d*)"
_PRERELEASE: Final = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_SEMVER: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PRERELEASE}(\.{_PRERELEASE})*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)


def label(text: str) -> Wrong:
    """Return what is wrong with a DNS label."""
    wrong = _limited(text, LABEL_MAX)
    if _LABEL.fullmatch(text):
        return wrong
    if _SUBDOMAIN.fullmatch(text):
        return (*wrong, "must not contain dots")
    words = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    return (*wrong, _mismatch(f"{words}{_ENDS}", _LABEL, "my-name", "123-abc"))


def subdomain(text: str, most: int = SUBDOMAIN_MAX) -> Wrong:
    """Return what is wrong with a DNS subdomain."""
    wrong = _limited(text, most)
    if _SUBDOMAIN.fullmatch(text):
        return wrong
    words = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    return (*wrong, _mismatch(f"{words}{_ENDS}", _SUBDOMAIN, "example.com"))


def driver(text: str) -> Wrong:
    """Return what is wrong with a driver's name; upper case is only frowned upon."""
    return subdomain(text.lower(), DRIVER_MAX)


def pool(text: str) -> Wrong:
    """Return what is wrong with a pool's name: subdomains between slashes."""
    return _limited(text, POOL_MAX) or next(
        (wrong for one in text.split("/") if (wrong := subdomain(one))), ()
    )


def qualified(text: str) -> Wrong:
    """Return what is wrong with a label's key, a finalizer or the type of a condition."""
    prefix, slash, name = text.partition("/")
    if not slash and len(text) <= LABEL_MAX and _NAME_PART.fullmatch(text):
        return ()  # as most are
    mismatch = _mismatch(_NAME_WORDS, _NAME_PART, "MyName", "my.name", "123-abc")
    if "/" in name:
        whole = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return (f"a valid label key {mismatch} {whole}",)
    if not slash:
        prefix, name = "", text
    wrong: Wrong = ("prefix part must be non-empty",) if slash and not prefix else ()
    if prefix:
        wrong = tuple(f"prefix part {one}" for one in subdomain(prefix))
    if not name:
        wrong = (*wrong, "name part must be non-empty")
    wrong = (*wrong, *(f"name part {one}" for one in _limited(name, LABEL_MAX, "bytes")))
    return wrong if _NAME_PART.fullmatch(name) else (*wrong, f"name part {mismatch}")


def label_value(text: str) -> Wrong:
    """Return what is wrong with a label's value."""
    wrong = _limited(text, LABEL_MAX, "bytes")
    if _VALUE.fullmatch(text):
        return wrong
    words = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    return (*wrong, _mismatch(f"{words}{_ENDS}", _VALUE, "MyValue", "my_value", "12345"))


def config_key(text: str) -> Wrong:
    """Return what is wrong with a key of a ConfigMap or a Secret."""
    wrong = _limited(text, SUBDOMAIN_MAX)
    if not _CONFIG_KEY.fullmatch(text):
        words = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        return (*wrong, _mismatch(words, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    if text in (".", ".."):
        return (*wrong, f"must not be '{text}'")
    return (*wrong, "must not start with '..'") if text.startswith("..") else wrong


def segment(text: str) -> Wrong:
    """Return what is wrong with a name that becomes part of a path."""
    if text in (".", ".."):
        return (f"may not be '{text}'",)
    return tuple(f"may not contain '{one}'" for one in "/%" if one in text)


def port_name(text: str) -> Wrong:
    """Return what is wrong with the name of a port."""
    found = {
        f"must be no more than {PORT_MAX} characters": len(text) > PORT_MAX,
        "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)": not _PORT.fullmatch(text),
        "must contain at least one letter (a-z)": not any("a" <= one <= "z" for one in text),
        "must not contain consecutive hyphens": "--" in text,
        "must not begin or end with a hyphen": text.startswith("-") or text.endswith("-"),
    }
    return tuple(words for words, is_so in found.items() if is_so)


def variable(text: str) -> Wrong:
    """Return what is wrong with the name of an environment variable."""
    if text and all(" " <= one <= "~" and one != "=" for one in text):
        return ()
    words = "a valid environment variable name must consist only of printable ASCII characters other than '='"
    return (words,)


def attribute(text: str) -> Wrong:
    """Return what is wrong with the name of an attribute or a capacity: an identifier, perhaps with a domain."""
    domain, slash, identifier = text.rpartition("/")
    if slash and (wrong := driver(domain)):
        return tuple(f"the domain {one}" for one in wrong)
    if len(identifier) > IDENTIFIER_MAX:
        return (f"the name must be no more than {IDENTIFIER_MAX} characters",)
    if not _IDENTIFIER.fullmatch(identifier):
        return ("must be a valid C identifier: letters, digits and '_', and no digit first",)
    return ()


def full_attribute(text: str) -> Wrong:
    """Return what is wrong with the name of an attribute that must say its domain."""
    return attribute(text) or (() if "/" in text else ("must include a domain",))


def semver(text: str) -> Wrong:
    """Return what is wrong with a version."""
    return () if _SEMVER.fullmatch(text) else ("must be a string compatible with semver.org spec 2.0.0",)


def uuid(text: str) -> Wrong:
    """Return what is wrong with a UUID."""
    return () if _UUID.fullmatch(text) else ("must be a lowercase UUID in 8-4-4-4-12 format",)


def interface_address(text: str) -> Wrong:
    """Return what is wrong with the address of an interface: it says how long its network's prefix is."""
    try:
        ipaddress.ip_interface(text)
    except ValueError:
        return ("must be a valid address in CIDR form",)
    return () if "/" in text else ("must be a valid address in CIDR form",)


def word(text: str) -> Wrong:
    """Return what is wrong with a type of device."""
    return () if _WORD.fullmatch(text) else ("must be a lower case word",)


def amount(text: str) -> Wrong:
    """Return what is wrong with a quantity."""
    try:
        quantity.parse(text)
    except quantity.QuantityError as error:
        return (error.reason,)
    return ()


def _limited(text: str, most: int, unit: str = "characters") -> Wrong:
    if len(text) <= most and (text.isascii() or len(text.encode()) <= most):
        return ()
    return (f"must be no more than {most} {unit}",)


def _mismatch(words: str, pattern: re.Pattern[str], *examples: str) -> str:
    """Return what Kubernetes says of a text that does not match; two spaces after a comma included."""
    shown = " or ".join(f"'{one}', " for one in examples)
    return f"{words} (e.g. {shown}regex used for validation is '{pattern.pattern}')"
