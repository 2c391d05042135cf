"""From configuration to a connection, or to words that say what is wrong with it and show no secret."""

import asyncio
import base64
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
import yaml

from jackfield.kube.connection import BadConnection, Connection, load
from jackfield.kube.credentials import Command, Files, Fixed, Plugin, Proof
from jackfield.kube.kubeconfig import User

SECRET = "s3cr3t-v4lue"  # noqa: S105 - the point
Raw = dict[str, object]


def config(cluster: Raw | None = None, user: Raw | None = None, **more: object) -> Raw:
    return {
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
        **more,
    }


def written(folder: Path, raw: object, name: str = "config") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(raw if isinstance(raw, str) else yaml.safe_dump(raw))
    return path


def proof(connection: Connection) -> Proof:
    return asyncio.run(connection.credentials.proof())


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


# --- where it is found


def test_the_file_given_wins_over_all_others(tmp_path: Path) -> None:
    given = written(tmp_path, config({"server": "http://given"}))
    other = written(tmp_path, config({"server": "http://other"}), "other")
    home = written(tmp_path, config({"server": "http://home"}), "home/.kube/config").parent.parent
    pod = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    environment = {"KUBECONFIG": str(other), "HOME": str(home), **pod}
    assert load(given, None, environment).server == "http://given"
    assert load(None, None, environment).server == "http://other"
    assert load(None, None, {"HOME": str(home), **pod}).server == "http://home"


def test_nothing_to_go_by_says_what_to_do() -> None:
    with pytest.raises(BadConnection, match="name a file, set KUBECONFIG"):
        load()
    with pytest.raises(BadConnection, match="KUBECONFIG names no file that exists: /no/such, /nor/this"):
        load(None, None, {"KUBECONFIG": os.pathsep.join(["/no/such", "/nor/this"])})


def test_a_list_of_files_merges_and_the_first_to_say_a_thing_wins(tmp_path: Path) -> None:
    first = written(
        tmp_path,
        {
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "first"}}],
            "clusters": [{"name": "c", "cluster": {"server": "http://first"}}],
        },
        "first",
    )
    second = written(tmp_path, config({"server": "http://second"}, {"token": "t"}), "second")
    listed = os.pathsep.join([str(tmp_path / "missing"), str(first), "", str(second)])
    found = load(None, None, {"KUBECONFIG": listed})
    assert (found.server, found.namespace, proof(found).token) == ("http://first", "first", "t")


def test_a_pod_speaks_for_its_service_account(tmp_path: Path) -> None:
    for name, text in (("token", "t1"), ("namespace", "jackfield\n")):
        (tmp_path / name).write_text(text)
    (tmp_path / "ca.crt").write_text(CERTIFICATE)
    for host, server in (("10.0.0.1", "https://10.0.0.1:6443"), ("fd00::1", "https://[fd00::1]:6443")):
        environment = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "6443"}
        found = load(None, None, environment, tmp_path)
        assert (found.server, found.namespace, found.trust.authority) == (server, "jackfield", CERTIFICATE)
        assert isinstance(found.credentials, Files)
        assert proof(found) == Proof("t1")


def test_a_pod_without_a_service_account_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(BadConnection, match=r"ca\.crt cannot be read.*automountServiceAccountToken"):
        load(None, None, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, tmp_path)


# --- what it says


def test_a_context_can_be_chosen_by_name(tmp_path: Path) -> None:
    raw = config()
    raw["contexts"] = [
        {"name": "x", "context": {"cluster": "c", "user": "u"}},
        {"name": "y", "context": {"cluster": "c", "user": "u", "namespace": "n"}},
    ]
    path = written(tmp_path, raw)
    assert (load(path).namespace, load(path, "y").namespace) == ("default", "n")
    assert load(path, "y").source == f"context 'y' of {path}"


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ({"token": "t"}, Proof("t")),
        ({"tokenFile": "token"}, Proof("from file")),
        ({"token": "t", "tokenFile": "token"}, Proof("from file")),
        (
            {"client-certificate-data": encoded("c"), "client-key-data": encoded("k")},
            Proof("", "c", "k"),
        ),
        ({"client-certificate": "crt", "client-key": "key"}, Proof("", "crt file", "key file")),
        (
            {"client-certificate": "crt", "client-key": "key", "client-key-data": encoded("k"), "token": "t"},
            Proof("t", "crt file", "k"),
        ),
        ({}, Proof()),
    ],
)
def test_users_prove_who_they_are(tmp_path: Path, user: Raw, expected: Proof) -> None:
    for name, text in (("token", "from file\n"), ("crt", "crt file"), ("key", "key file")):
        (tmp_path / name).write_text(text)
    assert proof(load(written(tmp_path, config(None, user)))) == expected


def test_the_rest_of_a_cluster_is_taken_over(tmp_path: Path) -> None:
    cluster: Raw = {
        "server": "https://127.0.0.1:1/prefix/",
        "certificate-authority": "ca.crt",
        "tls-server-name": "name",
        "proxy-url": "http://proxy:3128",
        "insecure-skip-tls-verify": True,
    }
    (tmp_path / "ca.crt").write_text(CERTIFICATE)
    found = load(written(tmp_path, config(cluster)))
    assert (found.server, found.proxy) == ("https://127.0.0.1:1/prefix", "http://proxy:3128")
    trust = found.trust
    assert (trust.authority, trust.server_name, trust.verify) == (CERTIFICATE, "name", False)
    inline = config(
        {**cluster, "certificate-authority-data": encoded(CERTIFICATE), "certificate-authority": ""}
    )
    assert load(written(tmp_path, inline)).trust == trust


