"""OpenAPI 3.1 of the manager's own extras, made from the very types that they are read into.

Knows how calls are described. Must not know what they do.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

import jackfield
from jackfield.codec import native

Document = dict[str, Any]
REFERENCE: Final = "#/components/schemas/{name}"


class Operation(msgspec.Struct, frozen=True):
    """One call: what it is for, what it takes, what it gives."""

    method: str
    path: str
    summary: str
    answer: Any
    body: Any = None
    query: Mapping[str, str] = {}
    """Numbers in the query, and what each means."""


def document(prefix: str, operations: tuple[Operation, ...]) -> Document:
    """Return the description of these calls."""
    types = [one for of in operations for one in (of.answer, of.body) if one is not None]
    schemas, components = msgspec.json.schema_components([*types, native.Problem], ref_template=REFERENCE)
    shapes = iter(schemas)
    paths: dict[str, Document] = {}
    for of in operations:
        answer = next(shapes)
        body = next(shapes) if of.body is not None else None
        paths.setdefault(f"{prefix}/{of.path}", {})[of.method.lower()] = _operation(of, answer, body)
    return {
        "openapi": "3.1.0",
        "info": {"title": "jackfield fabric manager", "version": jackfield.__version__},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(of: Operation, answer: Document, body: Document | None) -> Document:
    problem = {"$ref": REFERENCE.format(name="Problem")}
    made: Document = {
        "summary": of.summary,
        "parameters": [*_path_parameters(of.path), *_query_parameters(of.query)],
        "responses": {
            "200": {"description": "It is so.", "content": {native.JSON: {"schema": answer}}},
            "default": {
                "description": "It is not.",
                "content": {native.PROBLEM_JSON: {"schema": problem}},
            },
        },
    }
    if body is not None:
        made["requestBody"] = {"required": True, "content": {native.JSON: {"schema": body}}}
    return made


def _path_parameters(path: str) -> list[Document]:
    names = [part.strip("{}") for part in path.split("/") if part.startswith("{")]
    return [{"name": one, "in": "path", "required": True, "schema": {"type": "string"}} for one in names]


def _query_parameters(query: Mapping[str, str]) -> list[Document]:
    return [
        {"name": name, "in": "query", "description": words, "schema": {"type": "number", "minimum": 0}}
        for name, words in query.items()
    ]
