"""Faults of the fabric look through the Redfish face as they would on a service that has them."""

from pathlib import Path

from jackfield.fabric_manager.faults import Fault, Kind
from jackfield.fabric_manager.server import Server
from jackfield.model.names import NodeName, Seconds
from unit.fabric_manager.redfish_bench import BLOCKS, SYSTEMS, Client, link, served


def test_a_machine_that_is_cut_off_is_not_shown_with_what_is_on_it(tmp_path: Path) -> None:
    async def play(server: Server, client: Client) -> None:
        assert (await client.act("Add", "n-1", "a-1")).status == 204
        name = (await server.manager.set_fault(Fault(Kind.CUT, node=NodeName("n-1")))).id
        for path in (f"{SYSTEMS}/n-1", f"{BLOCKS}/compute-n-1", f"{BLOCKS}/a-1"):
            assert (await client.get(path)).status == 404, path
        assert (await client.get(SYSTEMS)).body["Members@odata.count"] == 2
        assert (await client.act("Add", "n-1", "a-2")).status == 404
        await server.manager.clear_fault(name)
        assert await client.blocks("n-1") == ["compute-n-1", "a-1"]

    served(tmp_path, play)


def test_what_went_astray_is_shown_and_taken_back_where_it_is(tmp_path: Path) -> None:
    async def play(server: Server, client: Client) -> None:
        await server.manager.set_fault(Fault(Kind.ASTRAY, times=1))
        assert (await client.act("Add", "n-1", "a-1")).status == 204
        assert await client.blocks("n-2") == ["compute-n-2", "a-1"]
        again = await client.act("Add", "n-1", "a-1")
        assert (again.status, "in use by n-2" in again.words) == (409, True)
        assert (await client.act("Remove", "n-1", "a-1")).status == 409
        assert (await client.act("Remove", "n-2", "a-1")).status == 204

    served(tmp_path, play)


def test_a_stale_listing_is_stale_everywhere(tmp_path: Path) -> None:
    async def play(server: Server, client: Client) -> None:
        name = (await server.manager.set_fault(Fault(Kind.STALE))).id
        assert (await client.act("Add", "n-1", "a-1")).status == 204
        assert await client.blocks("n-1") == ["compute-n-1"]
        assert await client.state("a-1") == ("Unused", False)
        await server.manager.clear_fault(name)
        assert await client.blocks("n-1") == ["compute-n-1", "a-1"]
        assert await client.state("a-1") == ("Composed", False)
        name = (await server.manager.set_fault(Fault(Kind.STALE))).id
        assert (await client.act("Remove", "n-1", "a-1")).status == 204
        assert await client.state("a-1") == ("Composed", False)

    served(tmp_path, play)


def test_what_is_refused_at_the_last_moment_leaves_a_machine_as_it_was(tmp_path: Path) -> None:
    async def play(server: Server, client: Client) -> None:
        assert (await client.act("Add", "n-1", "a-1")).status == 204
        await server.manager.set_fault(Fault(Kind.QUOTA, limit=2))
        tag = (await client.get(f"{SYSTEMS}/n-1")).headers["ETag"]
        blocks = [link(one) for one in ("compute-n-1", "a-2", "a-3")]
        swapped = await client.ask(
            "PATCH", f"{SYSTEMS}/n-1", {"Links": {"ResourceBlocks": blocks}}, If_Match=tag
        )
        assert (swapped.status, "quota" in swapped.words) == (409, True)
        while server.manager.books.unfinished():
            await server.manager.clock.sleep(Seconds(1.0))
        assert await client.blocks("n-1") == ["compute-n-1", "a-1"]
        assert await client.state("a-2") == ("Unused", False)

    served(tmp_path, play)
