"""Spoilt calls: each gets an answer, and none is a mistake of ours. `make fuzz-api` sends a hundred thousand."""

import pytest

from hostile import fuzz, sockets
from hostile.attack import Victim
from hostile.spoiling import Spoilt

CALLS = 4_000
SEED = 7


@pytest.mark.parametrize("start", range(0, CALLS, fuzz.BLOCK))
def test_every_spoilt_call_is_answered_and_leaves_the_store_sound(start: int) -> None:
    outcomes, wrong = fuzz.run(SEED, range(start, start + fuzz.BLOCK))
    assert wrong == []
    assert outcomes.total() == fuzz.BLOCK


def test_spoilt_calls_reach_every_kind_of_answer() -> None:
    outcomes, _ = fuzz.run(SEED, range(fuzz.BLOCK))
    assert {"200", "201", "400", "404", "405", "409", "415", "422", "watched"} <= outcomes.keys()
    accepted = outcomes["200"] + outcomes["201"]
    assert fuzz.BLOCK / 6 < accepted < fuzz.BLOCK / 2


def test_spoilt_calls_are_the_same_each_time() -> None:
    first, again = (Spoilt(SEED), Spoilt(SEED))
    assert [first.call(number) for number in range(200)] == [again.call(number) for number in range(200)]


def test_spoilt_bytes_on_a_socket_leave_it_well(victim: Victim) -> None:
    outcomes, wrong = sockets.run(victim, SEED, range(250))
    assert wrong == []
    assert {"200", "400", "404"} <= outcomes.keys()
