"""The native face is spelt as its document says, and every error asks the caller for the right thing."""

import json

import pytest

from jackfield.codec import native
from jackfield.model.fabric import (
    Done,
    FabricDevice,
    Failed,
    Inventory,
    Machine,
    Order,
    Progress,
    Traits,
    Working,
)
from jackfield.model.names import FabricName, ModelName, NodeName, OrderID, PhysicalID, Seconds
from jackfield.ports import Bug, Conflict, Gone, PortError, Refused, Retry

FABRIC = FabricName("rack-a")
INVENTORY = Inventory(
    FABRIC,
    Traits(chooses_device=True, call_timeout=Seconds(60.0), jobs=2),
    (Machine(NodeName("n-1"), 4, Seconds(12.5)),),
    (
        FabricDevice(
            id=PhysicalID("0001"),
            model=ModelName("A100"),
            serial="GPU-1",
            switch="s0",
            attributes={"memory": "80Gi"},
            node=NodeName("n-1"),
            order=OrderID("o-1"),
            since=Seconds(12.5),
        ),
    ),
    {ModelName("A100"): 3},
)
ORDER = Order(OrderID("o-1"), FABRIC, NodeName("n-1"), ModelName("A100"), PhysicalID("0001"))


def test_an_inventory_is_spelt_as_documented() -> None:
    assert json.loads(native.encode(INVENTORY)) == {
        "fabric": "rack-a",
        "traits": {"chooses_device": True, "knows_orders": True, "call_timeout": 60.0, "jobs": 2},
        "machines": [{"node": "n-1", "slots": 4, "since": 12.5}],
        "devices": [
            {
                "id": "0001",
                "model": "A100",
                "type": "gpu",
                "serial": "GPU-1",
                "switch": "s0",
                "attributes": {"memory": "80Gi"},
                "capacity": {},
                "healthy": True,
                "node": "n-1",
                "ours": True,
                "order": "o-1",
                "since": 12.5,
            }
        ],
        "free": {"A100": 3},
    }


def test_an_order_is_spelt_as_documented() -> None:
    assert json.loads(native.encode(ORDER)) == {
        "id": "o-1",
        "fabric": "rack-a",
        "node": "n-1",
        "model": "A100",
        "device": "0001",
        "type": "gpu",
        "force": False,
        "foreign": False,
    }


@pytest.mark.parametrize(
    ("progress", "spelt"),
    [
        (Working(), {"type": "Working"}),
        (Done(PhysicalID("0001"), "GPU-1"), {"type": "Done", "device": "0001", "serial": "GPU-1"}),
        (Failed("no link"), {"type": "Failed", "reason": "no link"}),
    ],
)
def test_progress_is_spelt_as_documented_and_read_back(progress: Progress, spelt: dict[str, str]) -> None:
    assert json.loads(native.encode(progress)) == spelt
    assert native.progress(native.encode(progress)) == progress


def test_what_is_encoded_is_read_back() -> None:
    assert native.inventory(native.encode(INVENTORY)) == INVENTORY
    assert native.order(native.encode(ORDER)) == ORDER


def test_fields_of_a_later_version_are_passed_over_and_defaults_may_be_left_out() -> None:
    assert native.progress(b'{"type": "Done", "device": "7", "temperature": 40}') == Done(PhysicalID("7"))
    assert native.inventory(b'{"fabric": "rack-a"}') == Inventory(FABRIC)


@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"[]", b'{"type": "Perhaps"}', b'{"type": "Failed"}', b"\xff\xfe", b'{"device": "7"}'],
)
def test_bytes_that_say_nothing_are_a_bad_message(body: bytes) -> None:
    with pytest.raises(native.BadMessage):
        native.progress(body)


def test_a_fabric_name_cannot_leave_its_place_in_the_path() -> None:
    assert native.path(FabricName("a/../b?c#d e"), "attach") == "/v1/fabrics/a%2F..%2Fb%3Fc%23d%20e/attach"


# --- errors


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (Retry("busy", Seconds(2.5)), 503),
        (Conflict("changed"), 409),
        (Gone("no such order"), 404),
        (Refused("quota"), 422),
    ],
)
def test_an_error_arrives_as_what_it_was(error: PortError, status: int) -> None:
    told = native.problem(error)
    assert told.status == status
    back = native.error(status, native.encode(told), native.retry_after(told))
    assert type(back) is type(error)
    assert str(back) == str(error)
    if isinstance(error, Retry):
        assert isinstance(back, Retry)
        assert back.after == error.after


def test_a_bug_of_the_managers_is_no_end_of_ours() -> None:
    told = native.problem(Bug("cannot be"))
    back = native.error(told.status, native.encode(told), "")
    assert isinstance(back, Retry)
    assert str(back) == "cannot be (500)"
    assert back.after == native.BUG_AFTER


@pytest.mark.parametrize(
    ("status", "body", "after", "words", "pause"),
    [
        (502, b"<html>Bad Gateway</html>", "", "the manager answered with status 502", 30.0),
        (502, b"<html>Bad Gateway</html>", "7", "the manager answered with status 502", 7.0),
        (404, b"", "", "the manager answered with status 404", 30.0),
        (302, b"", "", "the manager answered with status 302", 30.0),
        (
            401,
            b'{"type": "urn:jackfield:problem:unauthorized", "title": "No", "status": 401}',
            "",
            native.NOT_LET_IN,
            30.0,
        ),
        (503, b'{"type": "about:blank", "title": "Busy", "status": 503}', "3", "Busy", 3.0),
        (503, b"", "86400", "the manager answered with status 503", 60.0),
        (503, b"", "Wed, 21 Oct 2026 07:28:00 GMT", "the manager answered with status 503", 30.0),
        (503, b"", "-5", "the manager answered with status 503", 30.0),
        (503, b'{"type": "urn:jackfield:problem:retry", "title": "Retry", "status": 503}', "", "Retry", 1.0),
        (
            503,
            b'{"type": "urn:jackfield:problem:retry", "title": "R", "status": 503, "retry_after": -1e9}',
            "",
            "R",
            1.0,
        ),
    ],
)
def test_what_says_nothing_about_the_order_is_asked_again(
    status: int, body: bytes, after: str, words: str, pause: float
) -> None:
    back = native.error(status, body, after)
    assert isinstance(back, Retry)
    assert str(back) == words
    assert back.after == pause


@pytest.mark.parametrize(("after", "header"), [(0.0, ""), (0.2, "1"), (1.0, "1"), (2.5, "3")])
def test_the_header_has_whole_seconds_and_never_too_few(after: float, header: str) -> None:
    assert native.retry_after(native.Problem("t", "T", 503, retry_after=after)) == header


@pytest.mark.parametrize(
    ("prefer", "seconds"),
    [
        ("", 0.0),
        ("wait=0.5", 0.5),
        (" Wait = 0.5", 0.5),
        ("wait=60", native.WAIT_SECONDS_MAX),
        ("wait=-1", 0.0),
        ("wait=nan", 0.0),
        ("wait=inf", 0.0),
        ("wait=soon", 0.0),
        ("respond-async", 0.0),
        (native.preference(Seconds(0.25)), 0.25),
    ],
)
def test_an_answer_is_held_back_as_long_as_is_asked_and_never_long(prefer: str, seconds: float) -> None:
    assert native.wait(prefer) == seconds
