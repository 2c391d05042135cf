"""What is said of a Redfish or Sunfish fabric is meant so, or is told at the start; docs/adapters.md has all of it."""

import re
import traceback
from pathlib import Path

import msgspec
import pytest

from jackfield import fabric
from jackfield.fabric.redfish.access import credentials
from jackfield.fabric.redfish.options import Authentication, Identity, Options, read_options
from jackfield.fabric.settings import BadFabric
from jackfield.fabric.vendors.sunfish import SunfishOptions
from jackfield.model.fabric import Traits
from jackfield.model.names import Seconds
from jackfield.ports import Retry
from unit.fabric.redfish_bench import ENVIRONMENT, settings
from unit.sim.hasty import Hasty

HUSH = "hush-hush-hush"

WRONG: tuple[tuple[dict[str, object], str], ...] = (
    ({"composition": "any"}, "options.composition: Invalid enum value 'any'"),
    ({"authentication": "kerberos"}, "options.authentication: Invalid enum value 'kerberos'"),
    ({"identity": "name"}, "options.identity: Invalid enum value 'name'"),
    (
        {"credentialsPrefix": ""},
        "options: exactly one of credentialsDirectory and credentialsPrefix is needed",
    ),
    (
        {"credentialsDirectory": "/no/such/folder"},
        "options: exactly one of credentialsDirectory and credentialsPrefix is needed",
    ),
    (
        {"credentialsPrefix": "", "credentialsDirectory": "/no/such/folder"},
        "options.credentialsDirectory: /no/such/folder/username cannot be read: No such file or directory",
    ),
    (
        {"credentialsPrefix": "RACK_B_"},
        "options.credentialsPrefix: RACK_B_USERNAME, RACK_B_PASSWORD are not set",
    ),
    ({"authentication": "none"}, "options.authentication: none means that nobody asks who we are, yet"),
    ({"models": [{"name": "a"}, {"name": "a", "model": "b"}]}, "options.models: two have one name"),
    (
        {"models": [{"name": "a", "model": "b"}, {"name": "b"}]},
        "options.models: two are one model of the service",
    ),
    ({"models": [{"model": "b"}]}, "options.models[0]: Object missing required field `name`"),
    ({"machines": {"n-1": "X", "n-2": "x"}}, "options.machines: two nodes are one system"),
    (
        {"composition": "constrained", "models": []},
        "options.models: is needed with constrained composition: free devices are counted by model",
    ),
    (
        {"composition": "constrained", "models": [{"name": "a", "type": "drive"}]},
        "options.models: a service can choose gpu, fpga, accelerator, cxlmemory, nic, not drive",
    ),
    ({"slots": 0}, "options.slots: Expected `int` >= 1"),
    ({"jobs": 65}, "options.jobs: Expected `int` <= 64"),
    ({"effectSeconds": 0}, "options.effectSeconds: Expected `float` > 0"),
    ({"queueSeconds": 3601}, "options.queueSeconds: Expected `float` <= 3600"),
    ({"reservationSeconds": "long"}, "options.reservationSeconds: Expected `float`, got `str`"),
    ({"client": "a\nb"}, "options.client: must be printable"),
    ({"tenant": "t"}, "options: there is no setting tenant; there are "),
)


@pytest.mark.parametrize("kind", ["redfish", "sunfish"])
@pytest.mark.parametrize(("options", "words"), WRONG, ids=[words for _, words in WRONG])
def test_settings_that_cannot_be_meant_are_told_at_the_start(
    options: dict[str, object], words: str, kind: str
) -> None:
    given = msgspec.structs.replace(settings("https://m", **options), type=kind)
    with pytest.raises(BadFabric) as caught:
        fabric.load(given, ENVIRONMENT, Hasty())
    assert str(caught.value).startswith(f"fabric rack-a: {words}")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"url": "https://m/redfish/v1/"}, "url: has the path /redfish/v1, yet Redfish always begins at"),
        ({"token_variable": "A"}, "tokenFile, tokenVariable: Redfish has users; say options.credentials"),
        ({"url": "http://m"}, "url: http:// lets everybody on the way listen"),
        ({"ca_file": "/no/such/file"}, "caFile: /no/such/file cannot be used"),
    ],
)
def test_what_all_fabrics_have_is_checked_too(changes: dict[str, object], words: str) -> None:
    given = msgspec.structs.replace(settings("https://m"), **changes)
    with pytest.raises(BadFabric) as caught:
        fabric.load(given, ENVIRONMENT, Hasty())
    assert str(caught.value).startswith(f"fabric rack-a: {words}")


