"""A site whose controllers are those of the chart: Helm puts the objects, and processes run what the Deployment says.

There is no kubelet for pods of a Deployment here. So each replica is a process with the Deployment's own arguments, the
files that it mounts, and a token of its service account; only folders, the port and the way to the API server differ.
Knows how a pod's spec becomes a process. Must not know what should come of it.
"""

import base64
from pathlib import Path
from typing import Final

import msgspec
import yaml

from jackfield.codec import Raw
from jackfield.sim.setting import Setting
from jackfield.testing.control_plane import ControlPlane
from real import helm
from real.helm import NAMESPACE
from real.site import FABRIC, TOKEN, Replica, Site

MOUNTED: Final = "/etc/jackfield"
SECRET: Final[Raw] = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "rack-a-token", "namespace": NAMESPACE},
    "stringData": {"token": TOKEN},
}


class ChartSite(Site):
    """The site, from the first install on."""

    def __init__(self, plane: ControlPlane, stage: Setting, folder: Path, chart: Path) -> None:
        super().__init__(plane, stage, folder)
        self.chart = chart
        """The chart that the next call of Helm takes."""
        self._url = ""
        self._words: list[str] = []

    # --- what a site does by itself

    async def _namespaces(self) -> None:
        self.helm("install")
        self.plane.kubectl("create", "--filename=-", text=msgspec.json.encode(SECRET).decode())

    def _write_files(self, url: str) -> None:
        self._url = url
        self.helm("upgrade")
        self.mount()

    def _arguments(self) -> list[str]:
        return self._words

    # --- what an administrator does

    @property
    def values(self) -> Raw:
        """What the administrator says; that there is a fabric, as soon as it has an address."""
        fabric = {"name": FABRIC, "type": "native", "url": self._url}
        fabric |= {"existingSecret": "rack-a-token", "tokenKey": "token"}
        policy = msgspec.to_builtins(self.stage.policy)
        return {"policy": policy, "fabrics": [fabric] if self._url else []}

    def helm(self, verb: str) -> str:
        """Install or upgrade the release."""
        return helm.put(self.plane, verb, self.values, self.chart)

    def uninstall(self) -> str:
        """Take the release away; return what is told."""
        return helm.uninstall(self.plane)

    async def started(self) -> Replica:
        """Start one more replica of what the Deployment now says; return when it is at work."""
        self.mount()
        one = self.replica()
        await one.start()
        await self.until(lambda: any("runs" in line.because for line in one.lines), 90)
        return one

    # --- what a kubelet does

    def mount(self) -> None:
        """Have the Deployment's files in a folder, and its arguments and account in the words of a command."""
        root = self._folder / f"mounted-{len(list(self._folder.glob('mounted-*')))}"
        spec = self._read("deployment", "jackfield-controllers")["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        volumes = {one["name"]: one for one in spec["volumes"]}
        for mount in container["volumeMounts"]:
            folder = root / Path(mount["mountPath"]).relative_to("/")
            folder.mkdir(parents=True)
            for name, content in self._content(volumes[mount["name"]]).items():
                (folder / name).write_text(content.replace(MOUNTED, f"{root}{MOUNTED}"))
        command, *words = (one.replace(MOUNTED, f"{root}{MOUNTED}") for one in container["args"])
        assert command == "run"
        self._words = [
            *(one for one in words if not one.startswith("--listen=")),
            "--listen=127.0.0.1:0",
            f"--kubeconfig={self._account(root, spec['serviceAccountName'])}",
        ]

    def _account(self, root: Path, name: str) -> Path:
        token = self.plane.kubectl("create", "token", name, f"--namespace={NAMESPACE}", "--duration=1h")
        config: Raw = yaml.safe_load(self.plane.kubeconfig.read_text())
        config["users"] = [{"name": one["name"], "user": {"token": token.strip()}} for one in config["users"]]
        path = root / "kubeconfig"
        path.write_text(yaml.safe_dump(config))
        return path

    def _content(self, volume: Raw) -> dict[str, str]:
        if "configMap" in volume:
            found: dict[str, str] = self._read("configmap", volume["configMap"]["name"])["data"]
            return found
        data = self._read("secret", volume["secret"]["secretName"])["data"]
        return {name: base64.b64decode(one).decode() for name, one in data.items()}

    def _read(self, kind: str, name: str) -> Raw:
        text = self.plane.kubectl("get", kind, name, f"--namespace={NAMESPACE}", "--output=json")
        found: Raw = msgspec.json.decode(text)
        return found
