"""`jackfield check`: what must not be, on a live cluster; why it matters, and what to do about it.

The same checkers as after every event of a simulation. A list of one kind is older than that of the next, and much is
under way at any moment: so what is found is looked for once more a while later, and only what is still so is told.
Knows how often to look and what to print. Must not know what is right: that is `core.check`'s.
"""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Final

import click
import msgspec

from jackfield.cli import live
from jackfield.cli.output import FAILED, OK, UNUSABLE, as_json
from jackfield.core import check
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposableResource
from jackfield.model.names import Seconds, seconds
from jackfield.model.node import Node
from jackfield.model.taint import DeviceTaintRule

NO_REPLICA: Final = "no-replica"
SILENT_MANAGER: Final = "silent-manager"
MEANINGS: Final[Mapping[str, check.Meaning]] = {
    **{str(checker): meaning for checker, meaning in check.MEANINGS.items()},
    NO_REPLICA: check.Meaning(
        "Nothing is attached, detached or tidied up: whoever waits for a device waits in vain.",
        "See whether the controllers' pods run and what their log says last: `kubectl -n jackfield get pods`.",
    ),
    SILENT_MANAGER: check.Meaning(
        "What it has attached is not known, and no order reaches it; devices that are in use stay so.",
        "See whether the manager runs and can be reached from here, and whether its password is still right.",
    ),
}
"""What each fault means, those included that only a look at processes shows."""


class Wrong(msgspec.Struct, frozen=True, order=True):
    """Something that is wrong."""

    object: str
    checker: str
    what: str


class Looked(msgspec.Struct, frozen=True):
    """How much was looked at."""

    fabrics: int
    nodes: int
    claims: int
    resources: int

    def __str__(self) -> str:
        """Say it in words."""
        counts = {
            "fabric": self.fabrics,
            "node": self.nodes,
            "claim": self.claims,
            "ComposableResource": self.resources,
        }
        return ", ".join(f"{count} {name}{'' if count == 1 else 's'}" for name, count in counts.items())


def run(given: live.Given, *, wait: Seconds, as_json: bool) -> int:
    """Look, once more if anything is found, and print what is wrong; return the exit status."""
    try:
        first = asyncio.run(live.look(given))
        wrong = tuple(dict.fromkeys(faults(first)))
        unread = unseen(first)
        if wrong and not unread:
            asyncio.run(asyncio.sleep(wait))  # noqa: TID251 - a person's time
            again = asyncio.run(live.look(given))
            still, unread = [*faults(again)], unseen(again)
            wrong = tuple(one for one in wrong if one in still)
    except live.UNREADABLE as error:
        click.echo(f"jackfield check: {error}", err=True)
        return UNUSABLE
    if unread:
        for words in unread:
            click.echo(f"jackfield check: {words}", err=True)
        return UNUSABLE
    for line in objects(wrong) if as_json else lines(wrong, looked(first)):
        click.echo(line)
    return FAILED if wrong else OK


def unseen(seen: live.Seen) -> tuple[str, ...]:
    """Return what the API server did not show and without which nothing can be said."""
    if seen.shows_nothing:
        return (seen.shows_nothing,)
    taints = (
        DeviceTaintRule.__name__
    )  # a server may not have these, and then there is nothing to be wrong with them
    return tuple(
        f"the API server does not show every {kind}, so that nothing can be said: {words}. "
        "`kubectl auth can-i --list` says what this account may read"
        for kind, words in seen.unread.items()
        if kind != taints
    )


def looked(seen: live.Seen) -> Looked:
    """Return how much was looked at."""
    store = seen.store
    counted = (len(store.all(kind)) for kind in (Node, ResourceClaim, ComposableResource))
    return Looked(len(store.fabrics()) + len(seen.silent), *counted)


# --- looking


def faults(seen: live.Seen) -> Iterator[Wrong]:
    """Return what looks wrong at this moment; some of it may only be under way."""
    store, policy = seen.store, seen.store.policy
    leases = (seconds(one.spec.renew_time) + 2 * one.spec.lease_duration_seconds for one in seen.replicas)
    if not any(until > seen.at for until in leases):
        yield Wrong("jackfield run", NO_REPLICA, "no replica of the controllers has a lease that is good")
    for fabric, words in seen.silent.items():
        yield Wrong(f"fabric/{fabric}", SILENT_MANAGER, f"its manager does not answer: {words}")
    for fault in _found(seen):
        yield Wrong(fault.object, fault.checker, fault.what)
    for fabric in store.fabrics():
        for fault in check.of_fabric(store, fabric, policy):
            yield Wrong(fault.object, fault.checker, fault.what)


def _found(seen: live.Seen) -> Iterator[check.Fault]:
    store, policy = seen.store, seen.store.policy
    for kind in store.kinds():
        for one in store.all(kind):
            yield from check.state(store, one, policy)
            late = check.overdue(one, policy, seen.at)
            for fault in check.at_rest(store, one, policy, seen.at):
                if late or fault.checker is not check.Checker.STUCK:
                    yield fault


# --- telling


def lines(wrong: tuple[Wrong, ...], looked: Looked) -> Iterator[str]:
    """Return what is wrong as text, with why it matters and what to do, and how much was looked at."""
    for one in sorted(wrong):
        meaning = MEANINGS[one.checker]
        yield f"{one.object}: {one.what}  [{one.checker}]"
        yield f"    why it matters: {meaning.why}"
        yield f"    what to do:     {meaning.remedy}"
        yield ""
    count = f"{len(wrong)} thing{' is' if len(wrong) == 1 else 's are'} wrong" if wrong else "all is well"
    yield f"{count}; looked at {looked}"


def objects(wrong: tuple[Wrong, ...]) -> Iterator[str]:
    """Return what is wrong as JSON, an object a line."""
    for one in sorted(wrong):
        meaning = MEANINGS[one.checker]
        yield as_json({**msgspec.to_builtins(one), "why": meaning.why, "remedy": meaning.remedy})
