"""The NEC face runs one job at a time, in its manager's words, and forgets none of it over a restart."""

import asyncio
from pathlib import Path

import pytest

from jackfield.fabric_manager.faces.nec import Named
from jackfield.fabric_manager.faces.nec_jobs import JOBS_MAX, Jobs
from jackfield.fabric_manager.faults import Fault, Kind
from jackfield.model.names import NodeName, OrderID, PhysicalID, Seconds
from unit.fabric_manager.nec_client import APPLY, BASIC, BEARER, Client, Json, results, served

# --- who may come in


@pytest.mark.parametrize(
    ("proof", "status"), [(BEARER, 200), (BASIC, 200), ("", 401), ("Bearer wrong", 401), (BASIC[:-4], 401)]
)
def test_nobody_comes_in_without_the_token(tmp_path: Path, proof: str, status: int) -> None:
    async def play(client: Client) -> None:
        for path in (APPLY, "/cdim/api/v1/resources", "/cdim/api/v1/nodes"):
            assert (await client.call("GET", path))[0] == status

    served(tmp_path, play, proof=proof)


# --- jobs


def test_procedures_are_carried_out_after_what_they_depend_on(tmp_path: Path) -> None:
    async def play(client: Client) -> None:
        job = await client.begin(
            client.step(3, "connect", "a-1", "n-2", after=(1, 2)),
            client.step(1, "connect", "a-1"),
            client.step(2, "disconnect", "a-1", after=(1,)),
            client.step(4, "boot", "", after=(3,)),
        )
        ended = await client.ended(job)
        assert ended["status"] == "COMPLETED"
        assert [one["operationID"] for one in ended["applyResult"]] == [1, 2, 3, 4]
        assert await client.there() == {"a-1": "n-2"}

    served(tmp_path, play, 0.5)


def test_what_depends_on_a_failure_is_skipped_and_the_rest_is_done(tmp_path: Path) -> None:
    async def play(client: Client) -> None:
        await client.manager.set_fault(Fault(Kind.FAIL, device=PhysicalID("a-1"), reason="no link"))
        job = await client.begin(
            client.step(1, "connect", "a-1"),
            client.step(2, "connect", "a-2", after=(1,)),
            client.step(3, "connect", "a-3", after=(2,)),
            client.step(4, "connect", "a-4"),
        )
        ended = await client.ended(job)
        assert ended["status"] == "FAILED"
        assert results(ended) == {1: "FAILED", 2: "SKIPPED", 3: "SKIPPED", 4: "COMPLETED"}
        assert ended["applyResult"][0]["responseBody"]["message"] == "no link"
        assert await client.there() == {"a-4": "n-1"}

    served(tmp_path, play)


CASES = (
    (("connect", "a-1", "n-1"), ""),
    (("disconnect", "a-2", "n-1"), ""),
    (("disconnect", "a-1", "n-2"), "device a-1 is on n-1, not on n-2"),
    (("connect", "a-1", "n-2"), "device a-1 is taken by n-1"),
    (("disconnect", "a-9", "n-1"), "device a-9 was attached by before"),
    (("connect", "z-1", "n-1"), "there is no device z-1"),
)


@pytest.mark.parametrize(("step", "words"), CASES, ids=[" ".join(step) for step, _ in CASES])
def test_what_is_so_already_is_done_and_what_cannot_be_fails_with_words(
    tmp_path: Path, step: tuple[str, str, str], words: str
) -> None:
    async def play(client: Client) -> None:
        await client.ended(await client.begin(client.step(1, "connect", "a-1")))
        before = await client.there()
        ended = await client.ended(await client.begin(client.step(1, *step)))
        assert ended["status"] == ("FAILED" if words else "COMPLETED")
        assert ended["applyResult"][0]["responseBody"].get("message", "") == words
        assert await client.there() == before

    served(tmp_path, play, before="a-9")


def test_a_job_that_does_nothing_is_done_at_once(tmp_path: Path) -> None:
    async def play(client: Client) -> None:
        status, shown = await client.call("GET", f"{APPLY}/{await client.begin()}")
        assert (status, shown["status"], shown["applyResult"]) == (200, "COMPLETED", [])

    served(tmp_path, play)


