"""A cache never goes back, and finds what it files."""

from jackfield.cluster.upkeep.cache import Cache
from jackfield.model.meta import ObjectMeta
from jackfield.model.names import Key, NodeName, Version
from jackfield.model.pod import Pod, PodSpec


def pod(name: str, node: str, version: int) -> Pod:
    return Pod(
        metadata=ObjectMeta(name=name, namespace="d", resource_version=Version(str(version))),
        spec=PodSpec(node_name=NodeName(node)),
    )


def new_cache() -> Cache:
    cache = Cache()
    cache.index(Pod, node=lambda one: (one.spec.node_name,) if one.spec.node_name else ())
    return cache


def test_an_older_version_never_replaces_a_newer_one() -> None:
    cache = new_cache()
    assert cache.put(pod("a", "n", 10))
    assert not cache.put(pod("a", "m", 9))
    assert not cache.put(pod("a", "m", 10))
    found = cache.get(Pod, Key("d", "a"))
    assert found is not None
    assert found.spec.node_name == "n"
    assert not cache.drop(pod("a", "n", 9))
    assert cache.drop(pod("a", "n", 11))
    assert not cache.drop(pod("a", "n", 12))
    assert cache.get(Pod, Key("d", "a")) is None


def test_objects_are_found_where_they_are_filed_now() -> None:
    cache = new_cache()
    for one in (pod("b", "n", 1), pod("a", "n", 2), pod("c", "m", 3)):
        cache.put(one)
    assert [one.metadata.name for one in cache.find(Pod, "node", "n")] == ["b", "a"]
    cache.put(pod("b", "m", 4))
    cache.drop(pod("c", "m", 5))
    assert [one.metadata.name for one in cache.find(Pod, "node", "n")] == ["a"]
    assert [one.metadata.name for one in cache.find(Pod, "node", "m")] == ["b"]
    assert cache.find(Pod, "node", "nowhere") == ()


def test_what_a_list_does_not_name_is_what_is_gone() -> None:
    cache = new_cache()
    cache.put(pod("a", "n", 1))
    cache.put(pod("b", "n", 2))
    assert [one.metadata.name for one in cache.not_among(Pod, frozenset({Key("d", "b")}))] == ["a"]
