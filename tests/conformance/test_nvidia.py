"""One table of promises for `node.nvidia.Driver`: over GPUs that exist nowhere, and over NVML's C interface to them.

Where a machine has NVIDIA's own library, the rows that only look are tried on that too.
"""

from collections.abc import Callable

import msgspec
import pytest

from conformance.nvml_library import Library
from jackfield.core.share import ComputePolicy, Gpu, Instance, Interval, Mig, Partition, Placement
from jackfield.core.share.models import A100_40GB
from jackfield.node.nvidia import Command, Driver, Nvml, load
from jackfield.ports import Gone, Refused, Retry
from jackfield.testing.nvidia import NO_MIG, Fault, Gpus

A100 = "NVIDIA A100-SXM4-40GB"
SMALL = Partition(A100_40GB[0], Placement(3, 1))
HALF = Partition(A100_40GB[4], Placement(0, 4))
UPPER_HALF = Partition(A100_40GB[4], Placement(4, 4))
MEDIA = Partition(A100_40GB[1], Placement(5, 1))
MORE_MEDIA = Partition(A100_40GB[1], Placement(6, 1))


class Bench(msgspec.Struct, frozen=True):
    """A driver, and the GPUs behind it, which somebody else may use."""

    driver: Driver
    gpus: Gpus

    @property
    def uuid(self) -> str:
        return self.gpus.uuids[0]

    @property
    def gpu(self) -> Gpu:
        return self.driver.gpus()[0]


def direct(gpus: Gpus) -> Driver:
    return gpus


def through_c(gpus: Gpus) -> Driver:
    return Nvml(Library(gpus).find, lambda command: smi(gpus, command))


def smi(gpus: Gpus, command: Command) -> str:
    """Do what nvidia-smi does for the one thing that NVML has no call for."""
    name, policy, _, uuid, option, number = command.arguments
    assert (name, policy, option) == ("nvidia-smi", "compute-policy", "--set-timeslice")
    there = next(one for one in gpus.gpus() if one.uuid == uuid).policy or ComputePolicy()
    interval = tuple(Interval)[int(number)]
    gpus.set_policy(uuid, ComputePolicy(interval, exclusive_process=there.exclusive_process))
    return ""


def raises(kind: type[Exception], words: str, call: Callable[[], object]) -> None:
    with pytest.raises(kind, match=words):
        call()


# --- the promises


def a_gpu_is_shown_as_it_is(bench: Bench) -> None:
    gpu = bench.gpu
    assert (gpu.uuid, gpu.address, gpu.product) == (bench.uuid, "0000:01:00.0", A100)
    assert (gpu.architecture, gpu.compute_capability, gpu.driver_version) == ("Ampere", "8.0", "570.124.06")
    assert (gpu.memory_mebibytes, gpu.mig, gpu.mig_pending) == (40448, Mig.ENABLED, Mig.ENABLED)
    assert (gpu.profiles, gpu.instances, gpu.policy) == (A100_40GB, (), None)


def all_gpus_are_shown_in_order(bench: Bench) -> None:
    assert tuple(one.uuid for one in bench.driver.gpus()) == bench.gpus.uuids


def a_lost_gpu_is_not_shown_and_nothing_is_done_with_it(bench: Bench) -> None:
    bench.gpus.faults[bench.uuid] = Fault.LOST
    assert bench.uuid not in [one.uuid for one in bench.driver.gpus()]
    raises(Gone, "not there", lambda: bench.driver.create(bench.uuid, SMALL))
    raises(Gone, "not there", lambda: bench.driver.set_mig(bench.uuid, enabled=False))


def a_partition_lies_where_it_was_asked_for(bench: Bench) -> None:
    made = bench.driver.create(bench.uuid, SMALL)
    assert made.uuid.startswith("MIG-")
    assert made.is_(SMALL)
    assert bench.gpu.instances == (made,)


def the_same_partition_twice_is_one(bench: Bench) -> None:
    assert bench.driver.create(bench.uuid, SMALL) == bench.driver.create(bench.uuid, SMALL)
    assert len(bench.gpu.instances) == 1


def partitions_that_do_not_touch_lie_side_by_side(bench: Bench) -> None:
    made = [bench.driver.create(bench.uuid, one) for one in (UPPER_HALF, SMALL)]
    assert sorted(bench.gpu.instances, key=lambda one: one.uuid) == sorted(made, key=lambda one: one.uuid)


def a_place_that_is_taken_is_refused(bench: Bench) -> None:
    bench.driver.create(bench.uuid, SMALL)
    raises(Refused, "room", lambda: bench.driver.create(bench.uuid, HALF))


def engines_that_do_not_suffice_are_refused(bench: Bench) -> None:
    bench.driver.create(bench.uuid, MEDIA)
    raises(Refused, "room", lambda: bench.driver.create(bench.uuid, MORE_MEDIA))


def a_place_that_no_profile_has_is_refused(bench: Bench) -> None:
    crooked = Partition(HALF.profile, Placement(2, 4))
    raises(Refused, ".", lambda: bench.driver.create(bench.uuid, crooked))


def nothing_is_created_on_a_gpu_that_is_not_divided(bench: Bench) -> None:
    bench.driver.set_mig(bench.uuid, enabled=False)
    raises(Refused, ".", lambda: bench.driver.create(bench.uuid, SMALL))


def a_destroyed_partition_makes_room(bench: Bench) -> None:
    made = bench.driver.create(bench.uuid, SMALL)
    bench.driver.destroy(bench.uuid, made)
    assert bench.gpu.instances == ()
    bench.driver.create(bench.uuid, HALF)


