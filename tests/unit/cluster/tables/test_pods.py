"""A pod's row says what a user has to know first: how many containers are ready, what holds it up, since when."""

import pytest

from jackfield.cluster import tables
from jackfield.codec import Raw, kinds
from jackfield.model.names import Seconds, rfc3339
from jackfield.model.pod import Pod

NOW = Seconds(1.8e9)
RUNNING: Raw = {"running": {"startedAt": rfc3339(NOW)}}
CREATED: Raw = {"name": "p", "creationTimestamp": rfc3339(Seconds(NOW - 60))}


def ago(seconds: float) -> str:
    return rfc3339(Seconds(NOW - seconds))


def waiting(reason: str) -> Raw:
    return {"waiting": {"reason": reason}}


def ended(code: int, reason: str = "", signal: int = 0) -> Raw:
    return {"terminated": {"exitCode": code, "reason": reason, "signal": signal}}


def container(state: Raw, *, ready: bool = False, name: str = "c", **more: object) -> Raw:
    return {"name": name, "state": state, "ready": ready, **more}


def conditions(**statuses: str) -> list[Raw]:
    return [{"type": kind, "status": status} for kind, status in statuses.items()]


def row(status: Raw, spec: Raw | None = None, metadata: Raw | None = None) -> Raw:
    pod = {"metadata": {**CREATED, **(metadata or {})}, "spec": spec or {}, "status": status}
    shown: Raw = tables.table(kinds.of(Pod), [pod], NOW)["rows"][0]
    return shown


def cells(status: Raw, spec: Raw | None = None, metadata: Raw | None = None) -> tuple[str, str, str]:
    """Return what is in the columns Ready, Status and Restarts."""
    _, ready, words, restarts, *_ = row(status, spec, metadata)["cells"]
    return ready, words, restarts


# --- status

READY = conditions(Initialized="True", Ready="True")
ONE: Raw = {"containers": [{"name": "c"}]}


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({"phase": "Pending"}, "Pending"),
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted"),
        (
            {"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "Unschedulable"}]},
            "Pending",
        ),
        (
            {"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]},
            "SchedulingGated",
        ),
        (
            {"phase": "Pending", "containerStatuses": [container(waiting("ImagePullBackOff"))]},
            "ImagePullBackOff",
        ),
        (
            {"phase": "Running", "containerStatuses": [container(waiting("CrashLoopBackOff"))]},
            "CrashLoopBackOff",
        ),
        ({"phase": "Running", "containerStatuses": [container(waiting(""))]}, "Running"),
        ({"phase": "Running", "containerStatuses": [container(RUNNING, ready=True)]}, "Running"),
        ({"phase": "Failed", "containerStatuses": [container(ended(1, "Error"))]}, "Error"),
        ({"phase": "Failed", "containerStatuses": [container(ended(3))]}, "ExitCode:3"),
        ({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {}}}]}, "ExitCode:0"),
        ({"phase": "Failed", "containerStatuses": [container(ended(3, signal=9))]}, "Signal:9"),
        ({"phase": "Succeeded", "containerStatuses": [container(ended(0, "Completed"))]}, "Completed"),
        (
            {
                "phase": "Running",
                "containerStatuses": [container(ended(1, "Error")), container(waiting("Back"))],
            },
            "Error",
        ),
    ],
)
def test_the_status_is_what_the_first_container_with_something_to_say_makes_of_it(
    status: Raw, words: str
) -> None:
    assert cells(status)[1] == words


DONE = container(ended(0, "Completed"))
RUNS = container(RUNNING, ready=True)
LAGS = container(RUNNING, ready=False)
FAILED = container(ended(1, "Error"))


