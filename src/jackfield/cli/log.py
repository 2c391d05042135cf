"""What the controllers do and wait for, as lines of a log: text for eyes, JSON for machines.

Knows how a line is laid out. Must not know what is worth doing.
"""

import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

import msgspec

from jackfield.core import cause, explain
from jackfield.model.names import Seconds, rfc3339_micro
from jackfield.model.plan import AnyAction, Finding, Waiting
from jackfield.model.view import View

REMEMBERED_MAX: Final = 10_000
"""How many objects' last words are remembered, so that the same words are not logged again and again."""
NO_HOP: Final = Seconds(0.0)


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the log."""

    time: str
    by: str
    what: str
    """The action's name and what exactly it does; `Waiting` for what is waited for, `Found` and `Over` for what is not
    as the books say, `Note` for the process itself."""
    object: str = ""
    phase: str = ""
    claim: str = ""
    because: str = ""
    error: str = ""
    hop: float = NO_HOP
    """Seconds between the news that brought a step about and its request: our own time."""
    cause: str = ""
    """The id of the story that it belongs to: the uid of the claim that caused it."""


def text(entry: Entry) -> str:
    """Lay an entry out for eyes."""
    words = " ".join(one for one in (entry.object, entry.what) if one)
    reason = f": {entry.because}" if entry.because else ""
    trouble = f" (failed: {entry.error})" if entry.error else ""
    return f"{entry.time} {entry.by} {words}{reason}{trouble}"


def json(entry: Entry) -> str:
    """Lay an entry out for machines."""
    return msgspec.json.encode(entry).decode()


LAYOUTS: Final[dict[str, Callable[[Entry], str]]] = {"text": text, "json": json}


class Paper(Protocol):
    """What lines are written on."""

    def write(self, text: str, /) -> object:
        """Write."""

    def flush(self) -> None:
        """Have it read."""


class Kept:
    """Paper that nobody reads before it is handed out."""

    def __init__(self, paper: Paper) -> None:
        self._paper = paper
        self._kept: deque[str] | None = deque(maxlen=REMEMBERED_MAX)

    def write(self, text: str, /) -> None:
        """Write, or keep it for later."""
        if self._kept is None:
            self._paper.write(text)
        else:
            self._kept.append(text)

    def flush(self) -> None:
        """Have read what may be."""
        self._paper.flush()

    def hand_out(self) -> None:
        """Write what was kept, and from now on everything at once."""
        kept, self._kept = self._kept or (), None
        for text in kept:
            self._paper.write(text)
        self._paper.flush()


class Log:
    """Writes a line for every step; a `controllers.runner.Recorder`."""

    def __init__(self, layout: str, paper: Paper = sys.stdout) -> None:
        self._layout = LAYOUTS[layout]
        self._paper = paper
        self._last: dict[str, str] = {}
        self._hops: dict[int, Seconds] = {}  # by action, from its request to its answer
        self._causes: dict[str, str] = {}  # by object: its last line may come when it is gone
        self.view: View | None = None
        """Where the cause of a step is found; without it none is told."""

    def hop(self, action: AnyAction, after: Seconds) -> None:
        """Remember how long an action took to be begun, until it is logged."""
        self._hops[id(action)] = Seconds(round(after, 6))

    def did(self, at: Seconds, by: str, action: AnyAction, error: str) -> None:
        """Log an action, and what went wrong with it."""
        what = " ".join(part for part in (type(action).__name__, explain.detail(action)) if part)
        claim = str(action.claim) if action.claim.name else ""
        subject, hop = explain.subject(action), self._hops.pop(id(action), NO_HOP)
        caused = self._did(subject, action)
        entry = Entry(
            rfc3339_micro(at),
            by,
            what,
            subject,
            action.phase.value,
            claim,
            action.because,
            error,
            hop,
            caused,
        )
        if self._is_news(f"{subject} {what}", f"{action.because} {error} {caused}"):
            self._write(entry)

    def waits(self, at: Seconds, by: str, waiting: tuple[Waiting, ...]) -> None:
        """Log what is waited for, once."""
        for one in waiting:
            caused = self._cause(one.object)
            if self._is_news(f"{one.object} waits", f"{one.what} {caused}"):
                words, what = f"waiting for {one.what}", f"Waiting {one.reason}"
                self._write(Entry(rfc3339_micro(at), by, what, one.object, because=words, cause=caused))

    def found(self, at: Seconds, by: str, finding: Finding, *, over: bool) -> None:
        """Log what is not as the books say, or that it is over."""
        what = f"{'Over' if over else 'Found'} {finding.reason}"
        caused = self._cause(finding.object)
        self._write(Entry(rfc3339_micro(at), by, what, finding.object, because=finding.what, cause=caused))

    def note(self, at: Seconds, words: str) -> None:
        """Log something about the process itself."""
        self._write(Entry(rfc3339_micro(at), "jackfield", "Note", because=words))

    def _did(self, subject: str, action: AnyAction) -> str:
        """Return the id of the story that an action belongs to."""
        found = cause.of_action(self.view, action) if self.view is not None else ""
        whose = f"claim/{action.claim}" if action.claim.name else subject
        return self._known(subject, found or self._causes.get(whose, self._causes.get(subject, "")))

    def _cause(self, subject: str) -> str:
        """Return the id of the story that an object belongs to."""
        found = cause.of(self.view, subject) if self.view is not None else ""
        return self._known(subject, found or self._causes.get(subject, ""))

    def _known(self, subject: str, found: str) -> str:
        """Remember a cause for lines that come when the object is gone."""
        if found:
            self._causes.pop(subject, None)
            self._causes[subject] = found
        if len(self._causes) > REMEMBERED_MAX:
            del self._causes[next(iter(self._causes))]
        return found

    def _is_news(self, key: str, words: str) -> bool:
        """Whether these are other words than the last about this; a step that is repeated says nothing new."""
        news = self._last.pop(key, None) != words
        self._last[key] = words
        if len(self._last) > REMEMBERED_MAX:
            del self._last[next(iter(self._last))]
        return news

    def _write(self, entry: Entry) -> None:
        """Write a line; where nobody reads any more, work goes on unheard."""
        with suppress(OSError):
            self._paper.write(self._layout(entry) + "\n")
            self._paper.flush()
