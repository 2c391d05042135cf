"""Answers that are no HTTP, or hardly: what a broken manager, a proxy or somebody with a grudge may send.

Knows bytes. Must not know what they are about. Each writes, and says whether the connection can go on.
"""

import asyncio
import gzip
import random
import zlib
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Final

from hostile.fabrics.front import Said
from hostile.fabrics.hurried import HurriedClock
from jackfield.model.names import Seconds

MIB: Final = 2**20
Way = Callable[[random.Random, Said, asyncio.StreamWriter], Awaitable[bool]]
HEADS: Final = (
    b"", b"\r\n", b"\r\n\r\n", b"HTTP/1.1", b"HTTP/1.1 200", b"HTTP/1.1 200\r\n\r\n", b"HTTP/1.1 99999 X\r\n\r\n",
    b"HTTP/1.1 -1 X\r\n\r\n", b"HTTP/1.1 2e2 OK\r\n\r\n", b"HTTP/9.9 200 OK\r\n\r\n", b"HTTP/0.9 200 OK\r\n\r\n",
    b"ICY 200 OK\r\n\r\n", b"SSH-2.0-OpenSSH_9.6\r\n", b"\x15\x03\x01\x00\x02\x02\x28", b"\x00" * 4096,
    b"220 mail ESMTP\r\n",
    b"HTTP/1.1 200 " + b"K" * 100_000 + b"\r\n\r\n", b"HTTP/1.1 200 \xff\x01\x1b[2J\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 40 + b"\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\nContent-Length: 0x2\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\nA\x00: b\r\n\r\n", b"HTTP/1.1 200 OK\r\nA: b\x00c\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n: b\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nA: b\r\n folded\r\nX-Auth-Token: a\r\n b\r\nContent-Length: 2\r\n\r\n{}",
    b"HTTP/1.1 200 OK\nContent-Length: 2\n\n{}", b"HTTP/1.1 200 OK\rContent-Length: 2\r\r{}",
    b"HTTP/1.1 200 OK\r\nX-Auth-Token: a\rb\r\nContent-Length: 2\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n{}",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n\x81\x05hello",
    b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nabcde",
    b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nabcde",
)  # fmt: skip
CHUNKS: Final = (
    b"zz\r\n", b"-5\r\nabcde\r\n", b"f" * 30 + b"\r\n", b"2\r\n{}", b"2\r\n{}}}}\r\n0\r\n\r\n",
    b"2;" + b"x" * 70_000 + b"\r\n{}\r\n",
    b"0\r\n" + b"T: x\r\n" * 500 + b"\r\n", b"0\r\nContent-Length: 9\r\n\r\n", b"\r\n\r\n",
    b"2 \r\n{}\r\n0\r\n\r\n", b"",
)  # fmt: skip
CHUNKED: Final = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n"
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


async def _pause(seconds: float) -> None:
    await HurriedClock().sleep(Seconds(seconds))


def _with(said: Said, body: bytes, *headers: str) -> bytes:
    lines = "".join(f"{one}\r\n" for one in headers)
    return f"HTTP/1.1 {said.status} OK\r\n{lines}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def truncated(chance: random.Random, said: Said, writer: asyncio.StreamWriter) -> bool:
    """Stop somewhere, in head or body, and hang up."""
    wire = said.wire
    writer.write(wire[: chance.randrange(len(wire))])
    return False


async def stalled(chance: random.Random, said: Said, writer: asyncio.StreamWriter) -> bool:
    """Stop somewhere and say nothing more, for as long as anybody listens."""
    wire = said.wire
    writer.write(wire[: chance.choice((0, chance.randrange(len(wire))))])
    await _pause(60.0)
    return False


