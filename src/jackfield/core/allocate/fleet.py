"""Many nodes at once: which of them fit, the first that fits, the allocation on any one of them.

Knows which nodes look alike, and asks about one of them for all. Must not know rules of allocation: of every node it
says what `Allocator.allocate` would say, by the same search.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

import msgspec

from jackfield.core.allocate.allocator import Allocator
from jackfield.core.allocate.gathering import EVERYBODY, Pools
from jackfield.core.allocate.ledger import Changes, Ledger
from jackfield.core.allocate.looks import Lens, Looks
from jackfield.core.allocate.outcome import AllocationError, NoFit, Reason
from jackfield.core.allocate.panorama import Panorama
from jackfield.core.allocate.pools import Pool
from jackfield.core.allocate.question import Question
from jackfield.core.allocate.requests import Reader
from jackfield.core.allocate.roster import Member, Roster
from jackfield.core.allocate.sights import Own, Sights
from jackfield.model.claim import AllocationResult, ResourceClaim
from jackfield.model.names import Key, NodeName
from jackfield.model.node import Node
from jackfield.model.slice import DeviceClass, ResourceSlice

STEPS_MAX: Final = 32
"""So many nodes are visited one by one before those that look alike are passed over together."""

PANORAMAS_MAX: Final = 16
"""For so many kinds of claim nodes are kept grouped, those that were asked last."""


class Fit(msgspec.Struct, frozen=True):
    """A node, and what the claims get there."""

    node: NodeName
    allocations: tuple[AllocationResult, ...]


class Nowhere(msgspec.Struct, frozen=True):
    """No node fits: for each reason, how many do not for that reason."""

    reasons: tuple[tuple[Reason, int], ...]


class Fitting:
    """The nodes that fit, as they were when it was asked. Counting them costs less than naming them."""

    def __init__(self, names: Sequence[NodeName], groups: Iterable[tuple[int, ...]]) -> None:
        self._names = names
        self._groups = tuple(groups)

    def __len__(self) -> int:
        return sum(map(len, self._groups))

    def __iter__(self) -> Iterator[NodeName]:
        """Name them in the fleet's order."""
        return (self._names[at] for at in sorted(at for group in self._groups for at in group))

    @property
    def first(self) -> NodeName:
        """The first of them in the fleet's order. There must be one."""
        return self._names[min(group[0] for group in self._groups)]


