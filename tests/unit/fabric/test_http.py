"""What somebody else says is shown without secrets, on one line, and not at length."""

import asyncio
import base64

import pytest

from jackfield.fabric.http import WORDS_MAX, Answer, Request, Wire, legible, without
from jackfield.fabric.settings import FabricSettings, Secret
from jackfield.model.names import Seconds
from jackfield.ports import PortError, Refused, Retry
from unit.fabric import wire
from unit.fabric.wire import FABRIC, TOKEN, Manager, adapter, response, saying

SLASHED = Secret("to/ken+with=all/that")
BASIC = base64.b64encode(b"somebody:very-secret-indeed").decode()


def asked(manager: Manager, *requests: Request) -> list[Answer]:
    async def main() -> list[Answer]:
        async with manager.up() as url:
            line = Wire(
                FabricSettings(FABRIC, "native", url, call_timeout_seconds=Seconds(5.0)), "application/json"
            )
            try:
                return [await line.call(one) for one in requests]
            finally:
                await line.close()

    return asyncio.run(main())


def failed(answer: wire.Answer) -> PortError:
    async def main() -> None:
        async with Manager(answer).up() as url, adapter(url) as fabric:
            await fabric.inventory()

    with pytest.raises(PortError) as caught:
        asyncio.run(main())
    return caught.value


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("the token to/ken+with=all/that is old", "the token … is old"),
        ("the token to/ken+wit…", "the token ……"),
        ("to/ken+w", "…"),
        ("to/ken+with=all/that, to/ken+with=al and to/ken+x", "…, … and to/ken+x"),
    ],
)
def test_a_secret_is_struck_out_also_when_it_was_cut_off(said: str, shown: str) -> None:
    assert without(said, (Secret(""), SLASHED)) == shown


@pytest.mark.parametrize(
    ("headers", "secrets", "said"),
    [
        ({}, (SLASHED,), SLASHED.reveal()),
        ({}, (SLASHED,), SLASHED.reveal().replace("/", "\\/")),
        ({"Authorization": f"Bearer {SLASHED.reveal()}"}, (), SLASHED.reveal()),
        ({"Authorization": f"Basic {BASIC}"}, (), BASIC),
        ({"X-Auth-Token": SLASHED.reveal()}, (), SLASHED.reveal()),
    ],
)
def test_a_secret_that_an_error_repeats_is_struck_out_before_anybody_reads_it(
    headers: dict[str, str], secrets: tuple[Secret, ...], said: str
) -> None:
    (answer,) = asked(
        Manager(response("400 No", f'{{"a": "{said}"}}')), Request("GET", "/", b"", headers, secrets=secrets)
    )
    assert answer.body == b'{"a": "..."}'


def test_a_secret_of_an_earlier_call_is_struck_out_too() -> None:
    first = Request("POST", "/", b"", {}, secrets=(SLASHED,))
    answers = asked(Manager(response("500 Oh", SLASHED.reveal())), first, Request("GET", "/"))
    assert [one.body for one in answers] == [b"...", b"..."]


def test_an_answer_that_is_no_error_is_left_as_it_is() -> None:
    token = "gpu"  # noqa: S105 - as one that was chosen badly, or by somebody who means ill
    request = Request("GET", "/", b"", {"Authorization": f"Bearer {token}"}, secrets=(Secret("A100-80GB"),))
    body = '{"type": "gpu", "model": "A100-80GB"}'
    (answer,) = asked(Manager(response("200 OK", body)), request)
    assert answer.body == body.encode()


def test_a_word_of_the_protocol_that_is_also_a_secret_stays_in_an_error_but_is_not_shown() -> None:
    request = Request("GET", "/", b"", {}, secrets=(Secret("detail"),))
    body = '{"detail": "no"}'
    (answer,) = asked(Manager(response("400 No", body)), request)
    assert answer.body == body.encode()


@pytest.mark.parametrize(
    "said",
    [
        '{"access_token": "brand-new"}\r\n\r\n',
        "HTTP/1.1 201 Created\r\nX-Auth-Token: brand-new\x00\r\n\r\n",
        f"HTTP/1.1 201 Created\r\nX-Auth-Token: {'brand-new' * 5_000}\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nbrand-new\r\n",
        "HTTP/1.1 200 brand-new\x01\r\nContent-Length: 9\r\n\r\nbrand-new",
    ],
    ids=range(5),
)
def test_a_token_that_nobody_has_used_yet_is_not_shown_when_the_answer_is_no_http(said: str) -> None:
    error = failed(saying(said))
    assert isinstance(error, Retry)
    assert "brand-new" not in str(error)
    assert str(error).isprintable()


def test_what_is_not_understood_is_told_without_the_token_it_repeats() -> None:
    error = failed(response("200 OK", f'{{"fabric": "x", "traits": "{TOKEN.reveal()}"}}'))
    assert TOKEN.reveal() not in repr(error)
    assert error.__cause__ is None


def test_a_bottomless_answer_is_one_of_the_ports_errors() -> None:
    for body in ("[" * 100_000, '{"a":' * 100_000):
        assert isinstance(failed(response("200 OK", body)), Retry)
        assert isinstance(failed(response("400 No", body)), Retry)


def test_a_long_story_is_cut_short_and_told_on_one_line() -> None:
    story = "first\\n" + "x" * 5_000 + "\\u001b[2J"
    body = f'{{"type": "urn:jackfield:problem:refused", "title": "t", "status": 422, "detail": "{story}"}}'
    words = str(failed(response("422 No", body)))
    assert isinstance(failed(response("422 No", body)), Refused)
    assert words.isprintable()
    assert "first xxx" in words
    assert len(words) < WORDS_MAX + 100


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("a  b\n\tc", "a b c"),
        ("\x1b[31mred\x00", "[31mred"),
        ("x" * WORDS_MAX, "x" * WORDS_MAX),
        ("x" * (WORDS_MAX + 1), "x" * WORDS_MAX + "…"),
    ],
)
def test_text_is_legible(text: str, shown: str) -> None:
    assert legible(text) == shown
