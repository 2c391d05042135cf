"""Rules for every file, and for documents.

Banned words are spelt here with a bracket inside (`T[O]DO`), which as a pattern means the word, and as a text
is not the word. Knows texts. Must not know Python.
"""

import re
from collections.abc import Iterator

from tidy.rule import Source, anywhere, in_markdown, in_the_changelog_folder, is_news, rule

FILE_BYTES_MAX = 256 * 1024

BANNED_WORDS = {
    "T[O]DO": "do it, or open an issue",
    "FIX[M]E": "fix it",
    "X[X]X": "say what is meant",
    "H[A]CK": "say why it is right, or make it right",
    "NotImplemented[E]rror": "implement it, or leave it out",
    "pragma: no[ ]cover": "test it, or delete it",
}
FOREIGN_PLACES = re.compile(
    r"(?<![\w.-])/(?:root|work|home)/"
    r"|py[p]i[.]org|python[h]osted[.]org|proxy[.]go[l]ang|registry[.]np[m]js|index[-]url\s*="
)
CHANGELOG_KINDS = ("added", "changed", "deprecated", "removed", "fixed", "security")


@rule(anywhere, "a.bin", (b"\x00\x01", b"\xff\xfe"), "text\n")
def files_are_text(source: Source) -> Iterator[str]:
    if b"\0" in source.data or "\N{REPLACEMENT CHARACTER}" in source.text:
        yield "1: is binary"


@rule(anywhere, "a.txt", ("x\n" * FILE_BYTES_MAX,), "x\n")
def files_are_small(source: Source) -> Iterator[str]:
    if len(source.data) > FILE_BYTES_MAX:
        yield f"1: has {len(source.data)} bytes, at most {FILE_BYTES_MAX} are allowed"


@rule(anywhere, "a.yaml", ("a: 1\r\n", "a: 1", "a: 1\n\n", "\n"), "a: 1\n")
def lines_end_in_one_line_feed(source: Source) -> Iterator[str]:
    if "\r" in source.text:
        yield "1: has carriage returns"
    if source.text and (
        not source.text.endswith("\n") or source.text.endswith("\n\n") or source.text == "\n"
    ):
        yield f"{len(source.lines)}: does not end in exactly one line feed"


@rule(anywhere, "a.md", ("one \ntwo\n",), "one\ntwo\n")
def lines_end_without_blanks(source: Source) -> Iterator[str]:
    for number, line in enumerate(source.lines, 1):
        if line != line.rstrip():
            yield f"{number}: ends in blanks"


@rule(anywhere, "a.yaml", ("a:\n\tb: 1\n",), "a:\n  b: 1\n")
def only_makefiles_have_tabs(source: Source) -> Iterator[str]:
    if source.name == "Makefile" or source.path.endswith((".go", "go.mod")):
        return
    for number, line in enumerate(source.lines, 1):
        if "\t" in line:
            yield f"{number}: has a tab"


@rule(anywhere, "a.sh", tuple(re.sub(r"[][]", "", word) for word in BANNED_WORDS), "shacks and toddlers\n")
def no_word_says_that_work_is_left(source: Source) -> Iterator[str]:
    for number, line in enumerate(source.lines, 1):
        for word, instead in BANNED_WORDS.items():
            if found := re.search(rf"\b{word}\b", line):
                yield f"{number}: {found[0]!r}: {instead}"


@rule(
    anywhere, "a.txt", ("see /{}/me/x\n".format("home"), "from {}.org\n".format("pypi")), "see docs/home/\n"
)
def no_machine_and_no_registry_is_named(source: Source) -> Iterator[str]:
    for number, line in enumerate(source.lines, 1):
        if found := FOREIGN_PLACES.search(line):
            yield f"{number}: names {found[0]!r}"


@rule(anywhere, "run", ("#!/bin/sh\necho\n",), "echo\n")
def scripts_are_executable(source: Source) -> Iterator[str]:
    if source.text.startswith("#!") != source.executable:
        yield "1: a file has a first line that names its interpreter if and only if it is executable"


@rule(in_markdown, "a.md", ("words\n", "## A\n", "# A\n\n# B\n"), "# A\n\n```sh\n# comment\n```\n\n## B\n")
def documents_have_one_title(source: Source) -> Iterator[str]:
    if source.text and not source.text.startswith("# "):
        yield "1: does not begin with its title"
    prose = re.sub(
        r"^```.*?^```", lambda code: "\n" * code[0].count("\n"), source.text, flags=re.DOTALL | re.MULTILINE
    )
    for number, line in enumerate(prose.split("\n")[1:], 2):
        if line.startswith("# "):
            yield f"{number}: has a second title"


@rule(
    in_the_changelog_folder,
    "changelog.d/spares.added.md",
    (
        "path: changelog.d/spares.md",
        "path: changelog.d/Spares.added.md",
        "# Spares.\n",
        "no capital.\n",
        "No stop\n",
    ),
    "Spares are kept attached.\n",
)
def news_is_a_sentence_of_a_known_kind(source: Source) -> Iterator[str]:
    if not is_news(source):
        return
    if not re.fullmatch(rf"[a-z0-9-]+\.({'|'.join(CHANGELOG_KINDS)})\.md", source.name):
        yield f"1: is not named WHAT.KIND.md, with a KIND of {', '.join(CHANGELOG_KINDS)}"
    if not re.match(r"[A-Z`]", source.text) or not source.text.endswith(".\n"):
        yield "1: is not made of sentences, without a heading"
