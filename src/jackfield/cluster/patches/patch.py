"""JSON merge patch (RFC 7396), without touching the original; and what is said of any patch whose result is no object.

Knows dictionaries. Must not know any kind.
"""

from http import HTTPStatus

from jackfield.cluster import errors
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
            result[name] = without_nulls(value) if isinstance(value, list) else value
    return result


def unusable(shown: str, why: str) -> errors.ApiError:
    """Return the error for a patch whose result is no object of its kind.

    The server shows the whole result as JSON, or of a strategic merge patch the patch itself as Go prints it.
    """
    cause = errors.invalid_value("patch", shown, why)
    details = errors.Details(causes=(cause,))
    return errors.ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", f' "" is invalid: {cause}', details)