@pytest.mark.parametrize(
    ("statuses", "ready", "words"),
    [
        ([DONE, RUNS], True, "Running"),
        ([DONE, RUNS], False, "NotReady"),
        ([DONE, LAGS], True, "Completed"),
        ([DONE, FAILED], True, "Error"),
        ([DONE, FAILED, RUNS], True, "Running"),
        ([DONE, FAILED, RUNS], False, "Error"),
        ([DONE, container(ended(2, "First")), FAILED], False, "First"),
        ([DONE, container({**waiting("Back"), **ended(1, "Error")})], False, "Completed"),
        ([FAILED, RUNS], True, "Error"),
    ],
)
def test_a_completed_container_speaks_for_the_pod_only_if_no_other_runs_or_failed(
    statuses: list[Raw], words: str, *, ready: bool
) -> None:
    status = {
        "phase": "Running",
        "containerStatuses": statuses,
        "conditions": conditions(Ready=str(ready)),
    }
    assert cells(status)[1] == words


@pytest.mark.parametrize(
    ("phase", "reason", "words"),
    [
        ("Pending", "", "Terminating"),
        ("Running", "", "Terminating"),
        ("Running", "NodeLost", "Unknown"),
        ("Failed", "NodeLost", "Unknown"),
        ("Succeeded", "", "Succeeded"),
        ("Failed", "Evicted", "Evicted"),
    ],
)
def test_a_deleted_pod_terminates_until_it_has_ended(phase: str, reason: str, words: str) -> None:
    deleted = {"deletionTimestamp": ago(1)}
    status = {"phase": phase, "reason": reason, "initContainerStatuses": [container(waiting("x"))]}
    expected = words if words in {"Terminating", "Unknown"} else "Init:x"
    assert cells(status, metadata=deleted)[1] == expected
    assert cells({**status, "initContainerStatuses": []}, metadata=deleted)[1] == words


# --- init containers

INIT: Raw = {"containers": [{"name": "c"}], "initContainers": [{"name": "i"}, {"name": "j"}]}
SIDECAR: Raw = {
    "containers": [{"name": "c"}],
    "initContainers": [{"name": "i", "restartPolicy": "Always"}, {"name": "j"}],
}
WAITS = container(waiting("PodInitializing"), restartCount=1)


@pytest.mark.parametrize(
    ("spec", "init", "expected"),
    [
        (INIT, [], ("0/1", "PodInitializing", "1")),
        (INIT, [container(RUNNING, name="i")], ("0/1", "Init:0/2", "0")),
        (INIT, [container(ended(0), name="i"), container(RUNNING, name="j")], ("0/1", "Init:1/2", "0")),
        (
            INIT,
            [container(ended(0), name="i"), container(ended(0), name="j")],
            ("0/1", "PodInitializing", "1"),
        ),
        (INIT, [container(waiting("PodInitializing"), name="i")], ("0/1", "Init:0/2", "0")),
        (INIT, [container(waiting("ImagePullBackOff"), name="i")], ("0/1", "Init:ImagePullBackOff", "0")),
        (INIT, [container(ended(1, "Error"), name="i")], ("0/1", "Init:Error", "0")),
        (INIT, [container(ended(1, signal=9), name="i")], ("0/1", "Init:Signal:9", "0")),
        (INIT, [container(ended(7), name="i")], ("0/1", "Init:ExitCode:7", "0")),
        (INIT, [container(RUNNING, name="i", started=True, ready=True)], ("0/1", "Init:0/2", "0")),
        (SIDECAR, [container(RUNNING, name="i", started=False, ready=True)], ("0/2", "Init:0/2", "0")),
        (SIDECAR, [container(RUNNING, name="i", started=True, ready=True)], ("1/2", "PodInitializing", "1")),
        (SIDECAR, [container(RUNNING, name="i", started=True)], ("0/2", "PodInitializing", "1")),
        (SIDECAR, [container(ended(0), name="i", started=True, ready=True)], ("0/2", "PodInitializing", "1")),
        (
            SIDECAR,
            [container(RUNNING, name="i", started=True, ready=True), container(RUNNING, name="j")],
            ("1/2", "Init:1/2", "0"),
        ),
    ],
)
def test_the_first_init_container_that_has_not_passed_holds_the_pod_up(
    spec: Raw, init: list[Raw], expected: tuple[str, str, str]
) -> None:
    status = {"phase": "Pending", "initContainerStatuses": init, "containerStatuses": [WAITS]}
    assert cells(status, spec) == expected


