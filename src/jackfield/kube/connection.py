"""From a kubeconfig, or from inside a pod, to a connection: where the API server is, and who we are to it.

Knows where configuration may lie and TLS. Must not read the environment itself, nor know HTTP.
"""

import base64
import binascii
import os
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from jackfield.kube import kubeconfig as files
from jackfield.kube.credentials import (
    BadCredentials,
    Command,
    Credentials,
    Files,
    Fixed,
    Plugin,
    Proof,
    content,
)
from jackfield.kube.kubeconfig import BadConnection as BadConnection  # noqa: PLC0414 - this module's word too

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds its token."""
EXEC_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
PROXY_SCHEMES: Final = ("http", "https")


class Trust(msgspec.Struct, frozen=True):
    """How the server proves to be the right one."""

    authority: str = ""
    """Certificates in PEM; empty means those that the machine trusts."""
    verify: bool = True
    server_name: str = ""
    """The name in the server's certificate, where it is not the one in the address."""


class Connection(msgspec.Struct, frozen=True):
    """An API server and how to speak to it."""

    server: str
    credentials: Credentials
    trust: Trust = Trust()
    proxy: str = ""
    namespace: str = "default"
    source: str = "given"
    """Where all this stands, for people."""

    def __repr__(self) -> str:
        """Name server and source, and no secret."""
        return f"Connection({self.server!r}, {self.source!r})"


def load(
    kubeconfig: Path | None = None,
    context: str | None = None,
    environment: Mapping[str, str] = {},
    service_account: Path = SERVICE_ACCOUNT,
) -> Connection:
    """Return the connection kubectl would use: the file given, $KUBECONFIG, ~/.kube/config, or the pod we are in.

    Raises BadConnection with words a user can act on.
    """
    paths = _paths(kubeconfig, environment)
    if paths:
        return _from_files(files.chosen(paths, context or ""), environment)
    if environment.get("KUBERNETES_SERVICE_HOST"):
        return _in_cluster(environment, service_account)
    raise BadConnection(
        "there is no kubeconfig and this is no pod: name a file, set KUBECONFIG, or write ~/.kube/config"
    )


def _paths(kubeconfig: Path | None, environment: Mapping[str, str]) -> list[Path]:
    if kubeconfig is not None:
        return [kubeconfig]
    listed = [Path(one) for one in environment.get("KUBECONFIG", "").split(os.pathsep) if one]
    if listed:
        there = [one for one in listed if one.exists()]
        if not there:
            names = ", ".join(str(one) for one in listed)
            raise BadConnection(f"KUBECONFIG names no file that exists: {names}")
        return there
    home = Path(environment["HOME"], ".kube", "config") if environment.get("HOME") else None
    return [home] if home is not None and home.exists() else []


# --- in a pod


def _in_cluster(environment: Mapping[str, str], folder: Path) -> Connection:
    host, port = environment["KUBERNETES_SERVICE_HOST"], environment.get("KUBERNETES_SERVICE_PORT", "443")
    try:
        authority = content(folder / "ca.crt")
        content(folder / "token")
        namespace = content(folder / "namespace").strip()
    except BadCredentials as error:
        raise BadConnection(
            f"this pod has no service account: {error}; is automountServiceAccountToken off?"
        ) from error
    return _checked(
        Connection(
            server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
            credentials=Files({"token": folder / "token"}),
            trust=Trust(authority),
            namespace=namespace or "default",
            source=f"the service account in {folder}",
        )
    )


# --- from files


def _from_files(choice: files.Choice, environment: Mapping[str, str]) -> Connection:
    cluster = choice.cluster
    folder = choice.cluster_file.absolute().parent
    address = urlsplit(cluster.server)
    if address.scheme not in ("http", "https") or not address.netloc:
        raise BadConnection(f"{choice}: the server is no address such as https://host:6443")
    if cluster.proxy_url and urlsplit(cluster.proxy_url).scheme not in PROXY_SCHEMES:
        raise BadConnection(
            f"{choice}: proxy-url must begin with http:// or https://; others are not supported"
        )
    authority = _inline(choice, "certificate-authority-data", cluster.certificate_authority_data)
    if not authority and cluster.certificate_authority:
        authority = _content(choice, folder / cluster.certificate_authority)
    return _checked(
        Connection(
            server=cluster.server.rstrip("/"),
            credentials=_credentials(choice, authority, environment),
            trust=Trust(authority, not cluster.insecure_skip_tls_verify, cluster.tls_server_name),
            proxy=cluster.proxy_url,
            namespace=choice.namespace or "default",
            source=str(choice),
        )
    )