@pytest.mark.parametrize(
    ("more", "traits"),
    [
        ({}, Traits(knows_orders=False, call_timeout=Seconds(50.0), jobs=3)),
        (
            {"composition": "constrained"},
            Traits(chooses_device=True, knows_orders=False, call_timeout=Seconds(50.0), jobs=3),
        ),
    ],
)
def test_traits_follow_from_what_is_said(more: dict[str, object], traits: Traits) -> None:
    assert read_options(settings("https://m", **more), Options).traits == traits


def test_devices_of_sunfish_are_known_by_their_serial_numbers() -> None:
    assert read_options(settings("https://m"), SunfishOptions).identity is Identity.SERIAL


# --- credentials


def folder(path: Path, **files: bytes) -> Options:
    for name, content in files.items():
        (path / name).write_bytes(content)
    return Options(credentials_directory=str(path))


def test_credentials_are_read_anew_and_may_be_missing_for_a_while(tmp_path: Path) -> None:
    source = credentials(folder(tmp_path, username=b"u\n", password=b"p 1\n"), {})
    assert (source().username.reveal(), source().password.reveal()) == ("u", "p 1")
    (tmp_path / "password").write_text("second\n")
    assert source().password.reveal() == "second"
    (tmp_path / "password").unlink()
    with pytest.raises(
        Retry, match=r"^the credentials cannot be read: .*password cannot be read: No such file"
    ):
        source()


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff\xfe", b"x" * 5000])
def test_a_password_that_is_none_is_refused_and_not_shown(tmp_path: Path, content: bytes) -> None:
    found = folder(tmp_path, username=HUSH.encode(), password=content)
    with pytest.raises(BadFabric) as caught:
        credentials(found, {})
    assert str(caught.value).endswith("password is empty, too long, or no text")
    assert HUSH not in "".join(traceback.format_exception(caught.value))


def test_nobody_is_asked_for_credentials_where_none_are_needed() -> None:
    source = credentials(Options(authentication=Authentication.NONE), {})
    assert source().username.reveal() == ""


def test_credentials_show_nothing_of_themselves(tmp_path: Path) -> None:
    found = credentials(folder(tmp_path, username=HUSH.encode(), password=HUSH.encode()), {})()
    assert HUSH not in f"{found} {found!r} {found.secrets}"


# --- the page

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "adapters.md").read_text()
SECTION = PAGE.partition("\n## Redfish and Sunfish")[2].partition("\n## ")[0]


def _default(field: msgspec.structs.FieldInfo) -> str:
    if isinstance(field.default, bool):
        return f"`{field.default}`".lower()
    if isinstance(field.default, int | float):
        return f"`{field.default:g}`"
    return f"`{field.default}`" if isinstance(field.default, str) and field.default else "none"


def test_every_option_stands_in_the_table_with_its_default() -> None:
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \| [^|]+ \|$", SECTION, re.MULTILINE)
    assert rows == [(one.encode_name, _default(one)) for one in msgspec.structs.fields(Options)]
    assert {one.encode_name for one in msgspec.structs.fields(SunfishOptions)} == {name for name, _ in rows}


def test_the_settings_that_are_shown_can_be_used(tmp_path: Path) -> None:
    folder(tmp_path, username=b"u", password=b"p")
    example = SECTION.partition("```")[2].partition("\n")[2].partition("```")[0]
    example = example.replace("/etc/jackfield/rack-d/credentials", str(tmp_path))
    shown = [msgspec.structs.replace(one, ca_file="") for one in fabric.parse(example, "adapters.md")]
    lines = [repr(fabric.load(one, {}, Hasty())) for one in shown]
    assert lines == [
        "RedfishFabric('rack-d', 'https://composer.example.com')",
        "RedfishFabric('rack-e', 'https://sunfish.example.com')",
    ]
