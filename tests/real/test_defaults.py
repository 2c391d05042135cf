"""What the embedded store makes of objects, and says of wrong ones, is what a real API server makes and says."""

import re

import pytest

from jackfield.codec import Raw, RawValue
from jackfield.codec.definitions import definitions
from jackfield.model.meta import Object
from jackfield.testing.control_plane import ControlPlane, Snapshot
from real.accounts import put
from real.both_servers import Embedded, Real, changed, differences, masked
from real.changed_bodies import CHANGES, REPLACEMENTS, Case
from real.stored_bodies import BODIES
from real.waiting import comes_true
from real.wrong_bodies import WRONG

SHOWN = re.compile(r'(?<=Invalid value: )(\{.*\}|"")(?=: field is immutable)')


@pytest.fixture(scope="module")
def real(plane: ControlPlane, empty: Snapshot) -> Real:
    """A real server that knows CoHDI's two kinds, and has accounts to speak for pods."""
    plane.restore(empty)
    put(plane, *definitions())
    server = Real(plane.kubeconfig)
    assert comes_true(
        lambda: server.ask("GET", "/api/v1/namespaces/default/serviceaccounts/default")[0] == 200
    )
    return server


@pytest.fixture(scope="module")
def ours() -> Embedded:
    """The embedded one."""
    return Embedded()


@pytest.mark.parametrize(("kind", "raw"), BODIES.values(), ids=BODIES)
def test_an_object_is_stored_with_the_same_defaults(
    real: Real, ours: Embedded, kind: type[Object], raw: Raw
) -> None:
    answer = real.try_create(kind, raw)
    assert answer[0] == 201, answer[1].get("message")
    assert differences(masked([*answer]), masked([*ours.try_create(kind, raw)])) == []


@pytest.mark.parametrize(("kind", "raw"), WRONG.values(), ids=WRONG)
def test_a_wrong_object_is_refused_in_the_same_words(
    real: Real, ours: Embedded, kind: type[Object], raw: Raw
) -> None:
    answer = real.try_create(kind, raw)
    assert answer[0] >= 400
    assert differences(masked([*answer]), masked([*ours.try_create(kind, raw)])) == []


@pytest.mark.parametrize("case", CHANGES.values(), ids=CHANGES)
def test_a_change_is_taken_or_refused_in_the_same_words(real: Real, case: Case) -> None:
    theirs, own = (changed(server, case) for server in (real, Embedded()))
    assert differences(masked(_cut([*theirs])), masked(_cut([*own]))) == []


@pytest.mark.parametrize("case", REPLACEMENTS.values(), ids=REPLACEMENTS)
def test_a_replacement_is_taken_or_refused_in_the_same_words(real: Real, case: Case) -> None:
    theirs, own = (changed(server, case, whole=True) for server in (real, Embedded()))
    assert differences(masked(_cut([*theirs])), masked(_cut([*own]))) == []


def _cut(value: RawValue) -> RawValue:
    """Return an answer without Go's own way of showing a whole spec, and which lines of it differ."""
    if isinstance(value, dict):
        return {name: _cut(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_cut(one) for one in value]
    return SHOWN.sub("", value.partition("\n@@ ")[0]) if isinstance(value, str) else value
