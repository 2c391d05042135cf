"""Nothing that looks like a secret leaves the cluster, and what explains a fault stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.core import redact
from jackfield.core.redact import LEFT_OUT

TICKET = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", ""),
        ("a100-1 to be attached to n1", "a100-1 to be attached to n1"),
        ("GET https://user:hunter2@manager/x", f"GET https://{LEFT_OUT}@manager/x"),
        ("https://manager:8443/path@2", "https://manager:8443/path@2"),
        ("Authorization: Bearer abcdefgh12345", f"Authorization: Bearer {LEFT_OUT}"),
        ("sent basic dXNlcjpwYXNz", f"sent basic {LEFT_OUT}"),
        (f"token {TICKET} refused", f"token {LEFT_OUT} refused"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nrest",
            f"{LEFT_OUT}\nrest",
        ),
        ("password=hunter2, user=a", f"password={LEFT_OUT}, user=a"),
        ('"api_key": "hunter22"', f'"api_key": "{LEFT_OUT}"'),
        ("tokenFile: /etc/token", "tokenFile: /etc/token"),
        ("waiting for a token: it comes", "waiting for a token: it comes"),
    ],
)
def test_a_text_loses_its_secrets_and_nothing_else(given: str, expected: str) -> None:
    assert redact.text(given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"token": "abc"}, {"token": LEFT_OUT}),
        ({"token": ""}, {"token": ""}),
        ({"tokenFile": "/etc/token"}, {"tokenFile": "/etc/token"}),
        ({"clientSecret": "abc"}, {"clientSecret": LEFT_OUT}),
        ({"secretName": "gpu-credentials"}, {"secretName": "gpu-credentials"}),
        ({"password": ["a", "b"]}, {"password": [LEFT_OUT, LEFT_OUT]}),
        ({"size": 3, "ready": True, "none": None}, {"size": 3, "ready": True, "none": None}),
        ({"metadata": {"managedFields": [1], "name": "a"}}, {"metadata": {"name": "a"}}),
        (
            {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "b": "c"}},
            {"annotations": {"b": "c"}},
        ),
        (
            {
                "containers": [
                    {"name": "main", "image": "i", "env": [{"name": "A", "value": "s"}], "args": ["s"]}
                ]
            },
            {"containers": [{"name": "main", "image": "i"}]},
        ),
        ({"containers": ["odd"]}, {"containers": [LEFT_OUT]}),
        (
            {"opaque": {"driver": "a.example.com", "parameters": {"any": "thing"}}},
            {"opaque": {"driver": "a.example.com", "parameters": LEFT_OUT}},
        ),
        ({"volumes": [{"secret": {}}], "nodeName": "n1"}, {"nodeName": "n1"}),
        ({"message": f"refused {TICKET}"}, {"message": f"refused {LEFT_OUT}"}),
        (("a", "b"), ["a", "b"]),
    ],
)
def test_a_value_loses_its_secrets_and_nothing_else(given: object, expected: object) -> None:
    assert redact.value(given) == expected


@given(st.text() | st.sampled_from(("password=hunter2", "Bearer abcdefgh12345", f"a {TICKET}", "x://u:p@h")))
def test_leaving_out_twice_is_leaving_out_once(words: str) -> None:
    assert redact.text(redact.text(words)) == redact.text(words)