class Fleet:
    """All nodes, for claims to come.

    It begins at the moment an Allocator stands for and is kept current from there on: claims that hold or release
    devices; nodes, slices and classes that come, change or go. At any time it answers as an Allocator made anew for
    that moment would, asked about one node after the other in the order that each question names, up to the
    answer. What that Allocator raises on the way, the question raises; what it would raise later is not met.

    Nodes look alike if they see the same pools of others, and pools of their own that differ in names only. Claims
    that mean few devices see fewer differences still. One search is made for all nodes that look alike, so a question
    costs that many searches, and for the first claim of its kind a glance at every distinct kind of node. A claim that
    comes or goes costs a look at the pools it holds devices of.

    Memory grows with nodes and devices, and with what claims hold. Answers of the past are not kept; what is
    remembered of selectors is bounded by their own limits, by LOOKS_MAX looks, by WISHES_MAX selections of
    each pool that nodes share, and by PANORAMAS_MAX groupings of the nodes.
    """

    def __init__(self, allocator: Allocator, nodes: Iterable[Node]) -> None:
        """Look at every node once; the allocator is not touched."""
        self.patience = STEPS_MAX
        """After so many nodes it passes over those that look alike together, which changes nothing but the time."""
        self._features = allocator.features
        self._selectors = allocator.selectors
        self._classes = allocator.classes
        self._ledger = Ledger(allocator.usage.allocated, self._features)
        self._sights = Sights(allocator.pools, Looks(self._features), self._ledger)
        self._roster = Roster()
        self._owners: dict[Pool, list[Member]] = {}
        self._panoramas: dict[Lens, Panorama] = {}
        for node in nodes:
            self.put_node(node)

    # --- questions

    def allocate(
        self, claims: Sequence[ResourceClaim], node: NodeName
    ) -> tuple[AllocationResult, ...] | NoFit:
        """Return what the claims get on this node."""
        return self._question(claims).answer(self._roster.members[node])

    def first_in(self, claims: Sequence[ResourceClaim], order: Iterable[NodeName]) -> Fit | Nowhere:
        """Return the first node in this order that fits. No further names are taken than are needed."""
        question = self._question(claims)
        counts: dict[Reason, int] = {}
        for name in order:
            answer = question.fits(self._roster.members[name])
            if not isinstance(answer, NoFit):
                return Fit(name, answer)
            counts[answer.reason] = counts.get(answer.reason, 0) + 1
        return _nowhere(counts)

    def first_from(self, claims: Sequence[ResourceClaim], start: NodeName) -> Fit | Nowhere:
        """Return the first node that fits, going round once in the fleet's order, from the named node on."""
        question, first = self._question(claims), self._roster.members[start]
        for member in islice(self._roster.walk(first.position), self.patience):
            answer = question.fits(member)
            if not isinstance(answer, NoFit):
                return Fit(member.node.name, answer)
        counts: dict[Reason, int] = {}
        for member, positions in self._groups(question, first):
            answer = question.fits(member)
            if not isinstance(answer, NoFit):
                return Fit(member.node.name, answer)
            counts[answer.reason] = counts.get(answer.reason, 0) + len(positions)
        return _nowhere(counts)

    def fitting(self, claims: Sequence[ResourceClaim]) -> Fitting:
        """Return all nodes that fit, having asked about every node in the fleet's order."""
        question, first = self._question(claims), next(self._roster.walk(0), None)
        groups = () if first is None else self._groups(question, first)
        fitting = [
            tuple(positions) for member, positions in groups if not isinstance(question.fits(member), NoFit)
        ]
        return Fitting(self._roster.names, fitting)

    def _groups(self, question: Question, first: Member) -> Iterator[tuple[Member, list[int]]]:
        """Yield nodes that look alike, those together that come first, going round from one member on."""
        lens, roster = question.lens(first), self._roster
        panorama = self._panoramas.pop(lens, None) or Panorama()
        if len(self._panoramas) >= PANORAMAS_MAX:
            # The first is the one that was not used for longest.
            del self._panoramas[next(iter(self._panoramas))]
        self._panoramas[lens] = panorama
        panorama.follow(roster, lambda cell: question.look(cell, lens))
        for position, positions in panorama.firsts(first.position, len(roster.names)):
            member = roster.there(position)
            assert member is not None
            yield member, positions

    # --- changes

    def hold(self, claim: ResourceClaim) -> None:
        """Count what the claim is given by its status, instead of what it held before."""
        self._renew(self._ledger.hold(claim))

    def release(self, claim: Key) -> None:
        """Count nothing for the claim any more."""
        self._renew(self._ledger.release(claim))

    def put_node(self, node: Node) -> None:
        """Add a node at the end of the order, or change one where it stands."""
        self._look_from(self._roster.put(node))

    def drop_node(self, name: NodeName) -> None:
        """Remove a node."""
        self._disown(self._roster.members[name])
        self._roster.drop(name)
        self._sights.pools.places.forget(name)

    def put_classes(self, classes: Mapping[str, DeviceClass]) -> None:
        """Replace all classes."""
        self._classes = classes

    def put_slices(self, slices: Iterable[ResourceSlice]) -> None:
        """Replace all slices, which are told apart by identity.

        Costs a glance at each slice, and a look from each node whose own slices changed; from every node where
        a change concerns several.
        """
        before = self._sights.pools
        after = Pools(slices, self._features, before)
        self._sights.pools = after
        names = _concerned(before, after)
        members = self._roster.members
        for member in (
            members.values() if names is None else [members[one] for one in names if one in members]
        ):
            self._look_from(member)
        for key, pool in before.pools.items():
            if after.pools.get(key) is not pool:
                self._ledger.forget(pool)
                self._sights.forget(pool)

    def _question(self, claims: Sequence[ResourceClaim]) -> Question:
        # Readers remember every claim they read; this one lives no longer than the question.
        return Question(claims, Reader(self._classes, self._features, self._selectors), self._sights)

    def _renew(self, changes: Changes) -> None:
        members = self._roster.members
        for pool, entry in changes:
            if entry is not None and entry.place.node_name in members:
                self._roster.touch(members[entry.place.node_name].position)
            for member in self._owners.get(pool, ()):
                for one in member.sights:
                    if isinstance(one, Own) and one.pool is pool and self._sights.renew(one):
                        self._roster.settle(member)

    def _look_from(self, member: Member) -> None:
        self._disown(member)
        try:
            member.sights, member.fault = self._sights.of(member.node, member.sights), ""
        except AllocationError as error:
            member.sights, member.fault = (), str(error)
        for one in member.sights:
            if isinstance(one, Own):
                self._owners.setdefault(one.pool, []).append(member)
        self._roster.settle(member)

    def _disown(self, member: Member) -> None:
        for one in member.sights:
            if isinstance(one, Own):
                self._owners[one.pool].remove(member)
                if not self._owners[one.pool]:
                    del self._owners[one.pool]


def _nowhere(counts: Mapping[Reason, int]) -> Nowhere:
    return Nowhere(tuple(sorted(counts.items())))


def _concerned(before: Pools, after: Pools) -> tuple[NodeName, ...] | None:
    """Return the nodes that can tell the difference; None where all may."""
    if after.places is not before.places:
        return None
    names: dict[NodeName, None] = {}
    for one, other in ((before, after), (after, before)):
        for id_, listing in one.listings.items():
            if other.listings.get(id_) is listing:
                continue
            owners = dict.fromkeys((*before.owners(listing.pool), *after.owners(listing.pool)))
            if EVERYBODY in owners:
                return None
            names.update(owners)
    return tuple(names)
