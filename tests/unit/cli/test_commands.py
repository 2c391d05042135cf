"""The commands do what their help says: output, exit status, and what they say when they cannot."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from jackfield.cli.main import main

GOLDEN = Path(__file__).parents[2] / "golden"
FAILING = """
setting:
  nodes: [{name: n1, fabric: rack-a}]
  fabrics: [{name: rack-a}]
  policy: {models: [{index: 0, cdi-model-name: A100, k8s-device-name: a100}]}
play: [{do: pod, name: lonely, devices: 1}]
until: 60
expect: {pods: {lonely: Running}, attaches: 1}
"""


def run(*words: str, text: str | None = None) -> Result:
    return CliRunner().invoke(main, list(words), input=text)


def test_the_demo_comes_true_and_ends_with_a_table() -> None:
    done = run("demo")
    assert done.exit_code == 0
    for words in ("pod/default/pod-a", "FabricDeviceReady", "AddNode", "time waited", "devices returned   1"):
        assert words in done.output


def test_the_demo_as_json_ends_with_the_summary() -> None:
    done = run("demo", "--json")
    *lines, last = [json.loads(line) for line in done.output.splitlines()]
    assert done.exit_code == 0
    assert all({"at", "object", "phase", "action", "by", "because"} <= set(line) for line in lines)
    expected = {"attaches": 1, "detaches": 1, "nodes_added": 1, "attaches_per_pod": 1.0, "wasted": 0}
    assert last["summary"]["pods"] == {"podA": "Running", "podB": "Running"}
    assert {name: last["summary"][name] for name in expected} == expected


@pytest.mark.parametrize("seed", ["2", "3", "4", "5"])
def test_the_demo_comes_true_whatever_the_seed(seed: str) -> None:
    assert run("demo", "--seed", seed).exit_code == 0


def test_a_scenario_that_does_not_come_true_says_what_and_exits_with_one(tmp_path: Path) -> None:
    scenario = tmp_path / "s.yaml"
    scenario.write_text(FAILING)
    done = run("sim", str(scenario))
    assert done.exit_code == 1
    assert "expected pod lonely to be Running; it is Pending" in done.output
    assert "expected 1 attaches; there were 0" in done.output


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("setting: [", "not YAML"),
        ("play: []", "the whole file: Object missing required field `setting`"),
        (
            "setting: {nodes: [{name: n, fabrik: x}]}",
            "setting.nodes[0]: Object contains unknown field `fabrik`",
        ),
        ("setting: {nodes: [{name: n, fabric: x}]}", "setting.nodes[0].fabric: there is no fabric 'x'"),
        ("setting: {nodes: [{name: n}, {name: n}]}", "two nodes are called 'n'"),
        ("setting: {fabrics: [{name: f, batches: [{model: M, count: 1}]}]}", "model 'M' is not among"),
        ("setting: {}\nplay: [{do: dance}]", "play[0].do: Invalid value 'dance'"),
        ("setting: {boot: {kind: fixed, seconds: -1}}", "setting.boot"),
        ("setting: {policy: {resyncSeconds: 0}}", "must be more than 0"),
    ],
)
def test_a_scenario_that_cannot_be_played_names_the_field(tmp_path: Path, text: str, words: str) -> None:
    scenario = tmp_path / "s.yaml"
    scenario.write_text(text)
    done = run("sim", str(scenario))
    assert done.exit_code == 2
    assert words in done.output
    assert str(scenario) in done.output


def test_a_missing_scenario_is_said_to_be_missing(tmp_path: Path) -> None:
    done = run("sim", str(tmp_path / "none.yaml"))
    assert (done.exit_code, "cannot be read" in done.output) == (2, True)


def test_all_shows_the_steps_that_only_keep_books() -> None:
    path = str(GOLDEN / "life_of_a_claim.yaml")
    assert "Rescan" not in run("sim", path).output
    assert "Rescan" in run("sim", path, "--all").output


def test_a_story_is_found_by_the_beginning_of_a_name() -> None:
    done = run("story", "claim/default/pod-a")
    assert done.exit_code == 0
    assert "SetCondition FabricDeviceReady" in done.output
    assert "pod-b" not in done.output


@pytest.mark.parametrize(
    "name", ["node/worker-2", "device/fabric.jackfield.dev/rack-a/a100-0000", "pod/default/pod-b"]
)
def test_every_kind_of_object_has_a_story(name: str) -> None:
    done = run("story", name)
    assert done.exit_code == 0
    assert len(done.output.splitlines()) > 3


def test_a_name_that_means_nothing_or_too_much_offers_names() -> None:
    nobody, many = run("story", "pod/default/nobody"), run("story", "pod/default/pod-")
    assert (nobody.exit_code, many.exit_code) == (1, 1)
    assert "knows no pod/default/nobody" in nobody.output
    assert "pod/default/pod-a" in nobody.output
    assert "could mean several" in many.output


def test_a_story_can_be_read_from_what_sim_printed() -> None:
    printed = run("sim", str(GOLDEN / "life_of_a_claim.yaml"), "--json").output
    done = run("story", "resource/a100-0000.rack-a", "--from", "-", text=printed)
    assert done.exit_code == 0
    assert "Detach 0000 at n1" in done.output
    bad = run("story", "pod/x/y", "--from", "-", text="no json\n")
    assert (bad.exit_code, "line 1 is not one that sim --json prints" in bad.output) == (2, True)


def test_help_loads_nothing_that_only_commands_need() -> None:
    script = (
        "import sys; from click.testing import CliRunner; from jackfield.cli.main import main;"
        "done = CliRunner().invoke(main, ['sim', '--help']); assert done.exit_code == 0, done.output;"
        "heavy = [name for name in sys.modules if name in ('msgspec', 'yaml', 'rich') or 'jackfield.sim' in name];"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("module", ["run", "fabric_serve"])
def test_what_runs_for_months_loads_no_simulator(module: str) -> None:
    script = (
        f"import sys, jackfield.cli.{module};"
        "unneeded = ('jackfield.sim', 'jackfield.cluster', 'jackfield.core.cel', 'rich');"
        "loaded = [name for name in sys.modules if name.startswith(unneeded)];"
        "assert not loaded, loaded"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", ["demo", "sim", "story"])
def test_every_command_explains_itself(command: str) -> None:
    done = run(command, "--help")
    assert done.exit_code == 0
    assert len(done.output.splitlines()) > 8
