"""What services may do differently, word for word, the Redfish adapter understands; and it asks no more than needed."""

import asyncio

import msgspec
import pytest

from jackfield.codec import redfish
from jackfield.fabric.http import Answer, Unsent
from jackfield.fabric.redfish.adapter import RedfishFabric
from jackfield.model.fabric import Done, Failed, Progress, Working
from jackfield.model.names import OrderID, PhysicalID, Seconds
from jackfield.ports import Refused, Retry
from jackfield.sim import clock
from unit.fabric.redfish_paper import (
    EXPANDS,
    ORDER,
    Paper,
    answer,
    block,
    error,
    link,
    play,
    settled,
    shown,
    small,
    system,
)

B1 = f"{redfish.BLOCKS}/b-1"
N1 = f"{redfish.SYSTEMS}/n-1"
ADD = f"{N1}/Actions/ComputerSystem.AddResourceBlock"
REMOVE = f"{N1}/Actions/ComputerSystem.RemoveResourceBlock"
RESERVED = {"CompositionStatus": {"CompositionState": "Unused", "Reserved": True}}
MONITOR = "/redfish/v1/TaskService/TaskMonitors/7"


# --- few calls


def many(count: int, features: dict[str, object] | None = None) -> Paper:
    return Paper(system("n-1"), *(block(f"b-{number}") for number in range(count)), features=features)


@pytest.mark.parametrize(
    ("features", "first", "again"),
    [(None, 2005, 1003), ({"ExpandQuery": {"NoLinks": True}}, 1004, 2), (EXPANDS, 4, 2)],
    ids=["not expanded", "one level", "two levels"],
)
def test_a_thousand_blocks_are_read_side_by_side_and_expanded_only_where_that_is_announced(
    features: dict[str, object] | None, first: int, again: int
) -> None:
    paper = many(1000, features)

    async def scene(fabric: RedfishFabric) -> None:
        assert len((await shown(fabric)).devices) == 1000
        reads = len(paper.calls("GET"))
        assert reads - 1 == first  # one more to find where sessions are made
        assert ("?" in "".join(one.path for one in paper.asked)) == (features is not None)
        await shown(fabric)
        assert len(paper.calls("GET")) - reads == again
        assert paper.at_once_most <= 9

    play(paper, scene)


def test_whoever_asks_after_a_change_is_shown_it_also_if_an_older_inventory_is_still_being_read() -> None:
    paper = many(300)

    async def scene(fabric: RedfishFabric) -> None:
        await shown(fabric)
        await clock.running().sleep(Seconds(100.0))
        paper.reading_seconds = 0.05
        older = asyncio.create_task(fabric.inventory())
        await clock.running().sleep(Seconds(0.5))
        assert isinstance(await settled(fabric), Done)
        assert not older.done()
        assert [one.id for one in (await shown(fabric)).devices if one.node] == ["b-1"]
        assert [one.id for one in (await older).devices if one.node] == []

    play(paper, scene)


def test_what_did_not_change_is_not_sent_again() -> None:
    paper = small()

    async def scene(fabric: RedfishFabric) -> None:
        before = await shown(fabric)
        paper.asked.clear()
        assert await shown(fabric) is before
        assert all("If-None-Match" in one.headers for one in paper.asked if one.path != redfish.SERVICE_ROOT)

    play(paper, scene)


def test_a_service_that_cannot_expand_as_it_says_is_read_without() -> None:
    paper = many(3, EXPANDS)
    for path in (redfish.SYSTEMS, redfish.BLOCKS):
        for query in ("?$expand=.", "?$expand=.($levels=2)"):
            paper.told["GET", path + query] = [error(501, "not yet")]

    async def scene(fabric: RedfishFabric) -> None:
        assert len((await shown(fabric)).devices) == 3
        assert len(paper.calls("GET", f"{redfish.SYSTEMS}?")) == 1

    play(paper, scene)


def page(path: str, following: str, *members: str) -> Answer:
    body = {redfish.ID: path, "Members": [link(one) for one in members], redfish.NEXT_LINK: following}
    return Answer(200, msgspec.json.encode({key: one for key, one in body.items() if one}))


