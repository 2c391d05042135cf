"""Calls that change something: create, update, patch, apply, delete, bind, evict.

Knows how a body and a path must agree, and which patch a content type announces. Must not know what is valid.
"""

from collections.abc import Callable
from http import HTTPStatus
from typing import Final

import msgspec

from jackfield.cluster import errors, schema
from jackfield.cluster.deletion import Deletion, Propagation
from jackfield.cluster.face import bodies, negotiation, options, patches, rendering, status
from jackfield.cluster.face.calls import Answer, Call, json
from jackfield.cluster.face.options import FieldValidation, Listing, Writing
from jackfield.cluster.face.rendering import View
from jackfield.cluster.face.target import Target
from jackfield.cluster.history import Stored
from jackfield.cluster.store import Precondition, Store, Write
from jackfield.codec import Raw, RawValue, kinds
from jackfield.codec.kinds import Kind
from jackfield.model.meta import Wire
from jackfield.model.names import Seconds, Uid, Version

RETURNED: Final = frozenset(
    {"Pod", "ServiceAccount", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "DeviceClass"}
)
"""Kinds whose objects are shown once more when they are deleted; of others only the name is."""


class DeleteOptions(Wire, frozen=True, gc=False):
    """How something is to go."""

    grace_period_seconds: int | None = None
    propagation_policy: str | None = None
    orphan_dependents: bool | None = None
    preconditions: "Preconditions | None" = None
    dry_run: tuple[str, ...] = ()


class Preconditions(Wire, frozen=True, gc=False):
    """What must be true of an object that is to go."""

    uid: Uid | None = None
    resource_version: Version | None = None


class Eviction(Wire, frozen=True, gc=False):
    """Whoever evicts may say how, in the same words as whoever deletes."""

    delete_options: DeleteOptions | None = None


class _Reference(Wire, frozen=True, gc=False):
    kind: str = ""
    name: str = ""


class _ObjectMeta(Wire, frozen=True, gc=False):
    uid: Uid = Uid("")


class Binding(Wire, frozen=True, gc=False):
    """Which node a pod is to run on."""

    metadata: _ObjectMeta = _ObjectMeta()
    target: _Reference = _Reference()


