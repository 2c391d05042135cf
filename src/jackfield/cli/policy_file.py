"""A policy's file: read, every fault of it found at once and named by line and column, with what was probably meant.

Knows YAML's marks and msgspec's complaints. Must not know what a setting brings about.
"""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Final

import msgspec
import yaml
from yaml import MappingNode, Mark, Node, ScalarNode, SequenceNode

from jackfield.core import policies
from jackfield.model.policy import Policy

FAULTS_MAX: Final = 100
"""After so many the rest is not looked for: it is the wrong file."""

_KINDS: Final = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "object": "settings with names",
    "array": "a list",
    "null": "nothing",
}
_NAMES: Final = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge")
_EXPECTED = re.compile(r"Expected `(?P<wanted>[^`]+)`, got `(?P<got>[^`]+)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<name>.*)`", re.DOTALL)
_WHERE = re.compile(r"^(?P<what>.*?)(?: - at (?:the )?(?P<key>key in )?`\$(?P<path>.*)`)?$", re.DOTALL)
_STEP = re.compile(r"\.(?P<name>[^.\[]+)|\[(?P<index>\d+)\]|(?P<any>\[\.\.\.\])")


class BadPolicy(Exception):  # noqa: N818 - a finding about what was given
    """A policy that cannot be used; the message has a line for every fault: where it is, and what to do."""


class Fault(msgspec.Struct, frozen=True):
    """Something to be corrected in a file."""

    line: int
    column: int
    what: str
    """Which setting, and what is wrong with it."""


def read(path: Path) -> Policy:
    """Read a policy. Raises BadPolicy naming file, line, column and fault."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadPolicy(f"{path}: cannot be read: {error.strerror}") from error
    return parse(text(content, str(path)), str(path))


def text(content: bytes, source: str) -> str:
    """Return the text of a file. Raises BadPolicy for what is none."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise BadPolicy(f"{source}: not YAML: it is not text") from error


