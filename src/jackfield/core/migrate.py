"""From CoHDI to Jackfield, step by step: what was done, what is in the way, what comes next.

Each step can be undone, the last one first. Knows the order of the steps and what each waits for. Must not know how
a step is carried out, nor who asks.
"""

from collections.abc import Iterator
from enum import StrEnum

import msgspec

from jackfield.core import derive
from jackfield.core.derive import Derived
from jackfield.model.cohdi import READY_TO_DETACH, Installation
from jackfield.model.composition import ComposableResource, ResourceState

UNDER_WAY = (ResourceState.NEW, ResourceState.ATTACHING, ResourceState.DETACHING, ResourceState.DELETING)
NAMED_MAX = 5
"""Objects that a line names; the rest are counted."""


class Step(StrEnum):
    """What is done, in this order."""

    PROTECT = "protect"
    STOP = "stop"
    START = "start"
    UNINSTALL = "uninstall"
    RETURN = "return"


class Stage(msgspec.Struct, frozen=True):
    """A step, and how far it is."""

    step: Step
    done: bool
    what: str
    """What it does, or did."""
    obstacles: tuple[str, ...] = ()
    """What must be seen to before."""
    command: str = ""
    """What an operator types; empty where `--apply` does it."""


class Report(msgspec.Struct, frozen=True):
    """Where a migration stands."""

    found: tuple[str, ...]
    """What there is."""
    notes: tuple[str, ...]
    """What an operator should know."""
    stages: tuple[Stage, ...]
    no_way_back: tuple[str, ...] = ()
    """What must be seen to before the last step may be undone."""

    @property
    def next(self) -> Stage | None:
        """The first step that is not done; None when all are."""
        return next((one for one in self.stages if not one.done), None)

    @property
    def last(self) -> Stage | None:
        """The last step that `--undo` can undo; None where there is none."""
        done = [one for one in self.stages if one.done and one.step in {Step.PROTECT, Step.STOP}]
        return done[-1] if done else None


def report(there: Installation) -> Report:
    """Return where the migration of a cluster stands."""
    came_to = derive.derived(there.settings)
    stages = (
        _protect(there, came_to),
        _stop(there),
        _start(there, came_to),
        _uninstall(there),
        _return(there),
    )
    return Report(
        tuple(_found(there, came_to)), tuple(_notes(there, came_to)), stages, tuple(_no_way_back(there))
    )


def _no_way_back(there: Installation) -> Iterator[str]:
    if there.replicas:
        yield (
            f"Jackfield still runs ({_few(list(there.replicas))}): stop it first, or both would attach and detach; if "
            "it does not run any more, delete its Lease in namespace jackfield-controllers"
        )


def _found(there: Installation, came_to: Derived) -> Iterator[str]:
    programs = derive.running(there.settings)
    yield f"CoHDI: {_few([one.name for one in programs])} running" if programs else "CoHDI: none of it runs"
    if there.release is not None:
        yield f"Helm: release {there.release.name} in namespace {there.release.namespace}"
    counts = {
        state: sum(one.state is state for one in there.resources)
        for state in ResourceState
        if there.resources
    }
    states = ", ".join(f"{count} {state or 'new'}" for state, count in counts.items() if count)
    yield f"books: {len(there.requests)} requests, {len(there.resources)} resources{f': {states}' if states else ''}"
    models = _few([f"{one.cdi_model_name} ({one.driver_name})" for one in came_to.policy.models])
    yield f"models: {models or 'none'}"
    for one in came_to.managers:
        yield f"fabric {one.name}: {one.type} at {one.url or 'an unknown address'}, {len(one.machines)} nodes"


