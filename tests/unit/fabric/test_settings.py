"""Settings of a fabric are read from YAML; what is wrong with them is named, and no secret is shown."""

import traceback
from pathlib import Path

import msgspec
import pytest

from jackfield import fabric
from jackfield.fabric.settings import BadFabric, FabricSettings, Secret, faults, parse, tls, token
from jackfield.model.names import FabricName, Seconds
from jackfield.ports import Retry
from unit.sim.hasty import Hasty

PLAIN = FabricSettings(FabricName("rack-a"), "native", "https://manager.example.com:8443/base")
HUSH = "hush-hush-hush"
VARIABLE = "A_VARIABLE"


def changed(**fields: object) -> FabricSettings:
    return msgspec.structs.replace(PLAIN, **fields)


def test_settings_are_read_from_yaml() -> None:
    text = """
    fabrics:
      - {name: rack-a, type: native, url: "https://manager.example.com:8443/base"}
      - name: rack-b
        type: native
        url: http://127.0.0.1:8080
        tokenFile: /etc/token
        caFile: /etc/ca.pem
        callTimeoutSeconds: 0.5
    """
    first, second = parse(text, "fabrics.yaml")
    assert first == PLAIN
    assert (second.token_file, second.ca_file, second.call_timeout_seconds) == (
        "/etc/token",
        "/etc/ca.pem",
        0.5,
    )
    assert parse("{}", "empty.yaml") == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fabrics: [", "f.yaml: not YAML: "),
        ("fabrics: 3", "f.yaml: fabrics: Expected `array`, got `int`"),
        ("[]", "f.yaml: the whole file: Expected `object`, got `array`"),
        ("fabrics: [{name: a, type: native}]", "f.yaml: fabrics[0]: Object missing required field `url`"),
        (
            "fabrics: [{name: a, type: native, url: 'https://m', tokn: x}]",
            "f.yaml: fabrics[0]: there is no setting tokn; there are name, type, url, tokenFile, ",
        ),
        ("fabric: []", "f.yaml: the whole file: there is no setting fabric; there are fabrics"),
        ("fabrics: [{name: a, type: native, url: m}]", "f.yaml: fabrics[0].url: must be https://HOST"),
        (
            "fabrics: [{name: a, type: x, url: 'https://m'}, {name: a, type: x, url: 'https://m'}]",
            "f.yaml: fabrics: two are called 'a'",
        ),
    ],
)
def test_a_file_that_is_wrong_is_told_where(text: str, said: str) -> None:
    with pytest.raises(BadFabric) as caught:
        parse(text, "f.yaml")
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (PLAIN, ()),
        (changed(name=FabricName("")), ("name: is empty",)),
        (changed(url=""), ("url: must be https://HOST[:PORT][/PATH], not ''",)),
        (changed(url="ftp://m"), ("url: must be https://HOST[:PORT][/PATH], not 'ftp://m'",)),
        (changed(url="https:///path"), ("url: must be https://HOST[:PORT][/PATH], not 'https:///path'",)),
        (
            changed(url=f"ftp://u:{HUSH}@m?{HUSH}"),
            ("url: must be https://HOST[:PORT][/PATH], not 'ftp://m'",),
        ),
        (changed(url="https://m:port"), ("url: Port could not be cast to integer value as 'port'",)),
        (
            changed(url=f"https://user:{HUSH}@m"),
            ("url: carries a user or password; that is what tokenFile and tokenVariable are for",),
        ),
        (
            changed(url=f"https://m?key={HUSH}"),
            ("url: has a query or fragment, which the manager would never see",),
        ),
        (
            changed(url="http://m"),
            ("url: http:// lets everybody on the way listen; use https://, or say insecure: true",),
        ),
        (changed(url="http://m", insecure=True), ()),
        (changed(url="http://127.0.0.1:80"), ()),
        (changed(url="http://[::1]:80"), ()),
        (changed(url="http://localhost"), ()),
        (
            changed(token_file=VARIABLE, token_variable=VARIABLE),
            ("tokenVariable: there is a tokenFile already; one of them is enough",),
        ),
        (changed(ca_file="a", insecure=True), ("caFile: means nothing while insecure is true",)),
        (
            changed(call_timeout_seconds=Seconds(0.0)),
            ("callTimeoutSeconds: must be more than 0 and at most 60",),
        ),
        (
            changed(call_timeout_seconds=Seconds(float("nan"))),
            ("callTimeoutSeconds: must be more than 0 and at most 60",),
        ),
        (
            changed(call_timeout_seconds=Seconds(61.0)),
            ("callTimeoutSeconds: must be more than 0 and at most 60",),
        ),
    ],
)
def test_what_is_wrong_is_named(settings: FabricSettings, said: tuple[str, ...]) -> None:
    assert faults(settings) == said


