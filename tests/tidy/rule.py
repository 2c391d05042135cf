"""What a rule of tidiness is: a function from a source to its violations, with examples.

The examples make sure that every rule is seen to fail. Knows how files are read, and where rules apply. Must
not know any rule.
"""

import ast
import io
import os
import tokenize
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Source:
    """A file: its path from the root, its bytes, and what can be read out of them."""

    def __init__(self, path: str, data: bytes, *, executable: bool = False) -> None:
        self.path = path
        self.data = data
        self.executable = executable
        self.text = data.decode("utf-8", errors="replace")
        self.lines = self.text.split("\n")

    def within(self, *folders: str) -> bool:
        return self.path.startswith(tuple(f"{folder}/" for folder in folders))

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def python(self) -> bool:
        return self.path.endswith(".py")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def functions(self) -> list[Function]:
        return [node for node in ast.walk(self.tree) if isinstance(node, Function)]

    @property
    def tests(self) -> list[Function]:
        return [function for function in self.functions if function.name.startswith("test_")]

    @cached_property
    def comments(self) -> list[tuple[int, str]]:
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return [(token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT]


Where = Callable[[Source], bool]
Violations = Callable[[Source], Iterator[str]]


class Rule:
    """A named function from a source to its violations, where it applies, and examples."""

    def __init__(self, where: Where, violations: Violations, bad: tuple[Source, ...], good: Source) -> None:
        self.where = where
        self.violations = violations
        self.bad = bad
        self.good = good
        self.name = violations.__name__


def rule(where: Where, at: str, bad: tuple[str | bytes, ...], good: str) -> Callable[[Violations], Rule]:
    """Make a rule with texts to refuse and one to accept; `at` is the path they pretend to have."""

    def make(violations: Violations) -> Rule:
        return Rule(where, violations, tuple(_example(at, text) for text in bad), _example(at, good))

    return make


def _example(at: str, text: str | bytes) -> Source:
    """Build an example; `path: NAME` alone is an empty file of that name."""
    if isinstance(text, str) and text.startswith("path: "):
        return Source(text.removeprefix("path: "), b"")
    return Source(at, text.encode() if isinstance(text, str) else text)


def anywhere(source: Source) -> bool:
    return source.path != "LICENSE"


def in_python(source: Source) -> bool:
    return source.python


def in_src(source: Source) -> bool:
    return source.python and source.within("src")


def in_the_pure_part(source: Source) -> bool:
    return source.python and source.within("src/jackfield/core", "src/jackfield/model")


def in_what_is_simulated(source: Source) -> bool:
    """A seed is the same ordeal under every hash seed."""
    parts = ("core", "model", "controllers", "cluster", "sim")
    return source.python and source.within(*(f"src/jackfield/{one}" for one in parts))


def in_modules_of_src(source: Source) -> bool:
    return (
        in_src(source) and source.name not in {"__init__.py", "__main__.py"} and "/_proto/" not in source.path
    )


def in_tests(source: Source) -> bool:
    return source.python and source.within("tests")


def in_test_modules(source: Source) -> bool:
    return in_tests(source) and source.name.startswith("test_")


def in_markdown(source: Source) -> bool:
    return source.path.endswith(".md") and not is_news(source)


def in_the_changelog_folder(source: Source) -> bool:
    return source.within("changelog.d")


def is_news(source: Source) -> bool:
    """Fragments come and go; beside them the folder has a README."""
    return in_the_changelog_folder(source) and source.name != "README.md"


def sources(root: Path) -> Iterator[Source]:
    """Read every file that git would keep."""
    ignored = [".git", *(line.strip("/") for line in (root / ".gitignore").read_text().split())]
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not any(fnmatch(name, one) for one in ignored))
        for name in sorted(files):
            if not any(fnmatch(name, one) for one in ignored):
                path = Path(folder) / name
                executable = os.access(path, os.X_OK)
                yield Source(path.relative_to(root).as_posix(), path.read_bytes(), executable=executable)
