"""What goes wrong in an ordeal, and how often.

Knows the table of troubles. Must not know how a trouble comes about.
"""

import random
from collections.abc import Callable, Iterator
from typing import Final, Self

import msgspec

from jackfield.core import naming
from jackfield.model.names import NEVER, FabricName, ModelName, NodeName, PhysicalID, Seconds
from jackfield.model.policy import DeviceModel
from jackfield.sim import trouble
from jackfield.sim.fabric import Fate
from jackfield.sim.setting import Nodes, Setting
from jackfield.sim.weather import Mishap

TROUBLES_MIN, TROUBLES_MAX = 10, 16

AnyHardship = trouble.AnyTrouble
TROUBLES: Final = AnyHardship.__args__
UNDRAWN: Final = (trouble.Calm,)
"""What comes at the end."""
REPLICAS: Final = ("replica-0", "replica-1")
OUR_PROGRAMS: Final = (*REPLICAS, "jackfield-node")
KINDS: Final = ("", "", "ResourceClaim", "ResourceSlice", "ComposableResource", "Pod", "Node")
"""What a program may not hear of."""
PROGRAMS: Final = (*OUR_PROGRAMS, "scheduler", "kubelet", "controller-manager")


class Stage(msgspec.Struct, frozen=True):
    """What of a cluster can be meant by a step."""

    nodes: tuple[NodeName, ...]
    slots_min: int
    """So many devices a claim may ask for: one, where it could be given models that may not be on one node.

    Nor more than a pool has beside its spares: those serve on the node they are on while anything else is free.
    """
    fabrics: tuple[FabricName, ...]
    devices: tuple[tuple[FabricName, PhysicalID], ...]
    resources: tuple[str, ...]
    """What the ComposableResources of some devices or slots would be called."""
    models: tuple[ModelName, ...]
    catalogue: tuple[DeviceModel, ...]
    """What the policy says of them."""
    classes: tuple[str, ...]
    binds: bool
    """Whether all devices are handed over by `bind`."""
    fenced: bool
    """Whether no manager takes an order for another: each knows order ids."""
    homes: dict[NodeName, FabricName]
    """Whose machine each node is."""

    @classmethod
    def of(cls, setting: Setting) -> Self:
        """Return what a setting has."""
        counts = {one.name: sum(batch.count for batch in one.batches) for one in setting.fabrics}
        return cls(
            nodes=tuple(NodeName(name) for one in setting.nodes if one.fabric for name in one.names()),
            slots_min=1
            if any(one.cannot_coexist_with for one in setting.policy.models)
            else min(
                (*(_room(setting, one) for one in setting.nodes if one.fabric), *_free(setting)), default=1
            ),
            fabrics=tuple(counts),
            devices=tuple(
                (fabric, PhysicalID(f"{number:04d}"))
                for fabric, count in counts.items()
                for number in range(count)
            ),
            resources=tuple(_resources(setting)),
            models=tuple(one.cdi_model_name for one in setting.policy.models),
            catalogue=setting.policy.models,
            classes=tuple(one.name for one in setting.classes),
            binds=all(one.binds for one in setting.policy.models),
            fenced=all(one.traits.knows_orders for one in setting.fabrics),
            homes={NodeName(name): one.fabric for one in setting.nodes for name in one.names()},
        )


def _room(setting: Setting, nodes: Nodes) -> int:
    """Return how many devices each of these nodes can surely take: what others attached takes a slot as well."""
    names = nodes.names()
    taken = [one.count for fabric in setting.fabrics for one in fabric.foreign if one.node in names]
    return max(1, nodes.slots - max(taken, default=0))


def _free(setting: Setting) -> Iterator[int]:
    """Return how many devices of each model every node of a fabric can surely be given."""
    for fabric in setting.fabrics:
        for model in setting.policy.models:
            count = sum(one.count for one in fabric.batches if one.model == model.cdi_model_name)
            others = sum(one.count for one in fabric.foreign if one.model == model.cdi_model_name)
            yield max(1, count - others - model.spares)


def _resources(setting: Setting) -> Iterator[str]:
    for fabric in setting.fabrics:
        for model in setting.policy.models:
            slots = fabric.traits.chooses_device
            for number in range(3):
                name = (
                    naming.slot(fabric.name, model, number)
                    if slots
                    else naming.device(fabric.name, model, PhysicalID(f"{number:04d}"))
                )
                yield naming.resource(fabric.name, name)


Draw = Callable[[random.Random, Stage, float], AnyHardship]


def troubles(dice: random.Random, stage: Stage, until: float, wanted: int = 0) -> tuple[AnyHardship, ...]:
    """Return what goes wrong by chance, all of it over by then; so much of it, if so much is wanted."""
    drawn = []
    left_out = (*(VENDORS_ONLY if stage.binds else OURS_ONLY), *(() if stage.fenced else FENCED_ONLY))
    table = [row for row in TABLE if row[0] not in left_out]
    count = dice.randint(TROUBLES_MIN, TROUBLES_MAX)
    for _ in range(wanted or count):
        make = dice.choices([one for one, _ in table], [weight for _, weight in table])[0]
        drawn.append(make(dice, stage, round(dice.uniform(0.02, 0.85) * until, 1)))
    return tuple(drawn)


