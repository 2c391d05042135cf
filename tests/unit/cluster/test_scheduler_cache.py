"""What counts: the newest version of a claim, decisions under way, and pods where they are or will be."""

import msgspec

from jackfield.cluster.scheduling.filters import PodInfo, requests
from jackfield.cluster.scheduling.scheduler_cache import SchedulerCache, newer
from jackfield.model.claim import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimStatus,
)
from jackfield.model.meta import ObjectMeta
from jackfield.model.names import DeviceID, Key, NodeName, Uid, Version
from jackfield.model.pod import Pod
from unit.cluster.small_cluster import node, pod

D0, D1 = DeviceID("driver", "pool", "d0"), DeviceID("driver", "pool", "d1")
C = Key("default", "c")


def allocation(*devices: DeviceID) -> AllocationResult:
    results = tuple(DeviceRequestAllocationResult("r", one.driver, one.pool, one.device) for one in devices)
    return AllocationResult(DeviceAllocationResult(results))


def claim(version: int, *devices: DeviceID, name: str = "c", uid: str = "u") -> ResourceClaim:
    meta = ObjectMeta(name=name, namespace="default", uid=Uid(uid), resource_version=Version(str(version)))
    status = ResourceClaimStatus(allocation(*devices) if devices else None)
    return ResourceClaim(metadata=meta, status=status)


def known(name: str, on: str = "", uid: str = "", cpu: str = "2") -> Pod:
    plain = pod(name, cpu=cpu)
    meta = msgspec.structs.replace(plain.metadata, uid=Uid(uid or name))
    spec = msgspec.structs.replace(plain.spec, node_name=NodeName(on))
    return msgspec.structs.replace(plain, metadata=meta, spec=spec)


def taken(cache: SchedulerCache) -> frozenset[DeviceID]:
    return cache.allocated().devices


def cpu(cache: SchedulerCache, name: str) -> int:
    return cache.node(NodeName(name)).requested.get("cpu", 0)


def test_versions_are_numbers() -> None:
    assert newer(Version("10"), Version("9"))
    assert not newer(Version("9"), Version("9"))
    assert newer(Version("1"), Version(""))


def test_an_older_event_does_not_undo_what_we_wrote() -> None:
    cache = SchedulerCache()
    cache.put_claim(claim(1))
    cache.put_claim(claim(5, D0))
    cache.put_claim(claim(3))
    assert taken(cache) == {D0}
    cache.put_claim(claim(6))
    assert taken(cache) == frozenset()


def test_every_change_of_a_claim_is_told_once() -> None:
    cache = SchedulerCache()
    told: list[tuple[str, str]] = []

    def hear(old: ResourceClaim | None, new: ResourceClaim) -> None:
        told.append((old.metadata.resource_version if old else "", new.metadata.resource_version))

    cache.on_claim = hear
    for version in (1, 2, 2, 1, 3):
        cache.put_claim(claim(version))
    assert told == [("", "1"), ("1", "2"), ("2", "3")]


def test_a_decision_under_way_takes_its_devices_until_it_has_landed() -> None:
    cache = SchedulerCache()
    cache.put_claim(claim(1))
    assert taken(cache) == frozenset()
    cache.send_off(claim(1), allocation(D0))
    assert cache.in_flight(C)
    assert taken(cache) == {D0}
    cache.landed(C)
    assert not cache.in_flight(C)
    assert taken(cache) == frozenset()


def test_a_decision_that_was_written_frees_nothing_by_landing() -> None:
    cache = SchedulerCache()
    cache.put_claim(claim(1))
    cache.send_off(claim(1), allocation(D0))
    before = cache.devices_freed
    cache.put_claim(claim(2, D0))
    cache.landed(C)
    assert taken(cache) == {D0}
    assert cache.devices_freed == before


