"""Addresses, networks and URLs.

Knows how Go reads them. Must not know expressions, nor any network.
"""

import re
from ipaddress import AddressValueError, IPv4Address, IPv4Interface, IPv6Address, IPv6Interface
from typing import Final
from urllib.parse import quote, unquote_to_bytes

from jackfield.core.cel.faults import CelError
from jackfield.core.cel.quoting import quoted
from jackfield.core.cel.values import CIDR, IP, URL, overload

_BITS: Final = re.compile(r"0|[1-9][0-9]{0,8}", re.ASCII)
_SCHEME: Final = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):(.*)", re.DOTALL)
_PORT: Final = re.compile(r":[0-9]*", re.ASCII)
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2})")
_BAD_HOST_ESCAPE: Final = re.compile(r"%(?!25|[89a-fA-F][0-9a-fA-F])")
_NO_HOST: Final = re.compile(r"""[^a-zA-Z0-9._~!$&'()*+,;=:\[\]<>"%\x80-\U0010ffff-]""")
_USER: Final = re.compile(r"[A-Za-z0-9._:~!$&'()*+,;=%@-]*")
_PATH: Final = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/\[\]-]|%[0-9a-fA-F]{2})*")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_PATH_SAFE: Final = "-_.~$&+,/:;=@"

# --- addresses