def test_one_job_runs_at_a_time_and_who_comes_meanwhile_is_told(tmp_path: Path) -> None:
    async def play(client: Client) -> None:
        hang = await client.manager.set_fault(Fault(Kind.HANG, device=PhysicalID("a-1")))
        job = await client.begin(client.step(1, "connect", "a-1"))
        assert (await client.call("GET", f"{APPLY}/{job}"))[1].keys() == {"applyID", "status", "startedAt"}
        another: Json = {"procedures": [client.step(1, "connect", "a-2")]}
        nothing: Json = {"procedures": []}
        for body in (another, nothing):
            status, told = await client.call("POST", APPLY, body)
            assert (status, told["code"]) == (409, "E40010")
        status, told = await client.call("DELETE", f"{APPLY}/{job}")
        assert (status, told["code"]) == (409, "E40024")
        status, told = await client.call("PUT", f"{APPLY}/{job}?action=resume")
        assert (status, told["code"]) == (409, "E40022")
        await client.manager.clear_fault(hang.id)
        await client.ended(job)
        assert (await client.call("POST", APPLY, another))[0] == 202
        assert (await client.call("DELETE", f"{APPLY}/{job}"))[0] == 204
        status, told = await client.call("GET", f"{APPLY}/{job}")
        assert (status, told["code"]) == (404, "E40020")

    served(tmp_path, play)


def test_of_two_who_come_at_once_one_is_served(tmp_path: Path) -> None:
    async def play(client: Client) -> None:
        await client.manager.set_fault(Fault(Kind.LATE, verb="attach", seconds=Seconds(0.1)))
        await client.manager.set_fault(Fault(Kind.HANG, verb="attach"))
        bodies = [{"procedures": [client.step(1, "connect", device)]} for device in ("a-1", "a-2", "a-3")]
        answers = await asyncio.gather(*(client.call("POST", APPLY, body) for body in bodies))
        assert sorted(status for status, _ in answers) == [202, 409, 409]

    served(tmp_path, play)


def test_of_too_many_jobs_the_oldest_that_have_ended_are_forgotten(tmp_path: Path) -> None:
    async def play(client: Client) -> None:
        named = Named(client.manager)
        jobs = Jobs(client.manager, named.ports, named.devices)
        made = [jobs.begin(()).apply_id for _ in range(JOBS_MAX + 3)]
        assert [one.apply_id for one in jobs] == made[3:]
        await client.manager.store.committed()
        again = Jobs(client.manager, named.ports, named.devices)
        assert [one.apply_id for one in again] == made[3:]

    served(tmp_path, play)


# --- cancelling


@pytest.mark.parametrize("rollback", ["true", "false"])
def test_a_cancelled_job_does_no_more_and_is_rolled_back_if_asked_to(tmp_path: Path, rollback: str) -> None:
    async def play(client: Client) -> None:
        hang = await client.manager.set_fault(Fault(Kind.HANG, device=PhysicalID("a-2"), verb="attach"))
        job = await client.begin(
            client.step(1, "connect", "a-1"),
            client.step(2, "connect", "a-2", after=(1,)),
            client.step(3, "connect", "a-3", after=(2,)),
        )
        while (await client.there()).keys() != {"a-1"}:
            await client.manager.clock.sleep(Seconds(0.2))
        path = f"{APPLY}/{job}?action=cancel&rollbackOnCancel={rollback}"
        assert await client.call("PUT", path) == (202, {"status": "CANCELING"})
        assert await client.call("PUT", path) == (200, {"status": "CANCELING"})
        shown = (await client.call("GET", f"{APPLY}/{job}"))[1]
        assert shown.keys() == {"applyID", "status", "startedAt", "canceledAt", "executeRollback"}
        await client.manager.clear_fault(hang.id)
        ended = await client.ended(job)
        assert (ended["status"], results(ended)) == (
            "CANCELED",
            {1: "COMPLETED", 2: "COMPLETED", 3: "CANCELED"},
        )
        undone = [(one["operation"], one["targetDeviceID"]) for one in ended["rollbackProcedures"]]
        assert undone == [("disconnect", "a-2"), ("disconnect", "a-1")]
        if rollback == "true":
            assert (ended["rollbackStatus"], results(ended, "rollbackResult")) == (
                "COMPLETED",
                {1: "COMPLETED", 2: "COMPLETED"},
            )
            assert await client.there() == {}
        else:
            assert "rollbackStatus" not in ended
            assert await client.there() == {"a-1": "n-1", "a-2": "n-1"}
        assert (await client.call("PUT", f"{APPLY}/{job}?action=resume"))[0] == 200

    served(tmp_path, play)


def test_a_job_that_has_ended_cannot_be_cancelled(tmp_path: Path) -> None:
    async def play(client: Client) -> None:
        job = await client.begin(client.step(1, "connect", "a-1"))
        await client.ended(job)
        status, told = await client.call("PUT", f"{APPLY}/{job}?action=cancel")
        assert (status, told["code"]) == (409, "E40022")

    served(tmp_path, play)


# --- suspended


async def suspended(client: Client, *steps: Json) -> str:
    await client.manager.set_fault(Fault(Kind.SUSPEND, device=PhysicalID("a-1"), times=1))
    job = await client.begin(
        *steps or (client.step(1, "connect", "a-1"), client.step(2, "connect", "a-2", after=(1,)))
    )
    shown = await client.until(job, "SUSPENDED")
    assert "suspendedAt" in shown
    return job


