"""Why a device does not match is said in its own words and values."""

import pytest

from jackfield.core import cel
from jackfield.core.cel import unparse
from jackfield.model.device import Device, DeviceAttribute, DeviceCapacity

DEVICE = Device(
    "gpu-0",
    attributes={
        "model": DeviceAttribute(string="A100"),
        "healthy": DeviceAttribute(bool_=True),
        "numa": DeviceAttribute(int_=1),
        "version": DeviceAttribute(version="1.2.3-rc.1"),
    },
    capacity={"memory": DeviceCapacity("80Gi")},
)
SUBJECT = cel.subject("g.example", DEVICE)


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("device.driver == 'g.example'", "it matches"),
        ("device.driver == 'x'", 'device.driver == "x": is false (device.driver is "g.example")'),
        (
            "device.attributes['g.example'].healthy && device.attributes['g.example'].model == 'H100'",
            'device.attributes["g.example"].model == "H100": is false (device.attributes["g.example"].model is "A100")',
        ),
        (
            "!(device.capacity['g.example'].memory.isGreaterThan(quantity('1Gi')) && true)",
            (
                'device.capacity["g.example"].memory.isGreaterThan(quantity("1Gi")) && true: is true '
                '(device.capacity["g.example"].memory is 80Gi)'
            ),
        ),
        (
            "cel.bind(a, device.attributes['g.example'], a.healthy && a.numa > 3)",
            "a.numa > 3: is false (a.numa is 1)",
        ),
        (
            "device.attributes['g.example'].nope == 1",
            (
                'device.attributes["g.example"].nope == 1: no such key: nope '
                '(device.attributes["g.example"].nope is absent)'
            ),
        ),
        (
            "device.attributes['g.example'].nope == 1 && device.driver == 'x'",
            'device.driver == "x": is false (device.driver is "g.example")',
        ),
        (
            "device.driver == 'x' || device.attributes['g.example'].numa in [2, 3]",
            (
                'device.driver == "x" || device.attributes["g.example"].numa in [2, 3]: is false '
                '(device.driver is "g.example", device.attributes["g.example"].numa is 1)'
            ),
        ),
        (
            "!(device.driver == 'x' || device.attributes['g.example'].numa == 1)",
            'device.attributes["g.example"].numa == 1: is true (device.attributes["g.example"].numa is 1)',
        ),
        (
            "device.attributes['g.example'].healthy ? device.driver == 'x' : true",
            'device.driver == "x": is false (device.driver is "g.example")',
        ),
        (
            "device.attributes['g.example'].nope ? true : false",
            (
                'device.attributes["g.example"].nope: no such key: nope '
                '(device.attributes["g.example"].nope is absent)'
            ),
        ),
        (
            "device.attributes['g.example'].version.isGreaterThan(semver('2.0.0'))",
            (
                'device.attributes["g.example"].version.isGreaterThan(semver("2.0.0")): is false '
                '(device.attributes["g.example"].version is 1.2.3-rc.1)'
            ),
        ),
        (
            "device.attributes['other'].exists(k, k == 'b')",
            'device.attributes["other"].exists(k, k == "b"): is false (device.attributes["other"] is {})',
        ),
        (
            "device.attributes['g.example'].?nope.orValue(true) == false",
            (
                'device.attributes["g.example"].?nope.orValue(true) == false: is false '
                '(device.attributes["g.example"].?nope is absent)'
            ),
        ),
    ],
)
def test_the_part_that_says_no_is_named_with_what_it_saw(expression: str, reason: str) -> None:
    assert str(cel.why_not(cel.compile(expression), SUBJECT)) == reason


def test_a_list_is_shown_with_its_items() -> None:
    subject = cel.subject("g", Device("list", attributes={"names": DeviceAttribute(strings=("a", "b"))}))
    told = cel.why_not(cel.compile("'c' in device.attributes['g'].names", lists=True), subject)
    assert str(told).endswith('(device.attributes["g"].names is ["a", "b"])')


def test_a_device_that_no_expression_can_look_at_says_so() -> None:
    broken = cel.subject("g.example", Device("broken", attributes={"x": DeviceAttribute()}))
    assert cel.why_not(cel.compile("true"), broken).error == "attribute x: unsupported attribute value"


@pytest.mark.parametrize(
    ("expression", "short"),
    [
        ("google.protobuf.Int64Value{value: 1} == 1", "google.protobuf.Int64Value{…} == 1"),
        ("[1].transformMap(i, v, v) == {0: 1}", "[1].transformMap(i, v, …) == {0: 1}"),
    ],
)
def test_what_is_written_back_may_be_short(expression: str, short: str) -> None:
    assert unparse.text(cel.compile(expression).checked.expr) == short


@pytest.mark.parametrize(
    "expression",
    [
        'device.attributes["a"].b == "c" && (1 + 2) * 3 - 4 / (5 - 6) >= 7 % 8',
        'dyn(1).check("c").allowed()',
        '!(device.driver == "x" || false) ? true : -1 < 2',
        'cel.bind(x, 1, x == 1) && [1, 2].map(x, x > 1, x) == [2] && has(device.attributes["a"].b)',
        '[1].all(i, v, v == 1) && [?optional.of(1)] == [1] && {"a": null}.?a.hasValue() && b"x" == b"y"',
        "1u < 2 && 1.5 != 2.5 && [true][?0].hasValue() && [1].exists_one(x, x == 1)",
        "[1].transformList(i, v, v) == [1]",
    ],
)
def test_what_is_written_back_means_the_same(expression: str) -> None:

    once = unparse.text(cel.compile(expression).checked.expr)
    assert unparse.text(cel.compile(once).checked.expr) == once
    assert cel.compile(once).cost_max == cel.compile(expression).cost_max


def test_the_whole_device_is_no_part_of_it() -> None:
    program = cel.compile("[device].all(d, d.driver == 'x')")
    assert cel.why_not(program, cel.subject("gpu.example.com", Device("gpu-0"))).seen == ()
