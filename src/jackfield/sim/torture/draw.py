"""A seed → an ordeal: a cluster, what its users do, and everything that goes wrong.

Knows how likely what is. Must not know how it is carried out, nor what comes of it. Everything drawn is a value that
can be printed, shortened and played again.
"""

import random
from collections.abc import Iterator
from typing import Final, TypeVar

import msgspec

from jackfield.core.allocate import Features, Profile
from jackfield.model.composition import AllocationPolicy
from jackfield.model.fabric import Machine, Traits
from jackfield.model.names import FabricName, ModelName, NodeName, Seconds
from jackfield.model.policy import DRIVER, DeviceModel, Policy
from jackfield.model.policy import Foreign as ForeignRule
from jackfield.sim.chance import Chance, Lognormal, Uniform
from jackfield.sim.host import HostSpec
from jackfield.sim.scenario import AnyStep, CreateClaim, CreatePod, CreateRequest, Delete
from jackfield.sim.setting import Class, Nodes, Setting
from jackfield.sim.spec import Batch, FabricSpec, Foreign
from jackfield.sim.torture import hardship, plots
from jackfield.sim.trouble import Replace

VENDOR: Final = "gpu.example.com"
PRODUCT: Final = "productName"
"""The attribute by which drivers tell the models apart."""
MODELS: Final = (ModelName("A100"), ModelName("H100"))
PODS_MIN, PODS_MAX = 50, 52
CHOOSY: Final = 0.4
"""How many do not take any device of the class."""

Asking = TypeVar("Asking", CreatePod, CreateClaim)


class Ordeal(msgspec.Struct, frozen=True):
    """All that a seed draws."""

    seed: int
    setting: Setting
    steps: tuple[AnyStep, ...]
    """What users do and what goes wrong, by time."""
    calm_at: float
    """When the last trouble is over, at the latest."""

    @property
    def pods(self) -> int:
        """How many pods there are in all."""
        return sum(one.count for one in self.steps if isinstance(one, CreatePod))

    @property
    def troubles(self) -> int:
        """How much goes wrong."""
        return sum(isinstance(one, hardship.TROUBLES) for one in self.steps)


class Given(msgspec.Struct, frozen=True):
    """What an operator wants to have tortured instead of something drawn."""

    setting: Setting | None = None
    policy: Policy | None = None
    troubles: int = 0
    """How much is to go wrong by chance; as much as is drawn if nothing is said."""


def draw(seed: int, given: Given = Given()) -> Ordeal:
    """Return the ordeal of a seed."""
    chance = Chance(seed).branch("torture")
    setting = given.setting or _setting(chance.branch("setting").generator)
    if given.policy is not None:
        setting = msgspec.structs.replace(setting, policy=given.policy)
    dice = chance.branch("time").generator
    calm_at = round(dice.uniform(1200.0, 2400.0), 1)
    stage = hardship.Stage.of(setting)
    troubles = hardship.troubles(chance.branch("troubles").generator, stage, calm_at, given.troubles)
    gone = {one.node for one in troubles if isinstance(one, Replace)}
    told = plots.drawn(chance.branch("plots").generator, stage, calm_at, frozenset(gone))
    plotted = [step for one in told for step in one]
    others = sum(one.count for one in plotted if isinstance(one, CreatePod))
    users = _users(chance.branch("users").generator, stage, calm_at, Crowd(frozenset(gone), others))
    steps = sorted((*users, *troubles, *plotted), key=lambda one: one.at)
    return Ordeal(seed, setting, tuple(steps), calm_at)


# --- the cluster


def _setting(dice: random.Random) -> Setting:
    fabrics = [FabricName(name) for name in ("a", "b")[: 1 + (dice.random() < 0.3)]]
    policy = _policy(dice)
    nodes = [
        Nodes(
            name=f"n{fabric}",
            count=dice.randint(2, 4),
            fabric=fabric,
            slots=dice.randint(2, 4),
            cpu="64",
            memory="256Gi",
        )
        for fabric in fabrics
    ]
    drawn = tuple(_fabric(dice, one, policy) for one in nodes)
    policy = msgspec.structs.replace(policy, detach_foreign=tuple(_unwanted(dice, drawn)))
    ours = all(model.binds for model in policy.models)  # a vendor's driver asks no bus
    drivers = dict.fromkeys(model.driver_name for model in policy.models)
    lag = round(dice.uniform(0.0, 3.0), 2) if dice.random() < 0.5 else 0.0
    return Setting(
        nodes=tuple(nodes),
        fabrics=drawn,
        classes=tuple(Class(_class(driver), f'device.driver == "{driver}"') for driver in drivers),
        policy=policy,
        host=HostSpec(Uniform(Seconds(0.5), Seconds(6.0)), needs_rescan=ours and dice.random() < 0.3),
        pod_start=Uniform(Seconds(0.1), Seconds(3.0)),
        pod_stop=Uniform(Seconds(0.1), Seconds(5.0)),
        boot=Uniform(Seconds(30.0), Seconds(90.0)),
        scheduler_lag=Uniform(Seconds(0.0), Seconds(lag)),
        api_latency=Uniform(Seconds(0.001), Seconds(dice.choice((0.01, 0.05, 0.5)))),
        replicas=2,
        lease_seconds=Seconds(float(dice.choice((45, 90, 90)))),
        features=Features(profile=dice.choice((Profile.V1_36, Profile.V1_36, Profile.V1_37))),
        heartbeat=Seconds(50.0),
    )


