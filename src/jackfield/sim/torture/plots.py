"""Plots: short sequences of what users do and what goes wrong, close upon each other.

Most races need three or four things in one minute that would hardly ever meet by themselves. Each plot brings such
things together and leaves to chance when exactly, on which node, and what else goes on. Knows what could meet. Must not
know what comes of it.
"""

import random
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from jackfield.core import naming
from jackfield.model.composition import AllocationPolicy
from jackfield.model.names import NodeName
from jackfield.sim import trouble
from jackfield.sim.scenario import AnyStep, CreateClaim, CreatePod, CreateRequest, Delete
from jackfield.sim.torture.hardship import REPLICAS, Stage
from jackfield.sim.weather import Mishap

PLOTS_MIN, PLOTS_MAX = 3, 6
LAST: Final = 0.8
"""By this part of the troubled time the last of them has begun."""
LONGEST: Final = 250.0
"""Seconds from the first step of a plot to its last, at the most."""


class Cast(msgspec.Struct, frozen=True):
    """Who takes part in a plot, and when it begins."""

    dice: random.Random
    stage: Stage
    name: str
    at: float
    nodes: tuple[NodeName, NodeName]
    """Two nodes that stay; the same one twice where there is no other."""

    def when(self, low: float, high: float) -> float:
        """Return a time in that part of the plot."""
        return round(self.at + self.dice.uniform(low, high), 1)

    def pod(self, number: int, at: float, run: float, claim: str = "", node: str = "") -> CreatePod:
        """Return a pod that comes at a time, with a claim of its own or a named one."""
        return CreatePod(
            at=at,
            name=f"{self.name}-pod-{number}",
            devices=0 if claim else 1,
            device_class=self.dice.choice(self.stage.classes),
            claim=claim,
            node=NodeName(node),
            run=round(run, 1),
        )

    def claim(self, at: float, number: int = 0) -> CreateClaim:
        """Return a claim that pods can name."""
        device_class = self.dice.choice(self.stage.classes)
        return CreateClaim(at=at, name=f"{self.name}-claim-{number}", devices=1, device_class=device_class)

    def end(self, number: int, at: float, *, force: bool) -> Delete:
        """Return the deletion of one of the plot's pods."""
        return Delete(at=at, object=f"pod/default/{self.name}-pod-{number}", force=force)


Plot = Callable[[Cast], Iterator[AnyStep]]


def drawn(
    dice: random.Random, stage: Stage, until: float, gone: frozenset[NodeName]
) -> tuple[tuple[AnyStep, ...], ...]:
    """Return some plots; none needs a node that is not to stay."""
    stay = [one for one in stage.nodes if one not in gone]
    table = [row for row in TABLE if stage.binds or row[0] not in OUR_DRIVER]
    if not stay:
        return ()
    told = []
    for number in range(dice.randint(PLOTS_MIN, PLOTS_MAX)):
        plot = dice.choices([one for one, _ in table], [weight for _, weight in table])[0]
        first = dice.choice(stay)
        second = dice.choice([one for one in stay if one != first] or [first])
        latest = min(LAST * until, until - LONGEST)
        at = round(dice.uniform(0.02 * until, latest), 1)
        told.append(tuple(plot(Cast(dice, stage, f"plot-{number}", at, (first, second)))))
    return tuple(told)


# --- claims by name


def _crowd(cast: Cast) -> Iterator[AnyStep]:
    """Many pods come to one claim while its device does: the claim changes between its record and its answer."""
    dice, claim = cast.dice, cast.claim(cast.at)
    yield claim
    for number in range(dice.randint(4, 6)):
        yield cast.pod(number, cast.when(5.0, 90.0), dice.uniform(5.0, 30.0), claim.name)
    if dice.random() < 0.7:
        for program in REPLICAS:
            yield trouble.Storm(at=cast.at, program=program, mishap=Mishap.SLOW, likely=0.7, seconds=60.0)


def _left_over(cast: Cast) -> Iterator[AnyStep]:
    """Everybody who waits for a claim is deleted while it is on its way."""
    dice, claim = cast.dice, cast.claim(cast.at)
    yield claim
    if dice.random() < 0.7:  # else it frees what the scheduler has not taken its hands off yet
        yield trouble.Deafen(at=cast.at, program="controller-manager", kind="Pod", seconds=60.0)
    for number in range(dice.randint(1, 2)):
        yield cast.pod(number, cast.when(0.1, 3.0), 60.0, claim.name)
        yield cast.end(number, cast.when(4.0, 25.0), force=dice.random() < 0.3)


