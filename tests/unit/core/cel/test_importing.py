"""Who compiles nothing needs nothing: the libraries behind expressions are loaded when first used."""

import subprocess
import sys

import pytest

from jackfield.core.cel import UnavailableError
from jackfield.core.cel.extra import library

LAZY = ("re2",)


def run(program: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout.strip()


def test_compiling_loads_no_native_library() -> None:
    names = run(f"import sys, jackfield.core.cel; print([one for one in {LAZY} if one in sys.modules])")
    assert names == "[]"


def test_only_patterns_need_the_extra_and_say_so() -> None:
    told = run(
        "import sys; sys.modules['re2'] = None\n"
        "from jackfield.core import cel\n"
        "print(cel.compile('true').output_type)\n"
        "try: cel.compile('device.driver.matches(\"a\")')\n"
        "except cel.UnavailableError as error: print(error)"
    )
    assert told.startswith("bool\n")
    assert "jackfield[cel]" in told


def test_what_cannot_be_imported_names_the_extra() -> None:
    with pytest.raises(UnavailableError, match=r"jackfield\[cel\]"):
        library("no_such_library")
