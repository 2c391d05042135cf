"""What NVML's answers mean, and drivers that are older than others."""

import pytest

from conformance.nvml_library import Library
from jackfield.core.share import ComputePolicy, Instance, Mig, Partition, Placement
from jackfield.core.share.models import A100_40GB
from jackfield.node.nvidia import Command, Nvml, load
from jackfield.node.nvidia.structures import PROFILE_VERSION, Return
from jackfield.ports import Bug, Gone, Refused, Retry
from jackfield.testing.nvidia import Gpus

A100 = "NVIDIA A100-SXM4-40GB"
SMALL = Partition(A100_40GB[0], Placement(3, 1))


def refuse(command: Command) -> str:
    raise Refused(f"`{command.arguments[0]}` is not installed")


def library(mig: Mig = Mig.ENABLED) -> Library:
    return Library(Gpus.of(A100, 1, mig))


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (Return.GPU_IS_LOST, Gone, "it is not there"),
        (Return.NO_PERMISSION, Refused, "privileged"),
        (Return.INSUFFICIENT_RESOURCES, Refused, "no room"),
        (Return.RESET_REQUIRED, Refused, "requires a reset"),
        (Return.IN_USE, Retry, "by whom the driver does not say"),
        (Return.TIMEOUT, Retry, "the driver says timeout"),
        (Return.ARGUMENT_VERSION_MISMATCH, Bug, "another version"),
        (12345, Retry, r"the driver says unknown \(NVML 12345\)"),
    ],
)
def test_every_answer_says_what_to_do(code: int, kind: type[Exception], words: str) -> None:
    given = library()
    given.failing["nvmlDeviceCreateGpuInstanceWithPlacement"] = code
    with pytest.raises(kind, match=words):
        Nvml(given.find).create(given.gpus.uuids[0], SMALL)


def test_who_uses_a_gpu_is_named_where_the_driver_knows() -> None:
    given = library()
    given.gpus.hold(given.gpus.uuids[0], "4242")
    with pytest.raises(Retry, match="in use by process 4242"):
        Nvml(given.find).set_mig(given.gpus.uuids[0], enabled=False)


def test_a_partition_that_was_left_half_made_is_completed_or_destroyed() -> None:
    given = library()
    uuid, driver = given.gpus.uuids[0], Nvml(given.find)
    given.failing["nvmlGpuInstanceCreateComputeInstance"] = Return.TIMEOUT
    with pytest.raises(Retry, match="timeout"):
        driver.create(uuid, SMALL)
    assert driver.gpus()[0].instances == (Instance("", 19, Placement(3, 1)),)
    given.failing.clear()
    assert driver.create(uuid, SMALL).uuid.startswith("MIG-")
    given.failing["nvmlGpuInstanceCreateComputeInstance"] = Return.TIMEOUT
    other = Partition(A100_40GB[0], Placement(4, 1))
    with pytest.raises(Retry):
        driver.create(uuid, other)
    driver.destroy(uuid, Instance("", 19, Placement(4, 1)))
    assert len(driver.gpus()[0].instances) == 1


def test_a_partition_that_the_driver_does_not_list_yet_is_asked_for_again() -> None:
    given = library()
    given.failing["nvmlDeviceGetMigDeviceHandleByIndex"] = Return.NOT_FOUND
    with pytest.raises(Retry, match="does not list it yet"):
        Nvml(given.find).create(given.gpus.uuids[0], SMALL)


def test_a_partition_for_which_no_compute_instance_is_listed_is_refused() -> None:
    given = library()
    given.failing["nvmlGpuInstanceGetComputeInstanceProfileInfo"] = Return.NOT_SUPPORTED
    with pytest.raises(Refused, match="no compute instance of 1 slices"):
        Nvml(given.find).create(given.gpus.uuids[0], SMALL)


def test_a_driver_that_lists_no_profiles_is_helped_out_by_what_is_known() -> None:
    given = library(Mig.DISABLED)
    given.missing = ("nvmlDeviceGetGpuInstanceProfileInfoV", "nvmlDeviceGetArchitecture")
    (gpu,) = Nvml(given.find).gpus()
    assert (gpu.profiles, gpu.architecture) == (A100_40GB, "")


def test_a_fault_while_looking_is_not_taken_for_something_that_is_not_supported() -> None:
    given = library()
    given.failing["nvmlDeviceGetMigMode"] = Return.UNKNOWN
    with pytest.raises(Retry, match="unknown"):
        Nvml(given.find).gpus()


def test_without_nvidia_smi_no_policy_is_known_after_it_could_not_be_set() -> None:
    given = library(Mig.DISABLED)
    driver = Nvml(given.find, refuse)
    with pytest.raises(Refused, match="nvidia-smi"):
        driver.set_policy(given.gpus.uuids[0], ComputePolicy(exclusive_process=True))
    assert driver.gpus()[0].policy is None


def test_the_driver_is_let_go_of() -> None:
    given = library()
    with Nvml(given.find):
        assert given.open == 1
    assert given.open == 0


def test_the_version_of_a_structure_is_the_one_that_nvml_expects() -> None:
    assert PROFILE_VERSION == 0x02000098


def test_where_there_is_no_library_there_is_no_driver() -> None:
    assert load("libnvidia-ml-that-is-nowhere.so.1") is None


def test_a_library_that_is_not_nvml_is_refused() -> None:
    with pytest.raises(Refused, match="nvmlInit_v2: the driver is too old"):
        load("libc.so.6")
