"""Calls that change nothing: get, list, and the beginning of a watch.

Knows versions and pages. Must not know HTTP beyond a call and its answer.
"""

from http import HTTPStatus

import msgspec

from jackfield.cluster import errors, selectors
from jackfield.cluster.face import negotiation, options, rendering, status, watching
from jackfield.cluster.face.calls import Answer, Call
from jackfield.cluster.face.options import Listing
from jackfield.cluster.face.paging import Pages, Part
from jackfield.cluster.face.rendering import View
from jackfield.cluster.face.target import Target
from jackfield.cluster.store import Store
from jackfield.codec import Raw
from jackfield.codec.kinds import Kind
from jackfield.model.names import Seconds


class Watching(msgspec.Struct, frozen=True):
    """A call that wants to be told for a while."""

    view: View
    asked: Listing


class Reader:
    """Whoever asks is told."""

    def __init__(self, store: Store, pages: Pages) -> None:
        self._store = store
        self._pages = pages

    def get(self, call: Call, target: Target, now: Seconds) -> Answer:
        """Tell one object; its status is told with all the rest, as a real API server does."""
        shown = view(call, target.kind)
        self._not_from_the_future(options.version(call.query))
        stored = self._store.get(target.kind.type, target.key)
        return rendering.answer(shown.one(stored, now), HTTPStatus.OK, shown.wanted)

    def list(self, call: Call, target: Target, now: Seconds) -> Answer:
        """Tell all objects, or a page of them."""
        shown = view(call, target.kind)
        asked = options.listing(call.query, target.namespace, target.name)
        part = self.part(target, asked)
        metadata: Raw = {"resourceVersion": str(part.version)}
        if part.token:
            metadata["continue"] = part.token
            if not asked.labels and not asked.fields:
                metadata["remainingItemCount"] = part.remaining
        return rendering.answer(shown.many(part.items, metadata, now), HTTPStatus.OK, shown.wanted)

    def part(self, target: Target, asked: Listing) -> Part:
        """Return the objects that are asked for."""
        kind = target.kind
        _check_match(asked)
        if asked.token:
            if asked.version not in ("", "0"):
                raise errors.bad_request("specifying resource version is not allowed when using continue")
            return self._pages.next(kind, asked.wish, asked.token, asked.limit)
        self._not_from_the_future(asked.version)
        if asked.match == "Exact" and int(asked.version) != self._store.version:
            raise errors.expired(int(asked.version), self._store.version)
        selector = selectors.selector(kind.kind, asked.labels, asked.fields)
        page = self._store.list(kind.type, asked.namespace, selector)
        return self._pages.first(kind, asked.wish, Part(page.items, page.version), asked.limit)

    def watch(self, call: Call, target: Target) -> Watching:
        """Return what is to be watched."""
        asked = watching.checked(options.listing(call.query, target.namespace, target.name))
        return Watching(view(call, target.kind), asked)

    def _not_from_the_future(self, version: str) -> None:
        if version and int(version) > self._store.version:
            raise status.too_large_version(int(version), self._store.version)


def view(call: Call, kind: Kind) -> View:
    """Return how the client wants to see it. Raises if that is no way to see anything."""
    return View(kind, negotiation.wanted(call.accept), call.query.get("includeObject", ""))


def _check_match(asked: Listing) -> None:
    if asked.match and not asked.version:
        words = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        raise status.bad_option("ListOptions", errors.forbidden("resourceVersionMatch", words))
    if asked.match not in ("", "Exact", "NotOlderThan"):
        raise status.bad_option(
            "ListOptions",
            errors.unsupported("resourceVersionMatch", asked.match, ("Exact", "NotOlderThan", "")),
        )
