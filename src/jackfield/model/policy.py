"""All that an operator may choose, and the limits of everything.

Knows defaults and their meaning. Must not know how a choice is carried out.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase

import msgspec

from jackfield.model.host import Identity
from jackfield.model.names import FabricName, ModelName, NodeName, PhysicalID, Seconds

DRIVER = "fabric.jackfield.dev"
"""Our DRA driver. A model under this name is handed over by `bind`, any other by `reschedule`."""

LOCAL_DRIVER = "node.jackfield.dev"
"""The DRA driver of devices that a node has of its own. No fabric has them, so nothing is attached for a claim."""

READY = "FabricDeviceReady"
RESCHEDULE = "FabricDeviceReschedule"
FAILED = "FabricDeviceFailed"
ADMITTED = "FabricDeviceAdmitted"
"""A condition of a claim whose namespace has a quota: it is within it. Nothing is ordered for a claim before."""

SLICE_DEVICES_MAX = 64
CLAIM_DEVICES_MAX = 32


class DeviceModel(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """A model of device, as an entry of CoHDI's `device-info` describes it."""

    index: int
    """The number by which other entries refer to this one."""
    cdi_model_name: ModelName
    """What the fabric manager calls the model."""
    k8s_device_name: str
    """What its devices' names begin with, and the node label that says there is room."""
    driver_name: str = DRIVER
    """The DRA driver its devices are published under; ours means `bind`, any other `reschedule`."""
    dra_attributes: Mapping[str, str] = {}
    """Attributes that every device of the model carries, such as the vendor's own."""
    cannot_coexist_with: tuple[int, ...] = ()
    """The `index` of every model that must not be attached to the same node."""
    type: str = "gpu"
    """What a ComposabilityRequest calls it: gpu, cxlmemory, or any other word."""
    spares: int = 0
    """Idle devices kept attached, over all nodes of a fabric."""

    @property
    def binds(self) -> bool:
        """Whether a claim keeps its device when it is attached (else it goes round again)."""
        return self.driver_name == DRIVER


