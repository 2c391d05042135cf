"""What the runner tells of becomes figures: results, findings, policies, and the world begun anew."""

import asyncio

import pytest
from msgspec.structs import replace

from jackfield.controllers.lead import Lead
from jackfield.controllers.runner import ALONE, OBSERVED, REWOUND
from jackfield.metrics.controllers import Counting, Figured
from jackfield.metrics.figures import result
from jackfield.model.composition import ResourceState
from jackfield.model.fabric import FabricDevice, Inventory, Order, Progress
from jackfield.model.meta import Object
from jackfield.model.names import FabricName, ModelName, NodeName, OrderID, PhysicalID, Seconds
from jackfield.model.plan import Finding, Waiting
from jackfield.model.policy import Policy
from jackfield.model.view import ObjectChanged
from jackfield.ports import Bug, Conflict, Gone, PortError, Refused, Retry
from jackfield.testing import builders as b
from unit.metrics.stage import POLICY, Stage, play, value

PLACE = ("rack-a", "A100")
RESULTS = {
    "": "done",
    OBSERVED: "observed",
    "Conflict: another version": "conflict",
    "Retry: no answer": "retry",
    "Gone: it is": "gone",
    "Refused: no": "refused",
    "Bug: ours": "bug",
    "Expired: a kind of Retry": "retry",
}


@pytest.mark.parametrize(("error", "word"), RESULTS.items(), ids=RESULTS.values())
def test_what_came_of_an_action_is_one_word(error: str, word: str) -> None:
    assert result(error) == word


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.time = float(b.NOW)

    def now(self) -> Seconds:
        return Seconds(self.time)

    async def sleep(self, duration: Seconds) -> None:
        self.time += duration


class Page:
    """Figures over a store in which nothing moves by itself."""

    def __init__(self, *objects: Object, lead: Lead = ALONE) -> None:
        self.clock = Clock()
        self.store = b.world(*objects, inventories=(b.inventory(),))
        self.figured = Figured((b.FABRIC,), self.clock)
        self.counting: Counting = self.figured.recorder(self.store, lead, {})

    def value(self, name: str, *labels: str) -> float | None:
        return value(self.figured, name, *labels)

    def found(self, about: str, reason: str, count: int = 1, *, over: bool = False) -> None:
        finding = Finding(about, reason, "words", b.FABRIC, count)
        self.counting.found(self.clock.now(), "drift.decide", finding, over=over)

    def rewind(self) -> None:
        self.counting.waits(self.clock.now(), "watch", (Waiting("kind/all", REWOUND, "everything"),))


def test_what_differs_is_counted_while_it_does() -> None:
    page = Page()
    page.found("node/n1", "ForeignDevice", 2)
    page.found("node/n2", "ForeignDevice", 1)
    page.found("fabric/rack-a", "Drift")
    assert page.counting.figures.drift() == {(b.FABRIC, "ForeignDevice"): 3}
    page.found("node/n1", "ForeignDevice", 5)
    assert page.counting.figures.drift() == {(b.FABRIC, "ForeignDevice"): 6}
    page.found("node/n1", "ForeignDevice", 5, over=True)
    assert page.counting.figures.drift() == {(b.FABRIC, "ForeignDevice"): 1}
    page.rewind()
    assert page.counting.figures.drift() == {}
    assert page.value("jackfield_api_rewinds_total") == 1.0


def test_a_policy_that_cannot_be_used_is_counted_until_one_can() -> None:
    page = Page()
    figures, in_force = page.counting.figures, [page.counting.figures.reloaded]
    for ok in (False, True):
        figures.policy_reloaded(ok, "holdSeconds: no number")
        in_force.append(figures.reloaded)
    assert in_force == [True, False, True]
    assert page.value("jackfield_policy_reloads_total") == 1.0
    assert page.value("jackfield_policy_reload_failures_total") == 1.0


def test_a_process_that_is_coming_up_shows_that_it_is_not_ready() -> None:
    page = Page()
    assert page.value("jackfield_ready") == 0.0
    assert page.figured.trouble() == "the API server is being asked for what is needed"
    assert b'jackfield_build_info{version="' in page.figured.text()


def test_calls_to_the_api_server_are_counted_by_code() -> None:
    page = Page()
    page.figured.api("get", "pods", "200", 0.1)
    page.figured.api("get", "pods", "error", 0.2)
    assert page.value("jackfield_api_calls_total", "get", "pods", "200") == 1.0
    assert page.value("jackfield_api_calls_total", "get", "pods", "error") == 1.0
    assert page.value("jackfield_api_call_seconds_count", "get") == 2.0


# --- what is found, and what is begun anew


