"""A control plane is there quickly, leaves nothing behind however it ends, and says why where it did not start."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jackfield.testing.control_plane import (
    ControlPlane,
    ControlPlaneError,
    Program,
    Settings,
    binding_timeout,
    folder,
)
from real.leftovers import listening, processes_of
from real.waiting import comes_true

START_SECONDS_MAX = 30
OWNER = """
import sys
from jackfield.testing.control_plane import ControlPlane
with ControlPlane() as plane:
    print(plane.folder, plane.server, flush=True)
    sys.stdin.read()
"""


def test_it_is_ready_within_thirty_seconds_and_leaves_nothing_behind() -> None:
    said: list[str] = []
    chosen = Settings(
        scheduler=binding_timeout(42),
        feature_gates=("DRAConsumableCapacity=false",),
        etcd_flags=("--quota-backend-bytes=99999999",),
    )
    began = time.monotonic()
    with ControlPlane(chosen, say=said.append) as plane:
        seconds = time.monotonic() - began
        assert len(processes_of(plane.folder)) == len(Program)
        assert listening(plane.server)
        assert '"bindingTimeout":"42s"' in plane.page(Program.SCHEDULER, "/configz").replace(" ", "")
        for program in (Program.APISERVER, Program.CONTROLLER_MANAGER, Program.SCHEDULER):
            assert 'name="DRAConsumableCapacity",stage="BETA"} 0' in plane.page(program, "/metrics")
        assert '"quota-backend-bytes":99999999' in plane.log(Program.ETCD)
    assert seconds < START_SECONDS_MAX
    assert [line.split(": ")[0] for line in said if ": ready after" in line] == list(Program)
    assert processes_of(plane.folder) == []
    assert not listening(plane.server)
    assert not plane.folder.exists()


def test_it_ends_with_its_owner_even_if_that_is_killed() -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert owner.stdin
    assert owner.stdout
    with owner.stdin, owner.stdout:
        words = owner.stdout.readline().split()
        place, server = Path(words[0]), words[1]
        assert len(processes_of(place)) == len(Program)
        os.kill(owner.pid, signal.SIGKILL)
        owner.wait()
    assert comes_true(lambda: processes_of(place) == [] and not listening(server))
    # Nobody was left to remove it, so the next one does.
    assert place.exists()
    folder.sweep(place.parent)
    assert not place.exists()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Settings(etcd_flags=("--no-such-flag",)), ("etcd ended with status 2", "no-such-flag")),
        (
            Settings(apiserver_flags=("--no-such-flag",)),
            ("kube-apiserver ended with status 1", "unknown flag"),
        ),
        (Settings(scheduler={"profiles": 1}), ("kube-scheduler ended with status 1", "profiles")),
        (
            Settings(
                apiserver_flags=("--etcd-servers-overrides=/pods#https://127.0.0.1:1",), start_seconds_max=9
            ),
            ("kube-apiserver is not ready after", "The end of kube-apiserver.log"),
        ),
    ],
)
def test_a_program_that_does_not_start_is_named_with_the_end_of_its_log(
    settings: Settings, words: tuple[str, ...]
) -> None:
    plane = ControlPlane(settings)
    with pytest.raises(ControlPlaneError) as failed, plane:
        pass
    assert [word for word in words if word not in str(failed.value)] == []
    assert not plane.folder.exists()
    assert processes_of(plane.folder) == []


def test_a_folder_that_is_kept_has_the_logs() -> None:
    plane = ControlPlane(Settings(keep=True, apiserver_flags=("--no-such-flag",)))
    with pytest.raises(ControlPlaneError), plane:
        pass
    folder.sweep(plane.folder.parent)
    assert "unknown flag" in plane.log(Program.APISERVER)
    assert processes_of(plane.folder) == []
    shutil.rmtree(plane.folder)
