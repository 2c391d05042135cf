"""NVML through ctypes: what `calls.Driver` promises, kept by libnvidia-ml.so.1.

The library is loaded where it is there, and nowhere else; nothing is installed for it. A GPU's time slice is the one
thing that it has no call for: that is `nvidia-smi`'s. Knows which calls to make in which order, and what their errors
mean. Must not know who asks.
"""

import ctypes
from collections.abc import Callable, Iterator
from ctypes import byref, c_char, c_int, c_uint, c_void_p
from typing import Self

from jackfield.core.share import (
    KNOWN,
    ComputePolicy,
    Engines,
    Gpu,
    Instance,
    Interval,
    Mig,
    Partition,
    Placement,
    Profile,
)
from jackfield.node.nvidia import structures
from jackfield.node.nvidia.commands import Command, Run, run
from jackfield.node.nvidia.structures import (
    CComputeProfile,
    CInstance,
    CMemory,
    CPci,
    CPlacement,
    CProcess,
    CProfile,
    Return,
)
from jackfield.ports import Bug, Gone, PortError, Refused, Retry

LIBRARY = "libnvidia-ml.so.1"
_MEBIBYTE = 1 << 20
_PLACES_MAX = 32
_INSTANCES_MAX = 16

_GONE = (Return.NOT_FOUND, Return.GPU_IS_LOST, Return.GPU_NOT_FOUND)
_NO = {
    Return.INVALID_ARGUMENT: "the driver knows no such thing",
    Return.NOT_SUPPORTED: "this GPU or driver does not support it",
    Return.NO_PERMISSION: "the plugin lacks the permission: it must run as root, in a privileged container",
    Return.FUNCTION_NOT_FOUND: "the driver is too old for it: R525 or newer is needed",
    Return.INSUFFICIENT_RESOURCES: "there is no room for it on the GPU",
    Return.RESET_REQUIRED: "it requires a reset of the GPU, or a reboot where that is not possible, as in a "
    "virtual machine",
}

Call = Callable[..., int]


def load(name: str = LIBRARY, runner: Run = run) -> "Nvml | None":
    """Return NVML as it is on this node; None where it is not installed."""
    try:
        library = ctypes.CDLL(name)
    except OSError:
        return None
    return Nvml(lambda function: _bound(library, function), runner)


def _bound(library: ctypes.CDLL, name: str) -> Call:
    try:
        function = getattr(library, name)
    except AttributeError:
        return lambda *_: Return.FUNCTION_NOT_FOUND
    function.argtypes = structures.PROTOTYPES[name]
    function.restype = c_int
    return function  # type: ignore[no-any-return]  # a function of a library has no type of its own


