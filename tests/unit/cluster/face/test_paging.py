"""Pages of one list, and tokens that nobody gave out."""

import base64

import pytest

from jackfield.cluster.face import paging
from jackfield.model.names import Seconds
from unit.cluster.face.faces import MAPS, NODES, NOW, Face, config_map, refusal, told


@pytest.fixture
def face() -> Face:
    face = Face()
    for number in range(5):
        face.post(MAPS, config_map(f"m{number}"))
    return face


def names(page: dict[str, list[dict[str, dict[str, str]]]]) -> list[str]:
    return [one["metadata"]["name"] for one in page["items"]]


def test_all_pages_are_of_one_moment(face: Face) -> None:
    first = told(face.get(MAPS, limit="2"))
    face.post(MAPS, config_map("m11"))
    face.delete(f"{MAPS}/m4")
    second = told(face.get(MAPS, **{"limit": "2", "continue": first["metadata"]["continue"]}))
    third = told(face.get(MAPS, **{"limit": "2", "continue": second["metadata"]["continue"]}))
    assert [names(one) for one in (first, second, third)] == [["m0", "m1"], ["m2", "m3"], ["m4"]]
    assert [one["metadata"].get("remainingItemCount") for one in (first, second, third)] == [3, 1, None]
    versions = {one["metadata"]["resourceVersion"] for one in (first, second, third)}
    assert len(versions) == 1
    assert "continue" not in third["metadata"]


def test_a_list_is_kept_for_a_while_and_no_longer(face: Face) -> None:
    token = told(face.get(MAPS, limit="2"))["metadata"]["continue"]
    face.clock.seconds = Seconds(NOW + paging.SECONDS_MAX)
    assert face.get(MAPS, **{"limit": "1", "continue": token}).code == 200
    face.clock.seconds = Seconds(NOW + paging.SECONDS_MAX + 1)
    assert refusal(face.get(MAPS, **{"limit": "1", "continue": token})) == (410, "Expired")


def test_only_so_many_lists_are_kept(face: Face) -> None:
    token = told(face.get(MAPS, limit="2"))["metadata"]["continue"]
    for _ in range(paging.BEGUN_MAX):
        face.get(MAPS, limit="2")
    assert refusal(face.get(MAPS, **{"continue": token})) == (410, "Expired")


def test_a_token_serves_its_own_list_alone(face: Face) -> None:
    token = told(face.get(MAPS, limit="2"))["metadata"]["continue"]
    for place, query in ((NODES, {}), (MAPS, {"labelSelector": "a"}), (MAPS, {"resourceVersion": "3"})):
        assert refusal(face.get(place, **{"continue": token, **query})) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("token", "code"),
    [
        ("x", 400),
        ("%%%", 400),
        ("ä", 400),
        ("A" * 5000, 400),
        ('{"id":1}', 400),
        ('{"id":1,"start":-1,"version":1}', 400),
        ('{"id":1,"start":99,"version":1}', 400),
        ('{"id":"x","start":1,"version":1}', 400),
        ('{"id":1,"start":1,"version":1,"more":1}', 400),
        ('{"id":99,"start":1,"version":1}', 410),
        ('{"id":-1,"start":1,"version":1}', 410),
        ('{"id":9999999999999999999999,"start":1,"version":1}', 410),
    ],
)
def test_a_forged_token_is_refused(face: Face, token: str, code: int) -> None:
    face.get(MAPS, limit="2")
    text = base64.urlsafe_b64encode(token.encode()).decode() if token.startswith("{") else token
    assert refusal(face.get(MAPS, **{"limit": "1", "continue": text}))[0] == code


def test_without_a_limit_all_is_one_page(face: Face) -> None:
    for limit in ("", "0", "-3", "5", "6"):
        page = told(face.get(MAPS, limit=limit))
        assert len(page["items"]) == 5
        assert "continue" not in page["metadata"]
