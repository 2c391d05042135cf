"""What layout-apply and its configuration manager say is read as it is meant, or not at all."""

import msgspec
import pytest

from jackfield.codec import nec
from jackfield.codec.nec import Device, Job, Link, Operation, Procedure, Resource, Result, State, Status


@pytest.mark.parametrize(
    ("procedure", "text"),
    [
        (
            Procedure(1, Operation.CONNECT, (), target_cpu="c", target_device="d"),
            '{"operationID":1,"operation":"connect","dependencies":[],"targetCPUID":"c","targetDeviceID":"d"}',
        ),
        (
            Procedure(2, Operation.BOOT, (1,), source="s", destination="d"),
            '{"operationID":2,"operation":"boot","dependencies":[1],"sourceDeviceID":"s","destinationDeviceID":"d"}',
        ),
    ],
)
def test_a_procedure_is_spelt_as_either_manager_spells_it(procedure: Procedure, text: str) -> None:
    body = nec.encode(nec.Procedures((procedure,)))
    assert body.decode() == f'{{"procedures":[{text}]}}'
    assert nec.procedures(body) == (procedure,)
    assert (bool(procedure.port), procedure.device) == (True, "d")


@pytest.mark.parametrize(
    ("job", "how"),
    [
        (Job("a", "IN_PROGRESS"), ["under way"]),
        (Job("a", "CANCELING"), ["under way"]),
        (Job("a", "SUSPENDED"), ["under way", "suspended"]),
        (Job("a", "COMPLETED"), ["ended"]),
        (Job("a", "FAILED"), ["ended"]),
        (Job("a", "CANCELED"), ["ended"]),
        (Job("a", "CANCELED", rollback_status="IN_PROGRESS"), ["under way"]),
        (Job("a", "CANCELED", rollback_status="SUSPENDED"), ["under way", "suspended"]),
        (Job("a", "CANCELED", rollback_status="FAILED"), ["ended"]),
        (Job("a", "RESTING"), []),
    ],
)
def test_a_job_is_at_work_over_or_waits_for_an_operator(job: Job, how: list[str]) -> None:
    found = {"under way": job.under_way, "ended": job.ended, "suspended": job.suspended}
    assert [name for name, so in found.items() if so] == how


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"code": "E1", "message": "no link"}, "E1: no link"),
        ({"message": ["a", {"b": 1}]}, '["a",{"b":1}]'),
        ({"code": 7, "message": "no"}, "no"),
        ("it\nbroke\x00", "it broke"),
        (None, ""),
        ({}, ""),
    ],
)
def test_why_a_procedure_failed_is_told_in_the_managers_words(body: object, words: str) -> None:
    results = (
        Result(1, Status.COMPLETED, response_body="fine"),
        Result(2, Status.FAILED, response_body=body),
    )
    assert Job("a", "FAILED", apply_result=results).reason == words


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b'{"code":"E40010","message":"Already running."}', ("E40010", "E40010: Already running.")),
        (b'{"code":"E40001","message":[{"loc":1}]}', ("E40001", 'E40001: [{"loc":1}]')),
        (b"<html>", ("", "")),
        (b"[" * 100_000, ("", "")),
        (b"\xff", ("", "")),
    ],
)
def test_an_error_is_its_code_and_words_or_nothing(body: bytes, told: tuple[str, str]) -> None:
    assert nec.error(body) == told


@pytest.mark.parametrize(
    ("status", "annotation", "usable"),
    [
        ('{"state":"Enabled","health":"OK"}', "null", "yes"),
        ('{"state":"enabled","health":"ok"}', '{"available":true}', "yes"),
        ('{"state":"Enabled","health":"OK"}', '{"available":false}', "no"),
        ('{"state":"Enabled","health":"Warning"}', "null", "no"),
        ('{"state":"Disabled","health":"OK"}', "null", "no"),
        ("null", "null", "no"),
    ],
)
def test_a_device_is_usable_if_it_is_enabled_healthy_and_not_kept_back(
    status: str, annotation: str, usable: str
) -> None:
    body = f'{{"resources":[{{"device":{{"deviceID":"a","status":{status}}},"annotation":{annotation}}}]}}'
    (one,) = nec.resources(body.encode())
    assert one.usable == (usable == "yes")


def test_what_a_device_cannot_be_parted_from_is_seen() -> None:
    device = Device("a", "GPU", constraints=nec.Constraints((Link("c"),)))
    assert (device.fixed_to("c"), device.fixed_to("d"), Device("a").fixed_to("c")) == (True, False, False)


@pytest.mark.parametrize(
    ("attribute", "found"),
    [
        ({"a": {"b": "c"}}, "c"),
        ({"a": {"b": 1}}, ""),
        ({"a": "b"}, ""),
        ([], ""),
        (None, ""),
        ({"a": {"b": "x" * 999}}, ""),
    ],
)
def test_an_attribute_is_a_text_or_nothing(attribute: object, found: str) -> None:
    assert nec.attribute(Device("a", attribute=attribute), "a", "b") == found


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'{"resources":1}',
        b'{"resources":[{}]}',
        b'{"resources":[{"device":{"deviceID":"../x"}}]}',
        b"[" * 100_000,
    ],
)
def test_what_is_not_understood_is_said_to_be_so(body: bytes) -> None:
    for decode in (nec.resources, nec.nodes, nec.procedures, nec.applied, nec.job):
        with pytest.raises(nec.BadMessage, match=r"."):
            decode(body)


def test_what_is_sent_is_what_is_read() -> None:
    device = Device(
        "a", "GPU", "A100", serial_number="1", status=State("Enabled", "OK"), links=(Link("c", "CPU"),)
    )
    one = Resource(device, detected=True, node_ids=("c",), annotation=nec.Annotation(), groups=("g",))
    assert nec.resources(nec.encode(nec.Resources((one,), 1))) == (one,)
    assert msgspec.json.decode(nec.encode(one))["detected"] is True
    job = Job("a", "FAILED", (Procedure(1, "connect", ()),), (Result(1, "FAILED"),), execute_rollback=False)
    assert nec.jobs(nec.encode(nec.Jobs((job,), 1, 1))) == (job,)
