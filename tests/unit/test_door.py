"""How many are let in."""

import socket

import pytest

from jackfield.door import Door


def connected(door: Door) -> socket.socket:
    return socket.create_connection(door.getsockname(), timeout=5.0)


def test_only_so_many_are_let_in_and_who_leaves_makes_room() -> None:
    with Door.opened("127.0.0.1", 0, 2) as door:
        door.listen()
        clients = [connected(door) for _ in range(3)]
        first, _ = door.accept()
        second, _ = door.accept()
        with pytest.raises(BlockingIOError):
            door.accept()
        assert clients[2].recv(1) == b""
        first.close()
        first.close()
        assert door.inside == 1
        clients.append(connected(door))
        third, _ = door.accept()
        third.sendall(b"x")
        assert clients[3].recv(1) == b"x"
        for one in (second, third, *clients):
            one.close()
        assert door.inside == 0


def test_a_door_is_opened_at_a_name_or_at_an_address_of_the_sixth_version() -> None:
    with Door.opened("localhost", 0, 1) as door:
        assert door.getsockname()[0] in {"127.0.0.1", "::1"}
    with Door.opened("::ffff:127.0.0.1", 0, 1) as door:
        assert door.family is socket.AF_INET6


def test_a_place_that_is_taken_cannot_be_opened() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        Door.opened("127.0.0.1", taken.getsockname()[1], 1)