def test_a_list_on_several_pages_is_read_to_its_end() -> None:
    paper = small()
    second = f"{redfish.BLOCKS}?$skip=1"
    paper.told["GET", redfish.BLOCKS] = [page(redfish.BLOCKS, second, B1)]
    paper.told["GET", second] = [page(redfish.BLOCKS, "", f"{redfish.BLOCKS}/b-2")]
    inventory = play(paper, shown)
    assert [one.id for one in inventory.devices] == ["b-1", "b-2"]


def test_a_list_without_an_end_is_an_error_that_says_so() -> None:
    paper = small()
    paper.told["GET", redfish.BLOCKS] = [page(redfish.BLOCKS, redfish.BLOCKS, B1)] * 3

    async def scene(fabric: RedfishFabric) -> None:
        with pytest.raises(Retry, match=r"ResourceBlocks has no end: 1 members on 1 pages$"):
            await fabric.inventory()

    play(paper, scene)


# --- what is shown

NIC = "/redfish/v1/Chassis/1/NetworkAdapters/n"
ODDITIES: dict[str, dict[str, object]] = {
    f"{redfish.BLOCKS}/two": {
        "Id": "two",
        "Processors": [
            link(f"{redfish.BLOCKS}/b-1/Processors/b-1"),
            link(f"{redfish.BLOCKS}/b-2/Processors/b-2"),
        ],
    },
    f"{redfish.BLOCKS}/none": {"Id": "none", "ResourceBlockType": ["Storage"]},
    f"{redfish.BLOCKS}/own": {
        "Id": "own",
        "ResourceBlockType": ["Compute"],
        "Processors": [link(f"{N1}/cpu")],
    },
    f"{redfish.BLOCKS}/nic": {
        "Id": "nic",
        "NetworkInterfaces": [link(f"{redfish.BLOCKS}/nic/NetworkInterfaces/1")],
    },
    f"{redfish.BLOCKS}/nic/NetworkInterfaces/1": {"Id": "1", "Links": {"NetworkAdapter": link(NIC)}},
    NIC: {"Id": "n", "Model": "NIC-200G", "SerialNumber": "N-1"},
    f"{redfish.BLOCKS}/mem": {"Id": "mem", "Memory": [link(f"{redfish.BLOCKS}/mem/Memory/1")]},
    f"{redfish.BLOCKS}/mem/Memory/1": {"Id": "1", "Model": "CXL", "CapacityMiB": 1024, "SerialNumber": "M-1"},
}


def test_a_block_is_one_device_of_its_kind_or_none() -> None:
    inventory = play(Paper(system("n-1"), block("b-1"), block("b-2"), ODDITIES), shown, models=[])
    found = {str(one.id): (one.type, str(one.model), one.serial, one.capacity) for one in inventory.devices}
    assert found == {
        "b-1": ("gpu", "A100", "GPU-b-1", {}),
        "b-2": ("gpu", "A100", "GPU-b-2", {}),
        "nic": ("nic", "NIC-200G", "N-1", {}),
        "mem": ("cxlmemory", "CXL", "M-1", {"memory": "1024Mi"}),
    }


@pytest.mark.parametrize(
    ("more", "healthy"),
    [
        ({}, [True]),
        ({"Status": {"State": "Enabled", "Health": "OK"}}, [True]),
        ({"Status": {"Health": "Warning"}}, [True]),
        ({"Status": {"Health": "Critical"}}, [False]),
        ({"Status": {"State": "Disabled"}}, [False]),
        ({"Status": {"State": "Absent"}}, []),
        ({"CompositionStatus": {"CompositionState": "Failed"}}, [False]),
        ({"CompositionStatus": {"CompositionState": "Unavailable"}}, [False]),
        ({"CompositionStatus": {"CompositionState": "Composing"}}, [False]),
        ({"CompositionStatus": {"CompositionState": "Composed"}}, [False]),
        ({"CompositionStatus": {"CompositionState": "Unused", "Reserved": True}}, [False]),
        ({"CompositionStatus": None}, [True]),
    ],
)
def test_only_what_could_be_ordered_is_shown_as_healthy_in_the_pool(
    more: dict[str, object], healthy: list[bool]
) -> None:
    devices = play(Paper(system("n-1"), block("b-1", more=more)), shown).devices
    assert [one.healthy for one in devices] == healthy


