"""A real node of a real control plane: containerd and a kubelet, which start pods as they would anywhere.

They run as root, in a machine of their own within this one (`isolation.py`), of which nothing is left. Knows how the
two programs hang together, and what a cloud would do for its nodes. Must not know what is tested on them.
"""

import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

import msgspec

from jackfield.codec import Raw
from jackfield.testing.control_plane import binaries, node_files
from jackfield.testing.control_plane.binaries import NodeProgram
from jackfield.testing.control_plane.credentials import Proof
from jackfield.testing.control_plane.crew import Crew, Say, missing_page
from jackfield.testing.control_plane.errors import ControlPlaneError
from jackfield.testing.control_plane.isolation import Machine
from jackfield.testing.control_plane.loopback import free_ports
from jackfield.testing.control_plane.nodes import MERGE
from jackfield.testing.control_plane.plane import ControlPlane
from jackfield.testing.control_plane.process import Process

CTR_SECONDS_MAX = 120.0
OK = 200
PLACES = {"/run": "run", "/var/run": "run", "/var/lib": "lib", "/var/log": "log"}


class NodeSettings(msgspec.Struct, frozen=True):
    """A node with Kubernetes' own defaults, unless said otherwise."""

    labels: Mapping[str, str] = {}
    kubelet: Raw = {}
    """Fields of KubeletConfiguration. Feature gates are those of the control plane."""
    start_seconds_max: float = 120
    """How long each program may take until it is ready."""


