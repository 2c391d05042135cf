"""Clients that take their time, and those that come in crowds: each costs little, and is cut off in the end.

Memory is the victim's resident set, as the kernel counts it in /proc.
"""

import contextlib
import json
import socket
import time
from collections.abc import Callable

import pytest

from hostile.attack import AUTHORIZED, Victim, code, heard, request, seconds_until_hung_up
from hostile.victim import IMPATIENT

MAPS = "/api/v1/namespaces/default/configmaps"
JSON = "Content-Type: application/json\r\n"
GROWTH_MAX = 150
"""Megabytes by which any of these may make it grow."""


def written(victim: Victim, name: str, size: int) -> int:
    body = {"metadata": {"name": name}, "data": {"a": "x" * size}}
    return victim.ask("POST", MAPS, json.dumps(body).encode(), JSON)[0]


def test_whoever_never_shakes_hands_is_cut_off(victim: Victim) -> None:
    with victim.plain() as one:
        assert 0.5 < seconds_until_hung_up(one) < 10


def test_whoever_shakes_hands_one_byte_at_a_time_is_cut_off(victim: Victim) -> None:
    with victim.plain() as one:
        one.sendall(b"\x16\x03\x01\x02\x00")
        assert 0.5 < seconds_until_hung_up(one, drip=b"\x01") < 10


@pytest.mark.parametrize(
    "words", [b"GET / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x00" * 50]
)
def test_who_does_not_speak_tls_is_hung_up_on_at_once(victim: Victim, words: bytes) -> None:
    with victim.plain() as one:
        one.sendall(words)
        assert seconds_until_hung_up(one) < 5


@pytest.mark.parametrize(
    ("first", "drip"),
    [
        (b"", b""),
        (b"GET /", b""),
        (b"GET /", b"a"),
        (b"GET / HTTP/1.1\r\n", b"A: b\r\n"),
    ],
)
def test_who_never_comes_to_the_point_is_cut_off(victim: Victim, first: bytes, drip: bytes) -> None:
    with victim.connect() as one:
        one.sendall(first)
        assert 0.5 < seconds_until_hung_up(one, drip) < 10


@pytest.mark.parametrize("drip", [b"", b" "])
def test_a_body_that_never_ends_is_not_waited_for(victim: Victim, drip: bytes) -> None:
    with victim.connect() as one:
        head = f"POST {MAPS} HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n{JSON}{AUTHORIZED}\r\n{{"
        one.sendall(head.encode())
        began = time.monotonic()
        one.settimeout(0.2)
        answer = b""
        while time.monotonic() - began < 10 and not answer:
            with contextlib.suppress(TimeoutError):
                one.sendall(drip)
                answer = one.recv(1000)
        assert code(answer) == 408
        assert seconds_until_hung_up(one) < 5


def test_a_second_call_may_take_its_time_but_not_its_words(victim: Victim) -> None:
    with victim.connect() as one:
        ask = f"GET /version HTTP/1.1\r\nHost: x\r\n{AUTHORIZED}\r\n".encode()
        one.sendall(ask)
        assert code(one.recv(5000)) == 200
        time.sleep(IMPATIENT.first_word_seconds + 0.5)  # noqa: TID251 - the other process lives in real time
        one.sendall(ask)
        assert code(one.recv(5000)) == 200
        one.sendall(b"GET /ver")
        assert seconds_until_hung_up(one) < IMPATIENT.idle_seconds


def test_a_slow_body_that_does_come_is_accepted(victim: Victim) -> None:
    body = b'{"metadata":{"generateName":"slow-"}}'
    with victim.connect() as one:
        whole = request("POST", MAPS, body, f"{AUTHORIZED}{JSON}")
        for index in range(0, len(whole), 40):
            one.sendall(whole[index : index + 40])
            time.sleep(0.02)  # noqa: TID251
        assert code(heard(one)) == 201


