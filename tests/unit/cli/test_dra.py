"""`jackfield dra`: cases in, answers out, line by line, whatever stands on the lines."""

import io
import subprocess
import sys
from functools import partial

import msgspec
import pytest
from click.testing import CliRunner, Result

from jackfield.cli import lines
from jackfield.cli.main import main
from jackfield.codec import Raw, answers
from jackfield.core.allocate import Profile

GPU: Raw = {
    "metadata": {"name": "gpu"},
    "spec": {"selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]},
}
SLICE: Raw = {
    "metadata": {"name": "slice"},
    "spec": {
        "driver": "gpu.example.com",
        "pool": {"name": "pool", "generation": 1, "resourceSliceCount": 1},
        "nodeName": "node-1",
        "devices": [
            {
                "name": "small",
                "attributes": {"model": {"string": "L40S"}},
                "capacity": {"memory": {"value": "48Gi"}},
            },
            {
                "name": "large",
                "attributes": {"model": {"string": "H100"}},
                "capacity": {"memory": {"value": "80Gi"}},
            },
        ],
    },
}
ALLOCATE = partial(answers.allocation, profile=Profile.V1_36)


def claim(expression: str = "true", **fields: object) -> Raw:
    exactly = {
        "deviceClassName": "gpu",
        "allocationMode": "ExactCount",
        "count": 1,
        "selectors": [{"cel": {"expression": expression}}],
        **fields,
    }
    return {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}}


def case(*claims: Raw, **fields: object) -> Raw:
    return {
        "name": "a case",
        "features": [],
        "classes": [GPU],
        "slices": [SLICE],
        "claims": list(claims),
        **fields,
    }


def run(*words: str, text: bytes) -> Result:
    return CliRunner().invoke(main, ["dra", *words], input=text)


def ask(command: str, *given: Raw, options: tuple[str, ...] = ()) -> list[Raw]:
    done = run(command, *options, text=b"".join(msgspec.json.encode(one) + b"\n" for one in given))
    assert done.exit_code == 0, done.output
    return [msgspec.json.decode(line) for line in done.stdout_bytes.splitlines()]


def devices(answer: Raw) -> list[str]:
    return [one["device"] for result in answer["results"] for one in result["devices"]["results"]]


# --- allocation


def test_a_claim_gets_the_first_device_that_is_meant() -> None:
    large = claim("device.capacity['gpu.example.com'].memory.isGreaterThan(quantity('50Gi'))")
    any_of, those_of = ask("allocate", case(claim()), case(large, large))
    assert any_of["results"] == [
        {
            "devices": {
                "results": [{"request": "r", "driver": "gpu.example.com", "pool": "pool", "device": "small"}]
            },
            "nodeSelector": {
                "nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}
                ]
            },
        }
    ]
    assert (those_of["results"], those_of["error"]) == (None, "")


def test_what_stood_on_a_line_stands_there_still_and_old_answers_do_not() -> None:
    given = case(claim(), results=[{"old": 1}], error="old", why="old", remark={"kept": [1.50, None]})
    (answer,) = ask("allocate", given)
    assert {name: answer[name] for name in given if name not in {"results", "error", "why"}} == {
        name: value for name, value in given.items() if name not in {"results", "error", "why"}
    }
    assert (answer["error"], devices(answer), "why" in answer) == ("", ["small"], False)


@pytest.mark.parametrize(
    ("fields", "given"),
    [
        ({"allocatedDevices": ["gpu.example.com/pool/small"]}, ["large"]),
        ({"allocatedDevices": ["gpu.example.com/pool/large", "gone/x/y/z"]}, ["small"]),
        ({"allocatedDevices": None, "aggregatedCapacity": None, "node": None}, ["small"]),
        ({"node": {"metadata": {"name": "node-1"}}}, ["small"]),
        ({"classes": [GPU, {"metadata": {"name": "gpu"}, "spec": {"selectors": [{}]}}]}, ["small"]),
    ],
)
def test_a_case_says_what_others_hold_and_where(fields: Raw, given: list[str]) -> None:
    (answer,) = ask("allocate", case(claim(), **fields))
    assert devices(answer) == given


def test_shares_are_counted_and_named() -> None:
    shared = msgspec.json.decode(msgspec.json.encode(SLICE))
    shared["spec"]["devices"] = [
        {"name": "d", "allowMultipleAllocations": True, "capacity": {"memory": {"value": "10Gi"}}}
    ]
    want = claim(capacity={"requests": {"memory": "4Gi"}})
    used = {
        "slices": [shared],
        "features": ["DRAConsumableCapacity"],
        "allocatedSharedDeviceIDs": ["gpu.example.com/pool/d/one"],
    }
    fits, full = (
        case(want, **used, aggregatedCapacity={"gpu.example.com/pool/d": {"memory": amount}})
        for amount in ("6Gi", "7Gi")
    )
    one, other = ask("allocate", fits, full)
    result = one["results"][0]["devices"]["results"][0]
    assert (result["consumedCapacity"], len(result["shareID"])) == ({"memory": "4Gi"}, 36)
    assert other["results"] is None


