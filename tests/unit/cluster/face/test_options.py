"""What queries say."""

import pytest

from jackfield.cluster.errors import ApiError
from jackfield.cluster.face import options
from jackfield.cluster.face.options import FieldValidation


def test_nothing_said_is_the_usual() -> None:
    how = options.writing({}, "kubectl/v1.36 (linux)", "CreateOptions")
    assert (how.manager, how.named, how.dry_run, how.force) == ("kubectl", False, False, None)
    assert how.validation is FieldValidation.WARN
    asked = options.listing({}, "a")
    assert (asked.namespace, asked.limit, asked.watch, asked.initial_events) == ("a", 0, False, None)


def test_all_that_is_said_is_heard() -> None:
    query = {"fieldManager": "me", "dryRun": "All", "force": "true", "fieldValidation": "Strict"}
    how = options.writing(query, "kubectl", "PatchOptions")
    assert (how.manager, how.named, how.dry_run, how.force) == ("me", True, True, True)
    assert how.validation is FieldValidation.STRICT
    query = {"fieldSelector": "spec.nodeName=n", "limit": "5", "watch": "1", "timeoutSeconds": "7"}
    asked = options.listing(query, "", "p")
    assert (asked.fields, asked.limit, asked.watch, asked.seconds) == (
        "spec.nodeName=n,metadata.name=p",
        5,
        True,
        7,
    )


@pytest.mark.parametrize(
    ("said", "meant"), [("-1", 0), ("0", 0), ("", 0), ("9223372036854775807", 2**63 - 1)]
)
def test_a_limit_is_how_many_at_most_or_none(said: str, meant: int) -> None:
    assert options.listing({"limit": said}, "").limit == meant


@pytest.mark.parametrize(
    ("said", "meant"), [("false", False), ("0", False), ("False", False), ("", True), ("no", True)]
)
def test_a_flag_is_on_unless_it_says_no(said: str, meant: bool) -> None:  # noqa: FBT001 - a table
    assert options.listing({"allowWatchBookmarks": said}, "").bookmarks is meant


@pytest.mark.parametrize(
    "query",
    [
        {"limit": "x"},
        {"limit": "9" * 5000},
        {"limit": "٣"},
        {"timeoutSeconds": "9223372036854775808"},
        {"resourceVersion": "x"},
        {"resourceVersion": "-1"},
        {"resourceVersion": "²"},
        {"resourceVersion": "9" * 5000},
    ],
)
def test_what_is_no_number_is_refused(query: dict[str, str]) -> None:
    with pytest.raises(ApiError) as refused:
        options.listing(query, "")
    assert (refused.value.code, refused.value.reason) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"fieldManager": "x" * 129}, "fieldManager"),
        ({"fieldManager": "a\nb"}, "fieldManager"),
        ({"dryRun": "Some"}, "dryRun"),
        ({"fieldValidation": "strict"}, "fieldValidation"),
    ],
)
def test_an_option_that_does_not_exist_is_named(query: dict[str, str], field: str) -> None:
    with pytest.raises(ApiError) as refused:
        options.writing(query, "", "UpdateOptions")
    assert refused.value.code == 422
    assert [one.field for one in refused.value.details.causes] == [field]
