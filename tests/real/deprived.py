"""One right less: what a role holds, right by right, and the same role without exactly one of them.

Knows RBAC's rules, and where it shows that a right was missed. Must not know what any right is for.
"""

from collections.abc import Iterator

import msgspec

from jackfield.codec import Raw
from jackfield.kube.permissions import Account, Role, rights
from jackfield.model.policy import DRIVER
from jackfield.testing.control_plane import ControlPlane

VENDOR = "gpu.example.com"
DRIVERS = (DRIVER, VENDOR)
FORBIDDEN = 403


class Single(msgspec.Struct, frozen=True, order=True):
    """One verb on one resource; of a right that is limited to objects, on one of these."""

    role: Role
    verb: str
    group: str
    resource: str
    name: str = ""
    namespace: str = ""

    def __str__(self) -> str:
        within = f" {self.name}" if self.name else ""
        place = f" in {self.namespace}" if self.namespace else ""
        return f"{self.role}: {self.verb} {self.resource}{within}{place}"


def singles(role: Role) -> tuple[Single, ...]:
    """Return all that a role holds, one by one."""
    return tuple(
        Single(role, verb, right.group, right.resource, name, right.namespace)
        for right in rights(role, DRIVERS)
        for verb in right.verbs
        for name in right.names or ("",)
    )


def rules_without(rules: list[Raw], one: Single) -> list[Raw]:
    """Return rules that allow all that they did, but for this."""
    return [left for rule in rules for left in _left(rule, one)]


def _left(rule: Raw, one: Single) -> Iterator[Raw]:
    if (rule["apiGroups"], rule["resources"]) != ([one.group], [one.resource]) or one.verb not in rule[
        "verbs"
    ]:
        yield rule
        return
    verbs = [verb for verb in rule["verbs"] if verb != one.verb]
    if verbs:
        yield {**rule, "verbs": verbs}
    others = [name for name in rule.get("resourceNames", ()) if name != one.name]
    if one.name and others:
        yield {**rule, "verbs": [one.verb], "resourceNames": others}


def is_its_role(made: Raw, one: Single) -> bool:
    """Whether an object is the role, in the place, that holds this right."""
    named = made["kind"] in {"ClusterRole", "Role"} and made["metadata"]["name"] == f"jackfield-{one.role}"
    return named and made["metadata"].get("namespace", "") == one.namespace


def without(made: tuple[Raw, ...], one: Single) -> tuple[Raw, ...]:
    """Return an account with its roles, of which one lacks this."""
    return tuple(
        {**each, "rules": rules_without(each["rules"], one)} if is_its_role(each, one) else each
        for each in made
    )


def of_its_own(made: tuple[Raw, ...], account: Account) -> tuple[Raw, ...]:
    """Return the roles under names that nobody else's have, with bindings to them."""
    return tuple(_renamed(each, account.name) for each in made)


def _renamed(made: Raw, suffix: str) -> Raw:
    if made["kind"] == "ServiceAccount":
        return made
    renamed = {**made, "metadata": {**made["metadata"], "name": f"{made['metadata']['name']}.{suffix}"}}
    if "roleRef" in made:
        renamed["roleRef"] = {**made["roleRef"], "name": f"{made['roleRef']['name']}.{suffix}"}
    return renamed


def words(one: Single) -> str:
    """Return how the API server puts that somebody lacks this."""
    return f'cannot {one.verb} resource "{one.resource}"'


def refused(plane: ControlPlane, one: Single, account: Account) -> bool:
    """Whether the API server's own log says that the account was refused this."""
    user = f"system:serviceaccount:{account.namespace}:{account.name}"
    return any(
        (entry.user, entry.code, entry.verb, entry.resource) == (user, FORBIDDEN, one.verb, one.resource)
        and one.name in {"", entry.name}
        and one.namespace in {"", entry.namespace}
        for entry in plane.audited()
    )
