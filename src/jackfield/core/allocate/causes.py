"""All that keeps one device from one request on one node.

Knows the order in which it is looked at: the node, gates, selectors, then what others have. Must not know how many
devices there are.
"""

from collections.abc import Hashable, Iterator, Sequence
from typing import Final

from jackfield.core import cel
from jackfield.core.allocate.gathering import Seen
from jackfield.core.allocate.nodes import mismatch
from jackfield.core.allocate.offers import Entry, Place
from jackfield.core.allocate.outcome import AllocationError
from jackfield.core.allocate.pools import Candidate, Pool
from jackfield.core.allocate.reasons import Cause, Step, cut
from jackfield.core.allocate.requests import Ask
from jackfield.core.allocate.selectors import Answer, Matcher, Selectors
from jackfield.core.allocate.trial import Trial
from jackfield.core.cel.paths import ALL
from jackfield.model.node import Node

ELSEWHERE: Final = "nodeName"
"""The rule by which a device is for one node, by name."""
NOT_COMPILED: Final = "CEL compile error: "
BINDING: Final = "DRADeviceBindingConditions"
DISTINCT_MAX: Final = 256
"""For so many kinds of device the part of a selector is looked for that says no; the others just fail the selector."""


def misplacement(place: Place, node: Node) -> Cause:
    """Return why something cannot be used from a node that is not in its place."""
    if place.node_name:
        return Cause(Step.NODE, ELSEWHERE, place.node_name, node.name)
    if place.selector is None:
        return Cause(Step.NODE, "nodeName, nodeSelector or allNodes", seen="none is set")
    rule, seen = mismatch(place.selector, node)
    return Cause(Step.NODE, cut(rule), seen=cut(seen))


def closure(pool: Pool) -> Cause:
    """Return why no device of a pool can be had."""
    return Cause(Step.POOL, str(pool), seen=f"{pool.state}: {pool.flaw}")


class Selection:
    """Which part of a selector says no, found out once for devices that look alike to it."""

    def __init__(self, selectors: Selectors, *, lists: bool) -> None:
        self._selectors = selectors
        self._lists = lists
        self._known: dict[str, dict[Hashable, Cause | None]] = {}
        self._paths: dict[str, tuple[cel.Path, ...]] = {}
        self._causes: dict[tuple[Matcher, str, bytes], tuple[Cause, ...]] = {}

    def causes(self, ask: Ask, entry: Entry) -> tuple[Cause, ...]:
        """Return for each selector that does not mean the device the part that says no, and what it saw."""
        if ask.matcher.verdict(entry) is Answer.MEANT:
            return ()
        key = (ask.matcher, ask.device_class.metadata.name, entry.fingerprint)
        known = self._causes.get(key)
        if known is None:
            known = self._causes[key] = tuple(self._denials(ask, entry))
        return known

    def _denials(self, ask: Ask, entry: Entry) -> Iterator[Cause]:
        name = ask.device_class.metadata.name
        for owner, expressions, step in (
            (f"class {name} selectors", ask.matcher.of_class, Step.CLASS),
            ("selectors", ask.matcher.expressions, Step.SELECTOR),
        ):
            for index, expression in enumerate(expressions):
                found = self._cause(expression, entry)
                if found is not None:
                    verdict = step if found.step is not Step.FAULT else Step.FAULT
                    yield Cause(verdict, found.rule, found.wanted, found.seen, f"{owner}[{index}]")

    def _cause(self, expression: str, entry: Entry) -> Cause | None:
        try:
            program = self._selectors.program(expression, lists=self._lists)
        except cel.CompileError as error:
            words = f"{NOT_COMPILED}{error}".partition("\n")[0]
            return Cause(Step.FAULT, cut(expression), "an answer", cut(words))
        known = self._known.setdefault(expression, {})
        if expression not in self._paths:
            self._paths[expression] = program.paths
        key = _projection(self._paths[expression], entry)
        if key not in known:
            if len(known) >= DISTINCT_MAX:
                return _whole(program, entry)
            known[key] = _explained(program, entry)
        return known[key]


def _explained(program: cel.Program, entry: Entry) -> Cause | None:
    whole = _whole(program, entry)
    if whole is None:
        return None
    reason = cel.why_not(program, entry.subject)
    rule = cut(reason.expression or program.checked.source)
    seen = ", ".join(f"{one.part} is {one.value}" for one in reason.seen)
    if whole.step is Step.FAULT:
        seen = f"{whole.seen} ({seen})" if seen else whole.seen
        return Cause(Step.FAULT, rule, "an answer", cut(seen))
    return Cause(Step.SELECTOR, rule, "true" if reason.wanted else "false", cut(seen))


def _whole(program: cel.Program, entry: Entry) -> Cause | None:
    text = cut(program.checked.source)
    try:
        if program.matches(entry.subject):
            return None
    except cel.EvaluationError as error:
        return Cause(Step.FAULT, text, "an answer", cut(f"CEL runtime error: {error}"))
    return Cause(Step.SELECTOR, text, "true")


def _projection(paths: Sequence[cel.Path], entry: Entry) -> Hashable:
    """Return all of a device that an expression looks at: devices equal in it get the same answer."""
    device, driver = entry.device, entry.id.driver
    parts: list[Hashable] = [driver, entry.subject.fault, entry.subject.list_fault]
    for path in paths:
        if ALL in (path.domain, path.name):
            return entry.fingerprint
        bare = path.name if path.domain == driver else ""
        full = f"{path.domain}/{path.name}"
        match path.field:
            case "attributes":
                parts.append((device.attributes.get(full), device.attributes.get(bare)))
            case "capacity":
                parts.append((device.capacity.get(full), device.capacity.get(bare)))
            case _:
                parts.append(device.allow_multiple_allocations)
    return tuple(parts)


def wherever(selection: Selection, trial: Trial, claim: int, ask: Ask, one: Candidate) -> Iterator[Cause]:
    """Yield what keeps a device from a request on any node. Raises AllocationError where it cannot be read."""
    if not one.pool.offers(one.entry):
        yield Cause(Step.GATE, BINDING, "on", "off")
    yield from selection.causes(ask, one.entry)
    yield from trial.causes(claim, ask, one)


class Judge:
    """Says of devices what keeps them from one request, given what an attempt has chosen."""

    def __init__(self, seen: Seen, selection: Selection, trial: Trial, limit: tuple[Cause, ...] = ()) -> None:
        """Take what keeps every device from the request as the limit."""
        self._limit = limit
        self._seen = seen
        self._selection = selection
        self._trial = trial
        self._placed: dict[Place, tuple[Cause, ...]] = {}

    def causes(self, claim: int, ask: Ask, one: Candidate) -> Iterator[Cause]:
        """Yield all that keeps the device from the request; the first is where it drops out."""
        try:
            yield from self._where(one.entry)
            yield from wherever(self._selection, self._trial, claim, ask, one)
            yield from self._limit
        except AllocationError as error:
            # Something about the device cannot be read. A search that never came to it did not mind.
            yield Cause(Step.FAULT, seen=cut(str(error)))

    def elsewhere(self, ask: Ask, entry: Entry, cause: Cause) -> Iterator[Cause]:
        """Yield likewise for a device that the node does not see for a cause, as far as that can be told."""
        yield cause
        yield from self._selection.causes(ask, entry)
        yield from self._trial.causes_outside(ask, entry)

    def _where(self, entry: Entry) -> Sequence[Cause]:
        place = entry.place
        known = self._placed.get(place)
        if known is None:
            here = self._seen.here(entry)
            known = self._placed[place] = () if here else (misplacement(place, self._seen.node),)
        return known
