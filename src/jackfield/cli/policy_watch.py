"""The policy's file while a process runs: a sound change is taken over, anything else is told and changes nothing.

The content is what is watched, so that it does not matter how it came about: written in place, renamed over the old
one, or swapped behind a symbolic link, as the kubelet does with a ConfigMap. Knows files and patience. Must not know
what a policy brings about.
"""

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

import msgspec

from jackfield.cli import policy_file
from jackfield.cli.policy_file import BadPolicy
from jackfield.model.policy import Policy

LOOK_SECONDS: Final = 2.0
"""How often the file is read; a hang-up signal asks for it at once."""

Take = Callable[[Policy], tuple[str, ...]]
"""Takes a policy over, or returns what keeps it from being taken over now."""


class Told(Protocol):
    """Hears whether the file's policy is the one in force now, and in words what was done."""

    def __call__(self, ok: bool, words: str) -> None:  # noqa: FBT001 - the hook of whoever counts
        """Hear it."""


class PolicyWatch:
    """Reads a file again and again; `look` does it once."""

    def __init__(self, path: Path, policy: Policy, take: Take, told: Told) -> None:
        """Watch a file whose policy, as it was read first, is in force."""
        self._path = path
        self._policy = policy
        self._take = take
        self._told = told
        self._content: bytes | None = None
        self._said = ""

    async def run(self, ready: asyncio.Event) -> None:
        """Look for ever, whenever all is known that a change may bear on."""
        loop, hung_up = asyncio.get_running_loop(), asyncio.Event()
        loop.add_signal_handler(signal.SIGHUP, hung_up.set)
        try:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await hung_up.wait()
                await ready.wait()
                asked = hung_up.is_set()
                hung_up.clear()
                self.look(asked=asked)
        finally:
            loop.remove_signal_handler(signal.SIGHUP)

    def look(self, *, asked: bool = False) -> None:
        """Take over what stands there, if it is another policy than the one in force; who asked is always answered."""
        if asked:
            self._content, self._said = None, ""
        try:
            content = self._path.read_bytes()
        except OSError as error:
            # While a ConfigMap is swapped there may be nothing for a moment.
            self._keep(f"{self._path}: cannot be read: {error.strerror}")
            return
        if content == self._content and not self._said:
            return
        self._content = content
        try:
            policy = policy_file.parse(policy_file.text(content, str(self._path)), str(self._path))
        except BadPolicy as error:
            self._keep(str(error))
            return
        obstacles = self._take(policy)
        if obstacles:
            self._keep("\n".join(f"{self._path}: {one}" for one in obstacles))
            return
        changed = _changed(self._policy, policy)
        recovered, self._policy, self._said = bool(self._said), policy, ""
        if changed or recovered or asked:
            what = f"changed: {', '.join(changed)}" if changed else "nothing in it has changed"
            self._told(ok=True, words=f"the policy in {self._path} is in force; {what}")

    def _keep(self, why: str) -> None:
        """Tell once why the old policy stays."""
        if why != self._said:
            self._said = why
            self._told(ok=False, words=f"the policy stays as it was:\n{why}")


def _changed(old: Policy, new: Policy) -> tuple[str, ...]:
    """The settings that are not the same, as they are spelt."""
    fields = msgspec.structs.fields(Policy)
    return tuple(one.encode_name for one in fields if getattr(old, one.name) != getattr(new, one.name))
