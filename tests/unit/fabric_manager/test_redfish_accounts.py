"""Accounts of the Redfish face: who may do what, and that nothing gives a password away."""

from pathlib import Path

import aiohttp
import pytest

from jackfield.fabric_manager.faces.redfish.accounts import ACCOUNTS_MAX, PRIVILEGES, Role
from jackfield.fabric_manager.server import Server
from unit.fabric_manager.redfish_bench import BLOCKS, ROOT, SESSIONS, SYSTEMS, Client, served

SERVICE = f"{ROOT}/AccountService"
ACCOUNTS = f"{SERVICE}/Accounts"
PASSWORD = "correct-horse-battery"  # noqa: S105 - nobody's
OTHER = "another-password-1"


def account(user: str, role: str = "ReadOnly", **more: object) -> dict[str, object]:
    return {"UserName": user, "Password": PASSWORD, "RoleId": role, **more}


def proof(user: str, password: str = PASSWORD) -> dict[str, str]:
    return {"Authorization": aiohttp.encode_basic_auth(user, password)}


async def member(client: Client, role: str, user: str = "ann") -> Client:
    """Return somebody of that role."""
    assert (await client.ask("POST", ACCOUNTS, account(user, role))).status == 201
    return client.with_proof(proof(user))


MAY: tuple[tuple[str, str, object, str], ...] = (
    ("GET", f"{SYSTEMS}/n-1", None, "Administrator Operator ReadOnly"),
    ("GET", SESSIONS, None, "Administrator Operator ReadOnly"),
    ("GET", f"{ACCOUNTS}/ann", None, "Administrator Operator ReadOnly"),
    ("GET", f"{ACCOUNTS}/jackfield", None, "Administrator"),
    ("PATCH", f"{BLOCKS}/a-1", {"CompositionStatus": {"Reserved": True}}, "Administrator Operator"),
    ("PATCH", f"{SYSTEMS}/n-1", {"Processors": {"Members": [{"Model": "A100"}]}}, "Administrator Operator"),
    (
        "POST",
        f"{SYSTEMS}/n-1/Actions/ComputerSystem.AddResourceBlock",
        {"ResourceBlock": {"@odata.id": f"{BLOCKS}/a-1"}},
        "Administrator Operator",
    ),
    (
        "POST",
        f"{SYSTEMS}/n-1/Actions/ComputerSystem.RemoveResourceBlock",
        {"ResourceBlock": {"@odata.id": f"{BLOCKS}/a-1"}},
        "Administrator Operator",
    ),
    ("POST", ACCOUNTS, account("bob"), "Administrator"),
    ("PATCH", f"{ACCOUNTS}/ann", {"Password": OTHER}, "Administrator Operator ReadOnly"),
    ("DELETE", f"{ACCOUNTS}/ann", None, "Administrator"),
)


@pytest.mark.parametrize(("method", "path", "body", "allowed"), MAY)
def test_everybody_may_do_what_their_role_says(
    tmp_path: Path, method: str, path: str, body: object, allowed: str
) -> None:
    async def play(_: Server, client: Client) -> None:
        for role in Role:
            ann = await member(client, role)
            answer = await ann.ask(method, path, body)
            if role in allowed.split():
                assert answer.status in {200, 201, 204}, role
            else:
                assert (answer.status, answer.messages) == (403, ["InsufficientPrivilege"]), role
            for user in ("ann", "bob"):
                await client.ask("DELETE", f"{ACCOUNTS}/{user}")
            await client.act("Remove", "n-1", "a-1")
            await client.reserve("a-1", reserved=False)

    served(tmp_path, play)


def test_a_role_shows_what_it_may(tmp_path: Path) -> None:
    async def play(_: Server, client: Client) -> None:
        for role, privileges in PRIVILEGES.items():
            shown = (await client.get(f"{SERVICE}/Roles/{role}")).body
            assert shown["AssignedPrivileges"] == [*privileges]
            patched = await client.ask("PATCH", f"{SERVICE}/Roles/{role}", {"AssignedPrivileges": []})
            assert patched.status == 405
        assert (await client.get(f"{SERVICE}/Roles/Nothing")).status == 404

    served(tmp_path, play)


