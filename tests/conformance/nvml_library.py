"""A libnvidia-ml of our own: NVML's C functions over GPUs that exist nowhere.

Every function has the C prototype it has in the real library and is called through it, so that what is tried is the
very code that talks to NVIDIA's. Knows which structure each function fills, and which number it returns for what a
driver refuses. Must not know the code that calls it.
"""

import ctypes
from collections.abc import Callable
from ctypes import CFUNCTYPE, c_int
from typing import Any, TypeAlias

import msgspec

from jackfield.core.share import Gpu, Instance, Mig, Partition, Placement, Profile
from jackfield.core.share.gpu import ComputePolicy
from jackfield.node.nvidia import structures
from jackfield.node.nvidia.structures import PROTOTYPES, Return
from jackfield.ports import Gone, PortError, Refused, Retry
from jackfield.testing.nvidia import Gpus

Pointer: TypeAlias = "ctypes._Pointer[Any]"  # noqa: SLF001 - it has no public name
"""What a C function is handed, to write its answer to."""


class Compute(msgspec.Struct, frozen=True):
    """The compute instance of a partition."""

    of: str


class Library:
    """The functions, by name; `find` is what an Nvml asks for them."""

    def __init__(self, gpus: Gpus) -> None:
        self.gpus = gpus
        self.open = 0
        """How many times it was initialised and not shut down."""
        self.missing: tuple[str, ...] = ()
        """Functions that this driver is too old for."""
        self.bare: set[str] = set()
        """Partitions that have no compute instance."""
        self.failing: dict[str, int] = {}
        """What functions return instead of what they should."""
        self._kept: dict[str, Callable[..., int]] = {}
        self._handles: list[object] = [None]

    def find(self, name: str) -> Callable[..., int]:
        if name in self.missing:
            return lambda *_: Return.FUNCTION_NOT_FOUND
        if name not in self._kept:
            self._kept[name] = CFUNCTYPE(c_int, *PROTOTYPES[name])(self._guarded(name))
        return self._kept[name]

    def _guarded(self, name: str) -> Callable[..., int]:
        function = getattr(self, name)

        def call(*arguments: object) -> int:
            if name in self.failing:
                return self.failing[name]
            try:
                answer = function(*arguments)
            except PortError as error:
                return _code(error)
            return int(answer or Return.SUCCESS)

        return call

    # --- handles: numbers, as pointers are

    def _handle(self, thing: object) -> int:
        if thing not in self._handles:
            self._handles.append(thing)
        return self._handles.index(thing)

    def _gpu(self, handle: int) -> Gpu:
        uuid = self._handles[handle]
        found = next((one for one in self.gpus.gpus() if one.uuid == uuid), None)
        if found is None:
            raise Gone("lost")
        return found

    def _instance(self, handle: int) -> tuple[Gpu, Instance]:
        for gpu in self.gpus.gpus():
            for one in gpu.instances:
                if one.uuid == self._handles[handle]:
                    return gpu, one
        raise Gone("no such instance")

    # --- the system

    def nvmlInit_v2(self) -> None:  # noqa: N802 - NVML's own names
        self.open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open -= 1

    def nvmlSystemGetDriverVersion(self, text: Pointer, _size: int) -> None:  # noqa: N802
        _write(text, self.gpus.gpus()[0].driver_version)

    def nvmlDeviceGetCount_v2(self, count: Pointer) -> None:  # noqa: N802
        count[0] = len(self.gpus.uuids)

    def nvmlDeviceGetHandleByIndex_v2(self, index: int, handle: Pointer) -> None:  # noqa: N802
        handle[0] = self._handle(self.gpus.uuids[index])
        self._gpu(handle[0])

    def nvmlDeviceGetHandleByUUID(self, uuid: bytes, handle: Pointer) -> None:  # noqa: N802
        handle[0] = self._handle(uuid.decode())
        self._gpu(handle[0])

    # --- a GPU

    def nvmlDeviceGetUUID(self, device: int, text: Pointer, _size: int) -> None:  # noqa: N802
        _write(text, str(self._handles[device]))

    def nvmlDeviceGetName(self, device: int, text: Pointer, _size: int) -> None:  # noqa: N802
        _write(text, self._gpu(device).product)

    def nvmlDeviceGetMemoryInfo(self, device: int, memory: Pointer) -> None:  # noqa: N802
        memory[0].total = self._gpu(device).memory_mebibytes << 20

    def nvmlDeviceGetPciInfo_v3(self, device: int, pci: Pointer) -> None:  # noqa: N802
        domain, bus, rest = self._gpu(device).address.split(":")
        pci[0].domain, pci[0].bus, pci[0].device = int(domain, 16), int(bus, 16), int(rest[:2], 16)

    def nvmlDeviceGetArchitecture(self, device: int, number: Pointer) -> None:  # noqa: N802
        name = self._gpu(device).architecture
        number[0] = next(key for key, value in structures.ARCHITECTURES.items() if value == name)

    def nvmlDeviceGetCudaComputeCapability(self, device: int, major: Pointer, minor: Pointer) -> None:  # noqa: N802
        major[0], minor[0] = (int(one) for one in self._gpu(device).compute_capability.split("."))

    def nvmlDeviceGetComputeMode(self, device: int, mode: Pointer) -> None:  # noqa: N802
        policy = self._gpu(device).policy or ComputePolicy()
        mode[0] = 3 if policy.exclusive_process else 0

    def nvmlDeviceSetComputeMode(self, device: int, mode: int) -> None:  # noqa: N802
        gpu = self._gpu(device)
        policy = gpu.policy or ComputePolicy()
        self.gpus.set_policy(gpu.uuid, ComputePolicy(policy.interval, exclusive_process=mode == 3))

    def nvmlDeviceGetComputeRunningProcesses_v3(self, device: int, count: Pointer, found: Pointer) -> int:  # noqa: N802
        users = [int(one) for one in self.gpus.holders(str(self._handles[device])) if one.isdecimal()]
        for index, pid in enumerate(users):
            found[index].pid = pid
        count[0] = len(users)
        return Return.SUCCESS

    # --- MIG

    def nvmlDeviceGetMigMode(self, device: int, current: Pointer, pending: Pointer) -> int:  # noqa: N802
        gpu = self._gpu(device)
        if gpu.mig is Mig.UNSUPPORTED:
            return Return.NOT_SUPPORTED
        current[0], pending[0] = gpu.mig is Mig.ENABLED, gpu.mig_pending is Mig.ENABLED
        return Return.SUCCESS

    def nvmlDeviceSetMigMode(self, device: int, mode: int, status: Pointer) -> None:  # noqa: N802
        gpu = self._gpu(device)
        if gpu.mig is Mig.UNSUPPORTED:
            raise Refused("cannot be divided")
        try:
            self.gpus.set_mig(gpu.uuid, enabled=mode == 1)
        except PortError as error:
            status[0] = _code(error)

    def nvmlDeviceGetGpuInstanceProfileInfoV(self, device: int, index: int, found: Pointer) -> int:  # noqa: N802
        gpu = self._gpu(device)
        if found[0].version != 0x02000098:
            return Return.ARGUMENT_VERSION_MISMATCH
        if index >= len(gpu.profiles):
            return Return.NOT_SUPPORTED
        one, into = gpu.profiles[index], found[0]
        into.id, into.sliceCount, into.instanceCount = one.number, one.compute_slices, one.instances_max
        into.memorySizeMB, into.name = one.memory_mebibytes, f"MIG {one.name}".encode()
        engines = one.engines
        into.multiprocessorCount, into.copyEngineCount = engines.multiprocessors, engines.copy_engines
        into.decoderCount, into.encoderCount = engines.decoders, engines.encoders
        into.jpegCount, into.ofaCount = engines.jpeg_engines, engines.ofa_engines
        return Return.SUCCESS

    def nvmlDeviceGetGpuInstancePossiblePlacements_v2(  # noqa: N802
        self, device: int, number: int, places: Pointer, count: Pointer
    ) -> None:
        profile = _profile(self._gpu(device), number)
        for index, one in enumerate(profile.placements):
            places[index].start, places[index].size = one.start, one.size
        count[0] = len(profile.placements)

    def nvmlDeviceGetGpuInstances(self, device: int, number: int, found: Pointer, count: Pointer) -> None:  # noqa: N802
        gpu = self._gpu(device)
        there = [one for one in gpu.instances if one.profile_number == number]
        for index, one in enumerate(there):
            found[index] = self._handle(one.uuid)
        count[0] = len(there)

    def nvmlDeviceCreateGpuInstanceWithPlacement(  # noqa: N802
        self, device: int, number: int, place: Pointer, made: Pointer
    ) -> None:
        gpu = self._gpu(device)
        partition = Partition(_profile(gpu, number), Placement(place[0].start, place[0].size))
        instance = self.gpus.make(gpu.uuid, partition)
        self.bare.add(instance.uuid)
        made[0] = self._handle(instance.uuid)

    def nvmlGpuInstanceGetInfo(self, handle: int, info: Pointer) -> None:  # noqa: N802
        _, one = self._instance(handle)
        info[0].id, info[0].profileId = handle, one.profile_number
        info[0].placement.start, info[0].placement.size = one.placement.start, one.placement.size

    def nvmlGpuInstanceDestroy(self, handle: int) -> int:  # noqa: N802
        gpu, one = self._instance(handle)
        if one.uuid not in self.bare:
            return Return.IN_USE
        self.gpus.destroy(gpu.uuid, one)
        return Return.SUCCESS

    # --- compute instances: one that has all of its GPU instance, or none

    def nvmlGpuInstanceGetComputeInstanceProfileInfo(  # noqa: N802
        self, handle: int, index: int, _engines: int, found: Pointer
    ) -> int:
        gpu, one = self._instance(handle)
        slices = [1, 2, 3, 4, 7]
        if index >= len(slices) or slices[index] > _profile(gpu, one.profile_number).compute_slices:
            return Return.NOT_SUPPORTED
        found[0].id, found[0].sliceCount = index, slices[index]
        return Return.SUCCESS

    def nvmlGpuInstanceCreateComputeInstance(self, handle: int, index: int, made: Pointer) -> int:  # noqa: N802
        gpu, one = self._instance(handle)
        slices = _profile(gpu, one.profile_number).compute_slices
        if one.uuid not in self.bare or [1, 2, 3, 4, 7][index] != slices:
            return Return.INSUFFICIENT_RESOURCES
        self.bare.discard(one.uuid)
        made[0] = self._handle(Compute(one.uuid))
        return Return.SUCCESS

    def nvmlGpuInstanceGetComputeInstances(  # noqa: N802
        self, handle: int, index: int, found: Pointer, count: Pointer
    ) -> None:
        gpu, one = self._instance(handle)
        whole = [1, 2, 3, 4, 7][index] == _profile(gpu, one.profile_number).compute_slices
        count[0] = int(whole and one.uuid not in self.bare)
        if count[0]:
            found[0] = self._handle(Compute(one.uuid))

    def nvmlComputeInstanceDestroy(self, handle: int) -> None:  # noqa: N802
        compute = self._handles[handle]
        assert isinstance(compute, Compute)
        uuid = compute.of
        holders = self.gpus.holders(uuid)
        if holders:
            raise Retry(f"in use by {holders}")
        self.bare.add(uuid)

    # --- partitions that can be used

    def nvmlDeviceGetMaxMigDeviceCount(self, _device: int, count: Pointer) -> None:  # noqa: N802
        count[0] = 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, device: int, index: int, handle: Pointer) -> int:  # noqa: N802
        usable = [one for one in self._gpu(device).instances if one.uuid not in self.bare]
        # The first number is free, as after a partition was destroyed.
        if not 0 < index <= len(usable):
            return Return.NOT_FOUND
        handle[0] = self._handle(usable[index - 1].uuid)
        return Return.SUCCESS

    def nvmlDeviceGetGpuInstanceId(self, device: int, number: Pointer) -> None:  # noqa: N802
        number[0] = device


def _profile(gpu: Gpu, number: int) -> Profile:
    found = next((one for one in gpu.profiles if one.number == number), None)
    if found is None:
        raise Refused("no such profile")
    return found


def _code(error: PortError) -> int:
    """Return the number that stands for a refusal in C."""
    words = str(error)
    match error:
        case Gone():
            return Return.GPU_IS_LOST
        case Retry():
            return Return.IN_USE
        case _ if "reset" in words:
            return Return.RESET_REQUIRED
        case _ if "no room" in words:
            return Return.INSUFFICIENT_RESOURCES
        case _ if "cannot be divided" in words or "is divided" in words:
            return Return.NOT_SUPPORTED
        case _:
            return Return.INVALID_ARGUMENT


def _write(text: Pointer, value: str) -> None:
    ctypes.memmove(text, value.encode() + b"\0", len(value) + 1)
