"""A migration's steps: which are done, what is in the way of the next, and what can be undone."""

import pytest
from msgspec.structs import replace

from jackfield.core import derive, migrate
from jackfield.core.migrate import Report, Step
from jackfield.model.cohdi import Installation, Release
from jackfield.model.composition import ComposableResource, ResourceState
from jackfield.testing import builders as b
from unit.core.test_derive import DRIVERS, FOUND, OPERATORS

UNKEPT = Release("cohdi", "cohdi", lost=("ConfigMap/composable-dra-dds",))
KEPT = Release("cohdi", "cohdi", kept=("ConfigMap/composable-dra-dds",))
THEIRS = b.request(1, name="composability-x7k2p")
MINE = b.request(1, name="mine")
ONLINE = b.resource()
BEGINNING = Installation(
    FOUND,
    definitions=("composableresources",),
    release=UNKEPT,
    asks_webhook=True,
    resources=(ONLINE,),
    requests=(THEIRS, MINE),
)
REMEMBERED = replace(FOUND, remembered=derive.environment(FOUND))
PROTECTED = replace(BEGINNING, settings=REMEMBERED, release=KEPT)
IDLE = tuple(replace(one, replicas=0) for one in (DRIVERS, OPERATORS))
STOPPED = replace(PROTECTED, settings=replace(REMEMBERED, programs=IDLE), asks_webhook=False)
STARTED = replace(STOPPED, replicas=("one",))
UNINSTALLED = replace(STARTED, settings=replace(REMEMBERED, programs=()), release=None)
RETURNED = replace(UNINSTALLED, requests=(MINE,))
WAY = {
    Step.PROTECT: BEGINNING,
    Step.STOP: PROTECTED,
    Step.START: STOPPED,
    Step.UNINSTALL: STARTED,
    Step.RETURN: UNINSTALLED,
}


def next_of(there: Installation) -> migrate.Stage:
    found = migrate.report(there).next
    assert found is not None
    return found


@pytest.mark.parametrize("step", WAY)
def test_the_steps_come_one_after_the_other_and_nothing_is_in_the_way(step: Step) -> None:
    stage = next_of(WAY[step])
    assert (stage.step, stage.obstacles) == (step, ())


def test_in_the_end_nothing_is_left_to_do() -> None:
    assert migrate.report(RETURNED).next is None


@pytest.mark.parametrize(
    ("there", "last"),
    [(BEGINNING, None), (PROTECTED, Step.PROTECT), (STOPPED, Step.STOP), (STARTED, Step.STOP)],
)
def test_the_last_of_our_own_steps_can_be_undone(there: Installation, last: Step | None) -> None:
    found = migrate.report(there).last
    assert (found.step if found else None) == last


def test_cohdi_is_not_started_again_beside_us() -> None:
    assert [migrate.report(one).no_way_back for one in (BEGINNING, PROTECTED, STOPPED)] == [(), (), ()]
    (words,) = migrate.report(STARTED).no_way_back
    assert words.startswith("Jackfield still runs (one): stop it first")


COMMANDS = {
    Step.PROTECT: "",
    Step.STOP: "",
    Step.START: "jackfield rbac --part controllers --cohdi --driver gpu.nvidia.com | kubectl apply -f -",
    Step.UNINSTALL: "helm uninstall cohdi --namespace cohdi",
    Step.RETURN: "kubectl delete --wait=false composabilityrequests composability-x7k2p",
}


@pytest.mark.parametrize("step", WAY)
def test_what_is_not_ours_to_do_comes_with_its_command(step: Step) -> None:
    assert next_of(WAY[step]).command.startswith(COMMANDS[step])
    assert bool(next_of(WAY[step]).command) == bool(COMMANDS[step])


def test_without_helm_there_is_nothing_to_protect_from_and_cohdi_goes_by_hand() -> None:
    by_hand = replace(STARTED, release=None)
    assert "delete CoHDI's Deployments" in next_of(by_hand).command
    assert migrate.report(replace(BEGINNING, release=None, settings=REMEMBERED)).stages[0].done


