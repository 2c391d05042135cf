"""What a kubelet says of a pod's containers and addresses, where there are no containers.

Knows the fields of a pod's status that people and their tools look at. Must not know why a pod started or ended.
Addresses are derived from names, since nobody ever speaks to them.
"""

import zlib

from jackfield.model.names import Time
from jackfield.model.pod import Container, Pod

Fields = dict[str, object]


def told(pod: Pod, phase: str, now: Time) -> Fields:
    """Return what a real kubelet would write into the status besides phase and conditions."""
    started = pod.status.start_time or now
    host, address = _address(172, pod.spec.node_name), _address(10, pod.uid)
    state = _state(phase, started, now)
    return {
        "startTime": started,
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "containerStatuses": [_container(pod, one, state) for one in pod.spec.containers],
    }


def _state(phase: str, started: Time, now: Time) -> Fields:
    if phase == "Running":
        return {"running": {"startedAt": now}}
    code, reason = (0, "Completed") if phase == "Succeeded" else (1, "Error")
    return {
        "terminated": {"exitCode": code, "reason": reason, "startedAt": started, "finishedAt": now},
    }


def _container(pod: Pod, container: Container, state: Fields) -> Fields:
    runs = "running" in state
    return {
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "containerID": f"jackfield://{pod.uid}/{container.name}",
        "ready": runs,
        "started": runs,
        "restartCount": 0,
        "state": state,
    }


def _address(first: int, name: str) -> str:
    digest = zlib.crc32(name.encode())
    return f"{first}.{digest >> 16 & 255}.{digest >> 8 & 255}.{digest & 255}"