def test_what_nobody_set_may_be_null(tmp_path: Path) -> None:
    raw = config({"proxy-url": None}, {"exec": None, "token": "t"}, preferences={}, extensions=None)
    assert proof(load(written(tmp_path, raw))) == Proof("t")


def told(user: Mapping[str, object], folder: Path, cluster: Raw | None = None) -> Command:
    found = load(written(folder, config(cluster, dict(user))), None, {"PATH": "/bin", "A": "1"})
    assert isinstance(found.credentials, Plugin)
    command = vars(found.credentials)["_command"]
    assert isinstance(command, Command)
    return command


def test_a_plugin_is_called_as_the_file_says(tmp_path: Path) -> None:
    plugin = {
        "command": "./bin/plugin",
        "apiVersion": "client.authentication.k8s.io/v1",
        "args": ["a", "b"],
        "env": [{"name": "A", "value": "2"}],
        "installHint": "hint",
    }
    command = told({"exec": plugin}, tmp_path)
    assert command.program == str(tmp_path / "bin/plugin")
    assert (command.arguments, command.hint) == (("a", "b"), "hint")
    assert command.environment == {"PATH": "/bin", "A": "2"}
    info = msgspec.json.decode(command.info)
    assert info == {
        "apiVersion": plugin["apiVersion"],
        "kind": "ExecCredential",
        "spec": {"interactive": False},
    }
    asks = {**plugin, "command": "plugin", "provideClusterInfo": True}
    command = told({"exec": asks}, tmp_path, {"tls-server-name": "n"})
    assert command.program == "plugin"
    cluster = {"server": "http://127.0.0.1:1", "tls-server-name": "n"}
    assert msgspec.json.decode(command.info)["spec"] == {"interactive": False, "cluster": cluster}


# --- what is wrong with it

V1 = "client.authentication.k8s.io/v1"
WRONG: dict[str, tuple[object, str]] = {
    "no yaml": (f"a: [{SECRET}\nb: }}", "is no YAML: see line"),
    "a tab": (f"users:\n\t- token: {SECRET}", "is no YAML: see line 2"),
    "no mapping": (SECRET, "is not as it should be"),
    "token of the wrong type": (
        config(None, {"token": [SECRET]}),
        r"Expected `str`, got `array` - at .*token",
    ),
    "no context": ({**config(), "current-context": ""}, "no current-context; name one of these: x"),
    "another context": ({**config(), "current-context": "z"}, "no context 'z'; it has: x"),
    "empty": ("", "no current-context; name one of these: there is none"),
    "no cluster": (
        {**config(), "clusters": []},
        "names cluster 'c', which is not there; there are: there is none",
    ),
    "no user": ({**config(), "users": []}, "names user 'u', which is not there"),
    "no server": (config({"server": ""}), "the server is no address"),
    "server without scheme": (config({"server": "127.0.0.1:6443"}), "the server is no address"),
    "socks": (config({"proxy-url": f"socks5://{SECRET}@h"}), "proxy-url must begin with http:// or https://"),
    "no authority": (
        config({"server": "https://h", "certificate-authority-data": encoded(SECRET)}),
        "the certificate authority is no certificate in PEM",
    ),
    "authority is no base64": (
        config({"certificate-authority-data": "x"}),
        "certificate-authority-data is not PEM in base64",
    ),
    "authority missing": (config({"certificate-authority": "no.crt"}), r"no\.crt cannot be read"),
    "no token file": (config(None, {"tokenFile": "no"}), "cannot be read: No such file"),
    "no key": (config(None, {"client-certificate-data": encoded(SECRET)}), "but not both"),
    "password": (
        config(None, {"username": "a", "password": SECRET}),
        "passwords are not supported.*use a token",
    ),
    "provider": (
        config(None, {"auth-provider": {"name": "x", "config": {"a": SECRET}}}),
        "auth-provider is not supported.*exec plugin",
    ),
    "impersonation": (config(None, {"as": "b", "token": SECRET}), "impersonation .* is not supported"),
    "old plugin": (
        config(None, {"exec": {"command": "p", "apiVersion": "client.authentication.k8s.io/v1alpha1"}}),
        "'p' speaks 'client.authentication.k8s.io/v1alpha1'; supported are .*/v1 and .*/v1beta1",
    ),
    "asking plugin": (
        config(None, {"exec": {"command": "p", "apiVersion": V1, "interactiveMode": "Always"}}),
        "'p' wants to ask somebody",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_bad_configuration_is_explained_without_secrets(tmp_path: Path, name: str) -> None:
    raw, words = WRONG[name]
    path = written(tmp_path, raw)
    with pytest.raises(BadConnection, match=f"(?s){words}") as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert SECRET not in str(caught.value) + repr(caught.value)
    assert caught.value.__cause__ is None or SECRET not in repr(caught.value.__cause__)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadConnection, match=r"the kubeconfig .*/no cannot be read: No such file"):
        load(tmp_path / "no")


def test_no_representation_shows_a_secret(tmp_path: Path) -> None:
    found = load(written(tmp_path, config({"proxy-url": f"http://u:{SECRET}@h"}, {"token": SECRET})))
    user = msgspec.convert({"token": SECRET, "password": SECRET}, User)
    assert isinstance(found.credentials, Fixed)
    for text in (repr(found), str(found), repr(found.credentials), repr(user), str(user)):
        assert SECRET not in text


CERTIFICATE = (Path(__file__).parent / "authority.crt").read_text()
