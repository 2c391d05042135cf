"""Which nodes a pod may run on, and in which words it may not."""

import pytest

from jackfield.cluster.scheduling.filters import (
    NodeInfo,
    Plugin,
    PodInfo,
    feasible_nodes_wanted,
    least_allocated,
    no_node,
    refusal,
    requests,
    tally,
    tolerates,
)
from jackfield.model.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, ObjectMeta
from jackfield.model.names import NodeName, Uid
from jackfield.model.node import Node, NodeCondition, NodeSpec, NodeStatus, Taint
from jackfield.model.pod import (
    Affinity,
    Container,
    NodeAffinity,
    Pod,
    PodSpec,
    ResourceRequirements,
    Toleration,
)

READY = (NodeCondition("Ready", "True"),)
AMOUNTS = {"cpu": "4", "memory": "8Gi", "pods": "3", "example.com/nic": "2"}
NO_SCHEDULE = Taint("team", "red", "NoSchedule")


def info(spec: PodSpec, uid: str = "u") -> PodInfo:
    pod = Pod(metadata=ObjectMeta(name=uid, namespace="default", uid=Uid(uid)), spec=spec)
    return PodInfo(pod, requests(pod))


def asking(uid: str = "u", **amounts: str) -> PodInfo:
    named = {name.replace("nic", "example.com/nic"): text for name, text in amounts.items()}
    return info(PodSpec(containers=(Container("main", resources=ResourceRequirements(named)),)), uid)


def target(
    spec: NodeSpec = NodeSpec(), conditions: tuple[NodeCondition, ...] = READY, **labels: str
) -> NodeInfo:
    found = NodeInfo()
    status = NodeStatus(capacity=AMOUNTS, allocatable=AMOUNTS, conditions=conditions)
    found.put(Node(metadata=ObjectMeta(name="n", labels=labels), spec=spec, status=status))
    return found


def affinity(key: str, operator: str, *values: str) -> Affinity:
    term = NodeSelectorTerm((NodeSelectorRequirement(key, operator, values),))
    return Affinity(NodeAffinity(NodeSelector((term,))))


FITTING = {
    "a plain pod": (PodSpec(), target()),
    "a node it names": (PodSpec(node_name=NodeName("n")), target()),
    "a label it selects": (PodSpec(node_selector={"disk": "fast"}), target(disk="fast")),
    "an affinity that holds": (PodSpec(affinity=affinity("zone", "In", "a", "b")), target(zone="b")),
    "a taint it tolerates": (
        PodSpec(tolerations=(Toleration("team", "Equal", "red", "NoSchedule"),)),
        target(NodeSpec(taints=(NO_SCHEDULE,))),
    ),
    "a taint that is only a wish": (
        PodSpec(),
        target(NodeSpec(taints=(Taint("team", "red", "PreferNoSchedule"),))),
    ),
    "a cordoned node it tolerates": (
        PodSpec(tolerations=(Toleration("node.kubernetes.io/unschedulable", "Exists"),)),
        target(NodeSpec(unschedulable=True)),
    ),
    "a node that is not ready and that it tolerates": (
        PodSpec(tolerations=(Toleration("", "Exists"),)),
        target(conditions=()),
    ),
}

REFUSED = {
    "cordoned": (
        PodSpec(),
        target(NodeSpec(unschedulable=True)),
        Plugin.NODE_UNSCHEDULABLE,
        ("node(s) were unschedulable",),
    ),
    "another node's name": (
        PodSpec(node_name=NodeName("m")),
        target(),
        Plugin.NODE_NAME,
        ("node(s) didn't match the requested node name",),
    ),
    "tainted": (
        PodSpec(),
        target(NodeSpec(taints=(NO_SCHEDULE,))),
        Plugin.TAINT_TOLERATION,
        ("node(s) had untolerated taint(s)",),
    ),
    "tolerating another value": (
        PodSpec(tolerations=(Toleration("team", "Equal", "blue"),)),
        target(NodeSpec(taints=(NO_SCHEDULE,))),
        Plugin.TAINT_TOLERATION,
        ("node(s) had untolerated taint(s)",),
    ),
    "not ready": (
        PodSpec(),
        target(conditions=(NodeCondition("Ready", "False"),)),
        Plugin.TAINT_TOLERATION,
        ("node(s) had untolerated taint(s)",),
    ),
    "another label": (
        PodSpec(node_selector={"disk": "fast"}),
        target(disk="slow"),
        Plugin.NODE_AFFINITY,
        ("node(s) didn't match Pod's node affinity/selector",),
    ),
    "another zone": (
        PodSpec(affinity=affinity("zone", "NotIn", "b")),
        target(zone="b"),
        Plugin.NODE_AFFINITY,
        ("node(s) didn't match Pod's node affinity/selector",),
    ),
}


@pytest.mark.parametrize(("spec", "on"), FITTING.values(), ids=list(FITTING))
def test_a_node_that_meets_all_demands_is_not_refused(spec: PodSpec, on: NodeInfo) -> None:
    assert refusal(info(spec), on) is None


@pytest.mark.parametrize(("spec", "on", "plugin", "reasons"), REFUSED.values(), ids=list(REFUSED))
def test_a_refusal_names_plugin_and_reason(
    spec: PodSpec, on: NodeInfo, plugin: Plugin, reasons: tuple[str, ...]
) -> None:
    found = refusal(info(spec), on)
    assert found is not None
    assert (found.plugin, found.reasons) == (plugin, reasons)


