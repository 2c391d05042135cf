"""What is said of a fabric of Liqid is meant so, or is told at the start; docs/adapters.md has all of it."""

import re
from pathlib import Path

import msgspec
import pytest

from jackfield import fabric
from jackfield.fabric import BadFabric, Line
from jackfield.fabric.liqid import Options
from jackfield.fabric_manager.server import Server
from jackfield.model.fabric import Done, Failed
from jackfield.model.names import NodeName
from jackfield.ports import Retry
from unit.fabric.liqid_bench import ENVIRONMENT, ORDER, VARIABLE, line, play, settings, settled
from unit.sim.hasty import Hasty

# --- machines, groups and models


def test_nodes_are_machines_of_the_same_name_or_as_the_table_says(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        assert [one.node for one in (await fabric.inventory()).machines] == ["n-1", "n-2"]
        async with line(server.url, server.manager.clock, machines={"worker": 2, "gone": 7}) as tabled:
            assert [one.node for one in (await tabled.inventory()).machines] == ["worker"]
            assert isinstance(await settled(server, fabric.attach), Done)
            assert "a-1" not in [one.id for one in (await tabled.inventory()).devices]
            elsewhere = msgspec.structs.replace(ORDER, node=NodeName("worker"))
            answer = await settled(server, tabled.attach, elsewhere)
            assert isinstance(answer, Failed)
            assert answer.reason.endswith("device a-1 is on a machine that is none of this fabric's")

    play(tmp_path, scene)


def test_only_the_group_that_is_named_is_shown(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        assert len((await fabric.inventory()).devices) == 11
        async with line(server.url, server.manager.clock, group="another") as other:
            shown = await other.inventory()
            assert (shown.machines, shown.devices) == ((), ())

    play(tmp_path, scene, group="rack-a")


def test_a_model_may_have_another_name_here_and_the_states_of_the_ill_other_words(tmp_path: Path) -> None:
    async def scene(_: Server, fabric: Line) -> None:
        devices = (await fabric.inventory()).devices
        assert {(one.model, one.ours) for one in devices} == {("ampere", True), ("H100", False)}
        assert not any(one.healthy for one in devices)

    play(tmp_path, scene, models=[{"name": "ampere", "model": "A100"}], unfitStates=["Active"])


# --- settings

WRONG: tuple[tuple[dict[str, object], str], ...] = (
    ({"models": []}, "options.models: Expected `array` of length >= 1"),
    ({"models": [{"name": "A"}, {"name": "A", "type": "fpga"}]}, "options.models: two have one name"),
    ({"models": [{"name": "A"}, {"name": "B", "model": "A"}]}, "options.models: two are one model of the"),
    ({"models": [{"name": "A", "type": "tpu"}]}, "options.models: 'tpu' is none of gpu, fpga, nic, drive"),
    ({"machines": {"a": 1, "b": 1}}, "options.machines: two nodes are one machine"),
    ({"machines": {"a": "1"}}, "options.machines[...]: Expected `int`, got `str`"),
    ({"label": "a/b"}, "options.label: Expected `str` matching regex"),
    ({"user": "a:b"}, "options.user: Expected `str` matching regex"),
    ({"identity": "index"}, "options.identity: Invalid enum value 'index'"),
    ({"slots": 0}, "options.slots: Expected `int` >= 1"),
    ({"editSeconds": 10.0}, "options.editSeconds: must be more than effectSeconds"),
    ({"queueSeconds": 1e9}, "options.queueSeconds: Expected `float` <= 3600"),
    ({"jobs": 0}, "options.jobs: Expected `int` >= 1"),
    ({"groups": ["a"]}, "options: there is no setting groups; there are "),
)


@pytest.mark.parametrize(("options", "words"), WRONG, ids=[words for _, words in WRONG])
def test_settings_that_cannot_be_meant_are_told_at_the_start(options: dict[str, object], words: str) -> None:
    with pytest.raises(BadFabric) as caught:
        fabric.load(settings("http://127.0.0.1:1", **options), ENVIRONMENT, Hasty())
    assert str(caught.value).startswith(f"fabric rack-a: {words}")


def test_a_fabric_without_a_password_or_key_is_told_at_the_start() -> None:
    given = msgspec.structs.replace(settings("http://127.0.0.1:1"), token_variable="")
    with pytest.raises(BadFabric, match="tokenFile, tokenVariable: one is needed"):
        fabric.load(given, {}, Hasty())


def test_a_director_that_is_not_there_is_told(tmp_path: Path) -> None:
    async def scene(server: Server, _: Line) -> None:
        async with line("http://127.0.0.1:1", server.manager.clock) as nobody:
            with pytest.raises(Retry, match=r"^http://127\.0\.0\.1:1: "):
                await nobody.inventory()

    play(tmp_path, scene)


# --- the page

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "adapters.md").read_text()
SECTION = PAGE.partition("\n## Liqid")[2].partition("\n## ")[0]


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    default: object = field.default
    if isinstance(default, tuple) and default:
        return ", ".join(f"`{one}`" for one in default)
    if isinstance(default, int | float | str) and default:
        return f"`{default:g}`" if isinstance(default, int | float) else f"`{default}`"
    return "none"


def test_every_option_stands_in_the_table_with_its_default() -> None:
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \| [^|]+ \|$", SECTION, re.MULTILINE)
    assert rows == [(one.encode_name, _default(one)) for one in msgspec.structs.fields(Options)]


def test_the_settings_that_are_shown_can_be_used() -> None:
    example = SECTION.partition("```")[2].partition("\n")[2].partition("```")[0]
    (given,) = fabric.parse(example, "adapters.md")
    plain = msgspec.structs.replace(given, token_file="", token_variable=VARIABLE, ca_file="")
    assert "LiqidDirector('rack-f'" in repr(fabric.load(plain, ENVIRONMENT, Hasty()))
