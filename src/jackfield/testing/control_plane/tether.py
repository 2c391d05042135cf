"""Runs a program that dies with the process that started it: `python tether.py PARENT PROGRAM [ARGUMENT…]`.

A script, never imported: it asks the kernel for the signal and then becomes the program, so that no code of ours has
to run between fork and exec. The kernel minds the thread that started it, which therefore has to last (`process.py`).
Knows PR_SET_PDEATHSIG. Must not know what it runs.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Tie this process to its parent, then become the program."""
    parent, *command = sys.argv[1:]
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0):
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
    # The signal comes only for a death after it was asked for.
    if os.getppid() != int(parent):
        sys.exit(f"process {parent}, which started this one, is gone")
    # Python ignores this one, and what is ignored stays so in the program.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.execv(command[0], command)  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main()