def test_a_gate_that_is_off_is_off() -> None:
    off, on = ask(
        "allocate", case(claim(adminAccess=True)), case(claim(adminAccess=True), features=["DRAAdminAccess"])
    )
    assert "feature is disabled" in off["error"]
    assert on["results"][0]["devices"]["results"][0]["adminAccess"] is True


def test_a_toleration_is_given_back_with_its_operator() -> None:
    (answer,) = ask("allocate", case(claim(tolerations=[{"key": "k", "value": "v"}])))
    assert answer["results"][0]["devices"]["results"][0]["tolerations"] == [
        {"key": "k", "operator": "Equal", "value": "v"}
    ]


def test_the_profile_decides_whose_faults_are_mirrored() -> None:
    config = [{"requests": ["r", "s"], "opaque": {"driver": "gpu.example.com", "parameters": {"a": None}}}]
    two = claim()
    request = two["spec"]["devices"]["requests"][0]
    two["spec"]["devices"] = {"requests": [request, {**request, "name": "s"}], "config": config}
    older, newer = (
        ask("allocate", case(two), options=("--profile", name))[0]["results"][0]["devices"]["config"]
        for name in ("1.36", "1.37")
    )
    assert (len(older), len(newer)) == (2, 1)
    assert older[0]["opaque"]["parameters"] == {"a": None}


def test_explain_says_why_in_a_value_and_a_sentence() -> None:
    fits, misses = ask("allocate", case(claim()), case(claim("false")), options=("--explain",))
    assert "why" not in fits
    (one,) = misses["why"]["requests"]
    assert (one["wanted"], one["had"], one["left"], one["stuck"]) == (1, 0, 0, True)
    cause = {"step": "selector", "rule": "false", "wanted": "true", "seen": "", "source": "selectors[0]"}
    small = {"driver": "gpu.example.com", "pool": "pool", "device": "small"}
    group = {"cause": cause, "devices": 2, "example": small}
    assert one["removed"] == [{"step": "selector", "devices": 2, "groups": [group], "more": 0}]
    assert one["nearest"] == [{"device": small, "causes": [cause]}]
    assert misses["because"] == (
        "Node node-1 does not fit: not enough usable devices. "
        "Claim c, request r wants 1 device and gets 0, with 2 devices looked at. "
        "2 are turned down by selectors[0]: false is false. "
        "Nearest: gpu.example.com/pool/small is turned down by selectors[0]: false is false. "
        "To do: loosen the selector, or attach devices that satisfy it."
    )


def test_explain_tells_of_all_nodes_where_they_are_named() -> None:
    nodes = [{"metadata": {"name": f"node-{number}"}} for number in (1, 2)]
    given = case(claim(count=3), nodes=nodes, everywhere="old")
    (plain,) = ask("allocate", given)
    (answer,) = ask("allocate", given, options=("--explain",))
    assert "everywhere" not in plain
    found = answer["everywhere"]
    assert (found["nodes"], found["fitting"]) == (2, 0)
    assert [one["node"] for one in found["nearest"]] == ["node-1"]
    assert "None of 2 nodes fits." in answer["because"]
    assert answer["nodes"] == nodes


# --- expressions


@pytest.mark.parametrize(
    ("expression", "filled"),
    [
        ("device.driver == 'd'", {"match": True, "maxCost": 3, "outputType": "bool"}),
        ("device.attributes['d'].a == 2", {"match": False, "maxCost": 5, "outputType": "bool"}),
        (
            "device.attributes['d'].b == 2",
            {"match": False, "maxCost": 5, "outputType": "bool", "matchError": "no such key: b"},
        ),
        (
            "1",
            {
                "match": False,
                "maxCost": 0,
                "compileError": "must evaluate to bool or the unknown type, not int",
            },
        ),
    ],
)
def test_an_expression_is_answered_as_kubernetes_answers_it(expression: str, filled: Raw) -> None:
    given = {"expression": expression, "driver": "d", "attributes": {"a": {"int": 1}}}
    (answer,) = ask("cel", {**given, "compileError": "old", "matchError": "old", "actualCost": 9})
    assert answer == {**given, **filled}


def test_lists_turns_the_gate_on_for_its_line_only() -> None:
    given = {"expression": "device.attributes['d'].a.exists(x, x == 2)", "driver": "d"}
    listed = {**given, "attributes": {"a": {"ints": [1, 2]}}}
    on, off = ask("cel", {**listed, "lists": True}, listed)
    assert (on["match"], "compileError" in off) == (True, True)


def test_explain_names_the_part_that_said_no_and_what_it_saw() -> None:
    given = {
        "expression": "true && device.attributes['d'].a > 2",
        "driver": "d",
        "attributes": {"a": {"int": 1}},
    }
    (answer,) = ask("cel", given, options=("--explain",))
    assert answer["why"]["expression"] == 'device.attributes["d"].a > 2'
    assert answer["why"]["seen"] == [{"part": 'device.attributes["d"].a', "value": "1"}]
    assert answer["because"].endswith('is false (device.attributes["d"].a is 1)')


