"""Whoever is not going to look, and should: what a change forgot to wake."""

from jackfield.controllers.dirty import Dirty
from jackfield.model.names import Seconds
from jackfield.sim import loop
from jackfield.sim.clock import running
from jackfield.testing import builders as b
from unit.controllers.scene import Decision, Host, Scene, play, running_for


def found(scene: Scene) -> list[tuple[str, object]]:
    return [(name, key) for name, key, _ in scene.runner.overlooked()]


def test_a_key_that_would_act_and_is_in_no_queue_is_overlooked() -> None:
    async def scene() -> None:
        stage = Scene(Decision(rounds=2), Host())
        await running_for(stage, 5, "a")
        stage.bench.store.put(b.node(annotations={"keys": "a b"}))
        assert found(stage) == [("test", "a"), ("test", "b")], "of two rounds one was done of a, none of b"
        assert found(stage) == [("test", "b")], "this decision counts how often it is asked"

    play(scene)


def test_what_waits_in_a_queue_is_not_overlooked() -> None:
    async def scene() -> None:
        stage = Scene(Decision(rounds=9), Host())
        stage.bench.store.put(b.node(annotations={"keys": "a b"}))
        await stage.mark("a")
        assert found(stage) == [("test", "b")]

    play(scene)


def test_a_queue_has_what_is_marked_worked_on_or_to_be_looked_at_later() -> None:
    async def scene() -> None:
        dirty = Dirty(running())
        dirty.mark("a")
        dirty.later("b", Seconds(running().now() + 100))
        assert [one in dirty for one in "abc"] == [True, True, False]
        assert await dirty.get() == "a"
        assert "a" in dirty
        dirty.done("a")
        assert "a" not in dirty

    loop.run(scene())
