"""Folders become an image by `tools/image/archive.py`: the same bytes for the same files, whoever owns them."""

import hashlib
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from jackfield.codec import Raw

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "image" / "archive.py"
NAME = "jackfield.test/tried:1"


def assembled(folder: Path, name: str, *layers: Path, epoch: str = "0") -> Path:
    """Return the archive of an image with these layers."""
    archive = folder / name
    words = (
        str(archive),
        *map(str, layers),
        "--name",
        NAME,
        "--env",
        "A=b",
        "--entrypoint",
        "/bin/it",
        "now",
    )
    environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch}
    run = subprocess.run(
        [sys.executable, SCRIPT, *words], capture_output=True, text=True, check=True, env=environment
    )
    assert run.stdout == f"{archive}\n"
    return archive


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Return a folder with one of each: file, program, link, folder for all, a second name for a file."""
    folder = tmp_path / "files"
    (folder / "tmp").mkdir(parents=True)
    (folder / "tmp").chmod(0o1777)
    (folder / "bin").mkdir()
    (folder / "bin" / "it").write_text("#!\n")
    (folder / "bin" / "it").chmod(0o4777)
    (folder / "bin" / "link").symlink_to("it")
    (folder / "words").write_text("words\n")
    (folder / "words").chmod(0o600)
    os.link(folder / "words", folder / "again")
    return folder


def content(archive: Path, name: str) -> bytes:
    with tarfile.open(archive) as opened:
        file = opened.extractfile(name)
        assert file
        return file.read()


def decoded(archive: Path, name: str) -> Raw:
    value: Raw = json.loads(content(archive, name))
    return value


def loaded(archive: Path) -> Raw:
    """Return how docker finds the image."""
    (found,) = json.loads(content(archive, "manifest.json"))
    value: Raw = found
    return value


def test_the_same_files_give_the_same_bytes(tmp_path: Path, files: Path) -> None:
    first = assembled(tmp_path, "first.tar", files)
    for path in files.rglob("*"):
        os.utime(path, (1, 1), follow_symlinks=False)
    (files / "words").chmod(0o640)
    second = assembled(tmp_path, "second.tar", files)
    assert first.read_bytes() == second.read_bytes()


def test_what_is_in_a_layer_has_plain_rights_and_no_history(tmp_path: Path, files: Path) -> None:
    archive = assembled(tmp_path, "image.tar", files, epoch="86400")
    (path,) = loaded(archive)["Layers"]
    layer = tmp_path / "layer.tar"
    layer.write_bytes(content(archive, path))
    with tarfile.open(layer) as opened:
        members = opened.getmembers()
    assert {(one.uid, one.gid, one.uname, one.mtime) for one in members} == {(0, 0, "", 86400)}
    assert [(one.name, oct(one.mode), one.type, one.linkname, one.size) for one in members] == [
        ("again", "0o644", tarfile.REGTYPE, "", 6),
        ("bin", "0o755", tarfile.DIRTYPE, "", 0),
        ("bin/it", "0o755", tarfile.REGTYPE, "", 3),
        ("bin/link", "0o777", tarfile.SYMTYPE, "it", 0),
        ("tmp", "0o1777", tarfile.DIRTYPE, "", 0),
        ("words", "0o644", tarfile.REGTYPE, "", 6),
    ]


def test_everything_is_found_under_its_digest(tmp_path: Path, files: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    (top / "more").write_text("more\n")
    archive = assembled(tmp_path, "image.tar", files, top)
    (listed,) = decoded(archive, "index.json")["manifests"]
    blobs = {listed["digest"]: listed["size"]}
    manifest = decoded(archive, f"blobs/{listed['digest'].replace(':', '/')}")
    blobs |= {one["digest"]: one["size"] for one in (manifest["config"], *manifest["layers"])}
    assert len(blobs) == 4
    for digest, size in blobs.items():
        found = content(archive, f"blobs/{digest.replace(':', '/')}")
        assert (f"sha256:{hashlib.sha256(found).hexdigest()}", len(found)) == (digest, size)
    config = decoded(archive, f"blobs/{manifest['config']['digest'].replace(':', '/')}")
    assert config["rootfs"]["diff_ids"] == [one["digest"] for one in manifest["layers"]]
    assert config["config"] == {"Entrypoint": ["/bin/it", "now"], "Env": ["A=b"], "WorkingDir": "/"}
    assert listed["annotations"]["io.containerd.image.name"] == NAME
    assert loaded(archive)["RepoTags"] == [NAME]


def test_what_is_no_file_is_refused_and_nothing_is_written(tmp_path: Path, files: Path) -> None:
    os.mkfifo(files / "pipe")
    run = subprocess.run(
        [sys.executable, SCRIPT, str(tmp_path / "image.tar"), str(files), "--name", NAME],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    assert "pipe is neither file nor folder nor link" in run.stderr
    assert [one.name for one in tmp_path.iterdir()] == ["files"]