def parse(text: str, source: str) -> Policy:
    """Make a policy of YAML text. Raises BadPolicy naming source, line, column and fault."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        found = _Reading(root)
    except yaml.MarkedYAMLError as error:
        raise BadPolicy(f"{_at(source, error.problem_mark)}: not YAML: {_problem(error)}") from error
    except yaml.YAMLError as error:
        raise BadPolicy(f"{source}: not YAML: {error}") from error
    if found.faults:
        told = (f"{source}:{one.line}:{one.column}: {one.what}" for one in sorted(found.faults, key=_place))
        raise BadPolicy("\n".join(told))
    return found.policy


def _at(source: str, mark: Mark | None) -> str:
    return source if mark is None else f"{source}:{mark.line + 1}:{mark.column + 1}"


def _problem(error: yaml.MarkedYAMLError) -> str:
    return ", ".join(one for one in (error.context, error.problem) if one)


def _place(fault: Fault) -> tuple[int, int]:
    return fault.line, fault.column


class _Reading:
    """One pass over a file: what is wrong is noted and left out, until the rest is a policy."""

    def __init__(self, root: Node | None) -> None:
        self.policy = Policy()
        self.faults: list[Fault] = []
        self._paths: dict[int, str] = {}
        self._maimed: list[Node] = []
        """Entries that lack what had to be left out of them: that they lack it is no fault of its own."""
        if root is None or (isinstance(root, ScalarNode) and root.tag == "tag:yaml.org,2002:null"):
            return
        self._walk(root, "")
        whole = self._convert(root)
        if whole and not self._maimed:
            self.faults += [_sound(root, words) for words in policies.faults(self.policy)]

    def _walk(self, node: Node, path: str) -> None:
        """Note where everything stands; a name that stands twice is a fault."""
        if id(node) in self._paths:
            return  # an alias
        self._paths[id(node)] = path
        if isinstance(node, SequenceNode):
            for index, one in enumerate(node.value):
                self._walk(one, f"{path}[{index}]")
        if not isinstance(node, MappingNode):
            return
        seen: dict[str, int] = {}
        for key, value in tuple(node.value):
            name = str(key.value)
            where = _joined(path, name)
            if key.tag not in _NAMES:
                self._tell(
                    key, f"{where}: a name must be text, and YAML takes this for something else; quote it"
                )
                _without(node, key)
            elif name in seen:
                self._tell(
                    key, f"{where}: stands here again, after line {seen[name]}; only one of them can count"
                )
                _without(node, key)
            else:
                seen |= {} if name == "<<" else {name: key.start_mark.line + 1}
                self._walk(value, where)

    def _convert(self, root: Node) -> bool:
        """Take the policy out of the tree; return whether there was anything left to take."""
        while len(self.faults) < FAULTS_MAX:
            try:
                self.policy = msgspec.convert(_built(root), Policy)
            except msgspec.ValidationError as error:
                if not self._leave_out(root, str(error)):
                    return False
            else:
                return True
        return False

    def _leave_out(self, root: Node, complaint: str) -> bool:
        """Note a complaint and take its cause out of the tree; return whether that could be done."""
        match = _WHERE.match(complaint)
        assert match is not None  # noqa: S101 - the pattern matches any text
        what, steps = match["what"], match["path"] or ""
        trail = _trail(root, steps, what)
        node = trail[-1]
        path = self._paths.get(id(node), "")
        unknown, missing = _UNKNOWN.match(what), _MISSING.match(what)
        if unknown is not None:
            key = _key(node, unknown["name"])
            self._tell(key or node, _unknown(path, unknown["name"]))
            if node is not root:  # it may be the very name that the entry lacks
                self._maimed.append(node)
            return _without(node, key)
        if missing is not None:
            if not any(one is node for one in self._maimed):
                self._tell(node, f"{path}: {missing['name']} is missing; every such entry needs one")
            self._maimed.append(node)
        else:
            self._tell(node, f"{path or 'the whole file'}: {_plainly(what, path)}")
            if len(trail) > 1:
                self._maimed.append(trail[-2])
        return len(trail) > 1 and _taken_out(trail[-2], node)

    def _tell(self, node: Node, what: str) -> None:
        self.faults.append(Fault(node.start_mark.line + 1, node.start_mark.column + 1, what))


# --- the tree


def _built(root: Node) -> object:
    """Return what a tree says, as values."""
    return yaml.SafeLoader("").construct_document(root)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _trail(root: Node, steps: str, what: str) -> list[Node]:
    """Return the nodes from the root to the place that msgspec names, as far as there are any."""
    trail = [root]
    for step in _STEP.finditer(steps):
        node = trail[-1]
        if step["index"] is not None and isinstance(node, SequenceNode):
            trail.append(node.value[int(step["index"])])
        elif step["name"] is not None and (key := _key(node, step["name"])) is not None:
            trail.append(_value(node, key))
        elif step["any"] is not None and (one := _culprit(node, what)) is not None:
            trail.append(one)
        else:
            break
    return trail


def _culprit(node: Node, what: str) -> Node | None:
    """Return the value of a map that is not of the kind it should be: msgspec does not say which it was."""
    expected = _EXPECTED.match(what)
    if expected is None or not isinstance(node, MappingNode):
        return None
    wanted = {"int": int, "str": str}.get(expected["wanted"], object)
    for _, value in node.value:
        built = _built(value)
        if not isinstance(built, wanted) or isinstance(built, bool):
            return value  # type: ignore[no-any-return]  # PyYAML's nodes are untyped
    return None


def _key(node: Node, name: str) -> Node | None:
    if not isinstance(node, MappingNode):
        return None
    return next((key for key, _ in node.value if str(key.value) == name), None)


def _value(node: Node, key: Node) -> Node:
    assert isinstance(node, MappingNode)  # noqa: S101 - who has a key is a mapping
    values: list[Node] = [value for one, value in node.value if one is key]
    return values[0]


def _without(node: Node, key: Node | None) -> bool:
    """Take a key and its value out."""
    if key is None or not isinstance(node, MappingNode):
        return False
    node.value = [(one, value) for one, value in node.value if one is not key]
    return True


def _taken_out(parent: Node, node: Node) -> bool:
    if isinstance(parent, SequenceNode):
        parent.value = [one for one in parent.value if one is not node]
        return True
    assert isinstance(parent, MappingNode)  # noqa: S101 - nothing else has parts
    parent.value = [(key, value) for key, value in parent.value if value is not node]
    return True


# --- words


def _plainly(what: str, path: str) -> str:
    expected = _EXPECTED.match(what)
    if expected is None:
        choices = _choices().get(_general(path), ())
        plain = what[:1].lower() + what[1:]
        return f"{plain}; it may be {', '.join(choices)}" if choices else plain
    wanted, got = (_KINDS.get(expected[one], expected[one]) for one in ("wanted", "got"))
    return f"must be {wanted}, and is {'a fraction' if expected['got'] == 'float' else got}"


def _unknown(path: str, name: str) -> str:
    """Tell of a name that no setting has, and which was probably meant, here or elsewhere."""
    where = path or "the policy"
    known = _settings()
    here = known.get(_general(path), ())
    meant = _meant(name, here)
    if meant:
        return f"{_joined(path, name)}: there is no such setting; was {meant} meant?"
    for place, names in known.items():
        meant = _meant(name, names, exactly=True)
        if meant:
            belongs = f"in an entry of {place}" if place else "at the top of the file"
            return f"{_joined(path, name)}: there is no such setting here; {meant} stands {belongs}"
    return f"{_joined(path, name)}: there is no such setting; {where} has {', '.join(here)}"


def _meant(name: str, names: tuple[str, ...], *, exactly: bool = False) -> str:
    """Return the name that is spelt alike, or nearly so; empty if none is."""
    spelt = {_bare(one): one for one in names}
    if _bare(name) in spelt:
        return spelt[_bare(name)]
    close = [] if exactly else get_close_matches(_bare(name), spelt, n=1, cutoff=0.7)
    return spelt[close[0]] if close else ""


def _bare(name: str) -> str:
    """Return a name without what people mix up: hold-seconds, hold_seconds, HoldSeconds."""
    return re.sub("[-_]", "", name).lower()


def _general(path: str) -> str:
    """Return a path without numbers: the same for every entry of a list."""
    return re.sub(r"\[\d+\]", "", path)


@cache
def _choices() -> dict[str, tuple[str, ...]]:
    """Return the words that may stand where only certain ones may."""
    kinds = ((one.encode_name, msgspec.inspect.type_info(one.type)) for one in msgspec.structs.fields(Policy))
    items = ((name, getattr(kind, "item_type", kind)) for name, kind in kinds)
    return {
        name: tuple(str(one.value) for one in kind.cls)
        for name, kind in items
        if isinstance(kind, msgspec.inspect.EnumType)
    }


@cache
def _settings() -> dict[str, tuple[str, ...]]:
    """Return the names of all settings, by where they stand: `` for the top, `models` for an entry there."""
    return dict(_of(Policy, ""))


def _of(kind: type[msgspec.Struct], place: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    fields = msgspec.structs.fields(kind)
    yield place, tuple(one.encode_name for one in fields)
    for one in fields:
        inner = msgspec.inspect.type_info(one.type)
        item = getattr(inner, "item_type", None)
        if isinstance(item, msgspec.inspect.StructType):
            yield from _of(item.cls, _joined(place, one.encode_name))


def _sound(root: Node, words: str) -> Fault:
    """Return a fault that the core found in the policy as a whole, with the nearest place in the file."""
    node, rest = root, words.partition(": ")[0].partition(",")[0]
    while True:
        step = _next(node, rest)
        if step is None:
            break
        node, rest = step
    return Fault(node.start_mark.line + 1, node.start_mark.column + 1, words)


def _next(node: Node, rest: str) -> tuple[Node, str] | None:
    index = re.match(r"\[(\d+)\]\.?", rest)
    if index is not None and isinstance(node, SequenceNode) and int(index[1]) < len(node.value):
        return node.value[int(index[1])], rest[index.end() :]
    if not isinstance(node, MappingNode):
        return None
    for key, value in node.value:
        name = str(key.value)
        if rest == name or rest.startswith((f"{name}.", f"{name}[")):
            return value, rest[len(name) :].removeprefix(".")
    return None
