"""Kubeconfig files: read, merged as kubectl merges them, and one context picked out.

Knows the file format and what is not supported of it. Must not know the network, nor put a value of a file into an
error: it might be a secret.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, TypeVar

import msgspec
import yaml

from jackfield.codec.wire import without_nulls


class BadConnection(Exception):  # noqa: N818 - named for what was found
    """There is no way to reach an API server; says which file, which context, what is wrong and what to do."""


class _Kebab(msgspec.Struct, frozen=True, rename="kebab"):
    pass


class Cluster(_Kebab, frozen=True):
    """Where an API server is, and how it proves to be the right one."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    disable_compression: bool = False


class Variable(msgspec.Struct, frozen=True):
    """A variable of a plugin's environment."""

    name: str
    value: str = ""


class Exec(msgspec.Struct, frozen=True, rename="camel"):
    """A program that knows who we are."""

    command: str
    api_version: str
    args: tuple[str, ...] = ()
    env: tuple[Variable, ...] = ()
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = "IfAvailable"


class User(_Kebab, frozen=True):
    """Who we are."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    exec: Exec | None = None
    username: str = ""
    password: str = ""
    auth_provider: Mapping[str, object] = {}
    as_user: str = msgspec.field(default="", name="as")
    as_groups: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Show nothing: everything in here may be a secret."""
        return "User(…)"


class Context(_Kebab, frozen=True):
    """Whom to be, and where."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(msgspec.Struct, frozen=True):
    name: str
    cluster: Cluster = Cluster()


class _NamedUser(msgspec.Struct, frozen=True):
    name: str
    user: User = User()


class _NamedContext(msgspec.Struct, frozen=True):
    name: str
    context: Context = Context()


class _File(_Kebab, frozen=True):
    clusters: tuple[_NamedCluster, ...] = ()
    users: tuple[_NamedUser, ...] = ()
    contexts: tuple[_NamedContext, ...] = ()
    current_context: str = ""


class Choice(msgspec.Struct, frozen=True):
    """One context with all that belongs to it, and the files that its parts stand in."""

    context: str
    namespace: str
    cluster: Cluster
    cluster_file: Path
    user: User
    user_file: Path

    def __str__(self) -> str:
        """Say where it stands, for people."""
        return f"context {self.context!r} of {self.cluster_file}"


T = TypeVar("T", Cluster, User, Context)
_Found = dict[str, tuple[T, Path]]
_NONE: Final = "there is none"


def chosen(paths: Iterable[Path], context: str) -> Choice:
    """Return the context of that name, or the current one for an empty name. The first file to say a thing wins."""
    files = [(path, _read(path)) for path in paths]
    where = " or ".join(str(path) for path, _ in files)
    name = context or next((file.current_context for _, file in files if file.current_context), "")
    contexts = _first((one.name, one.context, path) for path, file in files for one in file.contexts)
    if not name:
        raise BadConnection(f"{where} has no current-context; name one of these: {_listed(contexts)}")
    if name not in contexts:
        raise BadConnection(f"{where} has no context {name!r}; it has: {_listed(contexts)}")
    picked, path = contexts[name]
    clusters = _first((one.name, one.cluster, path) for path, file in files for one in file.clusters)
    users = _first((one.name, one.user, path) for path, file in files for one in file.users)
    if picked.cluster not in clusters:
        raise _missing(path, name, f"cluster {picked.cluster!r}", _listed(clusters))
    if picked.user and picked.user not in users:
        raise _missing(path, name, f"user {picked.user!r}", _listed(users))
    cluster, cluster_file = clusters[picked.cluster]
    user, user_file = users.get(picked.user, (User(), path))
    return Choice(name, picked.namespace, cluster, cluster_file, user, user_file)


def _missing(path: Path, context: str, what: str, listed: str) -> BadConnection:
    return BadConnection(
        f"context {context!r} of {path} names {what}, which is not there; there are: {listed}"
    )


def _listed(found: Mapping[str, object]) -> str:
    return ", ".join(found) or _NONE


def _first(entries: Iterable[tuple[str, T, Path]]) -> _Found[T]:
    found: _Found[T] = {}
    for name, value, path in entries:
        found.setdefault(name, (value, path))
    return found


def _read(path: Path) -> _File:
    try:
        raw = yaml.safe_load(path.read_bytes())
    except OSError as error:
        raise BadConnection(f"the kubeconfig {path} cannot be read: {error.strerror}") from error
    except yaml.MarkedYAMLError as error:
        # The library would quote the line, which may hold a secret; so the cause is not shown either.
        mark = error.problem_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "an unknown place"
        raise BadConnection(f"the kubeconfig {path} is no YAML: see {place}") from None
    except (yaml.YAMLError, ValueError):
        raise BadConnection(f"the kubeconfig {path} is no YAML") from None
    try:
        return msgspec.convert({} if raw is None else without_nulls(raw), _File)
    except msgspec.ValidationError as error:
        raise BadConnection(f"the kubeconfig {path} is not as it should be: {error}") from None
