"""A real Kubernetes control plane on loopback, for tests and for hands.

Starts etcd, kube-apiserver, kube-controller-manager and kube-scheduler, and does to them what a bad day would: kills,
pauses, and takes etcd back in time. Knows how they hang together. Must not know what is tested on them.
"""

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

import msgspec

from jackfield.testing.control_plane import audit, binaries, flags
from jackfield.testing.control_plane.api import Api
from jackfield.testing.control_plane.binaries import Program
from jackfield.testing.control_plane.credentials import ADMIN, Credentials, Proof
from jackfield.testing.control_plane.crew import Crew, Say, missing_health
from jackfield.testing.control_plane.errors import ControlPlaneError
from jackfield.testing.control_plane.folder import Folder
from jackfield.testing.control_plane.loopback import free_ports
from jackfield.testing.control_plane.process import Nursery, Process
from jackfield.testing.control_plane.settings import Settings, User

KUBECTL_SECONDS_MAX = 120.0
ACCOUNTS = {
    Program.CONTROLLER_MANAGER: User("system:kube-controller-manager"),
    Program.SCHEDULER: User("system:kube-scheduler"),
}
FLAGS = {
    Program.ETCD: flags.etcd,
    Program.APISERVER: flags.apiserver,
    Program.CONTROLLER_MANAGER: flags.controller_manager,
    Program.SCHEDULER: flags.scheduler,
}
FIRST_ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"

T = TypeVar("T")


class Snapshot(msgspec.Struct, frozen=True):
    """What etcd held at one moment. It lives as long as its control plane."""

    path: Path


