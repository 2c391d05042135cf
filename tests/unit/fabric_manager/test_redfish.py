"""The Redfish face says everything as the specification has it: paths, headers, ETags, errors, queries, sessions."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path

import pytest

from jackfield.fabric_manager.faces.redfish import OPEN, Redfish
from jackfield.fabric_manager.faces.redfish.documents import COLLECTIONS, VERSIONS
from jackfield.fabric_manager.faces.redfish.sessions import SESSIONS_MAX
from jackfield.fabric_manager.faults import Fault, Kind
from jackfield.fabric_manager.server import Server
from jackfield.model.names import PhysicalID, Seconds
from unit.fabric_manager.lab import TOKEN
from unit.fabric_manager.redfish_bench import (
    BLOCKS,
    EVER,
    LOGIN,
    ROOT,
    SESSIONS,
    SYSTEMS,
    ByHand,
    Client,
    served,
)

FIRST, LAST = PhysicalID("a-1"), PhysicalID("a-4")
PARTS = f"{BLOCKS}/a-1/Processors/a-1"


async def everywhere(client: Client) -> dict[str, dict[str, object]]:
    """Return every document that links lead to."""
    found: dict[str, dict[str, object]] = {}
    queue = [f"{ROOT}/"]
    while queue:
        path = queue.pop()
        if path in found:
            continue
        answer = await client.get(path)
        assert answer.status == 200, path
        assert answer.body["@odata.id"] == path
        assert answer.headers["ETag"] == answer.body["@odata.etag"]
        found[path] = answer.body
        queue += links(answer.body)
    return found


def links(value: object) -> list[str]:
    if isinstance(value, Mapping):
        own = [value["@odata.id"]] if [*value] == ["@odata.id"] else []
        return own + [one for name, inner in value.items() if name != "Actions" for one in links(inner)]
    return [one for inner in value for one in links(inner)] if isinstance(value, list) else []


# --- the tree


def test_every_link_leads_somewhere_and_every_kind_is_announced(tmp_path: Path) -> None:
    async def play(_: Server, client: Client) -> None:
        await client.act("Add", "n-1", "a-1", Prefer="respond-async")
        await client.log_in()
        found = await everywhere(client)
        kinds = {str(one["@odata.type"]) for one in found.values()}
        spoken = {f"#{name}.{version}.{name}" for name, version in VERSIONS.items() if name != "Message"}
        assert kinds == spoken | {f"#{name}Collection.{name}Collection" for name in COLLECTIONS}
        for path, document in found.items():
            if "Members" in document:
                assert document["Members@odata.count"] == len(links(document["Members"])), path
            else:
                assert {"Id", "Name"} <= set(document), path
        metadata = ET.fromstring((await client.get(f"{ROOT}/$metadata")).body)  # noqa: S314 - our own
        included = {str(one.get("Namespace")) for one in metadata.iter() if one.tag.endswith("Include")}
        assert {one.removeprefix("#").rpartition(".")[0] for one in kinds} <= included

    served(tmp_path, play)


SHOWN: tuple[tuple[str, Mapping[str, object]], ...] = (
    ("/redfish", {"v1": "/redfish/v1/"}),
    (f"{SYSTEMS}/n-1", {"HostName": "n-1", "SystemType": "Composed"}),
    (f"{BLOCKS}/a-1", {"ResourceBlockType": ["Processor"]}),
    (f"{BLOCKS}/c-1", {"ResourceBlockType": ["Memory"]}),
    (f"{BLOCKS}/k-1", {"ResourceBlockType": ["Network"], "Client": "before"}),
    (f"{BLOCKS}/compute-n-1", {"ResourceBlockType": ["Compute"]}),
    (PARTS, {"ProcessorType": "GPU", "Model": "A100", "Manufacturer": "NVIDIA", "MaxTDPWatts": 250}),
    (PARTS, {"MemorySummary": {"TotalMemorySizeMiB": 81920}}),
    (f"{BLOCKS}/f-1/Processors/f-1", {"ProcessorType": "FPGA"}),
    (f"{BLOCKS}/c-1/Memory/c-1", {"CapacityMiB": 262144, "Model": "CXL-256"}),
    (f"{ROOT}/Chassis/s2/NetworkAdapters/k-1", {"Model": "NIC-200"}),
    (f"{SYSTEMS}/both/NetworkInterfaces", {"Members@odata.count": 1}),
    (f"{ROOT}/Fabrics/rack-a/Switches/s1/Ports/host-n-1", {"Width": 8, "PortType": "UpstreamPort"}),
    (f"{ROOT}/Fabrics/rack-a/Switches/s1/Ports/device-a-1", {"Width": 16, "PortType": "DownstreamPort"}),
    (f"{ROOT}/CompositionService", {"AllowOverprovisioning": False}),
)


@pytest.mark.parametrize(("path", "words"), SHOWN)
def test_the_lab_is_shown_in_the_schemas_words(
    tmp_path: Path, path: str, words: Mapping[str, object]
) -> None:
    async def play(_: Server, client: Client) -> None:
        for spelt in (path, f"{path}/"):
            answer = await client.get(spelt)
            assert {name: answer.body.get(name) for name in words} == words

    served(tmp_path, play)


def test_zones_hold_the_machines_that_reach_a_switch_and_what_is_behind_it(tmp_path: Path) -> None:
    async def play(_: Server, client: Client) -> None:
        zones = f"{ROOT}/CompositionService/ResourceZones"
        found = {}
        for path in links((await client.get(zones)).body):
            blocks = links((await client.get(path)).body["Links"])
            found[path.rpartition("/")[2]] = [one.rpartition("/")[2] for one in blocks]
        machines = ["compute-n-1", "compute-n-2", "compute-both"]
        assert found["s1"] == [*machines, "a-1", "a-2", "a-3", "a-4", "f-1"]
        assert found["s2"] == ["compute-both", "c-1", "c-2", "k-1"]
        assert found["everywhere"][:3] == machines
        (odd,) = found["everywhere"][3:]  # its own name cannot stand in a path
        assert re.fullmatch(r"[0-9a-f-]{36}", odd)
        (zone,) = (await client.get(f"{BLOCKS}/a-1")).body["Links"]["Zones"]
        assert zone["@odata.id"] == f"{zones}/s1"

    served(tmp_path, play)


def test_what_vanished_is_not_there_and_what_is_ill_is_not_available(tmp_path: Path) -> None:
    async def play(server: Server, client: Client) -> None:
        await server.manager.set_fault(Fault(Kind.VANISH, device=LAST))
        await server.manager.set_fault(Fault(Kind.ILL, device=FIRST))
        assert (await client.get(f"{BLOCKS}/{LAST}")).status == 404
        assert f"{BLOCKS}/{LAST}" not in links((await client.get(BLOCKS)).body)
        ill = (await client.get(f"{BLOCKS}/{FIRST}")).body
        assert (ill["Status"]["Health"], (await client.state(FIRST))[0]) == ("Critical", "Unavailable")

    served(tmp_path, play)


# --- HTTP


@pytest.mark.parametrize("path", [f"{ROOT}/", SYSTEMS, f"{SYSTEMS}/n-1", f"{BLOCKS}/a-1", PARTS])
def test_what_did_not_change_is_not_sent_again(tmp_path: Path, path: str) -> None:
    async def play(_: Server, client: Client) -> None:
        first = await client.get(path)
        tag = first.headers["ETag"]
        for shown in (tag, f'"other", {tag}', f"W/{tag}"):
            again = await client.get(path, If_None_Match=shown)
            assert (again.status, again.body, again.headers["ETag"]) == (304, b"", tag)
        assert (await client.get(path, If_None_Match='"other"')).status == 200
        head = await client.ask("HEAD", path)
        assert (head.status, head.body, head.headers["ETag"]) == (200, b"", tag)
        assert head.headers["Content-Length"] == first.headers["Content-Length"]

    served(tmp_path, play)


def test_an_etag_outlives_a_restart_and_changes_with_what_it_stands_for(tmp_path: Path) -> None:
    seen: list[str] = []

    async def play(_: Server, client: Client) -> None:
        seen.append((await client.get(f"{BLOCKS}/a-1")).headers["ETag"])

    async def change(_: Server, client: Client) -> None:
        await client.reserve("a-1")
        await play(_, client)

    served(tmp_path, play)
    served(tmp_path, play)
    served(tmp_path, change)
    assert seen[0] == seen[1] != seen[2]


METHODS: tuple[tuple[str, str, str], ...] = (
    ("POST", f"{ROOT}/", "GET, HEAD"),
    ("DELETE", "/redfish", "GET, HEAD"),
    ("PUT", f"{SYSTEMS}/n-1", "GET, HEAD, PATCH"),
    ("DELETE", f"{SYSTEMS}/n-1/", "GET, HEAD, PATCH"),
    ("POST", SYSTEMS, "GET, HEAD"),
    ("PATCH", SESSIONS, "GET, HEAD, POST"),
    ("OPTIONS", f"{BLOCKS}/a-1", "GET, HEAD, PATCH"),
    ("GET", f"{SYSTEMS}/n-1/Actions/ComputerSystem.AddResourceBlock", "POST"),
    ("PATCH", f"{SYSTEMS}/n-1/Actions/ComputerSystem.RemoveResourceBlock", "POST"),
)


@pytest.mark.parametrize(("method", "path", "allowed"), METHODS)
def test_a_method_that_is_not_for_a_path_is_told_which_are(
    tmp_path: Path, method: str, path: str, allowed: str
) -> None:
    async def play(_: Server, client: Client) -> None:
        answer = await client.ask(method, path, {})
        assert (answer.status, answer.headers["Allow"]) == (405, allowed)
        assert answer.messages == ["OperationNotAllowed"]
        if "POST" not in allowed or path == SESSIONS:
            assert (await client.get(path)).headers["Allow"] == allowed

    served(tmp_path, play)


NOWHERE = (
    f"{ROOT}/Nothing",
    f"{SYSTEMS}/n-3",
    f"{SYSTEMS}/n-1/Processors/a-1",
    f"{SYSTEMS}/n-1/Memory/x",
    f"{SYSTEMS}/n-9/Processors",
    f"{BLOCKS}/b-1",
    f"{BLOCKS}/a-1/Memory/a-1",
    f"{BLOCKS}/a-1/Processors/a-2",
    f"{BLOCKS}/compute-n-1/Processors/a-1",
    f"{ROOT}/CompositionService/ResourceZones/s3",
    f"{ROOT}/Chassis/s3",
    f"{ROOT}/Chassis/s3/NetworkAdapters",
    f"{ROOT}/Chassis/s1/NetworkAdapters/k-1",
    f"{ROOT}/Chassis/s1/NetworkAdapters/a-1",
    f"{ROOT}/Fabrics/rack-b",
    f"{ROOT}/Fabrics/rack-a/Switches/everywhere",
    f"{ROOT}/Fabrics/rack-a/Switches/s3/Ports",
    f"{ROOT}/Fabrics/rack-a/Switches/s3/Ports/host-n-1",
    f"{ROOT}/Fabrics/rack-a/Switches/s1/Ports/host-n-9",
    f"{SESSIONS}/x",
    f"{ROOT}/TaskService/Tasks/x",
    f"{ROOT}/TaskService/TaskMonitors/x",
    f"{ROOT}/JsonSchemas/Nothing",
    "/redfish/v2",
    "/redfishes",
)


def test_what_is_not_there_is_not_found(tmp_path: Path) -> None:
    async def play(_: Server, client: Client) -> None:
        for path in NOWHERE:
            answer = await client.get(path)
            assert (answer.status, answer.messages) == (404, ["ResourceMissingAtURI"]), path
        for method in ("DELETE", "PATCH", "PUT"):
            assert (await client.ask(method, f"{ROOT}/Nothing", {})).status == 404
        for path in (f"{SESSIONS}/x", f"{ROOT}/TaskService/Tasks/x"):
            assert (await client.ask("DELETE", path)).status == 404
        assert (await client.act("Add", "n-9", "a-1")).status == 404

    served(tmp_path, play)


def test_every_answer_says_which_odata_it_speaks_and_takes_no_other(tmp_path: Path) -> None:
    async def play(_: Server, client: Client) -> None:
        for path, status in ((f"{ROOT}/", 200), (f"{ROOT}/Nothing", 404), (SYSTEMS, 200)):
            answer = await client.get(path)
            assert (answer.status, answer.headers["OData-Version"]) == (status, "4.0")
        assert (await client.get(f"{ROOT}/", OData_Version="4.0")).status == 200
        assert (await client.get(f"{ROOT}/", OData_Version="4.1")).status == 412

    served(tmp_path, play)


SPOILT = (b"", b"[]", b"null", b"{", b"\xff\xfe", b'{"a": NaN}', b"[" * 100_000, b'{"a":' * 50_000)


@pytest.mark.parametrize("body", SPOILT, ids=range(len(SPOILT)))
def test_a_body_that_is_no_object_is_refused(tmp_path: Path, body: bytes) -> None:
    async def play(_: Server, client: Client) -> None:
        for method, path in (
            ("POST", SESSIONS),
            ("PATCH", f"{BLOCKS}/a-1"),
            ("PATCH", f"{SYSTEMS}/n-1"),
            ("POST", f"{SYSTEMS}/n-1/Actions/ComputerSystem.AddResourceBlock"),
        ):
            answer = await client.ask(method, path, body)
            assert (answer.status, answer.messages) == (400, ["MalformedJSON"])

    served(tmp_path, play)


def test_a_body_that_is_not_json_by_its_own_word_is_refused(tmp_path: Path) -> None:
    async def play(_: Server, client: Client) -> None:
        answer = await client.ask("PATCH", f"{BLOCKS}/a-1", b"<a/>", Content_Type="application/xml")
        assert (answer.status, answer.messages) == (415, ["UnsupportedMediaType"])

    served(tmp_path, play)


def test_a_fault_looks_like_any_other_error(tmp_path: Path) -> None:
    async def play(server: Server, client: Client) -> None:
        await server.manager.set_fault(
            Fault(Kind.STATUS, face="redfish", status=503, seconds=Seconds(7.0), times=1)
        )
        await server.manager.set_fault(Fault(Kind.UNAUTHORIZED, face="redfish", times=1))
        assert (await client.get(f"{ROOT}/")).status == 200, "the way in is always open"
        first, second = await client.get(SYSTEMS), await client.get(SYSTEMS)
        assert (first.status, first.headers["Retry-After"]) == (503, "7")
        assert first.messages == ["ServiceTemporarilyUnavailable"]
        assert (second.status, second.messages) == (401, ["NoValidSession"])
        assert (await client.get(SYSTEMS)).status == 200

    served(tmp_path, play)


# --- who may come in


WRONG: tuple[Mapping[str, str], ...] = (
    {},
    {"Authorization": f"Bearer {TOKEN.reveal()}"},
    {"Authorization": "Basic amFja2ZpZWxkOndyb25n"},
    {"Authorization": "Basic !"},
    {"X-Auth-Token": ""},
    {"X-Auth-Token": TOKEN.reveal()},
    {"X-Auth-Token": "é"},
)


@pytest.mark.parametrize("proof", WRONG)
def test_without_credentials_only_the_way_in_is_shown(tmp_path: Path, proof: Mapping[str, str]) -> None:
    async def play(server: Server, client: Client) -> None:
        stranger = client.with_proof(proof)
        for path in OPEN:
            assert (await stranger.get(path)).status == 200
            assert (await stranger.get(f"{path}/")).status == 200
        paths = [(one, "GET") for one in (SYSTEMS, SESSIONS, f"{BLOCKS}/a-1", f"{ROOT}/Nothing")]
        paths += [(f"{ROOT}/", "POST"), (f"{SESSIONS}/x", "POST"), (f"{SESSIONS}/x", "DELETE")]
        paths += [(f"{BLOCKS}/a-1", "PATCH"), (f"{SYSTEMS}/n-1", "PATCH")]
        for path, method in paths:
            answer = await stranger.ask(method, path)
            assert (answer.status, answer.messages) == (401, ["NoValidSession"]), path
            assert answer.headers["WWW-Authenticate"].startswith("Basic realm=")
            assert TOKEN.reveal() not in str(answer.body)
        assert (await stranger.act("Add", "n-1", "a-1")).status == 401
        assert server.manager.books.holder(FIRST) is None

    served(tmp_path, play)


BAD_LOGINS: tuple[tuple[object, int], ...] = (
    ({}, 400),
    ({"UserName": "jackfield"}, 400),
    ({"UserName": "jackfield", "Password": 1}, 400),
    ({**LOGIN, "Password": "wrong"}, 401),
    ({**LOGIN, "UserName": "root"}, 401),
)


@pytest.mark.parametrize(("body", "status"), BAD_LOGINS)
def test_who_does_not_know_the_password_gets_no_session(tmp_path: Path, body: object, status: int) -> None:
    async def play(_: Server, client: Client) -> None:
        answer = await client.with_proof({}).ask("POST", SESSIONS, body)
        assert answer.status == status
        assert "X-Auth-Token" not in answer.headers
        assert (await client.get(SESSIONS)).body["Members"] == []

    served(tmp_path, play)


@pytest.mark.parametrize("path", [SESSIONS, f"{SESSIONS}/", f"{SESSIONS}/Members"])
def test_a_session_opens_everything_until_it_is_ended(tmp_path: Path, path: str) -> None:
    async def play(_: Server, client: Client) -> None:
        made = await client.with_proof({}).ask("POST", path, LOGIN)
        assert made.status == 201
        token, place = made.headers["X-Auth-Token"], made.headers["Location"]
        assert token not in str(made.body)
        assert TOKEN.reveal() not in str(made.body)
        member = client.with_proof({"X-Auth-Token": token})
        assert (await member.get(place)).body["UserName"] == "jackfield"
        assert links((await member.get(SESSIONS)).body["Members"]) == [place]
        assert (await member.ask("DELETE", place)).status == 204
        assert (await member.get(place)).status == 401
        assert (await client.get(place)).status == 404

    served(tmp_path, play)


def test_a_session_outlives_a_restart_but_not_its_time(tmp_path: Path) -> None:
    proof: dict[str, str] = {}

    async def before(_: Server, client: Client) -> None:
        proof["X-Auth-Token"] = (await client.ask("POST", SESSIONS, LOGIN)).headers["X-Auth-Token"]

    async def after(server: Server, client: Client) -> None:
        member = client.with_proof(proof)
        assert (await member.get(SYSTEMS)).status == 200
        clock.at += 2001.0
        assert (await member.get(SYSTEMS)).status == 401
        assert (await client.get(SESSIONS)).body["Members"] == []
        assert not any(key.startswith("session/") for key in server.manager.store.notes("redfish"))

    clock = ByHand()
    served(tmp_path, before)
    served(tmp_path, after, face=Redfish(Seconds(30.0), Seconds(2000.0), EVER), clock=clock)


def test_there_are_so_many_sessions_and_no_more(tmp_path: Path) -> None:
    async def play(_: Server, client: Client) -> None:
        for _number in range(SESSIONS_MAX):
            assert (await client.ask("POST", SESSIONS, LOGIN)).status == 201
        refused = await client.ask("POST", SESSIONS, LOGIN)
        assert (refused.status, refused.messages) == (503, ["SessionLimitExceeded"])

    served(tmp_path, play)
