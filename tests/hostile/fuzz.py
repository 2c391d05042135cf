"""`make fuzz-api`: spoilt calls to the embedded API; each must get an answer, and none may be our mistake.

Knows what must be true of every answer, and of the store after it. Must not know what the calls say.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import yaml

from hostile import attack, sockets
from hostile.spoiling import Spoilt
from jackfield.cluster.errors import ApiError
from jackfield.cluster.face.calls import Answer, Call
from jackfield.cluster.face.reading import Watching
from jackfield.cluster.face.watching import Hub
from jackfield.cluster.history import Event, EventType, Stored
from jackfield.codec import RawValue, kinds
from jackfield.codec.kinds import Kind
from jackfield.model.names import Key
from unit.cluster.face.faces import NOW, Face

BLOCK: Final = 2_000
"""Calls to one store; the next block begins with a new one."""
LOOK_EVERY: Final = 250
SECONDS_MAX: Final = 5.0
"""No call of this size may take longer, even on a busy machine."""
MEANT: Final = (
    "resourceVersion should not be set on objects to be created",
    "list element types are not identical: ",
    "failed to create typed patch object (",
    "map: map[",
    "comparing uncomparable type ",
)
"""What a real server says with 500 though it means the client; at the last of them it drops the connection."""


class Block:
    """A store with its face, what was told of it, and what is wrong with it."""

    def __init__(self, seed: int, number: int) -> None:
        self.face = Face(f"{seed}/{number}", events_max=200)
        self._hub = Hub(self.face.store, kinds.KINDS)
        self._mirror: dict[tuple[Kind, Key], Stored] = dict(self._all())
        self._told = self.face.store.version
        self._faults: list[str] = []
        for kind in kinds.KINDS:
            self.face.store.subscribe(kind.type, self._hear)

    def ask(self, call: Call) -> tuple[str, str]:
        """Return what came of a call, and what is wrong with that, or nothing."""
        before = self.face.store.version
        self.face.mistakes.clear()
        began = time.perf_counter()
        answer = self.face.api.answer(call)
        outcome, fault = self._watched(answer) if isinstance(answer, Watching) else _answered(call, answer)
        took = time.perf_counter() - began
        faults = [*self.face.mistakes[:1], fault, *self._faults]
        self._faults.clear()
        if took > SECONDS_MAX:
            faults.append(f"it took {took:.1f} s")
        changed = self.face.store.version - before
        if changed and not _may_change(call, answer):
            faults.append(f"it changed the store {changed} times")
        return outcome, "; ".join(one for one in faults if one)

    def look(self) -> str:
        """Return what is wrong with the store, or nothing."""
        store = dict(self._all())
        if store.keys() != self._mirror.keys():
            return f"events and lists differ: {list(store.keys() ^ self._mirror.keys())[:5]}"
        uids: set[str] = set()
        for (kind, key), one in store.items():
            metadata = one.raw["metadata"]
            if one is not self._mirror[kind, key]:
                return f"{kind.kind} {key} is not as it was told last"
            if (metadata.get("namespace", ""), metadata["name"]) != (key.namespace, key.name):
                return f"{kind.kind} {key} says that it is {metadata['name']}"
            if metadata["uid"] in uids or not metadata["uid"]:
                return f"{kind.kind} {key} shares its uid {metadata['uid']!r}"
            if metadata["resourceVersion"] != str(one.version) or one.version > self.face.store.version:
                return f"{kind.kind} {key} is of version {metadata['resourceVersion']}"
            if msgspec.json.decode(msgspec.json.encode(one.wire())) != one.wire():
                return f"{kind.kind} {key} is not JSON"
            uids.add(metadata["uid"])
        return ""

    def _all(self) -> Iterator[tuple[tuple[Kind, Key], Stored]]:
        for kind in kinds.KINDS:
            for one in self.face.store.list(kind.type).items:
                yield (kind, one.key), one

    def _hear(self, event: Event) -> None:
        place = event.stored.kind, event.stored.key
        there = place in self._mirror
        if event.version <= self._told:
            self._faults.append(f"version {event.version} came after {self._told}")
        if there is (event.type is EventType.ADDED):
            self._faults.append(f"{place} was {event.type}, and was there: {there}")
        self._told = event.version
        if event.type is EventType.DELETED:
            self._mirror.pop(place, None)
        else:
            self._mirror[place] = event.stored

    def _watched(self, watching: Watching) -> tuple[str, str]:
        try:
            watch, lines = self._hub.begin(watching.view, watching.asked, NOW)
        except ApiError:
            return "watch refused", ""
        while not watch.caught_up:
            lines += watch.lines(NOW)
        self._hub.leave(watch)
        try:
            for line in lines.splitlines():
                _ = msgspec.json.decode(line)["object"]["kind"]
        except (msgspec.DecodeError, KeyError, TypeError):
            return "watched", "a line of the watch says nothing"
        return "watched", ""


def _answered(call: Call, answer: Answer) -> tuple[str, str]:
    outcome = f"{answer.code}"
    if answer.content_type.startswith("text/plain"):
        return outcome, "" if answer.code in (200, 404) else f"no Status: {answer.body[:200]!r}"
    try:
        body: RawValue = (
            yaml.safe_load(answer.body) if "yaml" in answer.content_type else msgspec.json.decode(answer.body)
        )
    except (msgspec.DecodeError, yaml.YAMLError) as error:
        return outcome, f"the answer cannot be read: {error}"
    if answer.code >= 400:
        return outcome, _refused(answer.code, body)
    is_known = isinstance(body, dict) and ("kind" in body or call.path.startswith(("/openapi", "/version")))
    return outcome, "" if is_known else f"the answer is no object: {answer.body[:200]!r}"


def _refused(code: int, body: RawValue) -> str:
    if not isinstance(body, dict) or body.get("kind") != "Status" or body.get("code") != code:
        return f"no Status: {body}"
    if not body.get("message") or body.get("status") != "Failure":
        return f"a Status that says nothing: {body}"
    meant = code < 500 or code == 504 or body["message"].startswith(MEANT)
    return "" if meant else f"{code}: {body}"


def _may_change(call: Call, answer: Answer | Watching) -> bool:
    if isinstance(answer, Watching) or call.method == "GET" or call.query.get("dryRun") == "All":
        return False
    # What is deleted with others is gone even if the next one is refused.
    return answer.code < 400 or call.method == "DELETE"


def run(seed: int, inputs: range, *, tell: bool = False) -> tuple[Counter[str], list[str]]:
    """Send these calls; return how many came to what, and what was wrong."""
    draw = Spoilt(seed).call
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    block = Block(seed, inputs.start // BLOCK)
    began = time.perf_counter()
    for number in inputs:
        if number % BLOCK == 0:
            block = Block(seed, number // BLOCK)
        call = draw(number)
        outcome, fault = block.ask(call)
        if number % LOOK_EVERY == LOOK_EVERY - 1:
            fault = "; ".join(one for one in (fault, block.look()) if one)
        outcomes[outcome] += 1
        if fault:
            wrong.append(f"call {number} of seed {seed}: {fault}\n{_shown(call)}")
        if tell and (number + 1) % 10_000 == 0:
            seconds = time.perf_counter() - began
            _tell(f"{number + 1} calls, {len(wrong)} wrong, {seconds:.0f} s")
    return outcomes, wrong


def _shown(call: Call) -> str:
    query = str(dict(call.query))[:300]
    head = f"{call.method!r} {call.path[:300]!r} {query} {call.content_type!r} {call.accept[:80]!r}"
    return f"  {head}\n  {call.body[:1500]!r}"


def main() -> int:
    """Send so many calls, and return the exit status."""
    parser = argparse.ArgumentParser(prog="fuzz-api", description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000, metavar="N", help="so many calls")
    parser.add_argument("--sockets", type=int, default=5_000, metavar="N", help="so many over a socket")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="the same number, the same calls")
    options = parser.parse_args()
    outcomes, wrong = run(options.seed, range(options.inputs), tell=True)
    _tell(f"{options.inputs} calls, seed {options.seed}: {dict(sorted(outcomes.items()))}")
    with tempfile.TemporaryDirectory() as folder, attack.victim(Path(folder)) as victim:
        outcomes, more = sockets.run(victim, options.seed, range(options.sockets))
        memory = f"{victim.megabytes()} MB resident"
    _tell(f"{options.sockets} over a socket: {dict(sorted(outcomes.items()))}, {memory}")
    for one in (*wrong[:20], *more[:20]):
        _tell(one)
    _tell(f"{len(wrong) + len(more)} wrong")
    return int(bool(wrong or more))


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
