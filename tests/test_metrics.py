"""What can be seen is explained: every figure, every reason, every alert; and what alerts and dashboard show exists."""

import ast
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from jackfield.controllers import findings
from jackfield.controllers.act import CLEARED
from jackfield.controllers.runner import REWOUND
from jackfield.core import drift
from jackfield.core.figures import Failure
from jackfield.driver.metrics import Metrics
from jackfield.fabric_manager import figures as manager
from jackfield.metrics import catalogue
from jackfield.metrics.catalogue import Family, Sort
from jackfield.model.policy import ADMITTED, FAILED, READY, RESCHEDULE

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "jackfield"
METRICS = ROOT / "docs" / "metrics.md"
ALERTS = ROOT / "docs" / "alerts.md"
EVENTS = ROOT / "docs" / "events.md"
RULES = ROOT / "charts" / "jackfield" / "files" / "alerts.yaml"
DASHBOARD = ROOT / "charts" / "jackfield" / "files" / "dashboard.json"

Golden = Callable[[Path, str], None]
LABELS = {"fabric", "model", "stage", "warm", "reason", "condition", "state", "verb", "result", "version"}
LABELS |= {"controller", "action", "timer", "resource", "code", "face", "method", "driver", "operation"}
SUFFIXES = {Sort.COUNTER: ("",), Sort.GAUGE: ("",), Sort.HISTOGRAM: ("_bucket", "_count", "_sum")}
FIGURE = re.compile(r"\b(?:jackfield|process)_[a-z_]+")
CAMEL = re.compile(r"(?:[A-Z][a-z]+)+")


# --- figures


def _drivers() -> tuple[Family, ...]:
    """Return what a driver shows that has done everything once."""
    driver = Metrics("a.example.com")
    driver.claim("prepare", 0.1, done=True)
    driver.slice_written("create", "ok")
    driver.checkpoint_written(1, 0.1)
    found = []
    for one in driver.families():
        total = "_total" if one.type == "counter" else ""
        labels = tuple(label for label in one.samples[0].labels if label != "le")
        found.append(Family(f"{one.name}{total}", Sort(one.type), labels, one.documentation))
    return tuple(found)


TABLES = {"CONTROLLERS": catalogue.FAMILIES, "DRIVERS": _drivers(), "MANAGER": manager.FAMILIES}
EVERY = tuple(one for families in TABLES.values() for one in families)


def _table(families: tuple[Family, ...]) -> str:
    rows = ["| metric | type | labels | what it says |", "|---|---|---|---|"]
    for one in families:
        labels = ", ".join(f"`{label}`" for label in one.labels)
        rows.append(f"| `{one.name}` | {one.sort} | {labels} | {one.words} |")
    return "".join(f"{row}\n" for row in rows)


def _reasons() -> str:
    tree = ast.parse((SOURCE / "core" / "figures.py").read_text())
    body = next(one for one in tree.body if isinstance(one, ast.ClassDef) and one.name == "Failure").body
    words = [
        str(one.value.value)
        for one in body
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)
    ]
    rows = [f"| `{reason}` | {said} |\n" for reason, said in zip(Failure, words[1:], strict=True)]
    return "".join(["| reason | what it says |\n", "|---|---|\n", *rows])


def test_every_figure_stands_in_its_table(golden: Golden) -> None:
    text = METRICS.read_text()
    tables = {name: _table(families) for name, families in TABLES.items()} | {"FAILURES": _reasons()}
    for name, table in tables.items():
        begin, end = f"<!-- begin {name}: written by `make golden` -->\n", f"<!-- end {name} -->"
        part = re.compile(f"(?<={re.escape(begin)}).*?(?={re.escape(end)})", re.DOTALL)
        text, count = part.subn(lambda _, table=table: table, text)  # type: ignore[misc] # of this turn
        assert count == 1, f"the marks between which {name} stands are gone"
    golden(METRICS, text)


@pytest.mark.parametrize("family", EVERY, ids=lambda one: one.name)
def test_a_figure_is_named_as_prometheus_names_them(family: Family) -> None:
    assert re.fullmatch(r"jackfield(_[a-z]+)+", family.name)
    assert family.name.endswith("_total") == (family.sort is Sort.COUNTER)
    assert family.name.endswith("_seconds") or family.sort is not Sort.HISTOGRAM
    assert set(family.labels) <= LABELS, "a label with as many values as the cluster has objects?"
    assert len(family.words.split()) > 1
    assert family.words.endswith(".")


# --- alerts


class Rule(msgspec.Struct, forbid_unknown_fields=True):
    alert: str
    expr: str
    labels: dict[str, str]
    annotations: dict[str, str]
    for_: str = msgspec.field(default="", name="for")


