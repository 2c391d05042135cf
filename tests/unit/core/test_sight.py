"""Which device of a node a manager means, however each of them spells its names."""

import pytest

from jackfield.core import sight
from jackfield.model.composition import ResourceState
from jackfield.model.host import Facts, HostDevice, Identity, Seen
from jackfield.model.names import PhysicalID
from jackfield.testing import builders as b

ALL = (Identity.UUID, Identity.SERIAL, Identity.ADDRESS)
ONE = Seen(PhysicalID("GPU-ab12-cd"), "GPU-ab12-cd", "0000:17:00.0", "GPU-ab12-cd", "1320621012345")
TWO = Seen(PhysicalID("00-1b-21-aa"), "00-1b-21-aa", "0000:65:00.0", "", "00-1b-21-aa")
THREE = Seen(PhysicalID("0000:66:00.0"), "0000:66:00.0", "0000:66:00.0", "", "00-1B-21-AA")

NAMES = {
    "by the name that the node itself gives it": ("GPU-ab12-cd", "", ALL, ONE),
    "a UUID without dashes and in capitals": ("AB12CD", "", ALL, ONE),
    "a serial number beside the manager's own name": ("block-7", "1320621012345", ALL, ONE),
    "a serial number as a hexadecimal number": ("0x001b21aa", "", (Identity.SERIAL,), TWO),
    "what the node wrote itself comes before all that is alike": ("block-7", "00-1b-21-aa", ALL, TWO),
    "an address": ("0000:65:00.0", "", ALL, TWO),
    "an address without its domain": ("17:00.0", "", ALL, ONE),
    "an address with a long domain, as libraries write it": ("00000000:17:00.0", "", ALL, ONE),
    "what no choice allows is not compared": ("17:00.0", "", (Identity.UUID, Identity.SERIAL), None),
    "a name that nothing goes by": ("block-7", "", ALL, None),
    "a name without a letter": ("--", "", ALL, None),
    "no name": ("", "", ALL, None),
}


@pytest.mark.parametrize(("physical", "serial", "order", "found"), NAMES.values(), ids=NAMES)
def test_a_device_is_recognised(
    physical: str, serial: str, order: tuple[Identity, ...], found: Seen | None
) -> None:
    there = Facts((ONE, TWO))
    made = b.resource(state=ResourceState.ATTACHING, physical=physical, uuid=serial)
    assert sight.of(made, there, order) == found


def test_two_devices_that_go_by_one_name_are_not_taken_for_one_another() -> None:
    made = b.resource(physical="001b21aa")
    blurred = sight.of(made, Facts((ONE, TWO, THREE)), ALL)
    what = "001b21aa to be one device; 0000:65:00.0 and 0000:66:00.0 go by that name alike"
    assert blurred == sight.Blurred(what, (TWO, THREE))


def test_a_second_name_tells_two_devices_apart() -> None:
    made = b.resource(physical="001b21aa", uuid="66:00.0")
    assert sight.of(made, Facts((TWO, THREE)), ALL) == THREE


BLANK = (
    "",
    "0",
    "000",
    "0000000000000000",
    "ffff-ffff",
    "N/A",
    "None",
    "[Unknown]",
    "To be filled by O.E.M.",
    "- -",
)
TELLING = ("1320621012345", "GPU-ab12-cd", "00-1b-21-ff-ff-aa-bb-cc", "0001", "0x1a2b")


@pytest.mark.parametrize(
    ("name", "said"), [*((one, False) for one in BLANK), *((one, True) for one in TELLING)]
)
def test_a_blank_number_tells_nothing(name: str, *, said: bool) -> None:
    assert sight.tells(name) == said


def test_a_device_goes_by_the_best_name_that_no_other_has() -> None:
    devices = (
        HostDevice("0000:01:00.0", uuid="GPU-1111-2", serial="77777-1"),
        HostDevice("0000:02:00.0", uuid="same-same-1", serial="77777-2"),
        HostDevice("0000:03:00.0", uuid="SAME-same-1", serial="0000"),
        HostDevice("0000:04:00.0"),
        HostDevice("region0", uuid="77ab-1", serial="77AB-1"),
    )
    names = [one.physical for one in sight.sights(devices)]
    assert names == ["GPU-1111-2", "77777-2", "0000:03:00.0", "0000:04:00.0", "77ab-1"]


def test_a_name_that_two_devices_have_is_still_told() -> None:
    devices = (HostDevice("0000:01:00.0", serial="77777-1"), HostDevice("0000:02:00.0", serial="77777-1"))
    assert [one.serial for one in sight.sights(devices)] == ["77777-1", "77777-1"]