class RealNode:
    """A context: inside the node is Ready, and nothing is left of it outside. Its control plane lasts longer.

    Paths on the node are standard ones (`/var/lib/kubelet`, `/var/run/cdi`); `place` says where they are for us.
    There is no network for pods: they say `hostNetwork: true`. Images are imported, not pulled.
    """

    def __init__(
        self,
        plane: ControlPlane,
        name: str = "node-1",
        settings: NodeSettings | None = None,
        *,
        programs: Path | None = None,
        say: Say = str,
    ) -> None:
        self.name = name
        self._plane = plane
        self._settings = settings or NodeSettings()
        needed = binaries.NEEDED_BY_NODES
        self._programs = binaries.checked(programs, needed) if programs else binaries.node_built()
        (self._port,) = free_ports(1)
        self.folder = plane.folder / "nodes" / name
        if self.folder.exists():
            raise ControlPlaneError(f"this control plane has a node {name} already; take another name")
        self._others: list[Process] = []
        self._machine = Machine(self.folder, name, plane.logs / f"{name}-machine.log")
        try:
            self._write_files()
            processes = {program: self._process(program) for program in NodeProgram}
        except BaseException:
            self._machine.close()
            raise
        self._crew = Crew(processes, self._settings.start_seconds_max, lambda words: say(f"{name}: {words}"))

    def _write_files(self) -> None:
        (self.folder / "containerd.toml").write_text(
            node_files.containerd(self._programs / binaries.RUNC), encoding="utf-8"
        )
        choice = node_files.Choice(
            cgroup=self._machine.groups.name,
            port=self._port,
            certificate=self._plane.folder / "keys" / "server.crt",
            key=self._plane.folder / "keys" / "server.key",
            client_authority=self._plane.certificate_authority,
            feature_gates=self._plane.settings.feature_gates,
            kubelet=self._settings.kubelet,
        )
        (self.folder / "kubelet.yaml").write_bytes(msgspec.yaml.encode(node_files.kubelet(choice)))
        self.place(node_files.RESOLVER).touch()
        self.place(node_files.NETWORK).mkdir()
        for name, text in node_files.network().items():
            file = self.place(node_files.NETWORK) / name
            file.write_text(text, encoding="utf-8")
            file.chmod(0o755)
        for folder in (self.plugins, self.registry, self.cdi):
            folder.mkdir(parents=True)

    def _process(self, program: NodeProgram) -> Process:
        words = {
            NodeProgram.CONTAINERD: (f"--config={self.folder / 'containerd.toml'}",),
            NodeProgram.KUBELET: self._kubelet_flags(),
        }[program]
        command = (str(self._programs / program), *words)
        return self._machine.process(command, self._plane.logs / f"{self.name}-{program}.log")

    def _kubelet_flags(self) -> tuple[str, ...]:
        who = self._plane.kubeconfig_for(
            f"system:node:{self.name}", groups=("system:nodes",), by=Proof.CERTIFICATE
        )
        return (
            f"--config={self.folder / 'kubelet.yaml'}",
            f"--kubeconfig={who}",
            f"--root-dir={node_files.KUBELET_ROOT}",
            f"--hostname-override={self.name}",
            # A node has no address on loopback, unless its cloud says so: that is us.
            "--cloud-provider=external",
        )

    # --- its life

    def __enter__(self) -> Self:
        try:
            self.start(NodeProgram.CONTAINERD)
            self.import_image(self._programs / binaries.TEST_IMAGE)
            self._crew.start(NodeProgram.KUBELET)
            self._crew.wait(NodeProgram.KUBELET, self._missing_node, "registered")
            self._adopt()
            self.wait(NodeProgram.KUBELET)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End containers, programs and machine, and take the node out of the cluster if that still answers.

        Logs stay with those of the control plane, as long as that lasts.
        """
        for process in self._others:
            process.kill()
        self._crew.kill_all()
        self._machine.close()
        if self.folder.exists() and not self._plane.settings.keep:
            shutil.rmtree(self.folder)
        with self._plane.api() as api, suppress(ControlPlaneError, OSError):
            api.request("DELETE", self._path)

    def kill(self, program: NodeProgram) -> None:
        """Kill a program by SIGKILL; return when it is gone. Containers go on."""
        self._crew.kill(program)

    def start(self, program: NodeProgram) -> None:
        """Start a program that was killed; return when it is ready."""
        self._crew.start(program)
        self.wait(program)

    def wait(self, program: NodeProgram) -> None:
        """Return when a program is ready."""
        missing = {
            NodeProgram.CONTAINERD: self._missing_containerd,
            NodeProgram.KUBELET: self._missing_kubelet,
        }
        self._crew.wait(program, missing[program])

    def check(self) -> None:
        """Raise an error if a program ended that nobody killed."""
        self._crew.check()

    def pid(self, program: NodeProgram) -> int:
        """Return the id of the process."""
        return self._crew[program].pid

    def pause(self, program: NodeProgram) -> None:
        """Stop a program where it stands, by SIGSTOP."""
        self._crew[program].pause()

    def resume(self, program: NodeProgram) -> None:
        """Let a paused program go on."""
        self._crew[program].resume()

    def _missing_containerd(self) -> str:
        try:
            self.ctr("version")
        except ControlPlaneError as error:
            return str(error).splitlines()[-1]
        return ""

    def _missing_kubelet(self) -> str:
        health = missing_page(self._port, self._plane.trust, self._plane.token(), "/healthz")
        return health or self._missing_condition()

    def _missing_node(self) -> str:
        return self._seen()[1]

    def _missing_condition(self) -> str:
        node, missing = self._seen()
        conditions = node.get("status", {}).get("conditions", ())
        ready: Raw = next((one for one in conditions if one["type"] == "Ready"), {})
        if missing or ready.get("status") == "True":
            return missing
        return str(ready.get("message", "it has not said that it is ready"))

    def _seen(self) -> tuple[Raw, str]:
        """Return the Node, or why there is none."""
        with self._plane.api() as api:
            status, text = api.status(self._path)
        if status != OK:
            return {}, f"{status} {text.strip()}"
        node: Raw = msgspec.json.decode(text)
        return node, ""

    def _adopt(self) -> None:
        """Do what a cloud does for a new node: say at which address it is, label it, and let pods come."""
        address = [{"type": "InternalIP", "address": "127.0.0.1"}]
        changed = {"metadata": {"labels": dict(self._settings.labels)}, "spec": {"taints": None}}
        with self._plane.api() as api:
            api.request("PATCH", f"{self._path}/status", {"status": {"addresses": address}}, MERGE)
            api.request("PATCH", self._path, changed, MERGE)

    # --- what runs on it

    def import_image(self, archive: Path) -> None:
        """Give the node an image, as `tools/image/build` makes them. Pods say `imagePullPolicy: Never`."""
        self.ctr("images", "import", str(archive))

    def containers(self) -> tuple[str, ...]:
        """Return the ids of the containers that run, those of pods themselves included."""
        lines = self.ctr("tasks", "list").splitlines()[1:]
        return tuple(sorted(line.split()[0] for line in lines if line.split()[2] == "RUNNING"))

    def ctr(self, *words: str) -> str:
        """Run containerd's own command line on the containers of pods; return what it prints."""
        socket = self.place(node_files.SOCKET)
        command = [str(self._programs / binaries.CTR), f"--address={socket}", "--namespace=k8s.io", *words]
        run = subprocess.run(  # noqa: S603 - the program is ours
            command, capture_output=True, text=True, check=False, timeout=CTR_SECONDS_MAX
        )
        if run.returncode:
            raise ControlPlaneError(f"ctr {' '.join(words)}: {run.stderr.strip()}")
        return run.stdout

    def program(self, name: str, *command: str) -> Process:
        """Return a program on the node itself, such as a driver that is in no container; the caller starts it.

        It sees the node's own paths, and ends with the node at the latest. Its log lies with the others.
        """
        made = self._machine.process(command, self._plane.logs / f"{self.name}-{name}.log")
        self._others.append(made)
        return made

    # --- how it is spoken to

    @property
    def _path(self) -> str:
        return f"/api/v1/nodes/{self.name}"

    def place(self, path: str) -> Path:
        """Return where a path of the node is for us: where programs write it is in the node's folder."""
        for inside, outside in PLACES.items():
            if Path(path).is_relative_to(inside):
                return self.folder / outside / Path(path).relative_to(inside)
        return Path(path)

    @property
    def plugins(self) -> Path:
        """Where drivers keep their sockets and checkpoints."""
        return self.place(f"{node_files.KUBELET_ROOT}/plugins")

    @property
    def registry(self) -> Path:
        """Where the kubelet looks for drivers."""
        return self.place(f"{node_files.KUBELET_ROOT}/plugins_registry")

    @property
    def cdi(self) -> Path:
        """Where containerd looks for what devices need."""
        return self.place("/var/run/cdi")

    @property
    def environment(self) -> list[Raw]:
        """What a container needs in its `env` to find the API server: services have no addresses here."""
        host, _, port = self._plane.server.removeprefix("https://").partition(":")
        found = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
        return [{"name": name, "value": value} for name, value in found.items()]

    def log(self, program: NodeProgram) -> str:
        """Return all that a program has written."""
        return self._crew[program].log.read_text(errors="replace")
