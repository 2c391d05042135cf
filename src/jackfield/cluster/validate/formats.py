"""How names, versions and amounts must be spelt.

Knows Kubernetes' formats, one function each; every answer is what is wrong, or nothing. Must not know any field.
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

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME_PART: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORD: Final = re.compile(r"[a-z][a-z0-9]*")
_ENDS: Final = "and start and end with an alphanumeric character"
_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_NUMBER: Final = r"(0|[1-9]\d*)"
_PRERELEASE: Final = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_SEMVER: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PRERELEASE}(\.{_PRERELEASE})*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)


def label(text: str) -> str:
    """Return what is wrong with a DNS label."""
    if len(text) > LABEL_MAX:
        return f"must be no more than {LABEL_MAX} characters"
    if not _LABEL.fullmatch(text):
        return f"must consist of lower case alphanumeric characters or '-', {_ENDS}"
    return ""


def subdomain(text: str, most: int = SUBDOMAIN_MAX) -> str:
    """Return what is wrong with a DNS subdomain."""
    if len(text) > most:
        return f"must be no more than {most} characters"
    if not _SUBDOMAIN.fullmatch(text):
        return f"must consist of lower case alphanumeric characters, '-' or '.', {_ENDS}"
    return ""


def driver(text: str) -> str:
    """Return what is wrong with a driver's name; upper case is only frowned upon."""
    return subdomain(text.lower(), DRIVER_MAX)


def pool(text: str) -> str:
    """Return what is wrong with a pool's name: subdomains between slashes."""
    if len(text) > POOL_MAX:
        return f"must be no more than {POOL_MAX} characters"
    return next((wrong for one in text.split("/") if (wrong := subdomain(one))), "")


def qualified(text: str) -> str:
    """Return what is wrong with a label's key, a finalizer or the type of a condition."""
    prefix, slash, name = text.rpartition("/")
    if slash and (wrong := subdomain(prefix)):
        return f"prefix part {wrong}"
    if not name or len(name) > LABEL_MAX or not _NAME_PART.fullmatch(name):
        return (
            "name part must consist of at most 63 alphanumeric characters, '-', '_' or '.', "
            "and must start and end with an alphanumeric character"
        )
    return ""


def label_value(text: str) -> str:
    """Return what is wrong with a label's value."""
    if len(text) > LABEL_MAX:
        return f"must be no more than {LABEL_MAX} characters"
    if text and not _NAME_PART.fullmatch(text):
        return f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS}"
    return ""


def attribute(text: str) -> str:
    """Return what is wrong with the name of an attribute or a capacity: an identifier, perhaps with a domain."""
    domain, slash, identifier = text.rpartition("/")
    if slash and (wrong := driver(domain)):
        return f"the domain {wrong}"
    if len(identifier) > IDENTIFIER_MAX:
        return f"the name must be no more than {IDENTIFIER_MAX} characters"
    if not _IDENTIFIER.fullmatch(identifier):
        return "must be a valid C identifier: letters, digits and '_', and no digit first"
    return ""


def full_attribute(text: str) -> str:
    """Return what is wrong with the name of an attribute that must say its domain."""
    return attribute(text) or ("" if "/" in text else "must include a domain")


def semver(text: str) -> str:
    """Return what is wrong with a version."""
    return "" if _SEMVER.fullmatch(text) else "must be a string compatible with semver.org spec 2.0.0"


def uuid(text: str) -> str:
    """Return what is wrong with a UUID."""
    return "" if _UUID.fullmatch(text) else "must be a lowercase UUID in 8-4-4-4-12 format"


def interface_address(text: str) -> str:
    """Return what is wrong with the address of an interface: it says how long its network's prefix is."""
    try:
        ipaddress.ip_interface(text)
    except ValueError:
        return "must be a valid address in CIDR form"
    return "" if "/" in text else "must be a valid address in CIDR form"


def word(text: str) -> str:
    """Return what is wrong with a type of device."""
    return "" if _WORD.fullmatch(text) else "must be a lower case word"


def amount(text: str) -> str:
    """Return what is wrong with a quantity."""
    try:
        quantity.parse(text)
    except quantity.QuantityError as error:
        return error.reason
    return ""
