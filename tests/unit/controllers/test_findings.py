"""What is not as the books say is told when it begins and when it is over, and not in between."""

import asyncio
from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from jackfield.controllers.findings import AGAIN_SECONDS, REMEMBERED_MAX, SUM_SECONDS, Findings
from jackfield.model.event import Event
from jackfield.model.meta import Object
from jackfield.model.names import FabricName, Seconds
from jackfield.model.plan import Finding
from jackfield.model.policy import Policy
from jackfield.sim import loop
from jackfield.sim.clock import running
from jackfield.testing import builders as b

FOREIGN = Finding("node/n1", "ForeignDevice", "9 is attached by somebody else.", b.FABRIC)
TWO = replace(FOREIGN, what="8 and 9 are attached by somebody else.", count=2)
MISSING = Finding("resource/a100-1.rack-a", "DeviceMissing", "1 is gone.", b.FABRIC)
ADOPTED = Finding("resource/a100-1.rack-a", "DeviceAdopted", "1 was found.", b.FABRIC, grave=False)
UNSHOWN = Finding("node/n1", "DeviceNotShown", "for a moment.", b.FABRIC, told=False)
NODE, RESOURCE = "Node n1", "ComposableResource a100-1.rack-a"


class Desk:
    """Findings over a store with a node and a resource, and what came of them."""

    def __init__(self, policy: Policy = b.policy()) -> None:
        self.clock = running()
        self.events: list[tuple[str, str, str, str]] = []
        self.heard: list[tuple[str, str, bool]] = []
        self.findings = Findings(
            b.world(b.node(), b.resource(), policy=policy), self.clock, self._tell, self._hear
        )

    def _tell(self, about: Object, event: Event) -> None:
        self.events.append((f"{type(about).__name__} {about.key}", event.type, event.reason, event.message))

    def _hear(self, at: Seconds, by: str, finding: Finding, *, over: bool) -> None:
        del at, by
        self.heard.append((finding.object, finding.what, over))

    def take(self, *found: Finding, key: str = "n1") -> None:
        self.findings.take("drift.decide", key, found)


def play(scene: Callable[[Desk], Awaitable[None]], policy: Policy = b.policy()) -> Desk:
    async def performance() -> Desk:
        desk = Desk(policy)
        task = asyncio.get_running_loop().create_task(desk.findings.run())
        await scene(desk)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return desk

    return loop.run(performance())


def test_a_finding_is_told_once_however_often_it_is_found() -> None:
    async def scene(desk: Desk) -> None:
        for _ in range(5):
            desk.take(FOREIGN, ADOPTED)
            await desk.clock.sleep(Seconds(30))

    desk = play(scene)
    assert desk.events == [
        (NODE, "Warning", "ForeignDevice", FOREIGN.what),
        (RESOURCE, "Normal", "DeviceAdopted", ADOPTED.what),
    ]


def test_other_words_are_told_and_are_no_end() -> None:
    async def scene(desk: Desk) -> None:
        desk.take(FOREIGN)
        desk.take(TWO)

    assert [(reason, what) for _, _, reason, what in play(scene).events] == [
        ("ForeignDevice", FOREIGN.what),
        ("ForeignDevice", TWO.what),
    ]


def test_the_end_is_told_to_whom_the_beginning_was() -> None:
    async def scene(desk: Desk) -> None:
        desk.take(FOREIGN, MISSING, UNSHOWN)
        desk.take(MISSING)
        desk.take()

    desk = play(scene)
    assert [(about, reason) for about, _, reason, _ in desk.events] == [
        (NODE, "ForeignDevice"),
        (RESOURCE, "DeviceMissing"),
        (NODE, "DriftOver"),
        (RESOURCE, "DriftOver"),
    ]
    assert (NODE, "Normal", "DriftOver", f"over: {FOREIGN.what}") in desk.events
    over = [(name, what) for name, what, over in desk.heard if over]
    assert over == [
        ("node/n1", FOREIGN.what),
        ("node/n1", UNSHOWN.what),
        (MISSING.object, MISSING.what),
    ]


def test_what_comes_and_goes_all_the_time_is_told_as_seldom_as_that() -> None:
    async def scene(desk: Desk) -> None:
        for _ in range(20):  # for ten minutes
            desk.take(MISSING)
            await desk.clock.sleep(Seconds(15))
            desk.take()
            await desk.clock.sleep(Seconds(15))
        desk.take(MISSING)  # it was told ten minutes ago
        desk.take()

    events = [reason for _, _, reason, _ in play(scene).events]
    assert events == ["DeviceMissing", "DriftOver", "DeviceMissing"]
    assert Seconds(20 * 30.0) == AGAIN_SECONDS


def test_what_is_about_nothing_that_can_be_told_is_only_heard() -> None:
    async def scene(desk: Desk) -> None:
        desk.take(replace(FOREIGN, object="node/n7"), replace(FOREIGN, object="fabric/rack-a"), UNSHOWN)
        desk.take()

    desk = play(scene)
    assert desk.events == []
    assert len(desk.heard) == 6


def test_nothing_is_written_by_whoever_only_observes() -> None:
    async def scene(desk: Desk) -> None:
        desk.take(FOREIGN)
        desk.take()

    desk = play(scene, b.policy(base=Policy(observe_only=True)))
    assert (desk.events, len(desk.heard)) == ([], 2)


def test_a_fabric_is_summed_up_when_it_has_changed_and_not_more_often() -> None:
    other = replace(FOREIGN, object="node/n2", fabric=FabricName("rack-b"))

    async def scene(desk: Desk) -> None:
        desk.take(FOREIGN)
        await desk.clock.sleep(Seconds(SUM_SECONDS / 2))
        desk.take(TWO, MISSING)
        desk.take(other, key="n2")
        assert desk.findings.counts(b.FABRIC) == {"ForeignDevice": 2, "DeviceMissing": 1}
        await desk.clock.sleep(Seconds(60))
        desk.take(MISSING)
        desk.take(TWO, MISSING)
        await desk.clock.sleep(Seconds(60))
        desk.take()
        assert desk.findings.counts(b.FABRIC) == {}
        await desk.clock.sleep(Seconds(60))

    sums = [one for one in play(scene).heard if one[0].startswith("fabric/")]
    assert sums == [
        ("fabric/rack-a", "2 attached by somebody else, 1 gone from where they should be", False),
        ("fabric/rack-b", "1 attached by somebody else", False),
        ("fabric/rack-a", "books and fabric agree again", True),
    ]


def test_whoever_begins_anew_tells_anew() -> None:
    async def scene(desk: Desk) -> None:
        desk.take(FOREIGN)
        desk.findings.clear()
        desk.take(FOREIGN)

    assert len(play(scene).events) == 2


def test_what_is_remembered_is_bounded() -> None:
    async def scene(desk: Desk) -> None:
        for number in range(REMEMBERED_MAX + 2):
            desk.take(replace(FOREIGN, what=f"{number}"))
        desk.take(FOREIGN)
        desk.take(replace(FOREIGN, what="0"))

    told = [what for *_, what in play(scene).events]
    assert told[-2:] == [FOREIGN.what, "0"]
    assert len(told) == REMEMBERED_MAX + 4
