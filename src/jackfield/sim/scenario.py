"""A scenario: a stage, what happens on it, and what must be true in the end. Decodable from YAML.

Knows values only, and what is wrong with them. Must not know how they come to life.
"""

from pathlib import Path

import msgspec
import yaml

from jackfield.core import policies
from jackfield.model.composition import AllocationPolicy, OtherSpec
from jackfield.model.names import ModelName, NodeName, PhysicalID, Seconds
from jackfield.model.policy import Policy
from jackfield.sim.chance import Distribution, Exponential
from jackfield.sim.setting import Setting
from jackfield.sim.step import Count, Duration, Step
from jackfield.sim.trouble import AnyTrouble


class BadScenarioError(ValueError):
    """A scenario that cannot be played; the message says what to correct."""


class Ask(Step, frozen=True, kw_only=True):
    """What devices somebody asks for, beside how many."""

    device_class: str = "gpu"
    selector: str = ""
    """A CEL expression beyond the class."""
    prefer: str = ""
    """Another that is tried first: what fits it, and else whatever fits without."""
    same: str = ""
    """An attribute that all devices must have in common, such as gpu.example.com/productName."""


class CreatePod(Ask, frozen=True, kw_only=True, tag="pod"):
    """Somebody creates pods that ask for devices, or for none."""

    name: str
    namespace: str = "default"
    count: Count = 1
    """More than one are called name-1, name-2, …"""
    devices: Count = 0
    all: bool = False
    """Ask for all devices instead of a number."""
    admin: bool = False
    claim: str = ""
    """Use this claim, made by a `claim` step, instead of one of the pod's own."""
    cpu: str = "1"
    memory: str = "1Gi"
    node: NodeName = NodeName("")
    """Only there."""
    run: Duration = 0.0
    """How long it runs; 0 for ever."""


class CreateClaim(Ask, frozen=True, kw_only=True, tag="claim"):
    """Somebody creates a claim that pods can share."""

    name: str
    devices: Count = 1


class CreateWorkload(Step, frozen=True, kw_only=True, tag="workload"):
    """Pods that come at random and end by themselves."""

    name: str = "job"
    count: Count = 100
    every: Distribution = Exponential(Seconds(3.6))
    run: Distribution = Exponential(Seconds(120.0))
    devices: Count = 1
    device_class: str = "gpu"


class CreateRequest(Step, frozen=True, kw_only=True, tag="request"):
    """Somebody asks for devices by hand, with a ComposabilityRequest; again to change it."""

    name: str
    model: ModelName
    size: Count = 1
    type: str = "gpu"
    policy: AllocationPolicy = AllocationPolicy.SAMENODE
    node: NodeName = NodeName("")
    other_spec: OtherSpec | None = None
    force_detach: bool = False


class Delete(Step, frozen=True, kw_only=True, tag="delete"):
    """Somebody deletes an object: pod/NAMESPACE/NAME, claim/NAMESPACE/NAME, request/NAME, resource/NAME, node/NAME."""

    object: str
    force: bool = False
    """A pod without grace: its container may live on."""


class Cordon(Step, frozen=True, kw_only=True, tag="cordon"):
    """A node takes no more pods, or takes them again."""

    node: NodeName
    undo: bool = False


class Lose(Step, frozen=True, kw_only=True, tag="lose"):
    """A node stops, or comes back."""

    node: NodeName
    undo: bool = False


class Silence(Step, frozen=True, kw_only=True, tag="silence"):
    """A node's plugin gives no sign of life any more, or does again."""

    node: NodeName
    undo: bool = False


class Break(Step, frozen=True, kw_only=True, tag="break"):
    """Attaches of a device, or to a node, fail from now on, or work again."""

    device: PhysicalID = PhysicalID("")
    node: NodeName = NodeName("")
    undo: bool = False


class Take(Step, frozen=True, kw_only=True, tag="take"):
    """Another cluster takes devices out of the pool, or returns them."""

    model: ModelName
    count: Count = 1


class Move(Step, frozen=True, kw_only=True, tag="move"):
    """Somebody attaches a device to a node by hand at the manager, or pulls it where no node is named."""

    device: PhysicalID
    node: NodeName = NodeName("")


class Hide(Step, frozen=True, kw_only=True, tag="hide"):
    """The managers forget to show these devices, and only these, though nothing has happened to them."""

    devices: tuple[PhysicalID, ...] = ()


