"""What is wrong with a policy, field by field, before anybody acts on it; and what keeps it from being taken over.

Knows the rules of CoHDI's device-info and of ours. Must not know where a policy was read.
"""

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from jackfield.core import naming
from jackfield.core.quota import ALL_MODELS
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposableResource
from jackfield.model.meta import Object
from jackfield.model.names import DeviceID
from jackfield.model.policy import DeviceModel, Policy

NAME_MAX = 50
DRIVER_MAX = 63
ATTRIBUTES_MAX = 32
VALUE_MAX = 64
INDEX_MAX = 10_000
FEW = 3
"""How many devices a sentence names."""
LOCAL_NAME_MAX = 40
"""The device's address comes behind it."""

_LABEL = re.compile("[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_NAMESPACE = re.compile("[a-z0-9*]([-a-z0-9*]*[a-z0-9*])?")
_PCI_NUMBER = re.compile("[0-9a-f]{4}")
_PCI_CLASS = re.compile("([0-9a-f]{2}){1,3}")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def faults(policy: Policy) -> tuple[str, ...]:
    """Return what must be corrected, each naming its field; nothing if the policy is sound."""
    return (
        *_models(policy),
        *_durations(policy),
        *_numbers(policy),
        *_namespaces(policy),
        *_identities(policy),
        *_local(policy),
        *_foreign(policy),
    )


def obstacles(old: Policy, new: Policy, objects: Iterable[Object]) -> tuple[str, ...]:
    """Return what keeps a policy from taking another's place while devices are attached or claimed; nothing if none.

    A model's devices have their names from it, and claims and resources hold them by these names: without it nobody
    would know what they are, and they would stay as they are for good. Everything else may change at any time.
    """
    leaving = tuple(one for one in old.models if _names(one) not in {_names(other) for other in new.models})
    users: dict[int, dict[DeviceID, None]] = {}
    for one in objects if leaving else ():
        for device in _devices(one):
            model = naming.model_of(device, old)
            if model is not None and model in leaving:
                users.setdefault(model.index, {})[device] = None
    return tuple(_obstacle(old, one, tuple(users[one.index])) for one in leaving if one.index in users)


def _names(model: DeviceModel) -> tuple[str, ...]:
    return model.cdi_model_name, model.k8s_device_name, model.driver_name


def _devices(one: Object) -> tuple[DeviceID, ...]:
    match one:
        case ResourceClaim():
            return tuple(result.id for result in one.results)
        case ComposableResource():
            return (one.device,) if one.device is not None else ()
        case _:
            return ()


def _obstacle(policy: Policy, model: DeviceModel, devices: tuple[DeviceID, ...]) -> str:
    few = ", ".join(sorted(one.device for one in devices)[:FEW])
    more = f" and {len(devices) - FEW} more" if len(devices) > FEW else ""
    return (
        f"models: {model.cdi_model_name} cannot be removed, nor get another k8s-device-name or driver-name, while its "
        f"devices are attached or claimed: {few}{more}; it is tried again until they are not. To have no more of them "
        f"given away: kubectl label nodes --all {policy.room_label(model)}-size-max=0"
    )


def _models(policy: Policy) -> Iterator[str]:
    for place, model in enumerate(policy.models):
        yield from (f"models[{place}].{fault}" for fault in _model(model, policy))
    for field in ("index", "cdi_model_name", "k8s_device_name"):
        values = [getattr(one, field) for one in policy.models]
        for value in dict.fromkeys(value for value in values if values.count(value) > 1):
            yield f"models: two have the {field.replace('_', '-')} {value!r}; each must have its own"


def _model(model: DeviceModel, policy: Policy) -> Iterator[str]:
    if not 0 <= model.index <= INDEX_MAX:
        yield f"index: {model.index} is not between 0 and {INDEX_MAX}"
    if not model.cdi_model_name:
        yield "cdi-model-name: must not be empty; it is the manager's own name for the model"
    if len(model.driver_name) > DRIVER_MAX or not _SUBDOMAIN.fullmatch(model.driver_name):
        yield f"driver-name: {model.driver_name!r} is not a DNS subdomain of at most {DRIVER_MAX} characters"
    if not model.type.isalnum():
        yield f"type: {model.type!r} is not a word such as gpu or cxlmemory"
    if model.spares < 0:
        yield f"spares: {model.spares} is negative"
    yield from _device_name(model.k8s_device_name, policy)
    yield from _attributes(model)
    yield from _neighbours(model, policy)


def _device_name(name: str, policy: Policy) -> Iterator[str]:
    if len(name) > NAME_MAX or not _LABEL.fullmatch(name):
        yield f"k8s-device-name: {name!r} is not a DNS label of at most {NAME_MAX} characters"
    for other in policy.models:
        if other.k8s_device_name.startswith(f"{name}-"):
            yield f"k8s-device-name: {name!r} begins {other.k8s_device_name!r}; devices could not be told apart"


def _attributes(model: DeviceModel) -> Iterator[str]:
    if len(model.dra_attributes) > ATTRIBUTES_MAX:
        yield f"dra-attributes: {len(model.dra_attributes)} are more than {ATTRIBUTES_MAX}"
    for key, value in model.dra_attributes.items():
        if len(value) > VALUE_MAX:
            yield f"dra-attributes[{key}]: {len(value)} characters are more than {VALUE_MAX}"


def _neighbours(model: DeviceModel, policy: Policy) -> Iterator[str]:
    known = [one.index for one in policy.models]
    for index in model.cannot_coexist_with:
        if index not in known:
            yield f"cannot-coexist-with: no model has the index {index}"


def _durations(policy: Policy) -> Iterator[str]:
    spelt = dict(zip(policy.__struct_fields__, policy.__struct_encode_fields__, strict=True))
    for field, name in spelt.items():
        if not field.endswith("_seconds") or getattr(policy, field) >= 0:
            continue
        what = "is negative" if getattr(policy, field) < 0 else "is no number"
        yield f"{name}: {getattr(policy, field):g} {what}"
    for field in ("poll_seconds", "inventory_seconds", "resync_seconds", "binding_timeout_seconds"):
        if getattr(policy, field) == 0:
            yield f"{spelt[field]}: must be more than 0"
    if 0 < policy.binding_timeout_seconds <= policy.binding_margin_seconds:
        yield "bindingMarginSeconds: must be less than bindingTimeoutSeconds, or nothing could ever be attached in time"


def _numbers(policy: Policy) -> Iterator[str]:
    if policy.per_node_min < 0 or policy.per_node_max < policy.per_node_min:
        yield f"perNodeMin, perNodeMax: {policy.per_node_min} and {policy.per_node_max} are no range"
    if policy.claim_attempts_max < 1:
        yield f"claimAttemptsMax: {policy.claim_attempts_max} is less than 1"
    if not _SUBDOMAIN.fullmatch(policy.label_prefix):
        yield f"labelPrefix: {policy.label_prefix!r} is not a DNS subdomain"
    for place, group in enumerate(policy.node_groups):
        if group.max_size < 0 or not _LABEL.fullmatch(group.name):
            yield f"nodeGroups[{place}]: needs a DNS label as name and a maxSize of 0 or more"


def _namespaces(policy: Policy) -> Iterator[str]:
    models = [one.cdi_model_name for one in policy.models]
    for place, rule in enumerate(policy.namespaces):
        where = f"namespaces[{place}]"
        if len(rule.name) > DRIVER_MAX or not _NAMESPACE.fullmatch(rule.name):
            yield f"{where}.name: {rule.name!r} is no namespace's name; it may have * for any letters"
        fitting = [one.name for one in policy.namespaces[:place] if fnmatchcase(rule.name, one.name)]
        if fitting:
            yield f"{where}.name: {rule.name!r} never counts: {fitting[0]!r} before it fits it as well; put it first"
        for model, most in rule.quota.items():
            if most < 0:
                yield f"{where}.quota.{model}: {most} is negative"
            if model not in {ALL_MODELS, *models}:
                yield f"{where}.quota.{model}: is not the cdi-model-name of any model; {ALL_MODELS} means all together"


def _identities(policy: Policy) -> Iterator[str]:
    if not policy.identities:
        yield "identities: must name at least one, or no attached device would ever be recognised on its node"


def _local(policy: Policy) -> Iterator[str]:
    for place, rule in enumerate(policy.local_devices):
        if len(rule.name) > LOCAL_NAME_MAX or not _LABEL.fullmatch(rule.name):
            yield f"localDevices[{place}].name: {rule.name!r} is not a DNS label of at most {LOCAL_NAME_MAX} characters"
        if not (rule.vendor or rule.pci_class):
            yield f"localDevices[{place}]: must name a vendor or a pciClass; never is all of a machine published"
        for field, number in (("vendor", rule.vendor), ("device", rule.device)):
            if number and not _PCI_NUMBER.fullmatch(number):
                yield f"localDevices[{place}].{field}: {number!r} is not four hexadecimal digits in small letters"
        if rule.pci_class and not _PCI_CLASS.fullmatch(rule.pci_class):
            yield f"localDevices[{place}].pciClass: {rule.pci_class!r} is not two, four or six hexadecimal digits"


def _foreign(policy: Policy) -> Iterator[str]:
    models = [one.cdi_model_name for one in policy.models]
    for place, rule in enumerate(policy.detach_foreign):
        if not (rule.device or rule.model or rule.node):
            yield f"detachForeign[{place}]: must name a device, a model or a node; nothing else is ever detached"
        if rule.model and rule.model not in models:
            yield f"detachForeign[{place}].model: {rule.model!r} is not among models, so it could not be detached"
