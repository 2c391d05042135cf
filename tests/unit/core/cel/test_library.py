"""Functions answer as Kubernetes' do, at the edges too."""

import pytest

from jackfield.core import cel
from jackfield.model.device import Device

SUBJECT = cel.subject("gpu.example.com", Device("gpu-0"))

TRUE = {
    "strings": """
        'hello'.charAt(5) == ''
        'héllo'.indexOf('l') == 2
        'abcabc'.lastIndexOf('b') == 4
        'abcabc'.indexOf('c', 3) == 5
        'abc'.indexOf('') == 0
        'abc'.lastIndexOf('') == 3
        'abcabc'.lastIndexOf('b', 3) == 1
        ''.lastIndexOf('x') == -1
        'Ä B'.lowerAscii() == 'Ä b'
        'äb'.upperAscii() == 'äB'
        ' a\\t\\u00a0'.trim() == 'a'
        'aaa'.replace('a', 'b', 2) == 'bba'
        'ab'.replace('', '-') == '-a-b-'
        'aa'.replace('a', '', -1) == ''
        'a,b,c'.split(',', 2) == ['a', 'b,c']
        'abc'.split('', 2) == ['a', 'bc']
        'a,b'.split(',', 0) == []
        'a'.split('', 3) == ['a']
        'a,b'.split(',') == ['a', 'b']
        'ab'.split('', -1) == ['a', 'b']
        'hello'.substring(1, 3) == 'el'
        'hello'.substring(5) == ''
        ['a', 'b'].join() == 'ab'
        ['a', 'b'].join('-') == 'a-b'
        strings.quote('a"b\\n') == '"a\\\\"b\\\\n"'
        'abc'.contains('b')
        'abc'.endsWith('c')
        'abc'.startsWith('')
        size('héllo') == 5
        'ab12'.find('[0-9]+') == '12'
        'x'.find('[0-9]') == ''
        'a1b2'.findAll('[0-9]', 1) == ['1']
        'a1b2'.findAll('[0-9]') == ['1', '2']
        'ab'.matches('^a')
        !matches('ab', '^b')
    """,
    "numbers": """
        7 / -2 == -3
        -7 % 3 == -1
        7u / 2u == 3u
        5u % 3u == 2u
        2 * 3 - 1 == 5
        2u * 3u - 1u == 5u
        1.0 / 0.0 > 1e308
        -1.0 / 0.0 < 0.0
        0.0 / 0.0 != 0.0 / 0.0
        1.5 * 2.0 - 0.5 == 2.5
        dyn(1) == 1.0
        dyn(1) == 1u
        1 < 2u
        2.5 > 2
        1u <= 1.0
        -(1) == -1
        -(1.5) == -1.5
        int('-12') == -12
        int(2.9) == 2
        int(3u) == 3
        uint(3) == 3u
        uint('4') == 4u
        uint(2.5) == 2u
        double('1e3') == 1000.0
        double(2u) == 2.0
        bool('t')
        !bool('False')
        bytes('é') == b'\\303\\251'
        string(1.0) == '1'
        string(100000000.0) == '1e+08'
        string(0.00001) == '1e-05'
        string(1.5e-3) == '0.0015'
        string(true) == 'true'
        string(b'abc') == 'abc'
        string(-7) == '-7'
        string(7u) == '7'
        type(1) == int
        type('') == string
        type([]) == list
        type(dyn(1u)) == uint
        type(type(1)) == type
    """,
    "lists and maps": """
        [1, 2, 3].sum() == 6
        [1.5, 2.0].sum() == 3.5
        [duration('1s'), duration('2s')].sum() == duration('3s')
        [3, 1, 2].min() == 1
        ['b', 'a'].max() == 'b'
        [1, 1, 2].isSorted()
        ![2, 1].isSorted()
        [1, 2, 1].indexOf(1) == 0
        [1, 2, 1].lastIndexOf(1) == 2
        [1].indexOf(3) == -1
        lists.range(3) == [0, 1, 2]
        lists.range(-1) == []
        [1, 2, 3].reverse() == [3, 2, 1]
        [1, 2, 3].slice(1, 3) == [2, 3]
        [[1], [2, 3]].flatten() == [1, 2, 3]
        [[[1]]].flatten(2) == [1]
        [1, 2, 1, 2].distinct() == [1, 2]
        [3, 1, 2].sort() == [1, 2, 3]
        ['aa', 'b'].sortBy(x, x.size()) == ['b', 'aa']
        [1, 2].first().value() == 1
        [1, 2].last().value() == 2
        !([1].filter(x, x > 1).first().hasValue())
        sets.contains([1, 2], [2])
        sets.intersects([1, 2], [2, 3])
        sets.equivalent([1, 2, 2], [2, 1])
        {'a': 1, 'b': 2}.size() == 2
        {'a': 1}['a'] == 1
        {1: 'x'}[dyn(1u)] == 'x'
        'a' in {'a': 1}
        {'a': 1, 'b': 2} == {'b': 2, 'a': 1}
        {'a': 1} != {'a': 2}
        {true: 1}[true] == 1
        !(dyn(1) in {true: 1})
        {'a': 1}.transformMap(k, v, v + 1) == {'a': 2}
        {'a': 1}.transformMapEntry(k, v, {v: k}) == {1: 'a'}
        [1, 2].transformList(i, v, v > 1, i) == [1]
        [1, 2].exists(i, v, i == 0 && v == 1)
        [1, 2].all(i, v, v == i + 1)
        [1, 2, 3].map(x, x > 1, x * 2) == [4, 6]
        [1, 2, 3].filter(x, x != 2) == [1, 3]
        [1, 2].exists_one(x, x == 1)
        [1, 2].includes(2)
        dyn('a').includes('a')
        2 in [1, 2]
        !(3 in [1, 2])
        !(1 in [])
    """,
    "optionals": """
        optional.of(1).value() == 1
        !optional.none().hasValue()
        !optional.ofNonZeroValue(0).hasValue()
        optional.of(1).or(optional.of(2)).value() == 1
        optional.none().or(optional.of(2)).value() == 2
        optional.of(1).optMap(x, x + 1).value() == 2
        optional.of([1]).optFlatMap(x, x.first()).value() == 1
        [?optional.of(1), ?optional.none()] == [1]
        {?'a': optional.of(1), ?'b': optional.none()} == {'a': 1}
        optional.unwrap([optional.of(1), optional.none()]) == [1]
        [optional.of(2)].unwrapOpt() == [2]
        optional.of({'a': {'b': 1}}).?a.?b.value() == 1
        [1, 2][?1].value() == 2
        ![1][?1].hasValue()
        optional.of(1) == optional.of(1)
        optional.none() == optional.none()
        optional.of(1) != optional.of(2)
    """,
    "quantities and versions": """
        quantity('1Gi').add(quantity('1Gi')) == quantity('2Gi')
        quantity('3').sub(1) == quantity('2')
        quantity('1k').asInteger() == 1000
        !quantity('1.5').isInteger()
        quantity('1500m').asApproximateFloat() == 1.5
        sign(quantity('-1')) == -1
        isQuantity('1Gi')
        !isQuantity('1gib')
        quantity('1').compareTo(quantity('2')) == -1
        semver('1.2.3').minor() == 2
        semver('1.2.3').patch() == 3
        semver('v1.2', true) == semver('1.2.0')
        isSemver('1.2.3-rc.1+b')
        !isSemver('1.2')
        isSemver('v01.2', true)
        !isSemver('1.2-rc', true)
        semver('1.0.0-alpha').isLessThan(semver('1.0.0-alpha.1'))
        semver('1.0.0-2').isLessThan(semver('1.0.0-10'))
        semver('1.0.0-9').isLessThan(semver('1.0.0-a'))
        semver('1.0.0+a').compareTo(semver('1.0.0+b')) == 0
    """,
    "addresses": """
        ip('10.0.0.1').family() == 4
        ip('::1').isLoopback()
        ip('fe80::1').isLinkLocalUnicast()
        isIP('::')
        ip('0.0.0.0').isUnspecified()
        ip('224.0.0.5').isLinkLocalMulticast()
        ip('10.0.0.1').isGlobalUnicast()
        !isIP('1.2.3')
        !isIP('::ffff:1.2.3.4')
        !isIP('fe80::1%eth0')
        !isIP('01.2.3.4')
        !ip.isCanonical('::0')
        cidr('10.0.0.0/8').containsIP('10.1.2.3')
        cidr('10.0.0.0/8').containsIP(ip('10.1.2.3'))
        !isCIDR('10.0.0.0')
        cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')
        !cidr('10.0.0.0/8').containsCIDR(cidr('0.0.0.0/0'))
        cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8')
        cidr('10.1.2.3/8').prefixLength() == 8
        cidr('10.1.2.3/8').ip() == ip('10.1.2.3')
        string(cidr('::/0')) == '::/0'
        string(ip('::1')) == '::1'
        url('https://u@h.example:8080/a%20b?q=1&q=2#f').getHost() == 'h.example:8080'
        isURL('/path')
        !isURL('path')
        url('https://h:80/a b').getEscapedPath() == '/a%20b'
        url('https://[::1]:80/').getHostname() == '::1'
        url('https://h:80/?a=b&a=c').getQuery() == {'a': ['b', 'c']}
        url('https://h:80').getPort() == '80'
        url('HTTPS://h').getScheme() == 'https'
        !isURL('')
        !isURL('https://h:x/')
        !isURL('https://h/%zz')
    """,
    "formats": """
        !format.dns1123Label().validate('abc').hasValue()
        format.dns1123Label().validate('Abc').hasValue()
        !format.dns1123LabelPrefix().validate('abc-').hasValue()
        format.dns1123Label().validate('abc-').hasValue()
        !format.dns1123Subdomain().validate('a.b').hasValue()
        !format.dns1035Label().validate('a1').hasValue()
        !format.qualifiedName().validate('a.b/c').hasValue()
        format.qualifiedName().validate('/c').hasValue()
        !format.labelValue().validate('').hasValue()
        format.labelValue().validate('a b').hasValue()
        !format.uuid().validate('123e4567-e89b-12d3-a456-426614174000').hasValue()
        format.uuid().validate('x').hasValue()
        !format.byte().validate('aGk=').hasValue()
        !format.date().validate('2021-01-01').hasValue()
        format.date().validate('2021-13-01').hasValue()
        !format.datetime().validate('2021-01-01T00:00:00Z').hasValue()
        !format.uri().validate('https://a').hasValue()
        format.named('date').hasValue()
        !format.named('x').hasValue()
        '%s %d %x %X %o %b'.format(['a', 7, 255, 'hi', 8, 5]) == 'a 7 ff 6869 10 101'
        '%s%%'.format([1.5]) == '1.5%'
        '%.2f'.format([1234.5]) == '1,234.50'
        '%s'.format([['a', 1.5, null]]) == '["a", 1.500000, null]'
        '%s'.format([{'b': 1, 'a': true}]) == '{"a":true, "b":1}'
        '%e'.format([1234.5]) == '1.234500\u00d710\u2070\u00b3'
        '%s %s'.format([duration('90s'), timestamp('2020-01-01T00:00:00Z')]) == '90s 2020-01-01T00:00:00Z'
    """,
    "times": """
        duration('1h30m') == duration('90m')
        duration('1.5s').getMilliseconds() == 1500
        string(duration('-1.5s')) == '-1.5s'
        duration('1h') + duration('1s') > duration('1h')
        duration('90m').getHours() == 1
        duration('0') == duration('0s')
        timestamp('2024-02-29T12:34:56.789Z').getFullYear() == 2024
        timestamp('2024-02-29T12:34:56Z').getMonth() == 1
        timestamp('2024-02-29T12:34:56Z').getDate() == 29
        timestamp('2024-02-29T12:34:56Z').getDayOfMonth() == 28
        timestamp('2024-02-29T12:34:56Z').getDayOfWeek() == 4
        timestamp('2024-02-29T12:34:56Z').getDayOfYear() == 59
        timestamp('2024-02-29T12:34:56Z').getHours('+02:00') == 14
        timestamp('2024-02-29T12:34:56Z').getMinutes() == 34
        timestamp('2024-01-01T00:00:00+01:00') == timestamp('2023-12-31T23:00:00Z')
        int(timestamp(5)) == 5
        timestamp('2024-01-01T00:00:01Z') - timestamp('2024-01-01T00:00:00Z') == duration('1s')
        timestamp('2024-01-01T00:00:00Z') + duration('1ns') > timestamp('2024-01-01T00:00:00Z')
        string(timestamp('2024-01-01T00:00:00.5Z') - duration('1s')) == '2023-12-31T23:59:59.5Z'
    """,
}


