"""What the chart has from the code is what the code says: permissions, and which settings there are.

`make golden` writes both files anew.
"""

import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import yaml

from jackfield.cli import policy_schema
from jackfield.codec import Raw
from jackfield.core.share import Sharing
from jackfield.fabric import TYPES, FabricSettings
from jackfield.fabric_manager.hardware import Lab
from jackfield.kube.permissions import Account, Part, admission, manifests

CHART = Path(__file__).resolve().parents[3] / "charts" / "jackfield"
NAMESPACE = "{{ .Release.Namespace }}"
DRIVERS = "the drivers"
MARK = "Policy"
"""The first of the definitions that are not written by hand."""
SECRET_KEYS = {
    "existingSecret": "A Secret, mounted at /etc/jackfield/secrets/NAME.",
    "tokenKey": "The key in it with the token.",
    "caKey": "The key in it with who may vouch for the manager.",
}

Golden = Callable[[Path, str], None]


def permissions() -> str:
    """Return what `jackfield rbac` prints, with the release's namespace and the policy's drivers left open."""
    controllers, node = (Account(NAMESPACE, f"jackfield-{part}") for part in (Part.CONTROLLERS, Part.NODE))
    objects = (
        *manifests(Part.CONTROLLERS, controllers, (DRIVERS,), cohdi=True),
        *manifests(Part.NODE, node),
        *admission(node),
    )
    text = yaml.safe_dump_all(objects, sort_keys=False, width=110, explicit_start=True)
    text, count = re.subn(
        rf"resourceNames:\n *- {DRIVERS}\n", 'resourceNames: {{ include "jackfield.drivers" . }}\n', text
    )
    assert count == 1, "the rights on drivers are spelt in another way"
    return text


def definitions() -> Raw:
    """Return the schema of each setting that a file of ours takes."""
    _, found = msgspec.json.schema_components(
        [FabricSettings, Sharing, Lab],
        ref_template="#/$defs/{name}",
        schema_hook=lambda _: {"description": "Each type of manager checks its own."},
    )
    settings = found.pop("FabricSettings")
    fabric = settings["properties"]
    # It becomes a folder's name, and the pool of its devices.
    fabric["name"] = {"type": "string", "pattern": "^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$"}
    fabric["type"] = {"enum": sorted(TYPES)}
    fabric |= {name: {"type": "string", "description": words} for name, words in SECRET_KEYS.items()}
    needs = {"dependentRequired": {"tokenKey": ["existingSecret"], "caKey": ["existingSecret"]}}
    return {MARK: policy_schema.schema(), "Fabric": {**settings, **needs, "title": "Fabric"}, **found}


def test_the_charts_permissions_are_those_of_the_code(golden: Golden) -> None:
    golden(CHART / "files" / "permissions.tpl", permissions())


def test_the_charts_schema_knows_every_setting_of_the_files_it_writes(golden: Golden) -> None:
    path = CHART / "values.schema.json"
    schema = msgspec.json.decode(path.read_bytes())
    by_hand = {}
    for name, one in schema["$defs"].items():
        if name == MARK:
            break
        by_hand[name] = one
    schema["$defs"] = {**by_hand, **definitions()}
    golden(path, msgspec.json.format(msgspec.json.encode(schema), indent=2).decode() + "\n")