def _credentials(choice: files.Choice, authority: str, environment: Mapping[str, str]) -> Credentials:
    user = choice.user
    _refuse_unsupported(choice)
    if user.exec is not None:
        return Plugin(_command(choice, user.exec, authority, environment))
    folder = choice.user_file.absolute().parent
    given = Proof(
        token=user.token,
        certificate=_inline(choice, "client-certificate-data", user.client_certificate_data),
        key=_inline(choice, "client-key-data", user.client_key_data),
    )
    named = {"token": user.token_file, "certificate": user.client_certificate, "key": user.client_key}
    # Data win over files, but for tokens, where kubectl believes the file.
    read = {
        part: folder / name
        for part, name in named.items()
        if name and (part == "token" or not getattr(given, part))
    }
    has = {part for part in named if part in read or getattr(given, part)}
    if ("certificate" in has) != ("key" in has):
        raise BadConnection(f"{choice}: the user has a client certificate or a key, but not both")
    for path in read.values():
        _content(choice, path)
    return Files(read, given) if read else Fixed(given)


def _refuse_unsupported(choice: files.Choice) -> None:
    user = choice.user
    if user.auth_provider:
        raise BadConnection(
            f"{choice}: auth-provider is not supported, nor by Kubernetes any more; use an exec plugin"
        )
    if user.username or user.password:
        raise BadConnection(
            f"{choice}: user names with passwords are not supported, nor by Kubernetes any more; use a token"
        )
    if user.as_user or user.as_groups:
        raise BadConnection(
            f"{choice}: impersonation (as, as-groups) is not supported; use a user of its own"
        )


def _command(
    choice: files.Choice, plugin: files.Exec, authority: str, environment: Mapping[str, str]
) -> Command:
    if plugin.api_version not in EXEC_VERSIONS:
        raise BadConnection(
            f"{choice}: the exec plugin {plugin.command!r} speaks {plugin.api_version!r}; "
            f"supported are {' and '.join(EXEC_VERSIONS)}"
        )
    if plugin.interactive_mode == "Always":
        raise BadConnection(
            f"{choice}: the exec plugin {plugin.command!r} wants to ask somebody, but nobody is there"
        )
    # A path is meant from the file it stands in; a bare name is looked for on the PATH.
    program = plugin.command
    if os.sep in program:
        program = str(choice.user_file.absolute().parent / program)
    spec: dict[str, object] = {"interactive": False}
    if plugin.provide_cluster_info:
        spec["cluster"] = _told(choice.cluster, authority)
    info = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
    return Command(
        program=program,
        arguments=plugin.args,
        environment={**environment, **{one.name: one.value for one in plugin.env}},
        api_version=plugin.api_version,
        info=msgspec.json.encode(info).decode(),
        hint=plugin.install_hint,
    )


def _told(cluster: files.Cluster, authority: str) -> dict[str, object]:
    told = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(authority.encode()).decode(),
        "proxy-url": cluster.proxy_url,
    }
    return {name: value for name, value in told.items() if value}


def _inline(choice: files.Choice, field: str, data: str) -> str:
    try:
        return base64.b64decode(data, validate=False).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise BadConnection(f"{choice}: {field} is not PEM in base64") from None


def _content(choice: files.Choice, path: Path) -> str:
    try:
        return content(path)
    except BadCredentials as error:
        raise BadConnection(f"{choice}: {error}") from error


# --- TLS


def _checked(connection: Connection) -> Connection:
    """Certificates that cannot be read are found now, not at the first call."""
    if connection.server.startswith("https:"):
        tls(connection.trust, Proof(), connection.source)
    return connection


def tls(trust: Trust, proof: Proof, source: str) -> ssl.SSLContext:
    """Return how to speak TLS with this server and this proof. Raises BadConnection."""
    try:
        context = ssl.create_default_context(cadata=trust.authority or None)
    except (ssl.SSLError, ValueError):
        raise BadConnection(f"{source}: the certificate authority is no certificate in PEM") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Newer Pythons insist on extensions that many clusters' own authorities do not write.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not trust.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if proof.certificate:
        with _private(proof.certificate) as certificate, _private(proof.key) as key:
            try:
                context.load_cert_chain(certificate, key, password=_no_password)
            except (ssl.SSLError, ValueError):
                raise BadConnection(
                    f"{source}: client certificate and key are no PEM, do not belong together, or want a password"
                ) from None
    return context


def _no_password() -> str:
    """A key with a password is refused, not asked about on a terminal that is not there."""
    raise ValueError


@contextmanager
def _private(text: str) -> Iterator[str]:
    """Put a secret where the TLS library can read it: in memory, or in a file of ours that goes at once."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("jackfield")
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            file.flush()
            yield f"/proc/self/fd/{descriptor}"
        return
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(text)
        file.flush()
        yield file.name
