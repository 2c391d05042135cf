"""What the Redfish face announces of query parameters is so, and what it does not is refused in words."""

from pathlib import Path
from typing import cast

import msgspec
import pytest

from jackfield.fabric_manager.faces.redfish.protocol import Document
from jackfield.fabric_manager.faces.redfish.queries import PAGE, Query, shown
from jackfield.fabric_manager.server import Server
from unit.fabric_manager.redfish_bench import BLOCKS, ROOT, SYSTEMS, Client, served


def test_what_is_announced_of_queries_is_true(tmp_path: Path) -> None:
    async def play(_: Server, client: Client) -> None:
        features = (await client.get(f"{ROOT}/")).body["ProtocolFeaturesSupported"]
        assert features["ExpandQuery"]["MaxLevels"] == 3
        blocks = (await client.get(f"{BLOCKS}?$expand=.($levels=2)")).body["Members"]
        a1 = next(one for one in blocks if one["Id"] == "a-1")
        assert a1["Processors"][0]["Model"] == "A100"
        assert [*a1["Links"]["Zones"][0]] == ["@odata.id"]
        linked = (await client.get(f"{BLOCKS}/a-1?$expand=~")).body
        assert linked["Links"]["Zones"][0]["ZoneType"] == "ZoneOfResourceBlocks"
        assert [*linked["Processors"][0]] == ["@odata.id"]
        both = (await client.get(f"{BLOCKS}/a-1?$expand=*")).body
        assert "Model" in both["Processors"][0]
        assert "ZoneType" in both["Links"]["Zones"][0]
        only = await client.get(f"{ROOT}/Fabrics?only")
        assert only.body["FabricType"] == "PCIe"
        assert (await client.get(f"{SYSTEMS}?only")).body["Members@odata.count"] == 3

    served(tmp_path, play)


def test_pages_of_a_collection_are_the_whole(tmp_path: Path) -> None:
    async def play(_: Server, client: Client) -> None:
        whole, pages = (await client.get(BLOCKS)).body, []
        path = f"{BLOCKS}?$top=5"
        while path:
            page = (await client.get(path)).body
            assert page["Members@odata.count"] == whole["Members@odata.count"]
            pages += page["Members"]
            path = page.get("Members@odata.nextLink", "")
        assert pages == whole["Members"]
        assert (await client.get(f"{BLOCKS}?$skip=1000")).body["Members"] == []
        assert (await client.get(f"{BLOCKS}?$top=0")).body["Members"] == []

    served(tmp_path, play)


def test_a_large_collection_is_expanded_page_by_page() -> None:
    links = [{"@odata.id": f"/c/{number}"} for number in range(2 * PAGE + 1)]
    whole: Document = {"@odata.id": "/c", "Members": links, "Members@odata.count": len(links)}
    first = Query(expand=".", select=("Name",))
    pages = [
        shown(
            whole, msgspec.structs.replace(first, skip=skip), lambda path: {"@odata.id": path, "Name": path}
        )
        for skip in (0, PAGE, 2 * PAGE)
    ]
    seen = [one["Name"] for page in pages for one in cast("list[dict[str, str]]", page["Members"])]
    assert seen == [one["@odata.id"] for one in links]
    more = "/c?$expand=.($levels=1)&$select=Name&$skip="
    assert [page.get("Members@odata.nextLink") for page in pages] == [
        f"{more}{PAGE}",
        f"{more}{2 * PAGE}",
        None,
    ]


def test_only_what_is_selected_is_shown(tmp_path: Path) -> None:
    async def play(_: Server, client: Client) -> None:
        block = (await client.get(f"{BLOCKS}/a-1?$select=Name,CompositionStatus/Reserved,Nothing")).body
        assert {name for name in block if "@odata" not in name} == {"Name", "CompositionStatus"}
        assert block["CompositionStatus"] == {"Reserved": False}
        assert {"@odata.id", "@odata.type", "@odata.etag"} <= set(block)
        many = (await client.get(f"{BLOCKS}?$expand=.&$select=CompositionStatus&$top=2")).body["Members"]
        assert [[name for name in one if "@odata" not in name] for one in many] == [["CompositionStatus"]] * 2

    served(tmp_path, play)


QUERIES: tuple[tuple[str, int], ...] = (
    (f"{SYSTEMS}?$filter=a", 501),
    (f"{SYSTEMS}?$orderby=a", 501),
    (f"{SYSTEMS}?excerpt", 501),
    (f"{SYSTEMS}?rpvunknown=1", 200),
    (f"{SYSTEMS}?$top=-1", 400),
    (f"{SYSTEMS}?$top=a", 400),
    (f"{SYSTEMS}?$skip=", 400),
    (f"{SYSTEMS}?$expand=", 400),
    (f"{SYSTEMS}?$expand=.($levels=0)", 400),
    (f"{SYSTEMS}?$expand=.($levels=4)", 400),
    (f"{SYSTEMS}?$select=", 400),
    (f"{SYSTEMS}?only=1", 400),
    (f"{SYSTEMS}?only&$top=1", 400),
    (f"{SYSTEMS}/n-1?only", 400),
    (f"{SYSTEMS}/n-1?$top=1", 400),
)


@pytest.mark.parametrize(("path", "status"), QUERIES)
def test_a_query_that_cannot_be_answered_is_refused_in_words(tmp_path: Path, path: str, status: int) -> None:
    async def play(_: Server, client: Client) -> None:
        answer = await client.get(path)
        assert answer.status == status
        assert bool(answer.messages) == (status != 200)

    served(tmp_path, play)
