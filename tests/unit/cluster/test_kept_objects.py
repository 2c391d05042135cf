"""What is kept for others is kept as it came, if a real API server would have taken it."""

import random

import pytest

from jackfield.cluster.errors import ApiError
from jackfield.cluster.store import Store
from jackfield.codec import Raw
from jackfield.model.account import ServiceAccount
from jackfield.model.config import ConfigMap, Secret
from jackfield.model.meta import Object
from jackfield.model.names import Key, Seconds

KEY = Key("d", "x")
FIXED = "Forbidden: field is immutable when `immutable` is set"


def new_store() -> Store:
    return Store(lambda: Seconds(1.7e9), random.Random("kept"))  # noqa: S311 - no cryptography


def raw(**fields: object) -> Raw:
    return {"metadata": {"name": "x", "namespace": "d"}, **fields}


def refusals(store: Store, kind: type[Object], new: Raw, *, patch: bool = False) -> list[str]:
    try:
        if patch:
            store.patch(kind, KEY, new)
        else:
            store.create(kind, new)
    except ApiError as error:
        return [str(one) for one in error.causes] or [error.message]
    return []


NEW: dict[str, tuple[type[Object], Raw, list[str]]] = {
    "a map": (ConfigMap, raw(data={"a.b-c_D": "x"}, binaryData={"e": "AAEC"}), []),
    "a key of dots": (ConfigMap, raw(data={"..": ""}), ["data[..]: Invalid value: \"..\": must not be '..'"]),
    "a key that climbs": (
        ConfigMap,
        raw(data={"..a": ""}),
        ["data[..a]: Invalid value: \"..a\": must not start with '..'"],
    ),
    "a key in both": (
        ConfigMap,
        raw(data={"a": ""}, binaryData={"a": ""}),
        ['data[a]: Invalid value: "a": duplicate of key present in binaryData'],
    ),
    "as much as there may be": (ConfigMap, raw(data={"a": "x" * 1024 * 1024}), []),
    "a byte more": (
        ConfigMap,
        raw(data={"a": "x" * 1024 * 1024}, binaryData={"b": "AA=="}),
        ["[]: Too long: may not be more than 1048576 bytes"],
    ),
    "bytes that are none": (
        ConfigMap,
        raw(binaryData={"a": "AA=A"}),
        ['ConfigMap in version "v1" cannot be handled as a ConfigMap: illegal base64 data at input byte 2'],
    ),
    "a secret": (Secret, raw(data={"a": "eA=="}), []),
    "a secret that is too large": (
        Secret,
        raw(stringData={"a": "x" * (1024 * 1024 + 1)}),
        ["data: Too long: may not be more than 1048576 bytes"],
    ),
    "a secret that is no base64": (
        Secret,
        raw(data={"a": "$$$"}),
        ['Secret in version "v1" cannot be handled as a Secret: illegal base64 data at input byte 0'],
    ),
    "half a pair": (
        Secret,
        raw(type="kubernetes.io/tls", data={"tls.key": ""}),
        ["data[tls.crt]: Required value"],
    ),
    "a login of nothing": (
        Secret,
        raw(type="kubernetes.io/basic-auth"),
        ["data[username]: Required value", "data[password]: Required value"],
    ),
    "a login of a name": (Secret, raw(type="kubernetes.io/basic-auth", stringData={"username": ""}), []),
    "a token of nobody": (
        Secret,
        raw(type="kubernetes.io/service-account-token"),
        ["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
    ),
    "an account": (ServiceAccount, raw(secrets=[{"name": "s"}]), []),
}


@pytest.mark.parametrize(("kind", "new", "said"), NEW.values(), ids=NEW)
def test_what_is_new_is_kept_or_refused(kind: type[Object], new: Raw, said: list[str]) -> None:
    assert refusals(new_store(), kind, new) == said


CHANGES: dict[str, tuple[type[Object], Raw, Raw, list[str]]] = {
    "other data": (ConfigMap, raw(data={"a": "1"}), {"data": {"a": "2"}}, []),
    "other data of what is fixed": (
        ConfigMap,
        raw(data={"a": "1"}, immutable=True),
        {"data": {"a": "2"}, "binaryData": {"b": "AA=="}},
        [f"data: {FIXED}", f"binaryData: {FIXED}"],
    ),
    "fixed no more": (ConfigMap, raw(immutable=True), {"immutable": None}, [f"immutable: {FIXED}"]),
    "fixed from now on": (ConfigMap, raw(), {"immutable": True, "data": {"a": "1"}}, []),
    "labels of what is fixed": (ConfigMap, raw(immutable=True), {"metadata": {"labels": {"a": "b"}}}, []),
    "another type": (Secret, raw(), {"type": "x/y"}, ['type: Invalid value: "x/y": field is immutable']),
    "a fixed secret": (Secret, raw(immutable=True), {"stringData": {"a": "b"}}, [f"data: {FIXED}"]),
}


@pytest.mark.parametrize(("kind", "old", "body", "said"), CHANGES.values(), ids=CHANGES)
def test_a_change_is_kept_or_refused(kind: type[Object], old: Raw, body: Raw, said: list[str]) -> None:
    store = new_store()
    store.create(kind, old)
    assert refusals(store, kind, body, patch=True) == said


def test_a_secrets_text_is_kept_as_bytes_and_wins_over_them() -> None:
    stored = new_store().create(Secret, raw(data={"a": "eA==", "b": "eQ=="}, stringData={"a": "ü"}))
    assert stored.raw["data"] == {"a": "w7w=", "b": "eQ=="}
    assert stored.raw["type"] == "Opaque"
    assert "stringData" not in stored.raw


def test_maps_without_members_are_left_out() -> None:
    stored = new_store().create(ConfigMap, raw(data={}, binaryData={}))
    assert not {"data", "binaryData"} & stored.raw.keys()
