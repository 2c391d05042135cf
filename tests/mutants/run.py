"""Tries every mutant: `python -m mutants.run` with tests/ on the path, or `make mutants`.

Each is applied to a copy of src/ in a folder of its own and lives through ordeals in a process of its own, seed after
seed, until something is seen that must never be, and that the code without the mutation does not show at that seed.
Knows how to apply and to count. Must not know what is looked for.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from mutants.table import MUTANTS, Mutant

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "mutants.md"
BEGIN, END = "<!-- written by make mutants -->\n", "<!-- end -->\n"
SEEDS: Final = 500
PROGRESS: Final = 25
"""After so many ordeals of a mutant it is told that it is still alive."""
PROGRAM: Final = """
import sys
from jackfield.sim.torture import draw, run
for seed in range(int(sys.argv[1]), int(sys.argv[2])):
    verdict = run.suffer(draw.draw(seed))
    print(seed, *(one.replace(chr(10), " ") for one in verdict.violations[:1]), flush=True)
    if verdict.violations:
        break
"""
"""What a mutant lives through: it says which seed it has behind it, and at the last one what was seen."""


class Found(NamedTuple):
    """What became of a mutant."""

    mutant: Mutant
    seed: int
    """The first at which something was seen; 0 for none."""
    checker: str
    what: str
    lived: int = 0
    """How many ordeals it lived through."""


class Lived(NamedTuple):
    """What a copy of the code has behind it."""

    last: int
    """The last seed."""
    words: str
    """What was seen at that; empty if nothing was."""


def main() -> int:
    """Try mutants; return how many survived, as an exit status."""
    parser = argparse.ArgumentParser(description="Try whether the checkers bite: every mutant must be found.")
    parser.add_argument("names", nargs="*", help="try only these; the page keeps what it says of the others")
    parser.add_argument(
        "--seeds", type=int, default=SEEDS, help="how many ordeals each lives through at most"
    )
    parser.add_argument("--from", dest="first", type=int, default=1, help="the first seed")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="mutants side by side")
    given = parser.parse_args()
    unknown = set(given.names) - {one.name for one in MUTANTS}
    if unknown:
        parser.error(f"there is no mutant {', '.join(sorted(unknown))}; tests/mutants/table.py has them all")
    chosen = [one for one in MUTANTS if not given.names or one.name in given.names]
    found, last, all_seeds = [], seeds(PAGE), range(given.first, given.first + given.seeds)
    with ThreadPoolExecutor(given.workers) as pool:
        spans = ((range(last.get(one.name, 0), last.get(one.name, -1) + 1), all_seeds) for one in chosen)
        trials = [pool.submit(tried, *each) for each in zip(chosen, spans, strict=True)]
        for trial in as_completed(trials):
            one = trial.result()
            found.append(one)
            write(PAGE, found)
            tell(f"{one.mutant.name:<28} {one.seed or 'SURVIVED':>8}  {one.checker}  {one.what}")
    survived = [one.mutant.name for one in found if not one.seed]
    lost = ", ".join(survived) or "none"
    tell(f"{len(found)} mutants, {len(found) - len(survived)} found; survived: {lost}")
    return 1 if survived else 0


def tell(line: str) -> None:
    """Print a line at once: a mutant may take minutes."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def tried(mutant: Mutant, spans: Iterable[range]) -> Found:
    """Let a mutant live through ordeals until something is seen that the code itself does not show there."""
    lives = 0
    with tempfile.TemporaryDirectory(prefix="jackfield-mutant-") as folder:
        copy = Path(folder) / "src"
        shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
        apply(mutant, copy)
        for span in spans:
            seed = span.start
            while seed < span.stop:
                lived = live(copy, mutant.name, seed, span.stop)
                lives, seed = lives + lived.last - seed + 1, lived.last + 1
                if lived.words and not is_broken(lived.last):
                    return Found(mutant, lived.last, *bitten(mutant, lived.words), lives)
    return Found(mutant, 0, "", "", lives)


