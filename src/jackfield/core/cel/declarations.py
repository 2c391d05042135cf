"""What a DRA expression may mention: variables, types and functions, as Kubernetes 1.36 declares them.

Knows signatures. Must not know what any function does. A member is written `Type::name(args) result`, a function
that is none `name(args) result`; single capital letters stand for any type.
"""

import re
from collections.abc import Mapping
from typing import Final

Json = Mapping[str, object]

_NAMES: Final = {
    "Quantity": "kubernetes.Quantity",
    "Semver": "kubernetes.Semver",
    "URL": "kubernetes.URL",
    "NamedFormat": "kubernetes.NamedFormat",
    "IP": "net.IP",
    "CIDR": "net.CIDR",
    "optional": "optional_type",
    "Authorizer": "kubernetes.authorization.Authorizer",
    "PathCheck": "kubernetes.authorization.PathCheck",
    "GroupCheck": "kubernetes.authorization.GroupCheck",
    "ResourceCheck": "kubernetes.authorization.ResourceCheck",
    "Decision": "kubernetes.authorization.Decision",
}

_QUANTITY: Final = """
quantity(string) Quantity
isQuantity(string) bool
sign(Quantity) int
Quantity::isGreaterThan(Quantity) bool
Quantity::isLessThan(Quantity) bool
Quantity::compareTo(Quantity) int
Quantity::add(Quantity) Quantity
Quantity::add(int) Quantity
Quantity::sub(Quantity) Quantity
Quantity::sub(int) Quantity
Quantity::asInteger() int
Quantity::isInteger() bool
Quantity::asApproximateFloat() double
"""

_SEMVER: Final = """
semver(string) Semver
semver(string, bool) Semver
isSemver(string) bool
isSemver(string, bool) bool
Semver::isGreaterThan(Semver) bool
Semver::isLessThan(Semver) bool
Semver::compareTo(Semver) int
Semver::major() int
Semver::minor() int
Semver::patch() int
"""

_SUMMABLE: Final = ("int", "uint", "double", "duration")
_COMPARABLE: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")

_LISTS: Final = "\n".join(
    [
        *(f"list({one})::sum() {one}" for one in _SUMMABLE),
        *(f"list({one})::{name}() {one}" for name in ("min", "max") for one in _COMPARABLE),
        *(f"list({one})::isSorted() bool" for one in _COMPARABLE),
        "list(A)::indexOf(A) int",
        "list(A)::lastIndexOf(A) int",
    ]
)

_REGEX: Final = """
string::find(string) string
string::findAll(string) list(string)
string::findAll(string, int) list(string)
"""

_NETWORK: Final = """
ip(string) IP
isIP(string) bool
ip.isCanonical(string) bool
IP::family() int
IP::isUnspecified() bool
IP::isLoopback() bool
IP::isLinkLocalMulticast() bool
IP::isLinkLocalUnicast() bool
IP::isGlobalUnicast() bool
cidr(string) CIDR
isCIDR(string) bool
CIDR::containsIP(string) bool
CIDR::containsIP(IP) bool
CIDR::containsCIDR(string) bool
CIDR::containsCIDR(CIDR) bool
CIDR::ip() IP
CIDR::prefixLength() int
CIDR::masked() CIDR
url(string) URL
isURL(string) bool
URL::getScheme() string
URL::getHost() string
URL::getHostname() string
URL::getPort() string
URL::getEscapedPath() string
URL::getQuery() map(string, list(string))
"""

FORMATS: Final = (
    "dns1123Label",
    "dns1123LabelPrefix",
    "dns1123Subdomain",
    "dns1123SubdomainPrefix",
    "dns1035Label",
    "dns1035LabelPrefix",
    "qualifiedName",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
)

_FORMAT: Final = "\n".join(
    [
        *(f"format.{name}() NamedFormat" for name in FORMATS),
        "format.named(string) optional(NamedFormat)",
        "NamedFormat::validate(string) optional(list(string))",
    ]
)

_STRINGS: Final = """
string::charAt(int) string
string::indexOf(string) int
string::indexOf(string, int) int
string::lastIndexOf(string) int
string::lastIndexOf(string, int) int
list(string)::join() string
list(string)::join(string) string
string::lowerAscii() string
string::upperAscii() string
string::replace(string, string) string
string::replace(string, string, int) string
string::split(string) list(string)
string::split(string, int) list(string)
string::substring(int) string
string::substring(int, int) string
string::trim() string
string::format(list(dyn)) string
strings.quote(string) string
"""

