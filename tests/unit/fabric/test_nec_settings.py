"""What is said of a fabric of NEC is meant so, or is told at the start; docs/adapters.md has all of it."""

import asyncio
import re
from pathlib import Path

import msgspec
import pytest

from jackfield import fabric
from jackfield.fabric import BadFabric, Line
from jackfield.fabric.nec import Options
from jackfield.fabric_manager.faces.nec import NODE_LABEL
from jackfield.fabric_manager.hardware import Machine
from jackfield.fabric_manager.server import Server
from jackfield.model.fabric import Failed
from jackfield.model.names import NodeName
from jackfield.ports import Retry
from unit.fabric.nec_bench import (
    ENVIRONMENT,
    ORDER,
    VARIABLE,
    line,
    other,
    play,
    serving,
    settings,
    settled,
    there,
)
from unit.fabric_manager.lab import SMALL
from unit.sim.hasty import Hasty

# --- nodes and where the services are

CPU = "AAAAAAAA-0000-4000-8000-000000000001"
LABELLED = msgspec.structs.replace(
    SMALL,
    machines=(
        Machine(name=NodeName("n-1"), slots=10, labels={NODE_LABEL: CPU}),
        Machine(name=NodeName("n-2"), slots=10),
    ),
)


@pytest.mark.parametrize("wiring", ["cpu", "fabricAdapter"])
def test_nodes_are_machines_of_the_same_name_or_as_the_table_says(tmp_path: Path, wiring: str) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        assert [one.node for one in (await fabric.inventory()).machines] == ["n-1", "n-2"]
        options: dict[str, object] = {"wiring": wiring, "machines": {"worker": CPU.lower(), "gone": "nobody"}}
        async with line(server.url, server.manager.clock, **options) as tabled:
            assert [one.node for one in (await tabled.inventory()).machines] == ["worker"]
            await settled(server, tabled.attach, msgspec.structs.replace(ORDER, node=NodeName("worker")))
            await settled(server, fabric.attach, other(2, "n-2"))
            assert [one.id for one in await there(tabled, "worker")] == ["a-1"]
            assert "a-2" not in [one.id for one in (await tabled.inventory()).devices]
            elsewhere = msgspec.structs.replace(other(2), node=NodeName("worker"))
            answer = await settled(server, tabled.attach, elsewhere)
            assert isinstance(answer, Failed)
            assert answer.reason.endswith("device a-2 is on a machine that is none of this fabric's")
        assert [one.id for one in await there(fabric)] == ["a-1"]

    play(tmp_path, scene, base=LABELLED, wiring=wiring)


def test_the_configuration_manager_may_be_elsewhere_and_the_token_a_password(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as server:
            given = settings("http://127.0.0.1:1", configurationUrl=server.url, user="jackfield")
            async with fabric.load(given, ENVIRONMENT, server.manager.clock) as made:
                assert len((await made.inventory()).devices) == 11

    asyncio.run(main())


def test_a_token_that_is_not_accepted_is_told_and_not_shown(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as server:
            wrong = {VARIABLE: "a-wrong-token"}
            async with fabric.load(settings(server.url), wrong, server.manager.clock) as made:
                with pytest.raises(Retry, match=r"the token is missing or not the right one \(401\)$"):
                    await made.inventory()

    asyncio.run(main())


# --- settings

WRONG: tuple[tuple[dict[str, object], str], ...] = (
    ({"models": []}, "options.models: Expected `array` of length >= 1"),
    ({"models": [{"name": "A"}, {"name": "A", "type": "fpga"}]}, "options.models: two have one name"),
    ({"machines": {"a": "X", "b": "x"}}, "options.machines: two nodes are one machine"),
    ({"machines": {"a": "../x"}}, "options.machines[...]: Expected `str` matching regex"),
    ({"wiring": "string"}, "options.wiring: Invalid enum value 'string'"),
    ({"slots": 0}, "options.slots: Expected `int` >= 1"),
    ({"effectSeconds": 0}, "options.effectSeconds: Expected `float` > 0"),
    ({"queueSeconds": 1e9}, "options.queueSeconds: Expected `float` <= 3600"),
    ({"jobs": 2}, "options: there is no setting jobs; there are "),
    ({"user": "a:b"}, "options.user: Expected `str` matching regex"),
    ({"configurationUrl": "ftp://a"}, "options.configurationUrl: must be https://"),
    ({"configurationUrl": "http://a.example"}, "options.configurationUrl: http:// lets everybody"),
)


@pytest.mark.parametrize(("options", "words"), WRONG, ids=[words for _, words in WRONG])
def test_settings_that_cannot_be_meant_are_told_at_the_start(options: dict[str, object], words: str) -> None:
    with pytest.raises(BadFabric) as caught:
        fabric.load(settings("http://127.0.0.1:1", **options), ENVIRONMENT, Hasty())
    assert str(caught.value).startswith(f"fabric rack-a: {words}")


def test_a_user_without_a_password_is_told_at_the_start() -> None:
    given = msgspec.structs.replace(settings("http://127.0.0.1:1", user="me"), token_variable="")
    with pytest.raises(BadFabric, match=r"options\.user: means nothing without its password"):
        fabric.load(given, {}, Hasty())


# --- the page

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "adapters.md").read_text()
SECTION = PAGE.partition("\n## NEC")[2].partition("\n## ")[0]


def test_every_option_stands_in_the_table_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \| [^|]+ \|$", SECTION, re.MULTILINE))
    fields = {one.encode_name: one for one in msgspec.structs.fields(Options)}
    assert [*rows] == [*fields]
    for name, field in fields.items():
        plain = isinstance(field.default, int | float | str) and field.default
        default = f"`{field.default:g}`" if isinstance(field.default, int | float) else f"`{field.default}`"
        assert rows[name] == ("required" if field.required else default if plain else "none"), name


def test_the_settings_that_are_shown_can_be_used() -> None:
    example = SECTION.partition("```")[2].partition("\n")[2].partition("```")[0]
    (given,) = fabric.parse(example, "adapters.md")
    plain = msgspec.structs.replace(given, token_file="", ca_file="")
    assert "NecLayoutApply('rack-c'" in repr(fabric.load(plain, {}, Hasty()))
