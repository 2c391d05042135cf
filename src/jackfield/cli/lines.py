"""Standard input to standard output, line by line, each with its answer.

Knows streams and their limits. Must not know what stands on a line.
"""

import os
import sys
from functools import partial
from typing import BinaryIO

import click

from jackfield.codec import answers, cases
from jackfield.core.allocate import Profile
from jackfield.core.cel import UnavailableError


def allocate(profile: str, *, explain: bool) -> None:
    """Answer what is allocated."""
    _serve_standard(partial(answers.allocation, profile=Profile(profile), explain=explain))


def evaluate(*, explain: bool) -> None:
    """Answer whether selectors match."""
    _serve_standard(partial(answers.evaluation, explain=explain))


def serve(
    source: BinaryIO, sink: BinaryIO, answer: answers.Answer, longest: int = cases.LINE_BYTES_MAX
) -> None:
    """Write an answer to each line as soon as it is read; of a line that is too long no more is kept than that."""
    number = 0
    while line := source.readline(longest + 1):
        number += 1
        if len(line) <= longest or line.endswith(b"\n"):
            reply = answers.reply(line, number, answer)
        else:
            while line and not line.endswith(b"\n"):
                line = source.readline(longest)
            reply = answers.too_long(number, longest)
        sink.write(reply + b"\n")
        sink.flush()


def _serve_standard(answer: answers.Answer) -> None:
    try:
        serve(sys.stdin.buffer, sys.stdout.buffer, answer)
    except UnavailableError as error:
        raise click.ClickException(str(error)) from error
    except BrokenPipeError:
        # Whoever read the answers has gone. Python flushes once more on its way out: into nothing, then.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
