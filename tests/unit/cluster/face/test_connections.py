"""How many are let in, and how certificates and warnings come out."""

import socket
import ssl

import pytest

from jackfield.cluster.face import certificates
from jackfield.cluster.face.connections import Door
from unit.cluster.face.faces import NOW


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


def test_a_place_that_is_taken_cannot_be_opened() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        Door.opened("127.0.0.1", taken.getsockname()[1], 1)


def test_the_certificate_is_trusted_by_its_authority_alone() -> None:
    ours, others = (certificates.made(NOW, "127.0.0.1") for _ in range(2))
    assert ours.authority != others.authority
    assert ours.context.minimum_version is ssl.TLSVersion.TLSv1_2
    for authority, trusted in ((ours.authority, True), (others.authority, False)):
        assert shaken(ours.context, authority) is trusted


def shaken(server: ssl.SSLContext, authority: bytes) -> bool:
    """Return whether a client that trusts an authority, and does not look at clocks, shakes hands."""
    client = ssl.create_default_context(cadata=authority.decode())
    client.verify_flags |= ssl.VerifyFlags(0x200000)  # the test's certificates are of another year
    pipes = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(pipes[0], pipes[1], server_hostname="127.0.0.1"),
        server.wrap_bio(pipes[1], pipes[0], server_side=True),
    )
    done = [False, False]
    for _ in range(10):
        for index, end in enumerate(ends):
            try:
                end.do_handshake()
                done[index] = True
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError:
                return False
    return all(done)
