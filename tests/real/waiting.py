"""Waiting for what comes true by itself. Knows time. Must not know what is waited for."""

import threading
import time
from collections.abc import Callable

POLL_SECONDS = 0.1


def comes_true(condition: Callable[[], bool], *, seconds: float = 20.0) -> bool:
    """Whether a condition comes true in time."""
    until = time.monotonic() + seconds
    pause = threading.Event()
    while not condition():
        if time.monotonic() > until:
            return False
        pause.wait(POLL_SECONDS)
    return True
