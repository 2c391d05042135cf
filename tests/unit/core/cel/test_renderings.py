"""The fast rendering never says anything that evaluation node by node does not."""

from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st

from jackfield.core import cel
from jackfield.core.cel.evaluate import evaluate
from jackfield.core.cel.faults import CelError, PanicError
from jackfield.core.cel.meter import metered
from jackfield.model.device import Device, DeviceAttribute, DeviceCapacity

NAMES = ("a", "b", "c")
VALUES = (
    DeviceAttribute(string="x"),
    DeviceAttribute(string="1.2.3"),
    DeviceAttribute(int_=1),
    DeviceAttribute(int_=0),
    DeviceAttribute(bool_=True),
    DeviceAttribute(bool_=False),
    DeviceAttribute(version="1.2.3"),
)
OPEN = (*tuple(f"device.attributes['d'].{name}" for name in NAMES), "device.attributes['e']['a']", "x")
CLOSED = ("1", "0", "'x'", "'1.2.3'", "true", "false", "semver('1.2.3')", "1.0", "device.driver")
AMOUNTS = ("device.capacity['d'].a", "device.capacity['d'].b", "quantity('1Gi')", "quantity('1.5')")

comparisons = st.builds(
    lambda left, sign, right: f"({left} {sign} {right})",
    st.sampled_from(OPEN),
    st.sampled_from(["==", "!=", "<", "<=", ">", ">="]),
    st.sampled_from(OPEN + CLOSED),
)
others = st.one_of(
    st.sampled_from(OPEN),
    st.builds(
        lambda left, right: f"{left}.isGreaterThan({right})",
        st.sampled_from(AMOUNTS),
        st.sampled_from(AMOUNTS),
    ),
    st.builds(
        lambda left, right: f"({left}.compareTo({right}) <= 0)",
        st.sampled_from(AMOUNTS),
        st.sampled_from(AMOUNTS),
    ),
    st.builds(lambda left: f"({left} in ['x', '1.2.3'])", st.sampled_from(OPEN)),
    st.builds(lambda left: f"({left} in [1, 2])", st.sampled_from(OPEN)),
    st.builds(lambda left: f"{left}.matches('^x')", st.sampled_from(OPEN)),
    st.builds(lambda left: f"{left}.startsWith('x')", st.sampled_from(OPEN)),
    st.builds(lambda left: f"{left}.contains('x')", st.sampled_from(OPEN)),
    st.builds(lambda name: f"has(device.attributes['d'].{name})", st.sampled_from(NAMES)),
    st.builds(lambda name: f"('{name}' in device.attributes['d'])", st.sampled_from(NAMES)),
)
conditions = st.recursive(
    st.one_of(comparisons, others),
    lambda inner: st.one_of(
        st.builds(lambda left, right: f"({left} && {right})", inner, inner),
        st.builds(lambda left, right: f"({left} || {right})", inner, inner),
        st.builds(lambda one: f"!({one})", inner),
        st.builds(lambda one, then, other: f"({one} ? {then} : {other})", inner, inner, inner),
        st.builds(lambda one: f"device.attributes['d'].exists(x, {one})", inner),
        st.builds(lambda one: f"device.attributes['d'].all(x, y, {one})", inner),
        st.builds(lambda one: f"device.attributes['d'].exists_one(y, x, {one})", inner),
        st.builds(lambda one: f"(device.attributes['d'].filter(x, {one}).size() == 1)", inner),
        st.builds(lambda one: f"device.attributes['d'].map(x, {one}).all(x, x)", inner),
        st.builds(
            lambda value, one: f"cel.bind(x, {value}, {one})", st.sampled_from(OPEN[:-1] + CLOSED), inner
        ),
    ),
    max_leaves=6,
)
devices = st.builds(
    lambda attributes, capacity: Device("device", attributes=attributes, capacity=capacity),
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(VALUES)),
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from([DeviceCapacity("1Gi"), DeviceCapacity("1.5")])),
)


def told(program: cel.Program, subject: cel.Subject) -> object:
    try:
        return program.matches(subject)
    except cel.EvaluationError as error:
        return error.message


def refused(source: str) -> bool:
    try:
        cel.compile(source)
    except cel.CompileError as error:
        known = ("compilation failed", "must evaluate to bool")
        assert any(words in error.message for words in known), error.message  # noqa: PT017 - which refusals there are
        return True
    return False


def found(rendering: object, subject: cel.Subject) -> object:
    assert callable(rendering)
    try:
        answer = rendering(subject)
    except (CelError, PanicError) as error:
        return str(error)
    return answer if isinstance(answer, bool) else "no bool"


@settings(max_examples=300, deadline=None)
@given(conditions, devices)
def test_all_ways_to_evaluate_agree(condition: str, device: Device) -> None:
    source = f"cel.bind(x, device.attributes['d'].a, {condition})"
    if refused(source):  # types that never compare, or a condition that is no condition at all
        return
    program = cel.compile(source)
    subject = cel.subject("d", device)
    answer = told(program, subject)
    precise = found(partial(evaluate, program.checked), subject)
    assert answer == precise or (precise == "no bool" and "could not be converted to bool" in str(answer))
    assert found(metered(program.checked, cel.COST_MAX), subject) == precise


@settings(max_examples=100, deadline=None)
@given(conditions, devices)
def test_what_does_not_match_has_a_reason(condition: str, device: Device) -> None:
    try:
        program = cel.compile(f"cel.bind(x, device.attributes['d'].a, {condition})")
    except cel.CompileError:
        return
    subject = cel.subject("d", device)
    reason = cel.why_not(program, subject)
    assert (told(program, subject) is True) == (str(reason) == "it matches")
