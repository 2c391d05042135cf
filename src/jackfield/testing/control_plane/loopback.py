"""Ports on loopback that are free, and stay free while their program is down.

The kernel gives outgoing connections any port of a certain range, also one whose server is just being restarted; ours
are outside of it. Knows ports. Must not know what listens on them.
"""

import random
import socket
from pathlib import Path

RANGE_FILE = Path("/proc/sys/net/ipv4/ip_local_port_range")
LOWEST, HIGHEST = 10240, 65535
TRIES_MAX = 1000


def free_ports(count: int) -> tuple[int, ...]:
    """Return so many ports that nobody listens on."""
    found: list[int] = []
    low, high = (int(word) for word in RANGE_FILE.read_text().split())
    candidates = [port for port in range(LOWEST, HIGHEST + 1) if not low <= port <= high]
    # Two planes that start at once should not begin with the same ones.
    for port in random.SystemRandom().sample(candidates or range(low, high), TRIES_MAX):
        if len(found) == count:
            return tuple(found)
        if _is_free(port):
            found.append(port)
    raise OSError(f"there are no {count} free ports on loopback")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As the programs do it: connections that are long over do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