class Writer:
    """Whoever asks has it done."""

    def __init__(self, store: Store) -> None:
        self._store = store

    # --- objects

    def create(self, call: Call, target: Target, now: Seconds) -> Answer:
        """Create an object."""
        how = options.writing(call.query, call.agent, "CreateOptions")
        raw, warnings = _object(call, target.kind, how)
        _same_namespace(raw, target)
        stored = self._store.create(target.kind.type, raw, _write(how))
        return _answer(call, stored, now, HTTPStatus.CREATED, warnings)

    def update(self, call: Call, target: Target, now: Seconds) -> Answer:
        """Replace an object, or its status."""
        how = options.writing(call.query, call.agent, "UpdateOptions")
        raw, warnings = _object(call, target.kind, how)
        _same_namespace(raw, target)
        _same_name(raw, target)
        stored = self._store.update(target.kind.type, raw, _write(how, target))
        return _answer(call, stored, now, HTTPStatus.OK, warnings)

    def patch(self, call: Call, target: Target, now: Seconds) -> Answer:
        """Change an object by a patch of the type that the call announces."""
        how = options.writing(call.query, call.agent, "PatchOptions")
        kind = bodies.media_type(call.content_type)
        if kind == patches.APPLY_PATCH:
            return self._apply(call, target, how, now)
        if how.force is not None:
            words = "may not be specified for non-apply patch"
            raise status.bad_option("PatchOptions", errors.forbidden("force", words))
        change = patches.change(kind, call.body, target.kind)
        found: list[str] = []

        def changed(old: Raw) -> Raw:
            new = change.changed(old)
            wrong = _wrong_type(new, target.kind) or schema.strict.type_error(target.kind, new)
            if wrong:
                raise change.unusable(new, _reason(wrong))
            unknown = _unknown(target.kind, new, how)
            if unknown and how.validation is FieldValidation.STRICT:
                raise change.unusable(new, f"strict decoding error: {', '.join(unknown)}")
            found.extend(unknown)
            return schema.strict.pruned(target.kind, new)

        stored = self._store.rewrite(target.kind.type, target.key, changed, _write(how, target))
        return _answer(call, stored, now, HTTPStatus.OK, tuple(found))

    def _apply(self, call: Call, target: Target, how: Writing, now: Seconds) -> Answer:
        if not how.named:
            raise status.bad_option(
                "PatchOptions", errors.required("fieldManager", "is required for apply patch")
            )
        value = bodies.parsed(
            call.body, as_yaml=not call.body.lstrip().startswith(b"{"), what=target.kind.kind
        )
        if not isinstance(value, dict):
            raise errors.bad_request("error decoding YAML: expected an object")
        _check_type(value, target.kind, apply=True)
        twice = tuple(f'duplicate field "{one}"' for one in schema.strict.duplicate_fields(call.body))
        if twice and how.validation is FieldValidation.STRICT:
            raise errors.bad_request(f"error strict decoding YAML: {', '.join(twice)}")
        _same_namespace(value, target)
        _same_name(value, target)
        code = HTTPStatus.OK if self._is_there(target) else HTTPStatus.CREATED
        # Fields that nobody knows are refused where the body is understood, whatever validation was asked for.
        stored = self._store.apply(target.kind.type, target.key, value, _write(how, target))
        return _answer(call, stored, now, code, twice if how.validation is FieldValidation.WARN else ())

    def _is_there(self, target: Target) -> bool:
        try:
            self._store.get(target.kind.type, target.key)
        except errors.ApiError:
            return False
        return True

    def finalize(self, call: Call, target: Target, now: Seconds) -> Answer:
        """Say who is not yet done with a namespace."""
        how = options.writing(call.query, call.agent, "UpdateOptions")
        raw, warnings = _object(call, target.kind, how)
        _same_namespace(raw, target)
        _same_name(raw, target)
        stored = self._store.finalize(raw, _write(how))
        return _answer(call, stored, now, HTTPStatus.OK, warnings)

    # --- ends

    def delete(self, call: Call, target: Target, now: Seconds) -> Answer:
        """Delete an object."""
        given, dry_run = _delete_options(call)
        stored, gone = self._deleted(target, given, dry_run=dry_run)
        if not gone or target.kind.kind in RETURNED:
            return _answer(call, stored, now, HTTPStatus.OK)
        return json(status.success(_details(stored)))

    def _deleted(self, target: Target, given: DeleteOptions, *, dry_run: bool) -> tuple[Stored, bool]:
        when = given.preconditions or Preconditions()
        stored = self._store.delete(
            target.kind.type,
            target.key,
            Precondition(when.uid or Uid(""), when.resource_version or Version("")),
            Deletion(_grace(given), _propagation(given), dry_run),
        )
        left = stored.raw["metadata"]
        if dry_run:
            return stored, not (left.get("finalizers") or left.get("deletionGracePeriodSeconds"))
        return stored, not self._is_there(target)

    def delete_all(
        self,
        call: Call,
        target: Target,
        listed: Callable[[Target, Listing], tuple[Stored, ...]],
        now: Seconds,
    ) -> Answer:
        """Delete all objects that are selected."""
        given, dry_run = _delete_options(call)
        items = listed(target, options.listing(call.query, target.namespace))
        for one in items:
            each = Target(target.kind, one.key.namespace, one.key.name)
            self._deleted(each, given, dry_run=dry_run)
        view = View(target.kind, negotiation.wanted(call.accept))
        body = view.many(items, {"resourceVersion": str(self._store.version)}, now)
        return rendering.answer(body, HTTPStatus.OK, view.wanted)

    # --- pods

    def bind(self, call: Call, target: Target) -> Answer:
        """Bind a pod to a node, as schedulers do."""
        how = options.writing(call.query, call.agent, "CreateOptions")
        binding = _believed(bodies.read(call, "Binding"), Binding)
        if binding.target.kind not in ("", "Node"):
            cause = errors.unsupported("target.kind", binding.target.kind, ("Node", ""))
            raise errors.invalid(target.kind, target.key, (cause,))
        if not binding.target.name:
            raise errors.invalid(target.kind, target.key, (errors.required("target.name"),))
        when = Precondition(uid=binding.metadata.uid)
        self._store.bind(target.key, binding.target.name, when, dry_run=how.dry_run)
        return json({**status.success({}), "code": HTTPStatus.CREATED}, HTTPStatus.CREATED)

    def evict(self, call: Call, target: Target) -> Answer:
        """Ask a pod to leave its node."""
        how = options.writing(call.query, call.agent, "CreateOptions")
        given = _believed(bodies.read(call, "Eviction"), Eviction).delete_options or DeleteOptions()
        when = given.preconditions or Preconditions()
        self._store.evict(
            target.key,
            Precondition(when.uid or Uid(""), when.resource_version or Version("")),
            Deletion(_grace(given), _propagation(given), how.dry_run or bool(given.dry_run)),
        )
        return json({**status.success({}), "code": HTTPStatus.CREATED}, HTTPStatus.CREATED)


# --- bodies and paths


def _object(call: Call, kind: Kind, how: Writing) -> tuple[Raw, tuple[str, ...]]:
    raw = bodies.read(call, kind.kind)
    _check_type(raw, kind)
    twice = schema.strict.duplicate_fields(call.body) if bodies.is_text(call) else ()
    return _known(kind, raw, how, twice)


def _check_type(raw: Raw, kind: Kind, *, apply: bool = False) -> None:
    """Refuse an object of another kind than the path's; one that does not say is taken for one of it."""
    version, name = raw.get("apiVersion") or "", raw.get("kind") or ""
    if apply and not (version and name):
        raise errors.bad_request(
            "invalid object type: /, Kind=" if not version else "Object 'Kind' is missing"
        )
    wrong = _wrong_type(raw, kind)
    if wrong:
        raise errors.bad_request(wrong)


