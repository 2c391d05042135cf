"""What is typed on a real cluster and on the embedded one: kubectl's words, step by step.

Knows the order of the chapters, and nothing of what is printed: a real cluster says that. `files/` is what the commands
are about.
"""

from collections.abc import Mapping

from real.kubectl import devices, ending, reading, writing
from real.kubectl.step import Step

CHAPTERS: Mapping[str, tuple[Step, ...]] = {
    "looking round": reading.LOOKING_ROUND,
    "creating": writing.CREATING,
    "reading": reading.READING,
    "applying": writing.APPLYING,
    "changing": writing.CHANGING,
    "nodes": devices.NODES,
    "devices": devices.DEVICES,
    "ours": devices.OURS,
    "telling": reading.TELLING,
    "watching": ending.WATCHING,
    "deleting": ending.DELETING,
}
"""The chapters follow one another: each finds what the ones before it have left."""
