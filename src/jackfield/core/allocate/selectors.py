"""Which devices a class and a request mean.

Knows how selectors are combined, and remembers what each said of each device. Must not know CEL itself.
"""

from enum import StrEnum
from typing import Final

import msgspec

from jackfield.core import cel
from jackfield.core.allocate.offers import Entry

ANSWERS_MAX: Final = 200_000
"""So many answers are remembered; beyond it all are forgotten, and asked for anew."""


class Answer(StrEnum):
    """What the selectors say of a device."""

    MEANT = "meant"
    NOT_CLASS = "not of the class"
    NOT_REQUEST = "not what the request selects"


class Fault(msgspec.Struct, frozen=True):
    """A selector that gave no answer. It ends the cycle once a search has to ask it."""

    of_class: bool
    index: int
    compiled: bool
    """Whether it was this device that it failed on, and not the compiler."""
    words: str


Verdict = Answer | Fault


class Matcher:
    """The selectors of a class and of a request, and their verdicts. Equal selectors are one object."""

    __slots__ = ("_lists", "_selectors", "_verdicts", "expressions", "of_class")

    def __init__(
        self, selectors: "Selectors", of_class: tuple[str, ...], expressions: tuple[str, ...], *, lists: bool
    ) -> None:
        self.of_class = of_class
        self.expressions = expressions
        self._selectors = selectors
        self._lists = lists
        self._verdicts: dict[bytes, Verdict] = {}

    def verdict(self, entry: Entry) -> Verdict:
        """Return what the selectors say of the device: the class's first, stopping at the first no."""
        known = self._verdicts.get(entry.fingerprint)
        if known is None:
            known = self._verdicts[entry.fingerprint] = self._ask(entry)
            self._selectors.remember()
        return known

    def _ask(self, entry: Entry) -> Verdict:
        for of_class, expressions in ((True, self.of_class), (False, self.expressions)):
            for index, expression in enumerate(expressions):
                try:
                    meant = self._selectors.program(expression, lists=self._lists).matches(entry.subject)
                except cel.CompileError as error:
                    return Fault(of_class, index, compiled=False, words=f"CEL compile error: {error}")
                except cel.EvaluationError as error:
                    return Fault(of_class, index, compiled=True, words=f"CEL runtime error: {error}")
                if not meant:
                    return Answer.NOT_CLASS if of_class else Answer.NOT_REQUEST
        return Answer.MEANT


class Selectors:
    """Compiled selectors and what they said. May be handed from one Allocator to the next."""

    def __init__(self, answers_max: int = ANSWERS_MAX) -> None:
        self._answers_max = answers_max
        self._programs: dict[tuple[str, bool], cel.Program | cel.CompileError] = {}
        self._matchers: dict[tuple[tuple[str, ...], tuple[str, ...], bool], Matcher] = {}
        self.answers = 0
        """How many are remembered."""

    def matcher(self, of_class: tuple[str, ...], expressions: tuple[str, ...], *, lists: bool) -> Matcher:
        """Return the one matcher of these selectors."""
        key = (of_class, expressions, lists)
        found = self._matchers.get(key)
        if found is None:
            found = self._matchers[key] = Matcher(self, of_class, expressions, lists=lists)
        return found

    def program(self, expression: str, *, lists: bool) -> cel.Program:
        """Return the compiled expression; raises CompileError each time where it does not compile."""
        key = (expression, lists)
        found = self._programs.get(key)
        if found is None:
            try:
                found = cel.compile(expression, lists=lists)
            except cel.CompileError as error:
                found = error
            self._programs[key] = found
        if isinstance(found, cel.CompileError):
            raise found
        return found

    def remember(self) -> None:
        """Count one more answer, and forget all where there are too many."""
        self.answers += 1
        if self.answers > self._answers_max:
            self.answers = 0
            self._matchers.clear()
            self._programs.clear()
