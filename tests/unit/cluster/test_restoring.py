"""What cannot be read into Kubernetes' types out of a map is refused in that reader's words."""

import pytest

from jackfield.cluster import schema
from jackfield.cluster.patches import restoring
from jackfield.codec import Raw, kinds
from jackfield.model.pod import Pod


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"spec": 3}, "cannot restore struct from: int64"),
        ({"spec": "x"}, "cannot restore struct from: string"),
        ({"spec": [1]}, "cannot restore struct from: slice"),
        ({"spec": {"containers": "x"}}, "cannot restore slice from string"),
        ({"spec": {"containers": {"a": 1}}}, "cannot restore slice from map"),
        ({"spec": {"tolerations": ["x"]}}, "cannot restore struct from: string"),
        ({"spec": {"tolerations": [{"key": "a"}, {"key": True}]}}, "unrecognized type: string"),
        ({"spec": {"nodeSelector": ["x"]}}, "cannot restore map from slice"),
        ({"spec": {"nodeSelector": {"a": 1}}}, "cannot convert int64 to string"),
        ({"metadata": {"labels": {"a": {"b": "1"}}}}, "unrecognized type: string"),
        ({"spec": {"hostname": 1.5}}, "unrecognized type: string"),
        ({"spec": {"hostname": ["x"]}}, "unrecognized type: string"),
        ({"spec": {"activeDeadlineSeconds": "x"}}, "unrecognized type: int64"),
        ({"spec": {"activeDeadlineSeconds": 1.5}}, "cannot convert float64 to int64"),
        ({"spec": {"activeDeadlineSeconds": 2.0}}, ""),
        ({"spec": {"activeDeadlineSeconds": True}}, "unrecognized type: int64"),
        ({"spec": {"priority": "x"}}, "unrecognized type: int32"),
        ({"spec": {"hostNetwork": 1}}, "unrecognized type: bool"),
        ({"spec": {"hostNetwork": True, "hostname": "h", "priority": 1}}, ""),
        ({"spec": {"bogus": 1, "hostname": None}}, ""),
        ({"spec": {"restartPolicy": 3}}, "cannot convert int64 to v1.RestartPolicy"),
    ],
)
def test_what_cannot_be_read_is_named(body: Raw, words: str) -> None:
    assert restoring.problem(body, schema.of(kinds.of(Pod))) == words


def test_an_amount_is_no_object() -> None:
    container = {"name": "a", "resources": {"limits": {"cpu": {}, "memory": 1}}}
    found = restoring.problem({"spec": {"containers": [container]}}, schema.of(kinds.of(Pod)))
    assert found.startswith("quantities must match")
