"""Reasons → sentences for somebody who was woken up: what, why, and what to do.

Knows words. Must not know anything that is not in the value.
"""

from collections.abc import Sequence
from typing import Final

from jackfield.core.allocate.causes import ELSEWHERE, NOT_COMPILED
from jackfield.core.allocate.outcome import Reason
from jackfield.core.allocate.reasons import Cause, Everywhere, Group, Miss, Removed, RequestWhy, Step, Why

ALTERNATIVES_MAX: Final = 4
"""So many alternatives of a request are told of in sentences; the value has all."""
_TOLD_MAX: Final = 2
"""So many causes are told for a step."""
_CAUSES_MAX: Final = 4
"""So many causes are told for a device."""

_END: Final = "\n"
_SELECTING: Final = frozenset((Step.CLASS, Step.SELECTOR))
_STEPS: Final = {
    Step.NODE: "for other nodes",
    Step.POOL: "in pools that cannot be used",
    Step.GATE: "in need of a feature gate that is off",
    Step.CLASS: "not of the class",
    Step.SELECTOR: "not selected",
    Step.FAULT: "such that they cannot be judged",
    Step.IN_USE: "in use",
    Step.TAKEN: "taken by other requests of the same pod",
    Step.COUNTER: "short of shared counters",
    Step.TAINT: "tainted",
    Step.CONSTRAINT: "excluded by a constraint",
    Step.CAPACITY: "short of capacity",
    Step.LIMIT: "more than one claim may hold",
}
"""Completes "so many devices are"."""

_TEMPLATES: Final = {
    Step.POOL: "in pool {rule}, which is {seen}",
    Step.GATE: "in need of the feature gate {rule}, which is off",
    Step.FAULT: "not to be judged, as {source} fails at {rule}: {seen}",
    Step.TAKEN: "taken by {seen}",
    Step.COUNTER: "short of counter {rule}: {wanted} needed, {seen}",
    Step.TAINT: "tainted with {rule}, which the request does not tolerate",
    Step.CONSTRAINT: "excluded by {source}, {rule}: {wanted} wanted, {seen}",
    Step.CAPACITY: "short of {rule}: {wanted} asked for, {seen}",
    Step.LIMIT: "beyond what one claim may hold: {wanted}, and this one would hold {seen}",
}
"""Completes "the device is"."""

_ADVICE: Final = {
    Step.NODE: "try another node, or let the device's slice be used from this one",
    Step.POOL: "look at the driver that publishes the pool: it is in the middle of an update, or stopped in one",
    Step.GATE: "turn the gate on in kube-scheduler, or ask for other devices",
    Step.CLASS: "check the request's deviceClassName, and whether the driver runs on this node",
    Step.SELECTOR: "loosen the selector, or attach devices that satisfy it",
    Step.FAULT: (
        "make the selector bear devices that lack what it looks at, for example with "
        '"name" in device.attributes["domain"], or correct the device in its slice'
    ),
    Step.IN_USE: "wait for it to be released, or delete the claim that holds it",
    Step.TAKEN: "ask for fewer devices in one pod, or attach more to the node",
    Step.COUNTER: "release other partitions of the same device, or ask for a smaller one",
    Step.TAINT: "find out why it is tainted; if that does no harm, tolerate the taint in the request",
    Step.CONSTRAINT: "ask for fewer devices that must agree or differ, or drop the constraint",
    Step.CAPACITY: "ask for less, or for a larger device; wait if others use a share of it",
    Step.LIMIT: "split the claim in two",
}
"""Completes "to do:"."""


def sentences(why: Why) -> tuple[str, ...]:
    """Return what a node lacks, why, and what can be done about it."""
    if why.fits:
        return (f"Node {why.node} fits.",)
    if why.aborts:
        # The compiler's words go on with a picture of the expression, which is no sentence.
        error = why.verdict.partition(_END)[0]
        head = f"No node can be judged, as the scheduler stops with an error: {error}."
    else:
        head = f"Node {why.node} does not fit: {why.verdict}."
    told = why.stuck[:ALTERNATIVES_MAX]
    found = [head, *(sentence for one in told for sentence in _request(one))]
    if len(why.stuck) > len(told):
        found.append(f"{len(why.stuck) - len(told)} more alternatives are no better.")
    short = [
        f"{one.request} ({one.had} of {one.wanted})" for one in why.requests if not one.stuck and one.missing
    ]
    if short:
        found.append(f"Also short: request {', '.join(short[:ALTERNATIVES_MAX])}.")
    return (*found, f"To do: {_advice(why)}.")


def sentences_everywhere(everywhere: Everywhere) -> tuple[str, ...]:
    """Return how many nodes fit, or why they do not, and all about the one that came nearest."""
    count = everywhere.nodes
    if not count:
        return ("There are no nodes.",)
    if everywhere.fitting:
        verb = "fits" if everywhere.fitting == 1 else "fit"
        head = f"{everywhere.fitting:,} of {_nodes(count)} {verb}."
    else:
        head = f"None of {_nodes(count)} fits." if count > 1 else "The only node does not fit."
    reasons = [
        f"on {_nodes(one.nodes)} the nearest devices are {_STEPS[Step(one.reason)]}"
        if one.reason in _STEPS
        else f"{_nodes(one.nodes)}: {one.reason.partition(_END)[0]}"
        for one in everywhere.reasons
    ]
    found = [head, *([f"{_capital('; '.join(reasons))}."] if reasons else [])]
    for why in everywhere.nearest:
        _, *rest = sentences(why)
        found.extend(rest if why.aborts else (f"Node {why.node} came nearest.", *rest))
    return tuple(found)


