"""Random selectors and devices, over the whole library; the same seed, the same expressions.

Knows what may be written where, as a table from a type to its ways. Must not know any answer.
"""

import random
from collections.abc import Sequence

from jackfield.codec import Raw

DOMAINS = ("gpu.example.com", "other.example.com", "zz.example.com")
WRONG = 0.01
"""So many places get something of another type."""
BROKEN = 0.03
"""So many expressions lose or gain a character."""

# What has no parts. `{d}` is a domain.
LEAVES: dict[str, Sequence[str]] = {
    "bool": (
        "true",
        "false",
        "device.allowMultipleAllocations",
        "device.attributes['{d}'].healthy",
        "has(device.attributes['{d}'].model)",
        "'model' in device.attributes['{d}']",
        "'{d}' in device.attributes",
        "'{d}' in device.capacity",
        "has(device.capacity['{d}'].memory)",
        "device.attributes['{d}'][?'healthy'].orValue(false)",
    ),
    "int": (
        "0",
        "1",
        "-7",
        "42",
        "9223372036854775807",
        "0x1F",
        "size(device.attributes)",
        "size(device.capacity['{d}'])",
        "device.attributes['{d}'].?numa.orValue(3)",
    ),
    "uint": ("0u", "7u", "18446744073709551615u"),
    "double": ("0.0", "1.5", "-2.25", "1e300", "1e-7"),
    "string": (
        "''",
        "'A100'",
        "'héllo wörld'",
        '"a,b,c"',
        "r'\\d+'",
        "'10.1.2.3'",
        "'1.2.3-rc.1'",
        "'1Gi'",
        "'https://example.com:80/a?b=c'",
        "'2001:db8::1'",
        "'10.0.0.0/8'",
        "'\\u00e9\\n'",
        "'1h30m'",
        "'true'",
        "device.driver",
        "device.attributes['{d}'].?model.orValue('none')",
    ),
    "bytes": ("b'abc'", "b''", "b'\\xff'", "bytes('é')"),
    "duration": ("duration('1h')", "duration('-90s')", "duration('1.5s')"),
    "timestamp": ("timestamp('2024-02-29T12:30:45Z')", "timestamp('1970-01-01T00:00:00.5+02:00')"),
    "quantity": (
        "quantity('1Gi')",
        "quantity('1500m')",
        "quantity('-3')",
        "quantity('1e3')",
        "quantity('0.1')",
        "device.capacity['{d}'].memory",
        "device.capacity['{d}'].?cores.orValue(quantity('4'))",
    ),
    "semver": (
        "semver('1.2.3')",
        "semver('2.0.0-alpha.1+b')",
        "semver('v1.2', true)",
        "device.attributes['{d}'].?driverVersion.orValue(semver('0.1.0'))",
    ),
    "ip": ("ip('10.1.2.3')", "ip('2001:db8::1')", "ip('0.0.0.0')"),
    "cidr": ("cidr('10.0.0.0/8')", "cidr('2001:db8::/32')", "cidr('10.1.2.3/16')"),
    "url": ("url('https://user@example.com:8080/a%20b/c?x=1&x=2#f')", "url('http://[::1]/')", "url('/path')"),
    "any": (
        "device.attributes['{d}'].model",
        "device.attributes['{d}'].numa",
        "device.attributes['{d}'].healthy",
        "device.attributes['{d}'].driverVersion",
        "device.attributes['{d}'].nowhere",
    ),
    "strings": ("['a', 'b', 'A100']", "['x']", "'a,b,c'.split(',')", "'a1b22'.findAll('[0-9]+')"),
    "ints": ("[1, 2, 3]", "[5]", "[3, 1, 2, 1]", "lists.range(4)"),
    "bools": ("[true, false]", "[true]"),
    "map": ("{'a': 1, 'b': 2}", "{'x': 0}"),
}

