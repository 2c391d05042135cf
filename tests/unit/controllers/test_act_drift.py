"""Effects about devices that are not where the books say: a condition that comes and goes, and what others attached."""

import pytest

from jackfield.controllers.act import act
from jackfield.model.composition import MISSING, VISIBLE, ResourceState
from jackfield.model.meta import Condition, condition, holds
from jackfield.model.names import Version, rfc3339
from jackfield.model.plan import MarkMissing, MarkState
from jackfield.ports import Conflict
from jackfield.testing import builders as b
from unit.controllers.actions import CR, D0, OLD, WHY, P, version
from unit.controllers.bench import Bench, play

SEEN = Condition(VISIBLE, "True", VISIBLE, "seen", rfc3339(b.NOW))


def missing(at: Version, *, gone: bool) -> MarkMissing:
    return MarkMissing(
        phase=P, because=WHY, resource=CR, version=at, missing=gone, message="it is in the pool"
    )


def test_that_a_device_is_missing_stands_beside_what_else_is_said() -> None:
    async def scene(bench: Bench) -> None:
        made = await bench.put(b.resource(physical="0000", conditions=(SEEN,)))
        await bench.act(missing(version(made), gone=True))
        gone = await bench.resource()
        said = condition(gone.status.conditions, MISSING)
        assert said is not None
        assert (said.status, said.message) == ("True", "it is in the pool")
        assert holds(gone.status.conditions, VISIBLE)
        assert gone.state is ResourceState.ONLINE
        await bench.act(missing(version(gone), gone=False))
        back = await bench.resource()
        assert not holds(back.status.conditions, MISSING)
        assert condition(back.status.conditions, MISSING) is not None

    play(scene)


def test_that_a_device_is_missing_is_written_on_the_version_it_was_decided_on() -> None:
    async def scene(bench: Bench) -> None:
        await bench.put(b.resource(physical="0000"))
        with pytest.raises(Conflict):
            await act(missing(OLD, gone=True), bench.hands)

    play(scene)


def test_what_leaves_has_its_id_written_with_its_state() -> None:
    async def scene(bench: Bench) -> None:
        made = await bench.put(b.resource(state=ResourceState.NEW, foreign="0000"))
        leave = MarkState(
            phase=P,
            because=WHY,
            resource=CR,
            version=version(made),
            state=ResourceState.DETACHING,
            device=D0,
            serial="GPU-0",
        )
        await bench.act(leave)
        status = (await bench.resource()).status
        assert (status.state, status.cdi_device_id, status.device_id) == (
            ResourceState.DETACHING,
            D0,
            "GPU-0",
        )

    play(scene)
