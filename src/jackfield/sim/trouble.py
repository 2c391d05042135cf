"""Troubles: steps of a scenario in which something goes wrong, and by itself comes to an end. Decodable from YAML.

Knows values only. Must not know how they come to life.
"""

from typing import Literal

from jackfield.model.names import FabricName, NodeName, PhysicalID
from jackfield.sim.fabric import Fate
from jackfield.sim.step import Count, Duration, Likelihood, Step
from jackfield.sim.weather import Mishap

# --- our processes, and the others


class Kill(Step, frozen=True, kw_only=True, tag="kill"):
    """A replica of our controllers dies at one of its next calls, and is started again."""

    replica: Count = 0
    calls: Count = 0
    """So many calls to the API or to a manager go well before."""
    effect: bool = False
    """Whether the last call takes effect: then only its answer finds nobody."""
    down: Duration = 1.0
    """How long nobody starts it again."""
    stale: Count = 0
    """How many versions old the first list of its next life is."""


class Pause(Step, frozen=True, kw_only=True, tag="pause"):
    """A replica of our controllers stands still, as one that gets no processor, and goes on."""

    replica: Count = 0
    seconds: Duration = 60.0


class Jump(Step, frozen=True, kw_only=True, tag="jump"):
    """The wall's clock of a replica is wrong for a while."""

    replica: Count = 0
    by: float = 60.0
    seconds: Duration = 60.0


class Restart(Step, frozen=True, kw_only=True, tag="restart"):
    """A part is killed where it stands and started again."""

    part: Literal["controllers", "plugins", "kubelets", "scheduler"] = "controllers"
    times: Count = 1
    every: Duration = 1.0
    """Seconds between one time and the next."""


# --- the way to the API


class Storm(Step, frozen=True, kw_only=True, tag="storm"):
    """For a while some of a program's calls to the API come to grief."""

    program: str
    mishap: Mishap
    likely: Likelihood = 0.3
    seconds: Duration = 60.0


class Deafen(Step, frozen=True, kw_only=True, tag="deafen"):
    """For a while a program hears of nothing that happens."""

    program: str
    kind: str = ""
    """The only kind of which it does not hear: ResourceClaim, Pod …; each has a watch of its own."""
    seconds: Duration = 30.0
    dropped: bool = False
    """Its watches break: afterwards it lists anew, and sees what happened in between as one."""


class Restore(Step, frozen=True, kw_only=True, tag="restore"):
    """Somebody makes a backup of the API's store, which is restored after a while: all that came since is forgotten.

    He restarts the control plane, and deletes the pods that were promised a device which is not there any more.
    """

    seconds: Duration = 60.0


# --- managers


class Noise(Step, frozen=True, kw_only=True, tag="noise"):
    """For a while some calls to a manager come to grief on the way."""

    fabric: FabricName = FabricName("")
    """All, if empty."""
    fate: Fate = Fate()
    likely: Likelihood = 0.3
    seconds: Duration = 60.0


class Stall(Step, frozen=True, kw_only=True, tag="stall"):
    """A manager takes orders and does not carry them out, for a while."""

    fabric: FabricName
    seconds: Duration = 60.0


class Refuse(Step, frozen=True, kw_only=True, tag="refuse"):
    """A manager cannot do what it is asked, for a while: quotas, dead links, devices that do not come off."""

    fabric: FabricName
    attach: Likelihood = 0.0
    detach: Likelihood = 0.0
    devices: tuple[PhysicalID, ...] = ()
    nodes: tuple[NodeName, ...] = ()
    seconds: Duration = 60.0


class Vanish(Step, frozen=True, kw_only=True, tag="vanish"):
    """Somebody pulls a device, wherever it is; it is in the pool again at once."""

    fabric: FabricName
    device: PhysicalID


class Meddle(Step, frozen=True, kw_only=True, tag="meddle"):
    """Somebody attaches a device to a node by hand, wherever it was, and returns it after a while."""

    fabric: FabricName
    device: PhysicalID
    node: NodeName
    seconds: Duration = 60.0


class Forget(Step, frozen=True, kw_only=True, tag="forget"):
    """A manager does not show some devices for a while, though nothing has happened to them."""

    fabric: FabricName
    devices: tuple[PhysicalID, ...] = ()
    seconds: Duration = 60.0


class Outdate(Step, frozen=True, kw_only=True, tag="outdate"):
    """A manager goes on showing what there was when this began, for a while."""

    fabric: FabricName
    seconds: Duration = 60.0


class Dud(Step, frozen=True, kw_only=True, tag="dud"):
    """The driver of a device does not start for a while, on whichever node the device comes to."""

    fabric: FabricName
    device: PhysicalID
    seconds: Duration = 60.0


class Ail(Step, frozen=True, kw_only=True, tag="ail"):
    """A device is ill for a while."""

    fabric: FabricName
    device: PhysicalID
    seconds: Duration = 60.0


class Borrow(Step, frozen=True, kw_only=True, tag="borrow"):
    """Another cluster takes devices out of the pool, and returns them after a while."""

    fabric: FabricName
    count: Count = 1
    seconds: Duration = 60.0


# --- nodes


class Reboot(Step, frozen=True, kw_only=True, tag="reboot"):
    """A node goes down and comes up again; its devices come into sight one by one."""

    node: NodeName
    seconds: Duration = 60.0


class Blind(Step, frozen=True, kw_only=True, tag="blind"):
    """A node sees nothing of what is attached to it from now on; after a while it does."""

    node: NodeName
    seconds: Duration = 60.0


class Cling(Step, frozen=True, kw_only=True, tag="cling"):
    """Somebody on a node has its devices open and does not let go, for a while."""

    node: NodeName
    seconds: Duration = 60.0


class Mute(Step, frozen=True, kw_only=True, tag="mute"):
    """A node's plugin gives no sign of life for a while."""

    node: NodeName
    seconds: Duration = 60.0


class Damage(Step, frozen=True, kw_only=True, tag="damage"):
    """A node's checkpoint is damaged, and its plugin started anew."""

    node: NodeName


class Drain(Step, frozen=True, kw_only=True, tag="drain"):
    """Somebody takes all pods off a node, which takes none for a while."""

    node: NodeName
    seconds: Duration = 60.0


class Discard(Step, frozen=True, kw_only=True, tag="discard"):
    """Somebody deletes the ComposableResources of a node by hand; each goes when nobody uses its device."""

    node: NodeName


class Swap(Step, frozen=True, kw_only=True, tag="swap"):
    """Two machines have each other's cables for a while: what a manager attaches to the one comes to the other."""

    node: NodeName
    other: NodeName
    seconds: Duration = 60.0


class Wipe(Step, frozen=True, kw_only=True, tag="wipe"):
    """A kubelet that starts deletes the slices of other drivers on its node; they publish anew after a while."""

    node: NodeName
    seconds: Duration = 10.0


class Replace(Step, frozen=True, kw_only=True, tag="replace"):
    """A node is gone for good, with what ran on it; one of another name comes in its place."""

    node: NodeName
    by: NodeName


# --- the end


class Calm(Step, frozen=True, kw_only=True, tag="calm"):
    """All troubles are over, whatever they are."""


ManagerTrouble = Noise | Stall | Refuse | Vanish | Meddle | Forget | Outdate | Dud | Ail | Borrow
NodeTrouble = Reboot | Blind | Cling | Mute | Damage | Drain | Discard | Swap | Wipe | Replace
AnyTrouble = Kill | Pause | Jump | Restart | Storm | Deafen | Restore | Calm | ManagerTrouble | NodeTrouble
