"""`jackfield fabric …` as people type it, against a manager in a process of its own."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from jackfield.cli.fabric import FAULTS
from jackfield.cli.main import main
from jackfield.fabric_manager.faults import Kind
from jackfield.fabric_manager.folder import BadFolder, Folder

INVENTORY = """
fabric: lab
machines: [{name: n, count: 2}]
devices: [{name: g, count: 3, model: A100}]
"""


def typed(*words: str) -> Result:
    return CliRunner().invoke(main, ["fabric", *words])


@contextmanager
def manager(folder: Folder, *options: str) -> Iterator[subprocess.Popen[str]]:
    folder.make()
    folder.inventory.write_text(INVENTORY)
    command = [
        sys.executable,
        "-m",
        "jackfield",
        "fabric",
        "serve",
        "--state",
        str(folder.path),
        "--port",
        "0",
        *options,
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            until = time.monotonic() + 30.0
            while not folder.url.exists():
                assert process.poll() is None
                assert time.monotonic() < until
                time.sleep(0.05)  # noqa: TID251 - real processes take real time
            yield process
        finally:
            process.terminate()
            process.wait(10)
            assert process.returncode == 0


def test_a_device_is_attached_shown_watched_and_detached_by_hand(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "state")
    at = ("--state", str(folder.path))
    with manager(folder):
        assert folder.token.stat().st_mode & 0o777 == 0o600
        assert all(not path.stat().st_mode & 0o077 for path in folder.path.glob("manager.db*"))
        assert typed("attach", "g-2", "n-1", *at).output == "g-2: attached\n"
        row = next(one for one in typed("ls", *at).output.splitlines() if one.startswith("g-2"))
        assert row.split()[:6] == ["g-2", "gpu", "A100", "n-1", "attached", "hand"]
        shown = json.loads(typed("ls", "--json", *at).output)
        assert [one["node"] for one in shown["inventory"]["devices"]] == ["", "n-1", ""]
        assert typed("attach", "g-2", "n-2", *at).exit_code == 1
        assert typed("attach", "g-9", "n-2", *at).exit_code == 1
        assert typed("detach", "g-2", *at).output == "g-2: detached\n"
        assert typed("detach", "g-2", *at).exit_code == 1
        watched = typed("watch", "--from-start", "--for", "1s", *at).output.splitlines()
        assert [line.split()[1:3] for line in watched] == [["g-2", "attached"], ["g-2", "detached"]]
    gone = typed("ls", *at)
    assert gone.exit_code == 1
    assert "Cannot connect" in gone.output
    assert "Is the manager up (jackfield fabric serve)" in gone.output


def test_faults_are_set_shown_and_cleared_by_hand(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "state")
    at = ("--state", str(folder.path))
    with manager(folder):
        told = ("--verb", "attach", "--times", "1", "--reason", "as told")
        assert typed("fault", "set", "fail", *told, *at).output == "fault-1\n"
        assert typed("fault", "set", "vanish", "--device", "g-1", *at).output == "fault-2\n"
        assert typed("fault", "set", "vanish", *at).exit_code == 1
        assert "fault-1: fail, verb=attach" in typed("fault", "ls", *at).output
        assert "g-1" not in typed("ls", *at).output.replace("device=g-1", "")
        failed = typed("attach", "g-2", "n-1", *at)
        assert (failed.exit_code, failed.output) == (1, "g-2: as told\n")
        assert typed("fault", "clear", "fault-1", *at).output == "fault-1: cleared\n"
        assert typed("fault", "clear", "fault-1", *at).exit_code == 1
        assert typed("fault", "clear", "--all", *at).output == "fault-2: cleared\n"
        assert typed("fault", "ls", *at).output == ""
        assert typed("attach", "g-1", "n-1", *at).exit_code == 0


LONG = """
faults:
  - {kind: ill, device: g-1, id: sick}
  - {at: 3000, for: 1, kind: fail}
"""
SHORT = """
faults:
  - {for: 0.1, kind: quota, limit: 1, id: few}
