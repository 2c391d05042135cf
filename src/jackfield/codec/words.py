"""What the definitions say of CoHDI's kinds beyond their types: descriptions, limits and rules, field by field.

Knows CoHDI's schema and webhook, where ours is wider, and what of an object must never change. Must not know how a
schema is put together.
"""

from collections.abc import Mapping

from jackfield.codec.schema import Field, Table, Words, rule
from jackfield.codec.wire import RawValue
from jackfield.model.composition import (
    AllocationPolicy,
    ChildStatus,
    ComposabilityRequestSpec,
    ComposabilityRequestStatus,
    ComposableResourceSpec,
    ComposableResourceStatus,
    OtherSpec,
    ResourceState,
    ScalarResource,
)
from jackfield.model.meta import Condition

NODE_MAX = 253
MODEL_MAX = 253
LABEL_MAX = 63

_TYPE: Mapping[str, RawValue] = {"pattern": "^[a-z][a-z0-9]*$", "maxLength": LABEL_MAX}
"""CoHDI knows gpu and cxlmemory; a policy may name others."""
_NOT_NEGATIVE: Mapping[str, RawValue] = {"minimum": 0}
_CONDITIONS: Mapping[str, RawValue] = {
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
}


def _constant(what: str, **limits: RawValue) -> Mapping[str, RawValue]:
    fixed = rule("self == oldSelf", f"{what} of a resource never changes: delete it and create another")
    return {**limits, "x-kubernetes-validations": [fixed]}


_STATES = tuple(ResourceState)
_EARLIER = {state: ", ".join(f"'{one}'" for one in _STATES[:number]) for number, state in enumerate(_STATES)}
_FORWARD = rule(
    " && ".join(
        f"(oldSelf != '{state}' || !(self in [{earlier}]))" for state, earlier in _EARLIER.items() if earlier
    ),
    "a resource never goes back to an earlier state",
)
_SPREAD = rule(
    "!has(self.target_node) || self.target_node == '' || "
    f"!has(self.allocation_policy) || self.allocation_policy != '{AllocationPolicy.DIFFERENTNODE}'",
    f"allocation_policy {AllocationPolicy.DIFFERENTNODE} spreads over nodes and cannot have a target_node",
)

WORDS: Table = {
    OtherSpec: Words(
        "What else a node must have to be chosen.",
        {
            "milli_cpu": Field("Thousandths of a CPU that the node has.", limits=_NOT_NEGATIVE),
            "memory": Field("Bytes of memory that the node has.", limits=_NOT_NEGATIVE),
            "ephemeral_storage": Field("Bytes of ephemeral storage that the node has.", limits=_NOT_NEGATIVE),
            "allowed_pod_number": Field("How many pods the node takes.", limits=_NOT_NEGATIVE),
        },
    ),
    ScalarResource: Words(
        "So many devices of one model.",
        {
            "type": Field(
                "The type of device: gpu, cxlmemory, or another word.", required=True, limits=_TYPE
            ),
            "model": Field(
                "The model of device, as the fabric manager names it.",
                required=True,
                limits={"minLength": 1, "maxLength": MODEL_MAX},
            ),
            "size": Field("How many devices; 0 gives all of them back.", required=True, limits=_NOT_NEGATIVE),
            "force_detach": Field("Detach devices even while something on the node has them open."),
            "allocation_policy": Field(
                "How the devices spread over nodes where no target_node is named: samenode (all on one), "
                "differentnode (each on another), roundrobin (in turn).",
                limits={
                    "enum": [str(one) for one in AllocationPolicy],
                    "default": str(AllocationPolicy.SAMENODE),
                },
            ),
            "target_node": Field(
                "The node that gets the devices; one is chosen if it is empty.",
                limits={"maxLength": NODE_MAX},
            ),
            "other_spec": Field("What else a node must have to be chosen."),
        },
        limits={"x-kubernetes-validations": [_SPREAD]},
    ),
    ComposabilityRequestSpec: Words(
        "What is wanted.", {"resource": Field("So many devices of one model.", required=True)}
    ),
    ChildStatus: Words(
        "A ComposableResource as its request shows it.",
        {
            "state": Field("The state of the ComposableResource.", required=True),
            "device_id": Field("The device as the node knows it (a GPU's UUID)."),
            "cdi_device_id": Field("The device as the fabric manager knows it."),
            "node_name": Field("The node that the device is for."),
            "error": Field("What went wrong last."),
        },
    ),
    ComposabilityRequestStatus: Words(
        "What became of the request.",
        {
            "state": Field(
                "How far the request has come: NodeAllocating, Updating, Running, Cleaning, Deleting; empty at first.",
                required=True,
            ),
            "error": Field("What went wrong last."),
            "resources": Field("The request's ComposableResources by their names."),
            "scalar_resource": Field("The spec that was last acted on.", loose=True),
            "conditions": Field("Observations about the request.", limits=_CONDITIONS),
        },
    ),
    ComposableResourceSpec: Words(
        "One device of a model for one node.",
        {
            "type": Field(
                "The type of device: gpu, cxlmemory, or another word.",
                required=True,
                limits=_constant("the type", **_TYPE),
            ),
            "model": Field(
                "The model of device, as the fabric manager names it.",
                required=True,
                limits=_constant("the model", maxLength=MODEL_MAX),
            ),
            "target_node": Field(
                "The node that the device is attached to.",
                required=True,
                limits=_constant("the node", maxLength=NODE_MAX),
            ),
            "force_detach": Field("Detach the device even while something on the node has it open."),
        },
    ),
    ComposableResourceStatus: Words(
        "How far the device has come.",
        {
            "state": Field(
                "How far the device has come: Attaching, Online, Detaching, Deleting; empty at first. Never goes back.",
                required=True,
                limits={"x-kubernetes-validations": [_FORWARD]},
            ),
            "error": Field("What went wrong last."),
            "device_id": Field("The device as the node knows it (a GPU's UUID)."),
            "cdi_device_id": Field("The device as the fabric manager knows it."),
            "conditions": Field(
                "Observations about the device. Visible: the node sees it; Released: the node has let it go.",
                limits=_CONDITIONS,
            ),
        },
    ),
    Condition: Words(
        "One observation.",
        {
            "type": Field(
                "What is observed.",
                required=True,
                limits={
                    "maxLength": 316,
                    "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
                    r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
                },
            ),
            "status": Field(
                "Whether it holds.", required=True, limits={"enum": ["True", "False", "Unknown"]}
            ),
            "reason": Field(
                "Why, in one word for programs.",
                required=True,
                limits={
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                },
            ),
            "message": Field("Why, in words for people.", required=True, limits={"maxLength": 32768}),
            "last_transition_time": Field(
                "When the status last changed.", required=True, limits={"format": "date-time"}
            ),
            "observed_generation": Field("The metadata.generation that was looked at.", limits=_NOT_NEGATIVE),
        },
    ),
}
