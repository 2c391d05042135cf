"""What a driver writer writes, and what they are given to work with.

Knows the questions that every driver answers. Must not know the kubelet, the API server, or any file.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec

from jackfield.core.offer import Pool
from jackfield.driver.cdi import NOTHING, Edits
from jackfield.driver.entry import Network
from jackfield.model.device import Device
from jackfield.model.names import Key, PhysicalID, Uid

if TYPE_CHECKING:
    from jackfield.driver.health import DeviceHealth

Config = Mapping[str, object]
"""The parameters of one opaque configuration, as the claim's or class's author wrote them: believe nothing."""


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """One device as one claim was given it, whole or in part: what is prepared and unprepared."""

    claim: Key
    uid: Uid
    """The claim's; two claims may have one name after each other, never one uid."""
    requests: tuple[str, ...]
    """The claim's requests that it serves, as the allocation spells them: `gpu`, or `gpu/large` of several choices."""
    pool: str
    device: str
    share_id: str = ""
    """Tells the shares of a device apart that several claims have at once; empty for a whole device."""
    consumed_capacity: Mapping[str, str] = {}
    """How much of a shared device's capacity this claim was given."""
    admin_access: bool = False
    """Whether it is given for looking at only, beside whoever else has it."""
    config: tuple[Config, ...] = ()
    """What the class says for this driver, then what the claim says; a later one overrides an earlier one."""
    published: Device | None = None
    """The device as it is published now; None for one that is not."""
    notes: Mapping[str, str] = {}
    """What `prepare` asked to be remembered; empty before it."""


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """What a prepared device means for its containers; `Edits` alone says the same with nothing to remember."""

    edits: Edits = NOTHING
    cdi: tuple[str, ...] = ()
    """Devices of CDI specs that somebody else wrote, such as `nvidia.com/gpu=0`."""
    notes: Mapping[str, str] = {}
    """To be remembered until it is unprepared, over restarts too: then the claim may be gone from the API."""
    physical: PhysicalID = PhysicalID("")
    network: Network | None = None
    """For the device metadata that the container can read."""


class Driver:
    """The devices of one node: subclass it, give it a name, and say what there is and how it is prepared.

    Methods are called on the loop of the kit; those that are not coroutines must be quick.
    """

    name: str = ""
    """A domain of yours, such as `gpu.example.com`: the same on all nodes, unique in the cluster."""
    published_only: bool = True
    """Whether claims may only have what this driver publishes on this node; others are refused.

    A driver whose devices somebody else publishes says False, and looks itself.
    """
    unhealthy_effect: str = "NoSchedule"
    """What becomes of an unhealthy device: with `NoExecute` pods that use it are ended as well."""

    def pools(self) -> Iterable[Pool]:
        """Return all that is published; by default one pool, called like the node, with all devices."""
        return (Pool(tuple(self.devices())),)

    def devices(self) -> Iterable[Device]:
        """Return the devices there are now. Each keeps its name for life."""
        return ()

    def health(self) -> "Iterable[DeviceHealth]":
        """Return how devices are; an unhealthy one is tainted, and the owners of pods that use it are told.

        A pool without a name means the one called like the node. What is not told of is taken for healthy.
        """
        return ()

    async def prepare(self, share: Share) -> Edits | Prepared:
        """Make the device usable, and return what its containers get. May be called again for the same share.

        What it raises is told to the kubelet, which asks again; before that `unprepare` is called for this share, and
        for all others of the claim that were prepared in the same call.
        """
        del share
        return NOTHING

    async def unprepare(self, share: Share) -> None:
        """Undo it. The claim may be gone; it may be undone already, or never have been done.

        Only who, what and `notes` are told: not what the claim asked for. What it raises is told to the kubelet, which
        asks again.
        """

    async def restore(self, shares: tuple[Share, ...]) -> None:
        """Begin, with all that is prepared from earlier lives: whatever else you find is left over, and can go."""

    async def watch(self, changed: Callable[[], None]) -> None:
        """Look after the devices for as long as the driver lives, and call `changed` when there is news.

        Then `pools` and `health` are asked again. To return is to have nothing to watch.
        """