def _span(dice: random.Random) -> float:
    return round(dice.choice((5.0, 20.0, 60.0, 150.0)) * dice.uniform(0.5, 1.5), 1)


def _kill(dice: random.Random, stage: Stage, at: float) -> AnyHardship:
    del stage
    return trouble.Kill(
        at=at,
        replica=dice.randint(0, 1),
        calls=dice.choice((0, 0, 1, 2, 3, 5, 8, 13)),
        effect=dice.random() < 0.5,
        down=round(dice.choice((0.1, 1.0, 20.0, 120.0)) * dice.uniform(0.5, 1.5), 1),
        stale=dice.choice((0, 5, 30, 200)),
    )


def _pause(dice: random.Random, stage: Stage, at: float) -> AnyHardship:
    del stage
    return trouble.Pause(at=at, replica=dice.randint(0, 1), seconds=_span(dice))


def _jump(dice: random.Random, stage: Stage, at: float) -> AnyHardship:
    del stage
    by = dice.choice((-600.0, -60.0, -5.0, 5.0, 60.0, 600.0))
    return trouble.Jump(at=at, replica=dice.randint(0, 1), by=by, seconds=_span(dice))


def _restart(dice: random.Random, stage: Stage, at: float) -> AnyHardship:
    del stage
    return trouble.Restart(
        at=at, part=dice.choice(("controllers", "plugins", "plugins", "kubelets", "scheduler"))
    )


def _storm(dice: random.Random, stage: Stage, at: float) -> AnyHardship:
    program = dice.choice(OUR_PROGRAMS if dice.random() < 0.7 else PROGRAMS)
    likely, mishap = dice.choice((0.1, 0.3, 0.7)), dice.choice(list(Mishap))
    # What a scheduler gave away before it heard of a taint must not take effect after `taintSeconds`: nobody can tell.
    if program == "scheduler" and not stage.binds and mishap is Mishap.LATE:
        mishap = Mishap.AFTER
    return trouble.Storm(at=at, program=program, mishap=mishap, likely=likely, seconds=_span(dice))


def _deafen(dice: random.Random, stage: Stage, at: float) -> AnyHardship:
    dropped = dice.random() < 0.5
    program, kind = dice.choice(PROGRAMS), dice.choice(KINDS)
    # Not to taints: `taintSeconds` says how soon a scheduler hears of them, and nothing tells otherwise.
    if program == "scheduler" and not stage.binds:
        kind = kind or "Pod"
    return trouble.Deafen(at=at, program=program, kind=kind, seconds=_span(dice), dropped=dropped)


def _noise(dice: random.Random, stage: Stage, at: float) -> AnyHardship:
    fates = [
        Fate(error="503 Service Unavailable"),
        Fate(error="409 in progress"),
        Fate(error="401 the token has expired"),
        Fate(slow=Seconds(dice.uniform(1.0, 90.0))),
        Fate(slow=NEVER),
        Fate(lost=True),
        Fate(lost=True, slow=Seconds(dice.uniform(1.0, 30.0))),
        Fate(late=Seconds(dice.uniform(0.5, 40.0))),
        Fate(again=Seconds(dice.uniform(0.0, 30.0))),
        Fate(wrong=True),
    ]
    return trouble.Noise(
        at=at,
        fabric=dice.choice(stage.fabrics),
        fate=dice.choice(fates),
        likely=dice.choice((0.2, 0.5, 1.0)),
        seconds=_span(dice),
    )


def _stall(dice: random.Random, stage: Stage, at: float) -> AnyHardship:
    return trouble.Stall(at=at, fabric=dice.choice(stage.fabrics), seconds=_span(dice))


def _refuse(dice: random.Random, stage: Stage, at: float) -> AnyHardship:
    fabric = dice.choice(stage.fabrics)
    devices = tuple(device for one, device in stage.devices if one == fabric)
    return trouble.Refuse(
        at=at,
        fabric=fabric,
        attach=dice.choice((0.0, 0.3, 1.0)),
        detach=dice.choice((0.0, 0.3, 1.0)),
        devices=tuple(dice.sample(devices, min(len(devices), dice.randint(0, 2)))),
        nodes=(dice.choice(stage.nodes),) if dice.random() < 0.3 else (),
        seconds=_span(dice),
    )


def _ail(dice: random.Random, stage: Stage, at: float) -> AnyHardship:
    fabric, device = dice.choice(stage.devices)
    return trouble.Ail(at=at, fabric=fabric, device=device, seconds=_span(dice))


