"""A whole driver against claims that nobody sound would write, and against noise: refused in words, nothing written.

The API is a forger here: a driver reads what it likes to say, whatever a real one would have refused. What the driver's
author does is the worst: everything that the claim's configuration says is handed on.
"""

import re
from collections.abc import Callable, Coroutine, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

import grpc
import grpc.aio
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from jackfield import driver
from jackfield.cluster.api import Client
from jackfield.model.claim import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    OpaqueDeviceConfiguration,
    ResourceClaim,
    ResourceClaimStatus,
)
from jackfield.model.meta import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Object,
    ObjectMeta,
)
from jackfield.model.names import Key, Uid
from jackfield.ports import Gone
from jackfield.testing.kubelet import Claim, Kubelet
from unit.driver.site import NODE, Site, on_a_node

ECHO = "echo.example.com"
GOOD = Claim("default", "good", "uid-good")
BAD = Claim("default", "bad", "uid-bad")
T = TypeVar("T", bound=Object)
MAY_BE = re.compile(
    r"plugins/echo\.example\.com(/(dra\.sock|checkpoint\.jsonl|\.lock|metadata(/uid-good[-_.a-z0-9]*\.json)?))?"
    r"|registry/echo\.example\.com-reg\.sock|cdi/echo\.example\.com_claim_uid-good\.json"
)
"""All that there may be on the node while nothing but the good claim is prepared."""


class Echo(driver.Driver):
    """Gives containers whatever the claim's configuration asks for."""

    name = ECHO

    def devices(self) -> Iterable[driver.Device]:
        return [driver.device(name) for name in ("one", "two")]

    async def prepare(self, share: driver.Share) -> driver.Prepared:
        wish = {key: value for config in share.config for key, value in config.items()}
        return msgspec.convert(wish, driver.Prepared)


class Forger(Client):
    """A handle to the API that has claims of its own."""

    forged: Mapping[Key, ResourceClaim] = {}

    async def read(self, kind: type[T], key: Key) -> T:
        if kind is not ResourceClaim:
            return await super().read(kind, key)
        if key not in self.forged:
            raise Gone(f"there is no claim {key}")
        return msgspec.convert(self.forged[key], kind, from_attributes=True)


def forged(
    *results: DeviceRequestAllocationResult, uid: str = "uid-bad", node: str = NODE, config: bytes = b""
) -> ResourceClaim:
    """Return a claim as somebody wrote it."""
    term = NodeSelectorTerm(match_fields=(NodeSelectorRequirement("metadata.name", "In", (node,)),))
    opaque = DeviceAllocationConfiguration(
        "FromClaim", (), OpaqueDeviceConfiguration(ECHO, msgspec.Raw(config))
    )
    devices = DeviceAllocationResult(results, (opaque,) if config else ())
    return ResourceClaim(
        metadata=ObjectMeta(name="bad", namespace="default", uid=Uid(uid)),
        status=ResourceClaimStatus(AllocationResult(devices, NodeSelector((term,)) if node else None)),
    )


def result(**fields: object) -> DeviceRequestAllocationResult:
    return replace(DeviceRequestAllocationResult("echo", ECHO, NODE, "two"), **fields)


def configured(**wish: object) -> ResourceClaim:
    return forged(result(), config=msgspec.json.encode(wish))


