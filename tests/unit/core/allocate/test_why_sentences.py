"""Reasons in sentences: what, why, and what to do."""

import pytest

from jackfield.core.allocate import (
    Cause,
    Everywhere,
    Group,
    Miss,
    NodesWhy,
    Reason,
    Removed,
    RequestWhy,
    Step,
    Why,
    holders,
    sentences,
    sentences_everywhere,
    why,
)
from jackfield.core.allocate.causes import ELSEWHERE
from jackfield.core.allocate.sentences import cause_words
from jackfield.model.claim import DeviceRequest
from jackfield.model.names import DeviceID, Key, NodeName
from unit.core.allocate.small_world import (
    DRIVER,
    World,
    alternative,
    claim,
    device,
    devices,
    every,
    first_of,
    holding,
    node,
    request,
    selects,
    slice_,
    wants,
)

MODEL = f"device.attributes['{DRIVER}'].model"
SAID = f'device.attributes["{DRIVER}"].model'
A = DeviceID("d", "p", "a")
LOOSEN = "To do: loosen the selector, or attach devices that satisfy it."
SHORT = "short of memory: 2Gi asked for"
WAIT = "To do: wait for it to be released, or delete the claim that holds it."


def told(world: World, *requests: DeviceRequest) -> tuple[str, ...]:
    wish = claim(*requests)
    return sentences(why(world.allocator(), [wish], node(), holders(world.held)))


def test_they_say_what_is_wanted_what_became_of_the_devices_which_came_nearest_and_what_to_do() -> None:
    world = World([slice_([device(name, model="A100") for name in "abc"])], [holding("c")])
    assert told(world, request("x", 3)) == (
        "Node n1 does not fit: not enough usable devices.",
        "Claim ns/c, request x wants 3 devices and gets 2, with 3 devices looked at.",
        "1 is in use by claim ns/held.",
        f"Nearest: {DRIVER}/p/c is in use by claim ns/held.",
        WAIT,
    )


def test_devices_that_the_same_rule_turns_down_are_told_together_with_the_values_it_saw() -> None:
    models = ["T4", "L4", "L4", "V100", "A2"]
    listed = [device(f"d{at}", model=model) for at, model in enumerate(models)]
    asked = request(selectors=selects(f"{MODEL} == 'H100'"))
    rule = f'turned down by selectors[0]: {SAID} == "H100" is false'
    assert told(World([slice_(listed[:3])]), asked)[2] == (
        f'3 are {rule}, 2 as {SAID} is "L4", 1 as {SAID} is "T4".'
    )
    assert told(World([slice_(listed)]), asked)[2] == (
        f'5 are not selected ({rule}, 2 as {SAID} is "L4", 1 as {SAID} is "T4"; 2 for other causes).'
    )
    assert told(World([slice_(listed[:1])]), asked)[2] == f'1 is {rule}, as {SAID} is "T4".'


def test_causes_of_different_rules_are_told_each_with_its_count() -> None:
    listed = [device("a", memory="1Gi"), device("b"), device("c")]
    assert told(World([slice_(listed)]), request(capacity=wants("2Gi")))[2:4] == (
        f"3 are short of capacity (2 {SHORT}, none found; 1 {SHORT}, 1Gi found).",
        f"Nearest: {DRIVER}/p/a is {SHORT}, 1Gi found.",
    )


def test_devices_equally_near_are_told_together() -> None:
    world = World([slice_(devices(*"abcd"))], [holding("a", "b"), holding("c", "d")])
    assert told(world, request(count=4))[3] == (
        f"Nearest: {DRIVER}/p/a, {DRIVER}/p/b and {DRIVER}/p/c are in use by claim ns/held."
    )


def test_all_devices_are_told_by_how_many_there_are() -> None:
    world = World([slice_(devices("a", "b"))], [holding("b")])
    assert told(world, every())[1] == (
        "Claim ns/c, request r wants all devices that it means and gets 1 of 2, with 2 devices looked at."
    )
    assert told(world, every(selectors=selects("false")))[1] == (
        "Claim ns/c, request r wants all devices that it means and means none, with 2 devices looked at."
    )


