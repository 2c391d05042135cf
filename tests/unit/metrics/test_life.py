"""A pod's life moves the figures as it should: each stage is timed, each end counted, and nothing is left over."""

from jackfield.metrics.catalogue import FAMILIES
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposabilityRequest, ComposableResource
from jackfield.model.names import FabricName, Seconds, named
from jackfield.model.node import Node
from jackfield.model.pod import Pod
from jackfield.testing import builders as b
from unit.metrics.stage import ANY, POLICY, Stage, play

PLACE = ("rack-a", "A100")
CLAIM = b.claim("c", devices=("a100-0000",))
STAGE = "jackfield_claim_stage_seconds"


async def begun(stage: Stage) -> None:
    await stage.make(b.pod("p", "c"))
    await stage.allocate(CLAIM)


async def served(stage: Stage) -> None:
    await begun(stage)
    await stage.wait(9.0)
    await stage.bind("p")
    await stage.wait(1.0)


async def ended(stage: Stage) -> None:
    await stage.delete(Pod, "p")
    await stage.delete(ResourceClaim, "c")
    await stage.wait(30.0)


def devices(stage: Stage) -> dict[str, float]:
    """Return how many there are by state; all are of one model."""
    families = {one.name: one.samples for one in stage.figured.registry.collect()}
    return {one.labels["state"]: one.value for one in families["jackfield_devices"] if one.value}


def test_each_stage_of_a_claims_way_is_timed() -> None:
    async def scene(stage: Stage) -> None:
        await served(stage)
        took = {
            one: stage.value(f"{STAGE}_sum", *PLACE, one)
            for one in ("ordered", "attached", "visible", "ready", "bound")
        }
        assert took == {"ordered": 0.0, "attached": 5.0, "visible": 2.0, "ready": 0.0, "bound": 2.0}
        assert stage.value("jackfield_claim_seconds_sum", *PLACE, "false") == 9.0
        assert stage.value("jackfield_claim_seconds_count", *PLACE, "false") == 1.0
        assert stage.value("jackfield_conditions_total", "rack-a", "FabricDeviceReady") == 1.0
        assert stage.value("jackfield_attaches_total", *PLACE) == 1.0

    play(scene)


def test_devices_are_counted_where_they_are() -> None:
    async def scene(stage: Stage) -> None:
        assert devices(stage) == {"free": 2.0}
        await begun(stage)
        await stage.wait(1.0)
        assert devices(stage) == {"free": 1.0, "attaching": 1.0}
        assert stage.value("jackfield_orders", "rack-a", "attach") == 1.0
        await stage.wait(8.0)
        assert devices(stage) == {"free": 1.0, "in_use": 1.0}
        await stage.bind("p")
        await stage.delete(Pod, "p")
        await stage.delete(ResourceClaim, "c")
        await stage.wait(1.0)
        assert devices(stage) == {"free": 1.0, "idle": 1.0}
        await stage.until(lambda: devices(stage) == {"free": 1.0, "detaching": 1.0})
        assert stage.value("jackfield_orders", "rack-a", "detach") == 1.0
        await stage.until(lambda: devices(stage) == {"free": 2.0})
        assert stage.value("jackfield_orders", "rack-a", "detach") == 0.0

    play(scene)


def test_who_waits_is_counted_by_what_for() -> None:
    async def scene(stage: Stage) -> None:
        await begun(stage)
        await stage.wait(3.0)
        assert stage.value("jackfield_claims_waiting", "rack-a", "Attaching") == 1.0
        assert stage.value("jackfield_oldest_waiting_claim_seconds", "rack-a") == 3.0
        await stage.wait(6.0)
        assert stage.value("jackfield_claims_waiting", "rack-a", "Attaching") is None
        assert stage.value("jackfield_oldest_waiting_claim_seconds", "rack-a") == 0.0

    play(scene)


def test_a_device_that_served_is_returned_and_one_that_did_not_is_told_apart() -> None:
    async def scene(stage: Stage) -> None:
        await served(stage)
        await ended(stage)
        assert stage.value("jackfield_detaches_total", *PLACE) == 1.0
        assert stage.value("jackfield_detach_seconds_count", *PLACE) == 1.0
        assert stage.value("jackfield_unused_attaches_total", *PLACE) == 0.0
        await begun(stage)
        await stage.wait(5.5)  # attached, and not yet seen
        await ended(stage)
        assert stage.value("jackfield_detaches_total", *PLACE) == 2.0
        assert stage.value("jackfield_unused_attaches_total", *PLACE) == 1.0

    play(scene)


def test_an_attach_that_nobody_wants_any_more_is_given_up_for_that() -> None:
    async def scene(stage: Stage) -> None:
        await stage.make(b.request(1, name="by-hand"))
        await stage.wait(2.0)
        await stage.bench.cluster.delete(ComposabilityRequest, named("by-hand"), ANY)
        await stage.wait(20.0)
        assert stage.value("jackfield_attach_failures_total", *PLACE, "Unwanted") == 1.0
        assert stage.value("jackfield_attaches_total", *PLACE) == 0.0
        assert stage.value("jackfield_unused_attaches_total", *PLACE) == 0.0

    play(scene)


def test_a_warm_device_orders_nothing() -> None:
    async def scene(stage: Stage) -> None:
        await served(stage)
        await stage.delete(Pod, "p")
        await stage.delete(ResourceClaim, "c")
        await stage.wait(2.0)
        await served(stage)
        assert stage.value("jackfield_claim_seconds_sum", *PLACE, "true") == 9.0
        assert stage.value("jackfield_attaches_total", *PLACE) == 1.0
        assert stage.value(f"{STAGE}_count", *PLACE, "ready") == 2.0
        assert stage.value(f"{STAGE}_count", *PLACE, "ordered") == 1.0

    play(scene)


