"""What Kubernetes answers, at the edges too, we answer: the tables in `answers`, whose every line was asked of 1.36.

A table has blocks: a line at the margin says what is answered, the indented lines below it what was asked.
"""

from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from jackfield.core import cel
from jackfield.core.cel.evaluate import evaluate
from jackfield.core.cel.meter import metered
from jackfield.model.device import Device

TABLES = Path(__file__).with_name("answers")
SUBJECT = cel.subject("gpu.example.com", Device("gpu-0"))


class Row(NamedTuple):
    """One question and its answer: `true`, `false`, `error: …`, `refused: …`."""

    expression: str
    answer: str


def rows() -> list[Row]:
    found: list[Row] = []
    for table in sorted(TABLES.glob("*.txt")):
        answer = ""
        for line in table.read_text().splitlines():
            if line.startswith(" "):
                found.append(Row(line.strip(), answer))
            elif line and not line.startswith("#"):
                answer = line
    return found


def told(expression: str) -> str:
    try:
        return str(cel.compile(expression).matches(SUBJECT)).lower()
    except cel.EvaluationError as error:
        return f"error: {error.message}"
    except cel.CompileError as error:
        return f"refused: {error.message}"


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.expression)
def test_this_is_answered_so(row: Row) -> None:
    answer = told(row.expression)
    if row.answer.startswith("refused: "):
        # The place that a refusal names is `test_compiling`'s business.
        first = answer.partition("\n")[0]
        assert first.startswith("refused: ")
        assert first.endswith(row.answer.removeprefix("refused: "))
    else:
        assert answer == row.answer


def test_every_way_to_evaluate_answers_so() -> None:
    for row in rows():
        if row.answer not in ("true", "false"):
            continue
        checked = cel.compile(row.expression).checked
        for way in (partial(evaluate, checked), metered(checked, cel.COST_MAX)):
            assert way(SUBJECT) is (row.answer == "true"), row.expression