def cause_words(cause: Cause) -> str:
    """Return what completes "the device is"."""
    match cause.step:
        case Step.NODE if cause.rule == ELSEWHERE:
            return f"for node {cause.wanted}" if cause.wanted else "for other nodes by name"
        case Step.NODE:
            return f"for nodes with {cause.rule}, but {cause.seen}" if cause.seen else f"for {cause.rule}"
        case Step.CLASS | Step.SELECTOR:
            answer = "false" if cause.wanted == "true" else "true"
            return f"turned down by {cause.source}: {cause.rule} is {answer}{_as(cause)}"
        case Step.FAULT if not cause.rule:
            return f"unreadable: {cause.seen}"
        case Step.IN_USE:
            return f"in use by {cause.seen}" if cause.seen else "in use"
        case _:
            return _TEMPLATES[cause.step].format(
                rule=cause.rule, wanted=cause.wanted, seen=_found(cause), source=cause.source
            )


def _found(cause: Cause) -> str:
    """Return what was found of a value or an amount that was asked for."""
    if cause.step not in {Step.CONSTRAINT, Step.CAPACITY} or cause.seen.startswith("only "):
        return cause.seen
    return "none found" if cause.seen == "absent" else f"{cause.seen} found"


def _request(one: RequestWhy) -> tuple[str, ...]:
    wish = "all devices that it means" if one.every else _devices(one.wanted)
    got = f"gets {one.had:,} of {one.wanted:,}" if one.every else f"gets {one.had:,}"
    if one.every and not one.wanted:
        got = "means none"
    found = [
        f"Claim {one.claim}, request {one.request} wants {wish} and {got}, with {_devices(one.devices)} looked at."
    ]
    if one.removed:
        found.append(f"{_capital('; '.join(map(_removed, one.removed)))}.")
    if one.left:
        found.append(f"{_capital(_are(one.left))} left.")
    if one.nearest:
        found.append(f"Nearest: {_nearest(one.nearest)}.")
    else:
        found.append("There are no others.")
    return tuple(found)


def _removed(one: Removed) -> str:
    """Return how many drop out at a step and why, those together that the same rule turns down."""
    rules: dict[str, list[Group]] = {}
    for each in one.groups[:_TOLD_MAX]:
        rules.setdefault(_rule(each.cause), []).append(each)
    told = [_turned_down(rule, groups, one.devices) for rule, groups in rules.items()]
    rest = one.devices - sum(each.devices for each in one.groups[:_TOLD_MAX])
    if len(told) == 1 and not rest:
        return f"{_are(one.devices)} {told[0]}"
    others = [f"{rest:,} for other causes"] if rest else []
    return f"{_are(one.devices)} {_STEPS[one.step]} ({'; '.join((*told, *others))})"


def _rule(cause: Cause) -> str:
    """Return the words of a cause without the value that an expression saw."""
    return cause_words(cause).removesuffix(_as(cause))


def _as(cause: Cause) -> str:
    return f", as {cause.seen}" if cause.seen and cause.step in _SELECTING else ""


def _turned_down(rule: str, groups: Sequence[Group], of: int) -> str:
    first = groups[0]
    if len(groups) == 1:
        return ("" if first.devices == of else f"{first.devices:,} ") + cause_words(first.cause)
    return f"{rule}, {', '.join(f'{one.devices:,} as {one.cause.seen}' for one in groups)}"


def _nearest(misses: Sequence[Miss]) -> str:
    together: dict[tuple[Cause, ...], list[str]] = {}
    for one in misses:
        together.setdefault(one.causes, []).append(str(one.device))
    return "; ".join(
        f"{_listed(names)} {'is' if len(names) == 1 else 'are'} "
        f"{', and '.join(map(cause_words, causes[:_CAUSES_MAX]))}"
        for causes, names in together.items()
    )


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def _advice(why: Why) -> str:
    if why.verdict == Reason.SEARCH_LIMIT:
        return "simplify the claim, as there are too many ways to combine devices: fewer requests, narrower selectors"
    misses = [one.nearest[0] for one in why.stuck if one.nearest]
    if misses:
        return "; then ".join(dict.fromkeys(map(_remedy, misses[0].causes)))
    if why.aborts:
        return "correct the claim or its class; no other node and no more devices would help"
    return "attach more devices, or ask for fewer"


def _remedy(cause: Cause) -> str:
    if cause.seen.startswith(NOT_COMPILED):
        return "correct the selector; `jackfield dra cel --explain` says what to write instead"
    return _ADVICE[cause.step]


def _are(count: int) -> str:
    return f"{count:,} {'is' if count == 1 else 'are'}"


def _devices(count: int) -> str:
    return f"{count:,} device{'' if count == 1 else 's'}"


def _nodes(count: int) -> str:
    return f"{count:,} node{'' if count == 1 else 's'}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
