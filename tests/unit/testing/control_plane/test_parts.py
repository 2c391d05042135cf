"""The small parts of a control plane: ports, programs, waiting, the audit log, settings."""

import re
import socket
from pathlib import Path

import pytest

from jackfield.testing.control_plane import audit, binaries, loopback
from jackfield.testing.control_plane.audit import Entry
from jackfield.testing.control_plane.binaries import Program
from jackfield.testing.control_plane.crew import Crew
from jackfield.testing.control_plane.errors import ControlPlaneError
from jackfield.testing.control_plane.process import Nursery, Process

LINES = (
    b'{"stage":"ResponseStarted","verb":"watch","user":{"username":"u"}}\n'
    b'{"stage":"ResponseComplete","verb":"patch","user":{"username":"u","groups":["g"]},"userAgent":"jackfield/1",'
    b'"objectRef":{"resource":"resourceclaims","subresource":"status","namespace":"n","name":"c"},'
    b'"responseStatus":{"metadata":{},"code":409}}\n'
    b'{"stage":"ResponseComplete","verb":"list","objectRef":{"resource":"nodes"},"responseStatus":{"code":200}}\n'
    b'{"stage":"ResponseComplete","ver'
)


def test_ports_are_free_and_not_given_to_outgoing_connections() -> None:
    ports = loopback.free_ports(5)
    low, high = (int(word) for word in loopback.RANGE_FILE.read_text().split())
    assert len(set(ports)) == 5
    for port in ports:
        assert not low <= port <= high
        with socket.socket() as server:
            server.bind(("127.0.0.1", port))


def test_more_ports_than_there_are_cannot_be_had() -> None:
    with pytest.raises(OSError, match="there are no 100000 free ports on loopback"):
        loopback.free_ports(100000)


def test_a_folder_without_the_programs_says_which_are_missing(tmp_path: Path) -> None:
    for name in ("etcd", "keys", "kube-apiserver", "kube-controller-manager"):
        (tmp_path / name).touch()
    with pytest.raises(ControlPlaneError, match=r"has no kube-scheduler, no kubectl$"):
        binaries.checked(tmp_path)
    for name in ("kube-scheduler", "kubectl"):
        (tmp_path / name).touch()
    assert binaries.checked(tmp_path) == tmp_path.resolve()


def test_the_build_is_where_it_is_looked_for() -> None:
    assert binaries.build_script().is_file()


def test_half_a_line_of_a_server_that_was_killed_is_passed_over(tmp_path: Path) -> None:
    whole = '{"stage":"ResponseComplete","verb":"get","user":{"username":"a"}}'
    log = tmp_path / "audit.log"
    log.write_text(f"{whole}\n{whole[:30]}{whole}\n{whole}\n")
    assert [one.verb for one in audit.entries(log)] == ["get", "get"]


def test_the_audit_log_is_read_up_to_its_last_whole_line(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    assert audit.entries(log) == ()
    log.write_bytes(LINES)
    assert audit.entries(log) == (
        Entry("patch", "u", "jackfield/1", "resourceclaims/status", "n", "c", 409),
        Entry("list", "", "", "nodes", "", "", 200),
    )


def crew(folder: Path, said: list[str], *, etcd: str, apiserver: str, seconds: float = 10) -> Crew[Program]:
    """Return two programs that are lines of a shell."""
    nursery = Nursery()
    processes = {
        program: Process(nursery, ("/bin/sh", "-c", line), folder / f"{program}.log")
        for program, line in ((Program.ETCD, etcd), (Program.APISERVER, apiserver))
    }
    made = Crew(processes, seconds, said.append)
    for program in processes:
        made.start(program)
    return made


def test_who_waits_hears_when_nothing_is_missing_any_more(tmp_path: Path) -> None:
    said: list[str] = []
    reasons = ["one", "two", ""]
    made = crew(tmp_path, said, etcd="exec sleep 60", apiserver="exec sleep 60")
    made.wait(Program.APISERVER, lambda: reasons.pop(0))
    made.kill_all()
    assert [re.sub(r"[0-9.]+", "N", line) for line in said] == ["kube-apiserver: ready after N s"]
    assert reasons == []


def test_who_waits_too_long_hears_what_is_missing_and_sees_the_log(tmp_path: Path) -> None:
    made = crew(tmp_path, [], etcd="exec sleep 60", apiserver="echo words; exec sleep 60", seconds=0.5)
    with pytest.raises(ControlPlaneError) as failed:
        made.wait(Program.APISERVER, lambda: "no answer")
    made.kill_all()
    assert re.sub(r"[0-9]+ s", "N s", str(failed.value)) == (
        "kube-apiserver is not ready after N s: no answer\nThe end of kube-apiserver.log:\nwords"
    )


def test_the_program_that_died_is_blamed_and_not_the_one_that_waits_for_it(tmp_path: Path) -> None:
    made = crew(tmp_path, [], etcd="echo out of memory; exit 7", apiserver="exec sleep 60")
    with pytest.raises(ControlPlaneError) as failed:
        made.wait(Program.APISERVER, lambda: "no answer")
    made.kill_all()
    assert str(failed.value) == "etcd ended with status 7\nThe end of etcd.log:\nout of memory"


def test_a_program_that_was_killed_on_purpose_is_not_blamed(tmp_path: Path) -> None:
    made = crew(tmp_path, [], etcd="exec sleep 60", apiserver="exec sleep 60")
    made.kill(Program.ETCD)
    made.check()
    made.start(Program.ETCD)
    made.check()
    made.kill_all()
