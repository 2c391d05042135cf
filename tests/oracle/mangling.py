"""Lines that are wrong in every way a line can be; the same seed, the same lines.

Knows how to spoil a good line: as bytes, or as the tree it stands for. Must not know what becomes of it.
"""

import random
from collections.abc import Callable

import msgspec

from jackfield.codec import Raw, RawValue, copied
from oracle.expressions import Expressions
from oracle.worlds import Worlds

DEEP = 2000
LONG = 20_000
HUGE = 10**400
NOT_JSON = b"@not json@"

STRANGE: tuple[Callable[[], RawValue], ...] = (
    lambda: None,
    lambda: True,
    lambda: 0,
    lambda: -1,
    lambda: 2**63,
    lambda: -(2**63) - 1,
    lambda: 2**64,
    lambda: 1.5,
    lambda: "",
    lambda: "x",
    lambda: "9" * LONG,
    lambda: "1e99999999",
    lambda: "-0.000000000000001Ei",
    lambda: "a/b/c/d/e",
    lambda: "All",
    lambda: "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, a + b + c != '')))",
    lambda: "[1, 2, 3].map(x, [1, 2, 3].map(y, x * y)) == [] || " * 200 + "true",
    lambda: "'a'.matches('(a*)*b') && size('" + "a" * 5000 + "') > 1",
    lambda: "\0\u2028\U0010ffff",
    lambda: "(" * LONG,
    list,
    dict,
    lambda: [None],
    lambda: {"": None},
    lambda: [[[[]]]],
    lambda: {"name": {"name": {"name": []}}},
)
BYTES = (
    b"\xff",
    b"\xed\xa0\x80",
    b'"',
    b"{",
    b"]",
    b"\\",
    b"\0",
    b"\x1b",
    b",",
    b"1e400",
    b"\\ud800",
    b"null",
    b" ",
)


class Mangled:
    """Draws one line after the other, with the command it is for."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._good = {"allocate": Worlds(seed).case, "cel": Expressions(seed).case}

    def line(self, number: int) -> tuple[str, bytes]:
        """Return a command and a line that it can hardly read."""
        chance = random.Random(f"{self._seed}/mangled/{number}")  # noqa: S311 - chance in tests is not cryptography
        command = chance.choice(("allocate", "cel", "cel"))
        case = self._good[command](chance.randrange(500))
        for _ in range(chance.choice((1, 1, 2, 5))):
            case = spoilt(chance, case)
        line = msgspec.json.encode(case)
        kind = chance.random()
        if kind < 0.1:
            line = line.replace(b'"x"', _deep(chance), 1)
        elif kind < 0.3:
            for _ in range(chance.choice((1, 1, 3, 20))):
                line = bitten(chance, line)
        return command, line.replace(b"\n", b" ")


def spoilt(chance: random.Random, case: Raw) -> Raw:
    """Put something strange into some place of the tree, or take something away, or say it twice."""
    changed: Raw = copied(case)
    places = list(_places(changed))
    if not places:
        return changed
    inner, name = chance.choice(places)
    match chance.choice(("strange", "strange", "strange", "strange", "gone", "twice")):
        case "strange":
            inner[name] = _strange(chance, inner[name])
        case "gone":
            del inner[name]
        case _:
            inner[name] = [inner[name], inner[name]]
    return changed


def _strange(chance: random.Random, instead_of: RawValue) -> RawValue:
    """Return something that should not stand there, mostly of the type that should: it gets further."""
    drawn = [draw() for draw in STRANGE]
    alike = [one for one in drawn if type(one) is type(instead_of)]
    return chance.choice(alike if alike and chance.random() < 0.8 else drawn)


def _places(value: RawValue) -> list[tuple[RawValue, RawValue]]:
    inner = (
        list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    )
    return [(value, name) for name in inner] + [place for name in inner for place in _places(value[name])]


def _deep(chance: random.Random) -> bytes:
    opening, closing = chance.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"[[", b"")))
    depth = chance.choice((50, DEEP, LONG))
    return chance.choice((opening * depth + b"1" + closing * depth, b"%d" % HUGE, NOT_JSON))


def bitten(chance: random.Random, line: bytes) -> bytes:
    start = chance.randrange(len(line) + 1)
    end = start + chance.choice((0, 1, 1, 10, len(line)))
    return line[:start] + chance.choice((b"", *BYTES)) + line[end:]
