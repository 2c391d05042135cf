"""What is wrong with a pod.

Knows core/v1's rules for a pod, as far as people break them, and what of a pod may change. Must not know who runs it.
"""

import difflib
from collections.abc import Iterator
from typing import Final

import msgspec

from jackfield.cluster import errors
from jackfield.cluster.errors import Cause
from jackfield.cluster.validate import formats, volumes
from jackfield.cluster.validate.checks import Change, items, labels, limited, named, node_selector, text
from jackfield.cluster.validate.containers import containers, resources
from jackfield.codec import Raw, RawValue, objects
from jackfield.model.pod import Pod

RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
TOLERATION_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
CLAIMS_MAX: Final = 256
SECONDS_MAX: Final = 2**31 - 1
_MAY_CHANGE: Final = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_MATCH_ALL: Final = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'


def pod(change: Change) -> Iterator[Cause]:
    """Yield what is wrong with a pod."""
    old, new = change.old, change.new
    assert isinstance(new, Pod)
    if change.wants:
        yield from _spec(new, change.raw["spec"])
        if isinstance(old, Pod) and change.before is not None:
            yield from _unchanged(change.before.get("spec", {}), change.raw["spec"])
    if isinstance(old, Pod) and change.status:
        yield from _status(old, new)


def _spec(new: Pod, spec: Raw) -> Iterator[Cause]:
    yield from volumes.volumes(spec)
    yield from _claims(spec)
    yield from containers(spec, volumes.names(spec))
    if isinstance(spec.get("resources"), dict):
        yield from resources("spec.resources", spec["resources"], ())
    for name, allowed in (("restartPolicy", RESTART_POLICIES), ("dnsPolicy", DNS_POLICIES)):
        if spec[name] not in allowed:
            yield errors.unsupported(f"spec.{name}", text(spec[name]), allowed)
    yield from labels("spec.nodeSelector", new.spec.node_selector)
    affinity = new.spec.affinity.node_affinity if new.spec.affinity else None
    if affinity is not None and affinity.required is not None:
        field = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
        yield from node_selector(field, affinity.required)
    yield from _names(spec)
    for at, one in items("spec.tolerations", spec):
        yield from _toleration(at, one)


def _names(spec: Raw) -> Iterator[Cause]:
    for name, rule in (("serviceAccountName", formats.subdomain), ("nodeName", formats.subdomain)):
        if spec.get(name):
            yield from named(f"spec.{name}", text(spec[name]), rule)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= SECONDS_MAX:
        words = f"must be between 1 and {SECONDS_MAX}, inclusive"
        yield errors.invalid_value("spec.activeDeadlineSeconds", deadline, words)
    for name in ("hostname", "subdomain"):
        if spec.get(name):
            yield from named(f"spec.{name}", text(spec[name]), formats.label)


def _claims(spec: Raw) -> Iterator[Cause]:
    yield from limited("spec.resourceClaims", objects(spec.get("resourceClaims")), CLAIMS_MAX)
    seen: dict[str, None] = {}
    for at, one in items("spec.resourceClaims", spec):
        name = text(one.get("name"))
        if not name:
            yield errors.required(f"{at}.name")
        elif name in seen:
            yield errors.duplicate(f"{at}.name", name)
        else:
            yield from named(f"{at}.name", name, formats.label)
        seen[name] = None
        yield from _claim(at, one)


def _claim(field: str, one: Raw) -> Iterator[Cause]:
    """Yield a cause unless a claim is named in one of two ways, and well."""
    by_name, by_template = one.get("resourceClaimName"), one.get("resourceClaimTemplateName")
    shown = {
        "Name": text(one.get("name")),
        "ResourceClaimName": by_name,
        "ResourceClaimTemplateName": by_template,
    }
    if by_name is not None and by_template is not None:
        words = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        yield errors.invalid_value(field, shown, words)
    if by_name is None and by_template is None:
        words = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        yield errors.invalid_value(field, shown, words)
    for name in ("resourceClaimName", "resourceClaimTemplateName"):
        if one.get(name) is not None:
            yield from named(f"{field}.{name}", text(one[name]), formats.subdomain)