class Nvml:
    """NVIDIA's driver, through NVML. Close it, or use it as a context manager."""

    def __init__(self, find: Callable[[str], Call], runner: Run = run) -> None:
        self._find = find
        self._run = runner
        self._functions: dict[str, Call] = {}
        self._intervals: dict[str, Interval] = {}
        """The time slices set by us: nobody else tells them."""
        self._call("nvmlInit_v2")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the driver; a GPU cannot be reset while anybody holds on to it."""
        self._call("nvmlShutdown")

    # --- the promises of Driver

    def gpus(self) -> tuple[Gpu, ...]:
        """Return the GPUs there are."""
        version = self._text("nvmlSystemGetDriverVersion", structures.VERSION_BYTES)
        count = self._number("nvmlDeviceGetCount_v2")
        found: list[Gpu] = []
        for index in range(count):
            try:
                handle = self._handle("nvmlDeviceGetHandleByIndex_v2", index)
                found.append(self._gpu(handle, version))
            except Gone:
                # Pulled between one call and the next, or fallen off the bus: it is not there.
                continue
        return tuple(found)

    def set_mig(self, uuid: str, *, enabled: bool) -> None:
        """Make the GPU one that is divided or not."""
        handle, what = (
            self._by_uuid(uuid),
            f"MIG of GPU {uuid} cannot be {'enabled' if enabled else 'disabled'}",
        )
        mode, status = structures.MIG_ENABLED if enabled else structures.MIG_DISABLED, c_int()
        current, pending = self._mig(handle)
        if (current, pending) == ((Mig.ENABLED if enabled else Mig.DISABLED),) * 2:
            return
        self._checked(what, handle, "nvmlDeviceSetMigMode", handle, mode, byref(status))
        if status.value:
            raise self._error(what, status.value, handle)
        self._intervals.pop(uuid, None)

    def create(self, uuid: str, partition: Partition) -> Instance:
        """Create the partition at its very place, usable; one that is there is completed."""
        handle, what = self._by_uuid(uuid), f"the partition {partition} cannot be created on GPU {uuid}"
        instance = self._find_instance(handle, partition.profile, partition.placement)
        if instance is None:
            place, made = CPlacement(partition.placement.start, partition.placement.size), c_void_p()
            number = partition.profile.number
            self._checked(
                what,
                handle,
                "nvmlDeviceCreateGpuInstanceWithPlacement",
                handle,
                number,
                byref(place),
                byref(made),
            )
            instance = made
        if not self._compute_instances(instance):
            self._complete(what, instance, partition.profile)
        made_uuid = self._uuids(handle).get(self._info(instance).id, "")
        if not made_uuid:
            raise Retry(f"{what}: it is there, but the driver does not list it yet")
        return Instance(made_uuid, partition.profile.number, partition.placement)

    def destroy(self, uuid: str, instance: Instance) -> None:
        """Destroy the partition; one that is gone is destroyed."""
        handle, what = (
            self._by_uuid(uuid),
            f"the partition {instance.uuid or instance.placement} cannot be destroyed",
        )
        profile = next((one for one in self._profiles(handle) if one.number == instance.profile_number), None)
        found = self._find_instance(handle, profile, instance.placement) if profile else None
        if found is None:
            return
        for compute in self._compute_instances(found):
            self._checked(what, handle, "nvmlComputeInstanceDestroy", compute)
        self._checked(what, handle, "nvmlGpuInstanceDestroy", found)

    def set_policy(self, uuid: str, policy: ComputePolicy) -> None:
        """Say how processes get along on a GPU that is not divided."""
        handle, what = self._by_uuid(uuid), f"the compute policy of GPU {uuid} cannot be set"
        if self._mig(handle)[0] is Mig.ENABLED:
            raise Refused(f"{what}: it is divided")
        exclusive = policy.exclusive_process
        mode = structures.COMPUTE_MODE_EXCLUSIVE_PROCESS if exclusive else structures.COMPUTE_MODE_DEFAULT
        self._checked(what, handle, "nvmlDeviceSetComputeMode", handle, mode)
        if self._intervals.get(uuid) is not policy.interval:
            number = str(policy.interval.number)
            self._run(Command(("nvidia-smi", "compute-policy", "-i", uuid, "--set-timeslice", number)))
            self._intervals[uuid] = policy.interval

    # --- looking

    def _gpu(self, handle: c_void_p, version: str) -> Gpu:
        uuid = self._text("nvmlDeviceGetUUID", structures.UUID_BYTES, handle)
        product = self._text("nvmlDeviceGetName", structures.NAME_BYTES, handle)
        memory, pci, major, minor = CMemory(), CPci(), c_int(), c_int()
        self._call("nvmlDeviceGetMemoryInfo", handle, byref(memory))
        self._call("nvmlDeviceGetPciInfo_v3", handle, byref(pci))
        self._call("nvmlDeviceGetCudaComputeCapability", handle, byref(major), byref(minor))
        architecture = c_uint()
        self._supported("nvmlDeviceGetArchitecture", handle, byref(architecture))
        mig, pending = self._mig(handle)
        # Some drivers list profiles only while MIG is enabled; then the figures we know have to do.
        listed = tuple(self._profiles(handle)) or KNOWN.get(product, ())
        profiles = () if mig is Mig.UNSUPPORTED else listed
        return Gpu(
            uuid,
            f"{pci.domain:04x}:{pci.bus:02x}:{pci.device:02x}.0",
            product,
            memory.total // _MEBIBYTE,
            structures.ARCHITECTURES.get(architecture.value, ""),
            f"{major.value}.{minor.value}",
            version,
            mig,
            pending,
            profiles,
            tuple(self._instances(handle, profiles)) if mig is Mig.ENABLED else (),
            self._policy(handle, uuid),
        )

    def _policy(self, handle: c_void_p, uuid: str) -> ComputePolicy | None:
        interval, mode = self._intervals.get(uuid), c_uint()
        if interval is None:
            return None
        self._supported("nvmlDeviceGetComputeMode", handle, byref(mode))
        exclusive = mode.value == structures.COMPUTE_MODE_EXCLUSIVE_PROCESS
        return ComputePolicy(interval, exclusive_process=exclusive)

    def _mig(self, handle: c_void_p) -> tuple[Mig, Mig]:
        current, pending = c_uint(), c_uint()
        if not self._supported("nvmlDeviceGetMigMode", handle, byref(current), byref(pending)):
            return Mig.UNSUPPORTED, Mig.UNSUPPORTED
        states = {structures.MIG_DISABLED: Mig.DISABLED, structures.MIG_ENABLED: Mig.ENABLED}
        return states[current.value], states[pending.value]

    def _profiles(self, handle: c_void_p) -> Iterator[Profile]:
        for index in range(structures.GPU_INSTANCE_PROFILES):
            found = CProfile(version=structures.PROFILE_VERSION)
            if not self._supported("nvmlDeviceGetGpuInstanceProfileInfoV", handle, index, byref(found)):
                continue
            places, count = (CPlacement * _PLACES_MAX)(), c_uint(_PLACES_MAX)
            self._call(
                "nvmlDeviceGetGpuInstancePossiblePlacements_v2", handle, found.id, places, byref(count)
            )
            yield Profile(
                found.name.decode(errors="replace").removeprefix("MIG "),
                found.id,
                found.sliceCount,
                found.memorySizeMB,
                found.instanceCount,
                tuple(Placement(one.start, one.size) for one in places[: count.value]),
                Engines(
                    found.multiprocessorCount,
                    found.copyEngineCount,
                    found.decoderCount,
                    found.encoderCount,
                    found.jpegCount,
                    found.ofaCount,
                ),
            )

    def _instances(self, handle: c_void_p, profiles: tuple[Profile, ...]) -> Iterator[Instance]:
        uuids = self._uuids(handle)
        for profile in profiles:
            for found in self._handles("nvmlDeviceGetGpuInstances", handle, profile.number):
                info = self._info(found)
                placement = Placement(info.placement.start, info.placement.size)
                yield Instance(uuids.get(info.id, ""), profile.number, placement)

    def _uuids(self, handle: c_void_p) -> dict[int, str]:
        """Return the UUIDs of partitions that can be used, by the number of their GPU instance."""
        uuids: dict[int, str] = {}
        for index in range(self._number("nvmlDeviceGetMaxMigDeviceCount", handle)):
            try:
                device = self._handle("nvmlDeviceGetMigDeviceHandleByIndex", handle, index)
            except Gone:
                # The numbers have gaps.
                continue
            number = self._number("nvmlDeviceGetGpuInstanceId", device)
            uuids[number] = self._text("nvmlDeviceGetUUID", structures.UUID_BYTES, device)
        return uuids

    def _find_instance(self, handle: c_void_p, profile: Profile, placement: Placement) -> c_void_p | None:
        for found in self._handles("nvmlDeviceGetGpuInstances", handle, profile.number):
            place = self._info(found).placement
            if (place.start, place.size) == (placement.start, placement.size):
                return found
        return None

    def _info(self, instance: c_void_p) -> CInstance:
        info = CInstance()
        self._call("nvmlGpuInstanceGetInfo", instance, byref(info))
        return info

    # --- compute instances

    def _compute_profiles(self, instance: c_void_p) -> Iterator[CComputeProfile]:
        for index in range(structures.COMPUTE_INSTANCE_PROFILES):
            found = CComputeProfile()
            name = "nvmlGpuInstanceGetComputeInstanceProfileInfo"
            if self._supported(name, instance, index, structures.SHARED_ENGINES, byref(found)):
                yield found

    def _compute_instances(self, instance: c_void_p) -> list[c_void_p]:
        return [
            one
            for profile in self._compute_profiles(instance)
            for one in self._handles("nvmlGpuInstanceGetComputeInstances", instance, profile.id)
        ]

    def _complete(self, what: str, instance: c_void_p, profile: Profile) -> None:
        """Create the compute instance that has all of a partition: the first whose slices are as many."""
        slices = profile.compute_slices
        whole = next((one for one in self._compute_profiles(instance) if one.sliceCount == slices), None)
        if whole is None:
            raise Refused(f"{what}: the driver lists no compute instance of {slices} slices for it")
        made = c_void_p()
        self._checked(what, instance, "nvmlGpuInstanceCreateComputeInstance", instance, whole.id, byref(made))

    # --- calling

    def _by_uuid(self, uuid: str) -> c_void_p:
        found = c_void_p()
        self._checked(f"GPU {uuid}", None, "nvmlDeviceGetHandleByUUID", uuid.encode(), byref(found))
        return found

    def _call(self, name: str, *arguments: object) -> None:
        self._checked(name, None, name, *arguments)

    def _checked(self, what: str, user: c_void_p | None, name: str, *arguments: object) -> None:
        """Call a function; raise what its answer means, in words that begin with what was tried."""
        code = self._function(name)(*arguments)
        if code != Return.SUCCESS:
            raise self._error(what, code, user)

    def _supported(self, name: str, *arguments: object) -> bool:
        """Call a function; return whether there is such a thing at all."""
        code = self._function(name)(*arguments)
        if code in (Return.NOT_SUPPORTED, Return.INVALID_ARGUMENT, Return.FUNCTION_NOT_FOUND):
            return False
        if code != Return.SUCCESS:
            raise self._error(name, code, None)
        return True

    def _function(self, name: str) -> Call:
        if name not in self._functions:
            self._functions[name] = self._find(name)
        return self._functions[name]

    def _number(self, name: str, *arguments: object) -> int:
        found = c_uint()
        self._call(name, *arguments, byref(found))
        return found.value

    def _handle(self, name: str, *arguments: object) -> c_void_p:
        found = c_void_p()
        self._call(name, *arguments, byref(found))
        return found

    def _handles(self, name: str, of: c_void_p, number: int) -> list[c_void_p]:
        found, count = (c_void_p * _INSTANCES_MAX)(), c_uint(_INSTANCES_MAX)
        self._call(name, of, number, found, byref(count))
        return [c_void_p(one) for one in found[: count.value]]

    def _text(self, name: str, size: int, *arguments: object) -> str:
        found = (c_char * size)()
        self._call(name, *arguments, found, size)
        return found.value.decode(errors="replace")

    def _error(self, what: str, code: int, user: c_void_p | None) -> PortError:
        """Return what the caller must do about an answer that is no success."""
        known = Return(code) if code in Return.__members__.values() else Return.UNKNOWN
        if known in _GONE:
            return Gone(f"{what}: it is not there (NVML {code})")
        if known in _NO:
            return Refused(f"{what}: {_NO[known]} (NVML {code})")
        if known is Return.IN_USE:
            return Retry(f"{what}: it is in use{self._users(user)}")
        if known is Return.ARGUMENT_VERSION_MISMATCH:
            return Bug(f"{what}: the driver expects another version of a structure")
        return Retry(f"{what}: the driver says {known.name.lower().replace('_', ' ')} (NVML {code})")

    def _users(self, handle: c_void_p | None) -> str:
        """Return by whom a GPU is used, as far as the driver tells: a monitor that only watches is not told."""
        found, count = (CProcess * structures.PROCESSES_MAX)(), c_uint(structures.PROCESSES_MAX)
        asked = self._function("nvmlDeviceGetComputeRunningProcesses_v3")
        if handle is None or asked(handle, byref(count), found) != Return.SUCCESS or not count.value:
            return ", by whom the driver does not say: DCGM and other monitors hold on to GPUs"
        return " by " + ", ".join(f"process {one.pid}" for one in found[: count.value])
