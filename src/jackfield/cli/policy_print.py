"""What `jackfield policy check|show|schema` print.

Knows files and formats. Must not know what a setting means.
"""

from pathlib import Path

import click
import msgspec
import yaml

from jackfield.cli import policy_file, policy_schema
from jackfield.cli.output import OK, UNUSABLE
from jackfield.cli.policy_file import BadPolicy
from jackfield.model.policy import Policy

WIDTH = 110


def check(files: tuple[Path, ...]) -> int:
    """Tell the faults of all files; return the exit status."""
    status = OK
    for path in files:
        try:
            found = policy_file.read(path)
        except BadPolicy as error:
            click.echo(str(error), err=True)
            status = UNUSABLE
        else:
            click.echo(f"{path}: sound; {_summary(found)}")
    return status


def _summary(policy: Policy) -> str:
    names = ", ".join(one.cdi_model_name for one in policy.models)
    count = len(policy.models)
    models = (
        f"{count} model{'' if count == 1 else 's'}: {names}"
        if names
        else "without models nothing is attached"
    )
    states = [word for word, on in (("paused", policy.paused), ("observe-only", policy.observe_only)) if on]
    return "; ".join([models, *states])


def show(file: Path | None, *, as_json: bool, changed: bool) -> int:
    """Print a policy as it is understood; return the exit status."""
    try:
        policy = policy_file.read(file) if file is not None else Policy()
    except BadPolicy as error:
        click.echo(str(error), err=True)
        return UNUSABLE
    shown, defaults = (msgspec.to_builtins(one, order="deterministic") for one in (policy, Policy()))
    values = {
        name: shown[name]
        for name in Policy.__struct_encode_fields__
        if not changed or shown[name] != defaults[name]
    }
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(values)))
    else:
        click.echo(yaml.safe_dump(_plain(values), sort_keys=False, width=WIDTH), nl=False)
    return OK


def _plain(value: object) -> object:
    """Return a value as one would write it: whole seconds without a point."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def schema() -> None:
    """Print the schema."""
    click.echo(msgspec.json.format(msgspec.json.encode(policy_schema.document())))
