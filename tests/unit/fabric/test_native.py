"""Whatever a manager or the way to it does, the adapter answers in time with one of the port's errors."""

import asyncio
import ssl
import traceback
from collections.abc import Coroutine
from pathlib import Path

import pytest
import trustme

from jackfield.fabric.http import ANSWER_BYTES_MAX, ANSWER_PARTS_MAX, CERTIFICATE_AGAIN, Broken
from jackfield.fabric.native import NativeFabric
from jackfield.model.fabric import Done, Inventory
from jackfield.model.names import PhysicalID
from jackfield.ports import Conflict, Gone, PortError, Refused, Retry
from unit.fabric.wire import (
    FABRIC,
    ORDER,
    TOKEN,
    Answer,
    Manager,
    adapter,
    endless,
    hanging_up,
    response,
    saying,
    silence,
)

DONE = '{"type": "Done", "device": "0001"}'
PROBLEM = "Content-Type: application/problem+json"


def problem(word: str, detail: str) -> str:
    return f'{{"type": "urn:jackfield:problem:{word}", "title": "{word}", "status": 0, "detail": "{detail}"}}'


async def attached(manager: Manager, patience: float = 5.0) -> Done:
    async with manager.up() as url, adapter(url, patience=patience) as fabric:
        answer = await fabric.attach(ORDER)
        assert isinstance(answer, Done)
        return answer


def failure(answer: Answer, patience: float = 5.0) -> PortError:
    """Return what an attach raises, if it raises it in time."""

    async def main() -> None:
        async with asyncio.timeout(patience + 5.0):
            await attached(Manager(answer), patience)

    with pytest.raises(PortError) as caught:
        asyncio.run(main())
    return caught.value


def test_an_order_is_sent_once_with_the_token_and_answered() -> None:
    manager = Manager(response("200 OK", DONE))
    assert asyncio.run(attached(manager)) == Done(PhysicalID("0001"))
    (heard,) = manager.heard
    assert heard.startswith("POST /v1/fabrics/rack-a/attach HTTP/1.1\r\n")
    assert f"Authorization: Bearer {TOKEN.reveal()}\r\n" in heard


def test_a_path_before_the_version_is_kept() -> None:
    manager = Manager(response("200 OK", DONE))

    async def main() -> None:
        async with manager.up() as url, adapter(f"{url}/behind/a/proxy/") as fabric:
            await fabric.detach(ORDER)

    asyncio.run(main())
    assert manager.heard[0].startswith("POST /behind/a/proxy/v1/fabrics/rack-a/detach ")


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (response("503 Busy", problem("retry", "one at a time"), PROBLEM), Retry, "one at a time"),
        (response("409 Conflict", problem("conflict", "changed"), PROBLEM), Conflict, "changed"),
        (response("404 Not Found", problem("gone", "no such fabric"), PROBLEM), Gone, "no such fabric"),
        (response("422 No", problem("refused", "quota"), PROBLEM), Refused, "quota"),
        (response("500 Oh", problem("bug", "cannot be"), PROBLEM), Retry, "cannot be (500)"),
        (response("401 Who", "", PROBLEM), Retry, "the token is not accepted (401); correct the file"),
        (response("403 No", "{}", PROBLEM), Retry, "the manager answered with status 403"),
        (response("404 Not Found", "<html>"), Retry, "the manager answered with status 404"),
        (response("502 Bad Gateway", "<html>"), Retry, "the manager answered with status 502"),
        (response("204 No Content"), Retry, "the manager answered with status 204"),
        (
            response("307 Away", "", "Location: http://127.0.0.1:1/"),
            Retry,
            "the manager answered with status 307",
        ),
        (response("200 OK", "<html>"), Retry, "the answer is not understood: JSON is malformed"),
        (
            response("200 OK", '{"type": "Maybe"}'),
            Retry,
            "the answer is not understood: Invalid value 'Maybe'",
        ),
        (saying("SSH-2.0-OpenSSH_9.6\r\n\r\n"), Retry, "the answer is not HTTP: "),
        (saying("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"), Retry, ""),
        (hanging_up, Broken, ""),
    ],
)
def test_every_answer_becomes_one_of_the_ports_errors(
    answer: Answer, kind: type[PortError], words: str
) -> None:
    error = failure(answer)
    assert type(error) is kind
    address, _, said = str(error).partition(": ")
    assert address.startswith("http://127.0.0.1:")
    assert said.startswith(words)
    assert said


def test_a_manager_that_is_silent_is_asked_again_after_the_time_out() -> None:
    error = failure(silence, patience=0.2)
    assert isinstance(error, Retry)
    assert "no answer within 0.2 s" in str(error)


