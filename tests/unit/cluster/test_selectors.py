"""Selectors choose objects as kubectl's -l and --field-selector do."""

import pytest

from jackfield.cluster.errors import ApiError
from jackfield.cluster.selectors import EVERYTHING, selector
from jackfield.codec import Raw

POD: Raw = {
    "metadata": {"name": "p", "namespace": "d", "labels": {"app": "web", "tier": "", "size": "7"}},
    "spec": {"nodeName": "n1"},
    "status": {"phase": "Running"},
}


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("", True),
        ("app=web", True),
        ("app==web", True),
        ("app = web", True),
        ("app=db", False),
        ("app!=db", True),
        ("app!=web", False),
        ("missing!=web", True),
        ("app", True),
        ("missing", False),
        ("!missing", True),
        ("!app", False),
        ("tier=", True),
        ("app in (web, db)", True),
        ("app in (db)", False),
        ("app notin (db)", True),
        ("app notin (web,db)", False),
        ("missing notin (web)", True),
        ("missing in (web)", False),
        ("size>6", True),
        ("size>7", False),
        ("size<8", True),
        ("app<8", False),
        ("app=web,size=7", True),
        ("app=web,size=8", False),
        ("app in (web,db),!missing,size>1", True),
        ("example.com/app=web", False),
    ],
)
def test_a_label_selector_matches(labels: str, *, expected: bool) -> None:
    assert selector("Pod", labels=labels).matches(POD) is expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("metadata.name=p", True),
        ("metadata.name=q", False),
        ("metadata.namespace=d,metadata.name=p", True),
        ("spec.nodeName=n1", True),
        ("spec.nodeName==n1", True),
        ("spec.nodeName!=n1", False),
        ("spec.nodeName=", False),
        ("status.nominatedNodeName=", True),
        ("status.phase!=Failed,status.phase!=Succeeded", True),
        ("spec.hostNetwork=false", True),
    ],
)
def test_a_field_selector_matches(fields: str, *, expected: bool) -> None:
    assert selector("Pod", fields=fields).matches(POD) is expected


def test_nothing_asked_is_everything() -> None:
    assert EVERYTHING.matches({"metadata": {}})
    assert selector("Pod").tests == ()


@pytest.mark.parametrize(
    ("kind", "labels", "fields"),
    [
        ("Pod", "a in b", ""),
        ("Pod", "=b", ""),
        ("Pod", "a=b=c", ""),
        ("Pod", "a>x", ""),
        ("Pod", "", "spec.driver=x"),
        ("ResourceClaim", "", "spec.nodeName=x"),
        ("Pod", "", "metadata.name"),
    ],
)
def test_a_selector_that_cannot_be_read_is_a_bad_request(kind: str, labels: str, fields: str) -> None:
    with pytest.raises(ApiError) as caught:
        selector(kind, labels, fields)
    assert caught.value.code == 400


def test_slices_are_selected_by_driver_and_node() -> None:
    raw: Raw = {"metadata": {"name": "s"}, "spec": {"driver": "x.dev", "nodeName": "n"}}
    assert selector("ResourceSlice", fields="spec.driver=x.dev,spec.nodeName=n").matches(raw)
    assert not selector("ResourceSlice", fields="spec.driver=y.dev").matches(raw)
