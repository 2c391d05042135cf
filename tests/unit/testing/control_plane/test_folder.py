"""A folder goes with its owner, or with the next one if its owner was killed."""

import subprocess
import sys
from pathlib import Path

import pytest

from jackfield.testing.control_plane.folder import Folder, sweep

OWNER = """
import sys
from pathlib import Path
from jackfield.testing.control_plane.folder import Folder
folder = Folder(keep=False, parent=Path(sys.argv[1]))
print(folder.path, flush=True)
sys.stdin.read()
"""


def test_a_folder_is_there_until_it_is_closed(tmp_path: Path) -> None:
    folder = Folder(keep=False, parent=tmp_path)
    assert folder.path.parent == tmp_path
    assert folder.path.stat().st_mode & 0o077 == 0
    folder.close()
    assert not folder.path.exists()
    folder.close()


def test_a_file_in_it_can_be_read_by_its_owner_alone(tmp_path: Path) -> None:
    path = Folder(keep=True, parent=tmp_path).file("keys/secret", "words")
    assert path.read_text() == "words"
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("keep", [True, False])
def test_a_folder_that_is_kept_or_in_use_is_not_swept_away(tmp_path: Path, *, keep: bool) -> None:
    folder = Folder(keep=keep, parent=tmp_path)
    assert sweep(tmp_path) == ()
    assert folder.path.exists()
    folder.close()
    assert folder.path.exists() == keep


def test_what_somebody_else_made_is_not_swept_away(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "owner").touch()
    (tmp_path / "jackfield-control-plane-file").touch()
    assert sweep(tmp_path) == ()


def test_the_folder_of_a_killed_owner_is_swept_away_by_the_next(tmp_path: Path) -> None:
    words = [sys.executable, "-c", OWNER, str(tmp_path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout
        left = Path(owner.stdout.readline().strip())
        assert sweep(tmp_path) == ()
        owner.kill()
    assert left.exists()
    folder = Folder(keep=False, parent=tmp_path)
    assert list(tmp_path.iterdir()) == [folder.path]
    folder.close()