def test_devices_of_other_machines_than_ours_are_shown_there_as_somebody_elses() -> None:
    paper = Paper(
        system("n-1", "b-1", UUID="AB-1"),
        system("n-2", "b-2"),
        block("b-1", "Composed"),
        block("b-2", "Composed"),
        block("b-3"),
    )
    inventory = play(paper, shown, machines={"worker-7": "ab-1"})
    assert [one.node for one in inventory.machines] == ["worker-7"]
    places = {str(one.id): (str(one.node), one.ours) for one in inventory.devices}
    assert places == {"b-1": ("worker-7", True), "b-2": ("n-2", False), "b-3": ("", True)}


@pytest.mark.parametrize(
    ("paper", "options", "said"),
    [
        (
            Paper(system("n-1"), {f"{redfish.SYSTEMS}/x": {"Id": "x", "HostName": "n-1"}}),
            {},
            "Systems/n-1 and /redfish/v1/Systems/x are both 'n-1'; say in options.machines, by UUID,",
        ),
        (
            Paper(system("n-1"), block("b-1"), block("b-2")),
            {"identity": "uuid"},
            "",
        ),
        (
            Paper(
                system("n-1"),
                block("b-1"),
                {f"{redfish.BLOCKS}/b-9": {"Id": "b-9", "Processors": [link(f"{B1}/Processors/b-1")]}},
            ),
            {"identity": "serial"},
            "are both device 'GPU-b-1': say another options.identity",
        ),
    ],
)
def test_what_is_not_clear_is_refused_with_what_to_say(
    paper: Paper, options: dict[str, object], said: str
) -> None:
    async def scene(fabric: RedfishFabric) -> str:
        try:
            await fabric.inventory()
        except Refused as refused:
            return str(refused)
        return ""

    told = play(paper, scene, **options)
    assert said in told
    assert bool(said) == bool(told)


@pytest.mark.parametrize("missing", ["Systems", "CompositionService"])
def test_a_service_that_cannot_compose_is_told_what_it_lacks(missing: str) -> None:
    paper = small()
    del paper.documents[redfish.ROOT][missing]

    async def scene(fabric: RedfishFabric) -> None:
        with pytest.raises(Retry, match=rf"the service shows no {missing}: it cannot compose"):
            await fabric.inventory()

    play(paper, scene)


# --- composing


def test_a_block_is_reserved_as_it_was_seen_and_then_composed() -> None:
    paper = small()
    assert play(paper, settled) == Done(PhysicalID("b-1"), "GPU-b-1")
    changes = [one for one in paper.asked if one.method in {"PATCH", "POST"} and "Session" not in one.path]
    reserve, add = changes
    assert (reserve.path, reserve.headers["If-Match"]) == (B1, '"0"')
    assert msgspec.json.decode(reserve.body) == {"CompositionStatus": {"Reserved": True}}
    assert (add.path, msgspec.json.decode(add.body)) == (
        ADD,
        {"ResourceBlock": link(B1), "ResourceBlockETag": '"1"'},
    )


def test_a_block_that_changed_is_looked_at_again_before_it_is_reserved() -> None:
    paper = small()
    paper.told["PATCH", B1] = [error(412, "old")] * 2
    assert play(paper, settled) == Done(PhysicalID("b-1"), "GPU-b-1")
    assert len(paper.calls("PATCH", B1)) == 3


@pytest.mark.parametrize(
    ("path", "listed"), [(B1, 1), (f"{redfish.SYSTEMS}/n-1", 2)], ids=["block", "machine"]
)
def test_a_page_about_something_else_says_nothing(path: str, listed: int) -> None:
    paper = small()
    shown, other = (
        Answer(200, msgspec.json.encode({**paper.documents[path], **link(about)}))
        for about in (path, "/redfish/v1/Other")
    )
    paper.told["GET", path] = [*([shown] * listed), other]
    with pytest.raises(Retry, match=f"{path} was asked for, and the answer is about /redfish/v1/Other"):
        play(paper, lambda fabric: fabric.detach(ORDER))


def test_a_block_that_somebody_took_meanwhile_is_not_taken_from_him() -> None:
    paper = small()

    def taken() -> Answer:
        paper.move(B1, f"{redfish.SYSTEMS}/n-2")
        return error(412, "old")

    paper.told["PATCH", B1] = [taken]
    end = play(paper, settled)
    assert isinstance(end, Failed)
    assert end.reason.endswith(f"b-1 is part of {redfish.SYSTEMS}/n-2")
    assert paper.calls("POST", ADD) == []


