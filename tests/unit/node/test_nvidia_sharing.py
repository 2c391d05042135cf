"""The GPUs of a node, and who holds what of them: published, prepared, undone, found again."""

import random
from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from jackfield.core.share import Daemon, Mig, Partition, Partitions, Placement, Shares, Sharing
from jackfield.core.share.models import A30
from jackfield.driver import Mount, Share
from jackfield.model import quantity
from jackfield.model.names import Key, Uid
from jackfield.node.nvidia import Hands, Settings, SharedGpus
from jackfield.node.nvidia.sharing import NOTE, name_of
from jackfield.ports import Gone, Refused, Retry
from jackfield.testing.nvidia import Daemons, Fault, Gpus

QUARTER = "mig-1g-6gb-at-3"
MPS = {"apiVersion": "node.jackfield.dev/v1alpha1", "kind": "GpuConfig", "sharing": {"strategy": "MPS"}}


class Bench:
    """A node with one A30, and how often the vendor's specification was written anew."""

    def __init__(self, sharing: Sharing = Sharing(Partitions.ON_DEMAND), mig: Mig = Mig.DISABLED) -> None:
        self.gpus, self.daemons = Gpus.of("NVIDIA A30", 1, mig), Daemons()
        self.generated = 0
        self.sharing = sharing
        self.shared = self.born()

    def born(self) -> SharedGpus:
        """Return what shares the GPUs, remembering nothing."""

        def generate() -> None:
            self.generated += 1

        return SharedGpus(Hands(self.gpus, self.daemons), Settings(self.sharing, "/mps", generate))

    @property
    def name(self) -> str:
        return name_of(self.gpus.gpus()[0])

    def share(self, device: str = "", claim: str = "a", **fields: object) -> Share:
        name = f"{self.name}-{device}" if device else self.name
        plain = Share(claim=Key("ns", claim), uid=Uid(claim), requests=("gpu",), pool="n1", device=name)
        return replace(plain, **fields)

    def prepared(self, share: Share) -> Share:
        """Prepare a share, and return it as the kit remembers it."""
        return replace(share, notes=self.shared.prepare(share).notes)

    def left(self) -> Mapping[str, str]:
        """Return what is published of the counters."""
        (counters,) = self.shared.pool()[0].counters
        return {name: one.value for name, one in counters.counters.items()}


def test_names_are_those_of_the_gpus_themselves() -> None:
    bench = Bench()
    assert bench.name == f"gpu-{bench.gpus.uuids[0][4:12]}"
    pool, problems = bench.shared.pool()
    assert (len(pool.devices), pool.devices[0].name, problems) == (14, bench.name, ())


def test_a_partition_is_prepared_with_its_own_uuid_and_undone() -> None:
    bench = Bench()
    prepared = bench.shared.prepare(bench.share(QUARTER))
    (instance,) = bench.gpus.gpus()[0].instances
    assert prepared.cdi == (f"node.jackfield.dev/nvidia-gpu={instance.uuid}",)
    assert prepared.physical == instance.uuid
    assert prepared.edits.env == {"NVIDIA_VISIBLE_DEVICES": "void"}
    assert bench.generated == 1
    assert bench.shared.prepare(bench.share(QUARTER)) == prepared
    assert bench.generated == 1
    bench.shared.unprepare(bench.share(QUARTER))
    assert (bench.gpus.gpus()[0].instances, bench.generated) == ((), 2)


def test_mps_brings_its_folders_along() -> None:
    bench = Bench()
    prepared = bench.shared.prepare(bench.share(config=({}, MPS)))
    uuid = bench.gpus.uuids[0]
    assert prepared.edits.env["CUDA_MPS_PIPE_DIRECTORY"] == "/tmp/nvidia-mps"  # noqa: S108 - in the container
    assert prepared.edits.mounts[0] == Mount(
        f"/mps/{uuid}/pipe",
        "/tmp/nvidia-mps",  # noqa: S108 - likewise
        ("rw", "nosuid", "nodev", "bind"),
    )
    assert (bench.daemons.daemons(), bench.generated) == ((Daemon(uuid),), 0)


def test_what_is_held_is_never_taken_for_a_strangers() -> None:
    bench = Bench()
    before = bench.left()
    share = bench.prepared(bench.share(QUARTER))
    assert bench.left() == before
    bench.shared.unprepare(share)
    assert bench.left() == before


def test_what_a_stranger_made_is_not_on_offer() -> None:
    bench = Bench(mig=Mig.ENABLED)
    bench.gpus.make(bench.gpus.uuids[0], Partition(A30[0], Placement(1, 1)))
    assert bench.left()["memory-slice-1"] == "0"


def test_a_restart_takes_up_what_was_prepared_and_starts_what_died() -> None:
    bench = Bench()
    share = bench.prepared(bench.share(config=(MPS,)))
    bench.daemons.kill()
    bench.shared = bench.born()
    assert bench.shared.restore((share, bench.share(claim="without-notes"))) == ()
    assert len(bench.daemons.daemons()) == 1
    with pytest.raises(Refused, match="still prepared for claim a"):
        bench.shared.prepare(bench.share(claim="b"))
    bench.shared.unprepare(share)
    assert bench.daemons.daemons() == ()