def _class(driver: str) -> str:
    return "gpu" if driver == DRIVER else "vendor-gpu"


def _policy(dice: random.Random) -> Policy:
    models = MODELS[: 1 + (dice.random() < 0.4)]
    driver = DRIVER if dice.random() < 0.6 else VENDOR
    return Policy(
        models=tuple(
            DeviceModel(
                index=index,
                cdi_model_name=model,
                k8s_device_name=model.lower(),
                driver_name=driver,
                dra_attributes={PRODUCT: model},
                spares=dice.choice((0, 0, 0, 1)),
                cannot_coexist_with=(1 - index,) if len(models) > 1 and dice.random() < 0.2 else (),
            )
            for index, model in enumerate(models)
        ),
        hold_seconds=Seconds(float(dice.choice((0, 30, 120, 300)))),
        blame_seconds=Seconds(float(dice.choice((60, 300)))),
        binding_timeout_seconds=Seconds(float(dice.choice((200, 400, 600)))),
        attach_deadline_seconds=Seconds(float(dice.choice((90, 180, 300)))),
        heartbeat_seconds=Seconds(150.0),
        inventory_seconds=Seconds(float(dice.choice((15, 30, 60)))),
        missing_seconds=Seconds(float(dice.choice((60, 90)))),
        # Mostly never: a safety net would hide that a wake-up was lost.
        resync_seconds=Seconds(float(dice.choice((300, 1e9, 1e9)))),
        poll_seconds=Seconds(float(dice.choice((2, 5)))),
        claim_attempts_max=50,
    )


def _unwanted(dice: random.Random, fabrics: tuple[FabricSpec, ...]) -> Iterator[ForeignRule]:
    """What the policy wants off our nodes of all that others attached: mostly nothing, or something else."""
    for fabric in fabrics:
        for one in fabric.foreign:
            if dice.random() < 0.3:
                yield ForeignRule(fabric=fabric.name, node=one.node)
            elif dice.random() < 0.3:
                yield ForeignRule(fabric=fabric.name, node=NodeName(f"{one.node}-by-another-name"))


def _fabric(dice: random.Random, nodes: Nodes, policy: Policy) -> FabricSpec:
    knows_orders = dice.random() < 0.6
    traits = Traits(
        chooses_device=dice.random() < 0.5,
        knows_orders=knows_orders,
        call_timeout=Seconds(60.0 if knows_orders else float(dice.choice((20, 40, 60)))),
        jobs=dice.choice((1, 2, 4, 8)),
    )
    slow = dice.choice((3.0, 10.0, 25.0))
    stranger = dice.random() < 0.3  # somebody else's device, from the beginning and for good
    lodging, model = NodeName(dice.choice(nodes.names())), dice.choice(policy.models).cdi_model_name
    return FabricSpec(
        name=nodes.fabric,
        machines=tuple(Machine(NodeName(one), nodes.slots) for one in nodes.names()),
        batches=tuple(
            Batch(one.cdi_model_name, dice.randint(3, 6) + stranger, "switch-0") for one in policy.models
        ),
        foreign=(Foreign(lodging, model),) if stranger else (),
        traits=traits,
        attach=Lognormal(Seconds(slow), 0.5, max=Seconds(min(2.5 * slow, traits.call_timeout - 1.0))),
        detach=Uniform(Seconds(1.0), Seconds(8.0)),
    )


# --- what users do


class Crowd(msgspec.Struct, frozen=True):
    """What has been settled already when the other users come."""

    gone: frozenset[NodeName]
    """Nodes that are not to stay."""
    pods: int
    """Pods that plots need."""


