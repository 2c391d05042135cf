"""Cuts the text of an expression into tokens.

Knows spelling. Must not know grammar.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

END: Final = "<EOF>"
IDENTIFIER: Final = "IDENTIFIER"
QUOTED: Final = "quoted"
INT, UINT, FLOAT, STRING, BYTES = "NUM_INT", "NUM_UINT", "NUM_FLOAT", "STRING", "BYTES"
_WORDS: Final = ("true", "false", "null", "in")
"""Words that are tokens of their own, not names."""

_ESCAPE: Final = r"""\\(?:[abfnrtv"'\\?`]|[0-3][0-7]{2}|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"""
_TEXT: Final = "|".join(
    (
        *(rf"{quote * 3}(?:{_ESCAPE}|[^\\])*?{quote * 3}" for quote in "'\""),
        *(rf"{quote}(?:{_ESCAPE}|[^\\{quote}\n\r])*{quote}" for quote in "'\""),
    )
)
_RAW: Final = "|".join(
    (
        *(rf"{quote * 3}.*?{quote * 3}" for quote in "'\""),
        *(rf"{quote}[^{quote}\n\r]*{quote}" for quote in "'\""),
    )
)
_TOKEN: Final = re.compile(
    rf"""(?P<space>[\t \r\n\f]+|//[^\n]*)
    |(?P<{FLOAT}>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    |(?P<{UINT}>0x[0-9a-fA-F]+[uU]|(?!0x[0-9a-fA-F])[0-9]+[uU])
    |(?P<{INT}>0x[0-9a-fA-F]+|[0-9]+)
    |(?P<{BYTES}>[bB](?:{_TEXT}|[rR](?:{_RAW})))
    |(?P<{STRING}>{_TEXT}|[rR](?:{_RAW}))
    |(?P<{IDENTIFIER}>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<{QUOTED}>`[A-Za-z0-9_./\ -]+`)
    |(?P<sign>&&|\|\||[=!<>]=|[-+*/%<>()\[\]{{}}.,!?:])""",
    re.VERBOSE | re.DOTALL,
)
_STUCK: Final = re.compile(
    rf"""(?P<quote>['"])(?:{_ESCAPE}|(?!(?P=quote))[^\\\n\r])*(?:\\(?:[xXuU][0-9a-fA-F]*|[0-3][0-7]?)?)?.?
    |`[A-Za-z0-9_./\ -]*.?|[&=|].?|.""",
    re.VERBOSE | re.DOTALL,
)
"""What is read before it shows that nothing can come of it."""


class Token(NamedTuple):
    """A piece of text; a sign's kind is the sign itself."""

    kind: str
    text: str
    at: int


class Stray(NamedTuple):
    """A piece of text that is no token."""

    text: str
    at: int


def tokens(source: str) -> tuple[list[Token], list[Stray]]:
    """Return the tokens of a text, the last of which is its end, and all that is none."""
    found: list[Token] = []
    strays: list[Stray] = []
    for one in _pieces(source):
        (found if isinstance(one, Token) else strays).append(one)  # type: ignore[arg-type]  # each in its list
    found.append(Token(END, END, len(source)))
    return found, strays


def _pieces(source: str) -> Iterator[Token | Stray]:
    at = 0
    while at < len(source):
        piece = _TOKEN.match(source, at)
        if piece is None:
            stuck = _STUCK.match(source, at)
            assert stuck is not None, "any character is one"
            yield Stray(stuck[0], at)
            at = stuck.end()
            continue
        kind, text = str(piece.lastgroup), piece[0]
        if kind == "sign" or text in _WORDS:
            kind = text
        if kind != "space":
            yield Token(kind, text, at)
        at = piece.end()