def _made_anew(cast: Cast) -> Iterator[AnyStep]:
    """A claim is deleted and made anew under its name, with a pod each."""
    dice, claim = cast.dice, cast.claim(cast.at)
    yield claim
    yield cast.pod(0, cast.when(0.1, 1.0), 60.0, claim.name)
    over = cast.when(3.0, 40.0)
    yield cast.end(0, over, force=dice.random() < 0.5)
    yield Delete(at=round(over + 0.1, 1), object=f"claim/default/{claim.name}")
    yield msgspec.structs.replace(claim, at=round(over + dice.choice((0.2, 2.0, 6.0)), 1))
    yield cast.pod(1, round(over + 7.0, 1), 20.0, claim.name)
    program = dice.choice((*REPLICAS, "jackfield-node", "kubelet"))
    yield trouble.Storm(at=over, program=program, mishap=Mishap.SLOW, likely=0.7, seconds=40.0)


def _ghost(cast: Cast) -> Iterator[AnyStep]:
    """A pod is deleted by force, its container lives on, and another pod takes its claim, perhaps elsewhere."""
    dice, claim = cast.dice, cast.claim(cast.at)
    here, there = cast.nodes
    if dice.random() < 0.6:  # then it believes that devices which stand somewhere could be had anywhere
        lag = round(dice.uniform(100.0, 200.0), 1)
        yield trouble.Deafen(at=cast.at, program="scheduler", kind="ResourceSlice", seconds=lag)
    yield claim
    yield cast.pod(0, cast.when(0.5, 2.0), 400.0, claim.name, here)
    over = cast.when(45.0, 70.0)
    deaf = round(dice.uniform(40.0, 140.0), 1)
    yield trouble.Deafen(at=over, program="kubelet", kind="Pod", seconds=deaf)
    yield cast.end(0, round(over + 0.5, 1), force=True)
    if dice.random() < 0.3:
        yield cast.pod(2, round(over + 1.0, 1), 100.0, node=here)
    yield cast.pod(
        1, round(over + dice.uniform(1.5, 5.0), 1), 30.0, claim.name, dice.choice((here, there, there))
    )


def _late_prepare(cast: Cast) -> Iterator[AnyStep]:
    """A pod goes while its claim is being prepared, and the next one's claim is not recorded yet."""
    dice, here = cast.dice, cast.nodes[0]
    yield cast.pod(0, cast.at, 3.0, node=here)  # so that a device stands there
    for number in (1, 3):
        began = (number - 1) * 35.0
        claim = cast.claim(cast.when(45.0 + began, 60.0 + began), number)
        yield claim
        yield cast.pod(number, claim.at, 60.0, claim.name, here)
        # A kubelet asks only for a pod that its claim is reserved for: it must have looked before the pod goes, and
        # the plugin must look after the next pod was given the same device.
        for program in ("kubelet", "jackfield-node"):
            yield trouble.Storm(at=claim.at, program=program, mishap=Mishap.SLOW, likely=1.0, seconds=25.0)
        over = claim.at + dice.uniform(3.0, 9.0)
        yield cast.end(number, round(over, 1), force=True)
        dead = over + dice.uniform(0.5, 2.0)  # by now the first pod's record is forgotten
        for replica in range(len(REPLICAS)):
            yield trouble.Kill(at=round(dead, 1), replica=replica, down=20.0)
        yield cast.pod(number + 1, round(dead + dice.uniform(0.1, 1.0), 1), 20.0, claim.name, here)


# --- the scheduler


def _under_foot(cast: Cast) -> Iterator[AnyStep]:
    """Pods are bound, nobody hears that they are, and their claims look as if nobody wanted them."""
    dice = cast.dice
    for program in (*REPLICAS, "controller-manager"):
        yield trouble.Deafen(at=cast.at, program=program, kind="Pod", seconds=120.0)
    yield trouble.Storm(
        at=cast.when(3.0, 10.0), program="scheduler", mishap=Mishap.AFTER, likely=0.5, seconds=90.0
    )
    for number in range(dice.randint(2, 4)):
        claim = cast.claim(cast.when(1.0, 30.0), number)
        yield claim
        yield cast.pod(number, round(claim.at + 0.5, 1), dice.uniform(20.0, 100.0), claim.name)


