"""A value as a merge patch has to spell it, so that nothing of what was there before is left.

Knows merge patches. Must not know whose value it is.
"""

import msgspec

_REQUIRED = ("type", "model", "size", "state")
"""Fields that CoHDI's schema wants to see whatever they are."""


def whole(value: object) -> object:
    """Spell a value so that a merge patch leaves nothing of what was there: what is not set is named with nothing."""
    if not isinstance(value, msgspec.Struct):
        return value
    fields = {name: whole(getattr(value, name)) for name in value.__struct_fields__}
    return {name: one if one or name in _REQUIRED else None for name, one in fields.items()}
