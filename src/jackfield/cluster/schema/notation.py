"""How schemas are written in `kubernetes.json`: OpenAPI, a fifth as long.

Knows both spellings, and what Go would call a type. Must not know any type.

A field's type is a word: `string`, `integer:int32` (with its format), `[]X` a list, `{}X` a map, `#Name` a type of the
same package, `#full.name` of another. A word that ends in `=` has a default that says nothing: "", 0, false or {}. A
field about which there is more to say is an object, with its type as `is` and the rest as in OpenAPI, though without
`x-kubernetes-`; where it is the items of a list or map, they are `of`. A type is an object with `fields`, or with
`schema` where it has none; `go` and `embedded` are what Go calls fields and what it wraps them in, where no document
says so.
"""

from typing import Final

from jackfield.codec import Raw, RawValue

REF: Final = "#/components/schemas/"
PREFIX: Final = "x-kubernetes-"
_MARKS: Final = (
    "group-version-kind",
    "list-map-keys",
    "list-type",
    "map-type",
    "patch-merge-key",
    "patch-strategy",
)
_EMPTY: Final[tuple[RawValue, ...]] = ("", 0, {})
_GO: Final = {
    "boolean": "bool",
    "integer:int32": "int32",
    "integer:int64": "int64",
    "number:double": "float64",
    "string": "string",
    "string:byte": "[]uint8",
    "string:date-time": "string",
}


# --- from OpenAPI


def shortened(schema: Raw, package: str) -> Raw:
    """Return a type as the file spells it."""
    if "properties" not in schema:
        return {"schema": schema}
    fields = {name: _field(one, package) for name, one in schema["properties"].items()}
    rest = {name: value for name, value in schema.items() if name not in ("type", "properties")}
    return {"fields": fields, **_unmarked(rest)}


def _field(schema: Raw, package: str) -> RawValue:
    word, rest = _word(schema, package)
    return {"is": word, **_unmarked(rest)} if rest else word


def _word(schema: Raw, package: str) -> tuple[str, Raw]:
    """Return the word for a schema, and what it leaves unsaid."""
    match schema:
        case {"$ref": str(ref), **rest} | {"allOf": [{"$ref": str(ref)}], **rest}:
            name = ref.removeprefix(REF)
            home, _, short = name.rpartition(".")
            return _with_default(f"#{short if home == package else name}", rest)
        case {"type": "array", "items": dict(items), **rest}:
            return _of("[]", _field(items, package), rest)
        case {"type": "object", "additionalProperties": dict(items), **rest}:
            return _of("{}", _field(items, package), rest)
        case {"type": str(kind), "format": str(form), **rest}:
            return _with_default(f"{kind}:{form}", rest)
        case {"type": str(kind), **rest}:
            return _with_default(kind, rest)
        case _:
            raise ValueError(f"no word for {schema}")


def _of(many: str, items: RawValue, rest: Raw) -> tuple[str, Raw]:
    return (f"{many}{items}", rest) if isinstance(items, str) else (many, {"of": items, **rest})


def _with_default(word: str, rest: Raw) -> tuple[str, Raw]:
    if "default" in rest and rest["default"] in _EMPTY and rest["default"] == _default(word):
        return f"{word}=", {name: value for name, value in rest.items() if name != "default"}
    return word, rest


def _unmarked(schema: Raw) -> Raw:
    return {name.removeprefix(PREFIX): value for name, value in schema.items()}


# --- to OpenAPI


def expanded(entry: Raw, package: str) -> Raw:
    """Return a type of the file as OpenAPI spells it."""
    if "schema" in entry:
        schema: Raw = entry["schema"]
        return schema
    properties = {name: _property(one, package) for name, one in entry["fields"].items()}
    rest = {name: value for name, value in entry.items() if name not in ("fields", "go", "embedded")}
    return {"type": "object", "properties": properties, **_marked(rest)}


def _property(field: RawValue, package: str) -> Raw:
    if isinstance(field, str):
        return _schema(field, package)
    rest = {name: value for name, value in field.items() if name not in ("is", "of")}
    return {**_schema(field["is"], package, field.get("of", "")), **_marked(rest)}


def _schema(word: str, package: str, items: RawValue = "") -> Raw:
    if word.startswith("[]"):
        return {"type": "array", "items": _property(word[2:] or items, package)}
    if word.startswith("{}"):
        return {"type": "object", "additionalProperties": _property(word[2:] or items, package)}
    bare = word.removesuffix("=")
    default = {"default": _default(bare)} if bare != word else {}
    if bare.startswith("#"):
        name = bare[1:] if "." in bare else f"{package}.{bare[1:]}"
        return {"allOf": [{"$ref": f"{REF}{name}"}], **default}
    kind, _, form = bare.partition(":")
    return {"type": kind, **({"format": form} if form else {}), **default}


def _default(word: str) -> RawValue:
    """Return the default that says nothing."""
    match word.partition(":")[0]:
        case "string":
            return ""
        case "boolean":
            return False
        case "integer" | "number":
            return 0
        case _:
            return {}


def _marked(schema: Raw) -> Raw:
    return {f"{PREFIX}{name}" if name in _MARKS else name: value for name, value in schema.items()}


# --- Go


def go_type(schema: Raw) -> str:
    """Return what Go most likely calls a type: what it does call it where the file says nothing else."""
    match schema:
        case {"$ref": str(ref)} | {"allOf": [{"$ref": str(ref)}]}:
            return ".".join(ref.removeprefix(REF).split(".")[-2:])
        case {"items": dict(items)}:
            return f"[]{go_type(items)}"
        case {"additionalProperties": dict(items)}:
            return f"map[string]{go_type(items)}"
        case {"type": str(kind), **rest}:
            return _GO.get(f"{kind}:{rest['format']}" if "format" in rest else kind, "interface {}")
        case _:
            return "interface {}"
