"""The checkpoint's file: what is believed of it, whatever happens to it."""

import json
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jackfield.driver import checkpoint
from jackfield.driver.cdi import DeviceNode, Edits
from jackfield.driver.checkpoint import Content, Record
from jackfield.driver.entry import Entry, Held
from jackfield.model.device import DeviceAttribute
from jackfield.model.names import Key, PhysicalID, Uid
from jackfield.ports import Refused

GOLDEN = (
    b'{"checksum":"d4d22396","header":{"kind":"PreparedClaims","version":1,"revision":12}}\n'
    b'{"checksum":"460f83a0","record":{"entry":{"uid":"0f1e-2d3c","claim":{"namespace":"team","name":"train"},'
    b'"held":[{"requests":["gpu"],"pool":"node-1","device":"gpu-0","share_id":"s-1","physical":"P-7","edits":{'
    b'"env":{"A":"b"},"deviceNodes":[{"path":"/dev/gpu0"}]},"cdi":["nvidia.com/gpu=0"],"notes":{"mig":"9"},'
    b'"attributes":{"model":{"string":"A100"}}}],"pod_claim_name":"gpus"},"generation":3}}\n'
    b'{"checksum":"b9caf314","end":{"records":1,"checksum":"af0250a1"}}\n'
)
GOLDEN_ENTRY = Entry(
    Uid("0f1e-2d3c"),
    Key("team", "train"),
    (
        Held(
            ("gpu",),
            "node-1",
            "gpu-0",
            "s-1",
            PhysicalID("P-7"),
            Edits(env={"A": "b"}, device_nodes=(DeviceNode("/dev/gpu0"),)),
            ("nvidia.com/gpu=0",),
            {"mig": "9"},
            {"model": DeviceAttribute(string="A100")},
        ),
    ),
    "gpus",
)


def record(number: int, **notes: str) -> Record:
    held = Held(("gpu",), "node-1", f"gpu-{number}", notes={"id": f"m-{number}", **notes})
    return Record(Entry(Uid(f"uid-{number}"), Key("team", f"claim-{number}"), (held,)), number + 1)


def written(*records: Record, revision: int = 7) -> bytes:
    return checkpoint.file((checkpoint.line(one) for one in records), revision)


def uids(content: Content) -> list[str]:
    return list(content.records)


# `"checksum"` in the notes looks like the beginning of a line.
THREE = tuple(record(number, checksum="x") for number in range(3))
WHOLE = written(*THREE)


def test_what_was_written_is_read() -> None:
    content = checkpoint.content(WHOLE)
    assert content.records == {one.entry.uid: one for one in THREE}
    assert content.revision == 7
    assert (content.damaged, content.findings) == (b"", ())
    assert checkpoint.file(content.lines.values(), 7) == WHOLE


def test_nothing_prepared_is_written_too() -> None:
    content = checkpoint.content(written())
    assert content == Content({}, {}, 7)


def test_a_file_of_the_first_version_is_read_for_ever() -> None:
    content = checkpoint.content(GOLDEN)
    assert content.findings == ()
    assert content.records == {Uid("0f1e-2d3c"): Record(GOLDEN_ENTRY, 3)}
    assert checkpoint.file([checkpoint.line(Record(GOLDEN_ENTRY, 3))], 12) == GOLDEN


def test_every_line_is_json_for_whoever_has_to_look() -> None:
    parsed = [json.loads(line) for line in WHOLE.splitlines()]
    assert [next(reversed(one)) for one in parsed] == ["header", "record", "record", "record", "end"]


# --- damage


def damages() -> Iterator[tuple[str, bytes]]:
    """Return the file with one byte changed, lost or added, at every place."""
    for place in range(len(WHOLE)):
        for byte in (WHOLE[place] ^ 1, WHOLE[place] ^ 0x80, ord("\n"), ord('"')):
            if byte != WHOLE[place]:
                yield f"byte {place} is {byte}", WHOLE[:place] + bytes([byte]) + WHOLE[place + 1 :]
        yield f"byte {place} is lost", WHOLE[:place] + WHOLE[place + 1 :]
        yield f"byte {place} is new", WHOLE[:place] + b"," + WHOLE[place:]