# --- lines that are no cases


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"", "is empty"),
        (b"{", "is not JSON"),
        (b"[1]", "Expected `object`, got `array`"),
        (b"\xff", "is not UTF-8"),
        (b'{"name": "\\ud800"}', "surrogate"),
        (b'{"name": ' + b"[" * 5000 + b"]" * 5000 + b"}", "nested too deeply"),
        (b'{"claims": 1}', "claims: Expected `array`, got `int`"),
        (b'{"slices": [{"spec": {"driver": 5}}]}', "slices[0].spec.driver: Expected `str`, got `int`"),
        (b'{"slices": [null]}', "slices[0]: Expected `object`, got `null`"),
        (b'{"features": ["DRAMagic"]}', "features[0]: there is no 'DRAMagic'"),
        (b'{"allocatedDevices": ["a/b"]}', "allocatedDevices[0]: 'a/b' is not driver/pool/device"),
        (
            b'{"allocatedSharedDeviceIDs": ["x"]}',
            "allocatedSharedDeviceIDs[0]: 'x' is not driver/pool/device/share",
        ),
        (
            b'{"aggregatedCapacity": {"a/b/c": {"m": "?"}}}',
            "aggregatedCapacity[a/b/c][m]: '?' is no quantity",
        ),
        (
            b'{"aggregatedCapacity": {"a/b/c": {"m": "%s"}}}' % (b"9" * 9999),
            "is no quantity: it has too many digits",
        ),
    ],
)
def test_a_bad_line_gets_an_error_that_names_the_field_and_the_next_goes_on(line: bytes, words: str) -> None:
    done = run("allocate", text=line + b"\n" + msgspec.json.encode(case(claim())) + b"\n")
    bad, good = [msgspec.json.decode(one) for one in done.stdout_bytes.splitlines()]
    assert (done.exit_code, bad["line"], devices(good)) == (0, 1, ["small"])
    assert words in bad["error"]


@pytest.mark.parametrize(
    ("device", "place"),
    [
        ({"capacity": {"m": {"value": "much"}}}, "capacity[m].value: 'much' is no quantity"),
        ({"capacity": {"m": {"value": ""}}}, "capacity[m].value: '' is no quantity"),
        (
            {"capacity": {"m": {"value": "1", "requestPolicy": {"validValues": ["1", "x"]}}}},
            "validValues[1]: 'x'",
        ),
        (
            {"capacity": {"m": {"value": "1", "requestPolicy": {"validRange": {"min": "x"}}}}},
            "validRange.min: 'x'",
        ),
        (
            {"attributes": {"a": {"int": 2**63}}},
            "attributes[a].int: 9223372036854775808 does not fit into 64 bits",
        ),
    ],
)
def test_an_amount_that_kubernetes_could_not_read_is_refused_with_its_place(device: Raw, place: str) -> None:
    spoilt = msgspec.json.decode(msgspec.json.encode(SLICE))
    spoilt["spec"]["devices"][1] |= device
    (answer,) = ask("allocate", case(claim(), slices=[spoilt]))
    assert "slices[0].spec.devices[1]." in answer["error"]
    assert place in answer["error"]


def test_a_line_of_ten_megabytes_is_read_like_any_other() -> None:
    long = msgspec.json.encode(case(claim(), remark="x" * 10_000_000))
    done = run(
        "allocate", text=long + b"\n" + b'{"a":' * 2_000_000 + b"\n" + msgspec.json.encode(case(claim()))
    )
    first, second, third = (msgspec.json.decode(one) for one in done.stdout_bytes.splitlines())
    assert devices(first) == devices(third) == ["small"]
    assert second == {"error": "is nested too deeply", "line": 2}


def test_a_line_that_is_too_long_is_passed_over_without_being_kept() -> None:
    good = msgspec.json.encode(case(claim()))
    source, sink = (
        io.BytesIO(b"x" * (3 * len(good)) + b"\n" + good + b"\n" + b"y" * (2 * len(good))),
        io.BytesIO(),
    )
    lines.serve(source, sink, ALLOCATE, longest=len(good) + 1)
    first, second, third = (msgspec.json.decode(one) for one in sink.getvalue().splitlines())
    assert (first["line"], devices(second), third["line"]) == (1, ["small"], 3)
    assert f"longer than {len(good) + 1} bytes" in first["error"]


def test_an_answer_is_written_before_the_next_line_is_read() -> None:
    command = [sys.executable, "-m", "jackfield", "dra", "cel"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(3):
            process.stdin.write(b'{"expression": "%d == 1"}\n' % number)
            process.stdin.flush()
            assert msgspec.json.decode(process.stdout.readline())["match"] == (number == 1)
        process.stdin.close()
        assert process.wait(timeout=20) == 0


def test_whoever_stops_reading_is_not_shown_a_traceback() -> None:
    command = [sys.executable, "-m", "jackfield", "dra", "cel"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        _, words = process.communicate(b'{"expression": "true"}\n' * 5, timeout=20)
    assert words == b""


@pytest.mark.parametrize("command", ["allocate", "cel"])
def test_every_command_explains_its_lines(command: str) -> None:
    done = run(command, "--help", text=b"")
    assert done.exit_code == 0
    assert "Filled in" in done.output