async def dripping(chance: random.Random, said: Said, writer: asyncio.StreamWriter) -> bool:
    """Send a byte at a time, slowly."""
    wire = said.wire
    start = chance.choice((0, len(wire) // 2, max(0, len(wire) - 20)))
    writer.write(wire[:start])
    for at in range(start, len(wire)):
        if writer.is_closing():
            return False
        writer.write(wire[at : at + 1])
        await _pause(chance.choice((0.01, 0.2)))
    return True


async def reset(chance: random.Random, said: Said, writer: asyncio.StreamWriter) -> bool:
    """Break the connection, before or after something was said."""
    wire = said.wire
    writer.write(wire[: chance.choice((0, len(wire) // 2))])
    writer.transport.abort()
    return False


async def too_short(chance: random.Random, said: Said, writer: asyncio.StreamWriter) -> bool:
    """Say that the body is shorter than it is: the rest looks like the next answer."""
    cut = chance.randrange(len(said.body) + 1)
    head = _with(said, said.body[:cut])
    writer.write(head + said.body[cut:] + chance.choice((b"", said.wire)))
    return True


async def twice(_: random.Random, said: Said, writer: asyncio.StreamWriter) -> bool:
    """Answer a question that nobody asked yet."""
    writer.write(said.wire + said.wire)
    return True


async def broken(chance: random.Random, _: Said, writer: asyncio.StreamWriter) -> bool:
    """Send a head that is none."""
    writer.write(chance.choice((*HEADS, chance.randbytes(200))))
    if chance.random() < 0.5:
        await _pause(5.0)
    return False


async def chunks(chance: random.Random, said: Said, writer: asyncio.StreamWriter) -> bool:
    """Send chunks that are none, after some that are."""
    whole = b"%x\r\n%s\r\n" % (len(said.body), said.body) if said.body and chance.random() < 0.5 else b""
    writer.write(CHUNKED + whole + chance.choice(CHUNKS))
    return chance.random() < 0.5


async def unbounded(_: random.Random, said: Said, writer: asyncio.StreamWriter) -> bool:
    """Give no length: the end of the connection is the end of the answer."""
    writer.write(b"HTTP/1.0 200 OK\r\n\r\n" + said.body)
    return False


async def informed(chance: random.Random, said: Said, writer: asyncio.StreamWriter) -> bool:
    """Say that the answer is about to come, again and again."""
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
    writer.write(chance.choice((CONTINUE, hints)) * chance.choice((1, 3, 1000)) + said.wire)
    return True


async def packed(chance: random.Random, said: Said, writer: asyncio.StreamWriter) -> bool:
    """Send it packed though nobody asked for that, or pretend to."""
    match chance.randrange(6):
        case 0:
            writer.write(_with(said, gzip.compress(said.body, mtime=0), "Content-Encoding: gzip"))
        case 1:
            writer.write(_with(said, gzip.compress(said.body, mtime=0)[:-9], "Content-Encoding: gzip"))
        case 2:
            writer.write(
                _with(
                    said, said.body, f"Content-Encoding: {chance.choice(('gzip', 'deflate', 'br', 'zstd'))}"
                )
            )
        case 3:
            writer.write(_with(said, zlib.compress(said.body), "Content-Encoding: deflate"))
        case 4:
            writer.write(_with(said, gzip.compress(b"x", mtime=0) * 2000, "Content-Encoding: gzip"))
        case _:
            writer.write(_with(said, gzip.compress(gzip.compress(said.body)), "Content-Encoding: gzip, gzip"))
    return True


async def headers(chance: random.Random, said: Said, writer: asyncio.StreamWriter) -> bool:
    """Send headers by the thousand, or long ones."""
    kind = chance.choice(
        (b"A: b\r\n", b"A: " + b"b" * 7000 + b"\r\n", b"Set-Cookie: a=b\r\n", b"X" * 9000 + b": b\r\n")
    )
    writer.write(
        b"HTTP/1.1 200 OK\r\n" + kind * chance.choice((120, 200, 2000)) + said.wire.partition(b"\r\n")[2]
    )
    return False


USUAL: Final[tuple[Way, ...]] = (
    truncated, stalled, dripping, reset, too_short, twice, broken, broken, chunks, unbounded, informed, packed,
    headers,
)  # fmt: skip


# --- what is large: rarely


@cache
def _bomb() -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    blanks = b" " * MIB
    return b"".join([*(packer.compress(blanks) for _ in range(128)), packer.flush()])


async def bomb(_: random.Random, said: Said, writer: asyncio.StreamWriter) -> bool:
    """Send half a mebibyte that unpacks to more than anybody reads."""
    writer.write(_with(said, _bomb(), "Content-Encoding: gzip", "Content-Type: application/json"))
    return False


async def endless_body(_: random.Random, __: Said, writer: asyncio.StreamWriter) -> bool:
    """Send a body without an end."""
    writer.write(CHUNKED)
    while not writer.is_closing():
        writer.write(b"100000\r\n" + b" " * MIB + b"\r\n")
        await writer.drain()
    return False


async def endless_headers(_chance: random.Random, _said: Said, writer: asyncio.StreamWriter) -> bool:
    """Send headers without an end."""
    writer.write(b"HTTP/1.1 200 OK\r\n")
    for _ in range(1000):
        if writer.is_closing():
            break
        writer.write(b"A: b\r\n" * 10_000)
        await writer.drain()
    return False


async def endless_line(_chance: random.Random, _said: Said, writer: asyncio.StreamWriter) -> bool:
    """Send a header without an end."""
    writer.write(b"HTTP/1.1 200 OK\r\nA: ")
    for _ in range(100):
        if writer.is_closing():
            break
        writer.write(b"b" * MIB)
        await writer.drain()
    return False


LARGE: Final[tuple[Way, ...]] = (bomb, endless_body, endless_headers, endless_line)
