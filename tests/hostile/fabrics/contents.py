"""Answers whose HTTP is in order and whose contents are not; the same chance, the same answer.

Knows how to spoil JSON and headers, with the manager's own words as well as with any. Must not know what becomes of it.
"""

import random
from typing import Final

import msgspec

from hostile.fabrics.front import Heard, Said
from jackfield.codec import Raw, RawValue

MANY: Final = 1_000_000
LONG: Final = 100_000
STATUSES: Final = (
    200, 200, 200, 201, 202, 203, 204, 206, 226, 299, 300, 301, 302, 303, 304, 307, 308, 400, 401, 401, 403, 404, 404,
    405, 406, 408, 409, 410, 412, 413, 415, 418, 422, 423, 428, 429, 451, 499, 500, 501, 502, 503, 503, 504, 511, 599,
    600, 999,
)  # fmt: skip
TEXTS: Final = (
    "", " ", ".", "..", "../..", "../../../../etc/passwd", "..%2f..", "%2e%2e", "a/b", "/", "//evil", "\\..\\",
    "a\nb",
    "a\r\nX-Injected: 1\r\n\r\n", "\x00", "a\x00b", "\x1b[2J", "\u202egnp", "\ud7ff\ufffd\U0010ffff", "🦑", "x" * LONG,
    "A" * 253, "A" * 254, "null", "true", "0", "-1", "NaN", "1e999", "2" * 400, "{}", "[]", "?", "#", "a?b=c#d",
    "%", "%s",
    "{0}", "${jndi:x}", "<script>", "' OR 1=1 --", "gpu", "GPU", "Done", "Working", "Failed", "n-1", "n-2", "A100",
    "o-1",
)  # fmt: skip
STRANGE: Final[tuple[RawValue, ...]] = (
    None, True, False, 0, -1, 1, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 2**64, 1.5, -0.0, 1e308, 5e-324, [], {}, [[]],
    [None], {"": None}, {"a": {"b": {}}}, [[[[]]]], [0, "", None, {}],
)  # fmt: skip
RETRY_AFTER: Final = (
    "0", "1", "-5", "9" * 400, "soon", "0.5", "\u0664", "1e9", "inf", "nan", "", " 3 ",
    "Wed, 21 Oct 2015 07:28:00 GMT",
)  # fmt: skip
SAID: Final = (
    ("Set-Cookie", "token=stolen; Path=/; Domain=.example.com"),
    ("Set-Cookie", "\x01\x02=;;;=; ="),
    ("ETag", 'W/"\udcff"'),
    ("ETag", ""),
    ("ETag", "x" * 5000),
    ("Content-Type", ""),
    ("Content-Type", "text/html; charset=utf-7"),
    ("Content-Type", "multipart/mixed; boundary="),
    ("WWW-Authenticate", 'Digest realm="x", nonce="y"'),
    ("X-Auth-Token", ""),
    ("X-Auth-Token", "a b\tc"),
    ("X-Auth-Token", "\udcff\udcfe"),
    ("X-Auth-Token", "x" * 8000),
    ("Connection", "close"),
    ("Connection", "upgrade"),
    ("Upgrade", "h2c"),
    ("Strict-Transport-Security", "max-age=1"),
    ("Refresh", "0; url=http://127.0.0.1:1/"),
)
RAW_VALUES: Final = (
    b"NaN", b"Infinity", b"-Infinity", b"1e400", b"-1e400", b"9" * 5000, b"0x10", b"01", b"+1", b"'a'", b"undefined",
    b'"\\ud800"', b'"\\u0000"', b'"\xff\xfe"', b'"\xed\xa0\x80"', b'"\x01"', b"[" * 5_000 + b"]" * 5_000,
    b'{"a":' * 5_000 + b"1" + b"}" * 5_000, b"[" * LONG, b"1.0000000000000000000000000000000000001", b"",
)  # fmt: skip
MARK: Final = "@here@"


class Traps(msgspec.Struct, frozen=True):
    """What an answer may tempt us with: somebody else's address, the manager's vocabulary."""

    elsewhere: str
    words: tuple[str, ...]
    large: bool = True
    """Whether now and then an answer is as large as answers come, which costs a second or two."""


