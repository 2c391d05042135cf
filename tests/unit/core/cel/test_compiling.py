"""What does not compile is refused in Kubernetes' words, with a hint; what compiles says what it costs and reads."""

import pytest

from jackfield.core import cel


def refusal(expression: str, *, lists: bool = False) -> cel.CompileError:
    with pytest.raises(cel.CompileError) as refused:
        cel.compile(expression, lists=lists)
    return refused.value


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("1", "must evaluate to bool or the unknown type, not int"),
        ("[device.driver, 1] == []", "expected type 'string' but found 'int'"),
        ("{'a': 1, 'b': 'c'} == {}", "expected type 'int' but found 'string'"),
        ("duration('x') == duration('1s')", "invalid duration argument"),
        ("timestamp('x') == timestamp(0)", "invalid timestamp argument"),
        ("device.driver.matches('(')", "invalid matches argument"),
        ("device.driver.find('(') == ''", "program instantiation failed: error parsing regexp"),
        ("int('x') == 1", "program instantiation failed: type conversion error from 'string' to 'int'"),
        ("'%d'.format(['a']) == ''", "decimal clause can only be used on integers, was given string"),
        ("'%s'.format([]) == ''", "index 0 out of range"),
        ("'a'.format(['b']) == ''", "too many arguments supplied to string.format (expected 0, got 1)"),
        ("'%q'.format(['b']) == ''", "unrecognized formatting clause"),
        ("[1].flatten() == []", "found no matching overload for 'flatten'"),
        ("type(device) == kubernetes.DRADevice", "reference to undefined type: kubernetes.DRADevice"),
        ("1e999 > 0.0", "invalid double literal"),
        ("device.`driver` == 'x'", "unsupported syntax: '`'"),
        ("device.driver.foo", "type 'string' does not support field selection"),
        ("(" * 250 + "true" + ")" * 250, "<input>:-1:0: expression recursion limit exceeded: 250"),
        ("1" + " + 1" * 251 + " > 0", "<input>:-1:0: max recursion depth exceeded"),
        (
            "'" + "a" * 100_000 + "' == ''",
            "expression code point size exceeds limit: size: 100008, limit 100000",
        ),
        ("'\ud800' == ''", "Syntax error: no valid text"),
        ("[1].exists_one(x, true", "Syntax error: missing ')' at '<EOF>'"),
        ("'%s'.format([[{'a': quantity('1')}]]) == ''", "was given kubernetes.Quantity"),
    ],
)
def test_this_is_refused(expression: str, words: str) -> None:
    assert words in refusal(expression).message


def test_a_refusal_points_at_the_place() -> None:
    assert refusal("true &&\n [1, 'a'] == []").message == (
        "compilation failed: ERROR: <input>:2:6: expected type 'int' but found 'string'\n |  [1, 'a'] == []\n | .....^"
    )


@pytest.mark.parametrize(
    ("expression", "hint"),
    [
        ('attributes["a"].b == "c"', "write device.attributes"),
        ('capacity["a"].b == quantity("1")', "write device.capacity"),
        ('driver == "a"', "write device.driver"),
        ('device.attributes["model"] == "A100"', "name the domain first"),
        ('device.capacity["memory"].isGreaterThan(quantity("1"))', "name the domain first"),
        ('device.driver = "a"', "compare with =="),
        ('Quantity("1") == quantity("1")', 'write quantity("…")'),
        ("(" * 250 + "true" + ")" * 250, "nest less deeply"),
    ],
)
def test_a_common_mistake_gets_a_hint(expression: str, hint: str) -> None:
    assert hint in refusal(expression).advice


@pytest.mark.parametrize(
    ("expression", "hints"),
    [
        ('device.attributes["gpu.example.com"].model == "A100"', ()),
        (
            'device.attributes["gpu.example.com/model"].string == "A100"',
            (
                'write device.attributes["gpu.example.com"].model without .string: an attribute is its value',
                'write device.attributes["gpu.example.com"].model: domain and name are looked up one after the other',
            ),
        ),
        (
            'device.attributes["a"].b.version == semver("1.0.0")',
            ('write device.attributes["a"].b without .version: an attribute is its value',),
        ),
        (
            'device.capacity["a"].b != quantity("1")',
            ('write !(device.capacity["a"].b == quantity("1")): the cost of != on quantities has no bound',),
        ),
        ('device.attributes["a"].string == "x"', ()),
        ("[device.driver].join() == 'a'", ("join has no known length: compare the parts instead",)),
        ("[device.driver].indexOf('a') == 0", ("indexOf on a list has no known cost: use in",)),
        ("lists.range(device.driver.size()).size() == 3", ("lists.range needs a literal",)),
        (
            'device.attributes["a"].?b.orValue("").contains("x")',
            ("the result of orValue has no known length: use has(…) && …, or compare with ==",),
        ),
    ],
)
def test_what_compiles_but_is_hardly_meant_gets_a_hint(expression: str, hints: tuple[str, ...]) -> None:
    assert cel.compile(expression).advice == hints


