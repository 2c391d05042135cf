"""`jackfield torture` as it is typed: what is refused and why, and that what is kept can be lived through again."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from jackfield.cli.main import main


def torture(*words: str) -> Result:
    return CliRunner().invoke(main, ["torture", *words])


REFUSED = {
    "--seed x": "'x' is not a valid integer",
    "--seeds 0": "0 is not in the range",
    "--from -1": "-1 is not in the range",
    "--workers -1": "-1 is not in the range",
    "--seed 7 --steps 1-x": "--steps 1-x: give numbers such as 1-4,9",
    "--seed 7 --steps 9-4": "--steps 9-4: seed 7 has steps 1 to ",
    "--seed 7 --steps 0-4": "--steps 0-4: seed 7 has steps 1 to ",
    "--seed 7 --steps 2,9000": "--steps 2,9000: seed 7 has steps 1 to ",
    "--seeds 2 --steps 1-4": "--steps are those of one seed: give --seed as well",
    "--seeds 2 --story node/na-1": "--story is told of one ordeal: give --seed or --ordeal as well",
    "--seed 7 --ordeal FILE": "give one of them",
    "--ordeal FILE": "FILE: cannot be read: No such file or directory",
    "--world FILE": "FILE: cannot be read: No such file or directory",
    "--policy FILE": "FILE: cannot be read",
}


@pytest.mark.parametrize(("words", "says"), REFUSED.items(), ids=REFUSED)
def test_what_cannot_be_meant_is_refused_with_what_to_do(words: str, says: str, tmp_path: Path) -> None:
    missing = str(tmp_path / "nothing.yaml")
    done = torture(*words.replace("FILE", missing).split())
    assert done.exit_code == 2
    assert says.replace("FILE", missing) in done.output


def test_a_file_that_is_no_ordeal_says_how_to_get_one(tmp_path: Path) -> None:
    path = tmp_path / "ordeal.yaml"
    for text in ("[", "a: b", "seed: seven"):
        path.write_text(text)
        done = torture("--ordeal", str(path))
        assert (done.exit_code, "is no ordeal" in done.output) == (2, True), text


def test_an_ordeal_that_was_kept_is_lived_through_again(tmp_path: Path) -> None:
    path = tmp_path / "ordeal.yaml"
    first = torture("--seed", "7", "--steps", "1-2", "--save", str(path))
    again = torture("--ordeal", str(path))
    assert (first.exit_code, again.exit_code) == (0, 0)
    assert first.output == again.output
    assert again.output.splitlines()[-1].startswith("1 seeds, 2 pod lives, 0 troubles")