class NodeGroup(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Nodes that can be added, and what one of them would have."""

    name: str
    """What the group is called; its nodes carry it as a label."""
    capacity: Mapping[str, str] = {}
    """What a node of the group has, as in the status of a Node."""
    labels: Mapping[str, str] = {}
    """Which labels a node of the group has."""
    max_size: int = 10
    """How many nodes the group may have."""


class NamespaceRule(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What namespaces of a name may have of the pool, and who of them comes first."""

    name: str
    """The namespace; `*` stands for any letters. The first entry that fits a namespace is the one that counts."""
    quota: Mapping[str, int] = {}
    """How many devices each such namespace may have at once: by the manager's name of a model, `*` for all together."""
    priority: int = 0
    """Where room or time is short, claims of higher priority are served first; of equal priority the oldest."""


class Foreign(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Devices that somebody else attached to our nodes and that may be detached: those that agree with all it names."""

    device: PhysicalID = PhysicalID("")
    """The device, as its manager calls it."""
    model: ModelName = ModelName("")
    """The model, as its manager calls it; one of `models`."""
    node: NodeName = NodeName("")
    """The node that it is attached to."""
    fabric: FabricName = FabricName("")
    """Alone it names nothing: two fabrics may call different devices alike, so it only narrows the others."""


UNRULED = NamespaceRule("*")


class LocalDevices(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Devices that nodes have of their own and that are published: those that agree with all it names."""

    name: str
    """What their names in a slice begin with."""
    vendor: str = ""
    """PCI's number of the vendor, four digits such as `10de`."""
    device: str = ""
    """PCI's number of the device, four digits."""
    pci_class: str = ""
    """How its class begins, such as `0302` for a 3D controller, `0200` for Ethernet, `0502` for CXL memory."""


class Policy(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Everything an operator may choose. Durations are in seconds."""

    models: tuple[DeviceModel, ...] = ()
    """The models of device that are published; what is not listed is left alone."""
    node_groups: tuple[NodeGroup, ...] = ()
    """Nodes that can be added when no attached device would help."""
    namespaces: tuple[NamespaceRule, ...] = ()
    """Quotas and priorities of namespaces."""
    label_prefix: str = "cohdi.io"
    """What the labels of nodes begin with."""

    # How long things stay as they are.
    hold_seconds: Seconds = Seconds(600.0)
    """How long an idle device stays attached."""
    blame_seconds: Seconds = Seconds(1800.0)
    """How long a failed pair of device and node is not tried again."""

    # How long things may take.
    binding_timeout_seconds: Seconds = Seconds(600.0)
    """The scheduler's own time-out; a claim is not kept waiting beyond it."""
    binding_margin_seconds: Seconds = Seconds(15.0)
    """What must be left of that time-out when a device is attached: to be seen, and for the scheduler to look."""
    attach_seconds: Seconds = Seconds(60.0)
    """How long an attach takes, until it has been measured."""
    quota_wait_seconds: Seconds = Seconds(30.0)
    """How long a claim beyond its namespace's quota waits where it is before it is sent round."""
    attach_deadline_seconds: Seconds = Seconds(300.0)
    """After this an order is given up."""
    heartbeat_seconds: Seconds = Seconds(40.0)
    """A node whose plugin has been silent for longer is not eligible."""
    taint_seconds: Seconds = Seconds(10.0)
    """In `reschedule`: how long after its taint a vendor's device may still be given away by an old cache."""
    poll_seconds: Seconds = Seconds(1.0)
    """How often an order under way is asked about."""
    inventory_seconds: Seconds = Seconds(30.0)
    """How often a manager is asked what it has."""
    missing_seconds: Seconds = Seconds(90.0)
    """How long a manager may fail to show an attached device where it should be before it counts as gone."""
    resync_seconds: Seconds = Seconds(300.0)
    """A safety net: every key is looked at again after this time, should an event have been lost."""

    # How much is allowed.
    per_node_max: int = 50
    """How many devices of a model a node may have attached; a label of the node may say otherwise."""
    per_node_min: int = 0
    """How many devices of a model stay attached to a node, idle or not; a label of the node may say otherwise."""
    claim_attempts_max: int = 5
    """After so many failed attempts a claim is told to stop."""
    handover_seconds: Seconds = Seconds(60.0)
    """How long, in `reschedule`, a device waits for the claim it was attached for."""
    taint_rules: bool = True
    """Whether the API has DeviceTaintRules. Without them a vendor's device may be given away while it leaves."""
    paused: bool = False
    """Nothing is attached or detached; conditions that are true are still written."""
    observe_only: bool = False
    """Decisions are made and told, nothing is written."""
    fabrics_paused: tuple[FabricName, ...] = ()
    """As `paused`, for these fabrics alone."""
    identities: tuple[Identity, ...] = (Identity.UUID, Identity.SERIAL, Identity.ADDRESS)
    """What devices on a node are compared by with what a manager calls them, in this order."""
    local_devices: tuple[LocalDevices, ...] = ()
    """Devices of the nodes' own that are published: those that no fabric has attached."""
    detach_foreign: tuple[Foreign, ...] = ()
    """What may be detached though somebody else attached it; nothing else that is not ours is ever touched."""

    def model(self, name: ModelName) -> DeviceModel | None:
        """Return what is known of the model, or None where the operator did not list it."""
        return next((one for one in self.models if one.cdi_model_name == name), None)

    def model_of_device(self, k8s_device_name: str) -> DeviceModel | None:
        """Return the model whose devices carry this name, or None."""
        return next((one for one in self.models if one.k8s_device_name == k8s_device_name), None)

    def namespace(self, name: str) -> NamespaceRule:
        """Return the first rule that fits a namespace; one without limits where none does."""
        return next((one for one in self.namespaces if fnmatchcase(name, one.name)), UNRULED)

    def fabric_label(self) -> str:
        """Return the node label that names the node's fabric."""
        return f"{self.label_prefix}/fabric"

    def room_label(self, model: DeviceModel) -> str:
        """Return the node label that says the node can take one more of this model."""
        return f"{self.label_prefix}/{model.k8s_device_name}"
