"""The devices that a node does not see.

Knows why it does not see them. Must not know claims.
"""

from collections.abc import Iterator

from jackfield.core.allocate.causes import misplacement
from jackfield.core.allocate.gathering import Pools, Seen
from jackfield.core.allocate.offers import Entry, Listing, Place
from jackfield.core.allocate.reasons import Cause, Step
from jackfield.core.allocate.tally import Tally
from jackfield.core.allocate.trial import PARTITIONS
from jackfield.model.names import DeviceID


class Surroundings:
    """What one node does not see of the newest slices of every pool."""

    def __init__(self, pools: Pools, seen: Seen) -> None:
        shown = {id(listing) for pool in seen.pools for listing in pool.shown}
        self._node = seen.node
        self._partitions = pools.features.partitionable_devices
        self._listings = tuple(one for one in pools.newest if id(one) not in shown)
        self._causes: dict[Place, Cause] = {}

    def __iter__(self) -> Iterator[tuple[Entry, Cause]]:
        """Yield every device, and why it is not seen."""
        for listing in self._listings:
            for entry in listing.entries:
                yield entry, self._cause(listing, entry.place)

    def tally(self) -> Tally:
        """Return all of them, counted."""
        tally = Tally()
        for listing in self._listings:
            spec = listing.spec
            if spec.per_device_node_selection:
                for entry in listing.entries:
                    tally.add(self._cause(listing, entry.place), entry.id)
            elif spec.devices:
                first = DeviceID(spec.driver, spec.pool.name, spec.devices[0].name)
                tally.add(self._cause(listing, listing.place), first, len(spec.devices))
        return tally

    def _cause(self, listing: Listing, place: Place) -> Cause:
        if listing.partitions and not self._partitions:
            return Cause(Step.GATE, PARTITIONS, "on", "off")
        if listing.spec.node_name:
            # Nobody else looks any closer, whatever it says of its devices.
            place = listing.place
        known = self._causes.get(place)
        if known is None:
            known = self._causes[place] = misplacement(place, self._node)
        return known
