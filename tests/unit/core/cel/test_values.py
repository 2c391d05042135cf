"""What Python would decide otherwise than CEL is not left to Python."""

import pytest

from jackfield.core.cel.faults import UncertainError
from jackfield.core.cel.quantities import version


def test_a_version_equals_a_version_whatever_it_was_built_from() -> None:
    assert version("1.2.3+a") == version("1.2.3+b")
    assert version("1.2.3") != version("1.2.3-rc")


def test_whether_a_version_equals_anything_else_is_left_open() -> None:
    with pytest.raises(UncertainError):
        assert version("1.2.3") == "1.2.3"
    with pytest.raises(UncertainError):
        hash(version("1.2.3"))
