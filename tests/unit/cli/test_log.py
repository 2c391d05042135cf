"""A line of the log says when, who, what, to which object and why; words that say nothing new are left out."""

import io
import json

import pytest

from jackfield.cli.log import LAYOUTS, REMEMBERED_MAX, Kept, Log
from jackfield.model.composition import ResourceState
from jackfield.model.names import Key, Seconds, Version
from jackfield.model.plan import Finding, LabelNode, MarkState, Phase, Waiting
from jackfield.testing import builders as b

AT = Seconds(1_790_000_000.25)
TIME = "2026-09-21T14:13:20.250000Z"
ONLINE = MarkState(
    phase=Phase.ONLINE,
    because="n1 sees it",
    claim=Key("default", "c"),
    resource="a100-1.rack-a",
    version=Version("7"),
    state=ResourceState.ONLINE,
)
LABEL = LabelNode(phase=Phase.OFFERED, because="there is room", node=b.NODE, labels={"a": "b"})
ROOM = Waiting("claim/default/c", "NoRoom", "a free slot on n1")


class Page:
    """A log and the lines that came of it."""

    def __init__(self, layout: str = "text") -> None:
        self._stream = io.StringIO()
        self.log = Log(layout, self._stream)

    def lines(self) -> list[str]:
        return self._stream.getvalue().splitlines()

    def waits(self, *waiting: Waiting) -> None:
        self.log.waits(AT, "room.decide", waiting)


def test_text_is_for_eyes() -> None:
    page = Page()
    page.log.did(AT, "attach.decide", ONLINE, "")
    page.log.did(AT, "attach.decide", ONLINE, "Conflict: another version")
    page.log.did(AT, "room.decide", LABEL, "")
    page.waits(ROOM)
    page.log.note(AT, "leads fabric rack-a")
    assert page.lines() == [
        f"{TIME} attach.decide resource/a100-1.rack-a MarkState Online: n1 sees it",
        f"{TIME} attach.decide resource/a100-1.rack-a MarkState Online: n1 sees it (failed: Conflict: another version)",
        f"{TIME} room.decide node/n1 LabelNode: there is room",
        f"{TIME} room.decide claim/default/c Waiting NoRoom: waiting for a free slot on n1",
        f"{TIME} jackfield Note: leads fabric rack-a",
    ]


def test_what_is_not_as_the_books_say_is_found_and_is_over() -> None:
    page = Page()
    found = Finding("node/n1", "ForeignDevice", "9 is attached by somebody else", b.FABRIC)
    page.log.found(AT, "drift.decide", found, over=False)
    page.log.found(AT, "drift.decide", found, over=True)
    assert page.lines() == [
        f"{TIME} drift.decide node/n1 Found ForeignDevice: 9 is attached by somebody else",
        f"{TIME} drift.decide node/n1 Over ForeignDevice: 9 is attached by somebody else",
    ]


def test_json_is_for_machines_and_says_only_what_is_so() -> None:
    page = Page("json")
    page.log.hop(ONLINE, Seconds(0.0123456789))
    page.log.did(AT, "attach.decide", ONLINE, "Conflict: another version")
    page.log.did(AT, "room.decide", LABEL, "")
    page.waits(ROOM)
    page.log.note(AT, "leads\nno fabric")
    online, label, room, note = (json.loads(line) for line in page.lines())
    assert online == {
        "time": TIME,
        "by": "attach.decide",
        "what": "MarkState Online",
        "object": "resource/a100-1.rack-a",
        "phase": "online",
        "claim": "default/c",
        "because": "n1 sees it",
        "error": "Conflict: another version",
        "hop": 0.012346,
    }
    assert label.keys() == {"time", "by", "what", "object", "phase", "because"}
    assert room == {
        "time": TIME,
        "by": "room.decide",
        "what": "Waiting NoRoom",
        "object": "claim/default/c",
        "because": "waiting for a free slot on n1",
    }
    assert note == {"time": TIME, "by": "jackfield", "what": "Note", "because": "leads\nno fabric"}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_step_that_is_repeated_is_told_once_until_it_changes(layout: str) -> None:
    page = Page(layout)
    for error in ("", "", "Retry: busy", "Retry: busy", ""):
        page.log.did(AT, "attach.decide", ONLINE, error)
    assert len(page.lines()) == 3


def test_a_hop_is_told_of_the_one_step_that_was_timed() -> None:
    page = Page("json")
    page.log.hop(ONLINE, Seconds(0.5))
    page.log.did(AT, "attach.decide", ONLINE, "")
    page.log.did(AT, "attach.decide", ONLINE, "Retry: busy")
    assert [json.loads(line).get("hop") for line in page.lines()] == [0.5, None]


