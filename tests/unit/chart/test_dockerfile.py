"""The Dockerfile makes the image that `tools/image/build` makes. No builder is asked: there may be none here."""

import json
import re
from pathlib import Path

from jackfield import __version__

ROOT = Path(__file__).resolve().parents[3]
DOCKERFILE = ROOT / "tools" / "image" / "Dockerfile"
SCRIPT = (ROOT / "tools" / "image" / "build").read_text()


def instructions() -> list[tuple[str, str]]:
    """The instructions, in their order, with lines that go on put together."""
    text = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in text.splitlines() if line)]


def final() -> list[tuple[str, str]]:
    """The instructions of the last stage, which is the image."""
    found = instructions()
    (*_, last) = (place for place, (word, _) in enumerate(found) if word == "FROM")
    return found[last:]


def packages(words: str) -> set[str]:
    """The packages that a line of apt-get installs."""
    _, _, rest = words.partition(" install ")
    return {
        one
        for one in re.split(r"[\s;&|]|2>", rest.partition("&&")[0])
        if re.fullmatch(r"[a-z][a-z0-9.+-]+", one)
    }


def test_both_install_the_same_packages() -> None:
    (ours,) = (line for line in SCRIPT.splitlines() if "install python3-minimal" in line)
    (theirs,) = (rest for word, rest in final() if "apt-get install" in rest)
    assert packages(theirs) == packages(ours.partition("2>")[0])
    (extras,) = re.findall(r'\["optional-dependencies"\]\["(\w+)"\]', SCRIPT)
    (built,) = (rest for word, rest in instructions() if "pip install" in rest)
    assert f"'/source[{extras}]'" in built


def test_both_start_the_same_program_in_the_same_environment() -> None:
    stated = dict(final())
    assert json.loads(stated["ENTRYPOINT"]) == re.findall(r"--entrypoint (\S+)", SCRIPT)
    told = set(re.findall(r"--env (\S+)", SCRIPT))
    assert {*stated["ENV"].split()} == {one for one in told if not one.startswith("PATH=")}


def test_both_take_what_others_wrote_at_pinned_versions() -> None:
    assert "PIP_CONSTRAINT=constraints.txt" in SCRIPT
    assert ("ENV", "PIP_CONSTRAINT=/source/constraints.txt") in instructions()
    bases = {rest.split()[0] for word, rest in instructions() if word == "FROM"}
    assert all(re.fullmatch(r"debian:[a-z]+-slim", one) for one in bases)
    assert len(bases) == 1


def test_what_is_copied_exists_and_is_not_ignored() -> None:
    ignored = (DOCKERFILE.parent / "Dockerfile.dockerignore").read_text().split("\n")
    for word, rest in instructions():
        if word == "COPY" and not rest.startswith("--from"):
            *sources, _ = rest.split()
            assert all((ROOT / one).exists() for one in sources)
            assert all(f"!{one}" in ignored for one in sources)


def test_no_layer_keeps_what_only_installing_needed() -> None:
    known = {"FROM", "RUN", "COPY", "ENV", "ENTRYPOINT"}
    assert {word for word, _ in instructions()} == known
    for word, rest in final():
        if word == "RUN" and "apt-get" in rest:
            assert "--no-install-recommends" in rest
            assert rest.endswith("rm -rf /var/lib/apt/lists/*")


def test_the_tag_that_is_shown_is_the_release() -> None:
    assert f"--tag jackfield.dev/jackfield:{__version__} " in DOCKERFILE.read_text()
