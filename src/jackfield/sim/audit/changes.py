"""When something last happened: to claims, to devices, and to what somebody else wrote under our names.

Knows what a change is a change to. Must not know who waits for it, nor how long he may.
"""

from jackfield.core import naming
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposabilityRequest, ComposableResource
from jackfield.model.meta import Object
from jackfield.model.names import Seconds
from jackfield.model.policy import Policy


class Changes:
    """Hears of every change, and tells since when somebody has waited while nothing happened."""

    def __init__(self, began: Seconds) -> None:
        self._at: dict[str, Seconds] = {}
        self.fair_since = began
        """Since when nothing is wrong with anybody."""

    def note(self, old: Object | None, new: Object | None, now: Seconds) -> None:
        """Hear of a change. That something goes happens to it too: who waits for it is served next."""
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

    def since(self, claim: ResourceClaim) -> Seconds:
        """Return since when nothing has happened to a claim or to what it was given."""
        return self._latest(f"claim/{claim.key}", *(f"device/{result.id}" for result in claim.results))

    def unblocked_since(self, claim: ResourceClaim, policy: Policy) -> Seconds:
        """Return since when nobody else has had a request under the name of ours for the claim's node."""
        return self._latest(*(f"request/{naming.request(claim.node, model)}" for model in policy.models))

    def _latest(self, *names: str) -> Seconds:
        return max(self.fair_since, *(self._at.get(name, self.fair_since) for name in names))