def _wrong_type(raw: Raw, kind: Kind) -> str:
    """Return what is wrong with what an object says it is, if anything."""
    version, name = (str(raw.get(one) or "") for one in ("apiVersion", "kind"))
    version, name = version or kind.api_version, name or kind.kind
    if (version, name) == (kind.api_version, kind.kind):
        return ""
    spelt = version.rpartition("/")[2]
    why = f'no kind "{name}" is registered for version "{version}"'
    if kinds.by_kind(version, name) is not None:
        home = kind.group.partition(".")[0] or "core"
        why = f"converting ({spelt}.{name}) to ({home}.{kind.kind}): unknown conversion"
    return f'{name} in version "{spelt}" cannot be handled as a {kind.kind}: {why}'


def _reason(wrong: str) -> str:
    """Return why an object cannot be read, without what it was to be."""
    return wrong.partition("cannot be handled as a ")[2].partition(": ")[2] or wrong


def _known(kind: Kind, raw: Raw, how: Writing, twice: tuple[str, ...]) -> tuple[Raw, tuple[str, ...]]:
    """Return the object without fields that its kind does not have, and what to say of them."""
    wrong = schema.strict.type_error(kind, raw)
    if wrong:
        raise errors.bad_request(wrong)
    found = _unknown(kind, raw, how, twice)
    if found and how.validation is FieldValidation.STRICT:
        raise errors.bad_request(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
            f"strict decoding error: {', '.join(found)}"
        )
    return schema.strict.pruned(kind, raw), found


def _unknown(kind: Kind, raw: Raw, how: Writing, twice: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return what to say of fields that nobody knows, or that were said twice."""
    if how.validation is FieldValidation.IGNORE:
        return ()
    return (
        *(f'duplicate field "{one}"' for one in twice),
        *(f'unknown field "{one}"' for one in schema.strict.unknown_fields(kind, raw)),
    )


def _same_namespace(raw: Raw, target: Target) -> None:
    """Put the path's namespace into the object; refuse another one."""
    metadata = raw.setdefault("metadata", {}) if raw.get("metadata") is not None else raw
    if metadata is raw:
        metadata = raw["metadata"] = {}
    if not isinstance(metadata, dict):
        raise errors.bad_request("metadata: expected an object")
    said = metadata.get("namespace") or ""
    if said and said != target.namespace:
        raise errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if target.namespace:
        metadata["namespace"] = target.namespace


def _same_name(raw: Raw, target: Target) -> None:
    said = raw["metadata"].get("name") or ""
    if not said:
        raise errors.bad_request(
            f"the name of the object ({target.name} based on URL) was undeterminable: name must be provided"
        )
    if said != target.name:
        raise errors.bad_request(
            f"the name of the object ({said}) does not match the name on the URL ({target.name})"
        )


def _write(how: Writing, target: Target | None = None) -> Write:
    status_only = target is not None and target.subresource == "status"
    return Write(manager=how.manager, status=status_only, force=bool(how.force), dry_run=how.dry_run)


def _delete_options(call: Call) -> tuple[DeleteOptions, bool]:
    """Return how to delete: as the body says, or else the query."""
    dry_run = options.dry_run(call.query, "DeleteOptions")
    if call.body.strip():
        given = _believed(bodies.read(call, "DeleteOptions"), DeleteOptions)
    else:
        said: Raw = {
            name: call.query[name]
            for name in ("gracePeriodSeconds", "propagationPolicy", "orphanDependents")
            if name in call.query
        }
        given = _believed(said, DeleteOptions, strict=False)
    if given.dry_run:
        dry_run = dry_run or options.dry_run({"dryRun": given.dry_run[0]}, "DeleteOptions")
    return given, dry_run


def _grace(given: DeleteOptions) -> int | None:
    """Return the grace asked for; less than none is as short as there is."""
    asked = given.grace_period_seconds
    return asked if asked is None else max(asked, 0) or (1 if asked < 0 else 0)


def _propagation(given: DeleteOptions) -> Propagation:
    policy = given.propagation_policy
    if given.orphan_dependents is not None:
        return Propagation.ORPHAN if given.orphan_dependents else Propagation.BACKGROUND
    try:
        return Propagation(policy or Propagation.UNSAID)
    except ValueError:
        allowed = ("Foreground", "Background", "Orphan", "nil")
        cause = errors.unsupported("propagationPolicy", str(policy), allowed)
        raise status.bad_option("DeleteOptions", cause) from None


def _believed(raw: Raw, kind: type[msgspec.Struct], *, strict: bool = True) -> RawValue:
    try:
        return msgspec.convert(raw, kind, strict=strict)
    except msgspec.ValidationError as error:
        raise errors.bad_request(f"{kind.__name__} cannot be handled: {error}") from error


# --- answers


def _answer(
    call: Call, stored: Stored, now: Seconds, code: HTTPStatus, warnings: tuple[str, ...] = ()
) -> Answer:
    view = View(stored.kind, negotiation.wanted(call.accept), call.query.get("includeObject", ""))
    return rendering.answer(view.one(stored, now), code, view.wanted, warnings)


def _details(stored: Stored) -> Raw:
    metadata, kind = stored.raw["metadata"], stored.kind
    group = {"group": kind.group} if kind.group else {}
    return {"name": metadata["name"], **group, "kind": kind.plural, "uid": metadata["uid"]}
