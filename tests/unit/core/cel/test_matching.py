"""Devices match as Kubernetes matches them: the ordinary selectors, and the traps."""

import pytest

from jackfield.core import cel
from jackfield.model.device import Device, DeviceAttribute, DeviceCapacity

GPU = "gpu.example.com"
DEVICE = Device(
    "gpu-0",
    attributes={
        "model": DeviceAttribute(string="A100"),
        "healthy": DeviceAttribute(bool_=True),
        "numa": DeviceAttribute(int_=1),
        "driverVersion": DeviceAttribute(version="550.54.14-rc.2+b5"),
        "resource.kubernetes.io/pcieRoot": DeviceAttribute(string="pci0000:00"),
    },
    capacity={"memory": DeviceCapacity("80Gi"), "net.example.com/bandwidth": DeviceCapacity("1500m")},
    allow_multiple_allocations=True,
)
LISTS = Device(
    "list", attributes={"names": DeviceAttribute(strings=("fish", "bird")), "one": DeviceAttribute(ints=(1,))}
)


def matches(expression: str, device: Device = DEVICE, *, lists: bool = False) -> bool:
    return cel.compile(expression, lists=lists).matches(cel.subject(GPU, device))


def error(expression: str, device: Device = DEVICE, *, lists: bool = False) -> str:
    with pytest.raises(cel.EvaluationError) as fault:
        matches(expression, device, lists=lists)
    return fault.value.message


@pytest.mark.parametrize(
    "expression",
    [
        'device.driver == "gpu.example.com"',
        "device.allowMultipleAllocations",
        'device.attributes["gpu.example.com"].model == "A100"',
        'device.attributes["gpu.example.com"]["model"] in ["H100", "A100"]',
        'device.attributes["resource.kubernetes.io"].pcieRoot.startsWith("pci")',
        'device.attributes["gpu.example.com"].healthy && device.attributes["gpu.example.com"].numa == 1',
        'device.attributes["gpu.example.com"].numa > 0 && !(device.attributes["gpu.example.com"].numa > 1)',
        'device.attributes["gpu.example.com"].driverVersion.compareTo(semver("535.0.0")) >= 0',
        'device.attributes["gpu.example.com"].driverVersion.isLessThan(semver("550.54.14"))',
        'device.attributes["gpu.example.com"].driverVersion.major() == 550',
        'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0',
        'device.capacity["gpu.example.com"].memory == quantity("81920Mi")',
        'device.capacity["net.example.com"].bandwidth.isLessThan(quantity("2"))',
        'device.attributes["gpu.example.com"].model.matches("^A[0-9]+$")',
        'cel.bind(gpu, device.attributes["gpu.example.com"], gpu.healthy && gpu.model != "H100")',
        'device.attributes["gpu.example.com"].?nope.orValue("none") == "none"',
        'device.attributes["gpu.example.com"][?"model"].hasValue()',
        'has(device.attributes["gpu.example.com"].model) && !has(device.attributes["gpu.example.com"].nope)',
        'device.attributes["gpu.example.com"].exists(name, name == "model")',
        '[device.attributes["gpu.example.com"].numa == 1].exists(told, told)',
        'device.attributes["gpu.example.com"].exists_one(name, value, name == "model" && value == "A100")',
        'device.attributes["gpu.example.com"].all(name, name.size() < 20)',
        'device.attributes["gpu.example.com"].map(name, name.size()).sum() == 29',
        'device.capacity["gpu.example.com"].transformList(name, amount, name) == ["memory"]',
        '[3, 1, 2].sortBy(x, -x) == [3, 2, 1] && ["b", "a"].sort() == ["a", "b"]',
    ],
)
def test_this_selector_matches(expression: str) -> None:
    assert matches(expression)


