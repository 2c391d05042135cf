"""Objects on their way out: whole, as a table's rows, or as metadata alone.

Knows the envelopes of lists, tables and watch events. Must not know who asked, or for what.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
import yaml

from jackfield.cluster import errors, tables
from jackfield.cluster.face.bodies import YAML
from jackfield.cluster.face.calls import JSON, Answer
from jackfield.cluster.face.negotiation import Form, Wanted
from jackfield.cluster.history import Stored
from jackfield.codec import Raw
from jackfield.codec.kinds import Kind
from jackfield.model import composition
from jackfield.model.names import Seconds

INCLUDED: Final = ("", "None", "Metadata", "Object")


class View(msgspec.Struct, frozen=True):
    """How a client wants to see objects of a kind."""

    kind: Kind
    wanted: Wanted
    include: str = ""
    """What of an object a table's row carries along."""

    def __post_init__(self) -> None:
        """Refuse what no server includes."""
        if self.include not in INCLUDED:
            raise errors.bad_request(f'unrecognized includeObject value: "{self.include}"')

    def one(self, stored: Stored, now: Seconds) -> Raw:
        """Return one object."""
        match self.wanted.form:
            case Form.TABLE:
                return self._table(
                    [stored], {"resourceVersion": stored.raw["metadata"].get("resourceVersion", "")}, now
                )
            case Form.METADATA:
                return self._metadata(stored)
            case _:
                return stored.wire()

    def many(self, items: Sequence[Stored], metadata: Raw, now: Seconds) -> Raw:
        """Return a list of objects."""
        match self.wanted.form:
            case Form.TABLE:
                return self._table(items, metadata, now)
            case Form.METADATA:
                listed = [self._metadata(one) for one in items]
                return {**self._of("PartialObjectMetadataList"), "metadata": metadata, "items": listed}
            case _:
                return {
                    "kind": f"{self.kind.kind}List",
                    "apiVersion": self.kind.api_version,
                    "metadata": metadata,
                    "items": [self._item(one) for one in items],
                }

    def _item(self, stored: Stored) -> Raw:
        """A list says once of which kind its items are; custom resources say it themselves."""
        whole = stored.wire()
        if self.kind.group == composition.GROUP:
            return whole
        return {name: value for name, value in whole.items() if name not in ("kind", "apiVersion")}

    def _table(self, items: Sequence[Stored], metadata: Raw, now: Seconds) -> Raw:
        table = tables.table(self.kind, [one.raw for one in items], now)
        for row, stored in zip(table["rows"], items, strict=True):
            if self.include != "None":
                row["object"] = stored.wire() if self.include == "Object" else self._metadata(stored)
        return {**table, **self._of("Table"), "metadata": metadata}

    def _metadata(self, stored: Stored) -> Raw:
        return {**self._of("PartialObjectMetadata"), "metadata": stored.wire()["metadata"]}

    def _of(self, kind: str) -> Raw:
        return {"kind": kind, "apiVersion": f"meta.k8s.io/{self.wanted.version}"}


def answer(body: Raw, code: int, wanted: Wanted, warnings: tuple[str, ...] = ()) -> Answer:
    """Return the answer in the language that was asked for."""
    if wanted.yaml:
        text: str = yaml.safe_dump(body, sort_keys=False)
        return Answer(code, text.encode(), YAML, warnings=warnings)
    return Answer(code, msgspec.json.encode(body), JSON, warnings=warnings)
