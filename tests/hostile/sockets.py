"""Spoilt calls as bytes on a socket; each is answered or hung up on, and the server goes on.

Knows how a call is written down, and what to do to that. Must not know what the calls say.
"""

import contextlib
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote, urlencode

from hostile.attack import AUTHORIZED, Victim, code
from hostile.spoiling import Spoilt
from jackfield.cluster.face.calls import Call
from oracle.mangling import bitten

WELL_EVERY = 250
AT_A_TIME = 16
SILENCE_SECONDS = 4.0


def run(victim: Victim, seed: int, inputs: range) -> tuple[Counter[str], list[str]]:
    """Send these calls, some at a time; return how many came to what, and what was wrong."""
    draw = Spoilt(seed).call
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []

    def send(number: int) -> tuple[int, bytes, bytes]:
        chance = random.Random(f"{seed}/bytes/{number}")  # noqa: S311 - chance in tests is not cryptography
        data = written(draw(number))
        for _ in range(chance.choice((0, 0, 0, 1, 1, 3))):
            data = bitten(chance, data)
        return number, data, _first_words(victim, data)

    with ThreadPoolExecutor(AT_A_TIME) as crowd:
        for number, data, answer in crowd.map(send, inputs):
            outcomes[str(code(answer) or "hung up on")] += 1
            if b"a mistake of ours" in answer or victim.process.poll() is not None:
                wrong.append(f"call {number} of seed {seed}: {answer[-300:]!r}\n  {data[:1500]!r}")
            if number % WELL_EVERY == WELL_EVERY - 1 and not victim.is_well():
                wrong.append(f"after call {number} of seed {seed} it is not well")
    if complaints := victim.complaints():
        wrong.append(complaints[:3000])
    return outcomes, wrong


def written(call: Call) -> bytes:
    """Return a call as a client would send it."""
    query = urlencode(dict(call.query), errors="surrogateescape")
    target = quote(call.path, safe="/%?*.", errors="surrogateescape") + (f"?{query}" if query else "")
    headers = {
        "Host": "x",
        "Content-Type": call.content_type,
        "Accept": call.accept,
        "User-Agent": call.agent,
        "Content-Length": str(len(call.body)) if call.body else "",
    }
    lines = [f"{name}: {value}\r\n" for name, value in headers.items() if value]
    head = f"{call.method} {target} HTTP/1.1\r\n{''.join(lines)}{AUTHORIZED}\r\n"
    return head.encode(errors="surrogateescape") + call.body


def _first_words(victim: Victim, data: bytes) -> bytes:
    with contextlib.suppress(OSError), victim.connect() as one:
        one.settimeout(SILENCE_SECONDS)
        with contextlib.suppress(OSError):
            one.sendall(data)
        return one.recv(65536)
    return b""
