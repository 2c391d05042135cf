"""Which form of an answer an Accept header asks for."""

import pytest

from jackfield.cluster.errors import ApiError
from jackfield.cluster.face.negotiation import Form, Wanted, wanted

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", Wanted()),
        ("*/*", Wanted()),
        ("application/json", Wanted()),
        ("APPLICATION/JSON;q=0.5", Wanted()),
        ("application/yaml", Wanted(yaml=True)),
        (TABLE, Wanted(Form.TABLE)),
        (f"text/html,{TABLE}", Wanted(Form.TABLE)),
        (TABLE.replace("v=v1", "v=v1beta1"), Wanted(Form.TABLE, version="v1beta1")),
        (f"{TABLE.replace('v=v1', 'v=v9')},application/json", Wanted()),
        ("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", Wanted(Form.METADATA)),
        ("application/vnd.kubernetes.protobuf,application/json", Wanted()),
    ],
)
def test_the_first_form_that_is_offered_is_given(accept: str, form: Wanted) -> None:
    assert wanted(accept) == form


@pytest.mark.parametrize(
    "accept",
    [
        "text/html",
        "application/vnd.kubernetes.protobuf",
        TABLE.replace("Table", "Chair"),
        ",;=",
        "text/a," * 500,
    ],
)
def test_what_nobody_offers_is_not_acceptable(accept: str) -> None:
    with pytest.raises(ApiError) as refused:
        wanted(accept)
    assert (refused.value.code, refused.value.reason) == (406, "NotAcceptable")
