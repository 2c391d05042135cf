"""What is asked of the API itself, and what its answer tells."""

import pytest
from msgspec.structs import replace

from jackfield.model.composition import FINALIZER, ComposableResource
from jackfield.model.names import Uid
from jackfield.model.plan import DeleteResource, PutResource
from jackfield.ports import Conflict, Gone
from jackfield.testing import builders as b
from unit.controllers.actions import ANY, DEVICE, WHY, P
from unit.controllers.bench import Bench, play


def test_nothing_is_put_into_the_books_by_who_does_not_know_what_is_in_them() -> None:
    """The device may be another's: who has been told an old list would have it twice."""

    async def scene(bench: Bench) -> None:
        other = await bench.put(b.resource("a100-2"))
        bench.store.remove(other)
        bench.store.clear()
        new = b.resource()
        new = ComposableResource(
            metadata=replace(new.metadata, uid=Uid(""), resource_version=ANY, finalizers=(FINALIZER,)),
            spec=new.spec,
        )
        found = PutResource(phase=P, because=WHY, resource=new, ask=True)
        with pytest.raises(Conflict):
            await bench.act(found)
        assert bench.store.resource(other.metadata.name) == other
        await bench.act(found)
        assert (await bench.resource()).device == DEVICE

    play(scene)


def test_what_turns_out_to_be_gone_is_known_to_be_gone() -> None:
    """A watch that is behind may not tell of it for long, and the same would be decided until then."""

    async def scene(bench: Bench) -> None:
        known = await bench.put(b.resource())
        await bench.client.delete(ComposableResource, known.key, known.metadata.resource_version)
        end = DeleteResource(
            phase=P, because=WHY, resource=known.metadata.name, version=known.metadata.resource_version
        )
        with pytest.raises(Gone):
            await bench.act(end)
        assert bench.store.resource(known.metadata.name) is None
        await bench.act(end)

    play(scene)