def _forget(dice: random.Random, stage: Stage, at: float) -> AnyHardship:
    fabric = dice.choice(stage.fabrics)
    devices = [device for one, device in stage.devices if one == fabric]
    forgotten = tuple(sorted(dice.sample(devices, dice.randint(1, len(devices)))))
    return trouble.Forget(at=at, fabric=fabric, devices=forgotten, seconds=_span(dice))


def _vanish(dice: random.Random, stage: Stage, at: float) -> AnyHardship:
    fabric, device = dice.choice(stage.devices)
    return trouble.Vanish(at=at, fabric=fabric, device=device)


def _meddle(dice: random.Random, stage: Stage, at: float) -> AnyHardship:
    fabric, device = dice.choice(stage.devices)
    node = dice.choice([one for one in stage.nodes if stage.homes[one] == fabric])
    return trouble.Meddle(at=at, fabric=fabric, device=device, node=node, seconds=_span(dice))


def _borrow(dice: random.Random, stage: Stage, at: float) -> AnyHardship:
    return trouble.Borrow(
        at=at, fabric=dice.choice(stage.fabrics), count=dice.randint(1, 3), seconds=_span(dice)
    )


def _reboot(dice: random.Random, stage: Stage, at: float) -> AnyHardship:
    return trouble.Reboot(at=at, node=dice.choice(stage.nodes), seconds=_span(dice))


def _blind(dice: random.Random, stage: Stage, at: float) -> AnyHardship:
    return trouble.Blind(at=at, node=dice.choice(stage.nodes), seconds=_span(dice))


def _cling(dice: random.Random, stage: Stage, at: float) -> AnyHardship:
    return trouble.Cling(at=at, node=dice.choice(stage.nodes), seconds=_span(dice))


def _discard(dice: random.Random, stage: Stage, at: float) -> AnyHardship:
    return trouble.Discard(at=at, node=dice.choice(stage.nodes))


def _outdate(dice: random.Random, stage: Stage, at: float) -> AnyHardship:
    return trouble.Outdate(at=at, fabric=dice.choice(stage.fabrics), seconds=_span(dice))


def _dud(dice: random.Random, stage: Stage, at: float) -> AnyHardship:
    fabric, device = dice.choice(stage.devices)
    return trouble.Dud(at=at, fabric=fabric, device=device, seconds=_span(dice))


def _swap(dice: random.Random, stage: Stage, at: float) -> AnyHardship:
    fabric = dice.choice(stage.fabrics)
    node, other = dice.sample([one for one in stage.nodes if stage.homes[one] == fabric], 2)
    return trouble.Swap(at=at, node=node, other=other, seconds=_span(dice))


def _wipe(dice: random.Random, stage: Stage, at: float) -> AnyHardship:
    return trouble.Wipe(at=at, node=dice.choice(stage.nodes), seconds=_span(dice))


def _drain(dice: random.Random, stage: Stage, at: float) -> AnyHardship:
    return trouble.Drain(at=at, node=dice.choice(stage.nodes), seconds=_span(dice))


def _mute(dice: random.Random, stage: Stage, at: float) -> AnyHardship:
    return trouble.Mute(at=at, node=dice.choice(stage.nodes), seconds=_span(dice))


def _damage(dice: random.Random, stage: Stage, at: float) -> AnyHardship:
    return trouble.Damage(at=at, node=dice.choice(stage.nodes))


def _replace(dice: random.Random, stage: Stage, at: float) -> AnyHardship:
    node = dice.choice(stage.nodes)
    return trouble.Replace(at=at, node=node, by=NodeName(f"{node}-{int(at)}"))


def _restore(dice: random.Random, stage: Stage, at: float) -> AnyHardship:
    del stage
    return trouble.Restore(at=at, seconds=_span(dice))


TABLE: Final[tuple[tuple[Draw, int], ...]] = (
    (_kill, 20),
    (_pause, 8),
    (_restart, 10),
    (_storm, 20),
    (_deafen, 12),
    (_noise, 16),
    (_stall, 4),
    (_refuse, 6),
    (_ail, 3),
    (_forget, 3),
    (_vanish, 2),
    (_meddle, 2),
    (_borrow, 4),
    (_reboot, 5),
    (_blind, 3),
    (_cling, 3),
    (_mute, 3),
    (_damage, 3),
    (_replace, 6),
    (_discard, 3),
    (_outdate, 3),
    (_dud, 3),
    (_swap, 2),
    (_wipe, 3),
    (_jump, 4),
    (_drain, 4),
    (_restore, 4),
)
"""Every trouble, and how often it comes beside the others."""
VENDORS_ONLY: Final = (_wipe,)
"""What cannot happen where all devices are our driver's."""
FENCED_ONLY: Final = (_restore,)
"""What is not drawn where a manager knows no order ids: an order of the past would detach what came since."""
OURS_ONLY: Final = (_swap, _restore)
"""What is not drawn for other drivers: they offer whatever comes to their node, whoever it is for."""
