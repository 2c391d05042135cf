"""NVML's C interface, as much of it as is needed: structures, prototypes, numbers.

Knows the layout that nvml.h gives them. Must not know what they are used for.
"""

from ctypes import (
    POINTER,
    Structure,
    c_char,
    c_char_p,
    c_int,
    c_uint,
    c_ulonglong,
    c_void_p,
    sizeof,
)
from enum import IntEnum

UUID_BYTES = 96
NAME_BYTES = 96
VERSION_BYTES = 80

MIG_DISABLED, MIG_ENABLED = 0, 1
COMPUTE_MODE_DEFAULT, COMPUTE_MODE_EXCLUSIVE_PROCESS = 0, 3
GPU_INSTANCE_PROFILES = 0x12
"""How many GPU instance profiles the header numbers; a GPU has a few of them."""
COMPUTE_INSTANCE_PROFILES = 0x9
SHARED_ENGINES = 0
PROCESSES_MAX = 64

ARCHITECTURES = {
    2: "Kepler",
    3: "Maxwell",
    4: "Pascal",
    5: "Volta",
    6: "Turing",
    7: "Ampere",
    8: "Ada Lovelace",
    9: "Hopper",
    10: "Blackwell",
}


class Return(IntEnum):
    """What a call returns."""

    SUCCESS = 0
    UNINITIALIZED = 1
    INVALID_ARGUMENT = 2
    NOT_SUPPORTED = 3
    NO_PERMISSION = 4
    NOT_FOUND = 6
    INSUFFICIENT_SIZE = 7
    DRIVER_NOT_LOADED = 9
    TIMEOUT = 10
    FUNCTION_NOT_FOUND = 13
    GPU_IS_LOST = 15
    RESET_REQUIRED = 16
    IN_USE = 19
    INSUFFICIENT_RESOURCES = 23
    ARGUMENT_VERSION_MISMATCH = 25
    NOT_READY = 27
    GPU_NOT_FOUND = 28
    INVALID_STATE = 29
    UNKNOWN = 999


class CPlacement(Structure):
    """nvmlGpuInstancePlacement_t."""

    _fields_ = (("start", c_uint), ("size", c_uint))


class CProfile(Structure):
    """nvmlGpuInstanceProfileInfo_v2_t."""

    _fields_ = (
        ("version", c_uint),
        ("id", c_uint),
        ("isP2pSupported", c_uint),
        ("sliceCount", c_uint),
        ("instanceCount", c_uint),
        ("multiprocessorCount", c_uint),
        ("copyEngineCount", c_uint),
        ("decoderCount", c_uint),
        ("encoderCount", c_uint),
        ("jpegCount", c_uint),
        ("ofaCount", c_uint),
        ("memorySizeMB", c_ulonglong),
        ("name", c_char * NAME_BYTES),
    )


PROFILE_VERSION = sizeof(CProfile) | 2 << 24


class CInstance(Structure):
    """nvmlGpuInstanceInfo_t."""

    _fields_ = (("device", c_void_p), ("id", c_uint), ("profileId", c_uint), ("placement", CPlacement))


class CComputeProfile(Structure):
    """nvmlComputeInstanceProfileInfo_t."""

    _fields_ = (
        ("id", c_uint),
        ("sliceCount", c_uint),
        ("instanceCount", c_uint),
        ("multiprocessorCount", c_uint),
        ("sharedCopyEngineCount", c_uint),
        ("sharedDecoderCount", c_uint),
        ("sharedEncoderCount", c_uint),
        ("sharedJpegCount", c_uint),
        ("sharedOfaCount", c_uint),
    )


class CMemory(Structure):
    """nvmlMemory_t."""

    _fields_ = (("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong))


class CPci(Structure):
    """nvmlPciInfo_t, version 3."""

    _fields_ = (
        ("busIdLegacy", c_char * 16),
        ("domain", c_uint),
        ("bus", c_uint),
        ("device", c_uint),
        ("pciDeviceId", c_uint),
        ("pciSubSystemId", c_uint),
        ("busId", c_char * 32),
    )


class CProcess(Structure):
    """nvmlProcessInfo_v2_t, which version 3 of the call fills too."""

    _fields_ = (
        ("pid", c_uint),
        ("usedGpuMemory", c_ulonglong),
        ("gpuInstanceId", c_uint),
        ("computeInstanceId", c_uint),
    )


_NUMBER, _HANDLE, _BUFFER = POINTER(c_uint), POINTER(c_void_p), POINTER(c_char)

PROTOTYPES = {
    "nvmlInit_v2": (),
    "nvmlShutdown": (),
    "nvmlSystemGetDriverVersion": (_BUFFER, c_uint),
    "nvmlDeviceGetCount_v2": (_NUMBER,),
    "nvmlDeviceGetHandleByIndex_v2": (c_uint, _HANDLE),
    "nvmlDeviceGetHandleByUUID": (c_char_p, _HANDLE),
    "nvmlDeviceGetUUID": (c_void_p, _BUFFER, c_uint),
    "nvmlDeviceGetName": (c_void_p, _BUFFER, c_uint),
    "nvmlDeviceGetMemoryInfo": (c_void_p, POINTER(CMemory)),
    "nvmlDeviceGetPciInfo_v3": (c_void_p, POINTER(CPci)),
    "nvmlDeviceGetArchitecture": (c_void_p, _NUMBER),
    "nvmlDeviceGetCudaComputeCapability": (c_void_p, POINTER(c_int), POINTER(c_int)),
    "nvmlDeviceGetComputeMode": (c_void_p, _NUMBER),
    "nvmlDeviceSetComputeMode": (c_void_p, c_uint),
    "nvmlDeviceGetComputeRunningProcesses_v3": (c_void_p, _NUMBER, POINTER(CProcess)),
    "nvmlDeviceGetMigMode": (c_void_p, _NUMBER, _NUMBER),
    "nvmlDeviceSetMigMode": (c_void_p, c_uint, POINTER(c_int)),
    "nvmlDeviceGetGpuInstanceProfileInfoV": (c_void_p, c_uint, POINTER(CProfile)),
    "nvmlDeviceGetGpuInstancePossiblePlacements_v2": (c_void_p, c_uint, POINTER(CPlacement), _NUMBER),
    "nvmlDeviceGetGpuInstances": (c_void_p, c_uint, _HANDLE, _NUMBER),
    "nvmlDeviceCreateGpuInstanceWithPlacement": (c_void_p, c_uint, POINTER(CPlacement), _HANDLE),
    "nvmlGpuInstanceGetInfo": (c_void_p, POINTER(CInstance)),
    "nvmlGpuInstanceDestroy": (c_void_p,),
    "nvmlGpuInstanceGetComputeInstanceProfileInfo": (c_void_p, c_uint, c_uint, POINTER(CComputeProfile)),
    "nvmlGpuInstanceCreateComputeInstance": (c_void_p, c_uint, _HANDLE),
    "nvmlGpuInstanceGetComputeInstances": (c_void_p, c_uint, _HANDLE, _NUMBER),
    "nvmlComputeInstanceDestroy": (c_void_p,),
    "nvmlDeviceGetMaxMigDeviceCount": (c_void_p, _NUMBER),
    "nvmlDeviceGetMigDeviceHandleByIndex": (c_void_p, c_uint, _HANDLE),
    "nvmlDeviceGetGpuInstanceId": (c_void_p, _NUMBER),
}
"""What each function takes; all of them return a number."""
