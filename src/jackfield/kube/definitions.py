"""Gives a cluster the definitions of CoHDI's two kinds, unless it has some that will do.

Knows server-side apply, when a definition is established, and whose definition may be replaced: only an older one of
ours. Must not know what is in a definition.
"""

from enum import StrEnum

import msgspec

from jackfield.codec import Raw, comparison, dig, objects
from jackfield.codec import definitions as ours
from jackfield.codec.comparison import Lack
from jackfield.kube.api import APPLY, MANAGER, Api
from jackfield.model.names import Seconds
from jackfield.ports import Clock, Conflict, Gone, Refused, Retry

DEFINITIONS = f"/apis/{ours.API_VERSION}/customresourcedefinitions"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
COMMAND = "jackfield crds | kubectl apply -f -"
"""What somebody types who may do what we may not."""

ESTABLISH_SECONDS_MAX = Seconds(30.0)
LOOK_SECONDS = Seconds(0.5)
ROUNDS_MAX = 3
"""How often a definition is looked at again because somebody else wrote it meanwhile."""


class Outcome(StrEnum):
    """What became of a definition."""

    CURRENT = "current"
    APPLIED = "applied"
    KEPT = "kept"
    UNREAD = "unread"
    LACKING = "lacking"
    FORBIDDEN = "forbidden"


class Verdict(msgspec.Struct, frozen=True):
    """What became of a definition, and what it lacks."""

    definition: str
    outcome: Outcome
    lacks: tuple[Lack, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether the controllers can work with what the cluster has."""
        return self.outcome not in {Outcome.LACKING, Outcome.FORBIDDEN}

    def __str__(self) -> str:
        return f"definition {self.definition} {self._said}"

    @property
    def _said(self) -> str:
        what = "; ".join(f"{one.path} {one.what}" for one in self.lacks)
        match self.outcome:
            case Outcome.CURRENT:
                return "is there already"
            case Outcome.APPLIED:
                return "was applied"
            case Outcome.KEPT:
                return f"is another's or newer, will do, and is left alone{f' ({what})' if what else ''}"
            case Outcome.UNREAD:
                return "is served; what is in it we may not read"
            case Outcome.LACKING:
                return (
                    f"is another's or newer, and will not do: {what}; ours takes all that CoHDI's takes, "
                    f"so an administrator may replace it: {COMMAND}"
                )
            case Outcome.FORBIDDEN:
                return f"is needed, and we may not write it; an administrator may: {COMMAND}"


async def apply_definitions(api: Api, clock: Clock, *, replace: bool = False) -> tuple[Verdict, ...]:
    """Apply what is missing or older, wait until it is established, and say what became of each.

    With `replace` also what is another's and will not do: ours take all that CoHDI's take.

    Writes nothing where nothing changed. Raises Retry if a definition is not established in time.
    """
    return tuple([await _applied(api, clock, one, replace=replace) for one in ours.definitions()])


def judged(stored: Raw | None, wanted: Raw) -> Verdict:
    """Return what is to become of a definition, given the one that a cluster has."""
    name = str(wanted["metadata"]["name"])
    if stored is None:
        return Verdict(name, Outcome.APPLIED)
    lacking = comparison.lacks(stored, wanted)
    if comparison.mark(stored) == comparison.mark(wanted) and not lacking:
        return Verdict(name, Outcome.CURRENT)
    if 0 < comparison.revision(stored) <= ours.REVISION:
        return Verdict(name, Outcome.APPLIED)
    grave = any(one.grave for one in lacking)
    return Verdict(name, Outcome.LACKING if grave else Outcome.KEPT, lacking)


async def _applied(api: Api, clock: Clock, wanted: Raw, *, replace: bool) -> Verdict:
    name = str(wanted["metadata"]["name"])
    for _ in range(ROUNDS_MAX):
        try:
            stored = await _stored(api, name)
        except Refused:
            if await _may(api, "get", name):
                raise
            return await _unread(api, wanted)
        if dig(stored, "metadata", "deletionTimestamp"):
            raise Retry(f"definition {name} is being deleted, with all objects of its kind")
        verdict = judged(stored, wanted)
        if replace and verdict.outcome is Outcome.LACKING:
            verdict = Verdict(name, Outcome.APPLIED)
        if verdict.outcome is not Outcome.APPLIED:
            return verdict
        try:
            # An older one of ours is replaced whoever last touched it; a new one must not meet another's.
            await _apply(api, wanted, force=stored is not None)
        except Conflict:
            continue
        except Refused:
            if await _may(api, "patch", name) and await _may(api, "create", name):
                raise
            return Verdict(name, Outcome.FORBIDDEN)
        await _established(api, clock, name)
        return verdict
    raise Retry(f"definition {name} is being written by somebody else")


async def _stored(api: Api, name: str) -> Raw | None:
    try:
        return await api.raw("GET", f"{DEFINITIONS}/{name}")
    except Gone:
        return None


async def _apply(api: Api, wanted: Raw, *, force: bool) -> None:
    params = {"fieldManager": MANAGER, **({"force": "true"} if force else {})}
    path = f"{DEFINITIONS}/{wanted['metadata']['name']}"
    await api.raw("PATCH", path, wanted, params=params, content_type=APPLY)


async def _established(api: Api, clock: Clock, name: str) -> None:
    until = clock.now() + ESTABLISH_SECONDS_MAX
    while True:
        conditions = objects(dig(await _stored(api, name), "status", "conditions"))
        said = {str(one.get("type")): one for one in conditions}
        if dig(said, "Established", "status") == "True":
            return
        if clock.now() >= until:
            why = dig(said, "NamesAccepted", "message") or "the API server does not say why"
            raise Retry(f"definition {name} is not established: {why}")
        await clock.sleep(LOOK_SECONDS)


async def _unread(api: Api, wanted: Raw) -> Verdict:
    """Without permission to read definitions: whether the kind is served is open to all."""
    spec = wanted["spec"]
    name = str(wanted["metadata"]["name"])
    try:
        answer = await api.raw("GET", f"/apis/{spec['group']}/{spec['versions'][0]['name']}")
    except (Gone, Refused):
        return Verdict(name, Outcome.FORBIDDEN)
    served = {one.get("name") for one in objects(answer.get("resources"))}
    return Verdict(name, Outcome.UNREAD if spec["names"]["plural"] in served else Outcome.FORBIDDEN)


async def _may(api: Api, verb: str, name: str) -> bool:
    group, _, _ = ours.API_VERSION.partition("/")
    attributes = {"verb": verb, "group": group, "resource": "customresourcedefinitions", "name": name}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    return bool(dig(await api.raw("POST", REVIEWS, review), "status", "allowed"))
