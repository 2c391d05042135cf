"""Where a fabric's manager is and how it is spoken to: what an operator writes, and what is wrong with it.

Knows values, and the files they name. Must not know any manager. The environment is handed in: only the command line
reads it.
"""

import re
import ssl
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import TypeVar
from urllib.parse import SplitResult, urlsplit

import msgspec
import yaml

from jackfield.model.names import FabricName, Seconds
from jackfield.ports import Retry

T = TypeVar("T")

_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
CALL_TIMEOUT_MAX = Seconds(60.0)
TOKEN_AGAIN = Seconds(5.0)
"""When a token file that cannot be read is looked at again: it is being replaced, or about to be mounted."""


class BadFabric(ValueError):  # noqa: N818 - a finding about a file
    """Settings that no manager can be reached by; the message names them."""


class FabricSettings(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One fabric and its manager."""

    name: FabricName
    """What the manager calls the fabric, and we with it: pool of its devices, label of its nodes."""
    type: str
    """How its manager is spoken to; `fabric.TYPES` lists the words."""
    url: str
    """Where its manager listens; what comes before the version in the paths of the protocol."""
    token_file: str = ""
    """A file with the token, read anew for every call, so that it can be replaced."""
    token_variable: str = ""
    """The environment variable with the token."""
    ca_file: str = ""
    """Who may vouch for the manager, in PEM; the system's authorities where nothing is said."""
    insecure: bool = False
    """Whether the manager's certificate is not looked at, or there is none: only where nobody else listens."""
    call_timeout_seconds: Seconds = Seconds(2.0)
    """How long an answer may take; long work is asked about again, so this is short."""
    options: Mapping[str, object] = {}
    """What only this type of manager needs to know; each type checks its own."""


class Secret:
    """A text that shows itself only to those who ask for it by name."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the text."""
        return self._text

    def __repr__(self) -> str:
        return "Secret(…)" if self._text else "Secret()"


Token = Callable[[], Secret]
"""Gives the token as it is now; empty if none is needed. Raises Retry while there is none."""


def parse(text: str, source: str) -> tuple[FabricSettings, ...]:
    """Make settings of YAML text: a list under `fabrics`. Raises BadFabric naming source and setting."""
    try:
        raw = yaml.safe_load(text)
        found = msgspec.convert(raw, _File).fabrics
    except yaml.YAMLError as error:
        raise BadFabric(f"{source}: not YAML: {error}") from error
    except msgspec.ValidationError as error:
        where = _where(error).lstrip(".")
        words = _words(error, FabricSettings if where else _File)
        raise BadFabric(f"{source}: {where or 'the whole file'}: {words}") from error
    names = [one.name for one in found]
    wrong = [f"fabrics: two are called {name!r}" for name in dict.fromkeys(names) if names.count(name) > 1]
    for place, one in enumerate(found):
        wrong += [f"fabrics[{place}].{fault}" for fault in faults(one)]
    if wrong:
        raise BadFabric("\n".join(f"{source}: {one}" for one in wrong))
    return found


def options(settings: FabricSettings, kind: type[T]) -> T:
    """Return the options of a type as it knows them. Raises BadFabric naming the option."""
    try:
        return msgspec.convert(settings.options, kind)
    except msgspec.ValidationError as error:
        where = _where(error)
        raise BadFabric(f"options{where}: {_words(error, None if where else kind)}") from None


def _where(error: msgspec.ValidationError) -> str:
    """Return the path to what is wrong; empty if it is the whole."""
    return str(error).partition(" - at `$")[2].rstrip("`")


def _words(error: msgspec.ValidationError, kind: type | None) -> str:
    """Return what is wrong; of a name that nothing has, also those that there are, if it is known where it stands."""
    words = str(error).partition(" - at `$")[0]
    unknown = _UNKNOWN.fullmatch(words)
    if unknown is None:
        return words
    names = ", ".join(one.encode_name for one in msgspec.structs.fields(kind)) if kind is not None else ""
    return f"there is no setting {unknown[1]}" + (f"; there are {names}" if names else "")


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    fabrics: tuple[FabricSettings, ...] = ()


def faults(settings: FabricSettings) -> tuple[str, ...]:
    """Return what is wrong with the settings, each beginning with the setting's name."""
    found = [*_url_faults(settings)]
    if not settings.name:
        found.append("name: is empty")
    if settings.token_file and settings.token_variable:
        found.append("tokenVariable: there is a tokenFile already; one of them is enough")
    if settings.ca_file and settings.insecure:
        found.append("caFile: means nothing while insecure is true")
    if not 0 < settings.call_timeout_seconds <= CALL_TIMEOUT_MAX:
        found.append(f"callTimeoutSeconds: must be more than 0 and at most {CALL_TIMEOUT_MAX:g}")
    return tuple(found)


def _url_faults(settings: FabricSettings) -> tuple[str, ...]:
    try:
        parts = urlsplit(settings.url)
        host = parts.hostname or ""
        _ = parts.port
    except ValueError as error:
        return (f"url: {error}",)
    if parts.scheme not in {"http", "https"} or not host:
        return (f"url: must be https://HOST[:PORT][/PATH], not {_shown(parts)!r}",)
    if parts.username is not None or parts.password is not None:
        return ("url: carries a user or password; that is what tokenFile and tokenVariable are for",)
    if parts.query or parts.fragment:
        return ("url: has a query or fragment, which the manager would never see",)
    if parts.scheme == "http" and not settings.insecure and not _loopback(host):
        return ("url: http:// lets everybody on the way listen; use https://, or say insecure: true",)
    return ()


def _shown(parts: SplitResult) -> str:
    """Return an address without what may be a secret in it."""
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def token(settings: FabricSettings, environment: Mapping[str, str]) -> Token:
    """Return where the token comes from. Raises BadFabric if it is named and not there."""
    if settings.token_variable:
        text = environment.get(settings.token_variable, "").strip()
        if not text:
            raise BadFabric(f"tokenVariable: {settings.token_variable} is not set")
        _check(text, f"tokenVariable: {settings.token_variable}")
        found = Secret(text)
        return lambda: found
    if settings.token_file:
        path = Path(settings.token_file)
        try:
            _check(path.read_text().strip(), f"tokenFile: {path}")
        except (OSError, UnicodeDecodeError) as error:
            raise BadFabric(f"tokenFile: {path} cannot be read: {_reason(error)}") from None
        return lambda: _read(path)
    return lambda: Secret("")


def _read(path: Path) -> Secret:
    try:
        text = path.read_text().strip()
        _check(text, f"tokenFile: {path}")
    except (OSError, UnicodeDecodeError) as error:
        raise Retry(f"the token file {path} cannot be read: {_reason(error)}", TOKEN_AGAIN) from None
    except BadFabric as error:
        raise Retry(str(error), TOKEN_AGAIN) from None
    return Secret(text)


def _check(text: str, where: str) -> None:
    """Refuse what cannot stand in a header, without showing it."""
    if not text:
        raise BadFabric(f"{where} is empty")
    if not text.isascii() or not text.isprintable() or " " in text:
        raise BadFabric(f"{where} has characters that no token has")


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return (error.strerror or type(error).__name__) if isinstance(error, OSError) else "it is not text"


def tls(settings: FabricSettings) -> ssl.SSLContext | None:
    """Return how the manager is recognised; None where it is not, as there is no TLS. Raises BadFabric."""
    if settings.url.startswith("http:"):
        return None
    try:
        context = ssl.create_default_context(cafile=settings.ca_file or None)
    except (OSError, ssl.SSLError) as error:
        raise BadFabric(f"caFile: {settings.ca_file} cannot be used: {error}") from error
    if settings.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