def spoilt(chance: random.Random, heard: Heard, said: Said, traps: Traps) -> Said:
    """Return the answer, spoilt in one way or several."""
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        way = chance.choice(("tree", "tree", "tree", "tree", "tree", "bytes", "status", "headers", "echo"))
        match way:
            case "tree":
                said = _replaced(said, _tree(chance, heard, said.body, traps))
            case "bytes":
                said = _replaced(said, _bytes(chance, said.body))
            case "status":
                said = msgspec.structs.replace(said, status=chance.choice(STATUSES))
                said = _redirected(chance, heard, said, traps) if 300 <= said.status < 400 else said
            case "headers":
                said = _headers(chance, heard, said, traps)
            case _:
                return _echo(
                    chance, heard, said
                )  # the last: what is cut short by the other side is not our doing
    return said


def _replaced(said: Said, body: bytes) -> Said:
    return msgspec.structs.replace(said, body=body)


# --- trees


def _tree(chance: random.Random, heard: Heard, body: bytes, traps: Traps) -> bytes:
    try:
        tree: RawValue = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _bytes(chance, body)
    places = list(_places(tree))
    if not places:
        return msgspec.json.encode(_strange(chance, tree, heard, traps))
    way = chance.randrange(40)
    if way == 0:
        return msgspec.json.encode(_all_of(tree, chance.choice((None, "", 0, [], {}))))
    if way <= 3:
        inner, name = chance.choice(places)
        inner[name] = MARK
        return msgspec.json.encode(tree).replace(f'"{MARK}"'.encode(), chance.choice(RAW_VALUES))
    for _ in range(chance.choice((1, 1, 1, 1, 2, 3, 8))):
        inner, name = chance.choice(places)
        gone = name not in inner if isinstance(inner, dict) else name >= len(inner)
        if not gone:  # by what was spoilt before
            _spoil(chance, inner, name, _strange(chance, inner[name], heard, traps))
    encoded = msgspec.json.encode(tree)
    return _doubled(chance, encoded) if way <= 6 else encoded


def _spoil(chance: random.Random, inner: RawValue, name: RawValue, strange: RawValue) -> None:
    match chance.randrange(14):
        case 0:
            del inner[name]
        case 1:
            inner[name] = [inner[name], inner[name]]
        case 2 if isinstance(inner[name], list):
            inner[name] = inner[name] * chance.choice((2, 3, 50, 1000))
        case 3 if isinstance(inner[name], list):
            inner[name] = []
        case 4 if isinstance(inner, dict):
            inner[f"{name}\u0000"] = inner.pop(name)
        case _:
            inner[name] = strange


def _strange(chance: random.Random, instead: RawValue, heard: Heard, traps: Traps) -> RawValue:
    """Return what should not stand there; mostly of the type that should, since that gets further."""
    if chance.random() < 0.2:
        return chance.choice(STRANGE)
    if isinstance(instead, bool):
        return not instead
    if isinstance(instead, int | float):
        return chance.choice((0, -1, 1, 2, 7, 10**6, 10**9, 2**31, 2**53, 2**63, 2**64, 0.5, -1e300, 1e300))
    if isinstance(instead, str):
        own = (
            heard.path,
            f"http://{traps.elsewhere}{heard.path}",
            f"http://{traps.elsewhere}/",
            heard.path.upper(),
        )
        return chance.choice((chance.choice(TEXTS), chance.choice(traps.words or TEXTS), chance.choice(own)))
    if isinstance(instead, list) and instead and chance.random() < 0.5:
        return [chance.choice(instead) for _ in range(chance.choice((1, 2, 20)))]
    return chance.choice(STRANGE)


def _all_of(tree: RawValue, value: RawValue) -> RawValue:
    """Return the tree with that for every leaf."""
    if isinstance(tree, dict):
        return {name: _all_of(one, value) for name, one in tree.items()}
    return [_all_of(one, value) for one in tree] if isinstance(tree, list) else value


def _places(tree: RawValue) -> list[tuple[RawValue, RawValue]]:
    names: list[RawValue] = (
        [*tree] if isinstance(tree, dict) else [*range(len(tree))] if isinstance(tree, list) else []
    )
    return [(tree, name) for name in names] + [one for name in names for one in _places(tree[name])]


def _doubled(chance: random.Random, encoded: bytes) -> bytes:
    """Say a key twice, with different values."""
    at = encoded.find(b'":', chance.randrange(len(encoded)))
    begin = encoded.rfind(b'"', 0, at) if at > 0 else -1
    if begin <= 0:
        return encoded
    key = encoded[begin : at + 2]
    return encoded[:begin] + key + chance.choice((b"null,", b'"",', b"[],", b"{},", b"1,")) + encoded[begin:]


