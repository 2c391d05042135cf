"""On a real control plane: a process is asked over HTTP after a pod's life, and its figures have moved as they must."""

import asyncio
import json
import re
from collections import Counter
from pathlib import Path

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from jackfield.model.claim import ResourceClaim
from jackfield.model.names import Seconds
from jackfield.model.policy import Policy
from jackfield.testing.control_plane import ControlPlane
from real.site import Site, setting

POLICY = Policy(hold_seconds=Seconds(2.0), inventory_seconds=Seconds(2.0))
PLACE = ("rack-a", "A100")
Figure = tuple[str, ...]


class Asked(Site):
    """A site whose replicas answer."""

    def _arguments(self) -> list[str]:
        return [*super()._arguments(), "--listen", "127.0.0.1:0"]

    def urls(self) -> list[str]:
        """Where they answer, as far as they have said so."""
        notes = (line.because for line in self.lines if line.what == "Note")
        found = (re.fullmatch(r"answers /metrics, /healthz and /readyz at (\S+)", one) for one in notes)
        return [f"http://{one[1]}" for one in found if one]

    async def page(self, path: str) -> list[tuple[int, str]]:
        """What each of them answers."""
        answers = []
        async with aiohttp.ClientSession() as session:
            for url in self.urls():
                async with session.get(f"{url}{path}") as answer:
                    answers.append((answer.status, await answer.text()))
        return answers

    async def figures(self) -> Counter[Figure]:
        """All figures of all replicas added up, by name and labels' values; what there is now is the leader's alone."""
        found: Counter[Figure] = Counter()
        for _, text in await self.page("/metrics"):
            for family in text_string_to_metric_families(text):
                for sample in family.samples:
                    if sample.name.startswith("jackfield_") and "le" not in sample.labels:
                        labels = (value for _, value in sorted(sample.labels.items()))
                        found[sample.name, *labels] += sample.value  # type: ignore[assignment] # of floats
        return found

    async def ready(self) -> bool:
        """Whether all of them are."""
        return await self.page("/readyz") == [(200, "ok\n")] * len(self.replicas)


def stage(name: str) -> Figure:
    return ("jackfield_claim_stage_seconds_count", *PLACE, name)


async def lived(site: Asked) -> str:
    """Let a pod live, and return its claim's uid."""
    await site.template()
    await site.pod("p", template="gpu", seconds=3)
    await site.until(lambda: site.phases("Running", 1))
    (claim,) = [one for one in await site.all(ResourceClaim) if isinstance(one, ResourceClaim)]
    await site.until(lambda: site.phases("Succeeded", 1))
    await site.until(lambda: not site.attached)
    await site.until(site.none_left)
    return claim.uid


def test_a_pods_life_moves_every_figure_and_has_one_cause(fresh: ControlPlane, tmp_path: Path) -> None:
    async def scene() -> None:
        async with Asked(fresh, setting(nodes=2, devices=2, policy=POLICY), tmp_path) as site:
            await site.until(lambda: len(site.urls()) == len(site.replicas))
            assert await site.page("/healthz") == [(200, "ok\n")]
            await site.until(site.ready)
            uid = await lived(site)

            async def detached() -> bool:
                now = await site.figures()
                return now["jackfield_detaches_total", *PLACE] == now["jackfield_leader", "rack-a"] == 1.0

            await site.until(detached)
            figures = await site.figures()
            once = [*(stage(one) for one in ("ordered", "attached", "visible", "ready", "bound"))]
            once += [("jackfield_claim_seconds_count", *PLACE, "false"), ("jackfield_attaches_total", *PLACE)]
            once += [("jackfield_detach_seconds_count", *PLACE)]
            once += [("jackfield_conditions_total", "FabricDeviceReady", "rack-a")]
            assert {one: figures[one] for one in once} == dict.fromkeys(once, 1.0)
            assert figures["jackfield_unused_attaches_total", *PLACE] == 0.0
            assert figures["jackfield_devices", *PLACE, "free"] == 2.0
            assert figures["jackfield_ready",] == 1.0
            assert figures["jackfield_fabric_calls_total", "rack-a", "done", "attach"] == 1.0
            assert figures["jackfield_api_calls_total", "200", "resourceclaims", "apply"] >= 1.0
            assert figures["jackfield_api_calls_total", "201", "composableresources", "create"] == 1.0
            assert figures["jackfield_hop_seconds_count", "Attach"] >= 1.0
            assert figures["jackfield_inventory_timestamp_seconds", "rack-a"] > 0.0
            story = [json.loads(one) for one in _lines(tmp_path) if uid in one]
            whats = [line["what"] for line in story if not line["what"].startswith("Waiting")]
            assert whats[0].startswith("PutRequest")
            assert {"PutResource", "Attach", "MarkState", "RecordClaim", "SetCondition", "Detach"} <= {
                one.partition(" ")[0] for one in whats
            }
            assert {line["cause"] for line in story} == {uid}

    asyncio.run(scene())


def _lines(folder: Path) -> list[str]:
    return [line for log in sorted(folder.glob("*.log")) for line in log.read_text().splitlines()]
