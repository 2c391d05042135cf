"""The CDI specification of NVIDIA's container toolkit: what a container needs of a GPU, libraries included.

Knows `nvidia-ctk`. Must not know which claim wants what.
"""

from pathlib import Path

from jackfield.node.nvidia.commands import Command, Run

VENDOR, CLASS = "node.jackfield.dev", "nvidia-gpu"
"""A kind of our own: where two files of one folder name a device alike, as NVIDIA's own would, it is in neither."""
FILE = "jackfield-nvidia.json"


def generate(run: Run, folder: Path) -> None:
    """Have the specification written anew, with all GPUs and partitions there are now, named by their UUIDs.

    It is to be done after a GPU or partition came or went. Raises what running a command does.
    """
    run(
        Command(
            (
                "nvidia-ctk",
                "cdi",
                "generate",
                "--format=json",
                "--device-name-strategy=uuid",
                f"--vendor={VENDOR}",
                f"--class={CLASS}",
                f"--output={folder / FILE}",
            )
        )
    )


def qualified(device: str) -> str:
    """Return the CDI name of the GPU or partition with this UUID."""
    return f"{VENDOR}/{CLASS}={device}"
