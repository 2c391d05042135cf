"""What a request says that changes something: a reservation, a list of blocks, blocks of a kind.

Knows which properties can be written, and says of all others why not. Must not know what writing them does.
"""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Final

import msgspec

from jackfield.codec.redfish import ID, REQUESTED_COUNT
from jackfield.fabric_manager.faces.redfish.protocol import Document, Message, Refusal, refusal

COUNT_MAX: Final = 64
"""Blocks of a kind that one request may ask for."""
OVERPROVISIONING: Final = "@Redfish.AllowOverprovisioning"
_CONSTRAINTS: Final = {"Processors": ("ProcessorType", "Model"), "Memory": ("Model",)}
"""By what blocks can be asked for that the service is to choose."""


class More(msgspec.Struct, frozen=True):
    """So many more blocks, of a kind that is described."""

    member: str
    """Processors or Memory."""
    count: int
    type: str = ""
    model: str = ""


class Change(msgspec.Struct, frozen=True):
    """What a machine is to be made of."""

    blocks: tuple[str, ...] = ()
    """These and no others, where the list is given."""
    listed: bool = False
    more: tuple[More, ...] = ()
    messages: tuple[Message, ...] = ()
    """What cannot be written."""


class Action(msgspec.Struct, frozen=True):
    """What an action is to be done with."""

    block: str
    block_tag: str = ""
    system_tag: str = ""


# --- reservations


def reserved(body: Document, document: Document) -> tuple[bool, tuple[Message, ...]]:
    """Return whether a block is to be reserved, and what cannot be written. Raises Refusal."""
    status, messages = body.get("CompositionStatus"), [*others(body, document, "CompositionStatus")]
    if status is not None and not isinstance(status, dict):
        raise wrong("CompositionStatus", "an object")
    inner = status or {}
    known = document["CompositionStatus"]
    messages += others(
        inner, known if isinstance(known, dict) else {}, "Reserved", inside="/CompositionStatus"
    )
    value = inner.get("Reserved")
    if "Reserved" not in inner:
        raise nothing_to_do(messages)
    if not isinstance(value, bool):
        raise wrong("CompositionStatus/Reserved", "true or false")
    return value, tuple(messages)


# --- machines


def change(body: Document, document: Document) -> Change:
    """Return what a machine is to be made of. Raises Refusal."""
    messages = [*others(body, document, "Links", *_CONSTRAINTS)]
    links = body.get("Links", {})
    if not isinstance(links, dict):
        raise wrong("Links", "an object")
    known = document["Links"]
    messages += others(links, known if isinstance(known, dict) else {}, "ResourceBlocks", inside="/Links")
    more = tuple(one for member in _CONSTRAINTS if member in body for one in _more(member, body[member]))
    listed = "ResourceBlocks" in links
    if not listed and not more:
        raise nothing_to_do(messages)
    if listed and more:
        raise refusal(
            HTTPStatus.BAD_REQUEST,
            "PropertyValueConflict",
            "Either the blocks are listed or their kind is described, not both.",
            "Links/ResourceBlocks",
            more[0].member,
        )
    blocks = tuple(_links(links["ResourceBlocks"])) if listed else ()
    return Change(blocks, listed, more, tuple(messages))


def _links(value: object) -> Iterator[str]:
    found = value if isinstance(value, list) else [None]
    for one in found:
        path = one.get(ID) if isinstance(one, dict) else None
        if not isinstance(path, str):
            raise wrong("Links/ResourceBlocks", f"a list of objects with {ID}")
        yield path


def _more(member: str, value: object) -> Iterator[More]:
    members = value.get("Members") if isinstance(value, dict) else None
    if (
        not isinstance(value, dict)
        or set(value) != {"Members"}
        or not isinstance(members, list)
        or not members
    ):
        raise wrong(member, "an object with nothing but Members, a list of descriptions")
    for one in members:
        if not isinstance(one, dict):
            raise wrong(f"{member}/Members", "a list of objects")
        unknown = [
            name for name in one if name not in {REQUESTED_COUNT, OVERPROVISIONING, *_CONSTRAINTS[member]}
        ]
        if unknown:
            raise Refusal(
                HTTPStatus.BAD_REQUEST, *(_unknown(f"/{member}/Members/{name}") for name in unknown)
            )
        texts = [one.get(name, "") for name in ("ProcessorType", "Model")]
        count = one.get(REQUESTED_COUNT, 1)
        if not all(isinstance(text, str) for text in texts):
            raise wrong(f"{member}/Members", "descriptions by text")
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= COUNT_MAX:
            raise wrong(f"{member}/Members/{REQUESTED_COUNT}", f"a number, 1 to {COUNT_MAX}")
        yield More(member, count, str(texts[0]), str(texts[1]))


# --- actions


def action(body: Document) -> Action:
    """Return what AddResourceBlock or RemoveResourceBlock is told. Raises Refusal."""
    unknown = [
        name for name in body if name not in {"ResourceBlock", "ResourceBlockETag", "ComputerSystemETag"}
    ]
    if unknown:
        words = "The action has no parameter {}."
        raise Refusal(
            HTTPStatus.BAD_REQUEST,
            *(Message("ActionParameterUnknown", words.format(name[:80]), (name[:80],)) for name in unknown),
        )
    if "ResourceBlock" not in body:
        raise refusal(
            HTTPStatus.BAD_REQUEST,
            "ActionParameterMissing",
            "The action needs the parameter ResourceBlock.",
            "ResourceBlock",
        )
    block = body["ResourceBlock"]
    path = block.get(ID) if isinstance(block, dict) else None
    texts = (path, body.get("ResourceBlockETag", ""), body.get("ComputerSystemETag", ""))
    if not isinstance(texts[0], str) or not isinstance(texts[1], str) or not isinstance(texts[2], str):
        raise refusal(
            HTTPStatus.BAD_REQUEST,
            "ActionParameterValueTypeError",
            f"ResourceBlock is an object with {ID}, and ETags are texts.",
            "ResourceBlock",
        )
    return Action(texts[0], texts[1], texts[2])


# --- what cannot be written


def others(body: Document, document: Document, *names: str, inside: str = "") -> Iterator[Message]:
    """Return a message for each property that is not one of these; annotations are not meant."""
    for name in body:
        if name not in names and not name.startswith("@odata."):
            pointer = f"{inside}/{name[:80]}"
            if name in document:
                words = f"The property {pointer[1:]} is read-only."
                yield Message("PropertyNotWritable", words, (name[:80],), (f"#{pointer}",), "Warning")
            else:
                yield _unknown(pointer)


def _unknown(pointer: str) -> Message:
    name = pointer.rpartition("/")[2]
    words = f"The property {pointer[1:]} is not known here."
    return Message("PropertyUnknown", words, (name,), (f"#{pointer}",), "Warning")


def wrong(name: str, rule: str) -> Refusal:
    """Return that a value is not what it can be."""
    words = f"The value of {name} is not right: it is {rule}."
    return Refusal(
        HTTPStatus.BAD_REQUEST,
        Message("PropertyValueTypeError", words, ("", name.rpartition("/")[2]), (f"#/{name}",), "Warning"),
    )


def nothing_to_do(messages: list[Message]) -> Refusal:
    """Return that nothing of a request can be done."""
    empty = Message("NoOperation", "The request changes nothing.", severity="Warning")
    return Refusal(HTTPStatus.BAD_REQUEST, *(messages or [empty]))
