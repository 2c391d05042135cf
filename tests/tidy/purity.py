"""Rules for the pure part, and what is simulated with it: no order that depends on hashes, no dictionaries of anything.

Knows what can be told from the syntax alone: sets that come out of calls to other modules are not recognised.
"""

import ast
import re
from collections.abc import Iterator

from tidy.rule import Function, Source, in_the_pure_part, in_what_is_simulated, rule


def _is_set(node: ast.expr, known: frozenset[str]) -> bool:
    match node:
        case ast.Set() | ast.SetComp():
            return True
        case ast.Name() | ast.Attribute(value=ast.Name(id="self")):
            return ast.unparse(node) in known
        case ast.Call(func=ast.Name(id="set" | "frozenset")):
            return True
        case ast.Call(func=ast.Attribute(value=value, attr="union" | "intersection" | "difference")):
            return _is_set(value, known)
        case ast.BinOp(left=left, op=ast.BitOr() | ast.BitAnd() | ast.Sub() | ast.BitXor(), right=right):
            return any(_is_set(side, known) or _is_keys(side) for side in (left, right))
        case _:
            return False


def _is_keys(node: ast.expr) -> bool:
    """Whether it is a dictionary's keys: in order by themselves, a set as soon as they are computed with."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "keys"


def _set_names(scope: ast.AST) -> frozenset[str]:
    """Return names that are bound to sets, or annotated as such, anywhere in the scope."""
    names: list[str] = []
    for node in ast.walk(scope):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_set(value, frozenset()):
                names.append(name)
            case (
                ast.arg(arg=name, annotation=ast.expr() as annotation)
                | ast.AnnAssign(target=ast.Name(id=name), annotation=annotation)
            ) if _says_set(annotation):
                names.append(name)
            case _:
                pass
    return frozenset(names)


def _says_set(annotation: ast.expr) -> bool:
    return re.match(r"(frozen)?set\b|(Abstract|Mutable)?Set\b", ast.unparse(annotation)) is not None


def _set_attributes(tree: ast.AST) -> frozenset[str]:
    """Return attributes of objects that are annotated as sets where they are first set."""
    annotated = (
        node for node in ast.walk(tree) if isinstance(node, ast.AnnAssign) and _says_set(node.annotation)
    )
    return frozenset(ast.unparse(node.target) for node in annotated if isinstance(node.target, ast.Attribute))


def _unordered(scope: ast.AST) -> list[ast.comprehension]:
    """Return comprehensions out of which no order comes: sets of sets, and what is sorted or only asked of all."""
    found: list[ast.comprehension] = []
    for node in ast.walk(scope):
        match node:
            case (
                ast.Call(
                    func=ast.Name(id="frozenset" | "set" | "any" | "all" | "sorted"),
                    args=[ast.GeneratorExp(generators=inner), *_],
                )
                | ast.SetComp(generators=inner)
            ):
                found += inner
            case _:
                pass
    return found


def _iterated(node: ast.AST) -> list[ast.expr]:
    """Return the expressions whose order this node makes visible; sorted() is not among them."""
    match node:
        case ast.For(iter=one) | ast.comprehension(iter=one) | ast.Starred(value=one):
            return [one]
        case ast.Call(
            func=ast.Name(id="list" | "tuple" | "iter" | "enumerate" | "zip" | "map" | "filter"), args=args
        ):
            return args
        case ast.Call(func=ast.Attribute(attr="join"), args=args):
            return args
        case _:
            return []


@rule(
    in_what_is_simulated,
    "src/jackfield/core/a.py",
    (
        "for a in {1, 2}: ...\n",
        "b = [a for a in set(c)]\n",
        "b = tuple(frozenset(c) | d)\n",
        "def f(seen: set[str]):\n    return ', '.join(seen)\n",
        "def f():\n    s = {1}\n    return [*s]\n",
        "for a in b.keys() - c: ...\n",
        "S = frozenset(b)\n\ndef f():\n    return [a for a in S]\n",
        "class C:\n    def f(self):\n        self.a: set[int] = g()\n    def h(self):\n        return tuple(self.a)\n",
    ),
    "s = {1}\nfor a in sorted(s): ...\nb = 1 in s or len(s)\nc = frozenset(a for a in s)\n",
)
def what_is_simulated_iterates_over_no_set(source: Source) -> Iterator[str]:
    top = [one for one in source.tree.body if isinstance(one, ast.Assign | ast.AnnAssign)]
    known = _set_names(ast.Module(list(top), [])) | _set_attributes(source.tree)
    harmless = _unordered(source.tree)
    scopes = [(known, source.tree), *((known | _set_names(one), one) for one in source.functions)]
    found = [
        f"{one.lineno}: iterates over the set {ast.unparse(one)!r}; sort it first"
        for names, scope in scopes
        for node in ast.walk(scope)
        for one in _iterated(node)
        if _is_set(one, names) and node not in harmless
    ]
    yield from dict.fromkeys(found)  # a function is also part of what it stands in


@rule(
    in_the_pure_part,
    "src/jackfield/core/a.py",
    ("def f(a: dict[str, Any]): ...\n", "def f(a: dict): ...\n", "a: Mapping[str, tuple[Any, ...]]\n"),
    "def f(a: Mapping[str, int]) -> dict[str, object]: ...\n",
)
def the_core_knows_its_dictionaries(source: Source) -> Iterator[str]:
    for node in ast.walk(source.tree):
        annotation = getattr(node, "returns" if isinstance(node, Function) else "annotation", None)
        if not isinstance(annotation, ast.expr):
            continue
        spelt = ast.unparse(annotation)
        if re.search(r"\b(dict|Mapping)\[.*\bAny\b|\bdict\b(?!\[)", spelt):
            yield f"{annotation.lineno}: {spelt!r}: dictionaries of anything stop at the codec"
