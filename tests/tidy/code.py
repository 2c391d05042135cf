"""Rules for Python: size, names, words, tests.

Knows syntax trees and comments. Must not know what the code is about.
"""

import ast
import re
from collections.abc import Iterator

from tidy.rule import Source, in_modules_of_src, in_python, in_src, in_test_modules, in_tests, rule

FUNCTION_LINES_MAX = 70
MODULE_LINES_MAX = 500
PARAMETERS_MAX = 5
COLUMNS_MAX = 120
TEST_NAME_WORDS_MIN = 3
BANNED_MODULES = ("utils", "common", "helpers", "types", "misc")

# --- size and names


@rule(in_python, "a.py", ("def f():\n" + "    g()\n" * FUNCTION_LINES_MAX,), "def f():\n    g()\n")
def functions_fit_on_a_screen(source: Source) -> Iterator[str]:
    for function in source.functions:
        lines = (function.end_lineno or function.lineno) - function.lineno + 1
        if lines > FUNCTION_LINES_MAX:
            yield f"{function.lineno}: {function.name} has {lines} lines, not {FUNCTION_LINES_MAX} or fewer"


@rule(in_python, "a.py", ("a = 1\n" * (MODULE_LINES_MAX + 1),), "a = 1\n" * MODULE_LINES_MAX)
def modules_are_one_thought(source: Source) -> Iterator[str]:
    lines = source.text.count("\n")
    if lines > MODULE_LINES_MAX and "/_proto/" not in source.path:
        yield f"1: has {lines} lines, at most {MODULE_LINES_MAX} are allowed"


@rule(
    in_python,
    "a.py",
    ("def f(a, b, c, d, e, g): ...\n", "def f(a, b, /, c, *d, e, **g): ...\n"),
    "class A:\n    def f(self, a, b, c, *, d, e): ...\n",
)
def functions_take_few_parameters(source: Source) -> Iterator[str]:
    for function in source.functions:
        given = function.args
        every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
        count = sum(one is not None and one.arg not in {"self", "cls"} for one in every)
        if count > PARAMETERS_MAX:
            yield f"{function.lineno}: {function.name} takes {count}, at most {PARAMETERS_MAX} are allowed"


@rule(in_python, "a.py", ("a = '" + "x" * COLUMNS_MAX + "'\n",), "# https://" + "x" * COLUMNS_MAX + "\n")
def lines_are_readable(source: Source) -> Iterator[str]:
    for number, line in enumerate(source.lines, 1):
        if len(line) > COLUMNS_MAX and "://" not in line and "/_proto/" not in source.path:
            yield f"{number}: has {len(line)} columns, at most {COLUMNS_MAX} are allowed"


@rule(
    in_python,
    "a.py",
    (*(f"path: src/jackfield/{name}.py" for name in BANNED_MODULES), "path: tests/helpers/claims.py"),
    "path: src/jackfield/core/cel/values.py",
)
def modules_are_named_for_what_they_know(source: Source) -> Iterator[str]:
    for part in source.path.removesuffix(".py").split("/"):
        if part.strip("_") in BANNED_MODULES:
            yield f"1: {part!r} says nothing; name the module for what it knows"


# --- words


@rule(in_src, "src/jackfield/a.py", ("a = 1\n", "# words\n"), '"""Words."""\n')
def modules_have_docstrings(source: Source) -> Iterator[str]:
    if source.text.strip() and not ast.get_docstring(source.tree):
        yield "1: has no docstring"


@rule(
    in_modules_of_src,
    "src/jackfield/core/a.py",
    ('"""Adds numbers."""\n', '"""Knows all."""\n'),
    '"""Adds numbers.\n\nKnows carries. Must not\nknow paper.\n"""\n',
)
def modules_say_what_they_know(source: Source) -> Iterator[str]:
    words = " ".join((ast.get_docstring(source.tree) or "").lower().split())
    inner = source.within("src/jackfield/core", "src/jackfield/model", "src/jackfield/controllers")
    needed = "must not know" if inner else "know"
    if needed not in words:
        yield f"1: the docstring does not say what the module knows and what it must not know ({needed!r})"


SILENCER = re.compile(r"#\s*(noqa|type: ignore)(?::\s*|\[)?([\w, -]*?)\]?(?:\s+(?:- |# )(.*))?$")