@pytest.mark.parametrize(
    ("toleration", "taint", "tolerated"),
    [
        (Toleration("team", "Exists"), NO_SCHEDULE, True),
        (Toleration("team", "Exists", effect="NoExecute"), NO_SCHEDULE, False),
        (Toleration("team", "Equal", "red"), NO_SCHEDULE, True),
        (Toleration("other", "Exists"), NO_SCHEDULE, False),
        (Toleration("", "Exists"), NO_SCHEDULE, True),
        (Toleration("", "Equal", "red"), NO_SCHEDULE, False),
    ],
)
def test_a_toleration_is_for_key_value_and_effect(
    toleration: Toleration,
    taint: Taint,
    tolerated: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert tolerates((toleration,), taint) is tolerated


@pytest.mark.parametrize(
    ("amounts", "reasons"),
    [
        ({"cpu": "3"}, ()),
        ({"cpu": "3001m"}, ("Insufficient cpu",)),
        ({"memory": "7Gi"}, ()),
        ({"memory": "7.5Gi"}, ("Insufficient memory",)),
        ({"nic": "2"}, ()),
        ({"nic": "3"}, ("Insufficient example.com/nic",)),
        ({"ephemeral-storage": "1"}, ("Insufficient ephemeral-storage",)),
        ({"ephemeral-storage": "0"}, ()),
        ({"cpu": "4", "memory": "8Gi"}, ("Insufficient cpu", "Insufficient memory")),
    ],
)
def test_what_is_left_on_a_node_decides_what_fits(amounts: dict[str, str], reasons: tuple[str, ...]) -> None:
    on = target()
    on.add(asking("a", cpu="1", memory="1Gi"))
    found = refusal(asking("b", **amounts), on)
    assert (found.reasons if found else ()) == reasons


def test_a_node_takes_no_more_pods_than_it_says() -> None:
    on = target()
    for name in ("a", "b", "c"):
        assert refusal(asking("x"), on) is None
        on.add(asking(name))
    found = refusal(asking("x"), on)
    assert found is not None
    assert found.reasons == ("Too many pods",)


def test_a_pod_counted_twice_and_removed_once_leaves_nothing_behind() -> None:
    on = target()
    one = asking("a", cpu="4")
    on.add(one)
    on.add(one)
    assert on.remove(one.uid)
    assert not on.remove(one.uid)
    assert on.requested["cpu"] == 0
    assert (on.cpu, on.memory) == (0, 0)


def test_a_pod_asks_for_its_containers_together_or_its_hungriest_init_container() -> None:
    def container(cpu: str) -> Container:
        return Container("c", resources=ResourceRequirements({"cpu": cpu}))

    spec = PodSpec(containers=(container("1"), container("500m")), init_containers=(container("1200m"),))
    assert requests(Pod(spec=spec)) == {"cpu": 1500}
    hungry = PodSpec(containers=(container("1"),), init_containers=(container("3"), container("2")))
    assert requests(Pod(spec=hungry)) == {"cpu": 3000}


def test_a_limit_stands_in_for_a_missing_request() -> None:
    resources = ResourceRequirements(requests={"cpu": "1"}, limits={"cpu": "2", "memory": "1Ki"})
    assert requests(Pod(spec=PodSpec(containers=(Container("c", resources=resources),)))) == {
        "cpu": 1000,
        "memory": 1024,
    }


def test_the_emptier_node_scores_higher() -> None:
    empty, used = target(), target()
    used.add(asking("a", cpu="2", memory="4Gi"))
    one = asking("b", cpu="1", memory="2Gi")
    assert (least_allocated(one, empty), least_allocated(one, used)) == (75, 25)


def test_pods_that_ask_for_nothing_still_count_in_a_score() -> None:
    empty, used = target(), target()
    used.add(asking("a"))
    assert least_allocated(asking("b"), used) < least_allocated(asking("b"), empty)


@pytest.mark.parametrize(
    ("nodes", "why", "after", "message"),
    [
        (0, {}, "", "no nodes available to schedule pods"),
        (
            3,
            {"cannot allocate all claims": 2, "Insufficient memory": 1},
            "",
            "0/3 nodes are available: 1 Insufficient memory, 2 cannot allocate all claims.",
        ),
        (
            12,
            {"a": 10, "b": 2},
            "still not schedulable",
            "0/12 nodes are available: 10 a, 2 b. still not schedulable",
        ),
        (
            2,
            "request r: device class x does not exist",
            "",
            "0/2 nodes are available: request r: device class x does not exist.",
        ),
    ],
)
def test_the_words_for_no_node_are_the_schedulers(
    nodes: int, why: dict[str, int] | str, after: str, message: str
) -> None:
    assert no_node(nodes, why, after) == message


def test_a_node_with_two_shortages_counts_for_both() -> None:
    on = target()
    found = refusal(asking("b", cpu="5", memory="9Gi"), on)
    assert found is not None
    assert tally([found, found]) == {"Insufficient cpu": 2, "Insufficient memory": 2}


@pytest.mark.parametrize(
    ("nodes", "percentage", "wanted"),
    [
        (0, 0, 0),
        (99, 0, 99),
        (100, 0, 100),
        (1000, 0, 420),
        (5000, 0, 500),
        (6000, 0, 300),
        (100_000, 0, 5000),
        (5000, 100, 5000),
        (5000, 1, 100),
    ],
)
def test_large_clusters_are_searched_in_part(nodes: int, percentage: int, wanted: int) -> None:
    assert feasible_nodes_wanted(nodes, percentage) == wanted