def test_a_suspended_job_keeps_all_others_away_until_it_is_resumed(tmp_path: Path) -> None:
    async def play(client: Client) -> None:
        job = await suspended(client)
        shown = (await client.call("GET", f"{APPLY}/{job}"))[1]
        assert [one["operationID"] for one in shown["resumeProcedures"]] == [1, 2]
        status, told = await client.call("POST", APPLY, {"procedures": [client.step(1, "connect", "a-3")]})
        assert (status, told["code"]) == (409, "E40027")
        assert job in told["message"]
        assert await client.call("PUT", f"{APPLY}/{job}?action=resume") == (202, {"status": "IN_PROGRESS"})
        ended = await client.ended(job)
        assert (ended["status"], await client.there()) == ("COMPLETED", {"a-1": "n-1", "a-2": "n-1"})
        assert "resumedAt" in ended

    served(tmp_path, play)


def test_a_suspended_job_that_is_cancelled_has_failed_and_leaves_nothing(tmp_path: Path) -> None:
    async def play(client: Client) -> None:
        job = await suspended(client)
        assert await client.call("PUT", f"{APPLY}/{job}?action=cancel") == (202, {"status": "FAILED"})
        again = await client.begin(client.step(1, "connect", "a-2"))
        assert (await client.ended(again))["status"] == "COMPLETED"
        while client.manager.books.unfinished():
            await client.manager.clock.sleep(Seconds(0.2))
        assert await client.there() == {"a-2": "n-1"}
        assert (await client.ended(job))["status"] == "FAILED"

    served(tmp_path, play)


def test_a_rollback_can_be_suspended_and_resumed(tmp_path: Path) -> None:
    async def play(client: Client) -> None:
        await client.manager.set_fault(Fault(Kind.SUSPEND, device=PhysicalID("a-1"), verb="detach", times=1))
        hang = await client.manager.set_fault(Fault(Kind.HANG, device=PhysicalID("a-1"), verb="attach"))
        job = await client.begin(
            client.step(1, "connect", "a-1"), client.step(2, "connect", "a-2", after=(1,))
        )
        await client.call("PUT", f"{APPLY}/{job}?action=cancel&rollbackOnCancel=true")
        await client.manager.clear_fault(hang.id)
        while (await client.until(job, "CANCELED")).get("rollbackStatus") != "SUSPENDED":
            await client.manager.clock.sleep(Seconds(0.2))
        status, told = await client.call("POST", APPLY, {"procedures": []})
        assert (status, told["code"]) == (409, "E40027")
        resumed = {"status": "CANCELED", "rollbackStatus": "IN_PROGRESS"}
        assert await client.call("PUT", f"{APPLY}/{job}?action=resume") == (202, resumed)
        assert (await client.until(job, "CANCELED"))["rollbackStatus"] == "COMPLETED"
        assert await client.there() == {}

    served(tmp_path, play)


def test_work_of_another_protocol_that_is_suspended_keeps_jobs_away_too(tmp_path: Path) -> None:
    async def play(client: Client) -> None:
        await client.manager.set_fault(Fault(Kind.SUSPEND, times=1))
        order = client.manager.order(OrderID("x"), PhysicalID("a-1"), NodeName("n-1"))
        await client.manager.attach(order, "native")
        while client.manager.faults.suspended is None:
            await client.manager.clock.sleep(Seconds(0.2))
        status, told = await client.call("POST", APPLY, {"procedures": []})
        assert (status, told["code"]) == (409, "E40027")

    served(tmp_path, play)


# --- restarts


def test_a_job_is_carried_on_after_a_restart_with_all_that_depends_on_it(tmp_path: Path) -> None:
    begun: list[str] = []

    async def before(client: Client) -> None:
        begun.append(await client.begin(client.step(1, "connect", "a-3")))
        await client.ended(begun[0])
        steps = (client.step(1, "disconnect", "a-3"), client.step(2, "connect", "a-3", "n-2", after=(1,)))
        begun.append(await client.begin(*steps))

    async def after(client: Client) -> None:
        assert (await client.ended(begun[1]))["status"] == "COMPLETED"
        assert await client.there() == {"a-3": "n-2"}
        listed = (await client.call("GET", APPLY))[1]["applyResults"]
        assert [one["applyID"] for one in listed] == begun[::-1]

    served(tmp_path, before, 2.0)
    served(tmp_path, after, 0.1)