class Sicken(Step, frozen=True, kw_only=True, tag="sicken"):
    """A device falls ill, or recovers."""

    device: PhysicalID
    undo: bool = False


class ChangePolicy(Step, frozen=True, kw_only=True, tag="policy"):
    """The operator changes the policy's file, and our controllers take it over while they run."""

    policy: Policy


AnyStep = (
    CreatePod
    | CreateClaim
    | CreateWorkload
    | CreateRequest
    | Delete
    | Cordon
    | Lose
    | Silence
    | Break
    | Take
    | Move
    | Hide
    | Sicken
    | ChangePolicy
    | AnyTrouble
)


class Expect(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What must be true in the end; what is not named is not looked at."""

    pods: dict[str, str] = {}
    """Phase by name; * at the end of a name stands for the rest."""
    attaches: int | None = None
    detaches: int | None = None
    nodes_added: int | None = None
    attaches_per_pod_max: float | None = None
    wasted_max: int | None = None
    """Attaches that served nobody."""
    pool_full: bool = False
    """All devices are back in the pool."""
    requests: dict[str, str] = {}
    """State by name of a ComposabilityRequest."""
    conditions: dict[str, str] = {}
    """Words that must have been said about an object: part of a line of its story, or of what it waits for."""


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A play."""

    setting: Setting
    play: tuple[AnyStep, ...] = ()
    before: tuple[CreatePod, ...] = ()
    """Pods that run already when the curtain rises; the summary does not count them."""
    until: Duration = 600.0
    """How long it lasts at the most."""
    settle: Duration = 0.0
    """It ends earlier if nothing has happened for so long; 0 plays to the end."""
    title: str = ""
    expect: Expect = Expect()


def read(path: Path) -> Scenario:
    """Read a scenario. Raises BadScenarioError naming file and field."""
    try:
        text = path.read_text()
    except OSError as error:
        raise BadScenarioError(f"{path}: cannot be read: {error.strerror}") from error
    return parse(text, str(path))


def parse(text: str, source: str) -> Scenario:
    """Make a scenario of YAML text. Raises BadScenarioError naming source and field."""
    try:
        raw = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BadScenarioError(f"{source}: not YAML: {error}") from error
    try:
        scenario = msgspec.convert(raw, Scenario)
    except msgspec.ValidationError as error:
        raise BadScenarioError(f"{source}: {_said(error)}") from error
    faults = (
        *_faults(scenario),
        *(f"setting.policy.{one}" for one in policies.faults(scenario.setting.policy)),
        *(
            f"play[{place}].policy.{one}"
            for place, step in enumerate(scenario.play)
            if isinstance(step, ChangePolicy)
            for one in policies.faults(step.policy)
        ),
    )
    if faults:
        raise BadScenarioError("\n".join(f"{source}: {fault}" for fault in faults))
    return scenario


def _said(error: msgspec.ValidationError) -> str:
    message, _, path = str(error).partition(" - at `$")
    return f"{path.rstrip('`').lstrip('.') or 'the whole file'}: {message}"


def _faults(scenario: Scenario) -> tuple[str, ...]:
    fabrics = [one.name for one in scenario.setting.fabrics]
    faults = [
        f"setting.nodes[{place}].fabric: there is no fabric {one.fabric!r}"
        for place, one in enumerate(scenario.setting.nodes)
        if one.fabric and one.fabric not in fabrics
    ]
    nodes = [name for one in scenario.setting.nodes for name in one.names()]
    faults += [
        f"setting.nodes: two nodes are called {name!r}"
        for name in dict.fromkeys(nodes)
        if nodes.count(name) > 1
    ]
    faults += [
        f"{part}[{place}]: `admin` and `prefer` exclude each other; admin access is to what one asks for exactly"
        for part, steps in (("before", scenario.before), ("play", scenario.play))
        for place, step in enumerate(steps)
        if isinstance(step, CreatePod) and step.admin and step.prefer
    ]
    known = [one.cdi_model_name for one in scenario.setting.policy.models]
    faults += [
        f"setting.fabrics[{place}].batches: model {batch.model!r} is not among setting.policy.models"
        for place, fabric in enumerate(scenario.setting.fabrics)
        for batch in fabric.batches
        if batch.model not in known
    ]
    return tuple(faults)
