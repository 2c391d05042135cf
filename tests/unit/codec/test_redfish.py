"""What a Redfish service says is read as it is meant, or not at all."""

import msgspec
import pytest

from jackfield.codec import redfish
from jackfield.codec.redfish import BadMessage, ComputerSystem, ResourceBlock, ServiceRoot, Status, Task

BLOCK = redfish.decoder(ResourceBlock)
PATH = "/redfish/v1/CompositionService/ResourceBlocks/1"


def body(**members: object) -> bytes:
    return msgspec.json.encode({"@odata.id": PATH, **members})


@pytest.mark.parametrize(
    ("said", "state", "reserved", "composed"),
    [
        ({}, "", False, False),
        ({"CompositionState": None, "Reserved": None}, "", False, False),
        ({"CompositionState": "Unused", "Reserved": True}, "Unused", True, False),
        ({"CompositionState": "Composed"}, "Composed", False, True),
        ({"CompositionState": "ComposedAndAvailable"}, "ComposedAndAvailable", False, True),
        ({"CompositionState": "Simmering"}, "Simmering", False, False),
    ],
)
def test_a_block_says_what_it_is_doing_in_words_that_may_be_new(
    said: dict[str, object], state: str, reserved: object, composed: object
) -> None:
    block = redfish.decoded(BLOCK, body(CompositionStatus=said))
    assert (block.state, block.reserved, block.composed) == (state, reserved, composed)


def test_what_is_left_out_or_null_says_nothing() -> None:
    names = [one.encode_name for one in msgspec.structs.fields(ResourceBlock) if not one.required]
    bare = redfish.decoded(BLOCK, body())
    nulls = redfish.decoded(BLOCK, body(**dict.fromkeys(names)))
    for block in (bare, nulls):
        assert (block.state, block.reserved, block.systems, block.zones) == ("", False, (), ())
    system = redfish.decoded(redfish.decoder(ComputerSystem), body(Links=None))
    assert (system.blocks, system.lists_blocks) == ((), False)
    listing = redfish.decoded(redfish.decoder(ComputerSystem), body(Links={"ResourceBlocks": []}))
    assert (listing.blocks, listing.lists_blocks) == ((), True)


@pytest.mark.parametrize(
    "path",
    ["", "/", "redfish/v1", "https://elsewhere/redfish/v1/x", "//elsewhere/redfish/v1/x", "/redfish/v1/x y",
     "/redfish/v1/x\n", "/redfish/v1/x#/y", f"/redfish/{'x' * 1001}", "/other/redfish/v1/x",
     "/redfish/v1/../../x", "/redfish/v1/%2e%2E/x", "/redfish/v1/a%2Fb"],
)  # fmt: skip
def test_a_link_that_leads_elsewhere_is_none(path: str) -> None:
    with pytest.raises(BadMessage):
        redfish.decoded(BLOCK, msgspec.json.encode({"@odata.id": path}))
    assert redfish.location(path) in {"", "/redfish/v1/x"}


@pytest.mark.parametrize(
    ("header", "path"),
    [
        ("/redfish/v1/TaskService/Tasks/1", "/redfish/v1/TaskService/Tasks/1"),
        ("https://m:8443/redfish/v1/Tasks/1?a=b", "/redfish/v1/Tasks/1?a=b"),
        ("https://m/elsewhere", ""),
        ("", ""),
        ("x" * 3000, ""),
    ],
)
def test_a_location_is_a_path_of_the_same_service(header: str, path: str) -> None:
    assert redfish.location(header) == path


@pytest.mark.parametrize(
    ("header", "member", "tag"),
    [
        ('"abc"', "", '"abc"'),
        ('W/"abc"', '"def"', 'W/"abc"'),
        ("", 'W/"def"', 'W/"def"'),
        ("", None, ""),
        ("abc", "", ""),
        ('"a"\r\nX-Other: 1', "", ""),
    ],
)
def test_a_tag_is_sent_back_as_it_came_or_not_at_all(header: str, member: str | None, tag: str) -> None:
    assert redfish.tag(header, member) == tag


@pytest.mark.parametrize(
    ("status", "usable"),
    [
        (Status(), True),
        (Status(state="Enabled", health="OK"), True),
        (Status(state="StandbyOffline", health="Warning"), True),
        (Status(state=None, health=None), True),
        (Status(health="Critical"), False),
        (Status(state="Absent"), False),
        (Status(state="Disabled"), False),
        (Status(state="UnavailableOffline"), False),
    ],
)
def test_a_warning_keeps_nobody_from_using_it(status: Status, usable: object) -> None:
    assert status.usable == usable


def error(*messages: dict[str, str], **more: object) -> bytes:
    return msgspec.json.encode({"error": {"@Message.ExtendedInfo": messages, **more}})


@pytest.mark.parametrize(
    ("said", "words", "failed"),
    [
        (b"", "", False),
        (b"<html>", "", False),
        (b"[]", "", False),
        (b'{"error": {}}', "", False),
        (b'{"error": "no"}', "", False),
        (error(code="Base.1.8.GeneralError", message="See below."), "See below.", False),
        (error(code="Base.1.8.GeneralError"), "Base.1.8.GeneralError", False),
        (error({"Message": "a"}, {"Message": "b"}, {"Message": "a"}, message="x"), "a b", False),
        (error({"MessageId": "Base.1.8.ResourceInUse"}), "Base.1.8.ResourceInUse", False),
        (error({"Message": "no\n\x1b[2J" + "x" * 400}), f"no [2J{'x' * 294}…", False),
        (error({"MessageId": "Base.1.8.OperationFailed", "Message": "down"}), "down", True),
        (error(code="Base.1.8.OperationFailed"), "Base.1.8.OperationFailed", True),
    ],
)
def test_an_error_is_told_in_the_services_words_on_one_line(said: bytes, words: str, failed: object) -> None:
    assert redfish.error(said) == words
    assert redfish.failed(said) == failed


def test_a_task_is_read_with_its_messages() -> None:
    task = redfish.decoded(
        redfish.decoder(Task), body(TaskState="Exception", Messages=[{"Message": "a"}, {"MessageId": "b"}])
    )
    assert task.task_state in redfish.ENDED_ILL
    assert redfish.words(task.messages or ()) == "a b"


def test_a_body_that_is_no_resource_says_where() -> None:
    with pytest.raises(BadMessage, match=r"Systems"):
        redfish.decoded(redfish.decoder(ServiceRoot), body(Systems=[]))
    with pytest.raises(BadMessage):
        redfish.decoded(BLOCK, b"[" * 100_000)


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        (redfish.reservation(reserved=True), '{"CompositionStatus":{"Reserved":true}}'),
        (
            redfish.reservation(reserved=False, client="us"),
            '{"CompositionStatus":{"Reserved":false},"Client":null}',
        ),
        (redfish.block_action("/b"), '{"ResourceBlock":{"@odata.id":"/b"}}'),
        (
            redfish.block_action("/b", '"1"'),
            '{"ResourceBlock":{"@odata.id":"/b"},"ResourceBlockETag":"\\"1\\""}',
        ),
        (redfish.block_list(("/b",)), '{"Links":{"ResourceBlocks":[{"@odata.id":"/b"}]}}'),
        (
            redfish.request("Processors", {"ProcessorType": "GPU", "Model": "A100"}, 1),
            '{"Processors":{"Members":[{"@Redfish.RequestedCount":1,"ProcessorType":"GPU","Model":"A100"}]}}',
        ),
    ],
)
def test_changes_are_spelt_as_the_specification_has_it(sent: redfish.Body, text: str) -> None:
    assert redfish.encode(sent).decode() == text