@pytest.mark.parametrize(
    "expression",
    [
        '"nope.example.com" in device.attributes',
        'has(device.attributes["nope.example.com"].model)',
        'device.attributes["nope.example.com"].exists(name, true)',
        '"model" in device.attributes["nope.example.com"]',
        'device.attributes["gpu.example.com"].healthy == 1',
        'device.attributes["gpu.example.com"].numa == true',
        'device.attributes["gpu.example.com"].numa == "1"',
        '"550.54.14" == device.attributes["gpu.example.com"].driverVersion',
        'false && device.attributes["gpu.example.com"].nope == 1',
        'device.attributes["gpu.example.com"].nope == 1 && false',
    ],
)
def test_this_selector_does_not_match(expression: str) -> None:
    assert not matches(expression)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ('device.attributes["gpu.example.com"].nope == "x"', "no such key: nope"),
        ('device.attributes["nope.example.com"].model == "x"', "no such key: model"),
        ('device.attributes["gpu.example.com"].model.string == "A100"', "no such key: string"),
        ('device.attributes["gpu.example.com"].driverVersion == "550.54.14"', "no such overload"),
        (
            'device.attributes["gpu.example.com"].nope == 1 || device.attributes["a"].b == 2',
            "no such key: nope",
        ),
        ('device.attributes["gpu.example.com"].model > 3', "no such overload"),
        ("1 / (device.attributes['gpu.example.com'].numa - 1) == 1", "division by zero"),
        ("device.attributes['gpu.example.com'].numa + 9223372036854775807 > 0", "integer overflow"),
        ("[1, 2][device.attributes['gpu.example.com'].numa + 1] == 1", "index out of bounds: 2"),
        ('quantity("1") == device.capacity["gpu.example.com"].memory.add(quantity("1"))', "no such overload"),
        ('quantity(device.attributes["gpu.example.com"].model).isInteger()', "quantities must match"),
        (
            'device.attributes["gpu.example.com"].driverVersion in ["550.54.14"] || true',
            "internal error: runtime error: hash of unhashable type cel.Semver",
        ),
        (
            'device.attributes["gpu.example.com"].model',
            "CEL result of type string could not be converted to bool",
        ),
    ],
)
def test_a_question_without_an_answer_says_why(expression: str, message: str) -> None:
    assert error(expression).startswith(message)


def test_an_error_loses_against_an_answer_on_either_side() -> None:
    assert matches('device.attributes["gpu.example.com"].nope == 1 || device.driver == "gpu.example.com"')
    assert matches('device.driver == "gpu.example.com" || device.attributes["gpu.example.com"].nope == 1')
    assert matches('["a", "b"].exists(x, x == "b" || device.attributes["gpu.example.com"].nope == x)')


def test_an_expression_says_the_same_however_often_it_is_asked() -> None:
    asked = 'device.attributes["gpu.example.com"].nope == "again"'
    assert error(asked) == error(asked) == "no such key: nope"


def test_a_bound_value_is_computed_when_it_is_used() -> None:
    assert matches('cel.bind(x, device.attributes["gpu.example.com"].nope, true)')
    assert error('cel.bind(x, device.attributes["gpu.example.com"].nope, x == 1)') == "no such key: nope"


def test_a_list_attribute_spoils_every_expression_without_the_gate() -> None:
    assert error("true", LISTS) == "attribute names: unsupported attribute value"
    assert matches('device.attributes["gpu.example.com"].names.includes("fish")', LISTS, lists=True)
    assert matches('"bird" in device.attributes["gpu.example.com"].names', LISTS, lists=True)
    assert matches('device.attributes["gpu.example.com"].one[0] == 1', LISTS, lists=True)


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        (DeviceAttribute(), "attribute x: unsupported attribute value"),
        (
            DeviceAttribute(version="1.2"),
            "attribute x: parse semantic version: No Major.Minor.Patch elements found",
        ),
    ],
)
def test_an_attribute_without_a_value_spoils_every_expression(
    attribute: DeviceAttribute, message: str
) -> None:
    assert error("true", Device("bad", attributes={"x": attribute}), lists=True) == message


def test_a_capacity_that_is_no_quantity_spoils_every_expression() -> None:
    broken = Device("bad", capacity={"memory": DeviceCapacity("80 GB")})
    assert error("true", broken).startswith("capacity memory: quantities must match the regular expression")


def test_a_list_of_versions_holds_versions() -> None:
    versions = Device("list", attributes={"runs": DeviceAttribute(versions=("1.2.3", "2.0.0"))})
    assert error("true", versions) == "attribute runs: unsupported attribute value"
    expression = 'device.attributes["gpu.example.com"].runs.exists(x, x.isGreaterThan(semver("1.9.0")))'
    assert matches(expression, versions, lists=True)
    broken = Device("list", attributes={"runs": DeviceAttribute(versions=("1.2",))})
    assert error(expression, broken, lists=True).startswith("attribute runs: parse semantic version")


def test_bare_names_are_filed_under_the_drivers_domain() -> None:
    subject = cel.subject("other.example.com", DEVICE)
    assert cel.compile('device.attributes["other.example.com"].model == "A100"').matches(subject)
    assert not cel.compile('has(device.attributes["gpu.example.com"].model)').matches(subject)


def test_what_costs_too_much_is_stopped_while_it_runs() -> None:
    nested = "lists.range(1000).all(x, lists.range(1000).all(y, x + y >= 0))"
    assert error(nested) == "operation cancelled: actual cost limit exceeded"
    assert (
        error("lists.range(99999999999999).size() > 0") == "operation cancelled: actual cost limit exceeded"
    )
    assert not matches("device.capacity['gpu.example.com'].memory != quantity('80Gi')")


def test_a_text_that_grows_without_end_is_stopped() -> None:
    grown = f"'{'x' * 1000}'.replace('', '{'y' * 1000}')"
    assert error(f"{grown}.replace('', '{'z' * 1000}').size() > 0").startswith(
        "replace makes a text of more than"
    )
