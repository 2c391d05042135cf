"""Composing by Redfish: blocks are reserved, given and taken back, at once or by a task, and nobody loses anything."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from jackfield.fabric_manager.durations import Fixed
from jackfield.fabric_manager.faces.redfish import Redfish
from jackfield.fabric_manager.faces.redfish.tasks import TASKS_MAX, Step, Tasks
from jackfield.fabric_manager.faults import Fault, Kind
from jackfield.fabric_manager.manager import Manager
from jackfield.fabric_manager.server import Server
from jackfield.model.fabric import Order
from jackfield.model.names import FabricName, ModelName, NodeName, OrderID, PhysicalID, Seconds
from unit.fabric_manager.lab import attached, lab, on, order
from unit.fabric_manager.redfish_bench import BLOCKS, EVER, SYSTEMS, ByHand, Client, link, served

LATER = {"Prefer": "respond-async"}
SLOW = Fixed(Seconds(3.0))
NEVER = Redfish(Seconds(0.0), EVER, EVER)
"""Answers nothing at once that takes any time."""


async def hung(server: Server, verb: str) -> str:
    """Let nothing of this kind end; return the fault's name."""
    return (await server.manager.set_fault(Fault(Kind.HANG, verb=verb))).id


# --- reservations


def test_of_two_who_reserve_what_they_saw_one_is_told_to_look_again(tmp_path: Path) -> None:
    async def play(_: Server, client: Client) -> None:
        one, other = await client.log_in(), await client.log_in()
        tag = (await one.get(f"{BLOCKS}/a-1")).headers["ETag"]
        taken = await one.reserve("a-1", If_Match=tag)
        assert (taken.status, taken.body["CompositionStatus"]["Reserved"]) == (200, True)
        assert taken.headers["ETag"] == taken.body["@odata.etag"] != tag
        late = await other.reserve("a-1", If_Match=tag)
        assert (late.status, late.messages) == (412, ["PreconditionFailed"])
        for again in (await other.reserve("a-1"), await other.act("Add", "n-1", "a-1")):
            assert (again.status, again.messages) == (409, ["ResourceInUse"])
            assert "reserved by somebody else" in again.words
        assert (await one.reserve("a-1", If_Match=taken.headers["ETag"])).status == 200
        assert (await client.state("a-1")) == ("Unused", True)
        assert (await one.act("Add", "n-1", "a-1")).status == 204
        assert (await client.state("a-1")) == ("Composed", False)

    served(tmp_path, play)


def test_a_reservation_outlives_a_restart_but_not_its_time(tmp_path: Path) -> None:
    clock = ByHand()

    async def before(_: Server, client: Client) -> None:
        assert (await client.reserve("a-1")).status == 200

    async def after(_: Server, client: Client) -> None:
        assert (await client.state("a-1")) == ("Unused", True)
        clock.at += 61.0
        assert (await client.state("a-1")) == ("Unused", False)
        assert (await (await client.log_in()).reserve("a-1")).status == 200

    for play in (before, after):
        served(tmp_path, play, face=Redfish(Seconds(30.0), EVER, Seconds(60.0)), clock=clock)


def test_a_reservation_can_be_withdrawn_by_anybody_and_ends_with_a_failure(tmp_path: Path) -> None:
    async def play(server: Server, client: Client) -> None:
        assert (await client.reserve("a-1")).status == 200
        assert (await (await client.log_in()).reserve("a-1", reserved=False)).status == 200
        assert (await client.state("a-1")) == ("Unused", False)
        await client.reserve("a-1")
        await server.manager.set_fault(Fault(Kind.FAIL, verb="attach", reason="no link", times=1))
        failed = await client.act("Add", "n-1", "a-1")
        assert (failed.status, failed.messages, failed.words) == (500, ["OperationFailed"], "no link")
        assert (await client.state("a-1")) == ("Unused", False)

    served(tmp_path, play)


