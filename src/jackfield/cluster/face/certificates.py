"""A certificate authority for one run, and what it says of the server.

Knows X.509 as far as kubectl asks. Must not know who connects. The keys never leave memory, but for the moment in
which the TLS library reads them from a file that nobody else can open.
"""

import datetime as dt
import ipaddress
import ssl
import tempfile
from pathlib import Path
from typing import Final

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from jackfield.model.names import Seconds

DAYS: Final = 30
NAMES: Final = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")


class Certificates(msgspec.Struct, frozen=True):
    """What clients trust, and what the server shows."""

    authority: bytes
    """PEM, for kubeconfigs."""
    context: ssl.SSLContext


def made(now: Seconds, address: str) -> Certificates:
    """Make an authority and a server's certificate for an address; both are new every time."""
    began = dt.datetime.fromtimestamp(now, dt.UTC) - dt.timedelta(hours=1)
    root_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer, subject = _name("jackfield up: authority"), _name("jackfield up")
    root = (
        _begun(issuer, issuer, root_key.public_key(), began)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(root_key.public_key()), critical=False)
        .sign(root_key, hashes.SHA256())
    )
    names: list[x509.GeneralName] = [x509.DNSName(one) for one in NAMES]
    names.append(x509.IPAddress(ipaddress.ip_address(address)))
    signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(root_key.public_key())
    shown = (
        _begun(subject, issuer, key.public_key(), began)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(signer, critical=False)
        .sign(root_key, hashes.SHA256())
    )
    authority = root.public_bytes(serialization.Encoding.PEM)
    return Certificates(authority, _context(shown, key))


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, began: dt.datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(began)
        .not_valid_after(began + dt.timedelta(days=DAYS))
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _context(shown: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with tempfile.TemporaryDirectory(prefix="jackfield-") as folder:
        path = Path(folder) / "server.pem"
        path.touch(mode=0o600)
        path.write_bytes(shown.public_bytes(serialization.Encoding.PEM) + private)
        context.load_cert_chain(path)
    return context
