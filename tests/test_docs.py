"""The documents are true: what exists is in them, what they name exists, what is generated is fresh."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import get_args

import click
import msgspec
import pytest
from click.testing import CliRunner

from jackfield import fabric, model
from jackfield.cli import policy_schema
from jackfield.cli.log import Entry
from jackfield.cli.main import main
from jackfield.cli.run import PARTS
from jackfield.core import lifecycle
from jackfield.fabric import FabricSettings
from jackfield.model import composition, plan
from jackfield.model.policy import Policy

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
GLOSSARY = DOCS / "glossary.md"
LIFE = DOCS / "life-of-a-claim.md"
POLICY = DOCS / "policy.md"
CLI = DOCS / "cli.md"
RUNNING = DOCS / "running.md"

DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md")), *sorted(ROOT.glob("examples/**/*.md"))]
OUR_KEYS = re.compile(r"(?:jackfield\.dev|cohdi\.io)/[a-z0-9-]+")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)

Golden = Callable[[Path, str], None]


def _words_in_code(*documents: Path) -> set[str]:
    """Return what stands between backticks."""
    return {word for one in documents for word in re.findall(r"`([^`\n]+)`", one.read_text())}


def _rows_about(document: Path) -> set[str]:
    """Return the words that have a row of their own in a table, with something beside them."""
    return set(re.findall(r"^\| `([^`]+)` \| *[^| ]", document.read_text(), re.MULTILINE))


# --- words


def _model_modules() -> list[object]:
    return [
        importlib.import_module(f"jackfield.model.{one.name}") for one in pkgutil.iter_modules(model.__path__)
    ]


def _constants() -> list[str]:
    """Return the texts of model/ that stand on the wire: annotations, labels, conditions, names."""
    named = [(name, value) for module in _model_modules() for name, value in vars(module).items()]
    return sorted({value for name, value in named if name.isupper() and isinstance(value, str) and value})


def _choices() -> list[str]:
    """Return the values of the StrEnums that people meet: phases, states, policies."""
    values = [value for module in (composition, plan) for value in vars(module).values()]
    enums = [value for value in values if isinstance(value, type) and issubclass(value, StrEnum)]
    return sorted({str(choice) for enum in enums for choice in enum if choice})


def _keys_in_source() -> list[str]:
    """Return every annotation and label of ours that is spelt out anywhere in the source."""
    trees = [ast.parse(path.read_text()) for path in sorted((ROOT / "src").rglob("*.py"))]
    constants = [node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return sorted({value for value in constants if isinstance(value, str) and OUR_KEYS.fullmatch(value)})


@pytest.mark.parametrize("action", [action.__name__ for action in get_args(plan.AnyAction)])
def test_every_action_is_explained(action: str) -> None:
    assert action in _rows_about(GLOSSARY)


@pytest.mark.parametrize("word", _choices())
def test_every_phase_and_state_is_explained(word: str) -> None:
    assert word in _words_in_code(GLOSSARY, LIFE)


@pytest.mark.parametrize("word", sorted({*_constants(), *_keys_in_source()}))
def test_every_word_on_the_wire_is_explained(word: str) -> None:
    assert word in _rows_about(GLOSSARY)


# --- the policy


def _settings(kind: type[msgspec.Struct]) -> Iterator[tuple[str, str]]:
    """Return each setting's name and default, as the document spells them."""
    for field in msgspec.structs.fields(kind):
        if field.required:
            yield field.encode_name, "required"
            continue
        made = field.default is msgspec.NODEFAULT
        value = field.default_factory() if made else field.default
        yield field.encode_name, f"`{_yaml(value)}`" if value or isinstance(value, int | float) else "none"


def _yaml(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_yaml(one) for one in value)}]"
    whole = int(value) if isinstance(value, float) and value.is_integer() else value
    return msgspec.yaml.encode(whole).decode().removesuffix("...\n").strip()


def _rows(document: Path) -> list[tuple[str, str, str]]:
    rows = re.findall(r"^\| `([\w-]+)` \| ([^|]+) \| ([^|]+) \|$", document.read_text(), re.MULTILINE)
    return [(name, default.strip(), meaning.strip()) for name, default, meaning in rows]


def test_every_setting_stands_in_its_table_with_its_default_and_meaning() -> None:
    rows = _rows(POLICY)
    assert [row[:2] for row in rows] == [row for kind in policy_schema.KINDS for row in _settings(kind)]
    assert [name for name, _, meaning in rows if len(meaning.split()) <= 1] == []


def test_the_policy_that_is_shown_can_be_read() -> None:
    examples = [text for language, text in FENCE.findall(POLICY.read_text()) if language == "yaml"]
    assert examples
    for text in examples:
        shown = msgspec.yaml.decode(text, type=dict[str, object])
        read = msgspec.to_builtins(msgspec.convert(shown, Policy))
        assert [name for name in shown if name not in read] == []


def test_the_schema_that_is_kept_is_the_one_that_is_made(golden: Golden) -> None:
    made = msgspec.json.format(msgspec.json.encode(policy_schema.document())).decode()
    golden(DOCS / "policy.schema.json", f"{made}\n")


# --- running


def _section(title: str) -> str:
    """Return what stands under a heading of the page about running."""
    _, _, rest = RUNNING.read_text().partition(f"\n## {title}\n")
    assert rest, f"the heading {title!r} is gone"
    return rest.partition("\n## ")[0]


