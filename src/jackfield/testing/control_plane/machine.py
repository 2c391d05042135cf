"""A machine within this one, for the programs of a node: a script with two verbs, never imported, as `tether.py`.

    python machine.py make FOLDER NAME CGROUP…                           is one, until it is told to end
    python machine.py enter MACHINE CGROUP… -- PROGRAM [ARGUMENT…]      becomes a program inside of it

The machine has processes, mounts and a name of its own, and where programs write on a machine (`/run`, `/var/lib`,
`/var/log`) are folders of ours. When its first process ends the kernel ends all others, whoever has adopted them, and
takes the mounts away: nothing is left, however the end comes. Knows namespaces. Must not know what runs in them.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

PR_SET_PDEATHSIG = 1
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWPID = 0x20000, 0x4000000, 0x20000000
MS_BIND, MS_REC, MS_PRIVATE, MS_SHARED = 0x1000, 0x4000, 1 << 18, 1 << 20
KERNEL = ctypes.CDLL(None, use_errno=True)
PLACES = {"run": "/run", "lib": "/var/lib", "log": "/var/log"}
READY = "machine"
"""The file that appears when programs can enter."""


def main() -> None:
    """Do as the first word says."""
    verb, *words = sys.argv[1:]
    if verb == "make":
        folder, name, *groups = words
        make(Path(folder), name, groups)
    else:
        split = words.index("--")
        enter(words[0], words[1:split], words[split + 1 :])


def make(folder: Path, name: str, groups: Iterable[str]) -> None:
    """Be the machine, until its first process has ended."""
    join(groups)
    # Those who wait for a signal must not get it before they wait.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})
    done(KERNEL.unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWPID), "unshare")
    # What is mounted inside is nobody's business outside; inside it is everybody's, as on any machine.
    mount("none", "/", flags=MS_REC | MS_PRIVATE)
    for inside, place in PLACES.items():
        mount(str(folder / inside), place, flags=MS_BIND | MS_REC)
    mount("none", "/", flags=MS_REC | MS_SHARED)
    done(KERNEL.sethostname(name.encode(), len(name.encode())), "sethostname")
    first = os.fork()
    if not first:
        be_first(folder)
    signal.sigwait({signal.SIGTERM, signal.SIGCHLD})
    os.kill(first, signal.SIGKILL)
    # It ends when the last of its processes has.
    os.waitpid(first, 0)


def be_first(folder: Path) -> None:
    """Be the first process of the machine: mount what shows the others, and bury the dead."""
    die_with_parent()
    mount("proc", "/proc", kind="proc")
    (folder / READY).touch()
    while True:
        signal.sigwait({signal.SIGCHLD})
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def enter(machine: str, groups: Iterable[str], command: list[str]) -> None:
    """Become a program inside of a machine. Whoever starts this has seen to it that it is one of its processes."""
    die_with_parent()
    join(groups)
    for kind, flag in (("uts", CLONE_NEWUTS), ("mnt", CLONE_NEWNS)):
        with Path(f"/proc/{machine}/ns/{kind}").open("rb") as namespace:
            done(KERNEL.setns(namespace.fileno(), flag), f"setns {kind}")
    # Python ignores this one, and what is ignored stays so in the program.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.execv(command[0], command)  # noqa: S606 - no shell is wanted


def die_with_parent() -> None:
    """Ask for death when the parent dies, who is outside of the machine: seen from inside, process 0."""
    done(KERNEL.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
    if os.getppid():
        sys.exit("the process that started this one is gone")


def join(groups: Iterable[str]) -> None:
    """Join control groups; what is started from now on is in them as well."""
    for group in groups:
        (Path(group) / "cgroup.procs").write_text("0")


def mount(source: str, target: str, *, kind: str = "none", flags: int = 0) -> None:
    """Mount, or change how a mount behaves."""
    status = KERNEL.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), None)
    done(status, f"mount {target}")


def done(status: int, what: str) -> None:
    """End if the kernel refused something, in its words."""
    if status:
        sys.exit(f"{what}: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    main()