def test_a_gpu_that_was_lost_meanwhile_keeps_nobody_from_starting() -> None:
    bench = Bench()
    share = bench.prepared(bench.share(QUARTER))
    bench.gpus.faults[bench.gpus.uuids[0]] = Fault.LOST
    bench.shared = bench.born()
    (words,) = bench.shared.restore((share,))
    assert "is not there any more" in words
    bench.shared.unprepare(share)


def test_one_that_was_killed_before_it_was_remembered_is_undone_by_the_devices_name() -> None:
    bench = Bench()
    bench.shared.prepare(bench.share(QUARTER))
    bench.shared = bench.born()
    bench.shared.unprepare(bench.share(QUARTER))
    assert bench.gpus.gpus()[0].instances == ()


def test_what_is_undone_already_is_undone_from_its_notes_too() -> None:
    bench = Bench()
    share = bench.prepared(bench.share(QUARTER))
    for _ in range(2):
        bench.shared.unprepare(share)
    assert NOTE in share.notes


def test_what_is_nowhere_cannot_be_prepared_and_is_undone() -> None:
    bench = Bench()
    with pytest.raises(Gone, match="its GPU is not there any more"):
        bench.shared.prepare(bench.share("mig-9g-99gb-at-0"))
    bench.shared.unprepare(bench.share("mig-9g-99gb-at-0"))


def test_configuration_that_cannot_be_followed_is_refused_by_the_name_of_its_field() -> None:
    bench = Bench()
    with pytest.raises(Refused, match="unknown field `colour`"):
        bench.shared.prepare(bench.share(config=({**MPS, "colour": "red"},)))


def test_what_failed_is_remembered_as_it_was_before() -> None:
    bench = Bench()
    bench.gpus.hold(bench.gpus.uuids[0], "dcgm")
    with pytest.raises(Retry, match="in use by dcgm"):
        bench.shared.prepare(bench.share(QUARTER))
    bench.gpus.let_go(bench.gpus.uuids[0])
    share = bench.prepared(bench.share(QUARTER))
    bench.gpus.hold(bench.gpus.gpus()[0].instances[0].uuid, "a process")
    with pytest.raises(Retry, match="in use by a process"):
        bench.shared.unprepare(share)
    with pytest.raises(Refused, match="lies there, still prepared for claim a"):
        bench.shared.prepare(bench.share(QUARTER, claim="b"))
    assert bench.shared.prepare(bench.share(QUARTER)).notes == share.notes


def test_who_could_not_be_served_again_holds_what_it_held() -> None:
    bench = Bench()
    bench.prepared(bench.share(config=(MPS,)))
    bench.daemons.kill()
    bench.daemons.refuses = "not installed"
    with pytest.raises(Refused, match="not installed"):
        bench.shared.prepare(bench.share(config=(MPS,)))
    with pytest.raises(Refused, match="still prepared for claim a"):
        bench.shared.prepare(bench.share(claim="b"))


def test_a_refused_change_of_mind_leaves_what_was_there() -> None:
    bench = Bench(Sharing(shares=Shares(4)))
    first = bench.share(share_id="s1", consumed_capacity={"memory": "5Gi", "shares": "1"})
    bench.prepared(first)
    with pytest.raises(Refused, match="must agree"):
        bench.shared.prepare(replace(first, uid=Uid("b"), share_id="s2", config=(MPS,)))
    bench.shared.prepare(first)
    assert bench.daemons.daemons() == ()


@pytest.mark.parametrize("seed", range(3))
def test_what_the_counters_let_through_is_prepared_and_nothing_else_whatever_comes_and_goes(
    seed: int,
) -> None:
    """Claims come, go and are told apart over restarts; one that the counters have no room for is refused."""
    dice, bench = random.Random(f"shared/{seed}"), Bench()  # noqa: S311 - chance is not cryptography
    pool = bench.shared.pool()[0]
    whole = {name: quantity.as_int(one.value) for name, one in pool.counters[0].counters.items()}
    taken = {
        device.name: {name: quantity.as_int(one.value) for name, one in consumed.counters.items()}
        for device in pool.devices
        for consumed in device.consumes_counters
    }
    held: dict[str, Share] = {}
    for number in range(150):
        if held and dice.random() < 0.4:
            bench.shared.unprepare(held.pop(dice.choice(sorted(held))))
        if dice.random() < 0.1:
            bench.shared = bench.born()
            assert bench.shared.restore(held.values()) == ()
        device = dice.choice(pool.devices).name
        used = {name: sum(taken[one].get(name, 0) for one in held) for name in whole}
        share = replace(bench.share(claim=f"c-{number}"), device=device)
        if all(used[name] + taken[device].get(name, 0) <= whole[name] for name in whole):
            held[device] = bench.prepared(share)
            continue
        with pytest.raises(Refused):
            bench.shared.prepare(share)
        # As the kit does with whatever was refused.
        bench.shared.unprepare(share)
    for share in held.values():
        bench.shared.unprepare(share)
    assert bench.gpus.gpus()[0].instances == ()


def test_without_the_vendors_tool_there_are_no_names_of_its_specification() -> None:
    gpus = Gpus.of("NVIDIA A30")
    shared = SharedGpus(Hands(gpus, Daemons()), Settings(Sharing(Partitions.ON_DEMAND)))
    name = f"{name_of(gpus.gpus()[0])}-{QUARTER}"
    share = Share(claim=Key("ns", "a"), uid=Uid("a"), requests=("gpu",), pool="n1", device=name)
    assert shared.prepare(share).cdi == ()