def bitten(mutant: Mutant, words: str) -> tuple[str, str]:
    """Return the checker that found a mutant, and what it has seen. A mutant that is misspelt breaks no rule."""
    checker, what = read(words)
    if checker == "crash" and what.startswith(NameError.__name__):
        raise RuntimeError(f"{mutant.name} could not be tried: {what}")
    return checker, what


@cache
def is_broken(seed: int) -> bool:
    """Return whether the code itself shows something at a seed; then it is told. It is tried once for all mutants."""
    itself = live(ROOT / "src", "no mutant", seed, seed + 1)
    if itself.words:
        tell(f"{'no mutant':<28} {seed:>8}  {'  '.join(read(itself.words))}")
    return bool(itself.words)


def live(source: Path, name: str, first: int, end: int) -> Lived:
    """Let a copy of the code live through ordeals, until something is seen or they are over."""
    command = [sys.executable, "-c", PROGRAM, str(first), str(end)]
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONHASHSEED": "0"}
    last, words = first - 1, ""
    with (
        tempfile.TemporaryFile("w+") as complaints,
        subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=complaints, text=True
        ) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            seed, _, words = line.strip().partition(" ")
            last = int(seed)
            if (last - first + 1) % PROGRESS == 0 and not words:
                tell(f"{name:<28} alive after seed {last}")
        if process.wait():  # it did not get so far as to be judged: that is no way of being found
            complaints.seek(0)
            raise RuntimeError(f"{name} could not be tried: {complaints.read().strip()[-2000:]}")
    return Lived(last, words)


def read(words: str) -> tuple[str, str]:
    """Return the checker and what it has seen; what lacks in the end has no time."""
    timed, _, rest = words.partition(" ")
    checker, _, what = (rest if timed.replace(".", "").isdecimal() else words).partition(" ")
    return checker, what


def apply(mutant: Mutant, source: Path) -> None:
    """Replace what a mutant replaces, in a copy of src/."""
    file = source / "jackfield" / mutant.file
    text = file.read_text()
    if text.count(mutant.old) != 1:
        raise RuntimeError(
            f"mutant {mutant.name}: what it replaces is {text.count(mutant.old)} times in {mutant.file}"
        )
    file.write_text(text.replace(mutant.old, mutant.new))


def write(page: Path, found: list[Found]) -> None:
    """Put what was found into the page's table, between its marks; of the others it keeps what it says."""
    before, _, rest = page.read_text().partition(BEGIN)
    table, _, after = rest.partition(END)
    known = {line.split("`")[1]: f"{line}\n" for line in table.splitlines() if line.startswith("| `")}
    page.write_text("".join((before, BEGIN, *rows(found, known), END, after)))


def seeds(page: Path) -> dict[str, int]:
    """Return where each mutant was found when it was last tried, as the page says: there it is tried first."""
    cells = [line.split("|") for line in page.read_text().splitlines() if line.startswith("| `")]
    return {one[1].split("`")[1]: int(one[3]) for one in cells if one[3].strip().isdecimal()}


def rows(found: list[Found], known: Mapping[str, str]) -> Iterator[str]:
    """Return the table, line by line: mutants in their order, each as it was last tried."""
    yield "\n| mutant | what it breaks | found at seed | by |\n|---|---|---|---|\n"
    lines = {**known, **{one.mutant.name: row(one) for one in found}}
    places = {one.mutant.name: len(MUTANTS) for one in found}
    places |= {one.name: place for place, one in enumerate(MUTANTS)}
    yield from (
        lines[name] for name in sorted(lines, key=lambda name: places.get(name, -1)) if name in places
    )
    yield "\n"


def row(one: Found) -> str:
    """Return a line of the table."""
    place = str(one.seed) if one.seed else f"**survived {one.lived}**"
    by = f"`{one.checker}`" if one.checker else ""
    return f"| `{one.mutant.name}` ({one.mutant.file}) | {one.mutant.breaks} | {place} | {by} |\n"


if __name__ == "__main__":
    sys.exit(main())