def test_every_setting_of_a_fabric_stands_in_its_table() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| [^|]+ \|$", _section("The fabrics"), re.MULTILINE)
    assert [(name, default.strip()) for name, default in rows] == [*_settings(FabricSettings)]


def test_the_fabrics_that_are_shown_can_be_read() -> None:
    (example,) = (text for language, text in FENCE.findall(_section("The fabrics")) if language == "yaml")
    assert len(fabric.parse(example, "running.md")) > 1
    said = {name for one in msgspec.yaml.decode(example)["fabrics"] for name in one}
    assert said == {name for name, _ in _settings(FabricSettings)}


def test_every_member_of_a_line_of_the_log_is_explained() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", _section("The log"), re.MULTILINE)
    assert rows == [field.encode_name for field in msgspec.structs.fields(Entry)]


def test_every_part_that_can_run_alone_is_explained() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", _section("Each part alone"), re.MULTILINE)
    assert rows == [*PARTS]


# --- the life of a claim


def _life() -> str:
    lines = ["| phase | decided by | actions | written |", "|---|---|---|---|"]
    for step in lifecycle.LIFE:
        decided, actions = (", ".join(f"`{one}`" for one in cell) for cell in (step.decided_by, step.actions))
        lines.append(f"| `{step.phase}` | {decided} | {actions} | {step.written} |")
    return "".join(f"{line}\n" for line in lines)


def test_the_life_of_a_claim_is_the_one_that_is_lived(golden: Golden) -> None:
    part = re.compile(
        r"(?<=<!-- begin LIFE: written by `make golden` -->\n).*?(?=<!-- end LIFE -->)", re.DOTALL
    )
    written, count = part.subn(lambda _: _life(), LIFE.read_text())
    assert count == 1, "the marks between which the table stands are gone"
    golden(LIFE, written)


def test_the_life_names_only_actions_that_exist() -> None:
    known = {action.__name__ for action in get_args(plan.AnyAction)}
    assert {action for step in lifecycle.LIFE for action in step.actions} == known
    assert [step.phase for step in lifecycle.LIFE] == list(plan.Phase)


# --- the command line


def _commands(command: click.Command, context: click.Context) -> Iterator[str]:
    help_text = "\n".join(line.rstrip() for line in command.get_help(context).split("\n"))
    yield f"## {context.command_path}\n\n```text\n{help_text}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None and not child.hidden:
                yield from _commands(
                    child, click.Context(child, parent=context, info_name=name, terminal_width=100)
                )


def test_every_command_and_option_is_documented(golden: Golden) -> None:
    # With its own settings: the first context that is made decides which words ask for help.
    settings = {**main.context_settings, "terminal_width": 100}
    context = click.Context(main, info_name="jackfield", **settings)
    parts = ["# The command line\n\nWritten by `make golden` from the commands themselves.\n"]
    golden(CLI, "\n".join([*parts, *_commands(main, context)]))


# --- what documents name


def _names(pattern: str, text: str) -> list[str]:
    return [one for one in re.findall(pattern, text, re.MULTILINE) if "://" not in one]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(document: Path) -> None:
    links = _names(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", document.read_text())
    assert [link for link in links if not (document.parent / link).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_make_target_that_is_named_exists(document: Path) -> None:
    targets = _names(r"^([a-z-]+):", (ROOT / "Makefile").read_text())
    named = _names(r"(?:`|^)make ([a-z-]+)", document.read_text())
    assert [name for name in named if name not in targets] == []


@pytest.mark.parametrize("name", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_every_path_that_is_named_exists(name: str) -> None:
    words = _words_in_code(ROOT / name)
    paths = {
        word for word in words if re.fullmatch(r"(?:src|tests|docs|tools|bench|examples|\.ci)/[\w./-]*", word)
    }
    assert sorted(path for path in paths if not (ROOT / path).exists()) == []


def test_the_architecture_fits_on_one_page() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text().splitlines()) <= 150


def test_every_decision_is_numbered_in_order_and_argued() -> None:
    pages = sorted((DOCS / "decisions").glob("*.md"))
    assert [int(page.name[:4]) for page in pages] == list(range(1, len(pages) + 1))
    for page in pages:
        sections = _names(r"^## (.*)$", page.read_text())
        assert sections == ["Context", "Decision", "Alternatives", "Consequences"], page.name
        assert len(page.read_text().splitlines()) <= 40, page.name


def _steps(lines: Iterable[str]) -> list[tuple[str, str, str]]:
    """When, to what and what, of lines of a story; names that end in … stand for all that begin so."""
    found = (re.match(r"\s+(\d+\.\d)\s+(\S+)\s+(.+)", line) for line in lines)
    return [(one[1], one[2], one[3]) for one in found if one]


def test_what_the_readme_shows_of_the_demo_is_what_it_prints() -> None:
    printed = _steps(CliRunner().invoke(main, ["demo", "--plain"]).output.splitlines())
    shown = _steps((ROOT / "README.md").read_text().partition("## What it does")[0].splitlines())
    assert len(shown) > 5
    for at, name, rest in shown:
        action = re.split(r"\s{2,}", rest)[0]
        assert any(
            at == when and thing.startswith(name.rstrip("…")) and action in what
            for when, thing, what in printed
        ), f"{at} {name} {action}"