def _address(text: str) -> IPv4Address | IPv6Address:
    try:
        address = IPv6Address(text) if ":" in text else IPv4Address(text)
    except (AddressValueError, ValueError) as error:
        raise CelError(
            f"IP Address {quoted(text)} parse error during conversion from string: "
            f"ParseAddr({quoted(text)}): unable to parse IP"
        ) from error
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            raise CelError(f"IP address {quoted(text)} with zone value is not allowed")
        if address.ipv4_mapped is not None:
            raise CelError(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return address


@overload("ip", str)
def _ip(text: str) -> IP:
    return IP(_address(text))


@overload("isIP", str)
def _is_ip(text: str) -> bool:
    try:
        _address(text)
    except CelError:
        return False
    return True


@overload("ip.isCanonical", str)
def _is_canonical(text: str) -> bool:
    return str(_address(text)) == text


@overload("family", IP)
def _family(ip: IP) -> int:
    return ip.address.version


@overload("isUnspecified", IP)
def _is_unspecified(ip: IP) -> bool:
    return ip.address.is_unspecified


@overload("isLoopback", IP)
def _is_loopback(ip: IP) -> bool:
    return ip.address.is_loopback


@overload("isLinkLocalMulticast", IP)
def _is_link_local_multicast(ip: IP) -> bool:
    packed = ip.address.packed
    if isinstance(ip.address, IPv4Address):
        return packed[:3] == bytes((224, 0, 0))
    return packed[0] == 0xFF and packed[1] & 0x0F == 2  # noqa: PLR2004 - ffx2::/16


@overload("isLinkLocalUnicast", IP)
def _is_link_local_unicast(ip: IP) -> bool:
    return ip.address.is_link_local


@overload("isGlobalUnicast", IP)
def _is_global_unicast(ip: IP) -> bool:
    address = ip.address
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not special and address != IPv4Address("255.255.255.255")


# --- networks


_NO_NETWORK: Final = "network address parse error during conversion from string: "


def _no_prefix(text: str, reason: str) -> CelError:
    return CelError(f"{_NO_NETWORK}{_NO_NETWORK}netip.ParsePrefix({quoted(text)}): {reason}")


def _network(text: str) -> CIDR:
    before, slash, bits = text.rpartition("/")
    if not slash:
        raise _no_prefix(text, "no '/'")
    try:
        address = IPv6Address(before) if ":" in before else IPv4Address(before)
    except ValueError as error:
        raise _no_prefix(text, f"ParseAddr({quoted(before)}): unable to parse IP") from error
    if "%" in before:
        raise _no_prefix(text, "IPv6 zones cannot be present in a prefix")
    if not _BITS.fullmatch(bits):
        raise _no_prefix(text, f"bad bits after slash: {quoted(bits)}")
    if int(bits) > address.max_prefixlen:
        raise _no_prefix(text, "prefix length out of range")
    if isinstance(address, IPv4Address):
        return CIDR(IPv4Interface((address, int(bits))))
    if address.ipv4_mapped is not None:
        raise CelError(f"{_NO_NETWORK}IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return CIDR(IPv6Interface((address, int(bits))))


@overload("cidr", str)
def _cidr(text: str) -> CIDR:
    return _network(text)


@overload("isCIDR", str)
def _is_cidr(text: str) -> bool:
    try:
        _network(text)
    except CelError:
        return False
    return True


@overload("containsIP", CIDR, IP)
def _contains_ip(cidr: CIDR, ip: IP) -> bool:
    return ip.address in cidr.interface.network


@overload("containsIP", CIDR, str)
def _contains_ip_text(cidr: CIDR, text: str) -> bool:
    try:
        return _address(text) in cidr.interface.network
    except CelError as error:
        raise CelError("no such overload") from error


@overload("containsCIDR", CIDR, CIDR)
def _contains_cidr(cidr: CIDR, other: CIDR) -> bool:
    outer, inner = cidr.interface.network, other.interface
    return inner.ip in outer and outer.prefixlen <= inner.network.prefixlen


@overload("containsCIDR", CIDR, str)
def _contains_cidr_text(cidr: CIDR, text: str) -> bool:
    return _contains_cidr(cidr, _network(text))


@overload("ip", CIDR)
def _ip_of(cidr: CIDR) -> IP:
    return IP(cidr.interface.ip)


@overload("prefixLength", CIDR)
def _prefix_length(cidr: CIDR) -> int:
    return cidr.interface.network.prefixlen


@overload("masked", CIDR)
def _masked(cidr: CIDR) -> CIDR:
    network = cidr.interface.network
    return _network(f"{network.network_address}/{network.prefixlen}")


# --- URLs


def _no_url(text: str, reason: str) -> CelError:
    return CelError(f"URL parse error during conversion from string: parse {quoted(text)}: {reason}")


def _url(text: str, *, request: bool) -> URL:
    if _CONTROL.search(text):
        raise _no_url(text, "net/url: invalid control character in URL")
    if not text:
        raise _no_url(text, "empty url")
    if text == "*":
        return URL("", "", "*", "", text)
    if text[0] == ":":
        raise _no_url(text, "missing protocol scheme")
    shape = _SCHEME.fullmatch(text)
    scheme, rest = (shape[1].lower(), shape[2]) if shape else ("", text)
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return URL(scheme, "", "", query, text)
        raise _no_url(text, "invalid URI for request")
    host = ""
    if rest.startswith("//") and (scheme or (not request and not rest.startswith("///"))):
        authority, slash, path = rest[2:].partition("/")
        host, rest = _host(text, authority), slash + path
    _check_escapes(text, rest, _BAD_ESCAPE)
    return URL(scheme, host, _escaped_path(rest), query, text)


def _check_escapes(text: str, part: str, bad: re.Pattern[str]) -> None:
    found = bad.search(part)
    if found:
        raise _no_url(text, f'invalid URL escape "{part[found.start() : found.start() + 3]}"')


def _host(text: str, authority: str) -> str:
    user, at, host = authority.rpartition("@")
    if at and not _USER.fullmatch(user):
        raise _no_url(text, "net/url: invalid userinfo")
    _check_escapes(text, user, _BAD_ESCAPE)
    if host.startswith("["):
        end = host.rfind("]")
        if end < 0:
            raise _no_url(text, "missing ']' in host")
        port = host[end + 1 :]
    else:
        port = host[host.rfind(":") :] if ":" in host else ""
    if port and not _PORT.fullmatch(port):
        raise _no_url(text, f'invalid port "{port}" after host')
    _check_escapes(text, host, _BAD_HOST_ESCAPE)
    wrong = _NO_HOST.search(host)
    if wrong:
        raise _no_url(text, f'invalid character "{wrong[0]}" in host name')
    return unquote_to_bytes(host).decode("utf-8", "replace")


def _escaped_path(path: str) -> str:
    if _PATH.fullmatch(path):
        return path
    return quote(unquote_to_bytes(path), safe=_PATH_SAFE)


@overload("url", str)
def _parse_url(text: str) -> URL:
    # Kubernetes checks the whole text as a request's URI, which has no fragment, then reads it as one that may.
    _url(text, request=True)
    return _url(text.partition("#")[0], request=False)


@overload("isURL", str)
def _is_url(text: str) -> bool:
    try:
        _url(text, request=True)
    except CelError:
        return False
    return True


@overload("getScheme", URL)
def _scheme_of(url: URL) -> str:
    return url.scheme


@overload("getHost", URL)
def _host_of(url: URL) -> str:
    return url.host


@overload("getHostname", URL)
def _hostname_of(url: URL) -> str:
    return _split_host(url.host)[0]


@overload("getPort", URL)
def _port_of(url: URL) -> str:
    return _split_host(url.host)[1]


def _split_host(host: str) -> tuple[str, str]:
    name, port = host, ""
    colon = host.rfind(":")
    if colon >= 0 and _PORT.fullmatch(host[colon:]):
        name, port = host[:colon], host[colon + 1 :]
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
    return name, port


@overload("getEscapedPath", URL)
def _path_of(url: URL) -> str:
    return url.path


@overload("getQuery", URL)
def _query_of(url: URL) -> dict[str, list[object]]:
    found: dict[str, list[object]] = {}
    for part in url.query.split("&"):
        if not part or ";" in part or _BAD_ESCAPE.search(part):
            continue
        key, _, value = part.partition("=")
        found.setdefault(_unescaped(key), []).append(_unescaped(value))
    return found


def _unescaped(text: str) -> str:
    return unquote_to_bytes(text.replace("+", " ")).decode("utf-8", "replace")