def many(chance: random.Random, said: Said) -> Said:
    """Return the answer with a million members in one of its lists, or in place of what it says."""
    try:
        tree: RawValue = msgspec.json.decode(said.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        tree = {}
    lists = [(inner, name) for inner, name in _places(tree) if isinstance(inner[name], list)]
    if not lists:
        return _replaced(said, b"[" + b"0," * MANY + b"0]")
    inner, name = chance.choice(lists)
    one = msgspec.json.encode(chance.choice((inner[name][0] if inner[name] else {}, 0, {}, [])))
    count = min(MANY, 60 * 2**20 // (len(one) + 1))
    inner[name] = MARK
    members = b"[" + b",".join([one] * count) + b"]"
    return _replaced(said, msgspec.json.encode(tree).replace(f'"{MARK}"'.encode(), members))


# --- bytes, headers


def _bytes(chance: random.Random, body: bytes) -> bytes:
    match chance.randrange(7):
        case 0:
            return body[: chance.randrange(len(body) + 1)]
        case 1:
            at = chance.randrange(len(body) + 1)
            return body[:at] + chance.randbytes(chance.randrange(1, 9)) + body[at + 1 :]
        case 2:
            return chance.choice(
                (b"", b" ", b"<html>No</html>", b"\xff\xfe\x00", b"null", b"NaN", b"[]", b"{}", b'""', b"0")
            )
        case 3:
            deep = chance.choice((10, 1_000, LONG))
            return chance.choice(
                (b"[" * deep, b'{"data":' * deep, b"[" * deep + b"]" * deep, b'{"a":[' * deep)
            )
        case 4:
            return body + body
        case 5:
            return b"\xef\xbb\xbf" + body
        case _:
            return body.decode(errors="replace").encode(chance.choice(("utf-16", "utf-32", "utf-7")))


def _redirected(chance: random.Random, heard: Heard, said: Said, traps: Traps) -> Said:
    targets = (
        f"http://{traps.elsewhere}{heard.path}",
        f"//{traps.elsewhere}/",
        heard.path,
        "",
        "file:///etc/passwd",
    )
    return msgspec.structs.replace(said, headers=(*said.headers, ("Location", chance.choice(targets))))


def _headers(chance: random.Random, heard: Heard, said: Said, traps: Traps) -> Said:
    match chance.randrange(5):
        case 0:
            kept = said.headers
            more = ("Retry-After", chance.choice(RETRY_AFTER))
        case 1:
            kept = tuple(one for one in said.headers if one[0].lower() != "location")
            places = (
                heard.path,
                f"http://{traps.elsewhere}{heard.path}",
                "",
                "..",
                "/../..",
                "a b",
                "\udcff",
                "x" * 8000,
            )
            more = ("Location", chance.choice((*places, *TEXTS[:12])).replace("\r", "").replace("\n", " "))
        case 2 if said.headers:
            gone = chance.randrange(len(said.headers))
            return msgspec.structs.replace(said, headers=said.headers[:gone] + said.headers[gone + 1 :])
        case _:
            more = chance.choice(SAID)
            kept = tuple(
                one for one in said.headers if chance.random() < 0.5 or one[0].lower() != more[0].lower()
            )
    return msgspec.structs.replace(said, headers=(*kept, more))


def _echo(chance: random.Random, heard: Heard, said: Said) -> Said:
    """Repeat what was said, where one would look for a reason, as a careless manager's debug page does."""
    pad = "." * chance.choice((0, 0, 250, 270, 290, 1150, 1190))
    proofs = " ".join(heard.headers.get(name, "") for name in ("authorization", "x-auth-token"))
    text = f"{pad}{proofs} {heard.body.decode(errors='replace')}".encode(errors="replace").decode()
    info = [{"Message": text, "MessageId": text}]
    shapes: tuple[Raw, ...] = (
        {"detail": {"code": "E1", "message": text}},
        {"detail": text},
        {"error": text, "error_description": text},
        {"error": {"code": text, "message": text, "@Message.ExtendedInfo": info}},
        {"type": text, "title": text, "status": 400, "detail": text},
        {"type": "urn:jackfield:problem:refused", "title": text, "status": 400, "detail": text},
        {"code": text, "message": text},
        {"data": {text: text}},
    )
    try:
        tree = msgspec.json.decode(said.body)
        places = [(inner, name) for inner, name in _places(tree) if isinstance(inner[name], str)]
        inner, name = chance.choice(places)
        inner[name] = text
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, IndexError):
        tree = text
    body = msgspec.json.encode(chance.choice((*shapes, tree, tree)))
    if chance.random() < 0.3:
        body = body.replace(b"/", b"\\/")
    return Said(chance.choice((said.status, said.status, 400, 403, 409, 422, 500, 503)), said.headers, body)