def test_a_reservation_that_the_service_does_not_take_is_told_with_what_to_do() -> None:
    paper = small()
    paper.told["PATCH", B1] = [error(400, "Reserved is read-only", code="Base.1.0.PropertyNotWritable")]
    end = play(paper, settled)
    assert isinstance(end, Failed)
    assert "Reserved is read-only (400); say options.reserve: false" in end.reason
    assert play(small(), settled, reserve=False) == Done(PhysicalID("b-1"), "GPU-b-1")


def task(state: str, *words: str) -> dict[str, object]:
    messages = [{"Message": one, "MessageId": "Base.1.0.GeneralError"} for one in words]
    return {redfish.ID: f"{redfish.TASKS}/7", "Id": "7", "TaskState": state, "Messages": messages}


@pytest.mark.parametrize("state", ["Exception", "Killed", "Cancelled"])
@pytest.mark.parametrize("words", [("the link", "stays down"), ()])
def test_a_task_that_ends_ill_is_told_in_its_own_words_and_the_block_let_go(
    state: str, words: tuple[str, ...]
) -> None:
    paper = small()
    paper.told["POST", ADD] = [answer(202, task("Running"), location=f"http://elsewhere{MONITOR}")]
    paper.told["GET", MONITOR] = [answer(202), answer(200, task("Running")), answer(200, task(state, *words))]
    end = play(paper, settled)
    assert isinstance(end, Failed)
    assert end.reason.endswith("the link stays down" if words else f"its task ended as {state}")
    assert msgspec.json.decode(paper.calls("PATCH", B1)[-1].body) == {
        "CompositionStatus": {"Reserved": False}
    }


@pytest.mark.parametrize(
    "ends",
    [
        [answer(202), answer(204)],
        [answer(200, task("Starting")), answer(200, task("Completed"))],
        [answer(503), answer(500), answer(429), answer(202), error(404, "gone")],
    ],
    ids=["a monitor", "a task", "a monitor that stumbles and goes"],
)
def test_what_takes_its_time_is_followed_by_monitor_or_task_alike(ends: list[Answer]) -> None:
    paper = small()
    paper.told["POST", ADD] = [answer(202, {**task("New"), "TaskMonitor": MONITOR})]
    paper.told["GET", MONITOR] = [*ends]

    async def scene(fabric: RedfishFabric) -> Progress:
        while paper.told["GET", MONITOR]:
            assert await fabric.attach(ORDER) == Working()
        paper.move(B1, N1)
        return await settled(fabric)

    assert play(paper, scene) == Done(PhysicalID("b-1"), "GPU-b-1")
    assert len(paper.calls("POST", ADD)) == 1


def test_a_monitor_is_asked_as_seldom_as_it_wants_to_be() -> None:
    paper = small()
    paper.told["POST", ADD] = [Answer(202, b"{}", {"location": MONITOR, "retry-after": "5"})]
    paper.told["GET", MONITOR] = [Answer(202, b"{}", {"retry-after": "5"}) for _ in range(3)]

    async def scene(fabric: RedfishFabric) -> None:
        now = clock.running().now()
        await fabric.attach(ORDER)
        while paper.told["GET", MONITOR]:
            await clock.running().sleep(Seconds(0.1))
        assert clock.running().now() - now >= 15.0
        paper.move(B1, N1)

    play(paper, scene, effectSeconds=60.0)


def test_a_lost_answer_is_asked_for_again_and_composes_once() -> None:
    def lost() -> Answer:
        paper.move(B1, N1)
        raise Retry("the connection broke")

    paper = small()
    paper.told["POST", ADD] = [lost]
    assert play(paper, settled) == Done(PhysicalID("b-1"), "GPU-b-1")
    assert len(paper.calls("POST", ADD)) == 1


@pytest.mark.parametrize("begun", [0.0, 0.001, 1.0, 4.0])
def test_a_detach_of_an_attach_under_way_leaves_nothing_behind(begun: float) -> None:
    paper = small()
    paper.seconds = 3.0

    async def scene(fabric: RedfishFabric) -> None:
        await shown(fabric)
        attaching = asyncio.create_task(fabric.attach(ORDER))
        await clock.running().sleep(Seconds(begun))
        assert await settled(fabric, detach=True) == Done(PhysicalID("b-1"), "GPU-b-1")
        await attaching
        await clock.running().sleep(Seconds(100.0))
        assert [one.id for one in (await shown(fabric)).devices if one.node] == []
        assert len(paper.calls("POST", REMOVE)) == 1

    play(paper, scene)