# What has parts, by the type it gives; a word in braces is a part of that type.
WAYS: dict[str, Sequence[str]] = {
    "bool": (
        "{bool} && {bool}",
        "{bool} || {bool}",
        "!({bool})",
        "({bool} ? {bool} : {bool})",
        "{int} == {int}",
        "{int} < {int}",
        "{int} >= {double}",
        "{uint} != {uint}",
        "{double} > {double}",
        "{uint} < {int}",
        "{string} == {string}",
        "{string} < {string}",
        "{string}.contains({string})",
        "{string}.startsWith({string})",
        "{string}.endsWith({string})",
        "{string}.matches('[a-z]+[0-9]*')",
        "{string} in {strings}",
        "{int} in {ints}",
        "{any} == {string}",
        "{any} == {int}",
        "{any} == {any}",
        "{any} in {strings}",
        "{any} != {bool}",
        "{bytes} == {bytes}",
        "{duration} > {duration}",
        "{timestamp} <= {timestamp}",
        "{strings} == {strings}",
        "{map} == {map}",
        "'a' in {map}",
        "has({map}.a)",
        "{quantity}.isGreaterThan({quantity})",
        "{quantity}.isLessThan({quantity})",
        "{quantity} == {quantity}",
        "{quantity}.isInteger()",
        "isQuantity({string})",
        "{semver}.isGreaterThan({semver})",
        "{semver}.isLessThan({semver})",
        "{semver} == {semver}",
        "isSemver({string})",
        "isSemver({string}, true)",
        "isIP({string})",
        "isCIDR({string})",
        "isURL({string})",
        "ip.isCanonical({string})",
        "{ip} == {ip}",
        "{ip}.isLoopback()",
        "{ip}.isUnspecified()",
        "{ip}.isGlobalUnicast()",
        "{ip}.isLinkLocalUnicast()",
        "{ip}.isLinkLocalMulticast()",
        "{cidr}.containsIP({ip})",
        "{cidr}.containsIP({string})",
        "{cidr}.containsCIDR({cidr})",
        "{cidr} == {cidr}",
        "{ints}.all(x, x > {int})",
        "{ints}.exists(x, x == {int})",
        "{ints}.exists_one(x, x < {int})",
        "{strings}.exists(s, s == {string})",
        "{strings}.all(i, v, i < 2 || v != '')",
        "{map}.exists(k, v, v == {int})",
        "{ints}.existsOne(i, v, i == v)",
        "device.attributes['{d}'].exists(k, k == {string})",
        "device.attributes.all(k, k != {string})",
        "{ints}.isSorted()",
        "{strings}.isSorted()",
        "sets.contains({ints}, {ints})",
        "sets.equivalent({strings}, {strings})",
        "sets.intersects({ints}, {ints})",
        "cel.bind(x, {int}, x + 1 > {int})",
        "format.dns1123Label().validate({string}).hasValue()",
        "format.named('uuid').hasValue()",
        "!format.qualifiedName().validate({string}).hasValue()",
        "optional.of({int}).hasValue()",
        "optional.ofNonZeroValue({string}).hasValue()",
        "type({int}) == int",
        "bool({string})",
    ),
    "int": (
        "{int} + {int}",
        "{int} - {int}",
        "{int} * {int}",
        "{int} / {int}",
        "{int} % {int}",
        "-({int})",
        "({bool} ? {int} : {int})",
        "size({string})",
        "size({strings})",
        "{string}.size()",
        "size({bytes})",
        "int({uint})",
        "int({double})",
        "int({string})",
        "int({timestamp})",
        "{ints}[{int}]",
        "{ints}[0]",
        "{map}['a']",
        "{map}.?b.orValue({int})",
        "{ints}[?{int}].orValue(9)",
        "{string}.indexOf({string})",
        "{string}.lastIndexOf({string})",
        "{string}.indexOf({string}, 1)",
        "{ints}.sum()",
        "{ints}.min()",
        "{ints}.max()",
        "{ints}.indexOf({int})",
        "{strings}.lastIndexOf({string})",
        "{quantity}.compareTo({quantity})",
        "{quantity}.asInteger()",
        "sign({quantity})",
        "{semver}.major()",
        "{semver}.minor()",
        "{semver}.patch()",
        "{semver}.compareTo({semver})",
        "{ip}.family()",
        "{cidr}.prefixLength()",
        "{timestamp}.getFullYear()",
        "{timestamp}.getDayOfWeek('Asia/Tokyo')",
        "{duration}.getSeconds()",
        "{duration}.getMilliseconds()",
        "{timestamp}.getHours()",
        "{ints}.map(x, x * {int})[0]",
        "{ints}.filter(x, x > {int}).size()",
        "cel.bind(y, {int}, y * y)",
        "optional.of({int}).orValue({int})",
        "optional.none().orValue({int})",
        "{ints}.transformList(i, v, i + v).size()",
        "{map}.transformMap(k, v, v + 1).size()",
    ),
    "uint": ("{uint} + {uint}", "{uint} * 2u", "uint({int})", "uint({string})", "{uint} / {uint}"),
    "double": (
        "{double} + {double}",
        "{double} / {double}",
        "double({int})",
        "double({string})",
        "{quantity}.asApproximateFloat()",
        "-{double}",
    ),
    "string": (
        "{string} + {string}",
        "({bool} ? {string} : {string})",
        "string({int})",
        "string({double})",
        "string({bool})",
        "string({bytes})",
        "string({duration})",
        "string({timestamp})",
        "string({uint})",
        "string({ip})",
        "{string}.lowerAscii()",
        "{string}.upperAscii()",
        "{string}.trim()",
        "{string}.replace({string}, {string})",
        "{string}.replace('a', {string}, 1)",
        "{string}.substring({int})",
        "{string}.substring(0, {int})",
        "{string}.charAt({int})",
        "{string}.find('[0-9]+')",
        "{strings}.join({string})",
        "{strings}.join()",
        "{strings}[{int}]",
        "{strings}.max()",
        "{url}.getHost()",
        "{url}.getScheme()",
        "{url}.getPort()",
        "{url}.getEscapedPath()",
        "{url}.getHostname()",
        "'%s-%d'.format([{string}, {int}])",
        "'%.2f %x'.format([{double}, {int}])",
        "strings.quote({string})",
    ),
    "bytes": ("bytes({string})", "{bytes} + {bytes}"),
    "duration": ("{duration} + {duration}", "{timestamp} - {timestamp}", "duration({string})"),
    "timestamp": ("{timestamp} + {duration}", "{timestamp} - {duration}", "timestamp({int})"),
    "quantity": (
        "{quantity}.add({quantity})",
        "{quantity}.sub({quantity})",
        "{quantity}.add({int})",
        "{quantity}.sub(20)",
        "quantity({string})",
    ),
    "semver": ("semver({string})", "semver({string}, true)"),
    "ip": ("ip({string})", "{cidr}.ip()"),
    "cidr": ("cidr({string})", "{cidr}.masked()"),
    "url": ("url({string})",),
    "any": ("({bool} ? {any} : {any})", "device.attributes['{d}'][{string}]"),
    "strings": (
        "{strings} + {strings}",
        "{strings}.filter(s, s != {string})",
        "{ints}.map(x, string(x))",
        "{string}.split({string})",
        "{strings}.sort()",
        "{strings}.reverse()",
        "{strings}.distinct()",
        "{strings}.slice(0, {int})",
        "{string}.findAll('[a-z]', 2)",
        "{url}.getQuery()['x']",
        "[{string}, {string}]",
    ),
    "ints": (
        "{ints} + {ints}",
        "{ints}.map(x, x + {int})",
        "{ints}.filter(x, x != {int})",
        "{ints}.sortBy(x, -x)",
        "[{int}, {int}]",
        "{ints}.distinct()",
        "{ints}.reverse()",
        "[{ints}, {ints}].flatten()",
        "{ints}.map(x, x > 1, x * 2)",
    ),
    "bools": ("[{bool}, {bool}]", "{ints}.map(x, x > {int})"),
    "map": ("{'a': {int}, 'b': {int}}", "{map}.transformMap(k, v, v + {int})"),
}
TYPES = tuple(LEAVES)

