"""Taking over writes a name and, where nobody knows what was asked last, when it may have been; nothing else."""

import pytest
from msgspec.structs import replace

from jackfield.controllers.act import act
from jackfield.model.composition import FINALIZER, ComposableResource
from jackfield.model.plan import TakeOver
from jackfield.testing import builders as b
from unit.controllers.actions import CR, DEVICE, WHY, P, version
from unit.controllers.bench import Bench, play


def theirs() -> ComposableResource:
    made = b.resource(physical="0000", finalizers=(FINALIZER,))
    return replace(made, metadata=replace(made.metadata, annotations={}))


@pytest.mark.parametrize("sent", ["", "attach 2026-01-01T00:00:00.000000Z"])
def test_a_resource_of_cohdis_gets_a_name_and_keeps_all_it_has(sent: str) -> None:
    async def scene(bench: Bench) -> None:
        made = await bench.put(theirs())
        assert isinstance(made, ComposableResource)
        assert made.device is None
        take = TakeOver(phase=P, because=WHY, resource=CR, version=version(made), device=DEVICE, sent=sent)
        await act(take, bench.hands)
        found = await bench.resource()
        assert (found.device, found.sent[0]) == (DEVICE, sent.partition(" ")[0])
        assert (found.status, found.metadata.labels) == (made.status, made.metadata.labels)
        assert bench.store.resource_of(DEVICE) == found, "the answer is known at once"

    play(scene)