def test_what_is_there_at_the_start_is_counted_and_is_no_news() -> None:
    resource = b.resource(state=ResourceState.ONLINE, uid="r")
    attaching = b.resource("a100-2", state=ResourceState.ATTACHING, uid="s")
    page = Page(resource, attaching)
    census = page.counting.census
    census.live = lambda: False
    census.hear((ObjectChanged(None, resource), ObjectChanged(None, attaching)))
    assert sorted((sort, count) for (_, sort), count in census.sorts().items()) == [
        ("attaching", 1),
        ("online", 1),
    ]
    order = Order(OrderID("s"), b.FABRIC, b.NODE, b.MODEL)
    census.live = lambda: True
    census.asked(order)  # by another before us, perhaps long ago
    came = b.resource("a100-2", state=ResourceState.ONLINE, physical="2", uid="s")
    census.hear((ObjectChanged(attaching, came),))
    assert page.value("jackfield_attaches_total", *PLACE) == 1.0
    for stage in ("ordered", "attached", "visible"):
        assert page.value("jackfield_claim_stage_seconds_count", *PLACE, stage) is None


def test_a_claim_that_waited_before_the_start_is_timed_from_its_timestamp() -> None:
    claim = b.claim("c", uid="c", allocated=b.NOW - 100)
    page = Page(claim)
    census = page.counting.census
    census.live = lambda: False
    census.hear((ObjectChanged(None, claim),))
    assert census.oldest() == {b.FABRIC: 100.0}
    census.live = lambda: True
    census.hear((ObjectChanged(claim, b.claim("c", uid="c", ready=True)),))
    assert census.oldest() == {}
    assert page.value("jackfield_claim_stage_seconds_sum", *PLACE, "ready") == 100.0


def test_an_allocation_that_is_heard_of_is_timed_by_our_own_clock() -> None:
    page = Page()
    page.counting.census.hear((ObjectChanged(None, b.claim("c", uid="c", allocated=b.NOW - 100)),))
    page.clock.time += 3
    assert page.counting.census.oldest() == {b.FABRIC: 3.0}


def test_a_claim_that_loses_its_device_waits_no_more() -> None:
    page = Page()
    claim = b.claim("c", uid="c")
    for end in (
        ObjectChanged(claim, b.claim("c", uid="c", devices=())),
        ObjectChanged(claim, None),
    ):
        page.counting.census.hear((ObjectChanged(None, claim),))
        assert page.counting.census.waiting() == {(b.FABRIC, "Unsaid"): 1}
        page.counting.census.hear((end,))
        assert page.counting.census.waiting() == {}


def test_what_keeps_a_claim_from_being_cleared_is_not_what_it_waits_for() -> None:
    page = Page()
    page.counting.census.hear((ObjectChanged(None, b.claim("c", uid="c")),))
    waits = page.counting.waits
    waits(b.NOW, "scale.decide", (Waiting("claim/default/c", "Attaching", "it"),))
    waits(b.NOW, "leftover.decide", (Waiting("claim/default/c", "Pod", "its pod"),))
    waits(b.NOW, "scale.decide", (Waiting("claim/default/other", "Moving", "it"),))
    assert page.counting.census.waiting() == {(b.FABRIC, "Attaching"): 1}


def test_after_time_went_back_nothing_is_remembered() -> None:
    resource, claim = b.resource(uid="r"), b.claim("c", uid="c")
    page = Page(resource, claim)
    census = page.counting.census
    census.hear((ObjectChanged(None, resource), ObjectChanged(None, claim)))
    assert census.sorts()
    assert census.waiting()
    page.rewind()
    assert census.sorts() == {}
    assert census.waiting() == {}


def test_looking_again_at_everything_counts_nothing_twice() -> None:
    resource, claim = b.resource(uid="r"), b.claim("c", uid="c")
    page = Page(resource, claim)
    for _ in range(3):
        page.counting.census.hear((ObjectChanged(None, resource), ObjectChanged(None, claim)))
    assert list(page.counting.census.sorts().values()) == [1]
    assert page.counting.census.waiting() == {(b.FABRIC, "Unsaid"): 1}


class Follower:
    """Leads nothing."""

    def leads(self, fabric: FabricName) -> bool:
        del fabric
        return False

    def left(self) -> Seconds:
        return Seconds(10.0)

    def need(self, span: Seconds) -> None:
        """Ask for more."""

    def doubt(self) -> None:
        """Lead nothing all the same."""


