"""CoHDI's settings come to a policy and to managers, or to words that say what is missing."""

import pytest
from msgspec.structs import replace

from jackfield.core import derive
from jackfield.core.derive import Derived, Manager
from jackfield.model.cohdi import Program, Settings, Worker
from jackfield.model.names import FabricName, ModelName, NodeName, Seconds
from jackfield.model.policy import DeviceModel, Policy

MODEL = DeviceModel(1, ModelName("A100"), "a100", driver_name="gpu.nvidia.com")
DRIVERS = Program(
    "composable-dra",
    "composable-dra-driver",
    environment={"CDI_ENDPOINT": "https://cdimgr.localdomain", "TENANT_ID": "t", "SCAN_INTERVAL": "5s"},
    aliases={"cdimgr.localdomain": "192.0.2.1"},
)
OPERATORS = Program(
    "composable-resource-operator-system",
    "operator",
    environment={"FTI_CDI_ENDPOINT": "192.0.2.1:443", "FTI_CDI_TENANT_ID": "u", "FTI_CDI_API_TYPE": "FM"},
)
ALIAS = (
    "CoHDI's pods know cdimgr.localdomain as 192.0.2.1 by their hostAliases: "
    "give ours the same, if it does not resolve otherwise"
)
ONE = Worker(NodeName("n1"), {"cohdi.io/fabric": "1"}, "fsas-cdi://m1")
TWO = Worker(NodeName("n2"), {"cohdi.io/fabric": "2"}, "fsas-cdi://m2")
OTHER = Worker(NodeName("n3"), {}, "fsas-cdi://m3")
FOUND = Settings(
    there=True,
    models=(MODEL,),
    label_prefix="cohdi.io",
    credentials=("certificate", "client_id", "client_secret", "password", "realm", "username"),
    programs=(DRIVERS, OPERATORS),
    workers=(ONE, TWO, OTHER),
)


def without(*names: str, **told: str) -> Settings:
    """The settings without what the Deployments say of these, and with what our process is told instead."""
    programs = tuple(
        replace(one, environment={key: value for key, value in one.environment.items() if key not in names})
        for one in FOUND.programs
    )
    return replace(FOUND, programs=programs, told=told)


def test_every_fabric_that_nodes_are_labelled_with_has_its_manager_and_its_machines() -> None:
    url = "https://cdimgr.localdomain"
    assert derive.derived(FOUND) == Derived(
        Policy(models=(MODEL,)),
        (
            Manager(FabricName("1"), "fsas-fm", url, "t", "", {NodeName("n1"): "m1"}),
            Manager(FabricName("2"), "fsas-fm", url, "t", "", {NodeName("n2"): "m2"}),
        ),
        (ALIAS,),
    )


def test_a_policy_that_names_no_prefix_and_a_time_that_is_none_have_the_defaults() -> None:
    odd = replace(without(DEVICE_NO_REMOVAL_DURATION="soon"), label_prefix="")
    assert derive.derived(odd).policy == Policy(models=(MODEL,))


def test_devices_are_held_for_as_long_as_cohdi_holds_them() -> None:
    assert derive.derived(without(DEVICE_NO_REMOVAL_DURATION="30")).policy.hold_seconds == Seconds(30.0)


def test_a_cluster_manager_is_spoken_to_where_cohdis_operator_does() -> None:
    (one, _) = derive.derived(without(FTI_CDI_API_TYPE="CM", CLUSTER_ID="c")).managers
    assert (one.type, one.cluster) == ("fsas-cm", "c")
    (one, _) = derive.derived(without(FTI_CDI_API_TYPE="CM", FTI_CDI_CLUSTER_ID="d")).managers
    assert one.cluster == "d"


def test_what_our_own_process_is_told_stands_above_the_deployments_and_these_above_what_was_written_down() -> (
    None
):
    written = {"TENANT_ID": "old", "CLUSTER_ID": "old"}
    found = replace(without(TENANT_ID="new"), remembered=written)
    assert derive.environment(found)["TENANT_ID"] == "new"
    assert derive.environment(replace(found, told={}))["TENANT_ID"] == "t"
    assert derive.environment(found)["CLUSTER_ID"] == "old"
    assert "SCAN_INTERVAL" not in derive.environment(found)


def test_the_operators_address_and_tenant_will_do_where_the_driver_has_none() -> None:
    (one, _) = derive.derived(without("CDI_ENDPOINT", "TENANT_ID")).managers
    assert (one.url, one.tenant) == ("https://192.0.2.1:443", "u")


def test_where_cohdi_asks_metal3_a_machine_is_found_by_its_host() -> None:
    found = replace(without(USE_CAPI_BMH="true"), hosts={"m1": "machine-1"})
    came_to = derive.derived(found)
    assert [one.machines for one in came_to.managers] == [{"n1": "machine-1"}, {}]
    assert "no node of fabric 2 says by spec.providerID" in came_to.faults[0]


FAULTS = {
    "ConfigMap composable-dra/composable-dra-dds is not there": replace(FOUND, there=False),
    "composable-dra-dds: device-info is not YAML": replace(
        FOUND, models=(), faults=("device-info is not YAML",)
    ),
    "device-info[0].driver-name": replace(FOUND, models=(replace(MODEL, driver_name="no name"),)),
    "set CDI_ENDPOINT": without("CDI_ENDPOINT", "FTI_CDI_ENDPOINT"),
    "set TENANT_ID": without("TENANT_ID", "FTI_CDI_TENANT_ID"),
    "set CLUSTER_ID": without(FTI_CDI_API_TYPE="CM"),
    "has no realm, password": replace(FOUND, credentials=("client_id", "client_secret", "username")),
    "no node bears the label cohdi.io/fabric": replace(FOUND, workers=(OTHER,)),
    "CoHDI's operator speaks to NEC": without(CDI_PROVIDER_TYPE="NEC"),
}


@pytest.mark.parametrize("words", FAULTS)
def test_what_cannot_be_derived_is_said(words: str) -> None:
    (fault,) = derive.derived(FAULTS[words]).faults
    assert words in fault


def test_a_node_without_a_machine_is_told_and_so_is_whom_we_trust() -> None:
    found = replace(without(CDI_ENDPOINT="https://cdi.example.com:8443/x"), credentials=derive.CREDENTIALS)
    nameless = Worker(NodeName("n4"), {"cohdi.io/fabric": "1"})
    notes = derive.derived(replace(found, workers=(ONE, nameless))).notes
    assert ["n4 is of fabric 1" in notes[0], "has no certificate" in notes[1], len(notes)] == [True, True, 2]


def test_who_runs_is_who_has_replicas() -> None:
    found = replace(FOUND, programs=(DRIVERS, replace(OPERATORS, replicas=0)))
    assert derive.running(found) == (DRIVERS,)
