"""The steps of a migration write what they say, undo exactly that, and read nothing that is not there."""

import asyncio
import base64
from collections.abc import Callable, Coroutine, Mapping

import pytest

from jackfield.codec import Raw, copied
from jackfield.codec import cohdi as spelt
from jackfield.kube import cohdi
from jackfield.kube.answers import Unserved
from jackfield.kube.api import JSON
from jackfield.ports import Gone

NOTHING: Mapping[str, str] = {}
DEFINITION = (
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/composableresources.cro.hpsys.ibm.ie.com"
)
RELEASES = "/api/v1/namespaces/helm/secrets"
WEBHOOK = f"{cohdi.WEBHOOKS}/cohdis"
DEPLOYMENT = "/apis/apps/v1/namespaces/composable-dra/deployments/dds"
FOLDERS = ("deployments", "nodes", "secrets", "validatingwebhookconfigurations")
MANIFEST = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: composable-dra-dds}\n"


def release(version: int) -> Raw:
    record = {"name": "cohdi", "namespace": "helm", "version": version, "manifest": MANIFEST}
    meta = {"name": f"v{version}", "namespace": "helm", "labels": {"version": str(version)}}
    return {"metadata": meta, "data": {"release": spelt.packed(record)}}


def text(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


class Board:
    """An API server's objects by path: GET of one, GET of all in a folder, merge patches."""

    def __init__(self, objects: Mapping[str, Raw]) -> None:
        self.objects = {path: copied(one) for path, one in objects.items()}
        self.writes: list[str] = []

    async def raw(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        *,
        params: Mapping[str, str] = NOTHING,
        content_type: str = JSON,
    ) -> Raw:
        del params, content_type
        if method == "PATCH":
            self.writes.append(path)
            self.objects[path] = merged(self.objects[path], dict(body or {}))
        if path in self.objects:
            return copied(self.objects[path])  # type: ignore[no-any-return]  # JSON has no types
        if "metal3" in path:
            raise Unserved(path)
        if path.rpartition("/")[2] not in FOLDERS:
            raise Gone(path)
        inside = [one for place, one in self.objects.items() if place.rpartition("/")[0] == path]
        return {"items": copied(inside)}


def merged(old: Raw, patch: Raw) -> Raw:
    new = {**old}
    for key, value in patch.items():
        if value is None:
            new.pop(key, None)
        else:
            new[key] = merged(new.get(key) or {}, value) if isinstance(value, dict) else value
    return new


OBJECTS: dict[str, Raw] = {
    cohdi.CONFIG: {"data": {"device-info": "[]", "label-prefix": "cohdi.io"}},
    cohdi.CREDENTIAL: {"data": {"realm": text("r"), "password": text("p"), "certificate": text("pem")}},
    "/api/v1/namespaces/composable-dra": {"metadata": {"name": "composable-dra"}},
    DEFINITION: {
        "metadata": {
            "name": "composableresources.cro.hpsys.ibm.ie.com",
            "annotations": {"meta.helm.sh/release-name": "cohdi", "meta.helm.sh/release-namespace": "helm"},
        }
    },
    f"{RELEASES}/v9": release(9),
    f"{RELEASES}/v10": release(10),
    DEPLOYMENT: {"metadata": {"name": "dds", "namespace": "composable-dra"}, "spec": {"replicas": 2}},
    WEBHOOK: {
        "metadata": {"name": "cohdis", "resourceVersion": "1"},
        "webhooks": [
            {
                "name": "ours",
                "rules": [{"apiGroups": ["cro.hpsys.ibm.ie.com"]}],
                "matchConditions": [{"name": "x"}],
            },
            {"name": "other", "rules": [{"apiGroups": ["apps"]}]},
        ],
    },
}
for one in OBJECTS.values():
    one.setdefault("metadata", {}).setdefault("resourceVersion", "1")


def done(board: Board, step: Callable[[Board], Coroutine[None, None, tuple[str, ...]]]) -> tuple[str, ...]:
    return asyncio.run(step(board))


def test_the_release_that_was_deployed_last_is_marked_and_the_mark_can_be_taken_back() -> None:
    board = Board(OBJECTS)
    told = done(board, lambda api: cohdi.protect(api, {"TENANT_ID": "t"}))
    assert told[0] == "helm uninstall cohdi leaves ConfigMap/composable-dra-dds"
    assert board.writes == [f"{RELEASES}/v10", cohdi.CONFIG]
    assert spelt.release(spelt.opened(board.objects[f"{RELEASES}/v10"])).lost == ()
    assert spelt.config(board.objects[cohdi.CONFIG]).remembered == {"TENANT_ID": "t"}
    told = done(board, cohdi.expose)
    assert told[0] == "helm uninstall cohdi takes ConfigMap/composable-dra-dds"
    assert board.objects[cohdi.CONFIG] == OBJECTS[cohdi.CONFIG]


def test_definitions_that_helm_does_not_manage_need_no_protection() -> None:
    board = Board({**OBJECTS, DEFINITION: {"metadata": {"name": "composableresources"}}})
    assert "no release of Helm" in done(board, lambda api: cohdi.protect(api, {}))[0]
    assert board.writes == [cohdi.CONFIG]


def test_what_is_stopped_is_as_it_was_when_it_runs_again() -> None:
    board = Board(OBJECTS)
    assert done(board, cohdi.stop) == ("Deployment composable-dra/dds stopped", "webhook cohdis is not asked")
    assert board.objects[DEPLOYMENT]["spec"]["replicas"] == 0
    assert done(board, cohdi.stop) == (), "a second time nothing is left to stop"
    assert done(board, cohdi.resume) == (
        "webhook cohdis is asked again",
        "Deployment composable-dra/dds runs again with 2",
    )
    assert board.objects[DEPLOYMENT]["spec"] == OBJECTS[DEPLOYMENT]["spec"]
    assert board.objects[WEBHOOK]["webhooks"][0] == OBJECTS[WEBHOOK]["webhooks"][0]
    assert done(board, cohdi.resume) == ()


def test_a_webhook_that_is_asked_about_other_kinds_is_left_alone() -> None:
    board = Board(OBJECTS)
    done(board, cohdi.stop)
    assert board.objects[WEBHOOK]["webhooks"][1] == OBJECTS[WEBHOOK]["webhooks"][1]


def test_settings_are_read_without_secrets_and_credentials_with_them() -> None:
    board = Board(OBJECTS)
    found = asyncio.run(cohdi.settings(board, {"TENANT_ID": "t"}))
    assert found.credentials == ("certificate", "password", "realm")
    assert (found.told, [one.name for one in found.programs]) == ({"TENANT_ID": "t"}, ["dds"])
    credentials, certificate = asyncio.run(cohdi.credentials(board))
    assert (credentials["password"], credentials["username"], certificate) == ("p", "", "pem")
    assert board.writes == []


@pytest.mark.parametrize("path", [cohdi.CONFIG, cohdi.CREDENTIAL, "/api/v1/namespaces/composable-dra"])
def test_what_is_not_there_is_not_there_and_no_error(path: str) -> None:
    board = Board({place: one for place, one in OBJECTS.items() if place != path})
    found = asyncio.run(cohdi.settings(board, {}))
    assert (found.there, bool(found.credentials), bool(found.programs)) == (
        path != cohdi.CONFIG,
        path != cohdi.CREDENTIAL,
        path != "/api/v1/namespaces/composable-dra",
    )