def test_one_damaged_byte_costs_one_claim_at_most_and_is_told() -> None:
    for what, data in damages():
        content = checkpoint.content(data)
        lost = {one.entry.uid: one for one in THREE if one.entry.uid not in content.records}
        assert len(lost) <= 1, what
        assert content.findings, what
        for uid, one in content.records.items():
            assert one in THREE, what
            assert checkpoint.content(checkpoint.file([content.lines[uid]], 1)).records == {uid: one}, what
        if lost:
            assert content.damaged, what


def test_a_damaged_line_break_costs_no_claim() -> None:
    for place in (place for place, byte in enumerate(WHOLE) if byte == ord("\n")):
        content = checkpoint.content(WHOLE[:place] + b"\x0b" + WHOLE[place + 1 :])
        assert uids(content) == ["uid-0", "uid-1", "uid-2"], place
        assert content.findings, place


def test_what_is_damaged_is_kept_byte_by_byte() -> None:
    bad = WHOLE.replace(b"gpu-1", b"gpu-9")
    content = checkpoint.content(bad)
    assert content.damaged == bad.splitlines(keepends=True)[2]
    assert uids(content) == ["uid-0", "uid-2"]
    assert content.findings == ("a line is damaged (probably claim 'team/claim-1', uid 'uid-1')",)


def test_of_a_torn_file_all_whole_lines_are_believed() -> None:
    ends = [len(b"".join(WHOLE.splitlines(keepends=True)[:count])) for count in range(6)]
    for length in range(len(WHOLE) - 1):
        content = checkpoint.content(WHOLE[:length])
        whole = sum(end - 1 <= length for end in ends[2:5])  # the line break itself may be missing
        assert uids(content) == [f"uid-{number}" for number in range(whole)], length
        assert content.findings, length


@pytest.mark.parametrize(
    ("order", "there"),
    [
        ((0, 1, 3, 4), 2),
        ((0, 2, 1, 3, 4), 3),
        ((0, 1, 1, 2, 3, 4), 3),
        ((0, 4), 0),
        ((1, 2, 3, 4), 3),
        ((4,), 0),
    ],
)
def test_lines_that_were_lost_or_moved_are_told_though_each_is_sound(
    order: tuple[int, ...], there: int
) -> None:
    lines = WHOLE.splitlines(keepends=True)
    content = checkpoint.content(b"".join(lines[number] for number in order))
    assert len(content.records) == there
    assert content.damaged == b""
    assert content.findings


def test_a_damaged_first_line_makes_another_revision() -> None:
    content = checkpoint.content(WHOLE.replace(b'"revision":7', b'"revision":8'))
    assert content.revision not in {0, 7, 8}
    assert len(content.records) == 3


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_bytes_that_mean_nothing_are_told_and_not_believed(data: bytes) -> None:
    for junk in (data, WHOLE[:100] + data, data + b"\n" + WHOLE):
        content = checkpoint.content(junk)
        assert all(one in THREE for one in content.records.values())
        assert content.findings or junk in {WHOLE, b"\n" + WHOLE}


def test_a_line_nested_without_end_is_damaged_as_any_other() -> None:
    deep = b'{"checksum":"00000000","record":' + b"[" * 100_000 + b"\n"
    lines = WHOLE.splitlines(keepends=True)
    content = checkpoint.content(b"".join((*lines[:2], deep, *lines[2:])))
    assert content.damaged == deep
    assert len(content.records) == 3


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b'"uid":"uid-1"', b'"uid":"../../etc/cron.d/x"', "is no uid"),
        (b'"name":"claim-1"', b'"name":"../x"', "is no name of a claim"),
        (b'"device":"gpu-1"', b'"device":"gpu/../1"', "is no name of a device"),
        (b'"requests":["gpu"]', b'"requests":["../gpu"]', "is no name of a request"),
        (b'"device":"gpu-1"', b'"device":"gpu-1","edits":{"env":{"A":"b\\nC=d"}}', "a line break"),
        (b'"device":"gpu-1"', b'"device":"gpu-1","cdi":["x"]', "is not the name of a CDI device"),
        (b'"device":"gpu-1"', b'"device":7', "Expected `str`"),
        (b'"uid":"uid-1",', b"", "missing required field `uid`"),
    ],
)
def test_a_forged_line_with_the_right_checksum_is_not_believed(old: bytes, new: bytes, words: str) -> None:
    lines = WHOLE.splitlines(keepends=True)
    part = lines[2][lines[2].index(b'"record":') + 9 : -2].replace(old, new)
    forged = b'{"checksum":"%s","record":%s}\n' % (checkpoint.checksum(part).encode(), part)
    content = checkpoint.content(checkpoint.file((lines[1], forged, lines[3]), 7))
    assert uids(content) == ["uid-0", "uid-2"]
    assert content.damaged == forged
    assert words in content.findings[0]


