"""Which calls a fault strikes, and how often."""

import random

import pytest

from jackfield.fabric_manager import faults
from jackfield.fabric_manager.faults import Call, Fault, Faults, Kind
from jackfield.model.names import NodeName, OrderID, PhysicalID, Seconds

CHANCE = random.Random("faults")  # noqa: S311 - no secret is made of it
CALL = Call("native", "attach", PhysicalID("a-1"), NodeName("n-1"), OrderID("o"))
CONCERNS = (
    (Fault(Kind.FAIL), True),
    (Fault(Kind.FAIL, face="native", verb="attach", device=PhysicalID("a-1")), True),
    (Fault(Kind.FAIL, face="redfish"), False),
    (Fault(Kind.FAIL, verb="detach"), False),
    (Fault(Kind.FAIL, device=PhysicalID("a-2")), False),
    (Fault(Kind.FAIL, node=NodeName("n-2")), False),
    (Fault(Kind.FAIL, order=OrderID("p")), False),
    (Fault(Kind.FAIL, node=NodeName("n-1"), order=OrderID("o")), True),
)


@pytest.mark.parametrize(("fault", "concerned"), CONCERNS)
def test_a_fault_is_for_calls_that_agree_with_all_it_names(fault: Fault, *, concerned: bool) -> None:
    assert faults.concerns(fault, CALL) is concerned


@pytest.mark.parametrize(
    ("after", "times", "hits"),
    [(0, 0, "111111"), (0, 2, "110000"), (3, 0, "000111"), (2, 3, "001110"), (9, 1, "000000")],
)
def test_a_fault_strikes_after_so_many_calls_and_so_often(after: int, times: int, hits: str) -> None:
    kept: dict[str, Fault | None] = {}
    known = Faults({}, kept.__setitem__, CHANCE)
    known.set(Fault(Kind.LOST, after=after, times=times))
    met = [known.met(CALL, faults.WIRE) is not None for _ in hits]
    assert "".join(str(int(one)) for one in met) == hits
    restarted = Faults({name: one for name, one in kept.items() if one}, kept.__setitem__, CHANCE)
    assert [one.seen for one in restarted] == [len(hits)]


def test_a_fault_strikes_as_often_as_it_is_likely() -> None:
    known = Faults({}, lambda *_: None, CHANCE)
    known.set(Fault(Kind.LOST, likely=0.2))
    hits = sum(known.met(CALL, faults.WIRE) is not None for _ in range(2000))
    assert 300 < hits < 500


def test_a_call_meets_only_faults_of_its_place() -> None:
    known = Faults({}, lambda *_: None, CHANCE)
    known.set(Fault(Kind.FAIL))
    assert known.met(CALL, faults.WIRE) is None
    assert known.met(CALL, faults.WORK) is not None


def test_a_cleared_fault_strikes_no_more() -> None:
    known = Faults({}, lambda *_: None, CHANCE)
    name = known.set(Fault(Kind.LOST)).id
    assert known.clear(name) is not None
    assert known.clear(name) is None
    assert known.met(CALL, faults.WIRE) is None


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault(Kind.VANISH), "vanish needs a device"),
        (Fault(Kind.ILL), "ill needs a device"),
        (Fault(Kind.CUT), "cut needs a node"),
        (Fault(Kind.LATE), "late needs seconds"),
        (Fault(Kind.QUOTA, limit=-1), "after, times and limit must not be negative"),
        (Fault(Kind.FAIL, id="A/B"), "id must be 1 to 63 lower case letters, digits and hyphens"),
        (Fault(Kind.LATE, seconds=Seconds(1e9)), "seconds must be 0 to 3600"),
        (Fault(Kind.STATUS, status=200), "status must be 400 to 599"),
        (Fault(Kind.FAIL, times=-1), "after, times and limit must not be negative"),
        (Fault(Kind.FAIL, likely=0.0), "likely must be more than 0 and at most 1"),
        (Fault(Kind.FAIL, verb="atach"), f"there is no verb 'atach'; there are {', '.join(faults.VERBS)}"),
        (Fault(Kind.LOST, verb="reprogram"), ""),
        (Fault(Kind.FAIL), ""),
    ],
)
def test_a_fault_that_means_nothing_is_refused(fault: Fault, words: str) -> None:
    assert faults.wrong(fault) == words
