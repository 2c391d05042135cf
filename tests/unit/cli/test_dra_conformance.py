"""The lines that Kubernetes' own code filled in come out of the machine interface as they are, order and all.

The cases are not part of the project; where they are absent there is nothing to compare with.
"""

import gzip
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from jackfield.codec import Raw
from oracle import agreement, programs
from oracle.agreement import Verdict

DATA = Path(__file__).resolve().parents[4] / "shared" / "conformance"
FILES: dict[str, tuple[str, Callable[[Raw, Raw], Verdict]]] = {
    "allocator-upstream-1.36.4.jsonl.gz": ("allocate", agreement.allocations),
    "allocator-random.jsonl.gz": ("allocate", agreement.allocations),
    "cel.jsonl.gz": ("cel", agreement.evaluations),
}


@pytest.mark.skipif(
    not DATA.exists(), reason="the conformance cases (shared/conformance) are not beside the project"
)
@pytest.mark.parametrize("file", FILES)
def test_every_line_is_answered_as_kubernetes_answered_it(file: str) -> None:
    command, compare = FILES[file]
    lines = gzip.decompress((DATA / file).read_bytes()).splitlines()
    theirs: list[Raw] = [msgspec.json.decode(line) for line in lines]
    pairs = list(zip(theirs, programs.ours(command)(lines), strict=True))
    assert [one["name"] for one, other in pairs if compare(one, other) is not Verdict.AGREED] == []
