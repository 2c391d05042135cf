"""What a DRA expression may mention: variables, types and functions, as Kubernetes 1.36 declares them.

Knows signatures. Must not know what any function does. A member is written `Type::name(args) result`, a function
that is none `name(args) result`; single capital letters stand for any type. Where somebody looks at the name of an
overload, it stands before the signature. The order is Kubernetes' own, since the first overload that fits decides.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import msgspec

from jackfield.core.cel.syntax import Type

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

_ORDERED: Final = (
    *(("bool", "bool"), ("int", "int"), ("int", "double"), ("int", "uint")),
    *(("uint", "uint"), ("uint", "double"), ("uint", "int")),
    *(("double", "double"), ("double", "int"), ("double", "uint")),
    *(("string", "string"), ("bytes", "bytes"), ("timestamp", "timestamp"), ("duration", "duration")),
)
_OPERATORS: Final = """
!_(bool) bool
-_(double) double
-_(int) int
in_list: @in(A, list(A)) bool
in_map: @in(A, map(A, B)) bool
@not_strictly_false(bool) bool
_&&_(bool, bool) bool
_||_(bool, bool) bool
_?_:_(bool, A, A) A
_==_(A, A) bool
_!=_(A, A) bool
_%_(int, int) int
_%_(uint, uint) uint
_*_(double, double) double
_*_(int, int) int
_*_(uint, uint) uint
add_bytes: _+_(bytes, bytes) bytes
_+_(double, double) double
_+_(duration, duration) duration
_+_(duration, timestamp) timestamp
_+_(timestamp, duration) timestamp
_+_(int, int) int
add_list: _+_(list(A), list(A)) list(A)
add_string: _+_(string, string) string
_+_(uint, uint) uint
_-_(double, double) double
_-_(duration, duration) duration
_-_(int, int) int
_-_(timestamp, duration) timestamp
_-_(timestamp, timestamp) duration
_-_(uint, uint) uint
_/_(double, double) double
_/_(int, int) int
_/_(uint, uint) uint
index_list: _[_](list(A), int) A
index_map: _[_](map(A, B), A) B
_[_](optional(list(V)), int) optional(V)
_[_](optional(map(K, V)), K) optional(V)
_[?_](list(V), int) optional(V)
_[?_](optional(list(V)), int) optional(V)
_[?_](map(K, V), K) optional(V)
_[?_](optional(map(K, V)), K) optional(V)
""" + "\n".join(
    f"{operator}({left}, {right}) bool"
    for operator in ("_<_", "_<=_", "_>_", "_>=_")
    for left, right in _ORDERED
)

_STANDARD: Final = """
bool(bool) bool
bool(string) bool
bytes(bytes) bytes
bytes(string) bytes
double(double) double
double(int) double
double(string) double
double(uint) double
duration(duration) duration
duration(int) duration
duration(string) duration
dyn(A) dyn
int(int) int
int(double) int
int(duration) int
int(string) int
int(timestamp) int
int(uint) int
string(string) string
string(bool) string
string(bytes) string
string(double) string
string(duration) string
string(int) string
string(timestamp) string
string(uint) string
string(IP) string
string(CIDR) string
timestamp(timestamp) timestamp
timestamp(int) timestamp
timestamp(string) timestamp
type(A) type(A)
uint(uint) uint
uint(double) uint
uint(int) uint
uint(string) uint
size(bytes) int
bytes::size() int
size(list(A)) int
list(A)::size() int
size(map(A, B)) int
map(A, B)::size() int
size(string) int
string::size() int
string::contains(string) bool
string::endsWith(string) bool
string::startsWith(string) bool
matches(string, string) bool
string::matches(string) bool
timestamp::getHours() int
timestamp::getHours(string) int
duration::getHours() int
timestamp::getMinutes() int
timestamp::getMinutes(string) int
duration::getMinutes() int
timestamp::getSeconds() int
timestamp::getSeconds(string) int
duration::getSeconds() int
timestamp::getMilliseconds() int
timestamp::getMilliseconds(string) int
duration::getMilliseconds() int
""" + "\n".join(
    f"timestamp::{name}({zone}) int"
    for name in ("getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear", "getMonth")
    for zone in ("", "string")
)

_OPTIONALS: Final = """
optional.of(V) optional(V)
optional.ofNonZeroValue(V) optional(V)
optional.none() optional(V)
optional(V)::value() V
optional(V)::hasValue() bool
optional(V)::or(optional(V)) optional(V)
optional(V)::orValue(V) V
list(V)::first() optional(V)
list(V)::last() optional(V)
optional.unwrap(list(optional(V))) list(V)
list(optional(V))::unwrapOpt() list(V)
"""

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

_SORTED: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_COLLECTIONS: Final = "\n".join(
    [
        "list(list(T))::flatten() list(T)",
        "list(dyn)::flatten(int) list(dyn)",
        "list(T)::distinct() list(T)",
        "list(T)::reverse() list(T)",
        "list(T)::slice(int, int) list(T)",
        "lists.range(int) list(int)",
        *(f"list({one})::sort() list({one})" for one in _SORTED),
        *(f"list(T)::@sortByAssociatedKeys(list({one})) list(T)" for one in _SORTED),
        "sets.contains(list(T), list(T)) bool",
        "sets.equivalent(list(T), list(T)) bool",
        "sets.intersects(list(T), list(T)) bool",
        "cel.@mapInsert(map(K, V), K, V) map(K, V)",
        "cel.@mapInsert(map(K, V), map(K, V)) map(K, V)",
        "dyn::includes(dyn) bool",
    ]
)

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

_LINE: Final = re.compile(
    r"(?:(?P<id>\w+): )?(?:(?P<target>[^:]+|\S+\))::)?(?P<name>[^(:]+|_\?_:_)\((?P<args>.*)\) (?P<result>\S.*)"
)


class Overload(msgspec.Struct, frozen=True):
    """One signature of a function; the target of a member is its first argument."""

    id: str
    member: bool
    args: tuple[Type, ...]
    result: Type
    params: tuple[str, ...]
    """The type parameters in it, which stand for any type."""


Functions = Mapping[str, tuple[Overload, ...]]


@lru_cache(maxsize=1)
def functions() -> Functions:
    """Return all functions there are, by name."""
    tables = (
        *(_OPERATORS, _STANDARD, _OPTIONALS, _QUANTITY, _SEMVER, _LISTS, _REGEX, _NETWORK, _FORMAT, _STRINGS),
        *(_COLLECTIONS, _AUTHORIZATION),
    )
    found: dict[str, list[Overload]] = {}
    for line in "\n".join(tables).split("\n"):
        if line:
            name, overload = _overload(line)
            found.setdefault(name, []).append(overload)
    return {name: tuple(overloads) for name, overloads in found.items()}


def _overload(line: str) -> tuple[str, Overload]:
    shape = _LINE.fullmatch(line)
    assert shape is not None, line
    target, name = shape["target"], shape["name"]
    texts = [*([target] if target else []), *_split(shape["args"])]
    args, result = tuple(map(type_of, texts)), type_of(shape["result"])
    params: dict[str, None] = {}
    for one in (*args, result):
        _gather(one, params)
    made = Overload(shape["id"] or "_".join((name, *texts)), bool(target), args, result, tuple(params))
    return name, made


def _gather(one: Type, params: dict[str, None]) -> None:
    if one.name.startswith("~"):
        params[one.name] = None
    for inner in one.params:
        _gather(inner, params)


def type_of(text: str) -> Type:
    """Return the type that a signature names."""
    name, _, rest = text.strip().partition("(")
    if len(name) == 1:
        return Type(f"~{name}")
    return Type(_NAMES.get(name, name), tuple(map(type_of, _split(rest[:-1]))))


def _split(text: str) -> list[str]:
    """Split at the commas that stand in no parentheses."""
    parts, depth = [""], 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [one.strip() for one in parts if one.strip()]


# --- names

DEVICE: Final = "kubernetes.DRADevice"
_PROTOBUF: Final = "google.protobuf."
_WRAPPERS: Final = {
    "BoolValue": "bool",
    "BytesValue": "bytes",
    "DoubleValue": "double",
    "FloatValue": "double",
    "Int32Value": "int",
    "Int64Value": "int",
    "UInt32Value": "uint",
    "UInt64Value": "uint",
    "StringValue": "string",
}
_MESSAGES: Final = {
    f"{_PROTOBUF}{name}": type_of(text)
    for name, text in (
        *((name, f"wrapper({one})") for name, one in _WRAPPERS.items()),
        *(("Any", "any"), ("Value", "dyn"), ("ListValue", "list(dyn)"), ("Struct", "map(string, dyn)")),
    )
}
TYPES: Final = {
    **{
        name: Type(name) for name in ("bool", "bytes", "double", "int", "null_type", "string", "type", "uint")
    },
    "list": type_of("list(A)"),
    "map": type_of("map(A, B)"),
    "optional_type": Type("optional_type"),
    "net.IP": Type("net.IP"),
    "net.CIDR": Type("net.CIDR"),
    f"{_PROTOBUF}Duration": Type("duration"),
    f"{_PROTOBUF}Timestamp": Type("timestamp"),
    f"{_PROTOBUF}Empty": Type(f"{_PROTOBUF}Empty"),
}
"""Types that can be named in an expression, and be compared with the type of a value."""
UNDEFINED: Final = {
    "duration": Type("duration"),
    "timestamp": Type("timestamp"),
    DEVICE: Type(DEVICE),
    **_MESSAGES,
}
"""Types whose names pass the checker, but stand for no value."""
NULL_VALUE: Final = f"{_PROTOBUF}NullValue.NULL_VALUE"

Variables = Mapping[str, Type]


@lru_cache(maxsize=1)
def variables() -> Variables:
    """Return the types of all names that an expression may mention outside of its own loops."""
    named = {name: Type("type", (one,)) for name, one in (*TYPES.items(), *UNDEFINED.items())}
    return {"device": Type(DEVICE), NULL_VALUE: Type("int"), **named}


_DEVICE_FIELDS: Final = {
    "driver": "string",
    "allowMultipleAllocations": "bool",
    "capacity": "map(string, map(string, Quantity))",
}
_FIELDS: Final = {
    "Any": {"type_url": "string", "value": "bytes"},
    "Duration": {"seconds": "int", "nanos": "int"},
    "Timestamp": {"seconds": "int", "nanos": "int"},
    "Empty": {},
    "ListValue": {"values": "list(dyn)"},
    "Struct": {"fields": "map(string, dyn)"},
    "Value": {
        "null_value": "int",
        "number_value": "double",
        "string_value": "string",
        "bool_value": "bool",
        "struct_value": "map(string, dyn)",
        "list_value": "list(dyn)",
    },
    **{name: {"value": one} for name, one in _WRAPPERS.items()},
}

Fields = Mapping[str, Mapping[str, Type]]


@lru_cache(maxsize=2)
def fields(*, lists: bool) -> Fields:
    """Return the fields of all messages; with `lists`, attributes may hold lists."""
    value = "dyn" if lists else "any"
    device = {**_DEVICE_FIELDS, "attributes": f"map(string, map(string, {value}))"}
    texts = {DEVICE: device, **{f"{_PROTOBUF}{name}": one for name, one in _FIELDS.items()}}
    return {name: {field: type_of(text) for field, text in one.items()} for name, one in texts.items()}
