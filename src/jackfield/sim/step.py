"""What all steps of a scenario have in common.

Knows values only. Must not know what any step is about.
"""

from typing import Annotated

import msgspec

Count = Annotated[int, msgspec.Meta(ge=0)]
Duration = Annotated[float, msgspec.Meta(ge=0)]
Likelihood = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Step(msgspec.Struct, frozen=True, kw_only=True, tag_field="do", forbid_unknown_fields=True):
    """Something that happens."""

    at: Duration = 0.0
    """Seconds after the curtain."""