# --- versions


def test_a_file_of_a_newer_version_is_refused_in_words() -> None:
    with pytest.raises(
        Refused, match=r"by a newer version of this driver \(format 2; this one knows 1 and lower"
    ):
        checkpoint.content(checkpoint.file((), 7, version=2))


def test_a_version_that_is_none_is_damage() -> None:
    content = checkpoint.content(checkpoint.file((checkpoint.line(THREE[0]),), 7, version=0))
    assert content.findings == ("its first line is missing or damaged",)
    assert uids(content) == ["uid-0"]


def renamed(plain: dict[str, object]) -> dict[str, object]:
    return {"entry": plain["claim"], "generation": 1}


def counted(plain: dict[str, object]) -> dict[str, object]:
    assert isinstance(plain["generation"], int)
    return {**plain, "generation": plain["generation"] + 1}


def test_records_of_old_versions_become_those_of_the_newest() -> None:
    entry = msgspec.to_builtins(GOLDEN_ENTRY)
    oldest = msgspec.json.encode({"claim": entry})
    lines = [b'{"checksum":"%s","record":%s}\n' % (checkpoint.checksum(oldest).encode(), oldest)]
    content = checkpoint.content(checkpoint.file(lines, 7, version=1), (renamed, counted))
    assert content.findings == ()
    assert content.records == {GOLDEN_ENTRY.uid: Record(GOLDEN_ENTRY, 2)}
    assert content.lines == {GOLDEN_ENTRY.uid: checkpoint.line(Record(GOLDEN_ENTRY, 2))}
    newer = checkpoint.content(
        checkpoint.file((checkpoint.line(THREE[1]),), 7, version=2), (renamed, counted)
    )
    assert newer.records == {Uid("uid-1"): Record(THREE[1].entry, 3)}
    newest = checkpoint.content(
        checkpoint.file((checkpoint.line(THREE[1]),), 7, version=3), (renamed, counted)
    )
    assert newest.records == {Uid("uid-1"): THREE[1]}


def test_a_record_that_cannot_be_migrated_is_damaged_and_takes_no_other_with_it() -> None:
    entry = msgspec.to_builtins(GOLDEN_ENTRY)
    parts = [msgspec.json.encode({"claim": entry}), msgspec.json.encode({"other": entry})]
    lines = [b'{"checksum":"%s","record":%s}\n' % (checkpoint.checksum(one).encode(), one) for one in parts]
    content = checkpoint.content(checkpoint.file(lines, 7, version=1), (renamed,))
    assert uids(content) == ["0f1e-2d3c"]
    assert content.damaged == lines[1]


def test_fields_of_a_later_day_are_written_again_as_they_were() -> None:
    part = checkpoint.line(THREE[0])[:-1].partition(b'"record":')[2][:-1]
    later = part.replace(b'"generation":1', b'"generation":1,"later":true')
    line = b'{"checksum":"%s","record":%s}\n' % (checkpoint.checksum(later).encode(), later)
    content = checkpoint.content(checkpoint.file([line], 7))
    assert content.records == {Uid("uid-0"): THREE[0]}
    assert list(content.lines.values()) == [line]


def test_what_cannot_be_written_is_refused() -> None:
    with pytest.raises(Refused, match="claim team/claim-0 cannot be written down"):
        checkpoint.line(record(0, bad="\ud800"))
