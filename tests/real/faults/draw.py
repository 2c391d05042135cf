"""A seed and a length → an ordeal in real time: the cluster and the users of `jackfield torture`, and real faults.

Cluster and users are those that the same seed draws for the simulation, in fast motion, so that the last of them comes
shortly before calm. Knows how likely what is. Must not know how it is carried out, nor what comes of it.
"""

import random
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final

import msgspec
from msgspec.structs import replace

from jackfield.core import naming
from jackfield.model.names import FabricName, NodeName, PhysicalID, Seconds
from jackfield.sim.chance import Chance, Distribution, Exponential, Fixed, Lognormal, Uniform
from jackfield.sim.scenario import CreateClaim, CreatePod, CreateRequest, Delete
from jackfield.sim.setting import Setting
from jackfield.sim.torture import draw
from jackfield.sim.users import Use
from real.faults.proxy import Way
from storm.managers import Plan

REPLICAS: Final = ("replica-1", "replica-2")
API: Final = "apiserver"
USERS: Final = (CreatePod, CreateClaim, CreateRequest, Delete)
PODS_A_MINUTE: Final = 6.0
PODS_MIN: Final = 12
FAULTS_A_MINUTE: Final = 4.5
FAULTS_UNTIL: Final = 0.95
"""The last fault begins before so much of the time is over."""
SPANS: Final = (1.0, 3.0, 6.0, 15.0)
"""How long faults last, about; the longest of them outlast a lease."""
SHORT_SPANS: Final = (1.0, 3.0)
"""Those of a manager without order ids, which says within what time a call takes effect."""
EFFECT_SECONDS: Final = 30.0
"""That time, in which it may be killed, be stopped and not be reached, one after the other."""
RUN_SECONDS_MIN: Final = 1.0
POLL_SECONDS_MIN: Final = Seconds(2.0)
KINDS: Final[Mapping[tuple[bool, bool], tuple[str, ...]]] = {
    (True, False): ("native",),
    (True, True): ("native",),
    (False, True): ("fsas-fm", "fsas-cm"),
    (False, False): ("redfish", "sunfish", "nec", "liqid"),
}
"""Managers that know order ids or do not, and that choose the device themselves or do not."""


class What(StrEnum):
    """What is done to a process."""

    KILL = "kill"
    STOP = "stop"


class Fault(msgspec.Struct, frozen=True):
    """Something that goes wrong, and when it is over."""

    at: float
    seconds: float
    what: What | Way
    target: str
    """A process, or the line from one to another, as in `replica-1>apiserver`."""

    def __str__(self) -> str:
        """Say it in columns of fixed width."""
        return f"{self.what:<5} {self.seconds:5.1f} s  {self.target}"


class Rack(Plan, frozen=True):
    """A fabric as it was drawn, and the manager that is most like its own."""

    fabric: FabricName = FabricName("")
    machine_names: tuple[str, ...] = ()
    batches: tuple[tuple[str, int], ...] = ()
    attach: Distribution = Fixed(Seconds(0.0))
    detach: Distribution = Fixed(Seconds(0.0))
    jobs: int = 8

    @property
    def name(self) -> FabricName:
        """The fabric's name."""
        return self.fabric

    @property
    def nodes(self) -> tuple[NodeName, ...]:
        """Its machines."""
        return tuple(NodeName(one) for one in self.machine_names)

    @property
    def models(self) -> tuple[str, ...]:
        """The models it has."""
        return tuple(model for model, _ in self.batches)

    def lab(self) -> dict[str, object]:
        """Return the manager's inventory."""
        return {
            **super().lab(),
            "devices": [
                {"name": model.lower(), "count": count, "model": model} for model, count in self.batches
            ],
            "times": {"attach": _plain(self.attach), "detach": _plain(self.detach)},
            "limits": {"jobs": self.jobs},
        }


class Ordeal(msgspec.Struct, frozen=True):
    """All that a seed draws."""

    seed: int
    seconds: float
    setting: Setting
    racks: tuple[Rack, ...]
    steps: tuple[Use, ...]
    faults: tuple[Fault, ...]

    @property
    def lasting(self) -> tuple[CreatePod, ...]:
        """The pods that nobody deletes."""
        gone = {one.object for one in self.steps if isinstance(one, Delete)}
        pods = [one for one in self.steps if isinstance(one, CreatePod)]
        return tuple(one for one in pods if f"pod/{one.namespace}/{one.name}" not in gone)

    @property
    def pods(self) -> int:
        """How many pods there are in all."""
        return sum(isinstance(one, CreatePod) for one in self.steps)


def drawn(seed: int, seconds: float, kind: str = "") -> Ordeal:
    """Return the ordeal of a seed; the managers may all be of one kind."""
    ordeal = draw.draw(seed)
    chance = Chance(seed).branch("real faults")
    pace = seconds / ordeal.calm_at
    setting = _at_pace(ordeal.setting, pace)
    racks = tuple(_racks(chance.branch("managers").generator, setting, kind))
    users = [one for one in ordeal.steps if isinstance(one, USERS)]
    steps = tuple(_hurried(one, pace, setting) for one in _thinned(users, seconds))
    faults = tuple(_faults(chance.branch("faults").generator, racks, seconds))
    return Ordeal(seed, seconds, setting, racks, steps, faults)


# --- the cluster


