"""Proofs of who we are: fetched when needed, renewed in time, and shown to nobody but the server."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from jackfield.kube.credentials import (
    EXPIRY_MARGIN_SECONDS,
    REREAD_SECONDS,
    BadCredentials,
    Command,
    Files,
    Fixed,
    Plugin,
    Proof,
)
from jackfield.model.names import Seconds
from jackfield.sim import loop
from jackfield.sim.clock import running

SECRET = "s3cr3t-v4lue"  # noqa: S105 - the point
GIVEN = '{"token": "t"}'
V1 = "client.authentication.k8s.io/v1"


def test_no_representation_shows_a_secret() -> None:
    proof = Proof(SECRET, SECRET, SECRET)
    command = Command("plugin", (SECRET,), {"TOKEN": SECRET}, V1, SECRET)
    for one in (proof, command, Fixed(proof), Files({}, proof), Plugin(command)):
        for text in (repr(one), str(one), f"{one}"):
            assert SECRET not in text
    assert repr(proof) == "Proof(token, certificate, key)"


# --- files


def test_a_file_is_read_again_after_a_minute_and_after_doubts(tmp_path: Path) -> None:
    token = tmp_path / "token"

    async def main() -> list[str]:
        clock = running()
        files = Files({"token": token}, Proof(certificate="c"))
        seen: list[str] = []

        async def look(text: str) -> None:
            token.write_text(text)
            proof = await files.proof()
            assert proof.certificate == "c"
            seen.append(proof.token)

        await look(" one\n")
        await clock.sleep(Seconds(REREAD_SECONDS - 1))
        await look("two\n")
        await clock.sleep(Seconds(1.0))
        await look("three\n")
        await look("four\n")
        files.doubt()
        await look("five\n")
        return seen

    assert loop.run(main()) == ["one", "one", "three", "three", "five"]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    gone, binary = tmp_path / "gone", tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    for path, words in ((gone, "No such file"), (binary, "PEM")):
        with pytest.raises(BadCredentials, match=words) as caught:
            asyncio.run(Files({"key": path}).proof())
        assert str(path) in str(caught.value)


# --- plugins


def plugin(script: str, *, now: Callable[[], float] = lambda: 0.0, seconds_max: float = 20.0) -> Plugin:
    command = Command(sys.executable, ("-c", script), {"WORD": SECRET}, V1, '{"spec": 1}', "install it so")
    return Plugin(command, now, seconds_max)


def saying(status: str) -> str:
    answer = f'{{"apiVersion": "{V1}", "kind": "ExecCredential", "status": {status}}}'
    return f"print('''{answer}''')"


def proofs(*calls: Callable[[], Awaitable[Proof]]) -> list[Proof]:
    async def main() -> list[Proof]:
        return [await call() for call in calls]

    return asyncio.run(main())


def test_a_plugin_gives_tokens_and_certificates() -> None:
    script = saying('{"token": "t", "clientCertificateData": "c", "clientKeyData": "k"}')
    assert proofs(plugin(script).proof) == [Proof("t", "c", "k")]


def test_a_plugin_hears_its_environment_and_what_is_asked(tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    script = (
        "import os, sys; told = os.environ['WORD'] + os.environ['KUBERNETES_EXEC_INFO'] + sys.stdin.read();"
        f"open({str(heard)!r}, 'w').write(told); {saying(GIVEN)}"
    )
    proofs(plugin(script).proof)
    assert heard.read_text() == f'{SECRET}{{"spec": 1}}'


def test_a_plugin_is_asked_once_until_its_answer_expires_or_is_doubted(tmp_path: Path) -> None:
    count = tmp_path / "count"
    script = (
        f"path = {str(count)!r}; open(path, 'a').write('x'); number = len(open(path).read());"
        f"""print('{{"apiVersion": "{V1}", "kind": "ExecCredential", "status": {{"token": "t' + str(number) + '","""
        """"expirationTimestamp": "2001-09-09T01:46:40Z"}}')"""
    )
    expiry = 1e9
    at = [0.0]
    one = plugin(script, now=lambda: at[0])

    async def main() -> list[str]:
        tokens = [proof.token for proof in await asyncio.gather(*(one.proof() for _ in range(3)))]
        at[0] = expiry - EXPIRY_MARGIN_SECONDS - 1
        tokens.append((await one.proof()).token)
        at[0] = expiry - EXPIRY_MARGIN_SECONDS
        tokens.append((await one.proof()).token)
        at[0] = 0.0
        one.doubt()
        tokens.append((await one.proof()).token)
        return tokens

    assert asyncio.run(main()) == ["t1", "t1", "t1", "t1", "t2", "t3"]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("import sys; print('some words', file=sys.stderr); sys.exit(3)", "exit code 3: some words"),
        ("import sys; sys.exit(1)", "it does not say why"),
        ("print('no json')", "did not answer with an ExecCredential in JSON"),
        ("print('{}')", f"did not answer with an ExecCredential of {V1}"),
        (saying("{}"), "neither a token nor a certificate"),
        (saying("null"), "neither a token nor a certificate"),
        (saying('{"clientKeyData": "s3cr3t-v4lue"}'), "not with both"),
        (saying('{"token": "s3cr3t-v4lue", "expirationTimestamp": "soon"}'), "no time"),
        (saying('{"token": ["s3cr3t-v4lue"]}'), "did not answer with an ExecCredential in JSON"),
    ],
)
def test_a_plugin_that_gives_nothing_is_named_with_its_hint(script: str, words: str) -> None:
    with pytest.raises(BadCredentials) as caught:
        proofs(plugin(script).proof)
    said = str(caught.value)
    assert sys.executable in said
    assert words in said
    assert said.endswith("\ninstall it so")
    assert SECRET not in said + repr(caught.value)
    assert caught.value.__cause__ is None


def test_a_plugin_that_is_not_there_is_named_with_its_hint() -> None:
    with pytest.raises(BadCredentials, match=r"'no-such-plugin' cannot be run: No such file[^\n]*\nget it"):
        proofs(Plugin(Command("no-such-plugin", (), {}, V1, "", "get it")).proof)


def test_a_plugin_that_hangs_is_ended() -> None:
    with pytest.raises(BadCredentials, match=r"did not answer within 0\.2 seconds"):
        proofs(plugin("import time; time.sleep(60)", seconds_max=0.2).proof)
