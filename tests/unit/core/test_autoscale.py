"""Pods that no node has room for: one more node of a group, or why not."""

from typing import NamedTuple

import pytest
from msgspec.structs import replace

from jackfield.core import autoscale
from jackfield.model.meta import Object, ObjectMeta
from jackfield.model.names import Key
from jackfield.model.node import NODE_GROUP, Node, NodeSpec, NodeStatus
from jackfield.model.plan import AddNode, Phase, Waiting
from jackfield.model.pod import Container, Pod, ResourceRequirements
from jackfield.model.policy import NodeGroup, Policy
from jackfield.model.view import Delta, FactsChanged, ObjectChanged
from jackfield.testing import builders as b
from unit.core.plans import reasons, steps

SIZE = {"cpu": "4", "memory": "8Gi", "pods": "10"}
GROUP = NodeGroup("big", SIZE, {"zone": "a"}, max_size=2)
POLICY = Policy(node_groups=(GROUP,))


def homeless(name: str = "p", cpu: str = "2", **meta: float) -> Pod:
    return b.pod(name, homeless=True, needs={"cpu": cpu}, **meta)  # type: ignore[arg-type] # passed on


def member(name: str, ready: str = "True", **meta: object) -> Node:
    return b.node(name, ready=ready, has=SIZE, labels={NODE_GROUP: "big"}, **meta)  # type: ignore[arg-type] # passed on


FULL = b.pod("full", on="n1", needs={"cpu": "3"})


class Row(NamedTuple):
    """What there is, and what is to come of it."""

    there: tuple[Object, ...]
    do: tuple[str, ...] = ()
    wait: tuple[str, ...] = ()
    policy: Policy = POLICY
    group: str = "big"


SMALL = NodeGroup("small", {"cpu": "1", "pods": "10"})
EQUAL = NodeGroup("equal", SIZE)

