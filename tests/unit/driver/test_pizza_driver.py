"""The pizza driver of the examples: its menu, its orders, and a whole meal on a cluster with an API over HTTPS."""

import asyncio
import importlib.util
import json
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType

import aiohttp
import click
import msgspec
import pytest

from jackfield import driver
from jackfield.model.names import Key, Uid
from jackfield.model.pod import Pod
from unit.driver.site import NODE, Site, on_a_served_node

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "pizza-driver"
PIZZA = "dra.pizza"


def kitchen() -> ModuleType:
    """Return the example's module."""
    spec = importlib.util.spec_from_file_location("pizza_driver", EXAMPLE / "driver.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@asynccontextmanager
async def started(site: Site, *options: str) -> AsyncIterator[Process]:
    """Run the driver as its users do."""
    places = site.places
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        # The boxes go into the test's folder; all else is as `python driver.py` has it.
        f"import runpy, sys; sys.argv[0] = 'driver.py'\n"
        f"module = runpy.run_path({str(EXAMPLE / 'driver.py')!r})\n"
        f"from pathlib import Path; from jackfield import driver\n"
        f"driver.main(module['Pizzeria'](Path({str(site.folder / 'boxes')!r})))",
        *("--node-name", NODE, "--kubeconfig", str(site.kubeconfig)),
        *("--plugins-dir", str(places.plugins), "--registry-dir", str(places.registry)),
        *("--cdi-dir", str(places.cdi), *options),
        stderr=PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def port_of(process: Process) -> int:
    """Wait until the driver says where it answers."""
    assert process.stderr is not None
    while line := (await process.stderr.readline()).decode():
        if "at port" in line:
            return int(line.rpartition(" ")[2])
    pytest.fail("it ended before it answered")


def boxes(site: Site) -> list[str]:
    return [path.read_text() for path in sorted((site.folder / "boxes").glob("*"))]


def test_an_order_is_allocated_prepared_in_its_box_and_thrown_away() -> None:
    async def scene(site: Site) -> None:
        site.apply((EXAMPLE / "class.yaml").read_text(), (EXAMPLE / "order.yaml").read_text())
        async with site.kubelet() as kubelet, started(site, "--metrics-port=0", "--health-port=0") as process:
            order = await site.allocated("my-pizza-order")
            (result,) = site.claim("my-pizza-order").results
            assert (result.driver, result.pool, result.device) == (PIZZA, NODE, "funghi-pan-pizza")
            await kubelet.registered(PIZZA)
            (device,) = (await kubelet.prepare(PIZZA, order))[order.uid].devices
            assert boxes(site) == ["funghi-pan-pizza, in 6 slices, for default/my-pizza-order\n"]
            (file,) = site.places.cdi.glob("*.json")
            spec = json.loads(file.read_text())
            (edits,) = [
                one["containerEdits"]
                for one in spec["devices"]
                if f"{spec['kind']}={one['name']}" in device.cdi
            ]
            assert edits["env"] == ["PIZZA=funghi-pan-pizza", "PIZZA_SLICES=6"]
            assert "/pizza" in [one["containerPath"] for one in edits["mounts"]]
            await well(await port_of(process))
            assert (await kubelet.unprepare(PIZZA, order))[order.uid].error == ""
            assert (boxes(site), list(site.places.cdi.glob("*.json"))) == ([], [])
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0
            await kubelet.gone(PIZZA)
            assert len(site.slices()) == 1

    async def well(port: int) -> None:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
            for path, words in (
                ("/healthz", "ok"),
                ("/readyz", "ok"),
                ("/metrics", 'prepared_claims{driver="dra.pizza"} 1.0'),
            ):
                async with session.get(path) as answer:
                    assert (answer.status, words in await answer.text()) == (200, True)

    on_a_served_node(scene)


def test_whoever_asks_for_what_nobody_cooks_waits_and_nothing_fails() -> None:
    async def scene(site: Site) -> None:
        order = (EXAMPLE / "order.yaml").read_text().replace('"pan"', '"thin"')
        site.apply((EXAMPLE / "class.yaml").read_text(), order)
        async with site.kubelet(), started(site):
            await site.until(lambda: "cannot allocate all claims" in message(site))
            assert site.claim("my-pizza-order").status.allocation is None

    def message(site: Site) -> str:
        pod = site.store.get(Pod, Key("default", "lunch")).object
        assert isinstance(pod, Pod)
        return next((one.message for one in pod.status.conditions if one.type == "PodScheduled"), "")

    on_a_served_node(scene)


def share(device: str, *config: dict[str, object]) -> driver.Share:
    return driver.Share(
        claim=Key("default", "order"),
        uid=Uid("u"),
        requests=("pizza",),
        pool=NODE,
        device=device,
        config=config,
    )


def test_a_pizza_is_cut_as_the_last_word_says_or_not_at_all(tmp_path: Path) -> None:
    async def scene() -> None:
        pizzeria = kitchen().Pizzeria(tmp_path)
        plain = await pizzeria.prepare(share("pepperoni-pan-pizza"))
        assert plain.env["PIZZA_SLICES"] == "6"
        cut = await pizzeria.prepare(share("pepperoni-pan-pizza", {"slices": 6}, {}, {"slices": 8}))
        assert cut.env["PIZZA_SLICES"] == "8"
        with pytest.raises(driver.Refused, match="into 4 slices; it can be 6 or 8"):
            await pizzeria.prepare(share("pepperoni-pan-pizza", {"slices": 4}))

    asyncio.run(scene())


def there(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def test_boxes_that_nobody_remembers_are_thrown_away_at_the_start(tmp_path: Path) -> None:
    async def scene() -> None:
        pizzeria = kitchen().Pizzeria(tmp_path)
        await pizzeria.prepare(share("margherita-pan-pizza"))
        await pizzeria.prepare(share("funghi-pan-pizza"))
        await pizzeria.restore((share("funghi-pan-pizza"),))
        assert there(tmp_path) == ["u-funghi-pan-pizza.txt"]
        await pizzeria.unprepare(share("funghi-pan-pizza"))
        await pizzeria.unprepare(share("funghi-pan-pizza"))

    asyncio.run(scene())


def test_the_daemon_set_gives_only_options_that_there_are() -> None:
    parts = [msgspec.yaml.decode(one) for one in (EXAMPLE / "install.yaml").read_text().split("\n---\n")]
    (container,) = parts[-1]["spec"]["template"]["spec"]["containers"]
    options = {option for one in driver.command(kitchen().Pizzeria()).params for option in one.opts}
    variables = {
        one.envvar for one in driver.command(kitchen().Pizzeria()).params if isinstance(one, click.Option)
    }
    given = [one.partition("=")[0] for one in container["command"] if one.startswith("--")]
    assert given
    assert set(given) <= options
    assert {one["name"] for one in container["env"]} <= variables
    mounted = {one["mountPath"] for one in container["volumeMounts"]}
    places = driver.Places()
    assert {str(one) for one in (places.plugins, places.registry, places.cdi)} <= mounted