class Group(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    rules: list[Rule]


class Rules(msgspec.Struct, forbid_unknown_fields=True):
    groups: list[Group]


GROUPS = msgspec.yaml.decode(RULES.read_bytes(), type=Rules).groups
ALL_RULES = [rule for group in GROUPS for rule in group.rules]
KNOWN = {f"{one.name}{suffix}" for one in EVERY for suffix in SUFFIXES[one.sort]}
KNOWN |= {"process_resident_memory_bytes", "process_cpu_seconds_total"}


def _section(title: str) -> str:
    return ALERTS.read_text().partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_no_two_alerts_have_one_name() -> None:
    names = [rule.alert for rule in ALL_RULES]
    assert len(set(names)) == len(names) > 15
    assert re.findall(r"^## (.+)$", ALERTS.read_text(), re.MULTILINE) == names


@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.alert)
def test_an_alert_has_a_runbook_and_asks_for_what_is_shown(rule: Rule) -> None:
    section = _section(rule.alert)
    for word in (
        ("**You see:**", "**Why:**", "**Do:**")
        if rule.alert != "JackfieldAttachesFail"
        else ("**You see:**",)
    ):
        assert word in section
    assert rule.labels["severity"] in {"critical", "warning", "info"}
    assert rule.annotations["runbook"] == f"docs/alerts.md#{rule.alert.lower()}"
    assert rule.annotations["summary"].endswith((".", ")."))
    assert rule.annotations["description"].endswith(".")
    assert _asked(rule.expr) <= KNOWN
    assert _asked(rule.expr)
    assert _wrong_labels(rule.expr) == []


def test_every_alert_is_tried() -> None:
    """By promtool: `make alerts`."""
    text = (ROOT / "tests" / "alerts" / "alerts.test.yaml").read_text()
    assert [rule.alert for rule in ALL_RULES if f'alertname="{rule.alert}"' not in text] == []


def test_every_reason_of_a_failure_has_its_line_in_the_runbook() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", _section("JackfieldAttachesFail"), re.MULTILINE)
    assert sorted(rows) == sorted(reason for reason in Failure if reason is not Failure.UNWANTED)


def _asked(expression: str) -> set[str]:
    return set(FIGURE.findall(expression))


def _wrong_labels(expression: str) -> list[str]:
    """Return the labels that are selected by and that the figure does not have."""
    by_name = {f"{one.name}{suffix}": one for one in EVERY for suffix in SUFFIXES[one.sort]}
    wrong = []
    for name, braces in re.findall(r"\b(jackfield_[a-z_]+)\{([^}]*)\}", expression):
        labels = re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", braces)
        wrong += [f"{name}{{{one}}}" for one in labels if one not in by_name[name].labels]
    return wrong


# --- the dashboard


def _panels() -> Iterator[dict[str, object]]:
    board = json.loads(DASHBOARD.read_text())
    assert isinstance(board["panels"], list)
    yield from board["panels"]


def _expressions(panel: dict[str, object]) -> list[str]:
    targets = panel.get("targets", [])
    assert isinstance(targets, list)
    return [one["expr"] for one in targets]


def test_the_dashboard_asks_for_what_is_shown_and_shows_all_of_it() -> None:
    asked = {name for panel in _panels() for one in _expressions(panel) for name in _asked(one)}
    assert asked <= KNOWN
    unshown = [
        one.name for one in EVERY if not any(f"{one.name}{end}" in asked for end in SUFFIXES[one.sort])
    ]
    assert unshown == []
    assert [wrong for panel in _panels() for one in _expressions(panel) for wrong in _wrong_labels(one)] == []


def test_the_dashboard_is_one_that_grafana_reads() -> None:
    board = json.loads(DASHBOARD.read_text())
    assert {"uid", "title", "schemaVersion", "templating", "time", "panels"} <= set(board)
    panels = list(_panels())
    ids = [panel["id"] for panel in panels]
    assert len(set(map(str, ids))) == len(ids)
    for panel in panels:
        assert panel["type"] in {"row", "stat", "timeseries"}
        assert panel["title"]
        if panel["type"] != "row":
            assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            targets = panel["targets"]
            assert isinstance(targets, list)
            references = [one["refId"] for one in targets]
            assert references == sorted(set(references))
            assert references


def test_no_two_panels_lie_on_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in _panels():
        place = panel["gridPos"]
        assert isinstance(place, dict)
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


# --- reasons


def _called(node: ast.Call) -> str:
    function = node.func
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


def _said(node: ast.AST) -> list[ast.expr]:
    """Return what a piece of source gives as the reason of a wait or an Event."""
    match node:
        case ast.Call(args=[_, reason, *_]) if _called(node) in {"Waiting", "_wait", "_waiting"}:
            return [reason]
        case ast.Call(keywords=keywords) if _called(node) == "Event":
            return [one.value for one in keywords if one.arg == "reason"]
        case ast.Return(value=ast.Tuple(elts=[reason, *_])):
            return [reason]
        case _:
            return []


def _reasons_in_source() -> set[str]:
    paths = [
        path for part in ("core", "controllers", "node", "driver") for path in (SOURCE / part).rglob("*.py")
    ]
    trees = [
        ast.parse(path.read_text()) for path in paths if not {"cel", "allocate", "share"} & set(path.parts)
    ]
    said = (one for tree in trees for node in ast.walk(tree) for one in _said(node))
    words = {one.value for one in said if isinstance(one, ast.Constant) and isinstance(one.value, str)}
    notices = re.findall(r'^[A-Z_]+: Final = "((?:[A-Z][a-z]+){2,})"$', _notices(), re.MULTILINE)
    conditions = {READY, RESCHEDULE, FAILED, ADMITTED}
    others = {CLEARED, REWOUND, findings.OVER, findings.SUM, *drift.Kind}
    return {str(one) for one in {*words, *notices, *conditions, *others} if CAMEL.fullmatch(one)}


def _notices() -> str:
    return (SOURCE / "driver" / "notices.py").read_text()


def test_every_reason_is_explained_and_no_other() -> None:
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| [^|]+ \| [^|]+ \|$", EVENTS.read_text(), re.MULTILINE)
    assert len(set(rows)) == len(rows)
    assert set(rows) == _reasons_in_source()
