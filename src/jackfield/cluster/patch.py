"""JSON merge patch (RFC 7396), without touching the original.

Knows dictionaries. Must not know any kind.
"""

from jackfield.codec import Raw, RawValue, without_nulls


def merged(target: RawValue, body: Raw) -> Raw:
    """Return the target with the patch merged in; parts that do not change are shared, not copied."""
    result: Raw = dict(target) if isinstance(target, dict) else {}
    for name, value in body.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            result[name] = merged(result.get(name), value)
        else:
            # A list is replaced as it is; what is null inside its items is absent there.
            result[name] = without_nulls(value)
    return result
