"""`jackfield crds` and `jackfield rbac`: what an administrator gives a cluster, as YAML.

Knows how objects are printed. Must not know what is in them.
"""

import click
import yaml

from jackfield.codec import Raw
from jackfield.codec.definitions import definitions
from jackfield.kube.permissions import Account, Part, admission, manifests

WIDTH = 110


def crds() -> None:
    """Print both definitions."""
    click.echo(_yaml(definitions()), nl=False)


def rbac(part: str, namespace: str, name: str, drivers: tuple[str, ...], *, cohdi: bool) -> None:
    """Print a service account with its roles, and what keeps a node's plugin to its node."""
    account = Account(namespace, name or f"jackfield-{part}")
    beside = admission(account) if part == Part.NODE else ()
    click.echo(_yaml((*manifests(Part(part), account, drivers, cohdi=cohdi), *beside)), nl=False)


def _yaml(objects: tuple[Raw, ...]) -> str:
    return yaml.safe_dump_all(objects, sort_keys=False, width=WIDTH, explicit_start=True)