def test_nobody_changes_their_own_role_or_another_account(tmp_path: Path) -> None:
    async def play(_: Server, client: Client) -> None:
        ann, bob = await member(client, "Operator"), await member(client, "ReadOnly", "bob")
        raised = await ann.ask("PATCH", f"{ACCOUNTS}/ann", {"RoleId": "Administrator"})
        assert (raised.status, raised.messages) == (400, ["PropertyNotWritable"])
        assert (await ann.ask("PATCH", f"{ACCOUNTS}/bob", {"Password": OTHER})).status == 403
        assert (await bob.get(SYSTEMS)).status == 200
        expanded = await bob.get(f"{ROOT}/?$expand=.($levels=3)")
        assert "Account of ann" not in str(expanded.body)
        assert "Account of ann" in str((await client.get(f"{ROOT}/?$expand=.($levels=3)")).body)

    served(tmp_path, play)


def test_sessions_of_others_are_ended_only_by_who_may(tmp_path: Path) -> None:
    async def play(_: Server, client: Client) -> None:
        bob = await member(client, "Operator", "bob")
        login = {"UserName": "ann", "Password": PASSWORD}
        await member(client, "ReadOnly")
        made = await client.with_proof({}).ask("POST", SESSIONS, login)
        place = made.headers["Location"]
        ann = client.with_proof({"X-Auth-Token": made.headers["X-Auth-Token"]})
        assert made.body["UserName"] == "ann"
        assert (await bob.ask("DELETE", place)).status == 403
        assert (await ann.ask("DELETE", place)).status == 204
        assert (await ann.get(SYSTEMS)).status == 401

    served(tmp_path, play)


@pytest.mark.parametrize("how", ["Password", "Enabled", "DELETE"])
def test_who_is_shut_out_is_out_at_once(tmp_path: Path, how: str) -> None:
    async def play(_: Server, client: Client) -> None:
        ann = await member(client, "Operator")
        made = await client.with_proof({}).ask("POST", SESSIONS, {"UserName": "ann", "Password": PASSWORD})
        session = client.with_proof({"X-Auth-Token": made.headers["X-Auth-Token"]})
        for one in (ann, session):
            assert (await one.get(SYSTEMS)).status == 200
        if how == "DELETE":
            assert (await client.ask("DELETE", f"{ACCOUNTS}/ann")).status == 204
        else:
            wanted = {"Password": OTHER, "Enabled": False}
            answer = await client.ask("PATCH", f"{ACCOUNTS}/ann", {how: wanted[how]})
            assert answer.status == 200
        for one in (ann, session):
            assert (await one.get(SYSTEMS)).status == 401
        other = (await client.with_proof(proof("ann", OTHER)).get(SYSTEMS)).status
        assert other == (200 if how == "Password" else 401)
        if how == "DELETE":
            await member(client, "Operator")
            assert (await session.get(SYSTEMS)).status == 401, "who comes next is somebody else"

    served(tmp_path, play)


def test_accounts_outlive_a_restart_and_their_passwords_stand_nowhere(tmp_path: Path) -> None:
    async def before(_: Server, client: Client) -> None:
        made = await client.ask("POST", ACCOUNTS, account("ann", "Operator"))
        assert (made.status, made.headers["Location"]) == (201, f"{ACCOUNTS}/ann")
        assert made.body["Password"] is None
        assert PASSWORD not in str(made.body)

    async def after(_: Server, client: Client) -> None:
        assert (await client.with_proof(proof("ann")).get(f"{ACCOUNTS}/ann")).body["RoleId"] == "Operator"
        assert (await client.with_proof(proof("ann", OTHER)).get(SYSTEMS)).status == 401

    served(tmp_path, before)
    assert all(PASSWORD.encode() not in one.read_bytes() for one in tmp_path.iterdir())
    served(tmp_path, after)