def _at_pace(setting: Setting, pace: float) -> Setting:
    """Return a cluster whose hardware, pods and patience are faster."""
    policy = setting.policy
    return replace(
        setting,
        policy=replace(
            policy,
            hold_seconds=Seconds(policy.hold_seconds * pace),
            blame_seconds=Seconds(policy.blame_seconds * pace),
            inventory_seconds=max(POLL_SECONDS_MIN, Seconds(policy.inventory_seconds * pace)),
        ),
        fabrics=tuple(
            replace(one, attach=_faster(one.attach, pace), detach=_faster(one.detach, pace))
            for one in setting.fabrics
        ),
        # These nodes hear of a device up to a second late, as no bus would tell them; who is late must look again.
        host=replace(setting.host, hotplug=_faster(setting.host.hotplug, pace), needs_rescan=False),
        pod_start=_faster(setting.pod_start, pace),
        pod_stop=_faster(setting.pod_stop, pace),
        real_api=True,
    )


def _faster(one: Distribution, pace: float) -> Distribution:
    match one:
        case Fixed():
            return Fixed(Seconds(one.seconds * pace))
        case Uniform():
            return Uniform(Seconds(one.min * pace), Seconds(one.max * pace))
        case Lognormal():
            bounds = {"min": Seconds(one.min * pace), "max": Seconds(one.max * pace)}
            return replace(one, median=Seconds(one.median * pace), **bounds)
        case Exponential():
            bounds = {"min": Seconds(one.min * pace), "max": Seconds(one.max * pace)}
            return replace(one, mean=Seconds(one.mean * pace), **bounds)


def _plain(one: Distribution) -> object:
    return msgspec.to_builtins(one)


def _racks(dice: random.Random, setting: Setting, kind: str) -> Iterator[Rack]:
    for fabric in setting.fabrics:
        nodes = [one for one in setting.nodes if one.fabric == fabric.name]
        alike = KINDS[fabric.traits.knows_orders, fabric.traits.chooses_device]
        names = tuple(name for one in nodes for name in one.names())
        yield Rack(
            kind=kind or dice.choice(alike),
            machines=len(names),
            slots=min(one.slots for one in nodes),
            foreign=0,
            effect_seconds=EFFECT_SECONDS,
            fabric=fabric.name,
            machine_names=names,
            batches=tuple((one.model, one.count) for one in fabric.batches),
            attach=fabric.attach,
            detach=fabric.detach,
            jobs=fabric.traits.jobs,
        )


# --- what users do


def _thinned(users: list[Use], seconds: float) -> Iterator[Use]:
    """Yield as much of it as can be lived through in the time, of its beginning, middle and end alike."""
    pods = [one for one in users if isinstance(one, CreatePod)]
    wanted = min(len(pods), max(PODS_MIN, round(PODS_A_MINUTE * seconds / 60)))
    kept = {id(pods[number * len(pods) // wanted]) for number in range(wanted)}
    names = {f"pod/{one.namespace}/{one.name}" for one in pods if id(one) not in kept}
    for one in users:
        left_out = isinstance(one, CreatePod) and id(one) not in kept
        if not left_out and not (isinstance(one, Delete) and one.object in names):
            yield one


def _hurried(one: Use, pace: float, setting: Setting) -> Use:
    at = round(one.at * pace, 2)
    match one:
        case CreatePod():
            return replace(one, at=at, run=max(RUN_SECONDS_MIN, round(one.run * pace, 2)))
        case Delete():
            return replace(one, at=at, object=_renamed(setting).get(one.object, one.object))
        case _:
            return replace(one, at=at)


def _renamed(setting: Setting) -> dict[str, str]:
    """What the resources of simulated devices are called where our manager names the devices."""
    names = {}
    for fabric in setting.fabrics:
        for model in setting.policy.models:
            for number in range(3):
                simulated = naming.device(fabric.name, model, PhysicalID(f"{number:04d}"))
                real = PhysicalID(f"{model.cdi_model_name.lower()}-{number + 1}")
                old = naming.resource(fabric.name, simulated)
                names[f"resource/{old}"] = (
                    f"resource/{naming.resource(fabric.name, naming.device(fabric.name, model, real))}"
                )
    return names


# --- what goes wrong


def _faults(dice: random.Random, racks: tuple[Rack, ...], seconds: float) -> Iterator[Fault]:
    """Deal every fault in turn, in another order each time; one at a time to each process and line."""
    deck = _deck()
    count = max(len(deck), round(FAULTS_A_MINUTE * seconds / 60))
    step = FAULTS_UNTIL * seconds / count
    dealt: list[tuple[What | Way, str]] = []
    busy: dict[str, float] = {}
    for number in range(count):
        dealt = dealt or dice.sample(deck, len(deck))
        what, place = dealt.pop()
        rack = dice.choice(racks)
        target = place.format(replica=dice.choice(REPLICAS), manager=f"manager-{rack.name}")
        short = "manager" in place and rack.kind != "native"
        span = dice.choice(SHORT_SPANS if short else SPANS) * dice.uniform(0.5, 1.5)
        span = min(span, 3 * step)
        key = f"manager-{rack.name}" if short else target
        at = max(busy.get(key, 0.0), step * (number + dice.random()))
        busy[key] = at + span + 1.0
        yield Fault(round(at, 1), round(span, 1), what, target)


def _deck() -> list[tuple[What | Way, str]]:
    processes = (API, "{replica}", "{manager}")
    lines = (f"{{replica}}>{API}", "{replica}>{manager}")
    ways = [one for one in Way if one is not Way.OPEN]
    return [
        *((what, place) for place in processes for what in What),
        *((way, place) for place in lines for way in ways),
    ]