def test_a_pod_that_was_initialized_once_is_not_held_up_again() -> None:
    status = {
        "phase": "Running",
        "initContainerStatuses": [container(ended(1, "Error"), name="i", restartCount=4)],
        "containerStatuses": [container(RUNNING, ready=True, restartCount=2)],
        "conditions": READY,
    }
    assert cells(status, INIT) == ("1/1", "Init:Error", "2")
    status["containerStatuses"] = [container(waiting("CrashLoopBackOff"), restartCount=2)]
    assert cells(status, INIT) == ("0/1", "CrashLoopBackOff", "2")


def test_a_container_that_does_not_say_it_is_ready_is_not() -> None:
    assert cells({"phase": "Running", "containerStatuses": [{"state": RUNNING}]}, ONE)[0] == "0/1"


# --- restarts


def restarted(count: int, *finished: str | None, name: str = "c", state: Raw = RUNNING) -> Raw:
    last = {"terminated": {"exitCode": 1, "finishedAt": finished[0]}} if finished else {}
    return container(state, name=name, restartCount=count, lastState=last)


@pytest.mark.parametrize(
    ("statuses", "words"),
    [
        ([], "0"),
        ([restarted(3)], "3"),
        ([restarted(3, ago(150))], "3 (2m30s ago)"),
        ([restarted(1, ago(150)), restarted(2, ago(90))], "3 (90s ago)"),
        ([restarted(1, ago(90)), restarted(2, ago(150))], "3 (90s ago)"),
        ([restarted(0, ago(90))], "0"),
        ([restarted(2, None)], "2"),
        ([restarted(2, "never")], "2 (<invalid> ago)"),
    ],
)
def test_restarts_are_counted_with_the_age_of_the_last(statuses: list[Raw], words: str) -> None:
    assert cells({"phase": "Running", "containerStatuses": statuses}, ONE)[2] == words


def test_init_containers_count_while_the_pod_initializes_and_sidecars_always() -> None:
    status = {
        "phase": "Pending",
        "initContainerStatuses": [
            {**restarted(1, ago(30), name="i"), "started": True},
            restarted(2, ago(60), name="j"),
            restarted(4, ago(10), name="k"),
        ],
        "containerStatuses": [restarted(8, ago(50))],
    }
    assert cells(status, SIDECAR)[2] == "3 (30s ago)"
    assert cells({**status, "conditions": READY}, SIDECAR)[2] == "9 (30s ago)"


# --- wide columns and conditions


@pytest.mark.parametrize(
    ("spec", "status", "wide"),
    [
        ({}, {}, ["<none>", "<none>", "<none>", "<none>"]),
        (
            {"nodeName": "n"},
            {"podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]},
            ["10.0.0.1", "n", "<none>", "<none>"],
        ),
        (
            {},
            {"podIP": "10.0.0.2", "podIPs": [{"ip": "10.0.0.1"}], "nominatedNodeName": "m"},
            ["10.0.0.2", "<none>", "m", "<none>"],
        ),
        (
            {"readinessGates": [{"conditionType": one} for one in ("a", "b", "c")]},
            {"conditions": [*conditions(a="True", b="False"), *conditions(b="True")]},
            ["<none>", "<none>", "<none>", "1/3"],
        ),
    ],
)
def test_the_wide_columns_say_where_a_pod_is_and_what_it_is_ready_for(
    spec: Raw, status: Raw, wide: list[str]
) -> None:
    assert row(status, spec)["cells"][5:] == wide


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_the_row_of_a_pod_that_has_ended_is_marked(phase: str) -> None:
    assert row({"phase": phase})["conditions"] == [{"type": "Completed", "status": "True", "reason": phase}]


@pytest.mark.parametrize("phase", ["Pending", "Running", "Unknown", ""])
def test_the_row_of_any_other_pod_has_no_mark(phase: str) -> None:
    assert "conditions" not in row({"phase": phase})
