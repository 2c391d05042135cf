"""Prometheus' own tool judges alerts, dashboard and figures. Where it cannot be built the tests fail, and say why."""

import json
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from jackfield.model.claim import ResourceClaim
from jackfield.model.pod import Pod
from jackfield.testing import builders as b
from unit.metrics.stage import Stage, play

ROOT = Path(__file__).resolve().parents[2]
FILES = ROOT / "charts" / "jackfield" / "files"
VARIABLES = {"$__rate_interval": "5m", "$fabric": ".*"}
"""What Grafana puts in place of its own words."""


@pytest.fixture(scope="session")
def promtool() -> Path:
    build = subprocess.run(
        [ROOT / "tools" / "prometheus" / "build"], stdout=subprocess.PIPE, text=True, check=False
    )
    if build.returncode:
        raise pytest.fail.Exception("there is no promtool here; see above", pytrace=False)
    return Path(build.stdout.strip())


def judged(promtool: Path, *arguments: str | Path, said: str = "") -> None:
    run = subprocess.run([promtool, *arguments], input=said, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, ""), run.stdout + run.stderr


def test_the_rules_can_be_read(promtool: Path) -> None:
    judged(promtool, "check", "rules", "--lint=all", "--lint-fatal", FILES / "alerts.yaml")


def test_alerts_are_raised_when_they_should_be_and_not_else(promtool: Path, tmp_path: Path) -> None:
    for one in (FILES / "alerts.yaml", Path(__file__).with_name("alerts.test.yaml")):
        shutil.copy(one, tmp_path)
    judged(promtool, "test", "rules", tmp_path / "alerts.test.yaml")


def test_what_the_dashboard_asks_can_be_read(promtool: Path, tmp_path: Path) -> None:
    board = json.loads((FILES / "dashboard.json").read_text())
    asked = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    asked += [one["expr"] for one in board["annotations"]["list"]]
    for variable, value in VARIABLES.items():
        asked = [one.replace(variable, value) for one in asked]
    rules = [{"record": f"asked:{number}", "expr": one} for number, one in enumerate(asked)]
    file = tmp_path / "asked.yaml"
    file.write_bytes(msgspec.yaml.encode({"groups": [{"name": "dashboard", "rules": rules}]}))
    judged(promtool, "check", "rules", "--lint=none", file)


def test_figures_are_named_as_prometheus_would_have_it(promtool: Path) -> None:
    texts: list[str] = []

    async def scene(stage: Stage) -> None:
        await stage.make(b.pod("p", "c"))
        await stage.allocate(b.claim("c", devices=("a100-0000",)))
        await stage.wait(9.0)
        await stage.bind("p")
        await stage.delete(Pod, "p")
        await stage.delete(ResourceClaim, "c")
        await stage.wait(30.0)
        texts.append(stage.figured.text().decode())

    play(scene)
    judged(promtool, "check", "metrics", said=texts[0])