SOUND = replace(
    forged(result(device="one"), uid="uid-good"), metadata=ObjectMeta(name="good", uid=Uid("uid-good"))
)
TRICKS = ("../../outside/x", "/etc/cron.d/x", "..", "a/../../b", "a\0b", "a\nb", "x" * 300)
PATHS: Mapping[str, Callable[[str], dict[str, object]]] = {
    "variable": lambda trick: {"edits": {"env": {f"{trick}=": "x"}}},
    "deviceNodes": lambda trick: {"edits": {"deviceNodes": [{"path": f"/dev/{trick}/.."}]}},
    "mounts": lambda trick: {"edits": {"mounts": [{"hostPath": trick.lstrip("/"), "containerPath": "/x"}]}},
    "hooks": lambda trick: {"edits": {"hooks": [{"hookName": "prestart", "path": trick.lstrip("/")}]}},
    "netDevices": lambda trick: {"edits": {"netDevices": [{"hostInterfaceName": trick, "name": "eth0"}]}},
    "name": lambda trick: {"cdi": [f"vendor.example/{trick}=0"]},
}
HOSTILE: dict[str, ResourceClaim] = {
    "for another node": forged(result(), node="n2"),
    "a forged uid": forged(result(), uid="uid-of-another"),
    "a forged uid that is a path": forged(result(), uid="../../outside/x"),
    "not allocated": replace(forged(), status=ResourceClaimStatus()),
    **{f"device {trick[:20]!r}": forged(result(device=trick)) for trick in TRICKS},
    **{f"pool {trick[:20]!r}": forged(result(pool=trick)) for trick in TRICKS},
    **{f"request {trick[:20]!r}": forged(result(request=trick)) for trick in TRICKS},
    **{f"share {trick[:20]!r}": forged(result(share_id=trick)) for trick in TRICKS},
    **{
        f"{field} {trick[:20]!r}": configured(**make(trick))
        for field, make in PATHS.items()
        for trick in TRICKS[:-1]
    },
    "a line break in a variable": configured(edits={"env": {"A": "b\nLD_PRELOAD=/x"}}),
    "configuration of 11 kB": configured(x="x" * 11_000),
    "configuration nested without end": forged(result(), config=b'{"a":' + b"[" * 4000 + b"]" * 4000 + b"}"),
    "configuration that is no object": forged(result(), config=b'"../../x"'),
    "configuration that is nothing": forged(result(), config=b"\0\xff"),
    "a thousand devices": forged(*(result(share_id=f"s-{number}") for number in range(1000))),
}


class Node:
    """The node: the driver behind its sockets, the kubelet, and all that lies on the disk beside them."""

    def __init__(self, site: Site, kubelet: Kubelet, api: Forger) -> None:
        self.places = site.places
        self.kubelet = kubelet
        self.api = api
        self._root = site.folder
        self._outside = self._snapshot("outside")

    def elsewhere(self) -> list[str]:
        """Return what is there and should not be, or is not any more."""
        there = (str(one.relative_to(self._root)) for one in self._root.rglob("*"))
        ours = (one for one in there if one.partition("/")[0] in {"plugins", "registry", "cdi"})
        odd = [one for one in ours if "/" in one and not MAY_BE.fullmatch(one)]
        return odd + ([] if self._snapshot("outside") == self._outside else ["outside"])

    def _snapshot(self, name: str) -> dict[str, str]:
        return {str(one): one.read_text() for one in sorted((self._root / name).rglob("*"))}

    async def asked(self, claim: ResourceClaim, about: Claim = BAD) -> str:
        """Have a claim prepared and undone, beside a good one; return why it was refused."""
        self.api.forged = {Key(GOOD.namespace, GOOD.name): SOUND, Key(about.namespace, about.name): claim}
        prepared = await self.kubelet.prepare(ECHO, GOOD, about)
        assert prepared[GOOD.uid].error == ""
        assert self.elsewhere() == [] or not prepared[about.uid].error
        undone = await self.kubelet.unprepare(ECHO, about)
        assert undone[about.uid].error == ""
        assert self.elsewhere() == []
        return prepared[about.uid].error


def on_the_node(scene: Callable[[Node], Coroutine[object, object, None]]) -> None:
    """Play a scene with a whole driver, whose good claim is undone in the end; nothing is left then."""

    async def play(site: Site) -> None:
        (site.folder / "outside").mkdir()
        (site.folder / "outside" / "passwd").write_text("root")
        api = Forger(site.store, site.cluster._feeds, "driver")  # noqa: SLF001 - as `client` does
        async with site.kubelet() as kubelet, driver.Kit(Echo(), api, NODE, site.places):
            await kubelet.registered(ECHO)
            node = Node(site, kubelet, api)
            await scene(node)
            assert (await kubelet.unprepare(ECHO, GOOD))[GOOD.uid].error == ""
            assert [*site.places.cdi.glob("*")] == []

    on_a_node(play)