def test_of_two_who_change_what_they_saw_one_is_told_to_look_again(tmp_path: Path) -> None:
    async def play(_: Server, client: Client) -> None:
        await member(client, "ReadOnly")
        tag = (await client.get(f"{ACCOUNTS}/ann")).headers["ETag"]
        statuses = [
            (await client.ask("PATCH", f"{ACCOUNTS}/ann", {"RoleId": role}, If_Match=tag)).status
            for role in ("Operator", "Administrator")
        ]
        assert statuses == [200, 412]
        assert (await client.get(f"{ACCOUNTS}/ann")).body["RoleId"] == "Operator"
        assert (await client.ask("DELETE", f"{ACCOUNTS}/ann", If_Match=tag)).status == 412

    served(tmp_path, play)


REFUSED: tuple[tuple[str, str, object, int, list[str]], ...] = (
    ("POST", ACCOUNTS, {}, 400, ["PropertyMissing"]),
    ("POST", ACCOUNTS, account("ann") | {"RoleId": "King"}, 400, ["PropertyValueTypeError"]),
    ("POST", ACCOUNTS, account("ann") | {"Password": "short"}, 400, ["PropertyValueTypeError"]),
    ("POST", ACCOUNTS, account("ann") | {"Password": "x" * 300}, 400, ["PropertyValueTypeError"]),
    ("POST", ACCOUNTS, account("ann") | {"Password": 1}, 400, ["PropertyValueTypeError"]),
    ("POST", ACCOUNTS, account("ann", Enabled=1), 400, ["PropertyValueTypeError"]),
    ("POST", ACCOUNTS, account("ann", Nothing=1), 400, ["PropertyUnknown"]),
    ("POST", ACCOUNTS, account("a/b"), 400, ["PropertyValueTypeError"]),
    ("POST", ACCOUNTS, account(""), 400, ["PropertyValueTypeError"]),
    ("POST", ACCOUNTS, account("jackfield"), 400, ["ResourceAlreadyExists"]),
    ("PATCH", f"{ACCOUNTS}/jackfield", {"Password": OTHER}, 400, ["PropertyNotWritable"]),
    ("PATCH", f"{ACCOUNTS}/jackfield", {"Enabled": False}, 400, ["PropertyNotWritable"]),
    ("DELETE", f"{ACCOUNTS}/jackfield", None, 403, ["InsufficientPrivilege"]),
    ("PATCH", f"{ACCOUNTS}/nobody", {"Enabled": False}, 404, ["ResourceMissingAtURI"]),
    ("PATCH", f"{ACCOUNTS}/bob", {"UserName": "x"}, 400, ["PropertyNotWritable"]),
    ("PATCH", f"{ACCOUNTS}/bob", {"@odata.id": "x"}, 400, ["NoOperation"]),
    ("PATCH", f"{ACCOUNTS}/bob", {"Enabled": True, "Nothing": 1}, 200, ["PropertyUnknown"]),
)


@pytest.mark.parametrize("asked", REFUSED, ids=range(len(REFUSED)))
def test_an_account_is_only_what_it_can_be(
    tmp_path: Path, asked: tuple[str, str, object, int, list[str]]
) -> None:
    async def play(_: Server, client: Client) -> None:
        await member(client, "ReadOnly", "bob")
        method, path, body, status, messages = asked
        answer = await client.ask(method, path, body)
        assert (answer.status, answer.messages) == (status, messages)
        assert (await client.get(ACCOUNTS)).body["Members@odata.count"] == 2
        assert (await client.get(SYSTEMS)).status == 200

    served(tmp_path, play)


def test_there_are_so_many_accounts_and_no_more(tmp_path: Path) -> None:
    async def play(_: Server, client: Client) -> None:
        for number in range(ACCOUNTS_MAX):
            await member(client, "ReadOnly", f"u{number}")
        refused = await client.ask("POST", ACCOUNTS, account("one-more"))
        assert (refused.status, refused.messages) == (400, ["CreateLimitReachedForResource"])

    served(tmp_path, play)
