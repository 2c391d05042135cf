"""Spoilt requests to the manager's faces: each is answered in that face's own words, and none is a mistake of ours.

Knows what must be true of every answer, and of the books after it. Must not know any protocol: what is spoilt are the
very requests that our adapters and `jackfield fabric` send.
"""

import base64
import logging
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec

from hostile.fabrics import contents
from hostile.fabrics.benches import SETUPS
from hostile.fabrics.callers import Answered, House, house, request
from hostile.fabrics.contents import Traps
from hostile.fabrics.front import Heard, Said
from hostile.fabrics.hurried import HurriedClock
from hostile.fabrics.judging import Overheard
from hostile.fabrics.tape import recorded
from hostile.spoiling import PARTS, VALUES
from jackfield.door import Patience
from jackfield.fabric_manager.books import Books
from jackfield.fabric_manager.faces import Trouble
from jackfield.fabric_manager.faces.control import PREFIX
from jackfield.fabric_manager.server import CONNECTIONS_MAX
from jackfield.model.names import Seconds
from oracle.mangling import bitten
from unit.fabric_manager.lab import TOKEN

METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW", "get")
PROOFS: Final = (
    f"Bearer {TOKEN.reveal()}",
    f"Basic {base64.b64encode(f'jackfield:{TOKEN.reveal()}'.encode()).decode()}",
)
SOUND_EVERY: Final = 100
BITTEN: Final = 0.05
"""So likely something is bitten out of the very bytes."""
MEANT: Final = (501, 504)
"""What a face may say on purpose: that it has no such thing, or that the work was not done in time."""
CONTROL: Final = (
    Heard("GET", f"{PREFIX}/state"),
    Heard("GET", f"{PREFIX}/events?after=0&wait=1"),
    Heard("GET", f"{PREFIX}/faults"),
    Heard("GET", f"{PREFIX}/openapi.json"),
    Heard("POST", f"{PREFIX}/attach", {}, b'{"id": "by-hand", "device": "a-2", "node": "n-2", "wait": 1.0}'),
    Heard("POST", f"{PREFIX}/detach", {}, b'{"device": "a-2", "force": true, "wait": 1.0}'),
    Heard(
        "POST", f"{PREFIX}/faults", {}, b'{"kind": "fail", "verb": "attach", "times": 1, "reason": "because"}'
    ),
    Heard("POST", f"{PREFIX}/faults", {}, b'{"kind": "ill", "device": "a-3", "likely": 0.5, "seconds": 1.5}'),
    Heard("DELETE", f"{PREFIX}/faults/fault-1"),
)
"""What `jackfield fabric` asks."""
KEPT: Final = ("content-type", "accept", "if-match", "if-none-match", "prefer", "odata-version")


class Corpus(msgspec.Struct, frozen=True):
    """Requests that make sense, and the words in them."""

    requests: tuple[Heard, ...]
    words: tuple[str, ...]


async def collected(folder: Path) -> Corpus:
    """Return all that adapters ask, each once, and what `jackfield fabric` does."""
    found: dict[tuple[str, str, bytes], Heard] = {}
    words: dict[str, None] = {}
    for kind in SETUPS:
        place = folder / kind
        place.mkdir()
        tape = await recorded(kind, place)
        words.update(dict.fromkeys(tape.words))
        for turn in tape.turns:
            found.setdefault((turn.heard.method, turn.heard.path, turn.heard.body), turn.heard)
    return Corpus((*CONTROL, *found.values()), tuple(words))


def spoilt(chance: random.Random, corpus: Corpus) -> tuple[Heard, bytes]:
    """Return a request that hardly makes sense, and its bytes; one in ten does."""
    heard = chance.choice(corpus.requests)
    headers = {name: text for name, text in heard.headers.items() if name in KEPT}
    heard = msgspec.structs.replace(heard, headers=headers)
    for _ in range(chance.choice((0, 1, 1, 1, 1, 2, 2, 3))):
        heard = _spoilt(chance, heard, corpus)
    proof = PROOFS["/redfish" in heard.path]
    data = request(heard.method, heard.path, {"Authorization": proof, **heard.headers}, heard.body)
    if chance.random() < BITTEN:
        data = bitten(chance, data)
        words = data.partition(b"\r\n")[0].decode("latin-1").split(" ")
        heard = msgspec.structs.replace(heard, method=words[0], path=words[1] if len(words) > 1 else "")
    return heard, data


def _spoilt(chance: random.Random, heard: Heard, corpus: Corpus) -> Heard:
    match chance.choice(("body", "body", "body", "body", "path", "path", "query", "method", "headers")):
        case "body":
            said = Said(200, (), heard.body or b"{}")
            body = contents.spoilt(chance, heard, said, Traps("127.0.0.1:9", corpus.words)).body
            return msgspec.structs.replace(heard, body=body)
        case "path":
            return msgspec.structs.replace(heard, path=_path(chance, heard.path, corpus.words))
        case "query":
            name, value = (
                chance.choice(("after", "wait", "tenant_uuid", "$expand", "$top", "x")),
                chance.choice(VALUES),
            )
            mark = "&" if "?" in heard.path else "?"
            return msgspec.structs.replace(
                heard, path=f"{heard.path}{mark}{name}={quote(value[:2000], safe='')}"
            )
        case "method":
            return msgspec.structs.replace(heard, method=chance.choice(METHODS))
        case _:
            return msgspec.structs.replace(heard, headers={**heard.headers, **_header(chance)})


