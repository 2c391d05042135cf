"""Names are derived, the same for the same thing, and lead back to it."""

import re

import pytest

from jackfield.core import naming
from jackfield.model.names import DeviceID, FabricName, NodeName, PhysicalID
from jackfield.model.policy import DRIVER, DeviceModel
from jackfield.testing.builders import model, policy

RACK = FabricName("rack-a")
OURS = model("A100")
VENDORS = model("H100", driver="gpu.example.com")
POLICY = policy(OURS, VENDORS)

LONG = "x" * 58
"""As long as an id may be to stand behind `a100-` in a DNS label."""


@pytest.mark.parametrize(
    ("of", "name"),
    [
        (OURS, DeviceID(DRIVER, "rack-a", "a100-7")),
        (VENDORS, DeviceID("gpu.example.com", "h100-fabricrack-a", "h100-7")),
    ],
    ids=["ours in the fabric's pool", "a vendor's in CoHDI's pool"],
)
def test_a_device_has_one_name_that_leads_back_to_fabric_and_model(of: DeviceModel, name: DeviceID) -> None:
    assert naming.device(RACK, of, PhysicalID("7")) == name
    assert naming.slot(RACK, of, 7) == name
    assert naming.fabric_of(name, POLICY) == "rack-a"
    known = naming.model_of(name, POLICY)
    assert known is not None
    assert known.cdi_model_name == of.cdi_model_name


@pytest.mark.parametrize(
    ("name", "fabric", "known"),
    [
        (DeviceID(DRIVER, "rack-a", "b200-1"), "rack-a", False),
        (DeviceID(DRIVER, "rack-a", "a1001"), "rack-a", False),
        (DeviceID("gpu.example.com", "h100-fabricrack-a", "a100-1"), None, False),
        (DeviceID("gpu.example.com", "h100-fabricrack-a", "h100-1"), "rack-a", True),
        (DeviceID("gpu.example.com", "n1", "h100-1"), None, True),
        (DeviceID("other.example.com", "h100-fabricrack-a", "h100-1"), None, False),
    ],
    ids=[
        "ours of no model in the policy",
        "ours that only begins like a model",
        "a vendor's device under the name of our model",
        "a vendor's device in the fabric's pool",
        "a vendor's device in a pool of its own",
        "another driver's",
    ],
)
def test_what_is_not_ours_has_no_fabric_and_what_is_not_listed_no_model(
    name: DeviceID, fabric: str | None, *, known: bool
) -> None:
    assert naming.fabric_of(name, POLICY) == fabric
    assert (naming.model_of(name, POLICY) is not None) is known


@pytest.mark.parametrize("physical", ["0", "gpu-17", LONG])
def test_an_id_that_may_end_a_dns_label_stays_itself(physical: str) -> None:
    assert naming.device(RACK, OURS, PhysicalID(physical)).device == f"a100-{physical}"


@pytest.mark.parametrize("physical", [f"{LONG}x", "GPU-17", "-17", "17-", "a/b", ""])
def test_any_other_id_becomes_a_digest(physical: str) -> None:
    name = naming.device(RACK, OURS, PhysicalID(physical)).device
    assert re.fullmatch("a100-[0-9a-f]{12}", name)


def test_two_ids_have_two_digests_and_one_id_always_the_same() -> None:
    first, second, again = (naming.slug(PhysicalID(one), 63) for one in ("GPU/1", "GPU/2", "GPU/1"))
    assert first != second
    assert first == again == "ecca69a33371"


@pytest.mark.parametrize(("name", "number"), [("a100-0", 0), ("a100-12", 12), ("a100-x", -1), ("a100", -1)])
def test_a_slot_is_known_by_its_number(name: str, number: int) -> None:
    assert naming.slot_number(DeviceID(DRIVER, "rack-a", name)) == number


def test_a_resource_is_named_for_its_fabric_and_device_alone() -> None:
    assert naming.resource(RACK, naming.slot(RACK, OURS, 3)) == "a100-3.rack-a"
    assert naming.resource(RACK, naming.slot(RACK, VENDORS, 3)) == "h100-3.rack-a"


def test_a_taint_is_named_for_the_resource_whose_device_it_is_on() -> None:
    assert naming.taint("a100-3.rack-a") == "a100-3.rack-a-taint"


def test_a_request_is_named_for_node_and_model_and_fits_a_label() -> None:
    exactly = "n" * (63 - len("jackfield-a100-"))
    assert naming.request(NodeName("n1"), OURS) == "jackfield-a100-n1"
    assert naming.request(NodeName(exactly), OURS) == f"jackfield-a100-{exactly}"
    one, two = (naming.request(NodeName(f"{exactly}{end}"), OURS) for end in "ab")
    assert one != two
    assert len(one) == len(two) == 63
    assert one[:54] == two[:54] == f"jackfield-a100-{exactly}"[:54]
    assert one[54] == "-"


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("0000-fabric.jackfield.dev-rack-a", 0),
        ("001f-fabric.jackfield.dev-rack-a", 31),
        ("n1-gpu.example.com", -1),
        ("-odd", -1),
        ("", -1),
    ],
)
def test_a_slice_has_its_index_in_its_name(name: str, index: int) -> None:
    assert naming.slice_index(name) == index
    if index >= 0:
        assert naming.slice_name(DRIVER, "rack-a", index) == name


def test_a_pool_with_a_slash_still_makes_a_name() -> None:
    assert naming.slice_name("gpu.example.com", "a/b", 2) == "0002-gpu.example.com-a-b"


def test_slices_sort_by_their_index() -> None:
    names = [naming.slice_name(DRIVER, "rack-a", index) for index in (0, 1, 15, 16, 4095)]
    assert names == sorted(names)
