"""How results leave the command: text or JSON lines on standard output, trouble on standard error.

Knows line formats and exit statuses. Must not know what is in a line, nor import much: what runs for months uses it.
"""

import msgspec

OK, FAILED, UNUSABLE = 0, 1, 2


def as_json(value: object) -> str:
    """Return a value as one line of JSON."""
    return msgspec.json.encode(value).decode()