def test_where_there_are_no_other_devices_more_are_needed() -> None:
    assert told(World([slice_(devices("a"))]), request(count=2))[1:] == (
        "Claim ns/c, request r wants 2 devices and gets 1, with 1 device looked at.",
        "There are no others.",
        "To do: attach more devices, or ask for fewer.",
    )


def test_other_requests_that_are_short_are_mentioned() -> None:
    found = told(World([slice_(devices("a"))]), request("x"), request("y"), request("z", 2))
    assert found[1].startswith("Claim ns/c, request y wants 1 device and gets 0")
    assert found[-2] == "Also short: request z (0 of 2)."


def test_of_many_alternatives_the_first_few_are_told() -> None:
    found = told(World([]), first_of(*(alternative(f"a{at}") for at in range(6))))
    assert [one.split(" wants")[0] for one in found if "wants" in one] == [
        f"Claim ns/c, request r/a{at}" for at in range(4)
    ]
    assert found[-2] == "2 more alternatives are no better."


def test_an_error_comes_first_and_says_that_no_node_helps() -> None:
    half = World([slice_(devices("half"), of=2)])
    head, _, pool, nearest, advice = told(half, every())
    assert head.startswith(
        "No node can be judged, as the scheduler stops with an error: claim ns/c, request r: asks"
    )
    state = f"in pool {DRIVER}/p, which is currently being updated: 1 of 2 slices are there"
    assert (pool, nearest) == (f"1 is {state}.", f"Nearest: {DRIVER}/p/half is {state}.")
    assert advice.startswith("To do: look at the driver that publishes the pool")
    unknown = told(half, request(device_class_name="gone"))
    assert unknown[1:] == (
        "To do: correct the claim or its class; no other node and no more devices would help.",
    )


def test_what_is_left_when_an_error_ends_the_search_is_told() -> None:
    world = World([slice_([device("a", model="A"), device("b"), device("c", model="A")])])
    found = told(world, request(count=2, selectors=selects(f"{MODEL} == 'A'")))
    assert "1 is left." in found
    assert found[-1].startswith("To do: make the selector bear devices that lack what it looks at")


def test_a_node_that_fits_needs_one_sentence() -> None:
    assert told(World([slice_(devices("a"))]), request()) == ("Node n1 fits.",)


def test_a_search_that_was_given_up_asks_for_a_simpler_claim() -> None:
    found = sentences(Why(NodeName("n"), Reason.SEARCH_LIMIT, aborts=False, requests=()))
    assert found[0] == "Node n does not fit: the search was given up."
    assert found[1].startswith("To do: simplify the claim")


def test_several_things_in_the_way_are_all_to_be_done() -> None:
    miss = Miss(A, (Cause(Step.IN_USE), Cause(Step.TAINT, "k:NoExecute")))
    one = RequestWhy(
        Key("", "c"), "r", every=False, wanted=1, had=0, left=0, removed=(), stuck=True, nearest=(miss,)
    )
    found = sentences(Why(NodeName("n"), "no", aborts=False, requests=(one,)))
    assert (
        found[2]
        == "Nearest: d/p/a is in use, and tainted with k:NoExecute, which the request does not tolerate."
    )
    assert (
        found[3]
        == f"{WAIT[:-1]}; then find out why it is tainted; if that does no harm, tolerate the taint in the request."
    )


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (Cause(Step.NODE, ELSEWHERE, "n2", "n1"), "for node n2"),
        (Cause(Step.NODE, ELSEWHERE, "", "n1"), "for other nodes by name"),
        (Cause(Step.NODE, "zone In (b)", "", "zone is a"), "for nodes with zone In (b), but zone is a"),
        (Cause(Step.NODE, "no node"), "for no node"),
        (Cause(Step.GATE, "G", "on", "off"), "in need of the feature gate G, which is off"),
        (Cause(Step.SELECTOR, "x", "false", "", "selectors[1]"), "turned down by selectors[1]: x is true"),
        (
            Cause(Step.CLASS, "x", "true", "y is 1", "class c selectors[0]"),
            "turned down by class c selectors[0]: x is false, as y is 1",
        ),
        (
            Cause(Step.FAULT, "x", "", "no such key", "selectors[0]"),
            "not to be judged, as selectors[0] fails at x: no such key",
        ),
        (
            Cause(Step.FAULT, seen="device a: 'much' is no quantity"),
            "unreadable: device a: 'much' is no quantity",
        ),
        (Cause(Step.IN_USE), "in use"),
        (Cause(Step.TAKEN, seen="claim ns/c, request x"), "taken by claim ns/c, request x"),
        (
            Cause(Step.COUNTER, "s/m", "3Gi", "1Gi left of 8Gi"),
            "short of counter s/m: 3Gi needed, 1Gi left of 8Gi",
        ),
        (
            Cause(Step.CONSTRAINT, "matchAttribute d/n", "0", "1", "constraints[0]"),
            "excluded by constraints[0], matchAttribute d/n: 0 wanted, 1 found",
        ),
        (
            Cause(Step.CAPACITY, "m", "3Gi", "only 1Gi, 2Gi may be asked for"),
            "short of m: 3Gi asked for, only 1Gi, 2Gi may be asked for",
        ),
        (
            Cause(Step.LIMIT, "devices of one claim", "at most 32", "33"),
            "beyond what one claim may hold: at most 32, and this one would hold 33",
        ),
    ],
)
def test_a_cause_completes_the_device_is(cause: Cause, words: str) -> None:
    assert cause_words(cause) == words


