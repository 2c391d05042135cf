"""Who may say that they are who: keys, certificates, tokens, and kubeconfigs that carry them.

Knows how somebody proves who they are. Must not know what they may do.
"""

import base64
import re
import secrets
import subprocess
from enum import StrEnum
from pathlib import Path

import msgspec

from jackfield.testing.control_plane.errors import ControlPlaneError
from jackfield.testing.control_plane.folder import Folder
from jackfield.testing.control_plane.settings import User

ADMIN = User("admin", ("system:masters",))
CONTEXT = "jackfield-dev"


class Proof(StrEnum):
    """How a user proves who they are."""

    TOKEN = "token"  # noqa: S105 - the word, not a secret
    CERTIFICATE = "certificate"


class Credentials:
    """All keys of one control plane, in a folder of their own within its folder."""

    def __init__(self, folder: Folder, keys: Path, users: tuple[User, ...]) -> None:
        self._folder = folder
        self._keys = keys
        self._tokens = {user.name: secrets.token_urlsafe(24) for user in (ADMIN, *users)}
        self.path = folder.path / "keys"
        self.path.mkdir()
        self._run("plane", str(self.path))
        lines = [self._token_line(number, user) for number, user in enumerate((ADMIN, *users))]
        self.tokens = folder.file("keys/tokens.csv", "".join(lines))
        self.certificate(ADMIN)

    def file(self, name: str) -> Path:
        """Return the path of a key or certificate, such as `ca.crt`."""
        return self.path / name

    def token(self, user: str) -> str:
        """Return the token of somebody who was named in the settings."""
        if user not in self._tokens:
            raise ControlPlaneError(
                f"{user!r} has no token: name them in Settings.users, or take a certificate, which needs no restart"
            )
        return self._tokens[user]

    def certificate(self, user: User) -> tuple[Path, Path]:
        """Return a user's certificate and key, made when asked for the first time."""
        name = _file_name("client", user)
        if not self.file(f"{name}.crt").exists():
            self._run("client", str(self.path), name, user.name, *user.groups)
        return self.file(f"{name}.crt"), self.file(f"{name}.key")

    def kubeconfig(self, server: str, user: User, proof: Proof) -> Path:
        """Return a kubeconfig that works wherever it is copied to."""
        if proof is Proof.TOKEN:
            who = {"token": self.token(user.name)}
        else:
            certificate, key = (_encoded(path) for path in self.certificate(user))
            who = {"client-certificate-data": certificate, "client-key-data": key}
        cluster = {"server": server, "certificate-authority-data": _encoded(self.file("ca.crt"))}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": CONTEXT, "cluster": cluster}],
            "users": [{"name": user.name, "user": who}],
            "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": user.name}}],
            "current-context": CONTEXT,
        }
        name = f"kubeconfigs/{_file_name(proof, user)}.yaml"
        return self._folder.file(name, msgspec.yaml.encode(config).decode())

    def _run(self, *words: str) -> None:
        run = subprocess.run([self._keys, *words], capture_output=True, text=True, check=False)  # noqa: S603 - ours
        if run.returncode:
            raise ControlPlaneError(f"{self._keys} {words[0]}: {run.stderr.strip()}")

    def _token_line(self, number: int, user: User) -> str:
        return f'{self._tokens[user.name]},{user.name},{number},"{",".join(user.groups)}"\n'


def _file_name(kind: str, user: User) -> str:
    return re.sub(r"[^\w.-]", "-", "-".join((kind, user.name, *user.groups)))


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
