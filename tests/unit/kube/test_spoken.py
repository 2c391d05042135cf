"""A call is counted by Kubernetes' own verb and the resource, whatever its path."""

import pytest

from jackfield.kube.spoken import spoken
from jackfield.kube.transport import APPLY_PATCH, Call
from jackfield.model.composition import GROUP

CLAIM = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c/status"
SPOKEN = [
    (Call("GET", "/api/v1/nodes"), "list", "nodes"),
    (Call("GET", "/api/v1/nodes", {"watch": "true"}), "watch", "nodes"),
    (Call("GET", "/api/v1/nodes/n1"), "get", "nodes"),
    (Call("GET", "/api/v1/namespaces/default/pods"), "list", "pods"),
    (Call("GET", "/api/v1/namespaces/jackfield-node"), "get", "namespaces"),
    (Call("POST", "/api/v1/namespaces"), "create", "namespaces"),
    (Call("POST", "/apis/resource.k8s.io/v1/resourceslices"), "create", "resourceslices"),
    (Call("PATCH", CLAIM), "patch", "resourceclaims"),
    (Call("PATCH", CLAIM, content_type=APPLY_PATCH), "apply", "resourceclaims"),
    (Call("DELETE", f"/apis/{GROUP}/v1alpha1/composableresources/a"), "delete", "composableresources"),
    (Call("PUT", "/api/v1/nodes/n1"), "update", "nodes"),
    (Call("GET", "/apis/resource.k8s.io/v1"), "list", "other"),
    (Call("GET", "/api/v1/widgets/one"), "get", "other"),
    (Call("GET", "/version"), "list", "other"),
    (Call("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"), "create", "other"),
    (Call("OPTIONS", "/api/v1/nodes"), "other", "nodes"),
]


@pytest.mark.parametrize(("call", "verb", "resource"), SPOKEN, ids=[f"{row[1]} {row[2]}" for row in SPOKEN])
def test_a_call_is_counted_by_verb_and_resource(call: Call, verb: str, resource: str) -> None:
    assert spoken(call) == (verb, resource)
