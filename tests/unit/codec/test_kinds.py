"""The registry knows every kind of the model by all its names."""

from jackfield.codec import kinds
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposableResource
from jackfield.model.lease import Lease
from jackfield.model.meta import Object
from jackfield.model.pod import Pod
from jackfield.model.slice import ResourceSlice


def test_every_kind_of_the_model_is_registered_once() -> None:
    assert sorted(one.__name__ for one in Object.__subclasses__()) == sorted(one.kind for one in kinds.KINDS)
    assert len({one.plural for one in kinds.KINDS}) == len(kinds.KINDS)


def test_a_kind_is_found_by_what_objects_and_paths_call_it() -> None:
    for kind in kinds.KINDS:
        assert kinds.by_kind(kind.api_version, kind.kind) is kind
        assert kinds.by_plural(kind.group, kind.version, kind.plural) is kind
        assert kinds.of(kind.type) is kind
    assert kinds.by_kind("apps/v1", "Deployment") is None
    assert kinds.by_plural("apps", "v1", "deployments") is None


def test_kinds_are_spelt_as_kubernetes_spells_them() -> None:
    spelt = {one.type: (one.api_version, one.resource, one.namespaced, one.has_status) for one in kinds.KINDS}
    assert spelt[Pod] == ("v1", "pods", True, True)
    assert spelt[Lease] == ("coordination.k8s.io/v1", "leases.coordination.k8s.io", True, False)
    assert spelt[ResourceClaim] == ("resource.k8s.io/v1", "resourceclaims.resource.k8s.io", True, True)
    assert spelt[ResourceSlice] == ("resource.k8s.io/v1", "resourceslices.resource.k8s.io", False, False)
    assert spelt[ComposableResource] == (
        "cro.hpsys.ibm.ie.com/v1alpha1",
        "composableresources.cro.hpsys.ibm.ie.com",
        False,
        True,
    )
