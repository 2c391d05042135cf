"""When something last happened: to claims, to devices, and to what somebody else wrote under our names.

Knows what a change is a change to, and which came too late to be anybody's fault. Must not know who waits for it, nor
how long he may.
"""

from jackfield.core import check, naming
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposabilityRequest, ComposableResource, Record
from jackfield.model.meta import Object
from jackfield.model.names import Seconds, Uid
from jackfield.model.policy import Policy
from jackfield.model.view import View


class Changes:
    """Hears of every change, and tells since when somebody has waited while nothing happened."""

    def __init__(self, began: Seconds) -> None:
        self._at: dict[str, Seconds] = {}
        self._heard = 0
        self._given: dict[Uid, int] = {}
        """When claims were given what they have, counted in changes."""
        self._recorded: dict[Uid, int] = {}
        """When resources were recorded for whom they are, likewise."""
        self.fair_since = began
        """Since when nothing is wrong with anybody."""

    def note(self, old: Object | None, new: Object | None, now: Seconds) -> None:
        """Hear of a change. That something goes happens to it too: who waits for it is served next."""
        self._heard += 1
        for one in (old, new):
            match one:
                case ComposableResource():
                    self._at[f"device/{one.device}"] = now
                case ComposabilityRequest() if not one.scalers:
                    self._at[f"request/{one.metadata.name}"] = now
                case _:
                    pass
        if isinstance(new, ResourceClaim):
            self._at[f"claim/{new.key}"] = now
            if not isinstance(old, ResourceClaim) or (old.results, old.node) != (new.results, new.node):
                self._given[new.uid] = self._heard
        if isinstance(new, ComposableResource) and _record(old) != new.record:
            self._recorded[new.uid] = self._heard

    def judged(self, faults: tuple[check.Fault, ...], one: Object, view: View) -> tuple[check.Fault, ...]:
        """Return what is somebody's fault, of what is wrong with an object.

        A record that takes effect when its claim has long been given something else was right when it was sent. It
        serves nobody, as it is of another version of the claim (rule 8), and is forgotten as soon as it is heard of.
        """
        if not faults or not isinstance(one, ResourceClaim) or not self._recorded_late(one, view):
            return faults
        return tuple(fault for fault in faults if fault.checker is not check.Checker.RECORDED_ELSEWHERE)

    def _recorded_late(self, claim: ResourceClaim, view: View) -> bool:
        given = [result.id for result in claim.results]
        others = (each for each in view.resources_recording(claim.key) if each.device not in given)
        return all(self._recorded.get(each.uid, 0) > self._given.get(claim.uid, 0) for each in others)

    def since(self, claim: ResourceClaim) -> Seconds:
        """Return since when nothing has happened to a claim or to what it was given."""
        return self._latest(f"claim/{claim.key}", *(f"device/{result.id}" for result in claim.results))

    def unblocked_since(self, claim: ResourceClaim, policy: Policy) -> Seconds:
        """Return since when nobody else has had a request under the name of ours for the claim's node."""
        return self._latest(*(f"request/{naming.request(claim.node, model)}" for model in policy.models))

    def _latest(self, *names: str) -> Seconds:
        return max(self.fair_since, *(self._at.get(name, self.fair_since) for name in names))


def _record(one: Object | None) -> Record | None:
    return one.record if isinstance(one, ComposableResource) else None
