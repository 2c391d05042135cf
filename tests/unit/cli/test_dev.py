"""What `jackfield dev cluster` makes of its options, before anything is started."""

import signal
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from jackfield.cli.dev import dev, duration
from jackfield.cli.main import main

CONTEXT = click.Context(dev)
OPTION = click.Option(["--for"])


@pytest.mark.parametrize(
    ("words", "seconds"),
    [("45", 45), ("90s", 90), ("10m", 600), ("2h", 7200), ("1h30m", 5400), ("1d2h3m4s", 93784), ("1m5", 65)],
)
def test_a_time_is_written_as_people_do(words: str, seconds: int) -> None:
    assert duration(CONTEXT, OPTION, words) == seconds


def test_no_time_is_no_end() -> None:
    assert duration(CONTEXT, OPTION, None) is None


@pytest.mark.parametrize("words", ["", "0", "0s", "m", "-1s", "1.5h", "5m1h", "soon", "10 m"])
def test_what_is_no_time_is_refused_with_an_example(words: str) -> None:
    done = CliRunner().invoke(main, ["dev", "cluster", f"--for={words}"])
    assert done.exit_code == 2
    assert "is not a time such as 45s, 10m or 1h30m" in done.output


@pytest.mark.parametrize(
    "text", ["current-context: production\n", "", "a: [", "- a\n", "current-context: [a]\n"]
)
def test_a_file_of_somebody_else_is_not_overwritten(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config"
    file.write_text(text)
    done = CliRunner().invoke(main, ["dev", "cluster", f"--kubeconfig={file}"])
    assert done.exit_code == 2
    assert "exists and is not a kubeconfig of this command; it was left as it is" in done.output
    assert file.read_text() == text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--kubeconfig=no/such/folder/config"], "no/such/folder is no folder"),
        (["--nodes=-1"], "-1 is not in the range 0<=x<=5000"),
        (["--programs=no-such-folder"], "'no-such-folder' does not exist"),
    ],
)
def test_options_that_cannot_be_used_are_named(words: list[str], said: str) -> None:
    done = CliRunner().invoke(main, ["dev", "cluster", *words])
    assert done.exit_code == 2
    assert said in done.output


def test_a_folder_that_lacks_programs_is_an_error(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["dev", "cluster", f"--programs={tmp_path}"])
    assert done.exit_code == 1
    assert f"{tmp_path} has no etcd, no kube-apiserver" in done.output


def test_signals_mean_afterwards_what_they_meant_before(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        CliRunner().invoke(main, ["dev", "cluster", f"--programs={tmp_path}"])
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
