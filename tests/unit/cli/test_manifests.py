"""What an administrator gives a cluster is printed as YAML that kubectl takes."""

import pytest
import yaml
from click.testing import CliRunner, Result

from jackfield.cli.main import main
from jackfield.codec.definitions import definitions
from jackfield.kube.permissions import Account, Part, admission, manifests


def run(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


def test_both_definitions_are_printed() -> None:
    done = run("crds")
    assert done.exit_code == 0
    assert tuple(yaml.safe_load_all(done.output)) == definitions()


@pytest.mark.parametrize("part", list(Part))
def test_an_account_and_its_roles_are_printed(part: Part) -> None:
    done = run("rbac", "--part", part.value)
    assert done.exit_code == 0
    account = Account("jackfield", f"jackfield-{part}")
    expected = (*manifests(part, account), *(admission(account) if part is Part.NODE else ()))
    assert tuple(yaml.safe_load_all(done.output)) == expected


def test_account_and_drivers_can_be_chosen() -> None:
    words = ("--namespace", "ns", "--service-account", "sa", "--driver", "a.example", "--driver", "b.example")
    done = run("rbac", "--part", "controllers", *words)
    expected = manifests(Part.CONTROLLERS, Account("ns", "sa"), ("a.example", "b.example"))
    assert tuple(yaml.safe_load_all(done.output)) == expected


def test_reading_cohdis_settings_is_a_right_of_its_own() -> None:
    done = run("rbac", "--part", "controllers", "--cohdi")
    account = Account("jackfield", "jackfield-controllers")
    assert tuple(yaml.safe_load_all(done.output)) == manifests(Part.CONTROLLERS, account, cohdi=True)


@pytest.mark.parametrize("words", [("rbac",), ("rbac", "--part", "all")])
def test_a_part_must_be_named(words: tuple[str, ...]) -> None:
    done = run(*words)
    assert done.exit_code == 2
    assert "--part" in done.output
