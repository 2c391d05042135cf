"""What a call's query says beside its path.

Knows the options of each verb and how they are spelt. Must not know what is done about them.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec

from jackfield.cluster import errors
from jackfield.cluster.face import status

MANAGER_MAX: Final = 128
NUMBER_MAX: Final = 2**63 - 1
VERSION_MAX: Final = 2**64 - 1
DIGITS_MAX: Final = 20
"""Digits of the longest number that is one; longer ones are not even read."""


class FieldValidation(StrEnum):
    """What happens to fields that nobody knows, or that are said twice."""

    IGNORE = "Ignore"
    WARN = "Warn"
    STRICT = "Strict"


class Writing(msgspec.Struct, frozen=True):
    """How something is to be written."""

    manager: str
    named: bool
    """Whether the caller said who writes; an apply must."""
    dry_run: bool
    force: bool | None
    validation: FieldValidation


class Listing(msgspec.Struct, frozen=True):
    """Which objects are to be told, and how."""

    namespace: str
    labels: str
    fields: str
    limit: int
    token: str
    """What the page before said to ask for the next."""
    version: str
    match: str
    watch: bool
    bookmarks: bool
    seconds: int
    initial_events: bool | None

    @property
    def wish(self) -> tuple[str, str, str]:
        """What makes two lists the same."""
        return self.namespace, self.labels, self.fields


def writing(query: Mapping[str, str], agent: str, options: str) -> Writing:
    """Return how to write; `options` is what Kubernetes calls the parameters of this verb."""
    manager = query.get("fieldManager", "")
    if len(manager) > MANAGER_MAX:
        raise status.bad_option(options, errors.too_long("fieldManager", MANAGER_MAX))
    if not manager.isprintable():
        words = "should only contain printable characters"
        raise status.bad_option(options, errors.invalid_value("fieldManager", manager, words))
    force = _flag(query, "force")
    if force is not None and options != "PatchOptions":
        force = None
    return Writing(
        manager=manager or agent.split("/", 1)[0][:MANAGER_MAX],
        named=bool(manager),
        dry_run=dry_run(query, options),
        force=force,
        validation=_validation(query, options),
    )


def dry_run(query: Mapping[str, str], options: str) -> bool:
    """Return whether nothing is to happen."""
    said = query.get("dryRun", "")
    if said not in ("", "All"):
        cause = errors.Cause(
            "dryRun",
            f'Unsupported value: {msgspec.json.encode([said]).decode()}: supported values: "All"',
            "FieldValueNotSupported",
        )
        raise status.bad_option(options, cause)
    return bool(said)


def _validation(query: Mapping[str, str], options: str) -> FieldValidation:
    said = query.get("fieldValidation", "")
    try:
        return FieldValidation(said or FieldValidation.WARN)
    except ValueError:
        allowed = ("", "Ignore", "Strict", "Warn")
        raise status.bad_option(options, errors.unsupported("fieldValidation", said, allowed)) from None


def listing(query: Mapping[str, str], namespace: str, name: str = "") -> Listing:
    """Return what to list or watch."""
    fields = query.get("fieldSelector", "")
    if name:
        fields = ",".join(one for one in (fields, f"metadata.name={name}") if one)
    said, match = version(query), query.get("resourceVersionMatch", "")
    return Listing(
        namespace=namespace,
        labels=query.get("labelSelector", ""),
        fields=fields,
        limit=max(0, _number(query, "limit")),
        token=query.get("continue", ""),
        version=said,
        match=match,
        watch=bool(_flag(query, "watch")),
        bookmarks=bool(_flag(query, "allowWatchBookmarks")),
        seconds=_number(query, "timeoutSeconds"),
        initial_events=_flag(query, "sendInitialEvents"),
    )


def version(query: Mapping[str, str]) -> str:
    """Return the version that is asked for, a number or nothing."""
    said = query.get("resourceVersion", "")
    if not said or _is_number(said, VERSION_MAX):
        return said
    why = "value out of range" if said.isascii() and said.isdecimal() else "invalid syntax"
    cause = errors.invalid_value("resourceVersion", said, f'strconv.ParseUint: parsing "{said}": {why}')
    raise errors.bad_request(f"invalid resource version: {cause}")


def _is_number(text: str, most: int) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= DIGITS_MAX and int(text) <= most


def _number(query: Mapping[str, str], name: str) -> int:
    said = query.get(name, "")
    if not said:
        return 0
    if not _is_number(said.removeprefix("-"), NUMBER_MAX):
        raise errors.bad_request(f'strconv.ParseInt: parsing "{said}": invalid syntax')
    return int(said)


def _flag(query: Mapping[str, str], name: str) -> bool | None:
    """Anything but a no is a yes, as with a real API server."""
    if name not in query:
        return None
    return query[name].lower() not in ("false", "0")