def test_a_claim_that_nobody_sound_would_write_is_refused_in_words_and_nothing_is_written() -> None:
    async def scene(node: Node) -> None:
        told = {name: await node.asked(claim) for name, claim in HOSTILE.items()}
        assert [name for name, error in told.items() if not error] == []
        assert [name for name, error in told.items() if not error.isprintable()] == []
        assert [name for name, error in told.items() if len(error) > 1000] == []

    on_the_node(scene)


PLANTED = ("cdi/echo.example.com_claim_uid-good.json", "cdi/.echo.example.com_claim_uid-good.json.new")


@pytest.mark.parametrize("name", PLANTED)
def test_a_link_that_waits_where_a_file_is_to_be_written_leads_nowhere(name: str) -> None:
    async def scene(node: Node) -> None:
        outside = node.places.cdi.parent / "outside" / "passwd"
        planted = node.places.cdi.parent / name
        planted.parent.mkdir(exist_ok=True)
        planted.symlink_to(outside)
        assert "default/bad" in await node.asked(forged(result(), node="n2"))
        (file,) = node.places.cdi.glob("*.json")
        assert (file.is_symlink(), outside.read_text()) == (False, "root")

    on_the_node(scene)


# --- noise

V1 = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"
METHODS = [
    f"{service}/{method}"
    for service in (V1, V1.replace("v1", "v1beta1"))
    for method in ("NodePrepareResources", "NodeUnprepareResources")
]
SOBER = {grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT}
ODD = st.one_of(
    st.sampled_from(["echo", "two", "n1", *TRICKS]), st.text(st.characters(codec="utf-8"), max_size=40)
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), ODD),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ODD, inner, max_size=3),
    max_leaves=8,
)


@st.composite
def claims(draw: st.DrawFn) -> ResourceClaim:
    """Return a claim that is odd anywhere, or nowhere."""
    fields = draw(st.fixed_dictionaries({}, optional=dict.fromkeys(("device", "pool", "request"), ODD)))
    wish = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "edits": st.dictionaries(
                    st.sampled_from(["env", "deviceNodes", "mounts", "hooks", "netDevices"]), JSON, max_size=3
                ),
                "cdi": st.lists(ODD, max_size=2),
                "notes": st.dictionaries(ODD, ODD, max_size=2),
            },
        )
    )
    return forged(
        result(**fields, share_id=draw(st.sampled_from(["", "s-1", "../x"]))),
        uid=draw(st.sampled_from(["uid-bad", "uid-bad", "../x", ""])),
        node=draw(st.sampled_from([NODE, NODE, "", "n2"])),
        config=draw(st.one_of(st.just(msgspec.json.encode(wish)), st.binary(max_size=40))),
    )


async def spoken(path: Path, method: str, request: bytes) -> grpc.StatusCode:
    alone = [("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.insecure_channel(f"unix:{path}", options=alone) as channel:
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(method)
        try:
            await call(request)
        except grpc.aio.AioRpcError as error:
            return error.code()
        return grpc.StatusCode.OK


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(told=st.lists(st.tuples(claims(), st.sampled_from(METHODS), st.binary(max_size=120)), max_size=10))
def test_whatever_claims_and_callers_say_nothing_is_written_outside_and_the_next_claim_is_served(
    told: list[tuple[ResourceClaim, str, bytes]],
) -> None:
    async def scene(node: Node) -> None:
        for claim, method, noise in told:
            await node.asked(claim)
            assert await spoken(node.places.service(ECHO), method, noise) in SOBER
            assert node.elsewhere() == []

    on_the_node(scene)
