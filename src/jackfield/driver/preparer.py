"""What the kubelet wants of a driver, in words of our own: claims to be prepared and unprepared, and the answers.

Knows values, and a promise. Must not know how they travel, or who keeps it.
"""

from typing import Protocol

import msgspec

from jackfield.model.names import Key, Uid


class ClaimRef(msgspec.Struct, frozen=True):
    """A claim, as the kubelet names it: all else is read from the API."""

    namespace: str
    name: str
    uid: Uid

    @property
    def key(self) -> Key:
        """The claim's namespace and name."""
        return Key(self.namespace, self.name)


class PreparedDevice(msgspec.Struct, frozen=True):
    """A device that is ready for the containers of a claim."""

    requests: tuple[str, ...]
    """The requests of the claim that it serves; none means all."""
    pool: str
    device: str
    cdi: tuple[str, ...] = ()
    """What the container runtime is to inject, as `vendor/class=name`."""
    share_id: str = ""


class Answer(msgspec.Struct, frozen=True):
    """What became of a claim: its devices, or what stands in the way."""

    devices: tuple[PreparedDevice, ...] = ()
    error: str = ""


class Preparer(Protocol):
    """Whoever prepares claims. Any call may be repeated, also after a restart; calls for one claim never overlap.

    What is raised becomes the claim's error, and the kubelet asks again. A call is not cancelled because the kubelet
    hangs up: it goes on, and the kubelet's next call gets its answer.
    """

    async def prepare(self, claim: ClaimRef) -> Answer:
        """Make the devices of a claim ready; one that is ready already is answered as before."""

    async def unprepare(self, claim: ClaimRef) -> str:
        """Undo that, also for a claim that is gone from the API; return what stands in the way, or nothing."""
