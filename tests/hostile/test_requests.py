"""Calls over a socket that nobody means well with: refused, and the server goes on."""

import json
import zlib

import pytest

from hostile.attack import AUTHORIZED, Victim, code, request
from hostile.victim import TOKEN

MAPS = "/api/v1/namespaces/default/configmaps"
MIB = 1024 * 1024
JSON = "Content-Type: application/json\r\n"
CHUNKED = f"POST {MAPS} HTTP/1.1\r\nHost: x\r\n{AUTHORIZED}{JSON}Transfer-Encoding: chunked\r\n\r\n".encode()


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Authorization: Bearer\r\n",
        "Authorization: Bearer wrong\r\n",
        f"Authorization: Bearer {TOKEN}x\r\n",
        f"Authorization: Bearer {TOKEN[:-1]}\r\n",
        f"Authorization: bearer  {TOKEN}\r\n",
        f"Authorization: Basic {TOKEN}\r\n",
        "Authorization: Bearer \udcff\udcfe\r\n",
        "Authorization: Bearer tökén\r\n",
        f"Authorization: {'x' * 8000}\r\n",
    ],
)
def test_nobody_gets_in_without_the_token(victim: Victim, header: str) -> None:
    answer = victim.say(request("GET", MAPS, headers=header))
    assert code(answer) == 401
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["reason"] == "Unauthorized"


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version"])
def test_health_and_version_are_told_to_anybody(victim: Victim, path: str) -> None:
    assert code(victim.say(request("GET", path, headers=""))) == 200


def test_no_way_to_spell_a_path_avoids_the_token(victim: Victim) -> None:
    for path in (
        "/healthz/../api",
        "/%68ealthz/..%2fapi",
        "//api",
        "/version/../api/v1/secrets",
        "/healthz;/api",
    ):
        answer = victim.say(request("GET", path, headers=""))
        assert code(answer) in {400, 401, 404}, path
        assert b"groups" not in answer


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/v1/namespaces/%2e%2e/pods", 200),
        ("/api/v1/namespaces/default/pods/%2e%2e", 404),
        ("/api/v1/namespaces/default/configmaps/..%2f..%2fsecrets", 404),
        ("/api/v1/namespaces/default/configmaps/../secrets", 404),
        ("//api//v1//namespaces", 404),
        ("/api/v1/namespaces/default/configmaps/%00", 404),
        ("/api/v1/namespaces/default/configmaps/%ff%fe", 404),
        ("/api/v1/" + "a/" * 3000, 404),
        ("/" + "a" * 9000, 400),
        ("/api/v1/pods?" + "&".join(f"a{n}=1" for n in range(900)), 200),
        ("/api/v1/pods?limit=" + "9" * 5000, 400),
        ("/api/v1/pods?resourceVersion=" + "9" * 5000, 400),
        ("/api/v1/pods?continue=forged&limit=1", 400),
        ("/api/v1/pods?continue=eyJpZCI6MSwic3RhcnQiOjEsInZlcnNpb24iOjF9&limit=1", 410),
        ("/api/v1/pods?labelSelector=" + "a" + "%20" * 2500 + "!", 400),
        ("/api/v1/pods?labelSelector=a%3E" + "9" * 5000, 400),
        ("*", 400),
    ],
)
def test_a_strange_path_is_just_another_place(victim: Victim, path: str, expected: int) -> None:
    assert victim.ask("GET", path)[0] == expected


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (f"BREW {MAPS} HTTP/1.1\r\nHost: x\r\n{AUTHORIZED}\r\n", {400, 405}),
        (f"TRACE {MAPS} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{AUTHORIZED}\r\n", {405}),
        (f"OPTIONS {MAPS} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{AUTHORIZED}\r\n", {405}),
        ("CONNECT x:1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", {400, 401, 404}),
        (f"GET {MAPS} HTTP/9.9\r\nHost: x\r\n\r\n", {400}),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {400}),
        (f"GET {MAPS}\r\n\r\n", {0, 400, 401}),
        (f"GET {MAPS} HTTP/1.1\r\nHost: x\r\nBad Header: 1\r\n\r\n", {400}),
        (
            f"GET {MAPS} HTTP/1.1\r\nHost: x\r\n{'A: b' + chr(13) + chr(10)}" * 1 + "A: b\r\n" * 500 + "\r\n",
            {400},
        ),
        (f"GET {MAPS} HTTP/1.1\r\nHost: x\r\nA: {'b' * 20000}\r\n\r\n", {400}),
        (
            f"POST {MAPS} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n{AUTHORIZED}\r\n{{}}",
            {400},
        ),
        (f"POST {MAPS} HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n{AUTHORIZED}\r\n", {400}),
        (f"POST {MAPS} HTTP/1.1\r\nHost: x\r\nContent-Length: {'9' * 40}\r\n{AUTHORIZED}\r\n", {400}),
        (
            CHUNKED.decode().replace("Host: x", "Host: x\r\nContent-Length: 4") + "0\r\n\r\n",
            {400},
        ),
        (
            f"POST {MAPS} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n{AUTHORIZED}\r\n0\r\n\r\n",
            {400},
        ),
        (
            f"POST {MAPS} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, gzip\r\n{AUTHORIZED}\r\n0\r\n\r\n",
            {400},
        ),
        (CHUNKED.decode() + "zz\r\n", {400}),
        (CHUNKED.decode() + "-5\r\nabcde\r\n0\r\n\r\n", {400}),
        (CHUNKED.decode() + f"{'f' * 30}\r\nabc", {400}),
    ],
)
def test_what_is_no_http_of_ours_is_refused(victim: Victim, head: str, expected: set[int]) -> None:
    assert code(victim.say(head.encode())) in expected