def what_is_gone_is_destroyed(bench: Bench) -> None:
    made = bench.driver.create(bench.uuid, SMALL)
    for _ in range(2):
        bench.driver.destroy(bench.uuid, made)
    bench.driver.destroy(bench.uuid, Instance("MIG-odd", 99, Placement(0, 1)))


def a_partition_in_use_is_not_destroyed(bench: Bench) -> None:
    made = bench.driver.create(bench.uuid, SMALL)
    bench.gpus.hold(made.uuid, "4242")
    raises(Retry, "in use", lambda: bench.driver.destroy(bench.uuid, made))
    assert len(bench.gpu.instances) == 1
    bench.gpus.let_go(made.uuid)
    bench.driver.destroy(bench.uuid, made)
    assert len(bench.gpu.instances) == 0


def the_mode_changes_and_the_same_again_is_nothing(bench: Bench) -> None:
    for enabled, mode in ((False, Mig.DISABLED), (False, Mig.DISABLED), (True, Mig.ENABLED)):
        bench.driver.set_mig(bench.uuid, enabled=enabled)
        assert (bench.gpu.mig, bench.gpu.mig_pending) == (mode, mode)


def the_mode_of_a_gpu_in_use_does_not_change(bench: Bench) -> None:
    bench.gpus.hold(bench.uuid, "4242")
    raises(Retry, "in use by.*4242", lambda: bench.driver.set_mig(bench.uuid, enabled=False))
    assert bench.gpu.mig is Mig.ENABLED


def the_mode_of_a_gpu_with_partitions_does_not_change(bench: Bench) -> None:
    bench.driver.create(bench.uuid, SMALL)
    raises(Retry, "in use", lambda: bench.driver.set_mig(bench.uuid, enabled=False))


def where_a_reset_is_needed_the_mode_is_pending_until_then(bench: Bench) -> None:
    bench.gpus.faults[bench.uuid] = Fault.NEEDS_RESET
    raises(Refused, "requires a reset", lambda: bench.driver.set_mig(bench.uuid, enabled=False))
    assert (bench.gpu.mig, bench.gpu.mig_pending) == (Mig.ENABLED, Mig.DISABLED)
    bench.gpus.reset(bench.uuid)
    assert (bench.gpu.mig, bench.gpu.mig_pending) == (Mig.DISABLED, Mig.DISABLED)


def a_policy_is_shown_once_it_was_set(bench: Bench) -> None:
    bench.driver.set_mig(bench.uuid, enabled=False)
    for policy in (ComputePolicy(Interval.LONG), ComputePolicy(exclusive_process=True), ComputePolicy()):
        bench.driver.set_policy(bench.uuid, policy)
        assert bench.gpu.policy == policy


def a_divided_gpu_has_no_policy(bench: Bench) -> None:
    raises(Refused, "is divided", lambda: bench.driver.set_policy(bench.uuid, ComputePolicy()))


def what_is_not_there_is_gone(bench: Bench) -> None:
    raises(Gone, "not there", lambda: bench.driver.create("GPU-none", SMALL))


TABLE = (
    a_gpu_is_shown_as_it_is,
    all_gpus_are_shown_in_order,
    a_lost_gpu_is_not_shown_and_nothing_is_done_with_it,
    a_partition_lies_where_it_was_asked_for,
    the_same_partition_twice_is_one,
    partitions_that_do_not_touch_lie_side_by_side,
    a_place_that_is_taken_is_refused,
    engines_that_do_not_suffice_are_refused,
    a_place_that_no_profile_has_is_refused,
    nothing_is_created_on_a_gpu_that_is_not_divided,
    a_destroyed_partition_makes_room,
    what_is_gone_is_destroyed,
    a_partition_in_use_is_not_destroyed,
    the_mode_changes_and_the_same_again_is_nothing,
    the_mode_of_a_gpu_in_use_does_not_change,
    the_mode_of_a_gpu_with_partitions_does_not_change,
    where_a_reset_is_needed_the_mode_is_pending_until_then,
    a_policy_is_shown_once_it_was_set,
    a_divided_gpu_has_no_policy,
    what_is_not_there_is_gone,
)


@pytest.mark.parametrize("way", [direct, through_c])
@pytest.mark.parametrize("promise", TABLE, ids=lambda one: one.__name__)
def test_drivers_keep_their_promises(promise: Callable[[Bench], None], way: Callable[[Gpus], Driver]) -> None:
    gpus = Gpus.of(A100, 2, Mig.ENABLED)
    promise(Bench(way(gpus), gpus))


@pytest.mark.parametrize("way", [direct, through_c])
def test_a_gpu_that_cannot_be_divided_says_so(way: Callable[[Gpus], Driver]) -> None:
    gpus = Gpus.of(NO_MIG)
    driver = way(gpus)
    (gpu,) = driver.gpus()
    assert (gpu.mig, gpu.profiles) == (Mig.UNSUPPORTED, ())
    raises(Refused, "GPU", lambda: driver.set_mig(gpu.uuid, enabled=True))


def test_nvidias_own_library_shows_what_makes_sense_where_it_is_installed() -> None:
    driver = load()
    if driver is None:
        # No such machine: that it is noticed is all there is to see.
        return
    with driver:
        for gpu in driver.gpus():
            assert gpu.uuid.startswith("GPU-")
            assert gpu.memory_mebibytes > 0
            assert all(profile.placements for profile in gpu.profiles)
