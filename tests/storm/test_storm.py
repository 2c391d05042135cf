"""Small storms: every kind of manager, every kind of fault, and processes that are killed."""

from pathlib import Path

import pytest

from jackfield import fabric
from jackfield.fabric_manager.faces import registry
from jackfield.fabric_manager.faults import Kind
from storm.managers import FACES, KINDS, WAYS
from storm.run import Forecast, run
from storm.weather import LASTING, PASSING

ORDERS = 40
MANAGERS = (
    ("native", "fsas-fm"),
    *(
        pytest.param((kind,), marks=pytest.mark.slow)
        for kind in KINDS
        if kind not in {"native", "fsas-fm", "sunfish"}
    ),
)
"""One that knows order ids and one that does not; the others take their time. Sunfish is Redfish in a dialect that
reads every machine for every order: from a manager that lives for seconds, a busy computer hardly ever gets that."""


def test_a_storm_has_every_kind_of_fault() -> None:
    assert {one.kind for one in (*LASTING, *PASSING)} == set(Kind)


def test_a_storm_blows_at_managers_that_ours_can_be() -> None:
    assert set(WAYS) <= set(fabric.TYPES)
    assert set(FACES) == set(WAYS)
    assert set(FACES.values()) <= set(registry.FACES)


@pytest.mark.parametrize("kinds", MANAGERS, ids="-and-".join)
def test_nothing_is_lost_or_doubled_in_a_storm(tmp_path: Path, kinds: tuple[str, ...]) -> None:
    """Whatever is wrong at any moment, or when all is quiet again, `run` raises."""
    forecast = Forecast(
        kinds,
        ORDERS,
        machines=8,
        manager_lives=(2.0, 5.0),
        operator_lives=(4.0, 5.0),
        operator_kills=1,
        kills_min=1,
        parts=("scaler", "operator"),
    )
    reports = run(forecast, tmp_path)
    assert [one.fabric for one in reports] == list(kinds)
    for one in reports:
        assert one.orders >= ORDERS
        assert one.attached >= one.detached > 0
        assert one.manager_kills > 0
        assert one.operator_kills == 1
        assert {fault.kind for fault in LASTING} <= set(one.faults)
