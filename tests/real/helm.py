"""Helm, as an administrator would use it on our chart. Knows its command line. Must not know what is in the chart."""

import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

import msgspec
import pytest
import yaml

from jackfield.codec import Raw
from jackfield.testing.control_plane import ControlPlane

ROOT: Final = Path(__file__).resolve().parents[2]
CHART: Final = ROOT / "charts" / "jackfield"
RELEASE: Final = "jackfield"
NAMESPACE: Final = "jackfield"


class HelmError(Exception):
    """What Helm said when it refused."""


@cache
def program() -> str:
    """Return where Helm is; it is built where it is missing."""
    run = subprocess.run([ROOT / "tools/helm/build"], stdout=subprocess.PIPE, text=True, check=False)
    if run.returncode:
        raise pytest.fail.Exception("there is no Helm here, for the reason above", pytrace=False)
    return run.stdout.strip()


def helm(*words: str, values: Raw | None = None, kubeconfig: Path | None = None) -> str:
    """Run Helm, with values on its standard input if there are any; return what it prints. Raises HelmError."""
    where = [f"--kubeconfig={kubeconfig}"] if kubeconfig else []
    said = ["--values=-"] if values is not None else []
    run = subprocess.run(
        [program(), *words, *where, *said],
        input=yaml.safe_dump(values),
        capture_output=True,
        text=True,
        check=False,
        env={"HOME": "/nonexistent", "PATH": os.defpath},
    )
    if run.returncode:
        raise HelmError(run.stderr + run.stdout)
    return run.stdout


def rendered(values: Raw | None = None) -> list[Raw]:
    """Return the objects of a release, without a cluster."""
    return [one for one in yaml.safe_load_all(_template(msgspec.json.encode(values or {}))) if one]


@cache
def _template(values: bytes) -> str:
    said = msgspec.json.decode(values)
    return helm("template", RELEASE, str(CHART), f"--namespace={NAMESPACE}", values=said)


def put(plane: ControlPlane, verb: str, values: Raw, chart: Path = CHART) -> str:
    """Install or upgrade the release on a cluster; return what is told to whoever did it."""
    words = (verb, RELEASE, str(chart), f"--namespace={NAMESPACE}")
    made = ("--create-namespace",) if verb == "install" else ()
    return helm(*words, *made, values=values, kubeconfig=plane.kubeconfig)


def uninstall(plane: ControlPlane) -> str:
    """Take the release away; return what is told."""
    return helm("uninstall", RELEASE, f"--namespace={NAMESPACE}", kubeconfig=plane.kubeconfig)


def of(objects: list[Raw], kind: str, name: str) -> Raw:
    """Return the one object of a kind and name."""
    (found,) = (one for one in objects if one["kind"] == kind and one["metadata"]["name"] == name)
    return found