def _notes(there: Installation, came_to: Derived) -> Iterator[str]:
    yield from came_to.notes
    drivers = dict.fromkeys(one.driver_name for one in came_to.policy.models if not one.binds)
    if drivers and there.settings.programs:
        yield (
            f"for devices of {_few(list(drivers))} Jackfield does nothing on the nodes, where CoHDI's operator "
            "restarts the driver's plugin and drains GPUs; read about it in docs/migration.md before you stop CoHDI"
        )
    taking = [one.metadata.name for one in there.resources if READY_TO_DETACH in one.metadata.labels]
    if taking:
        yield (
            f"{_few(taking)} would detach devices that CoHDI did not attach: Jackfield leaves them alone; delete them, "
            "or attach and use the devices"
        )
    listed = [one.cdi_model_name for one in came_to.policy.models]
    other = sorted({str(one.spec.model) for one in there.resources if one.spec.model not in listed})
    if other:
        yield f"resources of {_few(other)} stay as they are: device-info does not list the model"


# --- the steps


def _protect(there: Installation, came_to: Derived) -> Stage:
    release = there.release
    remembered = not derive.environment(there.settings).keys() - there.settings.remembered.keys()
    kept = release is None or not release.lost
    what = "what Jackfield needs of CoHDI outlives its uninstall: both definitions with all books, ConfigMap, Secret"
    gates = tuple(there.gates)
    missing = () if there.definitions else ("CoHDI's definitions are not there: nothing is to be taken over",)
    config = came_to.faults if not there.settings.there else ()
    return Stage(Step.PROTECT, kept and remembered, what, (*gates, *missing, *config))


def _stop(there: Installation) -> Stage:
    running = derive.running(there.settings)
    what = "CoHDI's Deployments have no replicas, and its webhook is not asked"
    waits = _under_way(there) if running else ()
    return Stage(Step.STOP, not running and not there.asks_webhook, what, waits)


def _under_way(there: Installation) -> tuple[str, ...]:
    """Orders that CoHDI has not finished: only CoHDI knows what it asked of the manager."""
    moving = [one for one in there.resources if one.state in UNDER_WAY or one.deleting]
    return tuple(_unfinished(one) for one in moving)


def _unfinished(one: ComposableResource) -> str:
    state = "is being deleted" if one.deleting else f"is {one.state.value or 'new'}"
    error = f" ({one.status.error})" if one.status.error else ""
    return f"ComposableResource {one.metadata.name} on {one.node} {state}{error}: let CoHDI finish it first"


def _start(there: Installation, came_to: Derived) -> Stage:
    what = f"Jackfield runs: {_few(list(there.replicas))}" if there.replicas else "Jackfield runs"
    rights = "jackfield rbac --part controllers --cohdi" + "".join(
        f" --driver {one}" for one in dict.fromkeys(one.driver_name for one in came_to.policy.models)
    )
    command = f"{rights} | kubectl apply -f -; then start jackfield run without --policy and --fabrics"
    return Stage(Step.START, bool(there.replicas), what, came_to.faults, command)


def _uninstall(there: Installation) -> Stage:
    gone = there.release is None and not there.settings.programs
    what = "CoHDI is uninstalled; from here on there is no way back but to install it anew"
    release = there.release
    command = f"helm uninstall {release.name} --namespace {release.namespace}" if release is not None else ""
    by_hand = command or "delete CoHDI's Deployments, as they were installed; leave its definitions"
    return Stage(Step.UNINSTALL, gone, what, (), "" if gone else by_hand)


def _return(there: Installation) -> Stage:
    theirs = [one for one in there.requests if one.metadata.name.startswith("composability-")]
    what = "devices that CoHDI's scaler asked for go back to the pool when their pods end"
    names = " ".join(one.metadata.name for one in theirs)
    command = f"kubectl delete --wait=false composabilityrequests {names}" if theirs else ""
    return Stage(Step.RETURN, not theirs, what, (), command)


def _few(names: list[str]) -> str:
    shown = ", ".join(names[:NAMED_MAX])
    return shown if len(names) <= NAMED_MAX else f"{shown} and {len(names) - NAMED_MAX} more"