def sentences() -> list[tuple[str, str]]:
    return [(topic, line.strip()) for topic, lines in TRUE.items() for line in lines.strip().split("\n")]


@pytest.mark.parametrize(("topic", "expression"), sentences())
def test_this_is_so(topic: str, expression: str) -> None:
    assert cel.compile(expression).matches(SUBJECT), topic


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("'abc'.charAt(4) == ''", "index out of range: 4"),
        ("'abc'.substring(2, 1) == ''", "invalid substring range. start: 2, end: 1"),
        ("'abc'.substring(0, 4) == ''", "index out of range: 4"),
        ("'abc'.indexOf('a', -1) == 0", "index out of range: -1"),
        ("[].min() == 1", "min called on empty list"),
        ("[1, 2].slice(1, 3) == []", "cannot slice(1, 3), list is length 2"),
        (
            "[1, 2].slice(2, 1) == []",
            "cannot slice(2, 1), start index must be less than or equal to end index",
        ),
        ("[1].map(x, 'a')[1] == ''", "index out of bounds: 1"),
        ("optional.none().value() == 1", "optional.none() dereference"),
        ("{'a': 1}.transformMapEntry(k, v, {'b': 1, 'b': 2}).b == {'a': 1}.c", "no such key: c"),
        ("[1, 2].transformMapEntry(i, v, {'k': v}).k == 1", "insert failed: key k already exists"),
        ("1 % (1 - 1) == 0", "modulus by zero"),
        ("-(-9223372036854775807 - 1) > 0", "integer overflow"),
        ("1u - 2u == 0u", "unsigned integer overflow"),
        ("0.0 / 0.0 < 1.0", "NaN values cannot be ordered"),
        ("quantity('1.5').asInteger() == 1", "cannot convert value to integer"),
        ("semver('1.2.03') == semver('1.2.3')", 'Patch number must not contain leading zeroes "03"'),
        ("ip('x').family() == 4", 'IP Address "x" parse error during conversion from string'),
        (
            "url('x').getHost() == ''",
            'URL parse error during conversion from string: parse "x": invalid URI for request',
        ),
        ("dyn('a').getHours() == 1", "no such overload: getHours(string)"),
        ("'abc'.charAt(dyn(true)) == 'b'", "no such overload: charAt(string, bool)"),
        ("'abc'.charAt(dyn(1u)) == 'b'", "no such overload: charAt(string, uint)"),
        ("dyn(1).allowed()", "no such overload: allowed(int)"),
        ("dyn('a').all(x, true)", "got 'types.String', expected iterable type"),
        ("kubernetes.DRADevice{}.driver == ''", "unknown type 'kubernetes.DRADevice'"),
        ("'a'.matches('a' + '(')", "error parsing regexp"),
        ("matches('ab', '(')", "error parsing regexp"),
        # Kubernetes has an answer here, we have not:
        ("timestamp(253402300799).getHours('+01:00') == 0", "internal error: date value out of range"),
        ("{dyn(semver('1.0.0')): 1} != {}", "unsupported key type: kubernetes.Semver"),
        ("('%.1000f' + '').format([1.5]).size() == 1002", "could not parse formatting clause: "),
    ],
)
def test_this_has_no_answer(expression: str, message: str) -> None:
    with pytest.raises(cel.EvaluationError) as fault:
        cel.compile(expression).matches(SUBJECT)
    assert fault.value.message.startswith(message)


@pytest.mark.parametrize(
    "expression",
    [
        "int('' + '{}') == 1",
        "uint('' + '{}') == 1u",
        "double('' + '{}') == 1.0",
        "semver('1.2.{}').patch() == 1",
        "semver('1.2.3-{}').patch() == 3",
        "quantity('{}').isInteger()",
        "duration('' + '{}h').getHours() == 1",
        "('%.{}f' + '').format([1.5]) == ''",
        "cidr('10.0.0.0/{}').prefixLength() == 8",
    ],
)
def test_numbers_of_thousands_of_digits_have_no_answer(expression: str) -> None:
    with pytest.raises(cel.EvaluationError):
        cel.compile(expression.format("9" * 5000)).matches(SUBJECT)
