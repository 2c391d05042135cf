"""All functions there are: reading this module declares them.

Knows the topics. Must not know any one function.
"""

from types import ModuleType
from typing import Final

from jackfield.core.cel import (
    conversions,
    formats,
    formatting,
    lists,
    network,
    quantities,
    regex,
    strings,
    times,
)
from jackfield.core.cel.values import FUNCTIONS, Function

TOPICS: Final[tuple[ModuleType, ...]] = (
    conversions,
    formats,
    formatting,
    lists,
    network,
    quantities,
    regex,
    strings,
    times,
)


def function(name: str) -> Function:
    """Return a function; one that nothing here implements has no overload that fits."""
    return FUNCTIONS.get(name) or Function(name)