def test_a_job_stays_suspended_over_a_restart(tmp_path: Path) -> None:
    begun: list[str] = []

    async def before(client: Client) -> None:
        begun.append(await suspended(client))

    async def after(client: Client) -> None:
        assert (await client.until(begun[0], "SUSPENDED"))["status"] == "SUSPENDED"
        assert (await client.call("PUT", f"{APPLY}/{begun[0]}?action=resume"))[0] == 202
        assert (await client.ended(begun[0]))["status"] == "COMPLETED"

    served(tmp_path, before)
    served(tmp_path, after)


# --- lists


def test_jobs_are_listed_as_asked_for(tmp_path: Path) -> None:
    async def play(client: Client) -> None:
        made = []
        for number in range(1, 6):
            step = client.step(1, "connect", "a-9" if number == 3 else f"a-{number}")
            made.append(await client.begin(step))
            await client.ended(made[-1])
        cases: dict[str, list[int]] = {
            "": [5, 4, 3, 2, 1],
            "orderBy=asc": [1, 2, 3, 4, 5],
            "limit=2&offset=1": [4, 3],
            "status=FAILED": [3],
            "status=SUSPENDED": [],
            "sortBy=endedAt&orderBy=asc&limit=1": [1],
            "startedAtSince=2100-01-01T00:00:00Z": [],
            "endedAtUntil=2100-01-01T00:00:00%2B09:00&limit=1": [5],
        }
        for query, numbers in cases.items():
            status, page = await client.call("GET", f"{APPLY}?{query}")
            assert status == 200
            found = [one["applyID"] for one in page["applyResults"]]
            assert found == [made[number - 1] for number in numbers], query
            assert page["count"] == len(numbers)
        shown = (await client.call("GET", APPLY))[1]
        assert shown["totalCount"] == 5
        assert "procedures" not in shown["applyResults"][0]
        shown = (await client.call("GET", f"{APPLY}?fields=procedures&limit=1"))[1]
        assert shown["applyResults"][0]["procedures"][0]["targetDeviceID"] == "a-5"
        assert "applyResult" not in shown["applyResults"][0]

    served(tmp_path, play, before="a-9")


# --- what is wrong

STEP: Json = {
    "operationID": 1,
    "operation": "connect",
    "targetCPUID": "c",
    "targetDeviceID": "d",
    "dependencies": [],
}
BAD: tuple[object, ...] = (
    b"",
    b"\xff",
    b"[" * 100_000,
    {},
    {"procedures": [{}]},
    {"procedures": [STEP | {"operation": "explode"}]},
    {"procedures": [STEP | {"operationID": "1"}]},
    {"procedures": [STEP | {"targetCPUID": ""}]},
    {"procedures": [STEP | {"targetDeviceID": "../.."}]},
    {"procedures": [{"operationID": 1, "operation": "connect", "targetDeviceID": "d", "dependencies": []}]},
    {"procedures": [STEP, STEP]},
    {"procedures": [STEP | {"dependencies": [1]}]},
    {"procedures": [STEP | {"dependencies": [7]}]},
    {"procedures": [STEP, STEP | {"operationID": 2, "dependencies": [7]}]},
    {"procedures": [STEP | {"dependencies": [2]}, STEP | {"operationID": 2, "dependencies": [1]}]},
    {"procedures": [STEP | {"operationID": number} for number in range(1001)]},
)  # fmt: skip
QUERIES = (
    f"{APPLY}?limit=0",
    f"{APPLY}?limit=x",
    f"{APPLY}?offset=-1",
    f"{APPLY}?offset=99999999999999999999",
    f"{APPLY}?sortBy=name",
    f"{APPLY}?orderBy=up",
    f"{APPLY}?status=RESTING",
    f"{APPLY}?fields=secrets",
    f"{APPLY}?startedAtSince=yesterday",
    "/cdim/api/v1/resources?detail=perhaps",
)


def test_what_is_not_understood_is_refused_with_its_code_and_nothing_begins(tmp_path: Path) -> None:
    async def play(client: Client) -> None:
        await client.ended(await client.begin(client.step(1, "connect", "a-1")))
        calls = [("POST", APPLY, body) for body in BAD] + [("GET", path, None) for path in QUERIES]
        calls += [("PUT", f"{APPLY}/1?action=explode", None), ("PUT", f"{APPLY}/1", None)]
        calls += [("PUT", f"{APPLY}/1?action=cancel&rollbackOnCancel=x", None)]
        for method, path, body in calls:
            status, told = await client.call(method, path, body)
            assert (status, told["code"]) == (400, "E40001"), (path, body, told)
            assert 10 < len(told["message"]) < 500
        for method in ("GET", "DELETE", "PUT"):
            status, told = await client.call(method, f"{APPLY}/0123456789?action=cancel")
            assert (status, told["code"]) == (404, "E40020")
        assert (await client.call("GET", APPLY))[1]["totalCount"] == 1

    served(tmp_path, play)
