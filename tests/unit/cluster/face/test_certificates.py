"""How certificates come out."""

import ssl

from jackfield.cluster.face import certificates
from unit.cluster.face.faces import NOW


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