PATCHES: tuple[tuple[str, object, int, list[str]], ...] = (
    ("a-1", {}, 400, ["NoOperation"]),
    ("a-1", {"@odata.id": "x"}, 400, ["NoOperation"]),
    ("a-1", {"CompositionStatus": {}}, 400, ["NoOperation"]),
    ("a-1", {"Nothing": 1}, 400, ["PropertyUnknown"]),
    ("a-1", {"Id": "x", "Nothing": 1}, 400, ["PropertyNotWritable", "PropertyUnknown"]),
    ("a-1", {"CompositionStatus": {"CompositionState": "Unused"}}, 400, ["PropertyNotWritable"]),
    ("a-1", {"CompositionStatus": {"Nothing": 1}}, 400, ["PropertyUnknown"]),
    ("a-1", {"CompositionStatus": 1}, 400, ["PropertyValueTypeError"]),
    ("a-1", {"CompositionStatus": {"Reserved": "yes"}}, 400, ["PropertyValueTypeError"]),
    ("a-1", {"CompositionStatus": {"Reserved": True}, "Id": "x"}, 200, ["PropertyNotWritable"]),
    ("a-1", {"CompositionStatus": {"Reserved": True, "Nothing": 1}}, 200, ["PropertyUnknown"]),
    ("compute-n-1", {"CompositionStatus": {"Reserved": True}}, 400, ["PropertyNotWritable"]),
    ("k-1", {"CompositionStatus": {"Reserved": True}}, 409, ["ResourceInUse"]),
    ("nothing", {"CompositionStatus": {"Reserved": True}}, 404, ["ResourceMissingAtURI"]),
)


@pytest.mark.parametrize(("block", "body", "status", "messages"), PATCHES)
def test_only_what_can_be_written_is_written(
    tmp_path: Path, block: str, body: object, status: int, messages: list[str]
) -> None:
    async def play(_: Server, client: Client) -> None:
        answer = await client.ask("PATCH", f"{BLOCKS}/{block}", body)
        assert (answer.status, answer.messages) == (status, messages)
        assert (await client.state("a-1"))[1] == (status == 200)

    served(tmp_path, play)


# --- giving and taking


def test_a_block_is_given_to_a_machine_and_taken_back(tmp_path: Path) -> None:
    async def play(server: Server, client: Client) -> None:
        before = (await client.get(f"{SYSTEMS}/n-1")).headers["ETag"]
        assert (await client.act("Add", "n-1", "a-1")).status == 204
        assert await client.blocks("n-1") == ["compute-n-1", "a-1"]
        assert (await client.get(f"{SYSTEMS}/n-1")).headers["ETag"] != before
        parts = (await client.get(f"{SYSTEMS}/n-1/Processors?$expand=.")).body["Members"]
        assert [(one["Model"], one["Status"]["State"]) for one in parts] == [("A100", "Enabled")]
        block = (await client.get(f"{BLOCKS}/a-1")).body
        assert block["Links"]["ComputerSystems"] == [{"@odata.id": f"{SYSTEMS}/n-1"}]
        assert (block["Client"], block["CompositionStatus"]["NumberOfCompositions"]) == ("redfish", 1)
        holder = server.manager.books.holder(PhysicalID("a-1"))
        assert holder is not None
        assert holder.order.id.startswith("redfish/")
        assert (await client.act("Remove", "n-1", "a-1")).status == 204
        assert await client.blocks("n-1") == ["compute-n-1"]
        assert (await client.get(f"{SYSTEMS}/n-1")).headers["ETag"] == before
        assert await client.state("a-1") == ("Unused", False)

    served(tmp_path, play)


def test_who_asks_again_is_told_that_it_is_so(tmp_path: Path) -> None:
    async def play(server: Server, client: Client) -> None:
        for verb in ("Add", "Remove"):
            assert (await client.act(verb, "n-1", "a-1")).status == 204
            event = server.manager.store.last_event()
            again = await client.act(verb, "n-1", "a-1")
            assert (again.status, again.messages) == (200, ["NoOperation"])
            assert server.manager.store.last_event() == event

    served(tmp_path, play)


REFUSED: tuple[tuple[str, int, str], ...] = (
    ("Add n-1 k-1", 409, "in use by both"),
    ("Add n-1 c-1", 409, "no port of n-1 leads to s2"),
    ("Add n-1 compute-n-1", 409, "stays with its machine"),
    ("Add n-1 compute-n-2", 409, "stays with its machine"),
    ("Add n-1 nothing", 400, "There is no block"),
    ("Remove both k-1", 403, "given to both by before"),
    ("Remove n-1 k-1", 409, "not part of n-1"),
    ("Remove n-1 compute-n-1", 409, "stays with its machine"),
)