def _users(dice: random.Random, stage: hardship.Stage, until: float, crowd: Crowd) -> Iterator[AnyStep]:
    """Pods that come, some of which somebody deletes; claims that several share; requests by hand."""
    pods = dice.randint(PODS_MIN, PODS_MAX) - crowd.pods
    shared = 0
    while pods > 0:
        at = round(dice.uniform(0.0, 0.9 * until), 1)
        luck = dice.random()
        if luck < 0.06:
            shared += 1
            users = min(pods, dice.randint(2, 3))
            pods -= users
            yield from _shared(dice, stage, at, f"shared-{shared}", users)
        else:
            yield from _pod(dice, stage, at, f"pod-{pods}", crowd.gone)
            pods -= 1
    for number in range(dice.randint(0, 2)):
        yield from _request(dice, stage, until, f"by-hand-{number}")
    for _ in range(
        dice.choice((0, 0, 1, 2))
    ):  # somebody deletes what he should not; it goes when nobody uses it
        at = round(dice.uniform(0.1, 0.9) * until, 1)
        yield Delete(at=at, object=f"resource/{dice.choice(stage.resources)}")


def _pod(
    dice: random.Random, stage: hardship.Stage, at: float, name: str, gone: frozenset[NodeName]
) -> Iterator[AnyStep]:
    devices = dice.choices((1, 2, 3), (80, 15, 5))[0]
    stay = [one for one in stage.nodes if one not in gone]
    pinned = bool(stay) and dice.random() < 0.08
    pod = CreatePod(
        at=at,
        name=name,
        devices=min(devices, stage.slots_min),
        device_class=dice.choice(stage.classes),
        node=dice.choice(stay) if pinned else NodeName(""),
        run=round(dice.choice((5.0, 30.0, 60.0, 200.0)) * dice.uniform(0.5, 1.5), 1),
    )
    yield _choosy(dice, stage, pod)
    if dice.random() < 0.15:
        after = dice.choice((0.0, 1.0, 10.0, 60.0)) * dice.uniform(0.5, 1.5)
        yield Delete(at=round(at + after, 1), object=f"pod/default/{name}", force=dice.random() < 0.3)


def _choosy(dice: random.Random, stage: hardship.Stage, ask: Asking) -> Asking:
    """Let some want one model for all their devices, or rather what is attached already, or a certain model."""
    told = all(PRODUCT in one.dra_attributes for one in stage.catalogue)
    drivers = dict.fromkeys(one.driver_name for one in stage.catalogue)
    if dice.random() > CHOOSY or not told or len(drivers) > 1:
        return ask
    wanted = dice.choice(stage.catalogue)
    domain = wanted.driver_name
    if ask.devices > 1 and dice.random() < 0.6:
        return msgspec.structs.replace(ask, same=f"{domain}/{PRODUCT}")
    if wanted.binds and dice.random() < 0.5:
        return msgspec.structs.replace(ask, prefer=f'device.attributes["{domain}"].attached')
    product = wanted.dra_attributes[PRODUCT]
    return msgspec.structs.replace(ask, selector=f'device.attributes["{domain}"].{PRODUCT} == "{product}"')


def _shared(
    dice: random.Random, stage: hardship.Stage, at: float, name: str, users: int
) -> Iterator[AnyStep]:
    device_class = dice.choice(stage.classes)
    yield _choosy(dice, stage, CreateClaim(at=at, name=name, devices=1, device_class=device_class))
    for number in range(users):
        yield CreatePod(
            at=round(at + dice.uniform(0.1, 60.0), 1),
            name=f"{name}-{number}",
            claim=name,
            run=round(dice.uniform(10.0, 120.0), 1),
        )
    luck = dice.random()
    if luck < 0.3:  # its container may live on while another pod uses the same claim
        yield Delete(at=round(at + dice.uniform(20.0, 90.0), 1), object=f"pod/default/{name}-0", force=True)
    elif luck < 0.5:  # nobody may be left who uses the claim
        for number in range(users):
            after = round(at + dice.uniform(60.1, 75.0), 1)
            yield Delete(at=after, object=f"pod/default/{name}-{number}", force=dice.random() < 0.3)


def _request(dice: random.Random, stage: hardship.Stage, until: float, name: str) -> Iterator[AnyStep]:
    begin, end = sorted((dice.uniform(0.0, 0.8 * until), dice.uniform(0.0, 0.9 * until)))
    model, policy = dice.choice(stage.models), dice.choice(list(AllocationPolicy))
    yield CreateRequest(at=round(begin, 1), name=name, model=model, size=dice.randint(1, 2), policy=policy)
    if dice.random() < 0.5:
        middle = round(dice.uniform(begin, end), 1)
        yield CreateRequest(at=middle, name=name, model=model, size=dice.randint(0, 2), policy=policy)
    yield Delete(at=round(end, 1), object=f"request/{name}")
