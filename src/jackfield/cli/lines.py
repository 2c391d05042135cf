"""Standard input to standard output, line by line, each with its answer.

Knows streams and their limits. Must not know what stands on a line.
"""

import sys
from functools import partial
from typing import BinaryIO

import click

from jackfield.codec import answers, cases
from jackfield.core.allocate import Profile
from jackfield.core.cel import UnavailableError


def allocate(profile: str, *, explain: bool) -> None:
    """Answer what is allocated."""
    _serve(partial(answers.allocation, profile=Profile(profile), explain=explain))


def evaluate(*, explain: bool) -> None:
    """Answer whether selectors match."""
    _serve(partial(answers.evaluation, explain=explain))


def _serve(answer: answers.Answer) -> None:
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    number = 0
    while line := source.readline(cases.LINE_BYTES_MAX + 1):
        number += 1
        try:
            sink.write(_reply(line, number, source, answer) + b"\n")
            sink.flush()
        except UnavailableError as error:
            raise click.ClickException(str(error)) from error
        except BrokenPipeError:
            # Whoever read the answers has gone, and Python must not try to flush once more on its way out.
            sys.stdout = None
            return


def _reply(line: bytes, number: int, source: BinaryIO, answer: answers.Answer) -> bytes:
    if len(line) <= cases.LINE_BYTES_MAX:
        return answers.reply(line, number, answer)
    while not line.endswith(b"\n"):
        line = source.readline(cases.LINE_BYTES_MAX)
        if not line:
            break
    return answers.too_long(number)
