"""A machine that exists nowhere: two PCIe roots, each with a GPU and an RDMA network card, as files in a folder.

Run it with `python machine.py FOLDER`, and then the driver with `--host-root FOLDER`.
"""

import sys
from pathlib import Path

from jackfield.testing.sysfs import Machine, PciDevice

NEAR, FAR = "pci0000:16", "pci0000:64"


def gpu(number: int, address: str, root: str) -> PciDevice:
    """Return a GPU of NVIDIA's."""
    uuid = f"GPU-00000000-0000-0000-0000-{number:012}"
    return PciDevice(address, root=root, driver="nvidia", uuid=uuid, minor=number, numa_node=int(root == FAR))


def nic(number: int, address: str, root: str) -> PciDevice:
    """Return a network card that speaks RDMA, with one port that is up."""
    name = f"eth{number}"
    return PciDevice(
        address,
        vendor="15b3",
        device="1021",
        pci_class="020700",
        root=root,
        numa_node=int(root == FAR),
        driver="mlx5_core",
        interfaces={name: f"02:00:00:00:00:{number:02x}"},
        up=(name,),
        files={f"infiniband/mlx5_{number}/node_type": "1: CA"},
        device_files={
            f"infiniband_verbs/uverbs{number}": f"infiniband/uverbs{number} 231:{192 + number}",
            f"infiniband_mad/umad{number}": f"infiniband/umad{number} 231:{number}",
        },
    )


def build(folder: Path, *devices: PciDevice) -> Machine:
    """Return a machine with these devices."""
    machine = Machine(folder)
    for one in devices:
        machine.plug(one)
    for name in ("nvidiactl", "nvidia-uvm", "infiniband/rdma_cm"):
        machine.device_file(name)
    return machine


if __name__ == "__main__":
    build(
        Path(sys.argv[1]),
        gpu(0, "0000:17:00.0", NEAR),
        nic(0, "0000:18:00.0", NEAR),
        gpu(1, "0000:65:00.0", FAR),
        nic(1, "0000:66:00.0", FAR),
    )