@pytest.mark.parametrize("step", Step)
def test_every_step_has_words_and_advice(step: Step) -> None:
    cause = Cause(step, "rule", "wanted", "seen", "source")
    one = RequestWhy(
        Key("ns", "c"),
        "r",
        every=False,
        wanted=1,
        had=0,
        left=0,
        removed=(Removed(step, 3, (Group(cause, 2, A),), 1),),
        stuck=True,
        nearest=(Miss(A, (cause,)),),
    )
    _, _, counts, nearest, advice = sentences(Why(NodeName("n"), "no", aborts=False, requests=(one,)))
    assert counts.startswith("3 are ")
    assert counts.endswith("; 1 for other causes).")
    assert cause_words(cause) in nearest
    assert len(advice) > len("To do: split it.")


# --- over all nodes


def test_over_all_nodes_they_say_how_many_fail_for_which_reason_and_which_came_nearest() -> None:
    nearest = Why(NodeName("n7"), "no", aborts=False, requests=())
    reasons = (NodesWhy(Step.IN_USE, 4000, NodeName("n7")), NodesWhy("a selector fails", 1, NodeName("n8")))
    assert sentences_everywhere(Everywhere(4001, 0, reasons, (nearest,))) == (
        "None of 4,001 nodes fits.",
        "On 4,000 nodes the nearest devices are in use; 1 node: a selector fails.",
        "Node n7 came nearest.",
        "To do: attach more devices, or ask for fewer.",
    )


def test_an_error_on_every_node_is_not_called_near() -> None:
    error = "bad selector\n | a picture of it"
    failed = Why(NodeName("n7"), error, aborts=True, requests=())
    assert sentences_everywhere(Everywhere(1, 0, (NodesWhy(error, 1, NodeName("n7")),), (failed,))) == (
        "The only node does not fit.",
        "1 node: bad selector.",
        "To do: correct the claim or its class; no other node and no more devices would help.",
    )


def test_a_selector_that_does_not_compile_is_told_in_one_line_and_is_to_be_corrected() -> None:
    head, _, counts, nearest, advice = told(
        World([slice_(devices("a"))]), request(selectors=selects("1 = 2"))
    )
    assert not any("\n" in one for one in (head, counts, nearest))
    assert "CEL compile error" in counts
    assert advice.startswith("To do: correct the selector")


@pytest.mark.parametrize(
    ("everywhere", "words"),
    [
        (Everywhere(0, 0, (), ()), "There are no nodes."),
        (Everywhere(3, 1, (), ()), "1 of 3 nodes fits."),
        (Everywhere(3, 2, (), ()), "2 of 3 nodes fit."),
    ],
)
def test_where_nodes_fit_they_say_so(everywhere: Everywhere, words: str) -> None:
    assert sentences_everywhere(everywhere) == (words,)
