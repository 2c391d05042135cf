"""Whether the running task is to end.

Knows that a cancellation can be lost: whoever waits for another task cannot tell from a CancelledError whose it is, and
a TaskGroup that ends with errors tells of those alone. Must not know who ends whom.
"""

import asyncio


def is_ending() -> bool:
    """Return whether somebody has cancelled the running task.

    Not for one that has a TaskGroup: before Python 3.13 that cancels its own task when a child fails, and leaves it
    counted.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