@pytest.mark.parametrize(("asked", "status", "words"), REFUSED)
def test_what_cannot_be_is_refused_in_words(tmp_path: Path, asked: str, status: int, words: str) -> None:
    async def play(server: Server, client: Client) -> None:
        event = server.manager.store.last_event()
        verb, system, block = asked.split()
        answer = await client.act(verb, system, block)
        assert answer.status == status
        assert words in answer.words
        assert server.manager.store.last_event() == event
        assert not server.manager.books.unfinished()

    served(tmp_path, play)


ACTIONS: tuple[tuple[Mapping[str, object], int, str], ...] = (
    ({}, 400, "ActionParameterMissing"),
    ({"ResourceBlock": 1}, 400, "ActionParameterValueTypeError"),
    ({"ResourceBlock": {}}, 400, "ActionParameterValueTypeError"),
    ({"ResourceBlock": link("a-1"), "ResourceBlockETag": 1}, 400, "ActionParameterValueTypeError"),
    ({"ResourceBlock": link("a-1"), "Nothing": 1}, 400, "ActionParameterUnknown"),
    ({"ResourceBlock": {"@odata.id": "/etc/a-1"}}, 400, "ResourceMissingAtURI"),
    ({"ResourceBlock": link("a-1"), "ResourceBlockETag": '"old"'}, 428, "PreconditionRequired"),
    ({"ResourceBlock": link("a-1"), "ComputerSystemETag": '"old"'}, 428, "PreconditionRequired"),
)


@pytest.mark.parametrize(("body", "status", "message"), ACTIONS)
def test_an_action_is_taken_only_as_it_is_described(
    tmp_path: Path, body: Mapping[str, object], status: int, message: str
) -> None:
    async def play(_: Server, client: Client) -> None:
        for verb in ("Add", "Remove"):
            path = f"{SYSTEMS}/n-1/Actions/ComputerSystem.{verb}ResourceBlock"
            answer = await client.ask("POST", path, body)
            assert (answer.status, answer.messages) == (status, [message])
        assert await client.state("a-1") == ("Unused", False)

    served(tmp_path, play)


def test_an_action_on_what_the_client_saw_is_carried_out(tmp_path: Path) -> None:
    async def play(_: Server, client: Client) -> None:
        tags = {
            "ResourceBlockETag": (await client.get(f"{BLOCKS}/a-1")).headers["ETag"],
            "ComputerSystemETag": (await client.get(f"{SYSTEMS}/n-1")).headers["ETag"],
        }
        path = f"{SYSTEMS}/n-1/Actions/ComputerSystem.AddResourceBlock"
        assert (await client.ask("POST", path, {"ResourceBlock": link("a-1"), **tags})).status == 204

    served(tmp_path, play)


def test_of_two_machines_that_want_a_block_one_gets_it(tmp_path: Path) -> None:
    async def play(_: Server, client: Client) -> None:
        answers = await asyncio.gather(*(client.act("Add", f"n-{1 + at % 2}", "a-1") for at in range(6)))
        given = [at % 2 for at, one in enumerate(answers) if one.status in {200, 204}]
        assert given in ([0, 0, 0], [1, 1, 1])
        assert sorted(one.status for one in answers)[3:] == [409, 409, 409]
        assert len(await client.blocks("n-1")) + len(await client.blocks("n-2")) == 3

    served(tmp_path, play, SLOW)


# --- tasks