def test_a_device_held_twice_is_free_only_when_both_let_go() -> None:
    cache = SchedulerCache()
    cache.put_claim(claim(1, D0, name="a", uid="a"))
    cache.put_claim(claim(2, D0, D1, name="b", uid="b"))
    cache.put_claim(claim(3, name="a", uid="a"))
    assert taken(cache) == {D0, D1}
    cache.drop_claim(claim(4, D0, D1, name="b", uid="b"))
    assert taken(cache) == frozenset()


def test_what_is_in_flight_does_not_hide_what_the_claim_has() -> None:
    cache = SchedulerCache()
    cache.put_claim(claim(1, uid="old"))
    cache.send_off(claim(1, uid="old"), allocation(D0))
    cache.put_claim(claim(9, D1, uid="new"))
    assert taken(cache) == {D0, D1}


def test_a_claim_that_took_a_deleted_ones_name_stays() -> None:
    cache = SchedulerCache()
    cache.put_claim(claim(7, D0, uid="new"))
    cache.drop_claim(claim(5, uid="old"))
    assert taken(cache) == {D0}


def test_an_assumed_pod_counts_until_forgotten_and_a_bound_one_until_gone() -> None:
    cache = SchedulerCache()
    cache.put_node(node("a"))
    cache.put_node(node("b"))
    waiting = known("p")
    cache.put_pod(waiting)
    info = PodInfo(waiting, requests(waiting))
    cache.assume(info, NodeName("a"))
    cache.put_pod(waiting)
    assert cpu(cache, "a") == 2000
    assert cache.forget(waiting.uid)
    assert cpu(cache, "a") == 0

    cache.assume(info, NodeName("a"))
    cache.put_pod(known("p", on="a"))
    assert not cache.forget(waiting.uid)
    assert cpu(cache, "a") == 2000
    assert cache.drop_pod(waiting.key)
    assert cpu(cache, "a") == 0


def test_a_pod_bound_elsewhere_than_assumed_counts_where_it_is() -> None:
    cache = SchedulerCache()
    cache.put_node(node("a"))
    cache.put_node(node("b"))
    waiting = known("p")
    cache.put_pod(waiting)
    cache.assume(PodInfo(waiting, requests(waiting)), NodeName("a"))
    cache.put_pod(known("p", on="b"))
    assert (cpu(cache, "a"), cpu(cache, "b")) == (0, 2000)


def test_a_finished_pod_takes_no_room() -> None:
    cache = SchedulerCache()
    cache.put_node(node("a"))
    running = known("p", on="a")
    cache.put_pod(running)
    done = msgspec.structs.replace(running.status, phase="Succeeded")
    assert cache.put_pod(msgspec.structs.replace(running, status=done))
    assert cpu(cache, "a") == 0


def test_pods_may_be_heard_of_before_their_node_and_outlast_it() -> None:
    cache = SchedulerCache()
    cache.put_pod(known("p", on="a"))
    assert cache.names == []
    cache.put_node(node("a"))
    assert cpu(cache, "a") == 2000
    cache.drop_node(NodeName("a"))
    assert cache.names == []
    cache.put_node(node("a"))
    assert cpu(cache, "a") == 2000


def test_a_pod_of_the_same_name_and_another_uid_is_another() -> None:
    cache = SchedulerCache()
    cache.put_node(node("a"))
    cache.put_pod(known("p", on="a", uid="one"))
    assert cache.put_pod(known("p", uid="two"))
    assert cpu(cache, "a") == 0


def test_nodes_are_kept_in_order() -> None:
    cache = SchedulerCache()
    for name in ("c", "a", "b", "a"):
        cache.put_node(node(name))
    assert cache.names == ["a", "b", "c"]
    cache.drop_node(NodeName("b"))
    cache.drop_node(NodeName("b"))
    assert cache.names == ["a", "c"]


def test_users_of_a_claim_come_and_go_with_their_pods() -> None:
    cache = SchedulerCache()
    for name in ("p", "q"):
        cache.put_pod(pod(name, "c"))
    assert cache.users(C) == (Key("default", "p"), Key("default", "q"))
    cache.drop_pod(Key("default", "p"))
    assert cache.users(C) == (Key("default", "q"),)