class ControlPlane:
    """A context: inside it is ready, and nothing is left of it outside.

    `programs` is a folder that has them; without it they are built (`tools/kube/build`). `say` hears of every step.
    Calls may take seconds, and one is made at a time; a coroutine says `await plane.aside(plane.snapshot)`.
    """

    def __init__(
        self, settings: Settings | None = None, *, programs: Path | None = None, say: Say = str
    ) -> None:
        self.settings = settings or Settings()
        self._programs = binaries.checked(programs) if programs else binaries.built()
        self._folder = Folder(keep=self.settings.keep)
        self._nursery = Nursery()
        try:
            self._prepare(say)
        except BaseException:
            self._folder.close()
            raise

    def _prepare(self, say: Say) -> None:
        *ports, peers = free_ports(len(Program) + 1)
        self._ports = dict(zip(Program, ports, strict=True))
        self._keys = Credentials(self._folder, self._programs / binaries.KEYS, self.settings.users)
        self.trust = ssl.create_default_context(cafile=self._keys.file("ca.crt"))
        self._proof = ssl.create_default_context(cafile=self._keys.file("ca.crt"))
        self._proof.load_cert_chain(*self._keys.certificate(ADMIN))
        accounts = {
            program: self.kubeconfig_for(user.name, by=Proof.CERTIFICATE)
            for program, user in ACCOUNTS.items()
        }
        places = flags.Places(self._folder.path, peers, self._ports, accounts)
        self._write("scheduler.yaml", flags.scheduler_configuration(places, self.settings))
        self._write("audit-policy.yaml", flags.AUDIT_POLICY)
        self.logs = self._folder.path / "logs"
        self.logs.mkdir()
        processes = {program: self._process(program, places) for program in Program}
        self._crew = Crew(processes, self.settings.start_seconds_max, say)
        self.kubeconfig = self.kubeconfig_for(ADMIN.name)

    def _process(self, program: Program, places: flags.Places) -> Process:
        words = FLAGS[program](places, self._keys, self.settings)
        command = (str(self._programs / program), *words)
        return Process(self._nursery, command, self.logs / f"{program}.log")

    def _write(self, name: str, value: object) -> None:
        self._folder.file(name, msgspec.yaml.encode(value).decode())

    # --- its life

    def __enter__(self) -> Self:
        try:
            self._start_all()
            self._crew.wait(Program.CONTROLLER_MANAGER, self._missing_account, "at work")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill all programs and remove the folder, unless it is to be kept."""
        self._crew.kill_all()
        self._nursery.close()
        self._folder.close()

    def _start_all(self) -> None:
        # The API server waits for etcd by itself; started at once, both are ready sooner.
        for together in (
            (Program.ETCD, Program.APISERVER),
            (Program.CONTROLLER_MANAGER, Program.SCHEDULER),
        ):
            for program in together:
                self._crew.start(program)
            for program in together:
                self.wait(program)

    def _missing_account(self) -> str:
        """Return what pods in a new cluster wait for: the controllers make the account that they run as."""
        with self.api() as api:
            status, text = api.status(FIRST_ACCOUNT)
        return "" if status == 200 else f"{status} {text.strip()}"  # noqa: PLR2004 - OK

    # --- a bad day

    def kill(self, program: Program) -> None:
        """Kill a program by SIGKILL; return when it is gone."""
        self._crew.kill(program)

    def start(self, program: Program) -> None:
        """Start a program that was killed; return when it is ready. Its port, data and log are the same as before."""
        self._crew.start(program)
        self.wait(program)

    def wait(self, program: Program) -> None:
        """Return when a program is ready."""
        self._crew.wait(program, partial(self._missing, program))

    def ready(self, program: Program) -> bool:
        """Whether a program says that it is ready."""
        return not self._missing(program)

    def check(self) -> None:
        """Raise an error if a program ended that nobody killed."""
        self._crew.check()

    def pid(self, program: Program) -> int:
        """Return the id of the process."""
        return self._crew[program].pid

    def pause(self, program: Program) -> None:
        """Stop a program where it stands, by SIGSTOP: its connections stay open, and nobody answers."""
        self._crew[program].pause()

    def resume(self, program: Program) -> None:
        """Let a paused program go on."""
        self._crew[program].resume()

    def snapshot(self) -> Snapshot:
        """Copy what etcd holds, while it stands still for the blink of an eye: as if it were killed at that moment."""
        made = self._folder.path / "snapshots"
        made.mkdir(exist_ok=True)
        snapshot = Snapshot(made / str(len(list(made.iterdir()))))
        self.pause(Program.ETCD)
        try:
            shutil.copytree(self._data, snapshot.path)
        finally:
            self.resume(Program.ETCD)
        return snapshot

    def restore(self, snapshot: Snapshot) -> None:
        """Go back in time, as an operator would: all programs end, etcd gets the old data, all start again."""
        self._crew.kill_all()
        shutil.rmtree(self._data)
        shutil.copytree(snapshot.path, self._data)
        self._start_all()

    def _missing(self, program: Program) -> str:
        asking = self._proof if program is Program.ETCD else self.trust
        token = self._keys.token(ADMIN.name) if program is Program.APISERVER else ""
        return missing_health(program, self._ports[program], asking, token)

    @property
    def _data(self) -> Path:
        return self._folder.path / "etcd"

    # --- how it is spoken to

    @property
    def folder(self) -> Path:
        """Where logs, keys and data are."""
        return self._folder.path

    @property
    def kubectl_path(self) -> Path:
        """The kubectl that fits."""
        return self._programs / binaries.KUBECTL

    @property
    def server(self) -> str:
        """The API server's URL."""
        return f"https://{flags.LOOPBACK}:{self._ports[Program.APISERVER]}"

    @property
    def certificate_authority(self) -> Path:
        """The certificate that the API server's is signed by."""
        return self._keys.file("ca.crt")

    def token(self, user: str = ADMIN.name) -> str:
        """Return the token of the administrator, or of somebody who was named in the settings."""
        return self._keys.token(user)

    def api(self, user: str = ADMIN.name) -> Api:
        """Return a connection for a few plain requests, as somebody who has a token."""
        return Api(self._ports[Program.APISERVER], self.trust, self.token(user))

    def page(self, program: Program, path: str) -> str:
        """Return what one of Kubernetes' programs shows of itself, as in `/metrics` or `/configz`."""
        with Api(self._ports[program], self.trust, self.token()) as api:
            return api.text(path)

    def kubeconfig_for(self, user: str, *, groups: tuple[str, ...] = (), by: Proof = Proof.TOKEN) -> Path:
        """Write a kubeconfig. Tokens are for users of the settings; a certificate is for anybody, in any groups."""
        who = ADMIN if user == ADMIN.name else User(user, groups)
        return self._keys.kubeconfig(self.server, who, by)

    def kubectl(self, *words: str, text: str = "", kubeconfig: Path | None = None) -> str:
        """Run kubectl, as the administrator unless said otherwise; return what it prints."""
        command = [str(self.kubectl_path), f"--kubeconfig={kubeconfig or self.kubeconfig}", *words]
        run = subprocess.run(  # noqa: S603 - the program is ours
            command,
            input=text,
            capture_output=True,
            text=True,
            check=False,
            env={"HOME": str(self.folder)},
            timeout=KUBECTL_SECONDS_MAX,
        )
        if run.returncode:
            raise ControlPlaneError(f"kubectl {' '.join(words)}: {run.stderr.strip()}")
        return run.stdout

    def log(self, program: Program) -> str:
        """Return all that a program has written."""
        return self._crew[program].log.read_text(errors="replace")

    def audited(self) -> tuple[audit.Entry, ...]:
        """Return who asked the API server what, if `Settings.audit` is on."""
        return audit.entries(self.folder / "audit.log")

    async def aside(self, call: Callable[[], T]) -> T:
        """Make a call that takes its time, while the event loop goes on."""
        return await asyncio.get_running_loop().run_in_executor(None, call)
