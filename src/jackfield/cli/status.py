"""`jackfield status`: one screen that says how things stand.

Knows how an overview is laid out, and how much of it fits. Must not know what any of it means.
"""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Final

import click
import msgspec

from jackfield.cli import live
from jackfield.cli.output import FAILED, OK, UNUSABLE, as_json
from jackfield.core import overview
from jackfield.core.lead import Replica, living
from jackfield.core.overview import FabricLine, NodeLine, Objects, Overview
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposabilityRequest, ComposableResource
from jackfield.model.names import Seconds, seconds
from jackfield.model.node import Node

LINES_MAX: Final = 8
"""Lines of a section that are shown; the rest are counted. What has a trouble comes first."""
NAMES_MAX: Final = 3
"""Names in a line; the rest are counted."""
NOTHING: Final = "none"


def run(given: live.Given, *, everything: bool, as_json: bool) -> int:
    """Look, and print what was seen; return the exit status."""
    try:
        seen = asyncio.run(live.look(given))
    except live.UNREADABLE as error:
        click.echo(f"jackfield status: {error}", err=True)
        return UNUSABLE
    found = seen_as_a_whole(seen)
    wrong = tuple(troubles(seen, found))
    if as_json:
        click.echo(_json(found, wrong))
    else:
        for line in lines(found, wrong, limit=None if everything else LINES_MAX):
            click.echo(line)
    return FAILED if wrong else OK


def seen_as_a_whole(seen: live.Seen) -> Overview:
    """Return the overview of what was seen."""
    store = seen.store
    # A lease is renewed by its owner's clock and judged by ours: an operator's may be off by more than it lasts.
    leases = tuple(
        Replica(
            one.metadata.name, Seconds(seconds(one.spec.renew_time) + 2 * one.spec.lease_duration_seconds)
        )
        for one in seen.replicas
    )
    objects = Objects(
        claims=tuple(one for one in store.all(ResourceClaim) if isinstance(one, ResourceClaim)),
        requests=tuple(
            one for one in store.all(ComposabilityRequest) if isinstance(one, ComposabilityRequest)
        ),
        resources=tuple(one for one in store.all(ComposableResource) if isinstance(one, ComposableResource)),
        nodes=tuple(one for one in store.all(Node) if isinstance(one, Node)),
        replicas=living(leases, seen.at),
        silent=seen.silent,
    )
    return overview.overview(store, objects, store.policy, seen.at)


def troubles(seen: live.Seen, found: Overview) -> Iterator[str]:
    """Return what somebody should see to."""
    if seen.shows_nothing:
        yield seen.shows_nothing
    else:
        for kind, words in seen.unread.items():
            yield f"the API server does not show every {kind}: {words}"
    if not found.replicas and not seen.unread:
        yield "no controller runs: nothing is attached or detached; look at the pods of the controllers and their logs"
    for fabric in found.fabrics:
        yield from _fabric_troubles(fabric, nodes_read=not seen.unread)
    for node in found.nodes:
        if node.trouble:
            yield f"node {node.name}: {node.trouble}"
    for finding in found.findings:
        if finding.grave:
            yield f"{finding.object}: {finding.what}"


def _fabric_troubles(fabric: FabricLine, *, nodes_read: bool) -> Iterator[str]:
    if fabric.trouble:
        yield f"the manager of fabric {fabric.name} does not answer: {fabric.trouble}"
    if fabric.unknown and nodes_read:
        yield (
            f"no machine of fabric {fabric.name} is a node of this cluster, so nothing can be attached: its manager "
            f"calls them {_few(fabric.unknown)}; have them called as the nodes are (kubectl get nodes), there, or by "
            "the option machines where its adapter has one"
        )


