"""What can go wrong with an expression: three errors, by who made the mistake and when.

Knows the words. Must not know expressions.
"""


class CelError(Exception):
    """An evaluation went wrong; the message is Kubernetes' own in substance. `&&` and `||` may absorb it."""


class PanicError(Exception):
    """An evaluation went wrong in a way that no operator absorbs."""


class LimitError(PanicError):
    """An evaluation would make more than fits in a memory, which Kubernetes would let it."""


class UncertainError(Exception):
    """The fast rendering met something it does not decide; the precise one must."""


class CompileError(Exception):
    """An expression that Kubernetes would not accept; `advice` says what to write instead, where that is known."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice


class EvaluationError(Exception):
    """An expression that cannot be answered for a device."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class UnavailableError(Exception):
    """The libraries that compile expressions are not installed."""


def no_such_key(key: object) -> CelError:
    """Return the error of a key that a map lacks."""
    return CelError(f"no such key: {key}")