ROWS = {
    "no node at all": Row((homeless(),), do=("AddNode node/big-1",)),
    "nobody is homeless": Row((b.pod("p", needs={"cpu": "2"}),)),
    "no such group": Row((homeless(),), group="gone"),
    "no room anywhere": Row((b.node(has=SIZE), FULL, homeless()), do=("AddNode node/big-1",)),
    "room elsewhere: something else stands in its way": Row((b.node(has=SIZE), homeless())),
    "exactly enough room": Row((b.node(has=SIZE), homeless(cpu="4"))),
    "room behind a cordon is none": Row(
        (b.node(has=SIZE, cordoned=True), homeless()), do=("AddNode node/big-1",)
    ),
    "room on a node that is being deleted is none": Row(
        (b.node(has=SIZE, deleted=b.NOW), homeless()), do=("AddNode node/big-1",)
    ),
    "room on a node that is not ready is none": Row(
        (b.node(has=SIZE, ready="False"), homeless()), do=("AddNode node/big-1",)
    ),
    "pods that have finished take no room": Row(
        (b.node(has=SIZE), b.pod("done", on="n1", phase="Failed", needs={"cpu": "3"}), homeless())
    ),
    "a node has room for so many pods": Row(
        (b.node(has={"cpu": "4", "pods": "1"}), b.pod("small", on="n1"), homeless()),
        do=("AddNode node/big-1",),
    ),
    "what a node does not have it has none of": Row(
        (b.node(has={"pods": "9"}), homeless()), do=("AddNode node/big-1",)
    ),
    "a node is on its way": Row((member("big-1", ready=""), homeless()), wait=("NodeComing",)),
    "a node of another group is on its way": Row(
        (b.node("other-1", ready="", has=SIZE), homeless()), wait=("NodeComing",)
    ),
    "a node on its way that is being deleted is none": Row(
        (member("big-1", ready="", deleted=b.NOW), homeless()), do=("AddNode node/big-2",)
    ),
    "a node that was ready once is not on its way": Row(
        (member("big-1", ready="Unknown"), homeless()), do=("AddNode node/big-2",)
    ),
    "what is on its way is given away once": Row(
        (member("big-1", ready=""), homeless("p"), homeless("q"), homeless("r")),
        do=("AddNode node/big-2",),
        wait=("NodeComing", "NodeComing"),
    ),
    "two on one new node": Row(
        (homeless("p"), homeless("q")), do=("AddNode node/big-1",), wait=("NodeComing",)
    ),
    "two new nodes": Row(
        (homeless("p", "3"), homeless("q", "3")), do=("AddNode node/big-1", "AddNode node/big-2")
    ),
    "too large": Row((homeless(cpu="5"),), wait=("TooLarge",)),
    "the group is full": Row(
        (member("big-1", cordoned=True), member("big-2", cordoned=True), homeless()), wait=("GroupFull",)
    ),
    "the group is full with what is added": Row(
        (member("big-1", cordoned=True), homeless("p", "3"), homeless("q", "3")),
        do=("AddNode node/big-2",),
        wait=("GroupFull",),
    ),
    "names are not given twice": Row(
        (member("big-1", ready="False"), homeless()), do=("AddNode node/big-2",)
    ),
    "names that were given back are given again": Row(
        (member("big-2", ready="False"), homeless()), do=("AddNode node/big-1",)
    ),
    "of two groups the first adds": Row(
        (homeless(),), wait=("OtherGroup",), policy=Policy(node_groups=(GROUP, EQUAL)), group="equal"
    ),
    "of two groups the second does not hinder": Row(
        (homeless(),), do=("AddNode node/big-1",), policy=Policy(node_groups=(GROUP, EQUAL))
    ),
    "the first is too small, so the second adds": Row(
        (homeless(),), do=("AddNode node/big-1",), policy=Policy(node_groups=(SMALL, GROUP))
    ),
    "the first is full, so the second adds": Row(
        (member("big-1", cordoned=True), member("big-2", cordoned=True), homeless()),
        do=("AddNode node/equal-1",),
        policy=Policy(node_groups=(GROUP, EQUAL)),
        group="equal",
    ),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_nodes_are_added_for_pods_that_have_none(row: Row) -> None:
    plan = autoscale.decide(b.world(*row.there), row.group, row.policy, b.NOW)
    assert steps(plan) == row.do
    assert reasons(plan) == row.wait


def test_a_new_node_is_what_its_group_says() -> None:
    assert autoscale.decide(b.world(homeless()), "big", POLICY, b.NOW).actions == (
        AddNode(
            phase=Phase.SCALED,
            node=Node(
                metadata=ObjectMeta(name="big-1", labels={"zone": "a", NODE_GROUP: "big"}),
                spec=NodeSpec(provider_id="jackfield://big/big-1"),
                status=NodeStatus(capacity=SIZE, allocatable=SIZE),
            ),
            because="pod default/p fits no node, and would fit one of group big",
        ),
    )


@pytest.mark.parametrize(
    ("there", "policy", "what"),
    [
        ((member("big-1", ready=""), homeless()), POLICY, "a node on its way to be ready"),
        ((homeless(cpu="5"),), POLICY, "a larger node than group big has"),
        (
            (homeless(),),
            Policy(node_groups=(replace(GROUP, max_size=0),)),
            "group big to be allowed more than 0 nodes",
        ),
        ((homeless(),), Policy(node_groups=(EQUAL, GROUP)), "group equal, which comes first, to add a node"),
    ],
)
def test_a_pod_is_told_what_it_waits_for(there: tuple[Object, ...], policy: Policy, what: str) -> None:
    (waiting,) = autoscale.decide(b.world(*there), "big", policy, b.NOW).waiting
    assert waiting == Waiting("pod/default/p", waiting.reason, what)


def containers(*cpu: str) -> tuple[Container, ...]:
    return tuple(Container(resources=ResourceRequirements({"cpu": one})) for one in cpu)


@pytest.mark.parametrize(
    ("main", "init", "reason"),
    [
        (("2", "2"), (), ""),
        (("2", "2500m"), (), "TooLarge"),
        (("2",), ("4", "4"), ""),
        (("2",), ("5",), "TooLarge"),
        (("4",), ("1",), ""),
        ((), ("4",), ""),
    ],
)
def test_containers_run_together_and_init_containers_one_after_another(
    main: tuple[str, ...], init: tuple[str, ...], reason: str
) -> None:
    pod = homeless()
    pod = replace(
        pod, spec=replace(pod.spec, containers=containers(*main), init_containers=containers(*init))
    )
    plan = autoscale.decide(b.world(pod), "big", POLICY, b.NOW)
    assert reasons(plan) == ((reason,) if reason else ())
    assert len(plan.actions) == (not reason)


def test_the_oldest_pod_is_served_first() -> None:
    young, old = homeless("a", "4", created=b.NOW), homeless("z", "4", created=b.NOW - 50)
    policy = Policy(node_groups=(replace(GROUP, max_size=1),))
    plan = autoscale.decide(b.world(young, old), "big", policy, b.NOW)
    assert "pod default/z" in plan.actions[0].because
    assert plan.waiting[0].object == f"pod/{Key('default', 'a')}"


TWO = Policy(node_groups=(GROUP, EQUAL))


@pytest.mark.parametrize(
    ("there", "delta", "woken"),
    [
        ((), ObjectChanged(None, homeless()), ("big", "equal")),
        ((), ObjectChanged(None, b.pod("p")), ()),
        ((), ObjectChanged(None, b.pod("p", on="n1", homeless=True)), ()),
        ((), ObjectChanged(homeless(), None), ()),
        ((homeless(),), ObjectChanged(None, b.node()), ("big", "equal")),
        ((homeless(),), ObjectChanged(b.node(), None), ("big", "equal")),
        ((), ObjectChanged(None, b.node()), ()),
        ((homeless(),), ObjectChanged(None, b.claim("c")), ()),
        ((homeless(),), FactsChanged(b.NODE), ()),
    ],
)
def test_groups_are_woken_by_homeless_pods_and_by_nodes(
    there: tuple[Object, ...], delta: Delta, woken: tuple[str, ...]
) -> None:
    assert autoscale.wakes(b.world(*there), TWO, delta) == woken