def _toleration(field: str, one: Raw) -> Iterator[Cause]:
    parts = {name: text(one.get(name)) for name in ("key", "operator", "value", "effect")}
    if parts["key"]:
        yield from named(f"{field}.key", parts["key"], formats.qualified)
    elif parts["operator"] != "Exists":
        yield errors.invalid_value(f"{field}.operator", parts["operator"], _MATCH_ALL)
    if one.get("tolerationSeconds") is not None and parts["effect"] != "NoExecute":
        words = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield errors.invalid_value(f"{field}.effect", parts["effect"], words)
    match parts["operator"]:
        case "" | "Equal":
            wrong = ";".join(formats.label_value(parts["value"]))
        case "Exists":
            wrong = "value must be empty when `operator` is 'Exists'" if parts["value"] else ""
        case other:
            wrong = ""
            yield errors.unsupported(f"{field}.operator", other, ("Equal", "Exists"))
    if wrong:
        yield errors.invalid_value(f"{field}.operator", parts["value"], wrong)
    if parts["effect"] and parts["effect"] not in TOLERATION_EFFECTS:
        yield errors.unsupported(f"{field}.effect", parts["effect"], TOLERATION_EFFECTS)


# --- changes


def _unchanged(old: Raw, new: Raw) -> Iterator[Cause]:
    """Yield a cause if more of a pod changed than may."""
    for name in ("containers", "initContainers"):
        if len(objects(old.get(name))) != len(objects(new.get(name))):
            yield errors.forbidden(f"spec.{name}", "pod updates may not add or remove containers")
            return
    yield from _deadline(old.get("activeDeadlineSeconds"), new.get("activeDeadlineSeconds"))
    kept = [_without_seconds(one) for one in objects(new.get("tolerations"))]
    if any(_without_seconds(one) not in kept for one in objects(old.get("tolerations"))):
        words = "existing toleration can not be modified except its tolerationSeconds"
        yield errors.forbidden("spec.tolerations", words)
    gates = [one.get("name") for one in objects(old.get("schedulingGates"))]
    for at, one in items("spec.schedulingGates", {"schedulingGates": new.get("schedulingGates")}):
        if one.get("name") not in gates:
            yield errors.forbidden(
                at, "only deletion is allowed, but found new scheduling gate " + repr(one.get("name"))
            )
    before, after = _fixed(old, old), _fixed(new, old)
    if before != after:
        difference = _difference(before, after)
        yield errors.forbidden(
            "spec", f"pod updates may not change fields other than {_MAY_CHANGE}\n{difference}"
        )


def _deadline(old: RawValue, new: RawValue) -> Iterator[Cause]:
    field = "spec.activeDeadlineSeconds"
    if new is None and old is not None:
        yield errors.invalid_value(field, None, "must not update from a positive integer to nil value")
    elif new is not None and old is not None and old < new:
        yield errors.invalid_value(field, new, "must be less than or equal to previous value")


def _without_seconds(toleration: Raw) -> Raw:
    return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}


def _fixed(spec: Raw, old: Raw) -> Raw:
    """Return a spec with all that may change as it was."""
    fixed = {
        name: value
        for name, value in spec.items()
        if name not in ("activeDeadlineSeconds", "tolerations", "schedulingGates")
    }
    for name in ("containers", "initContainers"):
        if name in spec:
            images = [one.get("image") for one in objects(old.get(name))]
            fixed[name] = [
                {**one, "image": image} for one, image in zip(objects(spec[name]), images, strict=True)
            ]
    if old.get("schedulingGates"):
        # A gated pod may still be told where to go.
        fixed.pop("nodeSelector", None)
        fixed["affinity"] = {
            name: value for name, value in (spec.get("affinity") or {}).items() if name != "nodeAffinity"
        }
    return fixed


def _difference(old: Raw, new: Raw) -> str:
    """Return which lines differ, with some around them."""
    before, after = (
        msgspec.json.format(msgspec.json.encode(one, order="sorted"), indent=1).decode().splitlines()
        for one in (old, new)
    )
    lines = list(difflib.unified_diff(before, after, lineterm=""))
    return "".join(f"{line}\n" for line in lines[2:])


def _status(old: Pod, new: Pod) -> Iterator[Cause]:
    for index, one in enumerate(new.status.conditions):
        yield from named(f"status.conditions[{index}].Type", one.type, formats.qualified)
    nominated = new.status.nominated_node_name
    if nominated and nominated != old.status.nominated_node_name:
        yield from named("status.nominatedNodeName", nominated, formats.subdomain)
        if old.spec.node_name:
            words = "may not be set on pods that are already bound to a node"
            yield errors.forbidden("status.nominatedNodeName", words)