def test_a_service_that_says_no_and_has_none_left_is_not_asked_again() -> None:
    paper = Paper(system("n-1"), system("n-2", "b-1"), block("b-1", "Composed"))
    paper.told["PATCH", N1] = [error(409, "none left")] * 50
    unnamed = msgspec.structs.replace(ORDER, device=PhysicalID(""))

    async def scene(fabric: RedfishFabric) -> Progress:
        return await settled(fabric, unnamed)

    assert play(paper, scene, composition="constrained") == Failed("http://127.0.0.1:1: none left (409)")
    assert len(paper.calls("PATCH", N1)) == 1


def test_what_the_service_declines_fails_in_its_words() -> None:
    paper = small()
    paper.told["POST", ADD] = [error(400, "no such slot", code="Base.1.0.PropertyValueError")]
    end = play(paper, settled)
    assert end == Failed("http://127.0.0.1:1: no such slot (400)")


def test_a_page_of_a_proxy_is_no_answer_to_an_order() -> None:
    paper = small()
    paper.told["POST", ADD] = [Answer(403, b"<html>go away</html>")]
    assert play(paper, settled) == Done(PhysicalID("b-1"), "GPU-b-1")
    assert len(paper.calls("POST", ADD)) == 2


def test_the_whole_list_of_blocks_is_never_sent_without_having_been_shown() -> None:
    bare: dict[str, dict[str, object]] = {N1: {"Id": "n-1", "HostName": "n-1", "Links": {}}}
    end = play(Paper(bare, block("b-1")), settled)
    assert isinstance(end, Failed)
    assert "does not list all of its blocks" in end.reason


def test_a_block_that_the_service_leaves_reserved_is_let_go_when_it_is_given_back() -> None:
    paper = Paper(system("n-1", "b-1"), block("b-1", "Composed"))
    paper.change(B1, Links={"ComputerSystems": [link(N1)]})

    def sloppy() -> Answer:
        paper.move(B1, "")
        paper.change(B1, CompositionStatus={"CompositionState": "Unused", "Reserved": True})
        return answer(204)

    paper.told["POST", REMOVE] = [sloppy]

    async def scene(fabric: RedfishFabric) -> Progress:
        return await settled(fabric, detach=True)

    assert play(paper, scene) == Done(PhysicalID("b-1"), "GPU-b-1")
    assert msgspec.json.decode(paper.calls("PATCH", B1)[-1].body) == {
        "CompositionStatus": {"Reserved": False}
    }


def test_a_reservation_that_leads_to_nothing_for_long_counts_no_more() -> None:
    paper = Paper(system("n-1"), block("b-1", more=RESERVED))

    async def scene(fabric: RedfishFabric) -> None:
        assert isinstance(await settled(fabric), Failed)
        await clock.running().sleep(Seconds(100.0))
        assert [one.healthy for one in (await shown(fabric)).devices] == [True]
        assert isinstance(await settled(fabric), Done)

    play(paper, scene, reservationSeconds=100.0)


def test_our_name_on_a_reservation_tells_it_from_others() -> None:
    paper = Paper(
        system("n-1"),
        block("b-1", more={**RESERVED, "Client": "us"}),
        block("b-2", more={"Client": "them"}),
    )

    async def scene(fabric: RedfishFabric) -> None:
        assert isinstance(await settled(fabric), Done)
        other = msgspec.structs.replace(ORDER, id=OrderID("o-2"), device=PhysicalID("b-2"))
        assert isinstance(await settled(fabric, other), Failed)

    play(paper, scene, client="us")
    assert msgspec.json.decode(paper.calls("PATCH", B1)[0].body)["Client"] == "us"


def test_a_call_that_was_never_sent_is_sent_when_it_can_be() -> None:
    def unreachable() -> Answer:
        raise Unsent("nobody listens")

    paper = small()
    paper.told["POST", ADD] = [unreachable] * 3
    assert play(paper, settled) == Done(PhysicalID("b-1"), "GPU-b-1")