@pytest.mark.parametrize("state", [one for one in ResourceState if one is not ResourceState.ONLINE])
def test_cohdi_is_not_stopped_in_the_middle_of_an_order(state: ResourceState) -> None:
    moving = b.resource("a100-2", state=state, error="no answer")
    (obstacle,) = next_of(replace(PROTECTED, resources=(ONLINE, moving))).obstacles
    assert f"is {state.value or 'new'} (no answer): let CoHDI finish it first" in obstacle


def test_what_is_being_deleted_is_not_finished_either() -> None:
    leaving = b.resource("a100-2", deleted=b.NOW)
    (obstacle,) = next_of(replace(PROTECTED, resources=(leaving,))).obstacles
    assert "is being deleted: let CoHDI" in obstacle


def test_once_stopped_it_finishes_nothing_and_is_not_waited_for() -> None:
    half = replace(STOPPED, asks_webhook=True, resources=(b.resource(state=ResourceState.ATTACHING),))
    assert (next_of(half).step, next_of(half).obstacles) == (Step.STOP, ())


OBSTACLES = {
    "the gate is off": replace(BEGINNING, gates=("the gate is off",)),
    "definitions are not there": replace(BEGINNING, definitions=()),
    "composable-dra-dds is not there": replace(BEGINNING, settings=replace(FOUND, there=False)),
    "set TENANT_ID": replace(STOPPED, settings=replace(STOPPED.settings, remembered={}, programs=())),
}


@pytest.mark.parametrize("words", OBSTACLES)
def test_what_is_in_the_way_is_said(words: str) -> None:
    said = [one for stage in migrate.report(OBSTACLES[words]).stages for one in stage.obstacles]
    assert any(words in one for one in said)


# --- what is told


def told(there: Installation) -> Report:
    return migrate.report(there)


def test_what_there_is_is_told() -> None:
    assert told(BEGINNING).found == (
        "CoHDI: composable-dra-driver, operator running",
        "Helm: release cohdi in namespace cohdi",
        "books: 2 requests, 1 resources: 1 Online",
        "models: A100 (gpu.nvidia.com)",
        "fabric 1: fsas-fm at https://cdimgr.localdomain, 1 nodes",
        "fabric 2: fsas-fm at https://cdimgr.localdomain, 1 nodes",
    )


def test_nothing_is_told_as_nothing() -> None:
    empty = replace(
        STOPPED, release=None, resources=(), settings=replace(STOPPED.settings, models=(), workers=())
    )
    assert told(empty).found == ("CoHDI: none of it runs", "books: 2 requests, 0 resources", "models: none")


def test_an_address_that_nobody_knows_is_told_as_such() -> None:
    lost = replace(STOPPED, settings=replace(FOUND, programs=()))
    assert "fabric 1: fsas-fm at an unknown address, 1 nodes" in told(lost).found


def test_what_cohdi_does_on_the_nodes_and_we_do_not_is_told_while_it_is_there() -> None:
    assert [one for one in told(BEGINNING).notes if "does nothing on the nodes" in one]
    assert not [one for one in told(UNINSTALLED).notes if "does nothing on the nodes" in one]
    ours = replace(FOUND, models=(replace(FOUND.models[0], driver_name="fabric.jackfield.dev"),))
    assert not [one for one in told(replace(BEGINNING, settings=ours)).notes if "nothing on the nodes" in one]


def labelled(count: int) -> tuple[ComposableResource, ...]:
    made = [b.resource(f"a100-{number}") for number in range(count)]
    labels = {"cohdi.io/ready-to-detach-device-id": "GPU-1"}
    return tuple(replace(one, metadata=replace(one.metadata, labels=labels)) for one in made)


def test_what_would_detach_others_devices_is_told_the_first_five_by_name() -> None:
    (note,) = (one for one in told(replace(STOPPED, resources=labelled(7))).notes if "would detach" in one)
    assert "a100-4.rack-a and 2 more would detach" in note


def test_resources_of_models_that_are_not_listed_are_told() -> None:
    odd = b.resource(model="H100")
    assert (
        "resources of H100 stay as they are: device-info does not list the model"
        in told(replace(STOPPED, resources=(odd,))).notes
    )
