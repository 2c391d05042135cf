"""The way in to a Redfish service: few log-ins, no locked accounts, and no secret that gets out."""

import asyncio
import logging
import traceback

import pytest

from jackfield.codec import redfish
from jackfield.fabric.http import Answer, Request
from jackfield.fabric.redfish.access import REFUSED_AGAIN
from jackfield.fabric.redfish.adapter import RedfishFabric
from jackfield.model.names import Seconds
from jackfield.ports import PortError, Retry
from jackfield.sim import clock
from unit.fabric.redfish_bench import ENVIRONMENT
from unit.fabric.redfish_paper import ORDER, SESSION_TOKEN, answer, error, play, shown, small


def test_one_log_in_is_enough_for_all_who_wait() -> None:
    paper = small()

    async def scene(fabric: RedfishFabric) -> None:
        await asyncio.gather(*(fabric.attach(ORDER) for _ in range(20)), fabric.inventory())
        assert len(paper.calls("POST", redfish.SESSIONS)) == 1

    play(paper, scene)
    assert [one.path for one in paper.calls("DELETE")] == [f"{redfish.SESSIONS}/1"]


def test_a_session_that_is_refused_is_followed_by_one_other_and_not_by_many() -> None:
    paper = small()

    async def scene(fabric: RedfishFabric) -> None:
        await shown(fabric)
        await clock.running().sleep(Seconds(10.0))
        paper.told["GET", redfish.SYSTEMS] = [answer(401)] * 500
        for _ in range(20):
            with pytest.raises(Retry):
                await fabric.inventory()
        assert len(paper.calls("POST", redfish.SESSIONS)) == 2

    play(paper, scene)


def test_a_service_that_gives_no_session_is_not_asked_for_one_by_every_call() -> None:
    paper = small()
    paper.told["POST", redfish.SESSIONS] = [error(503, "too many sessions")] * 2

    async def scene(fabric: RedfishFabric) -> None:
        for _ in range(20):
            with pytest.raises(Retry, match=r"^http://127.0.0.1:1: the service gives no session"):
                await fabric.inventory()
        assert len(paper.calls("POST", redfish.SESSIONS)) == 1
        await clock.running().sleep(Seconds(25.0))
        await shown(fabric)
        assert len(paper.calls("POST", redfish.SESSIONS)) == 3

    play(paper, scene)


@pytest.mark.parametrize(("how", "shown_most"), [("session", 1), ("basic", 2)])
def test_a_wrong_password_is_not_shown_again_and_again(how: str, shown_most: int) -> None:
    paper = small()
    paper.told["POST", redfish.SESSIONS] = [error(401, "no")] * 100
    paper.told["GET", redfish.SERVICE_ROOT] = [answer(401)] * 100 if how == "basic" else []

    def times() -> int:
        proofs = [one for one in paper.asked if "Authorization" in one.headers or one.method == "POST"]
        return len(proofs)

    async def scene(fabric: RedfishFabric) -> None:
        for _ in range(20):
            with pytest.raises(Retry, match=r"not let us in|lest the account be locked"):
                await fabric.inventory()
        with pytest.raises(Retry, match=r"not accepted; they are not shown again for 15 minutes"):
            await fabric.attach(ORDER)
        assert times() == shown_most
        await clock.running().sleep(REFUSED_AGAIN)
        with pytest.raises(Retry):
            await fabric.inventory()
        assert shown_most < times() <= 2 * shown_most

    play(paper, scene, authentication=how)


# --- secrets

SECRETS = {
    "basic": (ENVIRONMENT["RACK_A_PASSWORD"],),
    "session": (ENVIRONMENT["RACK_A_PASSWORD"], SESSION_TOKEN),
}


@pytest.mark.parametrize("how", SECRETS)
@pytest.mark.parametrize("status", [200, 202, 400, 401, 403, 404, 409, 412, 500, 503])
def test_no_secret_is_in_any_error_log_or_representation(
    caplog: pytest.LogCaptureFixture, how: str, status: int
) -> None:
    caplog.set_level(logging.DEBUG)
    paper = small()
    told: list[str] = []

    def repeating(request: Request) -> Answer | None:
        """Answer with all that was sent, and then some."""
        if request.path in {redfish.SERVICE_ROOT, redfish.SESSIONS} and how == "session":
            return None
        return error(status, " ".join((*request.headers.values(), *SECRETS[how])))

    async def scene(fabric: RedfishFabric) -> None:
        await shown(fabric) if how == "session" and status != 401 else None
        paper.instead = repeating
        for call in (fabric.inventory, lambda: fabric.attach(ORDER), lambda: fabric.detach(ORDER)):
            for _ in range(40):
                try:
                    told.append(repr(await call()))
                except PortError as failure:
                    told.extend(traceback.format_exception(failure))
                await clock.running().sleep(Seconds(2.0))
        told.extend((repr(fabric), repr(vars(fabric))))
        await fabric.__aexit__(None, None, None)

    play(paper, scene, authentication=how)
    assert told
    for secret in SECRETS[how]:
        assert secret not in "\n".join((*told, caplog.text))
