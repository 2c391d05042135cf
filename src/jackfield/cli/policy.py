"""The commands `jackfield policy …`: what an operator may choose, checked before anybody acts on it.

Knows the words to type. Must not know how anything is done, and imports nothing that does it before it has to.
"""

from pathlib import Path

import click

FILE = click.Path(path_type=Path)


@click.group()
def policy() -> None:
    """Check a policy, print what it comes to, print its schema.

    A policy is the one file in which everything stands that an operator may choose: docs/policy.md.
    """


@policy.command()
@click.argument("files", type=FILE, metavar="FILE...", nargs=-1, required=True)
def check(files: tuple[Path, ...]) -> None:
    """Say what is wrong with a policy: all of it at once, by line and column, and what was probably meant.

    "jackfield run" reads a policy in the same way, when it starts and whenever the file changes; one that is wrong
    is not taken over.

    Exit status 0 means that every file can be used, 2 that one cannot.
    """
    from jackfield.cli import policy_print  # noqa: PLC0415 - help must come up at once

    raise SystemExit(policy_print.check(files))


@policy.command()
@click.argument("file", type=FILE, metavar="[FILE]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of YAML.")
@click.option("--changed", is_flag=True, help="Print only what is not as it is by default.")
def show(file: Path | None, *, as_json: bool, changed: bool) -> None:
    """Print a policy as it is understood, with every default; without FILE the defaults alone.

    Exit status 2 means that the file cannot be used.
    """
    from jackfield.cli import policy_print  # noqa: PLC0415 - help must come up at once

    raise SystemExit(policy_print.show(file, as_json=as_json, changed=changed))


@policy.command()
def schema() -> None:
    """Print the JSON Schema of a policy, for editors and for Helm.

    An editor that knows YAML schemas completes and checks a policy whose first line is
    "# yaml-language-server: $schema=policy.schema.json".
    """
    from jackfield.cli import policy_print  # noqa: PLC0415 - help must come up at once

    policy_print.schema()
