"""The libraries of the extra `cel`, imported when first needed.

Knows what to say where one is missing. Must not know what they are for.
"""

import importlib
from typing import Any

from jackfield.core.cel.faults import UnavailableError


def library(name: str) -> Any:  # noqa: ANN401 - they have no usable types
    """Return a library by its name; raises UnavailableError."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UnavailableError("regular expressions need the extra: pip install 'jackfield[cel]'") from error
