"""Faults: what must not be, which checker saw it, why that matters and what to do about it.

Knows words. Must not know how a fault is found.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec


class Checker(StrEnum):
    """Everything that is looked for; the names stand in reports, in `docs/check.md` and in the table of mutants."""

    RESOURCE_NAME = "resource-name"
    HOLDER_UNRECORDED = "holder-unrecorded"
    LEAVING_IN_USE = "leaving-in-use"
    DEVICE_IN_TWO_BOOKS = "device-in-two-books"
    READY_UNSERVED = "ready-unserved"
    DEVICE_IN_TWO_CLAIMS = "device-in-two-claims"
    RECORDED_ELSEWHERE = "recorded-elsewhere"
    OVERDRAWN = "overdrawn"
    SLICE_ENTRIES = "slice-entries"
    POD_WITHOUT_DEVICE = "pod-without-device"
    WENT_BACK = "went-back"
    READY_UNRECORDED = "ready-unrecorded"
    ONLINE_UNSEEN = "online-unseen"
    ANSWER_CHANGED = "answer-changed"
    ANSWER_WITHOUT_REASON = "answer-without-reason"
    TAKEN_BACK = "taken-back"
    RECORD_REPLACED = "record-replaced"
    RETURNED_EARLY = "returned-early"
    ENTRY_REMOVED = "entry-removed"
    SURPLUS = "surplus"
    MISSING = "missing"
    SLICE_DISAGREES = "slice-disagrees"
    RECORD_LEFT = "record-left"
    CLAIM_LEFT = "claim-left"
    TAINT_LEFT = "taint-left"
    ORPHAN = "orphan"
    IDLE_TOO_LONG = "idle-too-long"
    STUCK = "stuck"


class Meaning(msgspec.Struct, frozen=True):
    """Why a fault matters, and what an operator does about it."""

    why: str
    remedy: str


class Fault(msgspec.Struct, frozen=True):
    """Something that must not be."""

    checker: Checker
    object: str
    what: str

    def __str__(self) -> str:
        """Say it without the checker's name."""
        return f"{self.object}: {self.what}"


_BUG = "No way of working by hand leads here: keep `kubectl get -o yaml` of the object and report it."

