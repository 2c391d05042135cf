"""Plans, told so that a table can hold them: one line for each action, one for each thing waited for."""

from jackfield.core import explain
from jackfield.model.plan import AnyAction, Plan


def steps(plan: Plan) -> tuple[str, ...]:
    """Return what is done to what, in order: `MarkState Online resource/a100-1.rack-a`."""
    return tuple(_step(action) for action in plan.actions)


def reasons(plan: Plan) -> tuple[str, ...]:
    """Return the words that can be counted: why somebody waits."""
    return tuple(one.reason for one in plan.waiting)


def words(plan: Plan) -> str:
    """Return all that is said to people."""
    return "\n".join([*(one.because for one in plan.actions), *(one.what for one in plan.waiting)])


def _step(action: AnyAction) -> str:
    parts = (type(action).__name__, explain.detail(action), explain.subject(action))
    return " ".join(part for part in parts if part)