def _path(chance: random.Random, path: str, words: Sequence[str]) -> str:
    place, mark, query = path.partition("?")
    parts = place.split("/")
    index = chance.randrange(1, len(parts) + 1)
    part = chance.choice((*PARTS, quote(chance.choice(words)[:200], safe="")))
    match chance.choice(("replace", "replace", "insert", "drop")):
        case "insert":
            parts.insert(index, part)
        case "drop":
            del parts[index : index + 1]
        case _:
            parts[index : index + 1] = [part]
    # What is no path is `bitten`'s business: here every request is one.
    return quote("/".join(parts), safe="/%*.$()=") + mark + query


def _header(chance: random.Random) -> Mapping[str, str]:
    return chance.choice(
        (
            {
                "content-type": chance.choice(
                    ("", "text/plain", "application/xml", "\udcff", ";;;", "x" * 5000)
                )
            },
            {"if-match": chance.choice(("*", '"x"', "", 'W/"', "\udcff"))},
            {"prefer": chance.choice(("wait=nan", "wait=1e9", "respond-async", "wait=-1", "wait"))},
            {"accept": chance.choice(("", "text/html", "*/*;q=x"))},
            {"content-encoding": chance.choice(("gzip", "deflate", "x"))},
            {"transfer-encoding": "chunked"},
            {"expect": chance.choice(("100-continue", "miracles"))},
            {"x-auth-token": chance.choice(("", "x", "\udcff"))},
            {"odata-version": "9.9"},
        )
    )


# --- judging


async def run(folder: Path, seed: int, inputs: range) -> tuple[Counter[str], list[str]]:
    """Send these requests to one manager; return how many came to what, and what was wrong."""
    corpus = await collected(folder)
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    overheard = Overheard()
    logging.getLogger().addHandler(overheard)
    place = folder / "house"
    place.mkdir()
    try:
        async with house(place) as of:
            for number in inputs:
                chance = random.Random(f"{seed}/face/{number}")  # noqa: S311 - chance in tests is not cryptography
                heard, data = spoilt(chance, corpus)
                answer = await of.say(data)
                outcomes[str(answer.status)] += 1
                found = [*_faults(of, heard, answer), *(f"logged: {one}" for one in overheard.alarms)]
                overheard.alarms.clear()
                if number % SOUND_EVERY == 0:
                    found += await _unsound(of)
                for fault in tuple(of.server.manager.faults):  # what was asked for must not befall the next
                    await of.server.manager.clear_fault(fault.id)
                wrong += [f"request {number} of seed {seed}: {one}\n  {data[:1500]!r}" for one in found]
            wrong += await _unsound(of)
    finally:
        logging.getLogger().removeHandler(overheard)
    return outcomes, wrong


def _faults(of: House, heard: Heard, answer: Answered) -> list[str]:
    found = []
    if answer.status == -1:
        found.append(f"nothing came within {answer.seconds:.0f} s")
    if answer.status >= 500 and answer.status not in MEANT:
        found.append(f"{answer.status}: {answer.body[:500]!r}")
    if answer.answers > 1:
        found.append(f"{answer.answers} answers to one question")
    if TOKEN.reveal().encode() in answer.body:
        found.append(f"the token is in the answer: {answer.body[:500]!r}")
    if answer.status >= 400 and heard.method != "HEAD":
        found += _unlike(of, heard, answer)
    return found


def _unlike(of: House, heard: Heard, answer: Answered) -> list[str]:
    """Return in what an error is not as the face spells errors; one about what is no HTTP is nobody's."""
    face = of.face(heard.path.partition("?")[0])
    if face is None or answer.headers.get("content-type", "").startswith("text/plain"):
        return [] if answer.status in {400, 401, 404, 405, 413, 417} else [f"no face says so: {answer}"]
    meant = face.error(Trouble(answer.status, "words"))
    try:
        told, shape = (
            msgspec.json.decode(answer.body),
            msgspec.json.decode(meant.body if isinstance(meant.body, bytes) else b"{}"),
        )
    except (msgspec.DecodeError, UnicodeDecodeError):
        return [f"an error that cannot be read: {answer.body[:500]!r}"]
    if not isinstance(told, dict) or not (told.keys() & shape.keys() or "error" in told):
        return [f"an error that is not as {face.name} spells them: {answer.body[:500]!r}"]
    return [] if len(answer.body) < 20_000 else [f"an error of {len(answer.body)} bytes"]


async def _unsound(of: House) -> list[str]:
    """Return what is wrong with the books: what is in memory is what a restart would find, and is possible."""
    manager = of.server.manager
    await manager.store.committed()
    shown = manager.books.inventory("native")
    again = Books(manager.hardware, manager.store, manager.faults).inventory("native")
    found = [] if shown == again else ["memory and disk differ"]
    if {one.id for one in shown.devices} != {*manager.hardware.devices}:
        found.append("devices came or went")
    for machine in shown.machines:
        there = sum(one.node == machine.node for one in shown.devices)
        if there > machine.slots:
            found.append(f"{machine.node} has {there} devices in {machine.slots} slots")
    return found


# --- crowds


async def crowded(folder: Path, count: int) -> tuple[int, int]:
    """Let so many connect and say nothing; return how many were let in, and how many still are when patience ends."""
    async with house(folder, connections_max=CONNECTIONS_MAX) as of:
        crowd = [await of.connect() for _ in range(count)]
        await HurriedClock().sleep(Seconds(1.0))
        inside = sum(not reader.at_eof() for reader, _ in crowd)
        await HurriedClock().sleep(Seconds(Patience().first_word_seconds + 1.0))
        left = sum(not reader.at_eof() for reader, _ in crowd)
        for _, writer in crowd:
            writer.transport.abort()
        return inside, left
