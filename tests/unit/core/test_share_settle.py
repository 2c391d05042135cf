"""What is asked of a GPU's driver, for those who hold something of the GPU."""

import pytest
from msgspec.structs import replace

from jackfield.core.share import (
    ComputePolicy,
    CreateInstance,
    Daemon,
    DestroyInstance,
    Gpu,
    Holding,
    Instance,
    Interval,
    Mig,
    Partition,
    Placement,
    Refusal,
    SetMig,
    SetPolicy,
    SharingConfig,
    StartDaemon,
    Step,
    StopDaemon,
    Strategy,
    World,
    settle,
)
from jackfield.core.share.config import MpsConfig, TimeSlicingConfig
from jackfield.core.share.models import A100_40GB
from jackfield.model.names import Uid

WHOLE_GPU = Gpu("GPU-1", "0000:01:00.0", "NVIDIA A100-SXM4-40GB", 40448, profiles=A100_40GB)
OFF = replace(WHOLE_GPU, mig=Mig.DISABLED, mig_pending=Mig.DISABLED)
ON = replace(WHOLE_GPU, mig=Mig.ENABLED, mig_pending=Mig.ENABLED)
DEFAULT = ComputePolicy()
BY_MPS = ComputePolicy(exclusive_process=True)
LONG_TURNS = ComputePolicy(Interval.LONG)

MPS = SharingConfig(Strategy.MPS)
LIMITED = SharingConfig(Strategy.MPS, mps_config=MpsConfig(50, "1Gi"))
TURNS = SharingConfig(Strategy.TIME_SLICING)
LONG = SharingConfig(Strategy.TIME_SLICING, TimeSlicingConfig(Interval.LONG))
EXCLUSIVE = SharingConfig(Strategy.EXCLUSIVE)

SMALL, NEXT, HALF = (
    Partition(A100_40GB[0], Placement(3, 1)),
    Partition(A100_40GB[0], Placement(4, 1)),
    Partition(A100_40GB[4], Placement(0, 4)),
)
AT_3, AT_4 = Instance("MIG-3", 19, Placement(3, 1)), Instance("MIG-4", 19, Placement(4, 1))


def whole(claim: str = "a", sharing: SharingConfig | None = None) -> Holding:
    return Holding(Uid(claim), "gpu-0", sharing)


def share(claim: str = "a", sharing: SharingConfig | None = None) -> Holding:
    return Holding(Uid(claim), "gpu-0", sharing, share=f"s-{claim}", memory_mebibytes=4096, percent=10)


def part(
    partition: Partition = SMALL,
    claim: str = "a",
    sharing: SharingConfig | None = None,
    *,
    static: bool = False,
) -> Holding:
    name = f"gpu-0-mig-at-{partition.placement.start}"
    return Holding(Uid(claim), name, sharing, partition, static=static)


def having(*instances: Instance, gpu: Gpu = ON, policy: ComputePolicy | None = None) -> Gpu:
    return replace(gpu, instances=instances, policy=policy)


ON_GPU, ON_3 = Daemon("GPU-1"), Daemon("MIG-3")

