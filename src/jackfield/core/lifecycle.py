"""LIFE: the phases of a claim's life, in order, and who decides each. Start reading here.

Knows which function decides which phase, by which action, and where it is written. Must not know how.
"""

import msgspec

from jackfield.model.plan import Phase


class Step(msgspec.Struct, frozen=True):
    """One phase of a claim's life."""

    phase: Phase
    decided_by: tuple[str, ...]
    actions: tuple[str, ...]
    written: str


LIFE = (
    Step(
        Phase.OFFERED,
        ("publish.decide", "room.decide"),
        ("PutSlice", "LabelNode"),
        "an open entry in the fabric's ResourceSlice",
    ),
    Step(
        Phase.ALLOCATED,
        ("allocate.Allocator", "leftover.decide"),
        ("ClearClaim",),
        "status.allocation of the ResourceClaim, by the scheduler",
    ),
    Step(
        Phase.WANTED,
        ("quota.decide", "scale.decide"),
        ("SetCondition", "PutRequest", "CountAttempt"),
        "FabricDeviceAdmitted, where there is a quota; a ComposabilityRequest, annotated with claim and device",
    ),
    Step(
        Phase.COMPOSED,
        ("compose.decide", "scale.decide"),
        ("KeepRequest", "PutResource", "PutRequestStatus"),
        "a ComposableResource; the entry stays as it is while a claim waits",
    ),
    Step(
        Phase.ATTACHING,
        ("attach.decide",),
        ("MarkState", "Attach", "Adopt", "TakeOver", "Blame"),
        "state Attaching; the order's id is the resource's uid",
    ),
    Step(
        Phase.VISIBLE,
        ("hotplug.decide", "prepare.decide"),
        ("Rescan", "MarkVisible"),
        "condition Visible, with what the node saw",
    ),
    Step(
        Phase.ONLINE,
        ("attach.decide", "drift.decide"),
        ("MarkState", "MarkMissing"),
        "state Online; condition Missing, should its manager stop showing it",
    ),
    Step(
        Phase.BINDABLE,
        ("scale.decide",),
        ("RecordClaim", "SetCondition"),
        "the claim on the resource, then FabricDeviceReady on the claim",
    ),
    Step(
        Phase.PREPARED,
        ("prepare.decide",),
        ("Hold", "WriteCDI"),
        "the holder on the resource, then checkpoint and CDI file; the entry is pinned to the node",
    ),
    Step(
        Phase.RELEASED,
        ("prepare.decide", "scale.decide"),
        ("RemoveCDI", "LetGo", "ForgetClaim"),
        "the record is gone; the entry stays pinned, idle",
    ),
    Step(
        Phase.DETACHED,
        ("scale.decide", "compose.decide", "attach.decide", "hotplug.decide"),
        (
            "MarkVictim",
            "PutTaint",
            "DropTaint",
            "MarkReleased",
            "PutRequest",
            "DeleteRequest",
            "DeleteResource",
            "MarkState",
            "Release",
            "Detach",
            "FreeResource",
            "FreeRequest",
        ),
        "states Detaching and Deleting, condition Released; back to offered",
    ),
    Step(Phase.SCALED, ("autoscale.decide",), ("AddNode",), "a Node of the group"),
)
