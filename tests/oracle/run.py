"""`make oracle`: random cases through Kubernetes' own code and through ours; the smallest that differs is printed.

Knows how many, and what to say. Must not know how cases are drawn or compared.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice

import msgspec

from jackfield.codec import Raw
from oracle import agreement, programs, shrinking
from oracle.agreement import Verdict
from oracle.expressions import Expressions
from oracle.worlds import Worlds

BATCH = 250
SHOWN = 3
KNOWN_PER_1000 = 1

Compare = Callable[[Raw, Raw], Verdict]


class Comparison:
    """One kind of case, asked of both."""

    def __init__(self, theirs: programs.Ask, ours: programs.Ask, compare: Compare) -> None:
        self._theirs = theirs
        self._ours = ours
        self._compare = compare
        self.verdicts: Counter[Verdict] = Counter()
        self.different: list[Raw] = []
        self.others: Counter[str] = Counter()
        """Why the undecided and the known are such."""

    def ask(self, cases: Sequence[Raw]) -> list[tuple[Raw, Raw]]:
        """Return both answers to each case."""
        lines = [msgspec.json.encode(case) + b"\n" for case in cases]
        with ThreadPoolExecutor(1) as pool:
            theirs = pool.submit(self._theirs, lines)
            ours = self._ours(lines)
            return list(zip(theirs.result(), ours, strict=True))

    def run(self, cases: Iterator[Raw], say: Callable[[str], None]) -> None:
        """Ask all cases, and keep those that differ."""
        while batch := list(islice(cases, BATCH)):
            for case, (theirs, ours) in zip(batch, self.ask(batch), strict=True):
                verdict = self.verdict(theirs, ours)
                self.verdicts[verdict] += 1
                if verdict is Verdict.DIFFERENT:
                    self.different.append(case)
                elif verdict is not Verdict.AGREED:
                    self.others[agreement.reason(theirs, ours)] += 1
            say(f"{self.verdicts.total()} cases, {len(self.different)} differ")

    def verdict(self, theirs: Raw, ours: Raw) -> Verdict:
        """Compare two answers; a line that cannot be read should not have been drawn, and differs."""
        return Verdict.DIFFERENT if "line" in theirs or "line" in ours else self._compare(theirs, ours)

    def differs(self, case: Raw) -> bool:
        """Whether a case that both can read is answered differently."""
        (theirs, ours) = self.ask([case])[0]
        return (
            "line" not in theirs and "line" not in ours and self._compare(theirs, ours) is Verdict.DIFFERENT
        )

    def summary(self) -> str:
        counts = [f"{self.verdicts[one]} {one}" for one in Verdict]
        reasons = [f"\n  {number} {reason}" for reason, number in self.others.most_common()]
        return f"{self.verdicts.total()} cases: {', '.join(counts)}{''.join(reasons)}"

    def show(self, most: int) -> None:
        """Print the smallest cases that differ, made smaller still, with both answers."""
        smallest = sorted(self.different, key=lambda case: len(msgspec.json.encode(case)))[:most]
        for case in smallest:
            small = shrinking.shrunk(case, self.differs) if self.differs(case) else case
            theirs, ours = self.ask([small])[0]
            _say(f"--- differs: {case['name']}\n{msgspec.json.encode(small).decode()}")
            for who, answer in (("kubernetes", theirs), ("jackfield", ours)):
                kept = {name: value for name, value in answer.items() if name not in small}
                _say(f"{who}: {msgspec.json.encode(kept).decode()}")

    def failed(self) -> bool:
        """Whether they disagree more than docs/dra.md says."""
        return (
            bool(self.different)
            or self.verdicts[Verdict.KNOWN] * 1000 > KNOWN_PER_1000 * self.verdicts.total()
        )


def main() -> int:
    """Compare, and return the exit status."""
    options = _options()
    try:
        binary = programs.oracle()
    except programs.NoOracleError as error:
        _say(f"NOT COMPARED WITH KUBERNETES: {error}")
        return 1
    failed = False
    for command, total, draw, compare in (
        ("allocate", options.allocations, Worlds(options.seed).case, agreement.allocations),
        ("cel", options.expressions, Expressions(options.seed).case, agreement.evaluations),
    ):
        comparison = Comparison(programs.kubernetes(binary, command), programs.ours(command), compare)
        comparison.run(map(draw, range(total)), partial(_progress, command))
        _say(f"{command}, seed {options.seed}: {comparison.summary()}")
        comparison.show(options.show)
        failed = failed or comparison.failed()
    return int(failed)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _progress(command: str, text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{command}: {text} ")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="oracle", description=__doc__)
    parser.add_argument("--allocations", type=int, default=1000, metavar="N", help="so many worlds")
    parser.add_argument("--expressions", type=int, default=1000, metavar="N", help="so many selectors")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="the same number, the same cases")
    parser.add_argument("--show", type=int, default=SHOWN, metavar="N", help="print so many that differ")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
