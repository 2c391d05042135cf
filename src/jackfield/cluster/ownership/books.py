"""The books of who wrote what: whose field is whose after a write, and what an apply comes to.

Knows the rules between managers. Must not know where objects are kept, nor what a field means.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final

import msgspec

from jackfield.cluster import errors
from jackfield.cluster import schema as schemas
from jackfield.cluster.ownership import fields, fitting, last_applied, managers, merging, ownables
from jackfield.cluster.ownership.fields import Path, Shape
from jackfield.cluster.ownership.managers import Manager, Managers
from jackfield.cluster.schema import Node
from jackfield.cluster.schema.kinds import is_custom
from jackfield.codec import Raw, dig
from jackfield.codec.kinds import Kind

BEFORE: Final = "before-first-apply"
"""Who owns what was there when nobody kept books."""
ANCIENT: Final = "ancient-changes"
"""Who owns what the oldest of too many writers wrote."""
UPDATERS_MAX: Final = 10

_NOBODY: Final = Manager("", applies=True, version="")

Disputes = tuple[tuple[Manager, frozenset[Path]], ...]
"""What others own and would lose."""


class Outcome(msgspec.Struct, frozen=True):
    """What an apply comes to."""

    object: Raw
    """The whole object as it is to be; the live one itself if nothing changes."""
    managers: Managers


@cache
def of(kind: Kind) -> "Books":
    """Return the books of a kind."""
    return Books(kind, schemas.of(kind))


class Books:
    """The books of one kind."""

    def __init__(self, kind: Kind, node: Node | None) -> None:
        custom = is_custom(kind)
        self._kind = kind
        self._node = node
        self._shape = Shape(node)
        # What is applied is taken by the letter; other writes are read into Go's types first, if there are any.
        self._read = self._shape if custom else Shape(node, hides=True)
        self._empty = ownables.empty(kind, custom=custom)

    def created(self, new: Raw, me: Manager) -> Managers:
        """Return who owns what of a new object: as it was read and completed, before admission added anything."""
        return self._booked(self._empty, new, me, _given((), new, me))

    def updated(self, old: Raw, new: Raw, me: Manager, known: Managers) -> Managers:
        """Return who owns what after a plain write; nobody does if nobody kept books before.

        `new` is the object as it was read and completed, before admission added anything and before that is put
        back which this subresource does not change. Its metadata may say itself who owns what.
        """
        given = _given(known, new, me)
        return self._booked(old, new, me, given) if given else given

    def applied(self, live: Raw, body: Raw, me: Manager, known: Managers, *, force: bool) -> Outcome:
        """Return the live object, which is empty if there is none, with what the body says.

        Raises a conflict if others own what would change, unless the caller insists. Strangers' bodies are to be
        shown to `refuse` first.
        """
        me = msgspec.structs.replace(me, name=me.name or managers.UNKNOWN, applies=True)
        known = self._known(live, known, me)
        others = tuple(one for one in known if one.identity != me.identity)
        before = next((one for one in known if one.identity == me.identity), _NOBODY)
        mine = self._kept(fields.paths_of(body, self._shape), me)
        merged = merging.merged(live, body, self._shape)
        if not before.fields <= mine:
            # Its name keeps an object's metadata, also where a body need not repeat it.
            held = mine.union(ownables.SYSTEM, *(one.fields for one in others))
            merged = merging.pruned(merged, self._shape, before.fields, held)
        found = fields.compared(live, merged, self._shape)
        changed = self._kept(found.changed, me)
        if not force:
            self._refuse_disputed(live, me, _disputes(others, changed))
        taken = changed | self._kept(found.removed, me)
        is_changed = merged != live
        # Who says only what is there already has done nothing, and so at no time.
        time = me.time if is_changed else before.time
        me = msgspec.structs.replace(me, time=time).owning(mine - ownables.SYSTEM)
        booked = (*(one.without(taken) for one in others), me)
        result = merging.solid(merged, live) if is_changed else live
        return Outcome(
            last_applied.kept(result, body, me.name), managers.ordered(one for one in booked if one.fields)
        )

    # --- the rules

    def _booked(self, old: Raw, new: Raw, me: Manager, known: Managers) -> Managers:
        """Return the managers after a write that is no apply: it takes all it changes, and asks nobody."""
        known = self._served(known)
        found = fields.compared(old, new, self._read)
        changed, removed = self._kept(found.changed, me), self._kept(found.removed, me)
        mine = changed - ownables.SYSTEM
        if not mine and not removed:
            return known
        left = [one.without(changed | removed) for one in known]
        if mine:
            me = msgspec.structs.replace(me, name=me.name or managers.UNKNOWN, applies=False)
            before = next((one.fields for one in left if one.identity == me.identity), frozenset())
            left = [one for one in left if one.identity != me.identity]
            left.append(me.owning(before | mine))
        return managers.ordered(_capped([one for one in left if one.fields]))

    def _known(self, live: Raw, known: Managers, me: Manager) -> Managers:
        """Return who owned what when an apply came; what nobody owned until then gets an owner by that."""
        if known or not live:
            return self._served(known)
        return self._booked(self._empty, live, msgspec.structs.replace(me, name=BEFORE), ())

    def _served(self, known: Managers) -> Managers:
        """Return the managers whose version there is; what others may have meant nobody knows any more."""
        version = self._kind.api_version
        if all(one.version == version for one in known):
            return known
        return tuple(one for one in known if one.version == version)

    def _kept(self, paths: frozenset[Path], me: Manager) -> frozenset[Path]:
        """Return those of the paths that the subresource changes."""
        ignored = ownables.put_back(self._kind, me.subresource)
        return frozenset(one for one in paths if one[:1] not in ignored and one[:2] not in ignored)

    # --- refusals

    def refuse(self, body: Raw) -> None:
        """Raise what the server says to a body that cannot be applied at all."""
        if dig(body, "metadata", "managedFields") is not None:
            raise errors.bad_request("metadata.managedFields must be nil")
        problem = fitting.problems(body, self._node) if self._node is not None else ""
        if problem:
            names = f"{dig(body, 'metadata', 'namespace') or ''}/{dig(body, 'metadata', 'name') or ''}"
            kind = f"{self._kind.group}/{self._kind.version}, Kind={self._kind.kind}"
            words = f"failed to create typed patch object ({names}; {kind}): {problem}"
            raise errors.unexplained(words)

    def _refuse_disputed(self, live: Raw, me: Manager, disputes: Disputes) -> None:
        if disputes and me.name == last_applied.KUBECTL:
            # What `kubectl apply` wrote itself, before it let the server apply, it may write again.
            own = self._last_applied(live)
            disputes = tuple((one, paths - own) for one, paths in disputes if paths - own)
        if disputes:
            raise _conflict(disputes)

    def _last_applied(self, live: Raw) -> frozenset[Path]:
        body = last_applied.of(live, self._kind.api_version)
        if self._node is None or fitting.problems(body, self._node):
            return frozenset()
        found = fields.compared(body, live, self._shape)
        return fields.paths_of(body, self._shape) - found.changed - found.removed


def _given(known: Managers, new: Raw, me: Manager) -> Managers:
    """Return who owns what before a write, which may say so itself; by a subresource, and if in vain, it may not."""
    said = None if me.subresource else dig(new, "metadata", "managedFields")
    if said is None:
        return known
    if managers.is_reset(said):
        return ()
    try:
        return managers.managers_of(said) or known
    except managers.BadManagedFieldsError:
        return known


def _disputes(others: Managers, changed: frozenset[Path]) -> Disputes:
    return tuple((one, one.fields & changed) for one in others if not one.fields.isdisjoint(changed))


def _conflict(disputes: Disputes) -> errors.ApiError:
    found = [
        (str(manager), fields.spelt(path))
        for manager, paths in sorted(disputes, key=lambda one: one[0].identity)
        for path in _in_order(merging.tree(paths), ())
    ]
    causes = tuple(errors.Cause(path, f"conflict with {who}", "FieldManagerConflict") for who, path in found)
    if len(found) == 1:
        who, path = found[0]
        return errors.disputed(f"Apply failed with 1 conflict: conflict with {who}: {path}", causes)
    lines: list[str] = []
    for at, (who, path) in enumerate(found):
        if not at or found[at - 1][0] != who:
            lines.append(f"conflicts with {who}:")
        lines.append(f"- {path}")
    listed = "\n".join(lines)
    return errors.disputed(f"Apply failed with {len(found)} conflicts: {listed}", causes)


def _in_order(node: merging.Tree, path: Path) -> Iterator[Path]:
    """Yield the paths of a tree as the server lists them: what ends here before what goes on."""
    elements = sorted(one for one in node if one)
    yield from ((*path, one) for one in elements if "" in node[one])
    for one in elements:
        yield from _in_order(node[one], (*path, one))


def _capped(known: list[Manager]) -> Iterable[Manager]:
    """Return the managers, the oldest of too many updaters taken together."""
    updaters = sorted(
        (one for one in known if not one.applies),
        key=lambda one: (one.name != ANCIENT, one.time, one.identity),
    )
    surplus = len(updaters) - UPDATERS_MAX
    if surplus <= 0:
        return known
    # Two become one, so that one more than the surplus has to go.
    old = updaters[: surplus + 1]
    ancient = msgspec.structs.replace(
        old[-1], name=ANCIENT, subresource="", fields=frozenset().union(*(one.fields for one in old))
    )
    return [ancient, *(one for one in known if one not in old)]