def _few(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else ""
    return f"{', '.join(names[:NAMES_MAX])}{more}"


def _json(found: Overview, wrong: tuple[str, ...]) -> str:
    return as_json({**msgspec.to_builtins(found), "troubles": wrong})


# --- the screen


def lines(found: Overview, wrong: tuple[str, ...], limit: int | None) -> Iterator[str]:
    """Return the screen, from what is there down to what is wrong with it."""
    yield from _fabrics(found)
    yield from _section("NODES", _nodes(found), limit)
    yield from _section("ORDERS UNDER WAY", _orders(found), limit)
    yield from _section("WHO WAITS, AND FOR WHAT", _waits(found), limit)
    yield from _section("NOT RIGHT", wrong, limit)


def _fabrics(found: Overview) -> Iterator[str]:
    running = ", ".join(found.replicas) or "no replica"
    yield f"{running} at work"
    row = "{:<16} {:<24} {:>6} {:>10} {:>7} {:>6} {:>10} {:>9} {:>10}  {}"
    yield ""
    yield row.format(
        *("FABRIC", "MODEL", "FREE", "ATTACHING", "IN USE", "IDLE", "DETACHING", "OTHERS'", "UNHEALTHY"),
        "LED BY",
    ).rstrip()
    for fabric in found.fabrics:
        leader = fabric.leader or "nobody"
        if fabric.trouble:
            leader += "; its manager does not answer"
        for stock in fabric.stocks:
            counts = (stock.free, stock.attaching, stock.in_use, stock.idle, stock.detaching)
            yield row.format(
                fabric.name, stock.model, *counts, stock.foreign, stock.unhealthy, leader
            ).rstrip()


def _nodes(found: Overview) -> list[str]:
    ordered = sorted(found.nodes, key=lambda one: (not one.trouble, -one.attached, one.name))
    row = "{:<28} {:<16} {:>9}  {:<18} {}"
    return [
        row.format(one.name, one.fabric, _filled(one), _heard(one.heard), one.trouble).rstrip()
        for one in ordered
    ]


def _filled(one: NodeLine) -> str:
    return f"{one.attached} of {'?' if one.slots == overview.UNKNOWN else one.slots}"


def _heard(age: Seconds) -> str:
    return "plugin never seen" if age == overview.NO_AGE else f"plugin {_span(age)} ago"


def _orders(found: Overview) -> list[str]:
    ordered = sorted(found.orders, key=lambda one: -one.age)
    return [
        f"{one.resource:<32} {one.state.lower():<10} {one.node:<24} {_span(one.age):>6}"
        + (f"  for claim {one.claim}" if one.claim else "")
        + (f": {one.what}" if one.what else "")
        for one in ordered
    ]


def _waits(found: Overview) -> list[str]:
    ordered = sorted(found.waits, key=lambda one: -one.age)
    return [
        f"{one.object} {_since(one.age)}{one.reason}: {one.what}"
        + (f" (pod {', '.join(one.pods)})" if one.pods and not one.object.startswith("pod/") else "")
        for one in ordered
    ]


def _section(title: str, rows: Iterable[str], limit: int | None) -> Iterator[str]:
    found = list(rows)
    yield ""
    yield title + ("" if found else f": {NOTHING}")
    shown = found if limit is None else found[:limit]
    yield from (f"  {one}" for one in shown)
    if len(found) > len(shown):
        yield f"  … and {len(found) - len(shown)} more; --all prints them"


def _since(age: Seconds) -> str:
    return "" if age == overview.NO_AGE else f"{_span(age)} "


def _span(age: Seconds) -> str:
    """Return a duration in two words at most; nobody at 3 a.m. divides by sixty."""
    if age == overview.NO_AGE:
        return "?"
    whole = int(age)
    if whole < 120:  # noqa: PLR2004 - two minutes
        return f"{whole}s"
    if whole < 7200:  # noqa: PLR2004 - two hours
        return f"{whole // 60}m"
    return f"{whole // 3600}h" if whole < 172800 else f"{whole // 86400}d"  # noqa: PLR2004 - two days