PREPARING: dict[str, tuple[World, Holding, tuple[Step, ...]]] = {
    "a whole GPU needs nothing": (World(OFF), whole(), ()),
    "one that cannot be divided needs nothing": (World(WHOLE_GPU), whole(), ()),
    "a divided GPU is made whole": (World(ON), whole(), (SetMig("GPU-1", enabled=False),)),
    "turns of the usual length need nothing": (World(OFF), whole(sharing=TURNS), ()),
    "longer turns are set": (World(OFF), whole(sharing=LONG), (SetPolicy("GPU-1", LONG_TURNS),)),
    "longer turns that are set stay": (World(having(gpu=OFF, policy=LONG_TURNS)), whole(sharing=LONG), ()),
    "what is known to be otherwise is set back": (
        World(having(gpu=OFF, policy=LONG_TURNS)),
        whole(),
        (SetPolicy("GPU-1", DEFAULT),),
    ),
    "MPS needs its policy and its daemon": (
        World(OFF),
        whole(sharing=LIMITED),
        (SetPolicy("GPU-1", BY_MPS), StartDaemon(Daemon("GPU-1", 50, 1024))),
    ),
    "a daemon that runs goes on": (
        World(having(gpu=OFF, policy=BY_MPS), (ON_GPU,), (share("a", MPS),)),
        share("b", MPS),
        (),
    ),
    "the daemon of shares has no limits": (
        World(having(gpu=OFF, policy=BY_MPS)),
        share("b", LIMITED),
        (StartDaemon(ON_GPU),),
    ),
    "a partition is made on a GPU that is divided": (World(ON), part(), (CreateInstance("GPU-1", SMALL),)),
    "a GPU is divided for its first partition": (
        World(OFF),
        part(),
        (SetMig("GPU-1", enabled=True), CreateInstance("GPU-1", SMALL)),
    ),
    "a daemon on the whole GPU is stopped before that": (
        World(OFF, (ON_GPU,)),
        part(),
        (StopDaemon("GPU-1"), SetMig("GPU-1", enabled=True), CreateInstance("GPU-1", SMALL)),
    ),
    "a partition that is there is used": (World(having(AT_3)), part(), ()),
    "a partition beside another is made": (
        World(having(AT_3), held=(part(),)),
        part(NEXT, "b"),
        (CreateInstance("GPU-1", NEXT),),
    ),
    "a static partition is used": (World(having(AT_3)), part(static=True), ()),
    "MPS on a partition has a daemon of its own": (
        World(having(AT_3)),
        part(sharing=LIMITED),
        (StartDaemon(Daemon("MIG-3", 50, 1024)),),
    ),
    "that daemon waits until the partition is there": (
        World(ON),
        part(sharing=MPS),
        (CreateInstance("GPU-1", SMALL),),
    ),
    "that daemon goes on": (World(having(AT_3), (ON_3,)), part(sharing=MPS), ()),
    "a daemon that nobody asks for is stopped": (
        World(having(AT_3), (ON_3,)),
        part(),
        (StopDaemon("MIG-3"),),
    ),
    "a partition whose maker was cut short is made": (
        World(having(replace(AT_3, uuid=""))),
        part(sharing=MPS),
        (CreateInstance("GPU-1", SMALL),),
    ),
    "what was left is ended before something else is made": (
        World(having(AT_4), left=(part(NEXT, "b"),)),
        part(),
        (DestroyInstance("GPU-1", AT_4), CreateInstance("GPU-1", SMALL)),
    ),
    "what a strange partition does not touch is made": (
        World(having(AT_4)),
        part(),
        (CreateInstance("GPU-1", SMALL),),
    ),
    "one whose static partition was destroyed keeps nobody else from theirs": (
        World(ON, held=(part(NEXT, "b", static=True),)),
        part(),
        (CreateInstance("GPU-1", SMALL),),
    ),
}


@pytest.mark.parametrize("case", PREPARING)
def test_a_new_holder_gets_what_it_needs(case: str) -> None:
    world, new, expected = PREPARING[case]
    assert settle(world, new) == expected


UNPREPARING: dict[str, tuple[World, tuple[Step, ...]]] = {
    "nothing is left to do": (World(OFF), ()),
    "what somebody else set up stays": (World(having(gpu=OFF, policy=LONG_TURNS)), ()),
    "a GPU is left as it was found": (World(OFF, left=(whole(),)), ()),
    "longer turns end with who asked for them": (
        World(OFF, left=(whole(sharing=LONG),)),
        (SetPolicy("GPU-1", DEFAULT),),
    ),
    "one that was divided meanwhile has no turns to set back": (World(ON, left=(whole(sharing=LONG),)), ()),
    "turns that were set back stay so": (
        World(having(gpu=OFF, policy=DEFAULT), left=(whole(sharing=LONG),)),
        (),
    ),
    "MPS ends with who asked for it": (
        World(having(gpu=OFF, policy=BY_MPS), (ON_GPU,), left=(whole(sharing=MPS),)),
        (StopDaemon("GPU-1"), SetPolicy("GPU-1", DEFAULT)),
    ),
    "MPS goes on for the other shares": (
        World(having(gpu=OFF, policy=BY_MPS), (ON_GPU,), (share("b", MPS),), (share("a", MPS),)),
        (),
    ),
    "a partition ends": (World(having(AT_3), left=(part(),)), (DestroyInstance("GPU-1", AT_3),)),
    "one whose maker was cut short ends too": (
        World(having(replace(AT_3, uuid="")), left=(part(),)),
        (DestroyInstance("GPU-1", replace(AT_3, uuid="")),),
    ),
    "its daemon ends before it": (
        World(having(AT_3), (ON_3,), left=(part(sharing=MPS),)),
        (StopDaemon("MIG-3"), DestroyInstance("GPU-1", AT_3)),
    ),
    "one that has ended is not ended twice": (World(ON, left=(part(),)), ()),
    "a static partition stays": (World(having(AT_3), left=(part(static=True),)), ()),
    "others keep theirs": (
        World(having(AT_3, AT_4), held=(part(NEXT, "b"),), left=(part(),)),
        (DestroyInstance("GPU-1", AT_3),),
    ),
    "one that another claim has by now stays": (
        World(having(AT_3), held=(part(claim="b"),), left=(part(claim="a"),)),
        (),
    ),
    "after a restart what is held is had again": (
        World(OFF, held=(whole(sharing=MPS),)),
        (SetPolicy("GPU-1", BY_MPS), StartDaemon(ON_GPU)),
    ),
    "a static partition that is not usable is left alone": (
        World(having(replace(AT_3, uuid="")), held=(part(static=True, sharing=MPS),)),
        (),
    ),
    "a pending reset keeps nobody from ending": (
        World(replace(having(AT_3), mig_pending=Mig.DISABLED), left=(part(),)),
        (DestroyInstance("GPU-1", AT_3),),
    ),
}


