"""The policy's file while a process runs: sound changes are taken over, others are told once and change nothing."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from jackfield.cli.policy_watch import PolicyWatch
from jackfield.model.names import Seconds
from jackfield.model.policy import Policy


class Scene:
    """A watch over a file, who takes its policies over, and who hears of it."""

    def __init__(self, path: Path, text: str = "") -> None:
        self.path = path
        self.path.write_text(text)
        self.taken: list[Policy] = []
        self.told: list[tuple[bool, str]] = []
        self.obstacles: tuple[str, ...] = ()
        self.heard = asyncio.Event()
        self.watch = PolicyWatch(path, Policy(), self.take, self.hear)

    def take(self, policy: Policy) -> tuple[str, ...]:
        if not self.obstacles:
            self.taken.append(policy)
        return self.obstacles

    def hear(self, ok: bool, words: str) -> None:  # noqa: FBT001 - as Told says
        self.told.append((ok, words))
        self.heard.set()

    def look(self, text: str | None = None, *, asked: bool = False) -> tuple[bool, str] | None:
        """Look, after the file was written anew; return what was told."""
        if text is not None:
            self.path.write_text(text)
        before = len(self.told)
        self.watch.look(asked=asked)
        assert len(self.told) - before <= 1
        return self.told[-1] if len(self.told) > before else None


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "policy.yaml")


def test_a_change_is_taken_over_once_and_told_by_the_settings_that_changed(scene: Scene) -> None:
    assert scene.look() is None
    assert scene.look("holdSeconds: 5\npaused: true\n") == (
        True,
        f"the policy in {scene.path} is in force; changed: holdSeconds, paused",
    )
    assert scene.taken[-1] == Policy(hold_seconds=Seconds(5.0), paused=True)
    count = len(scene.taken)
    assert scene.look() is None
    assert len(scene.taken) == count


def test_a_change_that_says_nothing_else_is_not_told(scene: Scene) -> None:
    scene.look("holdSeconds: 5\n")
    assert scene.look("# in words\nholdSeconds: 5.0\n") is None


def test_a_file_that_cannot_be_used_changes_nothing_and_is_told_once(scene: Scene) -> None:
    scene.look("holdSeconds: 5\n")
    taken = list(scene.taken)
    fault = f"{scene.path}:2:1: holdSecond: there is no such setting; was holdSeconds meant?"
    assert scene.look("holdSeconds: 5\nholdSecond: 7\n") == (False, f"the policy stays as it was:\n{fault}")
    assert scene.look() is None
    assert scene.taken == taken


def test_a_file_that_is_sound_again_is_told_though_nothing_has_changed(scene: Scene) -> None:
    scene.look("holdSeconds: x\n")
    assert scene.look("") == (
        True,
        f"the policy in {scene.path} is in force; nothing in it has changed",
    )


def test_another_fault_is_told_again(scene: Scene) -> None:
    assert scene.look("holdSeconds: x\n") != scene.look("holdSeconds: -1\n")
    assert [ok for ok, _ in scene.told] == [False, False]


def test_a_file_that_is_gone_for_a_moment_changes_nothing(scene: Scene) -> None:
    scene.look("holdSeconds: 5\n")
    scene.path.unlink()
    found = scene.look()
    assert found is not None
    assert found[0] is False
    assert "cannot be read: No such file or directory" in found[1]
    assert scene.look("holdSeconds: 5\n") is not None
    assert scene.taken[-1].hold_seconds == Seconds(5.0)


def test_what_cannot_be_taken_over_now_is_tried_until_it_can(scene: Scene) -> None:
    scene.obstacles = ("models: A100 is in use",)
    assert scene.look("holdSeconds: 5\n") == (
        False,
        f"the policy stays as it was:\n{scene.path}: models: A100 is in use",
    )
    assert scene.look() is None
    assert scene.taken == []
    scene.obstacles = ()
    assert scene.look() == (True, f"the policy in {scene.path} is in force; changed: holdSeconds")
    assert scene.taken == [Policy(hold_seconds=Seconds(5.0))]


def test_who_asks_is_answered_though_nothing_has_changed(scene: Scene) -> None:
    scene.look()
    assert scene.look(asked=True) == (
        True,
        f"the policy in {scene.path} is in force; nothing in it has changed",
    )
    scene.look("paused: maybe\n")
    again = scene.look(asked=True)
    assert again is not None
    assert again[0] is False


def mounted(folder: Path, text: str) -> Callable[[str], None]:
    """Have a ConfigMap mounted as the kubelet does; return what swaps it for another."""
    (folder / "policy.yaml").symlink_to(Path("..data") / "policy.yaml")
    generations = iter(range(1000))

    def swap(text: str) -> None:
        generation = folder / f"..{next(generations)}"
        generation.mkdir()
        (generation / "policy.yaml").write_text(text)
        (folder / "..data_tmp").symlink_to(generation.name)
        (folder / "..data_tmp").rename(folder / "..data")

    swap(text)
    return swap


def test_a_config_map_that_is_swapped_is_seen(tmp_path: Path) -> None:
    swap = mounted(tmp_path, "holdSeconds: 1\n")
    scene = Scene(tmp_path / "other.yaml")
    watch = PolicyWatch(tmp_path / "policy.yaml", Policy(hold_seconds=Seconds(1.0)), scene.take, scene.hear)
    watch.look()
    assert scene.told == []
    swap("holdSeconds: 2\n")
    watch.look()
    assert scene.taken[-1] == Policy(hold_seconds=Seconds(2.0))
    assert [ok for ok, _ in scene.told] == [True]


def test_a_watch_looks_when_told_to_by_a_signal_and_ends_when_cancelled(tmp_path: Path) -> None:
    async def play() -> None:
        scene, ready = Scene(tmp_path / "policy.yaml"), asyncio.Event()
        task = asyncio.create_task(scene.watch.run(ready))
        await asyncio.sleep(0)  # noqa: TID251 - the task is to begin, no time is to pass
        os.kill(os.getpid(), signal.SIGHUP)
        ready.set()
        await scene.heard.wait()
        assert scene.told == [(True, f"the policy in {scene.path} is in force; nothing in it has changed")]
        scene.heard.clear()
        scene.path.write_text("paused: true\n")  # and now by itself
        await scene.heard.wait()
        assert scene.taken[-1] == Policy(paused=True)
        task.cancel()
        await asyncio.wait((task,))
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL

    asyncio.run(play())
