"""`make fuzz-fabric`, last part: schemathesis reads the manager's own OpenAPI and tries whatever that lets it think of.

Knows how to start it. Must not know what it finds; its exit status says whether that is nothing.
"""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Final

from hostile.fabrics.fuzz import say
from jackfield.cli.clock import WallClock
from jackfield.fabric_manager.faces import registry
from jackfield.fabric_manager.faces.control import PREFIX
from jackfield.fabric_manager.server import Gate, Server
from unit.fabric_manager.lab import TOKEN, lab, managing

PROGRAM: Final = Path(sys.executable).with_name("schemathesis")
EXAMPLES: Final = 200
"""For each operation and each way of making them up."""
UNJUDGED: Final = "positive_data_acceptance"
"""No description says which devices there are, or which of a fault's fields go together: such a call is refused."""
RUNS: Final = (
    ("all but faults", ("--exclude-path-regex", "/faults")),
    ("faults", ("--include-path-regex", "/faults")),
)
"""Apart, since a fault that was asked for strikes other calls: their 5xx would be what was wanted."""


async def _run(folder: Path, examples: int) -> int:
    wrong = 0
    for name, chosen in RUNS:
        place = folder / name.replace(" ", "-")
        place.mkdir()
        async with (
            managing(place, lab(), clock=WallClock()) as manager,
            Server(manager, registry.chosen(()), Gate(TOKEN)) as server,
        ):
            say(f"schemathesis: {name}")
            process = await asyncio.create_subprocess_exec(
                *(PROGRAM, "run", f"{server.url}{PREFIX}/openapi.json", "--no-color", "--seed", "1"),
                *("--header", f"Authorization: Bearer {TOKEN.reveal()}", "--max-examples", str(examples)),
                *("--exclude-checks", UNJUDGED, "--request-timeout", "60", *chosen),
                cwd=folder,
            )
            wrong += await process.wait() != 0
    return wrong


def main() -> int:
    """Let it try, and return the exit status."""
    parser = argparse.ArgumentParser(prog="fuzz-fabric, schemathesis", description=__doc__)
    parser.add_argument("--examples", type=int, default=EXAMPLES, metavar="N", help="so many of each kind")
    examples: int = parser.parse_args().examples
    if not PROGRAM.exists():
        say(f"{PROGRAM} is not there: `make fuzz-fabric` installs it")
        return 2
    with tempfile.TemporaryDirectory() as folder:
        return int(bool(asyncio.run(_run(Path(folder), examples))))


if __name__ == "__main__":
    raise SystemExit(main())
