"""NVIDIA's driver, tools and MPS daemons, as our plugin uses them.

Start reading at `calls.py`: the two protocols, and how what claims hold is brought about. `nvml.py` keeps the one by
NVML, `mps.py` the other by NVIDIA's control program; `jackfield.testing.nvidia` keeps both without any hardware.
`sharing.py` is what a driver on the kit uses: what is published of GPUs, and what is prepared of them for whom.
"""

from jackfield.node.nvidia.calls import Driver, Hands, Mps, act, bring_about
from jackfield.node.nvidia.commands import Command, Run, run
from jackfield.node.nvidia.mps import ControlDaemons
from jackfield.node.nvidia.nvml import Nvml, load
from jackfield.node.nvidia.sharing import Settings, SharedGpus
from jackfield.node.nvidia.toolkit import generate

__all__ = [
    "Command",
    "ControlDaemons",
    "Driver",
    "Hands",
    "Mps",
    "Nvml",
    "Run",
    "Settings",
    "SharedGpus",
    "act",
    "bring_about",
    "generate",
    "load",
    "run",
]
