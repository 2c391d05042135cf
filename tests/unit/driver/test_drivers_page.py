"""The page for driver writers is true: its code runs, and what there is stands in it."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import click
import msgspec
import pytest

from jackfield import driver
from jackfield.driver.device import DeviceFields
from jackfield.driver.metrics import Metrics
from unit.driver.site import NODE, Site, on_a_node, on_a_served_node

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "drivers.md"
FENCE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
HELP = re.compile(r"(?<=<!-- begin HELP: written by `make golden` -->\n).*?(?=<!-- end HELP -->)", re.DOTALL)

Golden = Callable[[Path, str], None]

CLAIM = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: lamp}
spec: {selectors: [{cel: {expression: 'device.driver == "lamps.example.com"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: light, namespace: default}
spec:
  devices:
    requests:
      - name: lamp
        exactly:
          deviceClassName: lamp
          selectors: [{cel: {expression: 'device.attributes["lamps.example.com"].watts > 10'}}]
---
apiVersion: v1
kind: Pod
metadata: {name: reader, namespace: default}
spec:
  resourceClaims: [{name: lamp, resourceClaimName: light}]
  containers: [{name: main, image: app, resources: {claims: [{name: lamp}]}}]
"""


def shown(name: str) -> dict[str, object]:
    """Run the piece of code on the page that defines a name, and return what it defines."""
    (code,) = (one for one in FENCE.findall(PAGE.read_text()) if re.search(rf"(class|def) {name}\b", one))
    defined: dict[str, object] = {"__name__": "shown"}
    exec(compile(code, "drivers.md", "exec"), defined)  # noqa: S102 - it is ours
    return defined


def made(name: str) -> driver.Driver:
    kind = shown(name)[name]
    assert isinstance(kind, type)
    one = kind()
    assert isinstance(one, driver.Driver)
    return one


def test_the_first_driver_that_is_shown_works() -> None:
    async def scene(site: Site) -> None:
        site.apply(CLAIM)
        async with site.kubelet() as kubelet, site.kit(made("Lamps")) as kit:
            await kit.published()
            light = await site.allocated("light")
            await kubelet.registered("lamps.example.com")
            (device,) = (await kubelet.prepare("lamps.example.com", light))[light.uid].devices
            assert device.device == "ceiling"
            (file,) = site.places.cdi.glob("*.json")
            assert '"LAMP=ceiling"' in file.read_text()

    on_a_node(scene)


def test_the_parts_of_a_board_are_published_with_their_counters() -> None:
    async def scene(site: Site) -> None:
        async with site.kit(made("Boards")) as kit:
            await kit.published()
        assert [(len(one.spec.devices), len(one.spec.shared_counters)) for one in site.slices()] == [
            (3, 0),
            (0, 1),
        ]

    on_a_node(scene)


def test_the_program_of_your_own_serves() -> None:
    async def scene(site: Site) -> None:
        serve = shown("serve")["serve"]
        assert callable(serve)
        async with site.kubelet() as kubelet:
            serving = asyncio.create_task(serve(made("Lamps"), NODE, site.kubeconfig, site.places))
            await kubelet.registered("lamps.example.com")
            await site.until(lambda: len(site.slices()) == 1)
            serving.cancel()
            await asyncio.wait([serving])

    on_a_served_node(scene)


# --- what there is stands in it


def _rows(word: str) -> list[str]:
    """Return the first cells of the table whose head is a word."""
    _, _, rest = PAGE.read_text().partition(f"\n| {word} |")
    assert rest, f"the table of {word} is gone"
    return re.findall(r"^\| `([^`]+)` \|", rest.partition("\n\n")[0], re.MULTILINE)


@pytest.mark.parametrize("kind", [driver.Share, driver.Prepared, driver.Edits])
def test_every_field_stands_in_its_table(kind: type[msgspec.Struct]) -> None:
    fields = [one.name for one in msgspec.structs.fields(kind)]
    assert sorted(_rows(f"`{kind.__name__}`")) == sorted(fields)


def test_every_metric_stands_in_its_table() -> None:
    named = re.findall(r"^# TYPE (\S+) ", Metrics("a.example.com").text().decode(), re.MULTILINE)
    assert sorted(_rows("metric")) == sorted(one for one in named if not one.endswith("_created"))


@pytest.mark.parametrize("word", driver.__all__)
def test_every_public_word_is_used_on_the_page(word: str) -> None:
    explained = {"CounterSet": "counters", "Device": "device", "AttributeValue": "attributes"}
    assert re.search(rf"\b{explained.get(word, word)}\b", PAGE.read_text())


@pytest.mark.parametrize("method", [one for one in vars(driver.Driver) if not one.startswith("_")])
def test_everything_a_driver_may_say_is_explained(method: str) -> None:
    assert re.search(rf"`{method}\b|\b{method} =", PAGE.read_text())


@pytest.mark.parametrize("name", DeviceFields.__annotations__)
def test_everything_that_can_be_said_of_a_device_is_shown(name: str) -> None:
    assert f"{name}=" in PAGE.read_text()


def test_every_option_is_documented(golden: Golden) -> None:
    command = driver.command(made("Lamps"))
    context = click.Context(command, info_name="lamps.py", terminal_width=100)
    text = "\n".join(line.rstrip() for line in command.get_help(context).split("\n"))
    written, count = HELP.subn(lambda _: f"```text\n{text}\n```\n", PAGE.read_text())
    assert count == 1, "the marks between which the help stands are gone"
    golden(PAGE, written)