def test_an_answer_without_end_is_cut_off() -> None:
    error = failure(endless, patience=20.0)
    assert isinstance(error, Retry)
    assert str(error).endswith(f"the answer is larger than {ANSWER_BYTES_MAX >> 20} MiB")


def test_a_manager_that_is_not_there_is_asked_again() -> None:
    async def main() -> None:
        async with Manager(silence).up() as url:
            pass
        async with adapter(url) as fabric:
            await fabric.inventory()

    with pytest.raises(Retry, match="Connection refused"):
        asyncio.run(main())


def test_the_wait_that_a_manager_asks_for_is_kept() -> None:
    error = failure(response("503 Busy", "", "Retry-After: 7"))
    assert isinstance(error, Retry)
    assert error.after == 7.0


def test_an_answer_of_too_many_parts_is_not_read() -> None:
    error = failure(response("200 OK", f"[{'{},' * ANSWER_PARTS_MAX}{{}}]"))
    assert isinstance(error, Retry)
    assert str(error).endswith("the answer has more than 1,000,000 parts")


@pytest.mark.parametrize(("name", "shown"), [("rack-z", "rack-z"), (f"Bearer {TOKEN.reveal()}", "Bearer …")])
def test_a_manager_of_another_fabric_is_refused(name: str, shown: str) -> None:
    async def main() -> None:
        body = f'{{"fabric": "{name}"}}'
        async with Manager(response("200 OK", body)).up() as url, adapter(url) as fabric:
            await fabric.inventory()

    with pytest.raises(Refused, match=rf"shows fabric '{shown}' where 'rack-a' was asked for$"):
        asyncio.run(main())


def test_an_inventory_that_did_not_change_is_sent_once() -> None:
    manager = Manager(response("200 OK", '{"fabric": "rack-a"}', 'ETag: "7"'))

    async def main() -> None:
        async with manager.up() as url, adapter(url) as fabric:
            first = await fabric.inventory()
            manager.answer = response("304 Not Modified", "", 'ETag: "7"')
            assert first == Inventory(FABRIC)
            assert await fabric.inventory() is first

    asyncio.run(main())
    assert "If-None-Match" not in manager.heard[0]
    assert 'If-None-Match: "7"\r\n' in manager.heard[1]


def test_a_line_may_be_closed_and_used_again() -> None:
    async def main() -> None:
        async with Manager(response("200 OK", DONE)).up() as url:
            fabric = adapter(url)
            for _ in range(2):
                async with fabric:
                    assert await fabric.attach(ORDER) == Done(PhysicalID("0001"))

    asyncio.run(main())


# --- secrets


@pytest.mark.parametrize(
    "answer",
    [
        hanging_up,
        saying("nonsense\r\n\r\n"),
        response("302 Away", "", "Location: http://127.0.0.1:1/"),
        response("401 Who"),
        response("200 OK", "nonsense"),
    ],
)
def test_the_token_is_in_no_error_however_deep_one_looks(answer: Answer) -> None:
    error: BaseException | None = failure(answer)
    assert error is not None
    assert TOKEN.reveal() not in "".join(traceback.format_exception(error))
    while error is not None:
        assert TOKEN.reveal() not in f"{error} {error!r} {vars(error)}"
        error = error.__cause__ or error.__context__


def test_the_token_is_not_part_of_what_the_adapter_shows_of_itself() -> None:
    fabric = adapter("http://127.0.0.1:1")
    assert TOKEN.reveal() not in f"{fabric} {fabric!r} {vars(fabric)}"


# --- certificates


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1, with its key and the authority that vouches for it in the same file."""
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    authority = trustme.CA()
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(path)
    authority.cert_pem.write_to_path(path, append=True)
    return path


def over_tls(certificate: Path, **trust: object) -> Coroutine[None, None, object]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)

    async def main() -> object:
        async with Manager(response("200 OK", DONE), context).up() as url:
            fabric: NativeFabric = adapter(url, **trust)  # type: ignore[arg-type]  # the words of the adapter
            async with fabric:
                return await fabric.attach(ORDER)

    return main()


def test_a_manager_is_recognised_by_its_certificate(certificate: Path) -> None:
    assert asyncio.run(over_tls(certificate, ca_file=str(certificate))) == Done(PhysicalID("0001"))


def test_a_manager_that_nobody_vouches_for_hears_no_order(certificate: Path) -> None:
    with pytest.raises(Retry, match="the manager cannot be recognised") as caught:
        asyncio.run(over_tls(certificate))
    assert caught.value.after == CERTIFICATE_AGAIN


def test_only_who_says_so_does_without_a_certificate(certificate: Path) -> None:
    assert asyncio.run(over_tls(certificate, insecure=True)) == Done(PhysicalID("0001"))