def test_loading_names_fabric_and_setting() -> None:
    words = ", ".join(fabric.TYPES)
    with pytest.raises(BadFabric, match=rf"^fabric rack-a: type: 'carrier-pigeon' is none of {words}$"):
        fabric.load(changed(type="carrier-pigeon"), {}, Hasty())
    with pytest.raises(BadFabric, match=r"^fabric rack-a: url: must be .*"):
        fabric.load(changed(url="m"), {}, Hasty())
    with pytest.raises(BadFabric, match=r"^fabric rack-a: tokenVariable: A_VARIABLE is not set$"):
        fabric.load(changed(token_variable=VARIABLE), {VARIABLE: " "}, Hasty())
    with pytest.raises(BadFabric, match=r"^fabric rack-a: caFile: /no/such/file cannot be used: "):
        fabric.load(changed(ca_file="/no/such/file"), {}, Hasty())
    assert (
        repr(fabric.load(PLAIN, {}, Hasty()))
        == "NativeFabric('rack-a', 'https://manager.example.com:8443/base')"
    )


# --- tokens


def test_a_token_comes_from_a_variable_a_file_or_nowhere(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{HUSH}\n")
    from_file = token(changed(token_file=str(tmp_path / "token")), {})
    from_variable = token(changed(token_variable=VARIABLE), {VARIABLE: HUSH})
    assert (from_file().reveal(), from_variable().reveal(), token(PLAIN, {})().reveal()) == (HUSH, HUSH, "")


def test_a_token_file_may_be_replaced_and_missed_for_a_while(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("first")
    ask = token(changed(token_file=str(path)), {})
    path.write_text("second")
    assert ask().reveal() == "second"
    path.unlink()
    with pytest.raises(Retry, match=r"token cannot be read: No such file or directory$"):
        ask()
    path.write_text("")
    with pytest.raises(Retry, match=r"token is empty$"):
        ask()
    path.write_text("third")
    assert ask().reveal() == "third"


@pytest.mark.parametrize("text", [f"{HUSH}\nand more", f"{HUSH} {HUSH}", f"{HUSH}\u00e9"])
def test_a_token_that_cannot_stand_in_a_header_is_refused_and_not_shown(text: str, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(text)
    for settings in (changed(token_file=str(path)), changed(token_variable=VARIABLE)):
        with pytest.raises(BadFabric) as caught:
            fabric.load(settings, {VARIABLE: text}, Hasty())
        assert HUSH not in "".join(traceback.format_exception(caught.value))
        assert "has characters that no token has" in str(caught.value)


def test_a_token_file_that_is_no_text_is_refused_and_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_bytes(HUSH.encode() + b"\xff")
    with pytest.raises(BadFabric) as caught:
        token(changed(token_file=str(path)), {})
    assert str(caught.value).endswith("cannot be read: it is not text")
    assert HUSH not in "".join(traceback.format_exception(caught.value))


def test_a_secret_shows_itself_only_when_asked_by_name() -> None:
    secret = Secret(HUSH)
    assert HUSH not in f"{secret} {secret!r} {[secret]}"
    assert secret.reveal() == HUSH


# --- certificates


def test_certificates_are_looked_at_unless_said_otherwise() -> None:
    strict, lax = tls(PLAIN), tls(changed(insecure=True))
    assert strict is not None
    assert lax is not None
    assert (strict.check_hostname, strict.verify_mode.name) == (True, "CERT_REQUIRED")
    assert (lax.check_hostname, lax.verify_mode.name) == (False, "CERT_NONE")
    assert tls(changed(url="http://127.0.0.1")) is None


def test_a_file_without_certificates_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    path.write_text("no certificate")
    with pytest.raises(BadFabric, match=r"^caFile: .*ca.pem cannot be used"):
        tls(changed(ca_file=str(path)))


# --- options of a type


FSAS: dict[str, object] = {"tenant": "t-1", "models": [{"name": "A100"}], "credentialsPrefix": "RACK_A_"}
CREDENTIALS = {
    f"RACK_A_{name}": HUSH for name in ("REALM", "CLIENT_ID", "CLIENT_SECRET", "USERNAME", "PASSWORD")
}


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        ("native", {"tenant": "t"}, "options: there is no setting tenant"),
        ("fsas-fm", {}, "options: Object missing required field `tenant`"),
        ("fsas-cm", FSAS, "options: Object missing required field `cluster`"),
        ("fsas-fm", {**FSAS, "cluster": "c"}, "options: there is no setting cluster; there are tenant, "),
        ("fsas-fm", {**FSAS, "tenant": "../x"}, "options.tenant: Expected `str` matching regex"),
        ("fsas-fm", {**FSAS, "models": []}, "options.models: Expected `array` of length"),
        (
            "fsas-fm",
            {**FSAS, "models": [{"nam": "A100"}]},
            "options.models[0]: there is no setting nam",
        ),
        ("fsas-fm", {**FSAS, "models": [{"name": "A"}, {"name": "A"}]}, "options.models: two have one name"),
        (
            "fsas-fm",
            {**FSAS, "machines": {"a": "m", "b": "M"}},
            "options.machines: two nodes are one machine",
        ),
        ("fsas-fm", {**FSAS, "slots": 0}, "options.slots: Expected `int` >= 1"),
        ("fsas-fm", {**FSAS, "effectSeconds": 0}, "options.effectSeconds: Expected `float` > 0.0"),
        ("fsas-fm", {**FSAS, "grant": "magic"}, "options.grant: Invalid enum value 'magic'"),
        (
            "fsas-fm",
            {**FSAS, "credentialsDirectory": "/d"},
            "options: exactly one of credentialsDirectory and",
        ),
        ("fsas-fm", {**FSAS, "credentialsPrefix": "B_"}, "options.credentialsPrefix: B_REALM, B_CLIENT_ID, "),
        (
            "fsas-fm",
            {**FSAS, "credentialsPrefix": "", "credentialsDirectory": "/no/such"},
            "options.credentialsDirectory: /no/such/realm cannot be read: No such file or directory",
        ),
    ],
)
def test_every_type_checks_its_own_options(kind: str, options: dict[str, object], said: str) -> None:
    with pytest.raises(BadFabric) as caught:
        fabric.load(changed(type=kind, options=options), CREDENTIALS, Hasty())
    assert str(caught.value).startswith(f"fabric rack-a: {said}")
    assert HUSH not in "".join(traceback.format_exception(caught.value))


def test_tokens_of_fsas_come_from_its_own_id_manager() -> None:
    with pytest.raises(
        BadFabric, match=r"^fabric rack-a: tokenFile, tokenVariable: tokens come from id_manager"
    ):
        fabric.load(changed(type="fsas-fm", options=FSAS, token_variable=VARIABLE), CREDENTIALS, Hasty())


@pytest.mark.parametrize("kind", ["fsas-fm", "fsas-cm"])
def test_settings_of_fsas_that_are_right_are_taken(kind: str, tmp_path: Path) -> None:
    for name in ("realm", "client_id", "client_secret"):
        (tmp_path / name).write_text(f"{HUSH}\n")
    more = {"credentialsPrefix": "", "credentialsDirectory": str(tmp_path), "grant": "client_credentials"}
    options = {**FSAS, **more, **({"cluster": "c-1"} if kind == "fsas-cm" else {})}
    made = fabric.load(changed(type=kind, options=options), {}, Hasty())
    assert "https://manager.example.com:8443/base" in repr(made)
    assert HUSH not in f"{made!r} {vars(made)}"
