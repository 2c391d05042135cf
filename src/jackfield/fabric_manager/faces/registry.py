"""All faces by name. Must not know what any of them does: a new face is one file and one line here."""

from collections.abc import Callable, Mapping
from typing import Final

from jackfield.fabric_manager.faces import Face
from jackfield.fabric_manager.faces.control import Control
from jackfield.fabric_manager.faces.fsas import Fsas
from jackfield.fabric_manager.faces.liqid import Liqid
from jackfield.fabric_manager.faces.native import Native
from jackfield.fabric_manager.faces.nec import Nec
from jackfield.fabric_manager.faces.redfish import Redfish

FACES: Final[Mapping[str, Callable[[], Face]]] = {
    "native": Native,
    "fsas": Fsas,
    "nec": Nec,
    "redfish": Redfish,
    "liqid": Liqid,
}
"""The faces that an operator can choose from."""


def chosen(names: tuple[str, ...]) -> tuple[Face, ...]:
    """Return these faces, all if none is named; the manager's own extras are always among them."""
    return (Control(), *(make() for name, make in FACES.items() if not names or name in names))