def test_what_takes_long_is_a_task_that_ends_with_the_answer(tmp_path: Path) -> None:
    async def play(server: Server, client: Client) -> None:
        name = await hung(server, "attach")
        begun = await client.act("Add", "n-1", "a-1")
        assert (begun.status, begun.body["TaskState"]) == (202, "Running")
        monitor, task = begun.headers["Location"], begun.body["@odata.id"]
        assert begun.body["TaskMonitor"] == monitor
        assert (await client.get(monitor)).status == 202
        assert await client.state("a-1") == ("Composing", True)
        assert await client.blocks("n-1") == ["compute-n-1"]
        joined = await client.act("Add", "n-1", "a-1")
        assert joined.status == 202
        assert (await client.act("Add", "n-2", "a-1")).status == 409
        assert (await client.ask("DELETE", task)).status == 409
        await server.manager.clear_fault(name)
        assert (await client.followed(begun)).status == (await client.followed(joined)).status == 204
        ended = (await client.get(task)).body
        assert (ended["TaskState"], ended["TaskStatus"], ended["PercentComplete"]) == ("Completed", "OK", 100)
        assert ended["Messages"][0]["MessageId"].endswith(".Success")
        assert ended["StartTime"] <= ended["EndTime"]
        assert await client.blocks("n-1") == ["compute-n-1", "a-1"]
        assert (await client.ask("DELETE", task)).status == 204
        assert (await client.get(task)).status == (await client.get(monitor)).status == 404

    served(tmp_path, play, face=NEVER)


@pytest.mark.parametrize("verb", ["attach", "detach"])
def test_a_task_that_failed_says_why(tmp_path: Path, verb: str) -> None:
    async def play(server: Server, client: Client) -> None:
        if verb == "detach":
            await client.act("Add", "n-1", "a-1")
        await server.manager.set_fault(Fault(Kind.FAIL, verb=verb, reason="no link", times=1))
        action = {"attach": "Add", "detach": "Remove"}[verb]
        begun = await client.act(action, "n-1", "a-1", **LATER)
        ended = await client.followed(begun)
        assert (ended.status, ended.messages, ended.words) == (500, ["OperationFailed"], "no link")
        task = (await client.get(begun.body["@odata.id"])).body
        assert (task["TaskState"], task["TaskStatus"]) == ("Exception", "Critical")
        assert [one["Message"] for one in task["Messages"]] == ["no link"]
        assert (await client.act(action, "n-1", "a-1")).status == 204, "what failed can be tried again"
        assert (await client.get(begun.body["@odata.id"])).body == task

    served(tmp_path, play)


@pytest.mark.parametrize("before", [(), ("a-2", "a-3")], ids=["under way", "in the queue"])
def test_what_is_taken_back_under_way_has_failed(tmp_path: Path, before: tuple[str, ...]) -> None:
    async def play(server: Server, client: Client) -> None:
        name = await hung(server, "attach")
        for other in before:  # as many as are worked on at a time
            await client.act("Add", "n-2", other, **LATER)
        begun = await client.act("Add", "n-1", "a-1", **LATER)
        back = await client.act("Remove", "n-1", "a-1", **LATER)
        assert (await client.followed(begun)).words == "it was taken back under way"
        if not before:
            refused = await client.act("Add", "n-1", "a-1")
            assert (refused.status, refused.messages) == (409, ["ResourceInUse"])
        await server.manager.clear_fault(name)
        assert (await client.followed(back)).status == 204
        assert await client.state("a-1") == ("Unused", False)

    served(tmp_path, play)


def test_tasks_outlive_restarts_and_end(tmp_path: Path) -> None:
    kept: dict[str, str] = {}

    async def before(server: Server, client: Client) -> None:
        await hung(server, "attach")
        begun = await client.act("Add", "n-1", "a-1", **LATER)
        kept["monitor"], kept["task"] = begun.headers["Location"], begun.body["@odata.id"]

    async def between(_: Server, client: Client) -> None:
        assert (await client.get(kept["monitor"])).status == 202

    async def after(server: Server, client: Client) -> None:
        (fault,) = server.manager.faults
        await server.manager.clear_fault(fault.id)
        assert (await client.ended(kept["monitor"])).status == 204

    async def at_last(_: Server, client: Client) -> None:
        assert (await client.get(kept["monitor"])).status == 204
        assert (await client.get(kept["task"])).body["TaskState"] == "Completed"

    for play in (before, between, after, at_last):
        served(tmp_path, play)


def test_so_many_tasks_are_kept_and_those_that_run_stay(tmp_path: Path) -> None:
    async def play(manager: Manager) -> None:
        await manager.set_fault(Fault(Kind.HANG, verb="attach"))
        await manager.attach(order("redfish/o"), "redfish")
        tasks = Tasks(manager.store, manager.books, manager.clock)
        node, step = NodeName("n-1"), Step(OrderID("redfish/o"), PhysicalID("a-1"), attach=True)
        running = tasks.made(node, "POST", "/", (step,))
        tasks.keep(running)
        ended = [tasks.made(node, "POST", "/", ()) for _ in range(TASKS_MAX + 2)]
        for task in ended:
            tasks.keep(task)
        kept = [running, *ended[3:]]
        assert [*tasks] == kept
        assert {*Tasks(manager.store, manager.books, manager.clock)} == {*kept}

    on(tmp_path, lab(), play)


