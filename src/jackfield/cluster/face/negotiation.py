"""In which form an answer is wanted: the object, a table of it, or its metadata alone.

Knows the Accept header. Must not know what is told.
"""

from enum import StrEnum
from typing import Final

import msgspec

from jackfield.cluster.face import status
from jackfield.cluster.face.bodies import YAML
from jackfield.cluster.face.calls import JSON

OFFERED: Final = (JSON, YAML)
CLAUSES_MAX: Final = 32


class Form(StrEnum):
    """What becomes of objects on their way out."""

    WHOLE = ""
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"
    METADATA_LIST = "PartialObjectMetadataList"
    DISCOVERY = "APIGroupDiscoveryList"


class Wanted(msgspec.Struct, frozen=True):
    """What the client takes."""

    form: Form = Form.WHOLE
    yaml: bool = False
    version: str = "v1"


def wanted(accept: str, forms: tuple[Form, ...] = (Form.WHOLE, Form.TABLE, Form.METADATA)) -> Wanted:
    """Return the first form the client asks for that is offered; raises if there is none."""
    if not accept.strip():
        return Wanted()
    for clause in accept.split(",")[:CLAUSES_MAX]:
        kind, *parameters = (one.strip() for one in clause.split(";"))
        said = dict(one.split("=", 1) for one in parameters if "=" in one)
        if kind.lower() not in (*OFFERED, "*/*", "application/*"):
            continue
        form = said.get("as", "")
        if form in forms and _is_known(Form(form), said.get("g", ""), said.get("v", "")):
            return Wanted(Form(form), kind.lower() == YAML, said.get("v", "") or "v1")
    raise status.not_acceptable(OFFERED)


def _is_known(form: Form, group: str, version: str) -> bool:
    match form:
        case Form.WHOLE:
            return True
        case Form.DISCOVERY:
            return group == "apidiscovery.k8s.io" and version in ("v2", "v2beta1")
        case _:
            return group == "meta.k8s.io" and version in ("v1", "v1beta1")
