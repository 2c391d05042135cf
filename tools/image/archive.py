#!/usr/bin/env python3
"""Makes an image out of folders: a layer of each, in an archive that `ctr image import` and `docker load` both take.

The same folders give the same bytes: names are sorted, owners are root, times are those of SOURCE_DATE_EPOCH, and
nothing is compressed. Needs Python and nothing else. Knows the OCI image layout. Must not know what is in the image.
"""

import argparse
import hashlib
import io
import json
import os
import stat
import sys
import tarfile
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import IO

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
INDEX = "application/vnd.oci.image.index.v1+json"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
BLOCK_BYTES = 1 << 20


def main() -> None:
    """Read the words, write the archive, print its path."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("archive", type=Path, help="the file to write")
    parser.add_argument(
        "folder", type=Path, nargs="+", help="what the image's files are, the lowest layer first"
    )
    parser.add_argument("--name", required=True, help="the image's name and tag")
    parser.add_argument("--entrypoint", nargs="*", default=[], help="what runs in it")
    parser.add_argument("--env", action="append", default=[], help="NAME=VALUE; may be repeated")
    words = parser.parse_args()
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    config = {"Entrypoint": words.entrypoint, "Env": words.env, "WorkingDir": "/"}
    unfinished = words.archive.with_suffix(f".{os.getpid()}")
    with ExitStack() as open_files:
        layers = []
        for folder in words.folder:
            layers.append(open_files.enter_context(tempfile.TemporaryFile(dir=words.archive.parent)))
            write_layer(folder, layers[-1], epoch)
        archive = open_files.enter_context(tarfile.open(unfinished, "w", format=tarfile.PAX_FORMAT))
        write_archive(archive, layers, config, (words.name, epoch))
    unfinished.rename(words.archive)
    print(words.archive)  # noqa: T201 - this is what the script is for


def write_layer(folder: Path, layer: IO[bytes], epoch: int) -> None:
    """Write a folder as a layer. Rights are plain: nobody gets more by running a program, and all may read."""
    with tarfile.open(fileobj=layer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(folder.rglob("*")):
            status = path.lstat()
            member = tarfile.TarInfo(str(path.relative_to(folder)))
            member.mtime = epoch
            member.mode = 0o755 if status.st_mode & stat.S_IXUSR else 0o644
            if path.is_symlink():
                member.type, member.linkname, member.mode = tarfile.SYMTYPE, str(path.readlink()), 0o777
                tar.addfile(member)
            elif path.is_dir():
                member.type = tarfile.DIRTYPE
                member.mode = 0o1777 if status.st_mode & stat.S_ISVTX else 0o755
                tar.addfile(member)
            elif path.is_file():
                member.size = status.st_size
                with path.open("rb") as source:
                    tar.addfile(member, source)
            else:
                sys.exit(f"{path} is neither file nor folder nor link: an image has no place for it")


def write_archive(
    archive: tarfile.TarFile, layers: list[IO[bytes]], config: dict[str, object], named: tuple[str, int]
) -> None:
    """Write the layers and what describes them, for both kinds of readers."""
    name, epoch = named
    sizes = [layer.tell() for layer in layers]
    digests = [digest_of(layer) for layer in layers]
    machine = ARCHITECTURES.get(os.uname().machine, os.uname().machine)
    image = {
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch)),
        "architecture": machine,
        "os": "linux",
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]},
    }
    configured = encoded(image)
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": descriptor(CONFIG, configured),
        "layers": [
            {"mediaType": LAYER, "digest": f"sha256:{digest}", "size": size}
            for digest, size in zip(digests, sizes, strict=True)
        ],
    }
    listed = {
        **descriptor(MANIFEST, encoded(manifest)),
        "platform": {"architecture": machine, "os": "linux"},
        "annotations": {
            "io.containerd.image.name": name,
            "org.opencontainers.image.ref.name": name.rpartition(":")[2],
        },
    }
    paths = {content: f"blobs/sha256/{sha256(content)}" for content in (configured, encoded(manifest))}
    blobs = [f"blobs/sha256/{digest}" for digest in digests]
    loaded = [{"Config": paths[configured], "RepoTags": [name], "Layers": blobs}]
    small = {
        "oci-layout": encoded({"imageLayoutVersion": "1.0.0"}),
        "index.json": encoded({"schemaVersion": 2, "mediaType": INDEX, "manifests": [listed]}),
        "manifest.json": encoded(loaded),
        **{path: content for content, path in paths.items()},
    }
    for path, content in small.items():
        add(archive, path, len(content), io.BytesIO(content))
    for path, size, layer in zip(blobs, sizes, layers, strict=True):
        add(archive, path, size, layer)


def add(archive: tarfile.TarFile, path: str, size: int, source: IO[bytes]) -> None:
    """Add one file that has no time and no owner."""
    member = tarfile.TarInfo(path)
    member.size = size
    archive.addfile(member, source)


def descriptor(kind: str, content: bytes) -> dict[str, object]:
    """Return how a manifest speaks of something."""
    return {"mediaType": kind, "digest": f"sha256:{sha256(content)}", "size": len(content)}


def encoded(value: object) -> bytes:
    """Return JSON, always the same for the same value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def digest_of(source: IO[bytes]) -> str:
    """Return what a large blob is called; it is to be read from its beginning again."""
    found = hashlib.sha256()
    source.seek(0)
    for block in iter(lambda: source.read(BLOCK_BYTES), b""):
        found.update(block)
    source.seek(0)
    return found.hexdigest()


def sha256(content: bytes) -> str:
    """Return what a blob is called."""
    return hashlib.sha256(content).hexdigest()


if __name__ == "__main__":
    main()