def test_steps_of_different_objects_are_no_repetitions() -> None:
    page = Page()
    for _ in range(2):
        page.log.did(AT, "attach.decide", ONLINE, "")
        page.log.did(AT, "room.decide", LABEL, "")
    assert len(page.lines()) == 2


def test_what_is_waited_for_is_told_when_it_is_something_else() -> None:
    page = Page()
    other = Waiting(ROOM.object, "NoDevice", "a device of the pool")
    for one in (ROOM, ROOM, other, other, ROOM):
        page.waits(one)
    page.waits()
    page.waits(ROOM, Waiting("claim/default/d", ROOM.reason, ROOM.what))
    assert [line.rpartition(" claim/")[2].split(":")[0] for line in page.lines()] == [
        "default/c Waiting NoRoom",
        "default/c Waiting NoDevice",
        "default/c Waiting NoRoom",
        "default/d Waiting NoRoom",
    ]


def test_notes_are_never_left_out() -> None:
    page = Page()
    for _ in range(2):
        page.log.note(AT, "leads no fabric")
    assert len(page.lines()) == 2


def test_what_is_remembered_is_bounded_and_the_oldest_words_go_first() -> None:
    page = Page()
    page.waits(ROOM)
    page.waits(*(Waiting(f"claim/default/{number}", "NoRoom", "x") for number in range(REMEMBERED_MAX - 1)))
    page.waits(ROOM)
    assert len(page.lines()) == REMEMBERED_MAX
    page.waits(*(Waiting(f"claim/other/{number}", "NoRoom", "x") for number in range(REMEMBERED_MAX)))
    page.waits(ROOM)
    assert len(page.lines()) == 2 * REMEMBERED_MAX + 1, "what was forgotten is news again"


def test_every_line_is_out_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    class Slow(io.StringIO):
        def __init__(self) -> None:
            super().__init__()
            self.out = ""

        def flush(self) -> None:
            self.out = self.getvalue()

    stream = Slow()
    Log("text", stream).note(AT, "here")
    assert stream.out == f"{TIME} jackfield Note: here\n"
    assert capsys.readouterr().out == ""


class Torn:
    """Paper that cannot be written on any more, as of a program that has ended."""

    def write(self, text: str, /) -> None:
        raise BrokenPipeError(text)

    def flush(self) -> None:
        raise AssertionError


def test_where_nobody_reads_any_more_work_goes_on() -> None:
    Log("text", Torn()).note(AT, "here")


def test_what_is_kept_is_read_when_it_is_handed_out_and_not_before() -> None:
    stream = io.StringIO()
    paper = Kept(stream)
    log = Log("json", paper)
    log.note(AT, "first")
    assert stream.getvalue() == ""
    paper.hand_out()
    log.note(AT, "second")
    assert [json.loads(line)["because"] for line in stream.getvalue().splitlines()] == [
        "first",
        "second",
    ]


def test_a_line_bears_the_cause_of_its_story_and_keeps_it_when_its_object_is_gone() -> None:
    page = Page("json")
    page.log.did(AT, "attach.decide", ONLINE, "")
    claim = b.claim("c", uid="uid-of-c")
    store = b.world(claim, b.resource("a100-1", uid="uid-of-1"))
    page.log.view = store
    page.log.did(AT, "attach.decide", ONLINE, "")
    page.waits(ROOM)
    gone = store.claim(Key("default", "c"))
    assert gone is not None
    store.remove(gone)
    page.log.did(AT, "attach.decide", ONLINE, "Conflict: another version")
    page.log.did(AT, "room.decide", LABEL, "")
    lines = [json.loads(line) for line in page.lines()]
    assert [line.get("cause") for line in lines] == [None, "uid-of-c", "uid-of-c", "uid-of-c", None]


def test_what_has_no_cause_pushes_out_nothing_that_has() -> None:
    page = Page("json")
    first, second = (b.resource(f"a100-{one}", uid=f"uid-{one}") for one in (1, 2))
    store = b.world(first, second)
    page.log.view = store
    found = Finding("resource/a100-1.rack-a", "DeviceMissing", "it is gone", b.FABRIC)
    page.log.found(AT, "drift.decide", found, over=False)
    for number in range(REMEMBERED_MAX):
        named = Finding(f"node/{number}", "ForeignDevice", "of a test", b.FABRIC)
        page.log.found(AT, "drift.decide", named, over=False)
    for one in store.all(type(first)):
        store.remove(one)
    page.log.found(AT, "drift.decide", found, over=True)
    assert json.loads(page.lines()[-1])["cause"] == "uid-1"
