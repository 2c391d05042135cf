#!/usr/bin/env python3
"""Moves the news fragments of `changelog.d/` into CHANGELOG.md, under "Unreleased", by kind.

What stands there stays, and a fragment that is there already only goes: whoever is interrupted runs it again.
towncrier was looked at: it writes the news of a version once, and cannot add to them. Needs Python and nothing else.
Must not know what the news are about.
"""

import argparse
import re
import sys
import textwrap
from pathlib import Path

KINDS = ("added", "changed", "deprecated", "removed", "fixed", "security")
HEADING = "## Unreleased"
COLUMNS = 120


def main() -> None:
    """Read all, write the changelog, and only then remove what it has now."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", type=Path, help="the folder that has CHANGELOG.md and changelog.d/")
    root = parser.parse_args().root
    changelog = root / "CHANGELOG.md"
    fragments = sorted(path for path in (root / "changelog.d").glob("*.md") if path.name != "README.md")
    news = [(kind_of(path), entry(path)) for path in fragments]
    written = with_news(changelog.read_text(encoding="utf-8"), news)
    unfinished = changelog.with_suffix(".unfinished")
    unfinished.write_text(written, encoding="utf-8")
    unfinished.replace(changelog)
    for path in fragments:
        path.unlink()
    print(f"{len(fragments)} fragments moved into CHANGELOG.md")  # noqa: T201 - this is what the script is for


def kind_of(path: Path) -> str:
    """Return which of the kinds the name of a fragment says."""
    kind = path.name.removesuffix(".md").rpartition(".")[2]
    if kind not in KINDS:
        sys.exit(f"{path}: is not named WHAT.KIND.md, with a KIND of {', '.join(KINDS)}; nothing was moved")
    return kind


def entry(path: Path) -> str:
    """Return a fragment as an item of a list, its paragraphs within."""
    paragraphs = re.split(r"\n\s*\n", path.read_text(encoding="utf-8").strip())
    if not paragraphs[0]:
        sys.exit(f"{path}: is empty; nothing was moved")
    lines = [
        textwrap.fill(" ".join(one.split()), COLUMNS - 2, break_long_words=False, break_on_hyphens=False)
        for one in paragraphs
    ]
    return "- " + textwrap.indent("\n\n".join(lines), "  ").lstrip()


def with_news(changelog: str, news: list[tuple[str, str]]) -> str:
    """Return the changelog with these entries under "Unreleased", after those of their kind."""
    before, heading, after = changelog.partition(f"\n{HEADING}\n")
    if not heading:
        sys.exit(f'CHANGELOG.md: has no heading "{HEADING}"; nothing was moved')
    unreleased, released, older = after.partition("\n## ")
    introduction, *sections = re.split(r"^### ", unreleased, flags=re.MULTILINE)
    entries = dict.fromkeys(KINDS, "")
    for section in sections:
        title, _, text = section.partition("\n")
        if title.lower() not in entries:
            sys.exit(f'CHANGELOG.md: has an unknown heading "{title}" under "{HEADING}"; nothing was moved')
        entries[title.lower()] = text.strip()
    for kind, text in news:
        if f"{text}\n" not in f"{entries[kind]}\n":
            entries[kind] = f"{entries[kind]}\n{text}".strip()
    parts = [
        introduction.strip(),
        *(f"### {kind.title()}\n\n{text}" for kind, text in entries.items() if text),
    ]
    told = "".join(f"\n{part}\n" for part in parts if part)
    return f"{before}\n{HEADING}\n{told}{released}{older}"


if __name__ == "__main__":
    main()
