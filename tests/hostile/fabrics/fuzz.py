"""`make fuzz-fabric`: hostile managers for every adapter, and hostile callers for every face of our own manager.

Knows how many, and how to tell what was wrong: a case is named by adapter, seed and number, and can be had again alone.
"""

import argparse
import gc
import resource
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Final

from hostile.fabrics import faces, hurried
from hostile.fabrics.benches import SETUPS
from hostile.fabrics.judging import Court, Verdict
from hostile.fabrics.tape import Tape, recorded

TELL_EVERY: Final = 5_000
SHOWN_MAX: Final = 20
"""So much of what is wrong is shown of each adapter; the rest is only counted."""
MEGABYTES_MAX: Final = 1_500
"""What the process may have held at most: an adapter, a liar, and the largest answer several times over."""


def taped(kind: str) -> Tape:
    """Return what an adapter and our manager say to each other."""
    with tempfile.TemporaryDirectory() as folder:
        return hurried.run(recorded(kind, Path(folder)))


def run(kind: str, seed: int, lies: int, *, by_hand: bool = False) -> tuple[Counter[str], list[str]]:
    """Let an adapter be lied to so often; return what came of it, and what was wrong.

    By hand, now and then an answer is very large, and somebody wants to be told how far it is.
    """
    court = Court(kind, taped(kind), large=by_hand)
    return hurried.run(_run(court, seed, lies, tell=by_hand))


async def _run(on: Court, seed: int, lies: int, *, tell: bool) -> tuple[Counter[str], list[str]]:
    kind = on.kind
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    told, number, began = 0, 0, time.perf_counter()
    async with on.sitting() as court:
        while told < lies:
            verdict = await court.try_case(seed, number)
            outcomes.update(verdict.outcomes)
            found = _shown(kind, seed, number, verdict)
            for one in found if tell and len(wrong) < SHOWN_MAX else ():
                say(one)
            wrong.extend(found)
            number += 1
            before, told = told, told + verdict.lies
            if tell and told // TELL_EVERY > before // TELL_EVERY:
                gc.collect()  # what nobody asked for any more complains now, not in another case
                took, held = time.perf_counter() - began, megabytes()
                so_far = f"{told} hostile answers, {number} conversations, {len(wrong)} wrong"
                say(f"{kind}: {so_far}, {took:.0f} s, {held} MB")
    if megabytes() > MEGABYTES_MAX:
        wrong.append(f"{kind} --seed {seed}: {megabytes()} MB were held")
    return outcomes, wrong


async def _again(kind: str, tape: Tape, seed: int, number: int) -> Verdict:
    async with Court(kind, tape).sitting() as court:
        return await court.try_case(seed, number)


def _shown(kind: str, seed: int, number: int, verdict: Verdict) -> list[str]:
    return [f"--adapter {kind} --seed {seed} --case {number}: {fault}" for fault in verdict.faults]


def megabytes() -> int:
    """Return the most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def say(line: str) -> None:
    """Print it at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Lie so often, and return the exit status."""
    parser = argparse.ArgumentParser(prog="fuzz-fabric", description=__doc__)
    number = partial(parser.add_argument, type=int, metavar="N")
    number("--lies", default=100_000, help="hostile answers for each adapter")
    number("--requests", default=100_000, help="hostile requests to the faces")
    number("--crowd", default=10_000, help="connections on which nothing is said")
    number("--seed", default=1, help="the same number, the same answers")
    number("--case", help="only this conversation of the adapter, with all that was said")
    parser.add_argument("--adapter", choices=[*SETUPS], action="append", help="only this one, and no faces")
    options = parser.parse_args()
    kinds = options.adapter or [*SETUPS]
    if options.case is not None:
        return _replay(kinds[0], options.seed, options.case)
    wrong = [one for kind in kinds for one in _lied_to(kind, options.seed, options.lies)]
    if not options.adapter:
        wrong += _asked(options.seed, options.requests)
        wrong += _crowded(options.crowd)
    say(f"{len(wrong)} wrong")
    return int(bool(wrong))


def _lied_to(kind: str, seed: int, lies: int) -> list[str]:
    began = time.perf_counter()
    outcomes, wrong = run(kind, seed, lies, by_hand=True)
    say(
        f"{kind}: {time.perf_counter() - began:.0f} s, {megabytes()} MB at most, {dict(sorted(outcomes.items()))}"
    )
    return wrong


def _asked(seed: int, requests: int) -> list[str]:
    wrong: list[str] = []
    for start in range(0, requests, TELL_EVERY):
        began = time.perf_counter()
        inputs = range(start, min(requests, start + TELL_EVERY))
        with tempfile.TemporaryDirectory() as folder:
            outcomes, found = hurried.run(faces.run(Path(folder), seed, inputs))
        took, shown = time.perf_counter() - began, dict(sorted(outcomes.items()))
        say(f"faces: requests to {inputs.stop}, {len(found)} wrong, {took:.0f} s, {megabytes()} MB, {shown}")
        for one in found[:SHOWN_MAX]:
            say(one)
        wrong += found
    return wrong


def _crowded(most: int) -> list[str]:
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    count = min(most, files - 4_000)  # both ends are here
    before = megabytes()
    with tempfile.TemporaryDirectory() as folder:
        most_inside, left = hurried.run(faces.crowded(Path(folder), count))
    say(
        f"a crowd of {count}: {most_inside} let in, {left} in the end, {megabytes() - before} MB for both ends"
    )
    return [f"of a crowd of {count}, {left} are still there"] if left else []


def _replay(kind: str, seed: int, number: int) -> int:
    verdict = hurried.run(_again(kind, taped(kind), seed, number))
    for one in verdict.trace:
        say(one)
    for fault in verdict.faults:
        say(fault)
    say(f"{dict(verdict.outcomes)}, {verdict.lies} hostile answers, {len(verdict.faults)} wrong")
    return int(bool(verdict.faults))


if __name__ == "__main__":
    raise SystemExit(main())