@pytest.mark.parametrize(
    ("expression", "cost"),
    [
        ('device.driver == "dra.example.com"', 4),
        ('device.attributes["dra.example.com"].healthy', 4),
        ('device.attributes["dra.example.com"].numa == 1', 5),
        ('device.attributes["dra.example.com"].services.matches("[^a]?sym")', 18),
        ('"x" in device.attributes', 3),
        ('device.attributes.exists_one(d, d == "dra.example.com")', 164),
        ('device.attributes["a"].exists_one(x, x == "services")', 133),
        ('cel.bind(a, device.attributes["a"], a.exists(k, a.model == k))', 463),
        ('cel.bind(a, device.attributes["a"], a.exists(k, k == a.model))', 367),
        ('device.capacity["a"]["b"] != quantity("1")', 5),
    ],
)
def test_the_estimate_is_the_api_servers(expression: str, cost: int) -> None:
    program = cel.compile(expression)
    assert program.cost_max == cost
    assert program.refusal == ""


def test_the_api_server_refuses_what_a_scheduler_would_run() -> None:
    assert "exceeds cost limit" in cel.compile('device.capacity["a"].b != quantity("1")').refusal
    long = f"device.driver == '{'x' * cel.EXPRESSION_BYTES_MAX}'"
    assert "must be no longer than 10240 bytes" in cel.compile(long).refusal


@pytest.mark.parametrize(
    ("expression", "paths"),
    [
        ("true", []),
        ('device.driver == "a"', ["device.driver"]),
        (
            'device.attributes["a"].b == "c" && "d" in device.attributes["a"]',
            ['device.attributes["a"].b', 'device.attributes["a"].d'],
        ),
        (
            'cel.bind(a, device.attributes["a"], a.b == a["c"] || a.?d.hasValue())',
            [f'device.attributes["a"].{x}' for x in "bcd"],
        ),
        ('device.attributes["a"].exists(k, k == "b")', ['device.attributes["a"][*]']),
        ('"a" in device.attributes', ['device.attributes["a"][*]']),
        ("device.capacity.size() > 0", ["device.capacity[*][*]"]),
        (
            'cel.bind(x, device.driver + "a", x == device.attributes["a"].b)',
            ['device.attributes["a"].b', "device.driver"],
        ),
        (
            "has(device.attributes['a'].b) && device.capacity.a.b.isInteger()",
            ['device.attributes["a"].b', 'device.capacity["a"].b'],
        ),
        (
            "[device].exists(d, d.driver == 'a')",
            [
                "device.allowMultipleAllocations",
                "device.attributes[*][*]",
                "device.capacity[*][*]",
                "device.driver",
            ],
        ),
    ],
)
def test_an_expression_knows_what_it_looks_at(expression: str, paths: list[str]) -> None:
    assert [str(path) for path in cel.compile(expression).paths] == paths


def test_the_same_expression_is_compiled_once() -> None:
    assert cel.compile("device.driver == 'once'") is cel.compile("device.driver == 'once'")


def test_the_type_of_an_open_answer_shows_at_run_time() -> None:
    assert cel.compile('device.attributes["a"].b').output_type == "google.protobuf.Any"
    assert cel.compile('device.attributes["a"].b', lists=True).output_type == "dyn"
    assert cel.compile("device.allowMultipleAllocations").output_type == "bool"


def test_exists_one_with_two_variables_may_be_spelt_either_way() -> None:
    for spelling in ("exists_one(", "exists_one (", "existsOne("):
        assert (
            cel.compile(f"[1].{spelling}i, v, v == 1) && 'exists_one(a, b, c)' != ''").output_type == "bool"
        )
    assert cel.compile("[1].exists_one(v, v == [1, 2].size())").output_type == "bool"