"""


def test_a_scenario_is_played_by_the_manager_and_by_hand(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "state")
    long, short = tmp_path / "long.yaml", tmp_path / "short.yaml"
    long.write_text(LONG)
    short.write_text(SHORT)
    at = ("--state", str(folder.path))
    with manager(folder, "--scenario", str(long)):
        waited_for("sick: ill, device=g-1", at)
        told = typed("fault", "play", str(short), *at)
        assert told.exit_code == 0, told.output
        lines = [line.partition("  ")[2] for line in told.output.splitlines()]
        assert lines == ["few: quota, every call, at most 1 devices", "few: cleared"]
        assert typed("fault", "clear", "sick", *at).exit_code == 0
        command = [sys.executable, "-m", "jackfield", "fabric", "fault", "play", str(long), *at]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as player:
            waited_for("sick: ill, device=g-1", at)
            player.send_signal(signal.SIGINT)
            assert player.wait(30) == 0
        assert typed("fault", "ls", *at).output == ""


def waited_for(line: str, at: tuple[str, ...]) -> None:
    until = time.monotonic() + 30.0
    while line not in typed("fault", "ls", *at).output:
        assert time.monotonic() < until
        time.sleep(0.05)  # noqa: TID251 - real processes take real time


def test_a_scenario_that_cannot_be_played_is_refused(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "state")
    folder.make()
    folder.inventory.write_text(INVENTORY)
    bad = tmp_path / "bad.yaml"
    bad.write_text("faults: [{kind: fail, device: g-9}]")
    refused = typed("serve", "--state", str(folder.path), "--port", "0", "--scenario", str(bad))
    assert refused.exit_code == 2
    assert "--scenario: scenario-1: there is no device 'g-9'" in refused.output
    bad.write_text("faults: [{kind: ill}]")
    for words in (("serve", "--scenario", str(bad)), ("fault", "play", str(bad))):
        refused = typed(*words, "--state", str(folder.path))
        assert refused.exit_code == 2
        assert "bad.yaml: faults[0]: ill needs a device" in refused.output


def test_every_kind_of_fault_can_be_typed() -> None:
    assert tuple(Kind) == FAULTS


UNUSABLE = (
    (("--host", "0.0.0.0"), "give --certificate and --key"),  # noqa: S104 - refused
    (("--face", "morse"), "'morse' is none of native"),
    (("--certificate", "c.pem"), "--certificate and --key belong together"),
    (("--generate", "many"), "'many' is not machines x devices"),
    ((), "--generate 4x32 writes one"),
)


@pytest.mark.parametrize(("options", "words"), UNUSABLE)
def test_what_makes_no_manager_is_refused_with_a_reason(
    tmp_path: Path, options: tuple[str, ...], words: str
) -> None:
    result = typed("serve", "--state", str(tmp_path / "state"), *options)
    assert result.exit_code == 2
    assert words in result.output


def test_a_bad_inventory_is_named_with_its_place(tmp_path: Path) -> None:
    bad = tmp_path / "lab.yaml"
    bad.write_text(INVENTORY.replace("count: 3", "count: 0"))
    result = typed("serve", "--state", str(tmp_path / "state"), "--inventory", str(bad))
    assert result.exit_code == 2
    assert "lab.yaml: devices[0].count: must be at least 1" in result.output


def test_a_token_is_made_once_and_kept_from_others(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "state")
    folder.make()
    made = folder.secret().reveal()
    assert len(made) >= 40
    assert folder.path.stat().st_mode & 0o777 == 0o700
    assert Folder(folder.path).secret().reveal() == made
    folder.token.chmod(0o644)
    with pytest.raises(BadFolder, match="others can read it"):
        folder.secret()
    folder.token.chmod(0o600)
    folder.token.write_text("short\n")
    with pytest.raises(BadFolder, match="is no token"):
        folder.secret()


def test_commands_without_a_manager_say_where_they_looked(tmp_path: Path) -> None:
    result = typed("ls", "--state", str(tmp_path))
    assert result.exit_code == 2
    assert "no manager was served from here" in result.output