def _two_for_one(cast: Cast) -> Iterator[AnyStep]:
    """The scheduler does not learn what it gave away, and gives it away again."""
    dice, deaf = cast.dice, cast.when(1.0, 1.5)
    # After this it hears of no claim, so that one whose answer got lost stays without a device to its mind.
    yield trouble.Deafen(at=deaf, program="scheduler", kind="ResourceClaim", seconds=60.0)
    yield trouble.Storm(at=deaf, program="scheduler", mishap=Mishap.AFTER, likely=0.35, seconds=40.0)
    for number in range(dice.randint(4, 5)):
        claim = cast.claim(cast.at, number)
        yield claim
        yield cast.pod(number, cast.when(2.0, 25.0), dice.uniform(200.0, 300.0), claim.name)


# --- our controllers


def _deaf_heir(cast: Cast) -> Iterator[AnyStep]:
    """A replica that has not heard of claims for long takes over from one that served them."""
    dice, heir = cast.dice, cast.dice.randint(0, 1)
    yield trouble.Deafen(at=cast.at, program=REPLICAS[heir], kind="ResourceClaim", seconds=300.0)
    if dice.random() < 0.7:  # what is prepared is known to be in use by its holder, whatever claims say
        yield trouble.Storm(at=cast.at, program="kubelet", mishap=Mishap.ERROR, likely=1.0, seconds=280.0)
    for number in range(dice.randint(2, 4)):
        yield cast.pod(number, cast.when(1.0, 30.0), dice.uniform(200.0, 300.0))
    yield trouble.Kill(at=cast.when(60.0, 90.0), replica=1 - heir, effect=dice.random() < 0.5, down=180.0)


def _late_writes(cast: Cast) -> Iterator[AnyStep]:
    """What was given up as lost is written after all, when its object has long gone on."""
    dice = cast.dice
    programs = dice.choice((REPLICAS, ("jackfield-node",), (*REPLICAS, "jackfield-node")))
    for program in programs:
        likely = dice.choice((0.3, 0.6))
        yield trouble.Storm(at=cast.at, program=program, mishap=Mishap.LATE, likely=likely, seconds=150.0)
    for number in range(dice.randint(4, 6)):
        yield cast.pod(number, cast.when(0.5, 90.0), dice.uniform(1.0, 6.0))


def _nobody_looks(cast: Cast) -> Iterator[AnyStep]:
    """Orders are sent, and whoever sent them is dead for longer than they take."""
    dice = cast.dice
    for number in range(dice.randint(2, 4)):
        yield cast.pod(number, cast.when(0.1, 6.0), dice.uniform(10.0, 60.0))
    for number in range(len(REPLICAS)):
        down = round(dice.uniform(60.0, 150.0), 1)
        at = cast.when(1.0, 9.0)
        yield trouble.Kill(at=at, replica=number, calls=dice.randint(0, 6), effect=True, down=down)


# --- people


def _thrown_out(cast: Cast) -> Iterator[AnyStep]:
    """Somebody deletes a node's ComposableResources while claims are recorded on them and nothing is prepared yet."""
    dice, here = cast.dice, cast.nodes[0]
    mishap = dice.choice((Mishap.SLOW, Mishap.ERROR))
    yield trouble.Storm(at=cast.at, program="kubelet", mishap=mishap, likely=1.0, seconds=80.0)
    for number in range(dice.randint(1, 2)):
        yield cast.pod(number, cast.when(0.5, 10.0), 60.0, node=here)
    for _ in range(2):
        yield trouble.Discard(at=cast.when(10.0, 75.0), node=here)


def _namesake(cast: Cast) -> Iterator[AnyStep]:
    """Somebody writes a request under the very name that ours would have."""
    dice, stage, here = cast.dice, cast.stage, cast.nodes[0]
    model = dice.choice(stage.catalogue)
    name = naming.request(here, model)
    yield CreateRequest(
        at=cast.at,
        name=name,
        model=model.cdi_model_name,
        size=1,
        policy=AllocationPolicy.SAMENODE,
        node=here,
    )
    yield cast.pod(0, cast.when(5.0, 60.0), 20.0, node=here)
    yield Delete(at=cast.when(100.0, 200.0), object=f"request/{name}")


TABLE: Final[tuple[tuple[Plot, int], ...]] = (
    (_crowd, 4),
    (_left_over, 3),
    (_made_anew, 3),
    (_ghost, 6),
    (_late_prepare, 5),
    (_under_foot, 4),
    (_two_for_one, 5),
    (_deaf_heir, 4),
    (_late_writes, 5),
    (_nobody_looks, 4),
    (_thrown_out, 4),
    (_namesake, 3),
)
"""Every plot, and how often it comes beside the others."""
OUR_DRIVER: Final = (_ghost, _late_prepare, _under_foot)
"""Plots in which something is in use and our controllers have not heard of it: only a driver of ours says so."""