MEANINGS: Final[Mapping[Checker, Meaning]] = {
    Checker.RESOURCE_NAME: Meaning(
        "A resource's name is what keeps a device from being ordered twice.",
        "Delete this ComposableResource; if its device is wanted it comes back under the right name.",
    ),
    Checker.HOLDER_UNRECORDED: Meaning(
        "The node has the device prepared for a claim that nothing protects: it could be detached under a running pod.",
        "Restart the plugin on the node, which compares what is prepared with the books. If it stays, delete the pod.",
    ),
    Checker.LEAVING_IN_USE: Meaning(
        "The device is on its way out while somebody has it.",
        "Set `paused: true` in the policy at once, end the pods on it, then remove the pause.",
    ),
    Checker.DEVICE_IN_TWO_BOOKS: Meaning(
        "Two resources count on one device; one of their claims will have nothing.",
        "See which of them the manager's order belongs to, and delete the other ComposableResource.",
    ),
    Checker.READY_UNSERVED: Meaning(
        "The scheduler was told that the device is there, and it is not, or may be taken away: the pod starts without "
        "it, or loses it.",
        "Delete the pod to have it scheduled anew.",
    ),
    Checker.DEVICE_IN_TWO_CLAIMS: Meaning(
        "Two pods were promised one device that may not be shared.",
        "Delete the pod of the younger claim; it is scheduled anew.",
    ),
    Checker.RECORDED_ELSEWHERE: Meaning(
        "The claim is protected on a device that it was not given: the node could start its pod with that one.",
        "Delete the pod to have it scheduled anew.",
    ),
    Checker.OVERDRAWN: Meaning(
        "More of a shared device was given away than it has.",
        "Delete pods of this device until it suffices. A driver that changed its slices while pods ran does this.",
    ),
    Checker.SLICE_ENTRIES: Meaning(
        "The scheduler reads such a pool wrongly, or not at all.",
        "Delete the ResourceSlice; it is published anew.",
    ),
    Checker.POD_WITHOUT_DEVICE: Meaning(
        "A pod was bound, and its claim is not allocated to that node: it waits on the node for ever.",
        "Delete the pod to have it scheduled anew; see who wrote the claim's status.",
    ),
    Checker.WENT_BACK: Meaning(
        "A resource only ever goes forward; what went back may be detached twice.", _BUG
    ),
    Checker.READY_UNRECORDED: Meaning(
        "The scheduler was answered about another version of the claim than the one that is protected.", _BUG
    ),
    Checker.ONLINE_UNSEEN: Meaning(
        "A device counts as there that its node has not seen.",
        "See whether the node sees it (`lspci`); delete the ComposableResource if it does not.",
    ),
    Checker.ANSWER_CHANGED: Meaning(
        "The scheduler acts on the first answer; another one comes too late.", _BUG
    ),
    Checker.ANSWER_WITHOUT_REASON: Meaning("Whoever owns the pod cannot see why it does not start.", _BUG),
    Checker.TAKEN_BACK: Meaning(
        "A claim lost its device while a pod waited for it, and nothing on it says why.",
        "See who wrote the claim's status; the pod is scheduled anew by itself.",
    ),
    Checker.RECORD_REPLACED: Meaning(
        "A device was lent to a claim while it was lent to another, which nothing protects any more.", _BUG
    ),
    Checker.RETURNED_EARLY: Meaning(
        "An idle device was returned before the policy's holdSeconds: the next pod waits for an attach in vain.",
        _BUG,
    ),
    Checker.ENTRY_REMOVED: Meaning(
        "The scheduler forgets a device that a claim holds, and cannot count what its pod uses.", _BUG
    ),
    Checker.SURPLUS: Meaning(
        "A device was attached by us, is in nobody's books and serves nobody.",
        "It is put into the books by itself within minutes. If not: is its model in the policy, is attaching paused?",
    ),
    Checker.MISSING: Meaning(
        "The books say that a device is on a node, and its manager does not show it there.",
        "See what the manager's log says of it. If a pod uses it, delete the pod; else the books correct themselves.",
    ),
    Checker.SLICE_DISAGREES: Meaning(
        "The scheduler sees a device where it is not, or not where it is: pods wait without need.",
        "Is `jackfield run` up, and does a replica lead this fabric? Deleting the ResourceSlice has it published anew.",
    ),
    Checker.RECORD_LEFT: Meaning(
        "A device is kept for a claim that does not have it any more: it serves nobody and never goes back.",
        "Is the plugin on its node alive? It must unprepare first. A node that is gone must be deleted as a Node.",
    ),
    Checker.CLAIM_LEFT: Meaning(
        "A claim holds devices for no pod: they never go back to the pool.",
        "Is `jackfield run` up? Deleting the ResourceClaim frees them at once.",
    ),
    Checker.TAINT_LEFT: Meaning(
        "A device is kept from everybody by a taint whose reason is over.",
        "Delete the DeviceTaintRule.",
    ),
    Checker.ORPHAN: Meaning(
        "Nobody asks for the device any more, and it stays attached.",
        "Delete the ComposableResource.",
    ),
    Checker.IDLE_TOO_LONG: Meaning(
        "A device that nobody uses is kept from the other nodes longer than the policy allows.",
        "Is `jackfield run` up and not paused? Is the plugin on its node alive? It must let go first.",
    ),
    Checker.STUCK: Meaning(
        "A device is under way longer than any order may take, or its node is gone; who waits for it waits in vain.",
        "`kubectl describe` the ComposableResource: its events say what it waits for.",
    ),
}
"""What each fault means; all of them are here."""
