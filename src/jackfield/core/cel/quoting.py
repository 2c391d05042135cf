"""Texts in quotation marks.

Knows Go's escapes. Must not know who shows a text.
"""

from typing import Final

ESCAPES: Final = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
    "\\": r"\\",
    '"': r"\"",
}


def quoted(text: str) -> str:
    """Return a text in quotation marks, as Go's %q has it."""
    return (
        f'"{"".join(ESCAPES.get(one) or (one if one.isprintable() else _escaped(ord(one))) for one in text)}"'
    )


def _escaped(code: int) -> str:
    if code < 0x80:  # noqa: PLR2004 - where ASCII ends
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"  # noqa: PLR2004 - where four digits end
