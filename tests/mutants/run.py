"""Tries every mutant: `python -m mutants.run` with tests/ on the path, or `make mutants`.

Each is applied to a copy of src/ in a folder of its own and lives through ordeals in a process of its own, seed after
seed, until something is seen that must never be. Knows how to apply and to count. Must not know what is looked for.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

from mutants.table import MUTANTS, Mutant

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "mutants.md"
BEGIN, END = "<!-- written by make mutants -->\n", "<!-- end -->\n"
SEEDS: Final = 500
PROGRAM: Final = """
import sys
from jackfield.sim.torture import draw, run
first, last = int(sys.argv[1]), int(sys.argv[2])
for seed in range(first, last):
    verdict = run.suffer(draw.draw(seed))
    if verdict.violations:
        print(seed, verdict.violations[0].replace(chr(10), " "), flush=True)
        sys.exit(1)
"""
"""What a mutant lives through: it says at which seed something was seen, and what."""


class Found(NamedTuple):
    """What became of a mutant."""

    mutant: Mutant
    seed: int
    """The first at which something was seen; 0 for none."""
    checker: str
    what: str


def main() -> int:
    """Try mutants; return how many survived, as an exit status."""
    parser = argparse.ArgumentParser(description="Try whether the checkers bite: every mutant must be found.")
    parser.add_argument("names", nargs="*", help="try only these; the page is then left as it is")
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
    found = []
    with ThreadPoolExecutor(given.workers) as pool:
        for one in pool.map(lambda each: tried(each, given.first, given.seeds), chosen):
            found.append(one)
            tell(f"{one.mutant.name:<28} {one.seed or 'SURVIVED':>8}  {one.checker}  {one.what}")
    survived = [one.mutant.name for one in found if not one.seed]
    lost = ", ".join(survived) or "none"
    tell(f"{len(found)} mutants, {len(found) - len(survived)} found; survived: {lost}")
    if not given.names:
        write(PAGE, found)
    return 1 if survived else 0


def tell(line: str) -> None:
    """Print a line at once: a mutant may take minutes."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def tried(mutant: Mutant, first: int, seeds: int) -> Found:
    """Let a mutant live through ordeals until something is seen."""
    with tempfile.TemporaryDirectory(prefix="jackfield-mutant-") as folder:
        copy = Path(folder) / "src"
        shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
        apply(mutant, copy)
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(first), str(first + seeds)],
            env={**os.environ, "PYTHONPATH": str(copy), "PYTHONHASHSEED": "0"},
            capture_output=True,
            text=True,
            check=False,
        )
    seed, _, words = done.stdout.strip().partition(" ")
    if seed.isdecimal():
        timed, _, rest = words.partition(" ")  # what lacks in the end has no time
        checker, _, what = (rest if timed.replace(".", "").isdecimal() else words).partition(" ")
        return Found(mutant, int(seed), checker, what)
    if done.returncode:  # it did not get so far as to be judged: that is no way of being found
        raise RuntimeError(f"mutant {mutant.name} could not be tried: {done.stderr.strip()[-2000:]}")
    return Found(mutant, 0, "", "")


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
    """Put the table into the page, between its marks."""
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text("".join((before, BEGIN, *rows(found), END, after)))


def rows(found: list[Found]) -> Iterator[str]:
    """Return the table, line by line."""
    yield "\n| mutant | what it breaks | found at seed | by |\n|---|---|---|---|\n"
    for one in found:
        place = str(one.seed) if one.seed else "**survived**"
        by = f"`{one.checker}`" if one.checker else ""
        yield f"| `{one.mutant.name}` ({one.mutant.file}) | {one.mutant.breaks} | {place} | {by} |\n"
    yield "\n"


if __name__ == "__main__":
    sys.exit(main())
