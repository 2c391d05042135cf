"""One command of the script, and short ways to write many.

Knows what a step can say. Must not know any command.
"""

from collections.abc import Mapping

import msgspec


class Step(msgspec.Struct, frozen=True):
    """One command. What has to come true before the next one is a step too: `wait`."""

    words: str
    """As in a shell: quotes and backslashes keep words together."""
    text: str = ""
    """What is piped into it; a word in braces is one of `knowing`."""
    knowing: Mapping[str, str] = {}
    """Commands that are asked first, by the word that their output stands for."""
    meanwhile: tuple["Step", ...] = ()
    """What is done while it runs, as soon as it has printed something or a second has passed."""
    editor: str = "false"
    at_a_glance: bool = False
    """Whether no more than the first line is compared, as what follows shows the insides of the real server."""


def patched(name: str, *types_and_patches: str) -> tuple[Step, ...]:
    """Return patches of one object."""
    pairs = zip(types_and_patches[::2], types_and_patches[1::2], strict=True)
    return tuple(Step(f"patch {name} --type={kind} -p '{patch}'") for kind, patch in pairs)


def steps(*words: str) -> tuple[Step, ...]:
    """Return steps that need nothing but words."""
    return tuple(Step(one) for one in words)
