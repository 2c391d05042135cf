"""What a cluster's definition lacks is told field by field."""

from collections.abc import Callable

import pytest

from jackfield.codec import Raw, comparison, copied
from jackfield.codec.comparison import Lack
from jackfield.codec.definitions import SCHEMA, definitions

REQUEST, RESOURCE = definitions()
NAME = "composableresources.cro.hpsys.ibm.ie.com"


def schema(definition: Raw) -> Raw:
    found: Raw = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def changed(change: Callable[[Raw], object], of: Raw = RESOURCE) -> Raw:
    other: Raw = copied(of)
    change(other)
    return other


def as_cohdi(definition: Raw) -> None:
    """Leave only what CoHDI's own definition has."""
    version, properties = definition["spec"]["versions"][0], schema(definition)["properties"]
    del (
        definition["metadata"]["annotations"],
        version["selectableFields"],
        version["additionalPrinterColumns"],
    )
    del properties["status"]["properties"]["conditions"]
    properties["spec"]["properties"]["type"] = {"type": "string", "enum": ["gpu", "cxlmemory"]}


CASES: dict[str, tuple[Callable[[Raw], object], list[tuple[str, str, bool]]]] = {
    "nothing": (lambda _: None, []),
    "a field more": (
        lambda one: schema(one)["properties"]["spec"]["properties"].update(more={"type": "string"}),
        [],
    ),
    "another description": (lambda one: schema(one).update(description="Another."), []),
    "no short name": (lambda one: one["spec"]["names"].pop("shortNames"), []),
    "CoHDI's": (
        as_cohdi,
        [
            ("spec.target_node", "cannot be selected by", True),
            ("spec.type", "accepts only gpu, cxlmemory", False),
            ("status.conditions", "is dropped", True),
        ],
    ),
    "a field less, deep down": (
        lambda one: schema(one)["properties"]["status"]["properties"]["conditions"]["items"][
            "properties"
        ].pop("reason"),
        [("status.conditions.reason", "is dropped", True)],
    ),
    "another type": (
        lambda one: schema(one)["properties"]["spec"]["properties"].update(force_detach={"type": "string"}),
        [("spec.force_detach", "is no boolean", True)],
    ),
    "everything kept": (
        lambda one: schema(one)["properties"].update(
            status={"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        ),
        [],
    ),
    "no status subresource": (
        lambda one: one["spec"]["versions"][0].pop("subresources"),
        [("status", "is no subresource", True)],
    ),
    "namespaced": (lambda one: one["spec"].update(scope="Namespaced"), [("scope", "is not Cluster", True)]),
    "another version": (
        lambda one: one["spec"]["versions"][0].update(name="v1"),
        [("v1alpha1", "is not served", True)],
    ),
    "not served": (
        lambda one: one["spec"]["versions"][0].update(served=False),
        [("v1alpha1", "is not served", True)],
    ),
    "nothing at all": (lambda one: one.pop("spec"), [("v1alpha1", "is not served", True)]),
}


@pytest.mark.parametrize(("change", "expected"), CASES.values(), ids=CASES)
def test_what_is_lacking_is_named(
    change: Callable[[Raw], object], expected: list[tuple[str, str, bool]]
) -> None:
    found = comparison.lacks(changed(change), RESOURCE)
    assert list(found) == [Lack(NAME, path, what, grave) for path, what, grave in expected]


def test_values_are_compared_with_values() -> None:
    def without_roundrobin(one: Raw) -> None:
        wish = schema(one)["properties"]["spec"]["properties"]["resource"]["properties"]
        wish["allocation_policy"]["enum"] = ["samenode", "differentnode"]

    (found,) = comparison.lacks(changed(without_roundrobin, REQUEST), REQUEST)
    assert str(found) == (
        "spec.resource.allocation_policy of composabilityrequests.cro.hpsys.ibm.ie.com "
        "accepts only samenode, differentnode"
    )


@pytest.mark.parametrize(
    ("mark", "revision"), [("", 0), ("1.abc", 1), ("12.abc", 12), ("abc", 0), ("-1.abc", 0), (".abc", 0)]
)
def test_a_mark_says_which_of_our_revisions_a_definition_is(mark: str, revision: int) -> None:
    assert comparison.revision({"metadata": {"annotations": {SCHEMA: mark}}}) == revision


def test_a_definition_without_annotations_is_nobody_of_ours() -> None:
    assert comparison.revision({"metadata": {}}) == 0
    assert comparison.mark({}) == ""