# --- whole lists


async def listed(client: Client, system: str, *blocks: str, **headers: str) -> tuple[int, list[str]]:
    tag = (await client.get(f"{SYSTEMS}/{system}")).headers["ETag"]
    body = {"Links": {"ResourceBlocks": [link(f"compute-{system}"), *map(link, blocks)]}}
    answer = await client.ask("PATCH", f"{SYSTEMS}/{system}", body, **{"If_Match": tag, **headers})
    return answer.status, answer.messages


def test_a_machine_is_made_of_what_is_listed(tmp_path: Path) -> None:
    async def play(_: Server, client: Client) -> None:
        assert await listed(client, "n-1", "a-1", "a-2") == (200, [])
        assert await client.blocks("n-1") == ["compute-n-1", "a-1", "a-2"]
        assert await listed(client, "n-1", "a-2", "f-1") == (200, [])
        assert await client.blocks("n-1") == ["compute-n-1", "a-2", "f-1"]
        assert await listed(client, "n-1", "a-2", "f-1") == (200, [])
        assert await listed(client, "n-1") == (200, [])
        assert await client.blocks("n-1") == ["compute-n-1"]

    served(tmp_path, play)


def test_a_list_can_be_a_task_and_ends_with_the_machine(tmp_path: Path) -> None:
    async def play(_: Server, client: Client) -> None:
        tag = (await client.get(f"{SYSTEMS}/n-1")).headers["ETag"]
        body = {"Links": {"ResourceBlocks": [link("compute-n-1"), link("a-1")]}}
        begun = await client.ask("PATCH", f"{SYSTEMS}/n-1", body, If_Match=tag, **LATER)
        ended = await client.followed(begun)
        assert (ended.status, len(ended.body["Links"]["ResourceBlocks"])) == (200, 2)

    served(tmp_path, play)


def test_a_list_that_is_old_or_cannot_be_changes_nothing(tmp_path: Path) -> None:
    async def play(_: Server, client: Client) -> None:
        assert await listed(client, "n-1", "a-1", If_Match='"old"') == (412, ["PreconditionFailed"])
        assert await listed(client, "n-1", "a-1", "c-1") == (409, ["ResourceInUse"])
        assert await listed(client, "n-1", "a-1", "a-2", "a-3", "a-4") == (409, ["ResourceInUse"])
        assert await listed(client, "n-1", "nothing") == (400, ["ResourceMissingAtURI"])
        assert await listed(client, "both") == (403, ["InsufficientPrivilege"])
        path, blocks = f"{SYSTEMS}/n-1", {"ResourceBlocks": [link("a-1")]}
        for body, headers, status in (
            ({"Links": {"ResourceBlocks": [link("compute-n-1"), link("a-1")]}}, {}, 428),
            ({"Links": blocks}, {"If_Match": "*"}, 409),
            ({"Links": {"ResourceBlocks": "a-1"}}, {"If_Match": "*"}, 400),
            ({"Links": {"ResourceBlocks": [{}]}}, {"If_Match": "*"}, 400),
            ({"Links": []}, {"If_Match": "*"}, 400),
            ({"Links": {"Chassis": []}}, {"If_Match": "*"}, 400),
            ({"HostName": "x"}, {"If_Match": "*"}, 400),
            ({"Links": blocks, "Processors": {"Members": [{}]}}, {"If_Match": "*"}, 400),
        ):
            answer = await client.ask("PATCH", path, body, **headers)
            assert (answer.status, bool(answer.messages)) == (status, True), body
        assert await client.blocks("n-1") == ["compute-n-1"]
        assert await client.state("a-1") == ("Unused", False)

    served(tmp_path, play)


# --- described, not named