def test_a_second_call_hidden_in_a_body_is_never_answered(victim: Victim) -> None:
    hidden = request("DELETE", f"{MAPS}/smuggled")
    answer = victim.say(request("POST", MAPS, hidden, f"{AUTHORIZED}{JSON}"))
    assert answer.count(b"HTTP/1.1 ") == 1
    assert code(answer) == 400


@pytest.mark.parametrize(
    ("body", "headers", "expected"),
    [
        (b" " * (3 * MIB + 1), JSON, 413),
        (b" " * (8 * MIB), JSON, 413),
        (b'{"a":' * 10_000, JSON, 400),
        (b"[" * MIB, JSON, 400),
        (b"[" * MIB, "Content-Type: application/yaml\r\n", 400),
        (b"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", "Content-Type: application/yaml\r\n", 400),
        (b"a: " + b"1:" * MIB + b"1", "Content-Type: application/yaml\r\n", 400),
        (b"{a: 1," * (MIB // 4), "Content-Type: application/yaml\r\n", 400),
        (b"- a\n" * (MIB // 2), "Content-Type: application/yaml\r\n", 400),
        (b'{"metadata":{"name":"x","generation":' + b"9" * MIB + b"}}", JSON, 400),
        (b'{"metadata":{"name":"\xff\xfe"}}', JSON, 400),
        (b'{"metadata":{"name":"a\x00b"}}', JSON, 400),
        (b'{"metadata":{"name":"a\\u0000b"}}', JSON, 422),
        (b"\x00" * 1000, JSON, 400),
        (zlib.compress(b"[" * (64 * MIB)), f"{JSON}Content-Encoding: deflate\r\n", 400),
        (b"{}", "Content-Type: application/vnd.kubernetes.protobuf\r\n", 400),
        (b"k8s\x00\x0a", "Content-Type: application/vnd.kubernetes.protobuf\r\n", 400),
        (b"{}", "Content-Type: \udcff\udcfe\r\n", 415),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(
    victim: Victim, body: bytes, headers: str, expected: int
) -> None:
    assert victim.ask("POST", MAPS, body, headers)[0] == expected


def test_odd_bytes_in_headers_change_nothing_else(victim: Victim) -> None:
    headers = "User-Agent: \udcff/1\r\nAccept: application/json\r\nX-\udcff: 1\r\n"
    body = b'{"metadata":{"generateName":"odd-"}}'
    assert victim.ask("POST", MAPS, body, f"{JSON}User-Agent: \udcff\udc80/1\r\n")[0] == 201
    assert victim.ask("GET", MAPS, headers=headers)[0] in {200, 400}


def test_a_chunked_body_without_an_end_is_cut_short(victim: Victim) -> None:
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    answer = victim.say(CHUNKED, *[chunk] * 100)
    assert code(answer) in {0, 413}


def test_whoever_asks_before_sending_is_told_to_go_on(victim: Victim) -> None:
    body = b'{"metadata":{"generateName":"expected-"}}'
    answer = victim.say(request("POST", MAPS, body, f"{AUTHORIZED}{JSON}Expect: 100-continue\r\n"))
    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n")
    assert b"HTTP/1.1 201 " in answer
    assert code(victim.say(request("POST", MAPS, body, f"{AUTHORIZED}{JSON}Expect: miracles\r\n"))) == 417


def test_unknown_fields_by_the_thousand_do_not_make_headers_by_the_thousand(victim: Victim) -> None:
    fields = b",".join(b'"%s%d":1' % (b"x" * 200, number) for number in range(5000))
    answer = victim.say(
        request("POST", MAPS, b'{"metadata":{"generateName":"w-"},' + fields + b"}", f"{AUTHORIZED}{JSON}")
    )
    head = answer.partition(b"\r\n\r\n")[0]
    assert code(answer) == 201
    assert b"\r\nWarning: 299 - " in head
    assert len(head) < 8_000