@rule(
    in_python,
    "a.py",
    (
        "a = b  # no{}\n".format("qa"),
        "a = b  # no{}: E501\n".format("qa"),
        "a = b  # type: {}\n".format("ignore"),
        "a = b  # type: {}[arg-type]\n".format("ignore"),
    ),
    "a = b  # {0}: E501 - a table\nc = d  # {0}: E501\n# words\ne = f  # type: ignore[misc]\n".format("noqa"),
)
def silenced_checks_say_which_and_why(source: Source) -> Iterator[str]:
    """Ask for a code each time, and for the reason beside or above the first use of a code in a file."""
    explained: list[str] = []
    for number, comment in source.comments:
        if found := SILENCER.search(comment):
            above = source.lines[number - 2].strip() if number > 1 else ""
            codes, reason = found[2].strip(), found[3] or comment[: found.start()] or above.startswith("#")
            if not codes:
                yield f"{number}: {found[1]} without a code"
            elif not reason and codes not in explained:
                yield f"{number}: {found[1]} {codes} without a reason"
            explained.append(codes)


# --- tests


@rule(in_test_modules, "tests/test_a.py", ("def check(): ...\n",), "def test_one_is_one(): ...\n")
def modules_named_test_have_tests(source: Source) -> Iterator[str]:
    if not source.tests:
        yield "1: has no test"


@rule(
    in_tests,
    "tests/test_a.py",
    ("def test_one(): ...\n", "def test_a_b(): ...\n"),
    "def test_one_is_one(): ...\n",
)
def names_of_tests_are_sentences(source: Source) -> Iterator[str]:
    for test in source.tests:
        if len(test.name.split("_")) - 1 < TEST_NAME_WORDS_MIN:
            yield f"{test.lineno}: {test.name} is not a sentence"


@rule(
    in_tests,
    "tests/test_a.py",
    (
        "from unittest import mock\n",
        "import unittest.mock\n",
        "from unittest.mock import Mock\n",
        "m.setattr(a, b)\n",
    ),
    "import unittest\n",
)
def nothing_is_mocked_or_patched(source: Source) -> Iterator[str]:
    for node in ast.walk(source.tree):
        match node:
            case ast.Import(names=names) if any(name.name == "unittest.mock" for name in names):
                yield f"{node.lineno}: imports unittest.mock"
            case ast.ImportFrom(module="unittest.mock"):
                yield f"{node.lineno}: imports unittest.mock"
            case ast.ImportFrom(module="unittest", names=names) if any(name.name == "mock" for name in names):
                yield f"{node.lineno}: imports unittest.mock"
            case ast.Call(func=ast.Attribute(attr="setattr" | "setitem")):
                yield f"{node.lineno}: patches something; pass it in instead"
            case _:
                pass


@rule(
    in_tests,
    "tests/test_a.py",
    (
        "assert {}\n".format("True"),
        "assert a or {}\n".format("True"),
        "assert (a, 'b')\n",
        "assert 'words'\n",
    ),
    "assert a is True or b\n",
)
def every_assertion_can_fail(source: Source) -> Iterator[str]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Assert) and _always_true(node.test):
            yield f"{node.lineno}: cannot fail"


def _always_true(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=value):
            return bool(value)
        case ast.Tuple(elts=elements):
            return bool(elements)
        case ast.BoolOp(op=ast.Or(), values=values):
            return any(_always_true(value) for value in values)
        case _:
            return False


@rule(
    in_tests,
    "tests/test_a.py",
    (
        "m = pytest.mark.{}\n".format("skip"),
        "pytest.{}('x')\n".format("skip"),
        "pytest.mark.skipif(a)\n",
        "pytest.mark.skipif(a, reason='a program is missing')\n",
    ),
    "pytest.mark.skipif(not DATA.exists(), reason='DATA of shared/conformance is not there')\n",
)
def tests_are_left_out_only_for_missing_data(source: Source) -> Iterator[str]:
    for node in ast.walk(source.tree):
        match node:
            case ast.Attribute(attr="skip" | "xfail") if ast.unparse(node).startswith("pytest."):
                yield f"{node.lineno}: {ast.unparse(node)} hides a defect"
            case ast.Call(func=function, keywords=keywords) if ast.unparse(function) == "pytest.mark.skipif":
                # Data that is not ours to ship is the one reason; what a test needs else, the project installs.
                if not any(one.arg == "reason" and "shared/" in ast.unparse(one.value) for one in keywords):
                    yield f"{node.lineno}: skipif for another reason than data of shared/ that is missing"
            case _:
                pass
