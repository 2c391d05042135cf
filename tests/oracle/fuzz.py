"""`make fuzz`: spoilt lines through the machine interface; each must get one answer, and none may be our mistake.

Knows what every answer must be. Must not know what the lines say.
"""

import argparse
import sys
from collections import Counter
from functools import partial

import msgspec

from jackfield.codec import Raw, answers
from jackfield.core.allocate import Profile
from oracle.mangling import Mangled

COMMANDS: dict[str, answers.Answer] = {
    "allocate": partial(answers.allocation, profile=Profile.V1_36, explain=True),
    "cel": partial(answers.evaluation, explain=True),
}
ANSWERS = {"allocate": ("results", "error"), "cel": ("match", "maxCost")}


def fault(command: str, line: bytes, number: int) -> tuple[str, Raw]:
    """Return what is wrong with the answer to a line, or nothing, and the answer."""
    reply = answers.reply(line, number, COMMANDS[command])
    if b"\n" in reply:
        return "it is more than one line", {}
    answer: Raw = msgspec.json.decode(reply)
    if answer.get("line") == number and set(answer) == {"line", "error"}:
        return ("" if not answer["error"].startswith("internal error") else "it is our mistake"), answer
    missing = [name for name in ANSWERS[command] if name not in answer]
    return ("" if not missing else f"it lacks {', '.join(missing)}"), answer


def main() -> int:
    """Send so many lines, and return the exit status."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000, metavar="N", help="so many lines")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="the same number, the same lines")
    options = parser.parse_args()
    draw = Mangled(options.seed).line
    kinds: Counter[str] = Counter()
    for number in range(1, options.inputs + 1):
        command, line = draw(number)
        wrong, answer = fault(command, line, number)
        kinds["refused" if "line" in answer else "answered"] += 1
        if wrong:
            sys.stdout.write(f"line {number} of seed {options.seed}: {wrong}: {answer}\n{line[:2000]!r}\n")
            kinds["wrong"] += 1
    sys.stdout.write(f"{options.inputs} lines, seed {options.seed}: {dict(kinds)}\n")
    return int(kinds["wrong"] > 0)


if __name__ == "__main__":
    raise SystemExit(main())