@pytest.mark.parametrize("case", UNPREPARING)
def test_who_leaves_leaves_nothing_behind_and_disturbs_nobody(case: str) -> None:
    world, expected = UNPREPARING[case]
    assert settle(world) == expected


REFUSED: dict[str, tuple[World, Holding, str]] = {
    "a reset is pending": (World(replace(OFF, mig_pending=Mig.ENABLED)), whole(), "requires a reset"),
    "a share is not exclusive": (World(OFF), share(sharing=EXCLUSIVE), "cannot be had of a share"),
    "a partition has no turns": (World(ON), part(sharing=LONG), "a partition's time slice cannot be set"),
    "a static partition is gone": (World(ON), part(static=True), "somebody destroyed it"),
    "a static partition is not usable": (
        World(having(replace(AT_3, uuid=""))),
        part(static=True),
        "somebody destroyed it",
    ),
    "a strange partition lies there": (
        World(having(AT_3)),
        part(HALF),
        "partition MIG-3 lies at {3}:1, and is not ours",
    ),
    "the GPU has strange partitions": (
        World(having(AT_3)),
        whole(),
        "partition MIG-3 is not ours to destroy",
    ),
    "more memory than a partition has": (
        World(ON),
        part(sharing=SharingConfig(Strategy.MPS, mps_config=MpsConfig(None, "5Gi"))),
        "`defaultPinnedDeviceMemoryLimit` is 5120Mi, but the device has 4864Mi",
    ),
    "more memory than a share has": (
        World(OFF),
        share(sharing=SharingConfig(Strategy.MPS, mps_config=MpsConfig(None, "5Gi"))),
        "but the device has 4096Mi",
    ),
    "more memory than a GPU has": (
        World(OFF),
        whole(sharing=SharingConfig(Strategy.MPS, mps_config=MpsConfig(None, "50Gi"))),
        "but the device has 40448Mi",
    ),
    "the GPU has another holder": (World(OFF, held=(whole("b"),)), whole(), "still prepared for claim b"),
    "the GPU has shares": (World(OFF, held=(share("b"),)), whole(), "still prepared for claim b"),
    "a partition of it is held": (
        World(having(AT_3), held=(part(claim="b"),)),
        whole(),
        "gpu-0-mig-at-3 of the same GPU is still prepared for claim b",
    ),
    "the whole of it is held": (
        World(OFF, held=(whole("b"),)),
        part(),
        "gpu-0 of the same GPU is still prepared for claim b",
    ),
    "the place is held": (
        World(having(AT_3), held=(part(claim="b"),)),
        part(HALF),
        "gpu-0-mig-at-3 lies there, still prepared for claim b",
    ),
    "others share by other means": (
        World(OFF, held=(share("b", LONG),)),
        share(sharing=MPS),
        "claim b shares it by TimeSlicing (Long), this one asks for MPS",
    ),
    "others have longer turns": (
        World(OFF, held=(share("b", LONG),)),
        share(),
        "claim b shares it by TimeSlicing (Long), this one asks for TimeSlicing;",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_in_words(case: str) -> None:
    world, new, words = REFUSED[case]
    found = settle(world, new)
    assert isinstance(found, Refusal)
    assert words in found.what


def test_intervals_are_numbered_as_nvidia_smi_counts_them() -> None:
    assert [one.number for one in Interval] == [0, 1, 2, 3]