_MORE: Final = """
optional.unwrap(list(optional(V))) list(V)
list(optional(V))::unwrapOpt() list(V)
dyn::includes(dyn) bool
"""

# Nothing in DRA yields an authorizer, but Kubernetes declares these, so that `attribute.allowed()` passes its checker.
_AUTHORIZATION: Final = """
Authorizer::path(string) PathCheck
Authorizer::group(string) GroupCheck
Authorizer::serviceAccount(string, string) Authorizer
GroupCheck::resource(string) ResourceCheck
ResourceCheck::subresource(string) ResourceCheck
ResourceCheck::namespace(string) ResourceCheck
ResourceCheck::name(string) ResourceCheck
ResourceCheck::fieldSelector(string) ResourceCheck
ResourceCheck::labelSelector(string) ResourceCheck
PathCheck::check(string) Decision
ResourceCheck::check(string) Decision
Decision::allowed() bool
Decision::errored() bool
Decision::error() string
Decision::reason() string
"""

_ORDERED: Final = ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration")
_MIXED: Final = (
    ("int", "uint"),
    ("int", "double"),
    ("uint", "int"),
    ("uint", "double"),
    ("double", "int"),
    ("double", "uint"),
)
_REDECLARED: Final = ("_<_", "_<=_", "_>_", "_>=_", "string")
"""Standard functions that have more overloads here; a function cannot be added to, only declared again."""
_OPERATORS: Final = "\n".join(
    f"{operator}({left}, {right}) bool"
    for operator in _REDECLARED[:-1]
    for left, right in (*((one, one) for one in _ORDERED), *_MIXED)
)
_CONVERSIONS: Final = "\n".join(
    f"string({one}) string"
    for one in ("bool", "bytes", "double", "duration", "int", "string", "timestamp", "uint", "IP", "CIDR")
)

_LINE: Final = re.compile(r"(?:(?P<target>.+)::)?(?P<name>[\w.<>=]+)\((?P<args>.*?)\) (?P<result>.+)")


def config(*, lists: bool) -> Json:
    """Return the environment for cel-expr-python; with `lists`, attributes may hold lists."""
    value = "dyn" if lists else "any"
    return {
        "name": "dra",
        "stdlib": {"exclude_functions": [{"name": name} for name in _REDECLARED]},
        "extensions": [
            {"name": "bindings"},
            {"name": "optional", "version": 2},
            {"name": "two-var-comprehensions"},
            {"name": "sets"},
            {"name": "lists", "version": 2},
        ],
        "variables": [
            {"name": "device", "type_name": "kubernetes.DRADevice"},
            {"name": "device.attributes", **_type(f"map(string, map(string, {value}))")},
            {"name": "device.capacity", **_type("map(string, map(string, Quantity))")},
            {"name": "net.IP", "type_name": "type", "params": [_type("IP")]},
            {"name": "net.CIDR", "type_name": "type", "params": [_type("CIDR")]},
        ],
        "functions": _functions(),
    }


def _functions() -> list[Json]:
    tables = (_QUANTITY, _SEMVER, _LISTS, _REGEX, _NETWORK, _FORMAT, _STRINGS, _MORE, _AUTHORIZATION)
    functions: dict[str, list[Json]] = {}
    for line in "\n".join((*tables, _OPERATORS, _CONVERSIONS)).split("\n"):
        if not line:
            continue
        shape = _LINE.fullmatch(line)
        assert shape is not None, line
        overloads = functions.setdefault(shape["name"], [])
        overload: dict[str, object] = {
            "id": "_".join((shape["name"], *_names(shape["target"] or "", shape["args"]))),
            "args": [_type(one) for one in _split(shape["args"])],
            "return": _type(shape["result"]),
        }
        if shape["target"]:
            overload["target"] = _type(shape["target"])
        overloads.append(overload)
    return [{"name": name, "overloads": overloads} for name, overloads in functions.items()]


def _names(*types: str) -> list[str]:
    """Return the types of a signature as parts of its overload's name."""
    return [one.strip() for text in types for one in _split(text)]


def _type(text: str) -> dict[str, object]:
    name, _, rest = text.strip().partition("(")
    if len(name) == 1:
        return {"type_name": name, "is_type_param": True}
    found: dict[str, object] = {"type_name": _NAMES.get(name, name)}
    if rest:
        found["params"] = [_type(one) for one in _split(rest[:-1])]
    return found


def _split(text: str) -> list[str]:
    """Split at the commas that stand in no parentheses."""
    parts, depth = [""], 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part for part in parts if part.strip()]
