"""LIFE says of every action who emits it and in which phase: compared with what the modules of the core do."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from jackfield.core import lifecycle
from jackfield.model import plan

CORE = Path(lifecycle.__file__).parent
ACTIONS = {one.__name__ for one in get_args(plan.AnyAction)}
DECIDES = {
    "quiet": "attach",
    "guard": "attach",
    "evict": "attach",
    "surplus": "scale",
    "keep": "scale",
    "demand": "scale",
    "placement": "compose",
    "takeover": "attach",
}
"""Modules that decide only a part, and the decision that asks them."""

Emitted = tuple[plan.Phase, str, str]


def emitted() -> Iterator[Emitted]:
    """Every action made in a module of the core: its phase, its name, and who decides it."""
    for path in sorted(CORE.glob("*.py")):
        tree = ast.parse(path.read_text())
        calls: dict[str, list[ast.Call]] = defaultdict(list)
        for one in ast.walk(tree):
            if isinstance(one, ast.Call) and isinstance(one.func, ast.Name):
                calls[one.func.id].append(one)
        decided_by = f"{DECIDES.get(path.stem, path.stem)}.decide"
        for function in (one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)):
            for name, phase in _made(function, calls[function.name]):
                yield phase, name, decided_by


def _made(function: ast.FunctionDef, calls: list[ast.Call]) -> Iterator[tuple[str, plan.Phase]]:
    """The actions a function makes; a phase that is a variable is what the function or its callers say."""
    for one in ast.walk(function):
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id in ACTIONS:
            given = next(word.value for word in one.keywords if word.arg == "phase")
            phases = list(_phases(given))
            if not phases:
                phases = [phase for source in (*function.body, *calls) for phase in _phases(source)]
            yield from ((one.func.id, phase) for phase in phases)


def _phases(tree: ast.AST) -> Iterator[plan.Phase]:
    for one in ast.walk(tree):
        if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id == "Phase":
            yield plan.Phase[one.attr]


@pytest.mark.parametrize("step", lifecycle.LIFE, ids=lambda step: step.phase.value)
def test_a_phase_names_exactly_the_actions_that_are_emitted_in_it(step: lifecycle.Step) -> None:
    actions = {name for phase, name, _ in emitted() if phase is step.phase}
    # A request without devices is deleted, so its deletion never adds any.
    actions -= {"DeleteRequest"} if step.phase is plan.Phase.WANTED else set()
    assert set(step.actions) == actions
    assert len(step.actions) == len(actions)


@pytest.mark.parametrize("step", lifecycle.LIFE, ids=lambda step: step.phase.value)
def test_a_phase_names_exactly_the_decisions_that_emit_its_actions(step: lifecycle.Step) -> None:
    decided_by = {by for phase, _, by in emitted() if phase is step.phase}
    schedulers = {"allocate.Allocator"} if step.phase is plan.Phase.ALLOCATED else set()
    assert set(step.decided_by) == decided_by | schedulers


def test_every_action_is_emitted_by_somebody() -> None:
    assert {name for _, name, _ in emitted()} == ACTIONS


def test_the_phases_of_life_are_in_order() -> None:
    assert [step.phase for step in lifecycle.LIFE] == list(plan.Phase)


def test_every_phase_says_where_it_is_written() -> None:
    assert all(step.written for step in lifecycle.LIFE)