def test_answers_that_nobody_reads_are_given_up(victim: Victim) -> None:
    for number in range(10):
        assert written(victim, f"large-{number}", 1_000_000) in {201, 409}
    before = victim.megabytes()
    crowd = []
    for _ in range(40):
        one = victim.connect()
        one.sendall(f"GET {MAPS} HTTP/1.1\r\nHost: x\r\n{AUTHORIZED}\r\n".encode())
        crowd.append(one)
    assert victim.megabytes() - before < GROWTH_MAX
    time.sleep(IMPATIENT.read_seconds + 1)  # noqa: TID251
    refused = sum(code(heard(one)) == 429 for one in crowd)
    assert 20 < refused < 40
    for one in crowd:
        one.close()
    for number in range(10):
        victim.ask("DELETE", f"{MAPS}/large-{number}")
    assert victim.ask("GET", MAPS)[0] == 200


def test_watches_that_nobody_reads_cost_little_and_end(victim: Victim) -> None:
    assert written(victim, "busy", 1) in {201, 409}
    before = victim.megabytes()
    ask = f"GET {MAPS}?watch=1 HTTP/1.1\r\nHost: x\r\n{AUTHORIZED}\r\n".encode()
    watches = [victim.connect() for _ in range(20)]
    for one in watches:
        one.sendall(ask)
    with victim.connect() as writer:
        _patch(writer, 1_000)
    assert victim.megabytes() - before < GROWTH_MAX
    time.sleep(IMPATIENT.read_seconds + 1)  # noqa: TID251
    assert all(seconds_until_hung_up(one) < 3 for one in watches)
    for one in watches:
        one.close()


def _patch(writer: socket.socket, times: int) -> None:
    """Change an object so many times on one connection, some calls in flight."""
    kind = "Content-Type: application/merge-patch+json\r\n"
    answers = 0
    for start in range(0, times, 10):
        for number in range(start, start + 10):
            body = b'{"data":{"a":"%d%s"}}' % (number, b"x" * 20_000)
            head = f"PATCH {MAPS}/busy HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n{kind}{AUTHORIZED}\r\n"
            writer.sendall(head.encode() + body)
        while answers < start + 10:
            answers += writer.recv(1 << 20).count(b"HTTP/1.1 200 OK")
    assert answers == times


def test_watches_that_are_dropped_make_room_for_others(victim: Victim) -> None:
    ask = f"GET /api/v1/nodes?watch=1&resourceVersion=1 HTTP/1.1\r\nHost: x\r\n{AUTHORIZED}\r\n".encode()
    for _ in range(3):
        with contextlib.ExitStack() as watches:
            for _ in range(IMPATIENT.watches):
                one = watches.enter_context(victim.connect())
                one.sendall(ask)  # at once: whoever says nothing is cut off
                assert code(one.recv(1000)) == 200
            assert _first_word(victim, ask) == 429
        assert _soon(lambda: _first_word(victim, ask) == 200)


def _first_word(victim: Victim, ask: bytes) -> int:
    with victim.connect() as one:
        one.sendall(ask)
        return code(one.recv(1000))


def test_thousands_of_connections_are_turned_away_and_forgotten(victim: Victim) -> None:
    before = victim.megabytes()
    crowd = []
    for _ in range(3_000):
        with contextlib.suppress(OSError):
            crowd.append(victim.plain())
    assert victim.megabytes() - before < GROWTH_MAX
    for one in crowd:
        one.close()
    assert _soon(victim.is_well)


def _soon(is_so: Callable[[], bool]) -> bool:
    end = time.monotonic() + 15
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            if is_so():
                return True
        time.sleep(0.2)  # noqa: TID251
    return False


def test_calls_piled_up_behind_a_watch_are_not_all_kept(victim: Victim) -> None:
    before = victim.megabytes()
    ask = f"GET /version HTTP/1.1\r\nHost: x\r\n{AUTHORIZED}\r\n".encode() * 1000
    with victim.connect() as one:
        one.sendall(f"GET {MAPS}?watch=1 HTTP/1.1\r\nHost: x\r\n{AUTHORIZED}\r\n".encode())
        one.settimeout(1.0)
        with contextlib.suppress(OSError):
            for _ in range(1_000):
                one.sendall(ask)
        assert victim.megabytes() - before < GROWTH_MAX