def test_what_a_manager_refuses_fails_by_its_reason() -> None:
    async def scene(stage: Stage) -> None:
        stage.bench.refuse("n1")
        await begun(stage)
        await stage.wait(20.0)
        assert stage.value("jackfield_attach_failures_total", *PLACE, "ManagerFailed") == 1.0
        assert stage.value("jackfield_fabric_calls_total", "rack-a", "attach", "failed") == 1.0
        assert stage.value("jackfield_conditions_total", "rack-a", "FabricDeviceReschedule") == 1.0
        assert stage.value("jackfield_attaches_total", *PLACE) == 0.0

    play(scene)


def test_calls_to_managers_are_counted_and_timed() -> None:
    async def scene(stage: Stage) -> None:
        await served(stage)
        assert stage.value("jackfield_fabric_calls_total", "rack-a", "attach", "done") == 1.0
        assert (stage.value("jackfield_fabric_calls_total", "rack-a", "attach", "working") or 0.0) >= 1.0
        looked = stage.value("jackfield_fabric_calls_total", "rack-a", "inventory", "done")
        assert stage.value("jackfield_fabric_call_seconds_count", "rack-a", "inventory") == looked
        asked = stage.value("jackfield_inventory_timestamp_seconds", "rack-a")
        assert asked is not None
        assert stage.bench.clock.now() - 5.0 <= asked <= stage.bench.clock.now()

    play(scene)


def test_decisions_actions_and_hops_are_counted() -> None:
    async def scene(stage: Stage) -> None:
        await served(stage)
        assert stage.value("jackfield_actions_total", "compose", "PutResource", "done") == 1.0
        assert stage.value("jackfield_hop_seconds_count", "PutResource") == 1.0
        assert (stage.value("jackfield_decisions_total", "scale") or 0.0) > 3.0
        assert stage.value("jackfield_queue_depth", "scale") == 0.0
        assert stage.value("jackfield_leader", "rack-a") == 1.0
        assert stage.value("jackfield_ready") == 1.0
        assert stage.value("jackfield_paused", "rack-a") == 0.0

    play(scene)


def test_the_safety_net_is_counted_when_it_is_needed_and_when_it_is_not() -> None:
    async def scene(stage: Stage) -> None:
        assert stage.value("jackfield_safety_net_timers_total", "resync") == 0.0
        await served(stage)
        await stage.wait(300.0)
        assert stage.value("jackfield_safety_net_timers_total", "resync") == 1.0
        assert devices(stage) == {"free": 1.0, "in_use": 1.0}
        assert stage.value("jackfield_attaches_total", *PLACE) == 1.0

    play(scene)


def test_a_model_that_a_new_policy_adds_has_figures_before_they_rise() -> None:
    added = ("rack-a", "H100")

    async def scene(stage: Stage) -> None:
        assert stage.value("jackfield_attaches_total", *added) is None
        stage.runner.follow(b.policy("A100", "H100", base=POLICY))
        assert stage.value("jackfield_attaches_total", *added) == 0.0
        assert stage.value("jackfield_attach_failures_total", *added, "NodeGone") == 0.0
        assert stage.value("jackfield_devices", *added, "free") == 0.0

    play(scene)


class Follower:
    """One of two replicas, which leads nothing."""

    def leads(self, fabric: FabricName) -> bool:
        del fabric
        return False

    def left(self) -> Seconds:
        return Seconds(0.0)

    def need(self, span: Seconds) -> None:
        """Ask for more in vain."""

    def doubt(self) -> None:
        """Lead nothing all the same."""


def test_who_does_not_lead_shows_that_and_counts_no_device() -> None:
    async def scene(stage: Stage) -> None:
        await stage.make(b.resource("a100-0001"))
        await stage.wait(1.0)
        assert stage.value("jackfield_leader", "rack-a") == 0.0
        assert stage.value("jackfield_ready") == 0.0
        assert "our Lease has run out" in stage.figured.trouble()
        assert devices(stage) == {}
        assert stage.value("jackfield_orders", "rack-a", "attach") is None
        await stage.allocate(CLAIM)
        await stage.wait(1.0)
        assert stage.counting.census.waiting()
        assert stage.value("jackfield_claims_waiting", "rack-a", "Unsaid") is None
        assert stage.value("jackfield_oldest_waiting_claim_seconds", "rack-a") is None
        await stage.bench.cluster.delete(ComposableResource, named("a100-0001.rack-a"), ANY)
        await stage.wait(1.0)
        assert stage.value("jackfield_detaches_total", *PLACE) == 0.0

    play(scene, Follower())


def test_a_node_that_goes_is_a_reason_too() -> None:
    async def scene(stage: Stage) -> None:
        await begun(stage)
        await stage.wait(2.0)
        await stage.bench.cluster.delete(Node, named("n1"), ANY)
        await stage.wait(20.0)
        assert stage.value("jackfield_attach_failures_total", *PLACE, "NodeGone") == 1.0

    play(scene)


def test_before_anything_is_watched_it_says_what_it_is_at() -> None:
    async def scene(stage: Stage) -> None:
        assert stage.figured.trouble() == ""
        stage.runner.synced.clear()
        assert stage.figured.trouble().startswith("waiting for the API server to show every ")
        stage.figured.starting = "the definitions are being applied"
        assert stage.figured.trouble() == "the definitions are being applied"

    play(scene)


def test_every_figure_of_the_catalogue_is_shown_and_no_other_of_ours() -> None:
    async def scene(stage: Stage) -> None:
        names = [one.name for one in stage.figured.registry.collect() if one.name.startswith("jackfield_")]
        assert sorted(names) == sorted(one.name.removesuffix("_total") for one in FAMILIES)

    play(scene)