_ATTRIBUTES: dict[str, Sequence[Raw]] = {
    "model": ({"string": "A100"}, {"string": "héllo wörld"}, {"string": ""}, {"int": 5}),
    "numa": ({"int": 0}, {"int": -7}, {"int": 9223372036854775807}, {"string": "1"}),
    "healthy": ({"bool": True}, {"bool": False}, {"string": "true"}),
    "driverVersion": ({"version": "1.2.3"}, {"version": "2.0.0-rc.1+b5"}, {"version": "0.9.10"}),
}
_LISTS: Sequence[Raw] = (
    {"strings": ["A100", "H100"]},
    {"ints": [1, 2]},
    {"bools": [True]},
    {"versions": ["1.0.0"]},
)
_CAPACITY = {"memory": ("80Gi", "1500m", "0", "100E", "3"), "cores": ("4", "1e3", "0.1")}


class Expressions:
    """Draws one case after the other."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def case(self, number: int) -> Raw:
        """Return the case of that number, whatever was drawn before."""
        chance = random.Random(f"{self._seed}/expression/{number}")  # noqa: S311 - chance in tests is not cryptography
        lists = chance.random() < 0.2
        expression = _Writer(chance).text("any" if chance.random() < 0.03 else "bool", chance.randint(1, 4))
        if chance.random() < BROKEN:
            expression = _broken(chance, expression)
        case: Raw = {"name": f"{self._seed}-{number}", "expression": expression, "driver": "gpu.example.com"}
        case["attributes"] = _attributes(chance, lists=lists)
        case["capacity"] = _capacities(chance)
        case |= {"lists": True} if lists else {}
        return case | ({"allowMultipleAllocations": True} if chance.random() < 0.3 else {})


class _Writer:
    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def text(self, kind: str, depth: int) -> str:
        """Return an expression of the type, nested no deeper than that."""
        if self._chance.random() < WRONG:
            kind = self._chance.choice(TYPES)
        if depth <= 0 or kind not in WAYS or self._chance.random() < 0.15:
            return self._chance.choice(LEAVES[kind]).replace("{d}", self._domain())
        return self._filled(self._chance.choice(WAYS[kind]), depth - 1)

    def _filled(self, way: str, depth: int) -> str:
        """Put something into each place of a way, from left to right."""
        before, found, rest = way.partition("{")
        if not found:
            return way
        kind, _, after = rest.partition("}")
        if kind == "d":
            part = self._domain()
        elif kind in LEAVES:
            part = self.text(kind, depth)
            # Only what an operator could tear apart needs parentheses.
            part = f"({part})" if " " in part and not part.startswith(("(", "[", "{")) else part
        else:
            return before + found + self._filled(rest, depth)
        return before + part + self._filled(after, depth)

    def _domain(self) -> str:
        return self._chance.choices(DOMAINS, (6, 2, 1))[0]


def _broken(chance: random.Random, text: str) -> str:
    position = chance.randrange(len(text))
    return text[:position] + chance.choice(("", "(", "'", "?", "x", ".", "#")) + text[position + 1 :]


def _attributes(chance: random.Random, *, lists: bool) -> Raw:
    attributes: Raw = {}
    for name, values in _ATTRIBUTES.items():
        if chance.random() < 0.8:
            attributes[name] = chance.choice(values)
        if chance.random() < 0.3:
            attributes[f"other.example.com/{name}"] = chance.choice(values)
    if chance.random() < (0.5 if lists else 0.01):
        attributes["model"] = chance.choice(_LISTS)
    return attributes


def _capacities(chance: random.Random) -> Raw:
    return {
        f"{prefix}{name}": {"value": chance.choice(values)}
        for name, values in _CAPACITY.items()
        for prefix in ("", "other.example.com/")
        if chance.random() < 0.6
    }
