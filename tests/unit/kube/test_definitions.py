"""A cluster gets our definitions unless it has some that will do, and nobody else's is ever replaced."""

import asyncio
from collections.abc import Callable

import pytest

from jackfield.codec import Raw, copied
from jackfield.codec.definitions import REVISION, SCHEMA, definitions
from jackfield.kube.definitions import COMMAND, ESTABLISH_SECONDS_MAX, Outcome, Verdict, apply_definitions
from jackfield.ports import Refused, Retry
from unit.kube.definitions_store import Shelf, Ticking

REQUEST, RESOURCE = definitions()
NAMES = [str(one["metadata"]["name"]) for one in definitions()]


def applied(shelf: Shelf) -> tuple[Verdict, ...]:
    return asyncio.run(apply_definitions(shelf, Ticking()))


def outcomes(shelf: Shelf) -> list[str]:
    return [one.outcome.value for one in applied(shelf)]


def marked(mark: str, of: Raw = RESOURCE) -> Raw:
    other: Raw = copied(of)
    other["metadata"]["annotations"] = {SCHEMA: mark} if mark else {}
    return other


def cohdis(mark: str = "") -> Raw:
    """A definition that drops conditions."""
    other = marked(mark)
    del other["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"][
        "conditions"
    ]
    return other


def narrow() -> Raw:
    """Somebody else's definition with all fields, that takes fewer types."""
    other = marked("")
    spec = other["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["type"] = {"type": "string", "enum": ["gpu"]}
    return other


CASES: dict[str, tuple[Callable[[], Shelf], list[str], list[tuple[str, bool]]]] = {
    "an empty cluster": (Shelf, ["applied", "applied"], [(NAMES[0], False), (NAMES[1], False)]),
    "ours": (lambda: Shelf(*definitions()), ["current", "current"], []),
    "one of ours": (lambda: Shelf(REQUEST), ["current", "applied"], [(NAMES[1], False)]),
    "ours of another text": (
        lambda: Shelf(REQUEST, marked(f"{REVISION}.0")),
        ["current", "applied"],
        [(NAMES[1], True)],
    ),
    "ours, spoilt by hand": (
        lambda: Shelf(REQUEST, cohdis(RESOURCE["metadata"]["annotations"][SCHEMA])),
        ["current", "applied"],
        [(NAMES[1], True)],
    ),
    "newer of ours": (lambda: Shelf(REQUEST, marked(f"{REVISION + 1}.0")), ["current", "kept"], []),
    "newer of ours that drops a field": (
        lambda: Shelf(REQUEST, cohdis(f"{REVISION + 1}.0")),
        ["current", "lacking"],
        [],
    ),
    "another's with all fields": (lambda: Shelf(REQUEST, marked("")), ["current", "kept"], []),
    "another's with fewer values": (lambda: Shelf(REQUEST, narrow()), ["current", "kept"], []),
    "another's": (lambda: Shelf(REQUEST, cohdis()), ["current", "lacking"], []),
    "may only read, none there": (lambda: Shelf(verbs=("get",)), ["forbidden", "forbidden"], []),
    "may only read, ours there": (
        lambda: Shelf(*definitions(), verbs=("get",)),
        ["current", "current"],
        [],
    ),
    "may change but not create": (
        lambda: Shelf(REQUEST, verbs=("get", "patch")),
        ["current", "forbidden"],
        [],
    ),
    "may nothing, none there": (lambda: Shelf(verbs=()), ["forbidden", "forbidden"], []),
    "may nothing, one served": (lambda: Shelf(REQUEST, verbs=()), ["unread", "forbidden"], []),
    "another was faster": (lambda: Shelf(REQUEST, races=(cohdis(),)), ["current", "lacking"], []),
    "our twin was faster": (
        lambda: Shelf(REQUEST, races=(RESOURCE,)),
        ["current", "applied"],
        [(NAMES[1], False)],
    ),
}


@pytest.mark.parametrize(("made", "expected", "writes"), CASES.values(), ids=CASES)
def test_a_definition_is_written_only_where_it_must_and_may_be(
    made: Callable[[], Shelf], expected: list[str], writes: list[tuple[str, bool]]
) -> None:
    shelf = made()
    assert outcomes(shelf) == expected
    assert shelf.writes == writes


def test_whoever_takes_over_from_cohdi_replaces_what_will_not_do_and_only_that() -> None:
    shelf = Shelf(REQUEST, cohdis())
    verdicts = asyncio.run(apply_definitions(shelf, Ticking(), replace=True))
    assert [one.outcome.value for one in verdicts] == ["current", "applied"]
    assert shelf.writes == [(NAMES[1], True)]
    kept = Shelf(REQUEST, narrow())
    asyncio.run(apply_definitions(kept, Ticking(), replace=True))
    assert kept.writes == []


def test_a_second_time_nothing_is_written() -> None:
    shelf = Shelf()
    applied(shelf)
    count = len(shelf.writes)
    assert outcomes(shelf) == ["current", "current"]
    assert len(shelf.writes) == count


def test_what_is_lacking_comes_as_a_value_and_then_in_words() -> None:
    _, verdict = applied(Shelf(REQUEST, cohdis()))
    assert [(one.path, one.what) for one in verdict.lacks] == [("status.conditions", "is dropped")]
    assert not verdict.usable
    assert "status.conditions is dropped" in str(verdict)
    assert COMMAND in str(verdict)


def test_fewer_values_are_told_and_put_up_with() -> None:
    _, verdict = applied(Shelf(REQUEST, narrow()))
    assert verdict.usable
    assert "left alone (spec.type accepts only gpu)" in str(verdict)


@pytest.mark.parametrize("outcome", list(Outcome))
def test_a_verdict_names_its_definition_and_the_command_where_somebody_has_to_type_it(
    outcome: Outcome,
) -> None:
    verdict = Verdict(NAMES[0], outcome)
    assert str(verdict).startswith(f"definition {NAMES[0]} ")
    assert (COMMAND in str(verdict)) == (not verdict.usable)


def test_a_definition_is_waited_for_until_it_is_established() -> None:
    clock, shelf = Ticking(), Shelf(REQUEST, looks=5)
    asyncio.run(apply_definitions(shelf, clock))
    assert 0 < clock.time < ESTABLISH_SECONDS_MAX


def test_a_definition_that_is_never_established_is_told_with_the_reason() -> None:
    clock = Ticking()
    with pytest.raises(Retry, match='"cres" is already in use'):
        asyncio.run(apply_definitions(Shelf(reason='"cres" is already in use'), clock))
    assert clock.time == ESTABLISH_SECONDS_MAX


def test_a_refusal_that_is_no_question_of_permission_is_passed_on() -> None:
    class Strict(Shelf):
        def _apply(self, name: str, body: Raw, *, force: bool) -> Raw:
            del body, force
            raise Refused(f"{name} is invalid")

    with pytest.raises(Refused, match="is invalid"):
        applied(Strict())


def test_a_refusal_to_show_a_definition_that_we_may_see_is_passed_on() -> None:
    class Confused(Shelf):
        def _read(self, name: str) -> Raw:
            raise Refused(f"{name} cannot be shown")

    with pytest.raises(Refused, match="cannot be shown"):
        applied(Confused())


def test_who_is_always_overtaken_gives_up_for_now() -> None:
    class Vanishing(Shelf):
        def _read(self, name: str) -> Raw:
            self.stored.pop(name, None)
            return super()._read(name)

    with pytest.raises(Retry, match="written by somebody else"):
        applied(Vanishing(races=tuple(cohdis() for _ in range(9))))


def test_a_definition_that_is_being_deleted_is_waited_for() -> None:
    leaving = copied(REQUEST)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    shelf = Shelf(leaving)
    with pytest.raises(Retry, match="is being deleted"):
        applied(shelf)
    assert shelf.writes == []
