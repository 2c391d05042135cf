"""Runs functions that call themselves without end in sight, off Python's stack.

Such a function is a generator: it yields each call of its own kind and is sent the answer. Knows how to wait for
answers. Must not know what is asked.
"""

from collections.abc import Generator
from typing import Any, TypeVar

T = TypeVar("T")
Task = Generator["Task[Any]", Any, T]


def run(task: Task[T]) -> T:
    """Return what a task returns; what one of its calls raises is raised where it was called."""
    waiting: list[Task[Any]] = [task]
    answer: Any = None
    failure: Exception | None = None
    while True:
        current = waiting[-1]
        try:
            called = current.send(answer) if failure is None else current.throw(failure)
        except StopIteration as done:
            answer, failure = done.value, None
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to the caller
            answer, failure = None, error
        else:
            waiting.append(called)
            answer, failure = None, None
            continue
        waiting.pop()
        if not waiting:
            if failure is not None:
                raise failure
            found: T = answer
            return found
