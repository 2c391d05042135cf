"""What a cluster's Kubernetes can do: the feature gates that matter to us, as far as they show.

Knows Kubernetes' names of gates and components. Must not know how they are found out, nor what follows from them.
"""

from enum import StrEnum

import msgspec


class Gate(StrEnum):
    """A feature gate, as Kubernetes names it."""

    BINDING_CONDITIONS = "DRADeviceBindingConditions"
    DEVICE_STATUS = "DRAResourceClaimDeviceStatus"
    PARTITIONABLE_DEVICES = "DRAPartitionableDevices"
    DEVICE_TAINTS = "DRADeviceTaints"
    TAINT_RULES = "DRADeviceTaintRules"


class Component(StrEnum):
    """A part of Kubernetes that reads the gate."""

    API_SERVER = "kube-apiserver"
    SCHEDULER = "kube-scheduler"
    CONTROLLER_MANAGER = "kube-controller-manager"


class Gates(msgspec.Struct, frozen=True):
    """What an API server was seen to support; another component's gates may differ."""

    kubernetes: str = ""
    """Its release, such as v1.36.4; empty where it does not say."""
    claims: bool = True
    """It serves resource.k8s.io/v1."""
    binding_conditions: bool = True
    """Entries keep their binding conditions, and claims the status of their devices."""
    per_device_node_selection: bool = True
    """Each entry of a slice may name nodes of its own."""
    device_taints: bool = True
    """Entries keep their taints."""
    taint_rules: bool = True
    """It serves DeviceTaintRules, in the version that we speak."""
