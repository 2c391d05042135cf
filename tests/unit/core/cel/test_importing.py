"""Who compiles nothing needs nothing: the libraries behind expressions are loaded when first used."""

import subprocess
import sys

import pytest

from jackfield.core.cel import UnavailableError
from jackfield.core.cel.extra import library

LAZY = ("cel_expr_python", "google.protobuf", "re2")


def run(program: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout.strip()


def test_importing_the_package_loads_no_native_library() -> None:
    names = run(f"import sys, jackfield.core.cel; print([one for one in {LAZY} if one in sys.modules])")
    assert names == "[]"


def test_a_missing_library_names_the_extra() -> None:
    for name in ("cel_expr_python", "google.protobuf"):
        told = run(
            f"import sys; sys.modules[{name!r}] = None\n"
            "from jackfield.core import cel\n"
            "try: cel.compile('true')\n"
            "except cel.UnavailableError as error: print(error)"
        )
        assert "jackfield[cel]" in told


def test_what_cannot_be_imported_names_the_extra() -> None:
    with pytest.raises(UnavailableError, match=r"jackfield\[cel\]"):
        library("no_such_library")
