"""A furnished store with its face, and calls as short as a table of them needs."""

import random
from collections.abc import Mapping

import msgspec

from jackfield.cluster import bootstrap
from jackfield.cluster.face.api import Api
from jackfield.cluster.face.calls import JSON, Answer, Call
from jackfield.cluster.store import Store
from jackfield.codec import Raw
from jackfield.model.account import ServiceAccount
from jackfield.model.names import Seconds

NOW = Seconds(1.7e9)
MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
RESOURCES = "/apis/cro.hpsys.ibm.ie.com/v1alpha1/composableresources"


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.seconds = NOW

    def now(self) -> Seconds:
        return self.seconds


class Face:
    """An API over a store of its own, and what it called its own mistakes."""

    def __init__(self, seed: str = "face", events_max: int = 1000) -> None:
        self.clock = Clock()
        self.store = Store(
            self.clock.now,
            random.Random(seed),  # noqa: S311 - chance in tests is not cryptography
            events_max=events_max,
            served=True,
        )
        bootstrap.furnish(self.store, NOW)
        account = {"metadata": {"name": "default", "namespace": "default"}}
        self.store.create(ServiceAccount, account)
        self.mistakes: list[str] = []
        self.api = Api(self.store, self.clock.now, "v1.36.4", self.mistakes.append)

    def ask(self, call: Call) -> Answer:
        answer = self.api.answer(call)
        assert isinstance(answer, Answer), f"{call.method} {call.path} became a watch"
        return answer

    def get(self, path: str, accept: str = "", **query: str) -> Answer:
        return self.ask(Call("GET", path, query, accept=accept))

    def post(self, path: str, body: Raw, **query: str) -> Answer:
        return self.ask(Call("POST", path, query, msgspec.json.encode(body), JSON))

    def put(self, path: str, body: Raw, **query: str) -> Answer:
        return self.ask(Call("PUT", path, query, msgspec.json.encode(body), JSON))

    def patch(self, path: str, kind: str, body: object, **query: str) -> Answer:
        content_type = f"application/{kind}"
        return self.ask(Call("PATCH", path, query, msgspec.json.encode(body), content_type))

    def delete(self, path: str, body: Raw | None = None, **query: str) -> Answer:
        return self.ask(Call("DELETE", path, query, b"" if body is None else msgspec.json.encode(body)))


def told(answer: Answer) -> Raw:
    """Return what an answer says."""
    body: Raw = msgspec.json.decode(answer.body)
    return body


def refusal(answer: Answer) -> tuple[int, str]:
    """Return the code and the reason of an answer that must be a Status."""
    body = told(answer)
    assert body["kind"] == "Status", body
    assert body["code"] == answer.code
    return answer.code, body.get("reason", "")


def config_map(name: str = "m", **data: str) -> Raw:
    return {"metadata": {"name": name}, "data": data}


def pod(name: str = "p", labels: Mapping[str, str] | None = None) -> Raw:
    metadata: Raw = {"name": name, **({"labels": dict(labels)} if labels else {})}
    return {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def node(name: str = "n") -> Raw:
    return {"metadata": {"name": name}}


def resource(name: str = "r") -> Raw:
    return {"metadata": {"name": name}, "spec": {"type": "gpu", "model": "A100", "target_node": "n"}}
