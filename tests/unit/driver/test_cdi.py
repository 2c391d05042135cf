"""CDI specs, read by a reader as strict as the runtimes' own."""

from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jackfield.driver import cdi
from jackfield.driver.cdi import DeviceNode, Edits, Hook, Mount, NetDevice
from jackfield.ports import Refused

KIND = "gpu.example.com/claim"


class ReadNode(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    path: str
    host_path: str = ""
    type: str = ""
    major: int = 0
    minor: int = 0
    file_mode: int | None = None
    permissions: str = ""
    uid: int | None = None
    gid: int | None = None


class ReadMount(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    host_path: str
    container_path: str
    options: tuple[str, ...] = ()
    type: str = ""


class ReadHook(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    hook_name: str
    path: str
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    timeout: int | None = None


class ReadInterface(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    host_interface_name: str
    name: str


class ReadEdits(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    env: tuple[str, ...] = ()
    device_nodes: tuple[ReadNode, ...] = ()
    mounts: tuple[ReadMount, ...] = ()
    hooks: tuple[ReadHook, ...] = ()
    net_devices: tuple[ReadInterface, ...] = ()
    additional_gids: tuple[int, ...] = msgspec.field(default=(), name="additionalGids")


class ReadDevice(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    name: str
    container_edits: ReadEdits


class ReadSpec(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    cdi_version: str
    kind: str
    devices: tuple[ReadDevice, ...]


def read(devices: Mapping[str, Edits], kind: str = KIND) -> ReadSpec:
    return msgspec.json.decode(cdi.spec(kind, devices), type=ReadSpec)


def test_a_spec_says_what_each_device_brings() -> None:
    edits = Edits(
        env={"UUID": "GPU-1", "EMPTY": ""},
        device_nodes=(DeviceNode("/dev/gpu0", "/dev/real", "c", 195, 3, "rw", 0, 44, 0o660),),
        mounts=(Mount("/opt/lib", "/usr/lib/gpu"), Mount("/data", "/data", ("rw", "bind"))),
        hooks=(Hook("createContainer", "/usr/bin/ldcache", ("ldcache", "--all"), ("A=b",), 3),),
        net_devices=(NetDevice("eth1", "rdma0"),),
        additional_gids=(44,),
    )
    written = read({"one": edits, "two": Edits(env={"A": "b=c"})})
    assert written.kind == KIND
    one, two = written.devices
    assert one == ReadDevice(
        "one",
        ReadEdits(
            ("EMPTY=", "UUID=GPU-1"),
            (ReadNode("/dev/gpu0", "/dev/real", "c", 195, 3, 0o660, "rw", 0, 44),),
            (
                ReadMount("/opt/lib", "/usr/lib/gpu", ("ro", "nosuid", "nodev", "bind")),
                ReadMount("/data", "/data", ("rw", "bind")),
            ),
            (ReadHook("createContainer", "/usr/bin/ldcache", ("ldcache", "--all"), ("A=b",), 3),),
            (ReadInterface("eth1", "rdma0"),),
            (44,),
        ),
    )
    assert two == ReadDevice("two", ReadEdits(("A=b=c",)))


@pytest.mark.parametrize(
    ("version", "kind", "name", "edits"),
    [
        ("0.3.0", KIND, "a", Edits(env={"A": "b"})),
        ("0.3.0", KIND, "a", Edits(device_nodes=(DeviceNode("/dev/a", type="c", uid=1),))),
        ("0.3.0", KIND, "a", Edits(mounts=(Mount("/a", "/b"),))),
        ("0.3.0", KIND, "a", Edits(hooks=(Hook("poststop", "/bin/true"),))),
        ("0.4.0", KIND, "a", Edits(mounts=(Mount("/a", "/b", type="tmpfs"),))),
        ("0.5.0", KIND, "a", Edits(device_nodes=(DeviceNode("/dev/a", "/dev/b"),))),
        ("0.5.0", KIND, "0a", Edits(env={"A": "b"})),
        ("0.6.0", "example.com/gpu.v1", "0a", Edits(env={"A": "b"})),
        ("0.7.0", KIND, "0a", Edits(additional_gids=(1,))),
        ("1.1.0", KIND, "0a", Edits(net_devices=(NetDevice("a", "b"),), additional_gids=(1,))),
    ],
)
def test_the_version_is_the_lowest_that_has_what_is_used(
    version: str, kind: str, name: str, edits: Edits
) -> None:
    # Each was also asked of the library that containerd reads specs with.
    assert read({name: edits}, kind).cdi_version == version
    assert read({"zzz": Edits(env={"A": "b"}), name: edits}, kind).cdi_version == version


def test_a_device_without_edits_gets_one_that_does_no_harm() -> None:
    one, two = read({"u-1-a": Edits(), "b": Edits()}).devices
    assert one.container_edits == ReadEdits(("CDI_DEVICE_U_1_A=present",))
    assert two.container_edits == ReadEdits(("CDI_DEVICE_B=present",))


def test_both_edits_are_what_either_gives() -> None:
    node, mount = DeviceNode("/dev/a"), Mount("/a", "/b")
    left = Edits(env={"A": "1", "B": "1"}, device_nodes=(node,), additional_gids=(1,))
    right = Edits(env={"B": "2"}, device_nodes=(node, DeviceNode("/dev/b")), mounts=(mount,))
    assert left | right == Edits(
        env={"A": "1", "B": "2"},
        device_nodes=(node, DeviceNode("/dev/b")),
        mounts=(mount,),
        additional_gids=(1,),
    )
    assert left | Edits() == left
    assert bool(left)
    assert not Edits()


LONG = "x" * 5000


@pytest.mark.parametrize(
    ("edits", "words"),
    [
        (Edits(env={"": "a"}), "is no name of a variable"),
        (Edits(env={"A=B": "a"}), "is no name of a variable"),
        (Edits(env={"A B": "a"}), "is no name of a variable"),
        (Edits(env={"A\n": "a"}), "is no name of a variable"),
        (Edits(env={"A": "a\nLD_PRELOAD=/evil.so"}), "a line break"),
        (Edits(env={"A": "a\rb"}), "a line break"),
        (Edits(env={"A": "a\0b"}), "a NUL"),
        (Edits(env={"A": "\ud800"}), "half a character"),
        (Edits(env={"A": "a" * 131_070}), "longer than"),
        (Edits(device_nodes=(DeviceNode("dev/a"),)), "no absolute path"),
        (Edits(device_nodes=(DeviceNode("/dev/../etc/shadow"),)), "no absolute path"),
        (Edits(device_nodes=(DeviceNode("/dev/a", "/dev/../etc"),)), "no absolute path"),
        (Edits(device_nodes=(DeviceNode("/dev/./a"),)), "no absolute path"),
        (Edits(device_nodes=(DeviceNode(""),)), "no absolute path"),
        (Edits(device_nodes=(DeviceNode("/dev/a\0b"),)), "a NUL"),
        (Edits(device_nodes=(DeviceNode(f"/dev/{LONG}"),)), "longer than"),
        (Edits(device_nodes=(DeviceNode("/dev/a", type="x"),)), "has type 'x'"),
        (Edits(device_nodes=(DeviceNode("/dev/a", permissions="rwx"),)), "has permissions 'rwx'"),
        (Edits(device_nodes=(DeviceNode("/dev/a", major=-1),)), "does not fit"),
        (Edits(device_nodes=(DeviceNode("/dev/a", minor=1 << 32),)), "does not fit"),
        (Edits(device_nodes=(DeviceNode("/dev/a", uid=-1),)), "does not fit"),
        (Edits(mounts=(Mount("/", "/a"),)), "no absolute path"),
        (Edits(mounts=(Mount("/a", "/"),)), "no absolute path"),
        (Edits(mounts=(Mount("/a", "b/../.."),)), "no absolute path"),
        (Edits(mounts=(Mount("/a", "/b", ("ro\n",)),)), "an option of a mount"),
        (Edits(hooks=(Hook("before", "/a"),)), "is no hook; there are prestart"),
        (Edits(hooks=(Hook("poststop", "a"),)), "the hook's program"),
        (Edits(hooks=(Hook("poststop", "/a", ("\0",)),)), "an argument of a hook"),
        (Edits(hooks=(Hook("poststop", "/a", env=("=b",)),)), "is no name of a variable"),
        (Edits(hooks=(Hook("poststop", "/a", timeout=-1),)), "a hook's timeout"),
        (Edits(net_devices=(NetDevice("", "a"),)), "no name of a network interface"),
        (Edits(net_devices=(NetDevice("a", "../b"),)), "no name of a network interface"),
        (Edits(net_devices=(NetDevice("a", ".."),)), "no name of a network interface"),
        (Edits(net_devices=(NetDevice("a", "x" * 16),)), "no name of a network interface"),
        (Edits(net_devices=(NetDevice("a", "b"), NetDevice("a", "c"))), "named twice: a, a"),
        (Edits(net_devices=(NetDevice("a", "b"), NetDevice("c", "b"))), "named twice: b, b"),
        (Edits(additional_gids=(-1,)), "an additional group"),
    ],
)
def test_edits_that_no_runtime_could_do_are_refused_in_words(edits: Edits, words: str) -> None:
    with pytest.raises(Refused, match=words) as refused:
        cdi.spec(KIND, {"a": Edits(env={"A": "b"}), "b": edits})
    assert len(str(refused.value)) < 300
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    "kind",
    [
        "",
        "gpu",
        "/gpu",
        "a/",
        "a/b/c",
        "1a/b",
        "a/1b",
        "a_/b",
        "a/b-",
        "a b/c",
        "ä/b",
        "a/b\n",
        "../b",
        "a/..",
    ],
)
def test_a_kind_that_is_none_is_refused(kind: str) -> None:
    with pytest.raises(Refused, match="is no kind of CDI device"):
        cdi.spec(kind, {"a": Edits(env={"A": "b"})})


@pytest.mark.parametrize("name", ["", "-a", "a-", "a/b", "a=b", "a b", "ä", "..", "a\n"])
def test_a_device_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(Refused, match="is no name of a CDI device"):
        cdi.spec(KIND, {name: Edits(env={"A": "b"})})


def test_a_spec_without_a_device_is_refused() -> None:
    with pytest.raises(Refused, match="without a device is none"):
        cdi.spec(KIND, {})


@pytest.mark.parametrize("name", ["nvidia.com/gpu=0", "nvidia.com/gpu=GPU-7c6d", "a/b=c:1.2_3"])
def test_names_of_other_specs_are_accepted(name: str) -> None:
    cdi.check_qualified(name)


@pytest.mark.parametrize(
    "name", ["", "gpu", "nvidia.com/gpu", "nvidia.com/gpu=", "/gpu=0", "a/b=c\n", "a/b/c=d"]
)
def test_names_that_are_none_of_a_spec_are_refused(name: str) -> None:
    with pytest.raises(Refused, match="is not the name of a CDI device"):
        cdi.check_qualified(name)


texts = st.text(max_size=20)
any_edits = st.builds(
    Edits,
    env=st.dictionaries(texts, texts, max_size=3),
    device_nodes=st.lists(
        st.builds(DeviceNode, texts, texts, texts, st.integers(), st.integers(), texts), max_size=2
    ).map(tuple),
    mounts=st.lists(st.builds(Mount, texts, texts, st.lists(texts).map(tuple), texts), max_size=2).map(tuple),
    hooks=st.lists(st.builds(Hook, texts, texts), max_size=1).map(tuple),
    net_devices=st.lists(st.builds(NetDevice, texts, texts), max_size=2).map(tuple),
    additional_gids=st.lists(st.integers(), max_size=2).map(tuple),
)


@settings(deadline=None)
@given(texts, texts, any_edits)
def test_whatever_is_asked_is_refused_or_written_as_a_reader_wants_it(
    kind: str, name: str, edits: Edits
) -> None:
    for one, other in ((kind, name), (KIND, "a")):
        try:
            written = read({other: edits}, one)
        except Refused:
            continue
        assert written.devices[0].name == other
        variables = written.devices[0].container_edits.env
        assert all("\n" not in variable and "\0" not in variable for variable in variables)
