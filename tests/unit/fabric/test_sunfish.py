"""In what Sunfish differs from a plain Redfish service, the adapter for it knows."""

import msgspec
import pytest

from jackfield.codec import redfish
from jackfield.fabric.http import Answer, Request
from jackfield.model.fabric import Done, Failed, Order, Progress
from jackfield.model.names import ModelName, NodeName, OrderID, PhysicalID
from jackfield.ports import Retry
from jackfield.sim import loop
from unit.fabric.redfish_paper import URL, settled
from unit.fabric.sunfish_bench import Sunfish, a_block, a_system, adapter, small
from unit.fabric_manager.lab import FABRIC

ORDER = Order(OrderID("o-1"), FABRIC, NodeName("n-1"), ModelName("A100"), PhysicalID("a-1"))
N1 = f"{redfish.SYSTEMS}/Sunfish_one_n-1"
A1 = f"{redfish.BLOCKS}/Sunfish_one_a-1"


def attached(paper: Sunfish, order: Order = ORDER, **more: object) -> Progress:
    async def main() -> Progress:
        async with adapter(paper, **more) as fabric:
            return await settled(fabric, order)

    return loop.run(main())


def test_changes_name_what_they_change_and_nothing_is_posted() -> None:
    paper = small()
    assert attached(paper) == Done(PhysicalID("a-1"), "a-1")
    bodies = [(one.path, msgspec.json.decode(one.body)) for one in paper.calls("PATCH")]
    assert [(path, body[redfish.ID], body["Id"]) for path, body in bodies] == [
        (A1, A1, "Sunfish_one_a-1"),
        (N1, N1, "Sunfish_one_n-1"),
    ]
    assert paper.calls("POST") == []


def test_a_device_keeps_its_name_when_the_trees_are_merged_in_another_order() -> None:
    paper = small()

    async def main() -> None:
        async with adapter(paper) as fabric:
            assert isinstance(await settled(fabric, ORDER), Done)
            before = {one.id: one.node for one in (await fabric.inventory()).devices}
            merged = {
                path.replace("Sunfish_one", "Sunfish_two"): one for path, one in paper.documents.items()
            }
            paper.documents = msgspec.json.decode(
                msgspec.json.encode(merged).replace(b"Sunfish_one", b"Sunfish_two")
            )
            # Now the name that a-1's block had is another's.
            paper.documents[A1] = paper.documents[f"{redfish.BLOCKS}/Sunfish_two_a-2"]
            del paper.documents[f"{redfish.BLOCKS}/Sunfish_two_a-2"]
            assert await settled(fabric, ORDER, detach=True) == Done(PhysicalID("a-1"), "a-1")
            after = {one.id: one.node for one in (await fabric.inventory()).devices}
            assert (before.pop(PhysicalID("a-1")), after.pop(PhysicalID("a-1"))) == ("n-1", "")
            assert before == after

    loop.run(main())


def test_machine_and_device_of_two_agents_are_refused_before_anything_is_sent() -> None:
    paper = Sunfish(a_system("n-1", "one"), a_block("a-1", agent="two"))
    end = attached(paper)
    assert end == Failed(f"{URL}: a-1 and n-1 are of two agents, and only the machine's would be told")
    assert paper.calls("PATCH") == []


def test_what_an_agent_says_in_plain_text_is_passed_on() -> None:
    paper = small()

    def declined(request: Request) -> Answer | None:
        return Answer(400, b"no such\nslot") if request.method == "PATCH" and request.path == N1 else None

    paper.instead = declined
    assert attached(paper) == Failed(f"{URL}: no such slot (400)")


def test_a_block_that_says_it_is_composed_but_stands_on_no_list_is_free() -> None:
    paper = small()
    other = {"@odata.id": f"{redfish.SYSTEMS}/Sunfish_one_n-2"}
    paper.change(A1, CompositionStatus={"CompositionState": "Composed"}, Links={"ComputerSystems": [other]})
    assert attached(paper) == Done(PhysicalID("a-1"), "a-1")


def test_a_service_that_asks_who_we_are_is_told_to_the_operator() -> None:
    paper = small()
    paper.instead = lambda _: Answer(401, b"")

    async def main() -> None:
        async with adapter(paper) as fabric:
            with pytest.raises(Retry, match=r"asks who we are: say options.authentication$"):
                await fabric.inventory()

    loop.run(main())
