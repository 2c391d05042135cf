"""Mutants: each takes one rule of the protocol, or one promise of the policy, out of the code.

Knows the code that is replaced, by its text. Must not know how a mutant is found.
"""

from typing import NamedTuple


class Mutant(NamedTuple):
    """One replacement in one file under `src/jackfield`."""

    name: str
    file: str
    old: str
    new: str
    breaks: str
    """The rule that is broken, as a sentence about what the code does now."""


MUTANTS = (
    # --- the nineteen traces of the model, in its order
    Mutant(
        "name-from-claim",
        "core/compose.py",
        "        name=naming.resource(fabric, device),\n        labels={MANAGED_BY: request.metadata.name},",
        '        name=f"{claim.name or request.metadata.name}-{naming.resource(fabric, device)}",\n'
        "        labels={MANAGED_BY: request.metadata.name},",
        "V1, rule 1: two claims of one device get a resource each",
    ),
    Mutant(
        "ready-on-any-version",
        "controllers/act.py",
        "    patch = Apply(ResourceClaim, action.claim, action.version, body, action.manager, status=True)",
        "    patch = Apply(ResourceClaim, action.claim, ANY, body, action.manager, status=True)",
        "V2, rule 8: Ready is written on whatever the claim has become meanwhile",
    ),
    Mutant(
        "record-by-uid",
        "core/scale.py",
        "(record.uid, record.version) == (\n        want.claim.uid,\n"
        "        want.claim.metadata.resource_version,\n    )",
        "record.uid == want.claim.uid",
        "V3, rule 8: a record of an earlier version of the claim will do",
    ),
    Mutant(
        "forget-from-cache",
        "controllers/act.py",
        "        claim = await hands.world.cluster.read(ResourceClaim, action.record.claim)\n",
        "        if known is None:\n            raise Gone\n        claim = known\n",
        "V4, rule 12: a record is forgotten by what the cache says of its claim (stale read trusted)",
    ),
    Mutant(
        "order-by-name",
        "model/composition.py",
        "return OrderID(self.metadata.annotations.get(ORDER, self.metadata.uid))",
        "return OrderID(self.metadata.annotations.get(ORDER, self.metadata.name))",
        "V5, rule 15: a device's next order has the id of its last, so that an old detach means the new one",
    ),
    Mutant(
        "gone-before-closed",
        "core/attach.py",
        "    if not _knows_orders(view, resource, policy):\n        return quiet.detach(",
        "    if not resource.status.cdi_device_id:\n"
        '        return Plan((_mark(resource, ResourceState.DELETING, Phase.DETACHED, "nothing is there"),))\n'
        "    if not _knows_orders(view, resource, policy):\n        return quiet.detach(",
        "V6, rule 15: a resource without a device goes before its order is closed",
    ),
    Mutant(
        "visible-on-any-version",
        "controllers/writing.py",
        '    body = {**status, "conditions": [msgspec.to_builtins(one) for one in conditions]}\n'
        "    await put_status(hands, action.resource, action.version, body)",
        '    body = {**status, "conditions": [msgspec.to_builtins(one) for one in conditions]}\n'
        "    await put_status(hands, action.resource, ANY, body)",
        "V7, rule 6: what a node says is written on whatever bears the name by now",
    ),
    Mutant(
        "prepare-asks-the-claim-only",
        "core/prepare.py",
        "    if resource.record is None or resource.record.uid != uid:\n",
        "    if resource.record is not None and resource.record.uid != uid:\n",
        "V8, rule 10: a device is prepared that is recorded for nobody",
    ),
    Mutant(
        "prepared-before-held",
        "core/prepare.py",
        "    return Plan((*holds, *writes))",
        "    return Plan((*writes, *holds))",
        "V9, rule 10: a device is prepared before its resource says so (effect before intent)",
    ),
    Mutant(
        "forget-while-held",
        "core/scale.py",
        "    if resource.holder and not room.node_gone(view, resource.node):\n        return Plan()\n",
        "",
        "V10, rule 12: a record is forgotten while its device is held",
    ),
    Mutant(
        "recorded-twice",
        "core/scale.py",
        "    elsewhere = _recorded_elsewhere(view, wish)\n",
        "    elsewhere = None\n",
        "V10, rule 7: a claim is recorded while another device is still recorded for it",
    ),
    Mutant(
        "clear-without-asking",
        "controllers/act.py",
        "    if action.ask_pods:\n",
        "    if not action:\n",
        "V11, rule 17: a Ready claim is cleared without a live look at the pods",
    ),
    Mutant(
        "never-clear",
        "core/leftover.py",
        '    return Plan((_clear(claim, "it is allocated, reserved for nobody, and no pod waits for it"),))',
        "    return Plan()",
        "V12, rule 17: nobody takes the allocation off a claim that is left over",
    ),
    Mutant(
        "gone-before-quiet",
        "core/quiet.py",
        "        if verb and not quiet:\n            return _until_quiet(",
        "        if not verb and not quiet:\n            return _until_quiet(",
        "V13, rule 20: a resource goes as soon as its device has, though a call may still take effect",
    ),
    Mutant(
        "repeat-without-looking",
        "core/quiet.py",
        "    if adopted is not None:\n        return Plan((adopted,))\n    verb, _ = resource.sent\n",
        "    verb, _ = resource.sent\n"
        '    if adopted is not None and not (verb == "attach" and _quiet(view, resource, order.fabric)):\n'
        "        return Plan((adopted,))\n",
        "V14, rule 19: an attach is repeated although what it brought stands there (retry without look-up)",
    ),
    Mutant(
        "repeat-at-once",
        "core/quiet.py",
        '    return resource.sent[0] != "attach" or _quiet(view, resource, fabric)\n',
        '    return resource.sent[0] != "never" or _quiet(view, resource, fabric)\n',
        "V15, rule 20: an attach is repeated at once, of a manager without order ids",
    ),
    Mutant(
        "lease-too-short",
        "controllers/act.py",
        "    if hands.lead.left() <= needed:\n",
        "    if hands.lead.left() < Seconds(0.0):\n",
        "V16, rule 18: a manager is asked although the lease may run out before that takes effect",
    ),
    Mutant(
        "lease-not-looked-at",
        "controllers/lead.py",
        "        return lead.leader(fabric, electors) == self.me.name",
        "        return not electors or bool(lead.leader(fabric, electors))",
        "V16, rule 18: every replica takes itself for the leader",
    ),
    Mutant(
        "held-on-any-node",
        "core/room.py",
        '    return tuple(claim for claim in found.values() if claim.node in {resource.node, NodeName("")})',
        "    return tuple(found.values())",
        "V17, rule 12: a claim that was allocated the device elsewhere counts as its holder here",
    ),
    Mutant(
        "both-are-served",
        "core/demand.py",
        "    if winner.uid == want.claim.uid:\n",
        "    if winner.uid:\n",
        "V18, rule 9: of two claims with one device none is sent away",
    ),
    Mutant(
        "node-never-gone",
        "core/room.py",
        "    return view.node(node) is None and not view.pods_on(node)",
        "    return not node and not view.pods_on(node)",
        "V19, rule 16: a device waits for the plugin of a node that was deleted",
    ),
    # --- more of the protocol
    Mutant(
        "no-order-id",
        "core/attach.py",
        "        id=resource.order,\n",
        '        id=type(resource.order)(f"{resource.order}.{resource.metadata.resource_version}"),\n',
        "rule 5: a repeated order has another id",
    ),
    Mutant(
        "effect-before-intent",
        "core/attach.py",
        "            return _begin(resource) if not resource.foreign else",
        "            return _attach(view, resource, policy, now) if not resource.foreign else",
        "rule 5: the manager hears of an order before the resource says Attaching",
    ),
    Mutant(
        "sent-unmarked",
        "controllers/act.py",
        "    if not action.mark_sent:\n        return action.version\n",
        "    if action.order:\n        return action.version\n",
        "rule 20: it is not noted when a manager without order ids was asked",
    ),
    Mutant(
        "no-conflict-check",
        "controllers/writing.py",
        "    return await write(hands, Merge(kind, key, version, body))\n",
        "    return await write(hands, Merge(kind, key, ANY, body))\n",
        "rules 7, 10, 12: records and holders are written over whatever is there",
    ),
    Mutant(
        "ready-before-record",
        "core/scale.py",
        "    if missing:\n        return Plan(tuple(_record(want, now) for want in missing))\n",
        "    if missing and now < 0:\n        return Plan(tuple(_record(want, now) for want in missing))\n",
        "rule 8: Ready is said without a record",
    ),
    Mutant(
        "record-taken-over",
        "core/scale.py",
        "    if resource.record is not None and resource.record.uid != want.claim.uid:\n"
        '        return _wait(want.claim, "Recorded"',
        "    if resource.record is not None and not resource.record.uid:\n"
        '        return _wait(want.claim, "Recorded"',
        "rule 7: a record is written over another claim's",
    ),
    Mutant(
        "online-unseen",
        "core/attach.py",
        "        return holds(resource.status.conditions, VISIBLE)\n",
        "        return not holds(resource.status.conditions, RELEASED)\n",
        "rule 6: a device counts as there before its node has seen it",
    ),
    Mutant(
        "detach-unreleased",
        "core/attach.py",
        "    waiting = _not_released(view, resource)\n",
        '    waiting = "" if view else _not_released(view, resource)\n',
        "rule 15: the manager is asked to detach before the node has let go",
    ),
    Mutant(
        "leave-while-recorded",
        "model/composition.py",
        "        free = self.record is None and not self.holder\n",
        "        free = not self.holder\n",
        "rule 13: a device is withdrawn while a claim is recorded on it",
    ),
    Mutant(
        "holder-stays",
        "core/prepare.py",
        "    return Plan(tuple(_let_go(one, key) for one in held))",
        "    return Plan(tuple(_let_go(one, key) for one in held[:0]))",
        "rule 11: the holder is not cleared after unprepare",
    ),
    Mutant(
        "surplus-left",
        "core/surplus.py",
        "        wanted = device.ours or (machine",
        "        wanted = not device.ours and (machine",
        "rule 21: a device of ours in nobody's books stays where it is",
    ),
    Mutant(
        "foreign-detached",
        "core/evict.py",
        "    return any(_agrees(one, fabric, device) for one in policy.detach_foreign)",
        '    return fabric != ""',
        "what somebody else attached is detached though no policy names it",
    ),
    Mutant(
        "foreign-adopted",
        "core/quiet.py",
        "        if one.ours and one.model == resource.spec.model and view",
        "        if one.model == resource.spec.model and view",
        "rule 19: what somebody else attached fills a slot of ours",
    ),
    Mutant(
        "foreign-resized",
        "core/scale.py",
        "    if current is not None and (current.deleting or not current.scalers):\n",
        "    if current is not None and current.deleting:\n",
        "a request that somebody else wrote is resized",
    ),
    # --- slices, policy, and what nobody would notice at once
    Mutant(
        "entry-removed-while-held",
        "core/publish.py",
        "    return bool(view.claims_holding(device)) or view.resource_of(device) is not None",
        "    return not device.device",
        "rule 3: a slot leaves the slice while somebody has it",
    ),
    Mutant(
        "wrong-node",
        "core/publish.py",
        "            return msgspec.structs.replace(entry, node_name=node)",
        '            return msgspec.structs.replace(entry, node_name=NodeName(f"{node[:-1]}1"))',
        "an entry is pinned to another node than its device is on",
    ),
    Mutant(
        "hold-time-ignored",
        "core/keep.py",
        "    if site.now >= until:\n",
        "    if site.now >= until - site.policy.hold_seconds:\n",
        "an idle device is returned at once",
    ),
    Mutant(
        "kept-for-ever",
        "core/keep.py",
        "    until = Seconds(resource.last_used + site.policy.hold_seconds)\n",
        "    until = Seconds(resource.last_used + 1000 * site.policy.hold_seconds)\n",
        "an idle device is never returned",
    ),
    Mutant(
        "one-of-two-answered",
        "core/scale.py",
        "        devices=wish.devices,\n",
        "        devices=wish.devices[:1],\n",
        "rule 8: only the first device of a claim is answered for",
    ),
    Mutant(
        "taint-stays",
        "core/guard.py",
        "        name=rule.metadata.name,\n",
        '        name=f"{rule.metadata.name}-of-nobody",\n',
        "a vendor's device stays tainted when it is back in the pool",
    ),
    Mutant(
        "lost-wake-up",
        "controllers/dirty.py",
        "        if self._busy.pop(key):\n            self.mark(key)\n        elif",
        "        self._busy.pop(key)\n        if",
        "what changes while it is worked on is not looked at again",
    ),
    Mutant(
        "stale-event-believed",
        "controllers/store.py",
        "        if old is not None and version <= _version(old):\n            return ()\n",
        "",
        "an older version of an object takes the place of a newer one",
    ),
    Mutant(
        "label-written-again",
        "core/room.py",
        "if found.metadata.labels.get(key) != value}",
        "if value or found.metadata.labels.get(key) != value}",
        "labels of nodes are written though they are what they should be",
    ),
)