def lived(page: Page) -> None:
    """Have a device attached for a claim, its pod bound, and another one; then all of it gone."""
    new, online = (b.resource(state=one, uid="r") for one in (ResourceState.ATTACHING, ResourceState.ONLINE))
    leaving = b.resource(state=ResourceState.DETACHING, uid="r")
    claim, ready = b.claim("c", uid="uid-1"), b.claim("c", uid="uid-1", ready=True)
    census = page.counting.census
    for old, now in (
        (None, claim),
        (None, new),
        (new, online),
        (claim, ready),
        (b.pod("p", "c"), b.pod("p", "c", on="n1")),
        (b.pod("q", "c"), b.pod("q", "c", on="n1")),
        (online, leaving),
        (leaving, None),
    ):
        page.clock.time += 1
        census.hear((ObjectChanged(old, now),))


COUNTED = (
    ("jackfield_claim_seconds_count", "true"),
    ("jackfield_attaches_total",),
    ("jackfield_detaches_total",),
    ("jackfield_unused_attaches_total",),
    ("jackfield_detach_seconds_count",),
    ("jackfield_claim_stage_seconds_count", "ready"),
    ("jackfield_claim_stage_seconds_count", "bound"),
)


def test_a_claim_is_timed_once_however_many_pods_share_it() -> None:
    page = Page(b.claim("c", uid="uid-1"))
    lived(page)
    assert [page.value(name, *PLACE, *more) for name, *more in COUNTED] == [1.0] * len(COUNTED)


def test_who_does_not_lead_times_and_counts_nothing() -> None:
    page = Page(b.claim("c", uid="uid-1"), lead=Follower())
    lived(page)
    assert [page.value(name, *PLACE, *more) for name, *more in COUNTED] == [None] * len(COUNTED)


# --- inventories


def test_a_device_that_cannot_be_had_is_counted_for_what_it_is() -> None:
    ill = FabricDevice(PhysicalID("8"), b.MODEL, healthy=False)
    foreign = FabricDevice(PhysicalID("9"), b.MODEL, node=NodeName("n1"), ours=False)
    unlisted = FabricDevice(PhysicalID("10"), ModelName("X1"), node=NodeName("n1"), ours=False)

    async def scene(stage: Stage) -> None:
        store = stage.bench.store
        seen = store.inventory(b.FABRIC)
        assert seen is not None
        assert stage.value("jackfield_devices", *PLACE, "unhealthy") == 0.0
        store.see(b.showing(seen, ill, foreign, unlisted))
        assert stage.value("jackfield_devices", *PLACE, "unhealthy") == 1.0
        assert stage.value("jackfield_devices", *PLACE, "foreign") == 1.0
        assert stage.value("jackfield_devices", "rack-a", "other", "foreign") == 1.0
        assert stage.value("jackfield_devices", "rack-a", "X1", "foreign") is None

    play(scene)


PAUSES = {
    "paused": (Policy(paused=True), 1.0),
    "observed": (Policy(observe_only=True), 1.0),
    "this fabric is paused": (Policy(fabrics_paused=(b.FABRIC,)), 1.0),
    "another fabric is paused": (Policy(fabrics_paused=(FabricName("rack-b"),)), 0.0),
}


@pytest.mark.parametrize(("base", "shown"), PAUSES.values(), ids=PAUSES)
def test_a_pause_is_shown(base: Policy, shown: float) -> None:
    async def scene(stage: Stage) -> None:
        assert stage.value("jackfield_paused", "rack-a") == shown

    play(scene, policy=b.policy(base=replace(base, hold_seconds=POLICY.hold_seconds)))


# --- managers that fail


class Failing:
    """A manager that answers every call with an error."""

    def __init__(self, error: PortError) -> None:
        self._error = error

    async def inventory(self) -> Inventory:
        raise self._error

    async def attach(self, order: Order) -> Progress:
        del order
        raise self._error

    async def detach(self, order: Order) -> Progress:
        del order
        raise self._error


ERRORS = {
    "retry": Retry("no"),
    "gone": Gone("no"),
    "refused": Refused("no"),
    "conflict": Conflict("no"),
    "bug": Bug("no"),
}


@pytest.mark.parametrize(("word", "error"), ERRORS.items(), ids=ERRORS)
def test_an_error_of_a_manager_is_counted_and_passed_on(word: str, error: PortError) -> None:
    figured = Figured((b.FABRIC,), Clock())
    fabric = figured.counted({b.FABRIC: Failing(error)})[b.FABRIC]
    order = Order(OrderID("o"), b.FABRIC, b.NODE, b.MODEL)
    for call in (fabric.inventory, lambda: fabric.attach(order), lambda: fabric.detach(order)):
        with pytest.raises(type(error)):
            asyncio.run(call())
    for verb in ("inventory", "attach", "detach"):
        assert value(figured, "jackfield_fabric_calls_total", "rack-a", verb, word) == 1.0
        assert value(figured, "jackfield_fabric_call_seconds_count", "rack-a", verb) == 1.0
