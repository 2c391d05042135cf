"""How a GPU is brought to what claims hold of it, whatever stands in the way."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from jackfield.core.share import (
    ComputePolicy,
    Daemon,
    Gpu,
    Holding,
    Instance,
    Interval,
    Mig,
    Partition,
    Placement,
    SharingConfig,
    Strategy,
)
from jackfield.core.share.config import MpsConfig, TimeSlicingConfig
from jackfield.core.share.models import A100_40GB
from jackfield.model.names import Uid
from jackfield.node.nvidia import Hands, bring_about
from jackfield.ports import Gone, Refused, Retry
from jackfield.testing.nvidia import Daemons, Fault, Gpus

MPS = SharingConfig(Strategy.MPS, mps_config=MpsConfig(50, "1Gi"))
LONG = SharingConfig(Strategy.TIME_SLICING, TimeSlicingConfig(Interval.LONG))
SMALL = Partition(A100_40GB[0], Placement(3, 1))
PART = Holding(Uid("a"), "gpu-0-mig-1g-5gb-at-3", partition=SMALL)
WHOLE = Holding(Uid("a"), "gpu-0")


class Killed(Exception):  # noqa: N818 - it is no error
    """The plugin ends here."""


class Mortal(Gpus):
    """GPUs whose user is killed after so many calls: what was asked for is done, the answer is never heard."""

    lives = 0

    def _spend(self) -> None:
        self.lives -= 1
        if not self.lives:
            raise Killed

    def set_mig(self, uuid: str, *, enabled: bool) -> None:
        super().set_mig(uuid, enabled=enabled)
        self._spend()

    def create(self, uuid: str, partition: Partition) -> Instance:
        made = super().create(uuid, partition)
        self._spend()
        return made

    def destroy(self, uuid: str, instance: Instance) -> None:
        super().destroy(uuid, instance)
        self._spend()

    def set_policy(self, uuid: str, policy: ComputePolicy) -> None:
        super().set_policy(uuid, policy)
        self._spend()


def node(make: Callable[..., Gpus] = Gpus.of, mig: Mig = Mig.DISABLED) -> tuple[Hands, Gpus, Daemons]:
    gpus, daemons = make("NVIDIA A100-SXM4-40GB", 1, mig), Daemons()
    return Hands(gpus, daemons), gpus, daemons


def gpu(hands: Hands, gpus: Gpus, *, new: Holding | None = None, left: tuple[Holding, ...] = ()) -> Gpu:
    return bring_about(hands, gpus.uuids[0], new=new, left=left)


def test_a_partition_with_mps_is_made_from_nothing_and_nothing_is_left_of_it() -> None:
    hands, gpus, daemons = node()
    wanted = replace(PART, sharing=MPS)
    (made,) = gpu(hands, gpus, new=wanted).instances
    assert daemons.daemons() == (Daemon(made.uuid, 50, 1024),)
    assert gpus.calls == ["set mig on", "create 1g.5gb at {3}:1"]
    after = gpu(hands, gpus, left=(wanted,))
    assert (after.instances, daemons.daemons(), after.mig) == ((), (), Mig.ENABLED)


def test_what_is_there_costs_no_call() -> None:
    hands, gpus, _ = node(mig=Mig.ENABLED)
    gpu(hands, gpus, new=PART)
    before = list(gpus.calls)
    gpu(hands, gpus, new=PART)
    assert gpus.calls == before


def test_a_whole_gpu_goes_back_to_what_it_was() -> None:
    hands, gpus, daemons = node(mig=Mig.ENABLED)
    for sharing in (MPS, LONG):
        wanted = replace(WHOLE, sharing=sharing)
        assert gpu(hands, gpus, new=wanted).mig is Mig.DISABLED
        assert len(daemons.daemons()) == (sharing is MPS)
        assert gpu(hands, gpus, left=(wanted,)).policy == ComputePolicy()
        assert daemons.daemons() == ()


def test_who_is_killed_at_any_step_goes_on_from_there() -> None:
    for lives in range(1, 6):
        hands, gpus, daemons = node(Mortal.of)
        assert isinstance(gpus, Mortal)
        gpus.lives = lives
        for wanted in (replace(PART, sharing=MPS), replace(WHOLE, claim=Uid("b"), sharing=LONG)):
            for new, left in ((wanted, ()), (None, (wanted,))):
                try:
                    gpu(hands, gpus, new=new, left=left)
                except Killed:
                    gpu(hands, gpus, new=new, left=left)
        after = gpus.gpus()[0]
        assert (after.instances, after.mig, after.policy, daemons.daemons()) == (
            (),
            Mig.DISABLED,
            ComputePolicy(),
            (),
        )


def test_daemons_that_died_are_started_again() -> None:
    hands, gpus, daemons = node()
    wanted = replace(WHOLE, sharing=MPS)
    gpu(hands, gpus, new=wanted)
    daemons.kill()
    bring_about(hands, gpus.uuids[0], (wanted,))
    assert len(daemons.daemons()) == 1


def test_what_somebody_uses_is_tried_again_later() -> None:
    hands, gpus, _ = node()
    gpus.hold(gpus.uuids[0], "dcgm (pid 4242)")
    with pytest.raises(Retry, match="in use by dcgm"):
        gpu(hands, gpus, new=PART)
    gpus.let_go(gpus.uuids[0])
    assert len(gpu(hands, gpus, new=PART).instances) == 1


def test_a_reset_that_nobody_can_do_from_here_is_asked_for_in_words() -> None:
    hands, gpus, _ = node()
    gpus.faults[gpus.uuids[0]] = Fault.NEEDS_RESET
    for _ in range(2):
        with pytest.raises(Refused, match="requires a reset"):
            gpu(hands, gpus, new=PART)
    gpus.reset(gpus.uuids[0])
    assert len(gpu(hands, gpus, new=PART).instances) == 1


def test_a_gpu_that_is_gone_is_gone() -> None:
    hands, gpus, _ = node()
    gpus.faults[gpus.uuids[0]] = Fault.LOST
    with pytest.raises(Gone, match="not there any more"):
        gpu(hands, gpus, new=PART)


def test_a_daemon_that_cannot_be_started_is_told_in_its_own_words() -> None:
    hands, gpus, daemons = node()
    daemons.refuses = "`nvidia-cuda-mps-control` is not installed on this node"
    with pytest.raises(Refused, match="not installed"):
        gpu(hands, gpus, new=replace(WHOLE, sharing=MPS))


def test_who_works_against_us_is_noticed() -> None:
    class Stubborn(Gpus):
        def set_mig(self, uuid: str, *, enabled: bool) -> None:
            """Do nothing, as if somebody undid it at once."""

    hands, gpus, _ = node(Stubborn.of, Mig.ENABLED)
    with pytest.raises(Retry, match="somebody else seems to change it"):
        gpu(hands, gpus, new=WHOLE)
