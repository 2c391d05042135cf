"""The seam to whoever parses and type-checks: cel-expr-python, which is imported when first needed.

Knows the library and its gaps. Must not know what is done with an expression. To replace the library, replace this
module and `wire`.
"""

import json
import re
from functools import lru_cache
from typing import Any, Final

from jackfield.core.cel import declarations, wire
from jackfield.core.cel.extra import library
from jackfield.core.cel.faults import CompileError
from jackfield.core.cel.syntax import Checked

_LIBRARY_PREFIX: Final = "INVALID_ARGUMENT: "
_LIBRARY_SUFFIX: Final = " [INVALID_ARGUMENT]"
_TOKENS: Final = re.compile(
    r"""//[^\n]*"""
    r"""|[rR]?[bB]?(?:'''(?:[^\\]|\\.)*?'''|\"\"\"(?:[^\\]|\\.)*?\"\"\"|'(?:[^\\'\n]|\\.)*'|"(?:[^\\"\n]|\\.)*")"""
    r"""|`|exists_one\s*\(""",
    re.DOTALL,
)
_WORDS: Final = (
    (re.compile("existsOne "), "exists_one"),
    (
        re.compile(r"expression of type ('[^']*') cannot be the operand of a select operation"),
        r"type \1 does not support field selection",
    ),
    (re.compile(r"has\(\) argument must be a field selection"), "invalid argument to has() macro"),
    (
        re.compile(r"(?:CANCELLED: )?Expression recursion limit exceeded. limit: 32 \[CANCELLED\]"),
        "expression recursion limit exceeded: 32",
    ),
)
"""What the library says, and what Kubernetes says."""
_TWO_VARIABLE_ARGUMENTS: Final = 3


def check(source: str, *, lists: bool = False) -> Checked:
    """Return the expression, parsed and type-checked; raise CompileError where Kubernetes' checker would refuse."""
    text = _spelt_for_library(source)
    try:
        serialized = _environment(lists).compile(text).serialize()
    except RuntimeError as error:
        message = str(error).removeprefix(_LIBRARY_PREFIX).removesuffix(_LIBRARY_SUFFIX)
        for theirs, ours in _WORDS:
            message = theirs.sub(ours, message)
        raise CompileError(f"compilation failed: {message}") from error
    except (TypeError, UnicodeEncodeError) as error:
        raise CompileError("compilation failed: ERROR: <input>:1:1: Syntax error: no valid text") from error
    return wire.read(source, serialized)


@lru_cache(maxsize=2)
def _environment(lists: bool) -> Any:  # noqa: ANN401, FBT001 - the library has no usable types; a cache key
    cel = library("cel_expr_python.cel")
    descriptor_pb2 = library("google.protobuf.descriptor_pb2")
    # A real pool: without protobuf the library aborts the process, with a stand-in two threads lock each other out.
    pool = library("google.protobuf.descriptor_pool").DescriptorPool()
    pool.AddSerializedFile(library("google.protobuf.struct_pb2").DESCRIPTOR.serialized_pb)
    file = descriptor_pb2.FileDescriptorProto(
        name="jackfield/dra.proto",
        package="kubernetes",
        syntax="proto3",
        dependency=["google/protobuf/struct.proto"],
    )
    device = file.message_type.add(name="DRADevice")
    scalar, boolean = (
        descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
        descriptor_pb2.FieldDescriptorProto.TYPE_BOOL,
    )
    device.field.add(name="driver", number=1, type=scalar)
    device.field.add(name="allowMultipleAllocations", number=2, type=boolean)
    for number, name in ((3, "attributes"), (4, "capacity")):
        _add_map(device, name, number, descriptor_pb2.FieldDescriptorProto)
    pool.AddSerializedFile(file.SerializeToString())
    settings = cel.NewEnvConfigFromYaml(json.dumps(declarations.config(lists=lists)))
    return cel.NewEnv(pool, config=settings)


def _add_map(message: Any, name: str, number: int, field: Any) -> None:  # noqa: ANN401 - the library's
    entry = message.nested_type.add(name=f"{name.capitalize()}Entry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    entry.field.add(
        name="value",
        number=2,
        type=field.TYPE_MESSAGE,
        type_name=".google.protobuf.Struct",
        label=field.LABEL_OPTIONAL,
    )
    message.field.add(
        name=name,
        number=number,
        type=field.TYPE_MESSAGE,
        type_name=f".kubernetes.DRADevice.{name.capitalize()}Entry",
        label=field.LABEL_REPEATED,
    )


def _spelt_for_library(source: str) -> str:
    """Return the source as the library wants it, every character at its place.

    It knows the macro `exists_one` with two variables only as `existsOne`, and it takes quoted field names, which
    Kubernetes does not.
    """
    parts: list[str] = []
    end = 0
    for token in _TOKENS.finditer(source):
        parts.append(source[end : token.start()])
        text, end = token.group(), token.end()
        if text == "`":
            before = source[: token.start()]
            line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
            raise CompileError(
                f"compilation failed: ERROR: <input>:{line}:{column}: Syntax error: token recognition error at: '`'"
            )
        if text.startswith("exists_one") and _arguments(source, end) == _TWO_VARIABLE_ARGUMENTS:
            text = text.replace("exists_one", "existsOne ")
        parts.append(text)
    parts.append(source[end:])
    return "".join(parts)


def _arguments(source: str, start: int) -> int:
    """Return how many arguments follow an opening parenthesis."""
    depth, count, at = 1, 1, start
    while at < len(source):
        token = _TOKENS.match(source, at)
        if token and token.group() != "`" and not token.group().startswith("exists_one"):
            at = token.end()
            continue
        character = source[at]
        depth += (character in "([{") - (character in ")]}")
        count += character == "," and depth == 1
        at += 1
        if not depth:
            break
    return count