async def described(client: Client, system: str, **members: list[dict[str, object]]) -> tuple[int, list[str]]:
    body = {name: {"Members": wanted} for name, wanted in members.items()}
    answer = await client.ask("PATCH", f"{SYSTEMS}/{system}", body)
    return answer.status, answer.messages


def test_blocks_that_are_described_are_chosen_and_added_to_what_is_there(tmp_path: Path) -> None:
    async def play(_: Server, client: Client) -> None:
        other = await client.log_in()
        assert (await other.reserve("a-1")).status == 200
        gpu: dict[str, object] = {"ProcessorType": "GPU", "Model": "A100"}
        assert await described(client, "n-1", Processors=[gpu]) == (200, [])
        assert await client.blocks("n-1") == ["compute-n-1", "a-2"]
        two = {"@Redfish.RequestedCount": 2, "ProcessorType": "GPU"}
        assert await described(client, "n-2", Processors=[two]) == (200, [])
        assert await client.blocks("n-2") == ["compute-n-2", "a-3", "a-4"]
        assert await described(client, "n-1", Processors=[{"ProcessorType": "FPGA"}]) == (200, [])
        assert await described(client, "both", Memory=[{"Model": "CXL-256"}]) == (200, [])
        assert await client.blocks("both") == ["compute-both", "k-1", "c-1"]

    served(tmp_path, play)


DESCRIBED: tuple[tuple[str, dict[str, list[dict[str, object]]], int, str], ...] = (
    ("n-1", {"Processors": [{"Model": "H100"}]}, 409, "ResourceInUse"),
    ("n-1", {"Processors": [{"@Redfish.RequestedCount": 5, "Model": "A100"}]}, 409, "ResourceInUse"),
    ("n-1", {"Processors": [{"@Redfish.RequestedCount": 4, "Model": "A100"}]}, 409, "ResourceInUse"),
    ("n-1", {"Memory": [{"Model": "CXL-256"}]}, 409, "ResourceInUse"),
    ("n-1", {"Processors": [{"@Redfish.RequestedCount": 0}]}, 400, "PropertyValueTypeError"),
    ("n-1", {"Processors": [{"@Redfish.RequestedCount": True}]}, 400, "PropertyValueTypeError"),
    ("n-1", {"Processors": [{"@Redfish.RequestedCount": 10**9}]}, 400, "PropertyValueTypeError"),
    ("n-1", {"Processors": [{"Model": 1}]}, 400, "PropertyValueTypeError"),
    ("n-1", {"Processors": [{"TotalCores": 4}]}, 400, "PropertyUnknown"),
    ("n-1", {"Memory": [{"ProcessorType": "GPU"}]}, 400, "PropertyUnknown"),
    ("n-1", {"Processors": []}, 400, "PropertyValueTypeError"),
)


@pytest.mark.parametrize(("system", "members", "status", "message"), DESCRIBED)
def test_a_description_that_nothing_agrees_with_changes_nothing(
    tmp_path: Path, system: str, members: dict[str, list[dict[str, object]]], status: int, message: str
) -> None:
    async def play(server: Server, client: Client) -> None:
        assert await described(client, system, **members) == (status, [message])
        while server.manager.books.unfinished():
            await server.manager.clock.sleep(Seconds(1.0))
        assert await client.blocks(system) == [f"compute-{system}"]
        assert await client.state("a-1") == ("Unused", False)

    served(tmp_path, play)


# --- others


def test_what_another_protocol_attached_is_shown_and_left_alone(tmp_path: Path) -> None:
    async def play(server: Server, client: Client) -> None:
        placed = Order(
            OrderID("o"), FabricName("rack-a"), NodeName("n-1"), ModelName("A100"), PhysicalID("a-1")
        )
        await attached(server.manager, placed)
        assert await client.blocks("n-1") == ["compute-n-1", "a-1"]
        assert (await client.get(f"{BLOCKS}/a-1")).body["Client"] == "native"
        assert (await client.act("Remove", "n-1", "a-1")).status == 403
        assert (await client.act("Add", "n-1", "a-1")).status == 409
        assert await listed(client, "n-1", "a-2") == (403, ["InsufficientPrivilege"])
        assert await listed(client, "n-1", "a-1", "a-2") == (200, [])
        assert await client.blocks("n-1") == ["compute-n-1", "a-1", "a-2"]

    served(tmp_path, play)
