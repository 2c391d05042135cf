"""Reads an expression: tokens to nodes, macros expanded.

Knows grammar, precedence and Kubernetes' limits. Must not know types.
"""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from jackfield.core.cel import literals, macros
from jackfield.core.cel.deep import Task, run
from jackfield.core.cel.macros import Builder, MacroError
from jackfield.core.cel.syntax import (
    Call,
    Const,
    Entry,
    Expr,
    Field,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Message,
    Select,
)
from jackfield.core.cel.tokens import BYTES, END, FLOAT, IDENTIFIER, INT, QUOTED, STRING, UINT, Token, tokens

CODE_POINTS_MAX: Final = 100_000
DEPTH_MAX: Final = 250
_ERRORS_MAX: Final = 100
_RESERVED: Final = (
    *(
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
    ),
    *("namespace", "return", "var", "void", "while"),
)
_RELATIONS: Final = ("<", "<=", ">=", ">", "==", "!=", "in")
_CALCULATIONS: Final = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2}
_STARTS: Final = (
    "[",
    "{",
    "(",
    ".",
    "-",
    "!",
    "true",
    "false",
    "null",
    FLOAT,
    INT,
    UINT,
    STRING,
    BYTES,
    IDENTIFIER,
)
"""What an expression can begin with, in Kubernetes' order."""
_VALUES: Final[dict[str, Callable[[str], Literal]]] = {
    INT: literals.integer,
    UINT: literals.unsigned,
    FLOAT: literals.double,
    STRING: literals.string,
    BYTES: literals.byte_string,
    "true": lambda _: True,
    "false": lambda _: False,
    "null": lambda _: None,
}
_NO_FOLLOWERS: Final = (IDENTIFIER, *_VALUES, ")", "]", "}", ",")
"""What never stands behind an expression in parentheses that are not closed."""
_EXPRESSION, _RELATION, _CALCULATION = range(3)


class Mistake(msgspec.Struct, frozen=True):
    """What is wrong with an expression, and where; a place before the start stands for the whole."""

    at: int
    words: str


class Parsed(msgspec.Struct, frozen=True):
    """An expression as it is written; where there are mistakes, it is of no use."""

    expr: Expr
    positions: dict[int, int]
    mistakes: tuple[Mistake, ...]


class _GaveUpError(Exception):
    """Nothing sensible can be read any more; the mistake is noted already."""


WHOLE: Final = -1


def parse(source: str) -> Parsed:
    """Return an expression as it is written, and what is wrong with it."""
    if len(source) > CODE_POINTS_MAX:
        words = f"expression code point size exceeds limit: size: {len(source)}, limit {CODE_POINTS_MAX}"
        return Parsed(Const(0, None), {}, (Mistake(WHOLE, words),))
    return _Parser(source).parsed()


class _Parser:
    """Goes through the tokens of one expression once."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._tokens, strays = tokens(source)
        self._next = 0
        self._builder = Builder(len(source))
        self._mistakes = [
            Mistake(one.at, f"Syntax error: token recognition error at: '{one.text}'") for one in strays
        ]
        self._open = [0, 0, 0]
        """How many rules of a kind are being read, one within the other."""
        self._heights: dict[int, int] = {}
        """How many levels a node has, by Kubernetes' count."""

    def parsed(self) -> Parsed:
        """Return all there is."""
        expr: Expr = Const(0, None)
        try:
            expr = run(self._expression())
            self._expect(END)
            if self._height(expr) > DEPTH_MAX:
                self._note(WHOLE, "max recursion depth exceeded")
        except _GaveUpError:
            pass
        except MacroError as error:
            self._note(WHOLE, str(error))
        return Parsed(expr, self._builder.positions, tuple(self._mistakes[:_ERRORS_MAX]))

    # --- tokens

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _after(self) -> str:
        return self._tokens[min(self._next + 1, len(self._tokens) - 1)].kind

    def _take(self) -> Token:
        token = self._token
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token

    def _accept(self, *kinds: str) -> Token | None:
        return self._take() if self._token.kind in kinds else None

    def _expect(self, kind: str, *others: str) -> Token:
        """Take a token of a kind; where there is none but one would do, say so and go on as if there were."""
        token = self._token
        if token.kind == kind:
            return self._take()
        if self._after() == kind and token.kind != END:
            self._note(
                token.at,
                f"Syntax error: extraneous input {_shown(token)} expecting {_listed((kind, *others))}",
            )
            self._take()
            return self._take()
        if others or kind not in (")", "]") or token.kind in _NO_FOLLOWERS:
            raise self._gave_up(f"mismatched input {_shown(token)} expecting {_listed((kind, *others))}")
        self._note(token.at, f"Syntax error: missing {_listed((kind,))} at {_shown(token)}")
        return token

    def _note(self, at: int, words: str) -> None:
        self._mistakes.append(Mistake(at, words))

    def _gave_up(self, words: str) -> _GaveUpError:
        self._note(self._token.at, f"Syntax error: {words}")
        return _GaveUpError()

    # --- depth

    def _enter(self, rule: int) -> None:
        self._open[rule] += 1
        if self._open[rule] > DEPTH_MAX:
            self._note(WHOLE, f"expression recursion limit exceeded: {DEPTH_MAX}")
            raise _GaveUpError

    def _leave(self, rule: int) -> None:
        self._open[rule] -= 1

    def _height(self, expr: Expr) -> int:
        return self._heights.get(expr.id, 0)

    def _raised(self, expr: Expr, parts: Sequence[Expr], *, levels: int = 0) -> Expr:
        self._heights[expr.id] = max(map(self._height, parts), default=0) + levels
        return expr

    # --- operators

    def _expression(self) -> Task[Expr]:
        self._enter(_EXPRESSION)
        expr: Expr = yield self._disjunction()
        question = self._accept("?")
        if question:
            then: Expr = yield self._disjunction()
            self._expect(":")
            otherwise: Expr = yield self._expression()
            parts = (expr, then, otherwise)
            expr = self._raised(self._call(question.at, "_?_:_", parts), parts, levels=1)
        self._leave(_EXPRESSION)
        return expr

    def _disjunction(self) -> Task[Expr]:
        ors: list[Expr] = []
        signs: list[int] = []
        while True:
            ands: list[Expr] = [(yield self._relation())]
            inner: list[int] = []
            while sign := self._accept("&&"):
                inner.append(sign.at)
                ands.append((yield self._relation()))
            ors.append(self._balanced("_&&_", ands, inner))
            sign = self._accept("||")
            if sign is None:
                return self._balanced("_||_", ors, signs)
            signs.append(sign.at)

    def _balanced(self, function: str, terms: Sequence[Expr], signs: Sequence[int]) -> Expr:
        """Return a chain of one operator as a tree that is no deeper than it must be."""
        if not signs:
            return terms[0]
        middle = len(signs) // 2
        left = self._balanced(function, terms[: middle + 1], signs[:middle])
        right = self._balanced(function, terms[middle + 1 :], signs[middle + 1 :])
        return self._raised(self._call(signs[middle], function, (left, right)), (left, right))

    def _relation(self) -> Task[Expr]:
        self._enter(_RELATION)
        expr: Expr = yield self._calculation(0)
        while sign := self._accept(*_RELATIONS):
            self._enter(_RELATION)
            right: Expr = yield self._calculation(0)
            self._leave(_RELATION)
            expr = self._binary(sign, expr, right)
        self._leave(_RELATION)
        return expr

    def _calculation(self, least: int) -> Task[Expr]:
        self._enter(_CALCULATION)
        expr: Expr = yield self._unary()
        while (binding := _CALCULATIONS.get(self._token.kind, 0)) > least:
            sign = self._take()
            right: Expr = yield self._calculation(binding)
            expr = self._binary(sign, expr, right)
        self._leave(_CALCULATION)
        return expr

    def _binary(self, sign: Token, left: Expr, right: Expr) -> Expr:
        function = "@in" if sign.kind == "in" else f"_{sign.kind}_"
        return self._raised(self._call(sign.at, function, (left, right)), (left, right), levels=1)

    def _unary(self) -> Task[Expr]:
        self._skip_to_start("-")
        first = self._token
        count = 0
        # A minus before a number belongs to the number.
        if first.kind == "!" or (first.kind == "-" and not self._at_number()):
            while self._accept(first.kind):
                count += 1
            self._skip_to_start()
        expr: Expr = yield self._member()
        if count % 2:
            operator = "!_" if first.kind == "!" else "-_"
            return self._raised(self._call(first.at, operator, (expr,)), (expr,))
        return expr

    def _at_number(self) -> bool:
        return self._token.kind == "-" and self._after() in (INT, FLOAT)

    def _skip_to_start(self, *signs: str) -> None:
        """Go on to what an expression can begin with; one token may be passed over."""
        token = self._token
        if token.kind in signs or self._at_number() or (token.kind in _STARTS and token.kind != "-"):
            return
        passed = token.kind not in ("-", END) and self._after() in _STARTS
        kind = "extraneous" if passed or not signs else "mismatched"
        words = f"{kind} input {_shown(token)} expecting {_listed(_STARTS)}"
        if not passed:
            raise self._gave_up(words)
        self._note(token.at, f"Syntax error: {words}")
        self._take()

    # --- what stands between operators

    def _member(self) -> Task[Expr]:
        expr: Expr = yield self._primary()
        while sign := self._accept(".", "["):
            if sign.kind == "[":
                optional = self._accept("?")
                index: Expr = yield self._expression()
                self._expect("]")
                call = self._call(sign.at, "_[?_]" if optional else "_[_]", (expr, index))
                expr = self._raised(call, (expr, index), levels=1)
                continue
            optional = self._accept("?")
            name = self._name(optional or sign, IDENTIFIER, QUOTED)
            if not optional and name.kind == IDENTIFIER and self._token.kind == "(":
                place = self._take().at
                arguments: list[Expr] = yield self._arguments()
                called = self._called(place, name.text, expr, arguments)
                expr = self._raised(called, (expr, *arguments), levels=1)
            else:
                expr = self._raised(
                    self._selected(sign, name, expr, optional=bool(optional)), (expr,), levels=1
                )
        return expr

    def _name(self, before: Token, *kinds: str) -> Token:
        name = self._accept(*kinds)
        if name is not None:
            return name
        token = self._token
        if token.kind in ("true", "false", "null"):
            raise self._gave_up(f"mismatched input {_shown(token)} expecting IDENTIFIER")
        if before.kind == "?":
            raise self._gave_up(f"mismatched input {_shown(token)} expecting {{IDENTIFIER, ESC_IDENTIFIER}}")
        text = self._source[before.at : token.at + (len(token.text) if token.kind != END else 0)]
        raise self._gave_up(f"no viable alternative at input '{text}'")

    def _selected(self, sign: Token, name: Token, operand: Expr, *, optional: bool) -> Expr:
        if name.kind == QUOTED:
            self._note(name.at, "unsupported syntax: '`'")
        if optional:
            field = Const(self._builder.place(name.at), name.text)
            return self._call(sign.at, "_?._", (operand, field))
        return Select(self._builder.place(sign.at), operand, name.text)

    def _called(self, place: int, function: str, target: Expr | None, arguments: Sequence[Expr]) -> Expr:
        builder = self._builder
        try:
            expanded = macros.expanded(builder.at(place), function, target, arguments)
        except macros.ArgumentError as error:
            self._note(builder.positions[error.expr.id], str(error))
            return Const(builder.place(place), None)
        return expanded or Call(builder.place(place), function, target, tuple(arguments))

    def _call(self, at: int, function: str, arguments: tuple[Expr, ...]) -> Expr:
        return Call(self._builder.place(at), function, None, arguments)

    def _primary(self) -> Task[Expr]:
        token = self._take()
        if token.kind == "-":
            return self._literal(token, self._take())
        if token.kind in _VALUES:
            return self._literal(None, token)
        if token.kind == "(":
            made: Expr = yield self._expression()
            self._expect(")")
            return made
        rule = {"[": self._list, "{": self._map}.get(token.kind, self._named)
        made = yield rule(token)
        return made

    def _literal(self, sign: Token | None, token: Token) -> Expr:
        at = sign.at if sign else token.at
        try:
            value = _VALUES[token.kind](f"-{token.text}" if sign else token.text)
        except literals.LiteralError as error:
            self._note(at, str(error))
            value = None
        return Const(self._builder.place(at), value)

    def _named(self, token: Token) -> Task[Expr]:
        dot = token.text if token.kind == "." else ""
        name = token
        if dot:
            name = self._name(token, IDENTIFIER)
        rest = self._message_name()
        if rest is not None:
            made: Expr = yield self._message(f"{dot}{'.'.join((name.text, *rest))}")
            return made
        if name.text in _RESERVED:
            self._note(token.at, f"reserved identifier: {name.text}")
        start = self._accept("(")
        if start is None:
            if name.text in _RESERVED:
                return Const(self._builder.place(name.at), None)
            return Ident(self._builder.place(name.at), f"{dot}{name.text}")
        arguments: list[Expr] = yield self._arguments()
        return self._raised(self._called(start.at, f"{dot}{name.text}", None, arguments), arguments)

    # --- lists of parts

    def _arguments(self) -> Task[list[Expr]]:
        found: list[Expr] = []
        if self._accept(")"):
            return found
        found.append((yield self._expression()))
        while self._accept(","):
            found.append((yield self._expression()))
        self._expect(")")
        return found

    def _more(self, end: str) -> bool:
        """Take a comma between parts, but not one behind the last."""
        if self._token.kind != "," or self._after() in (end, ","):
            return False
        self._take()
        return True

    def _end(self, kind: str) -> None:
        """Take what closes a list of parts, and a comma before it."""
        if self._accept(","):
            self._expect(kind)
        else:
            self._expect(kind, ",")

    def _list(self, start: Token) -> Task[Expr]:
        items: list[Expr] = []
        optional: list[int] = []
        more = self._token.kind not in ("]", ",")
        while more:
            if self._accept("?"):
                optional.append(len(items))
            items.append((yield self._expression()))
            more = self._more("]")
        self._end("]")
        return self._raised(ListExpr(self._builder.place(start.at), tuple(items), tuple(optional)), items)

    def _map(self, start: Token) -> Task[Expr]:
        entries: list[Entry] = []
        parts: list[Expr] = []
        more = self._token.kind not in ("}", ",")
        while more:
            optional = bool(self._accept("?"))
            key: Expr = yield self._expression()
            colon = self._expect(":")
            value: Expr = yield self._expression()
            entries.append(Entry(self._builder.place(colon.at), key, value, optional))
            parts += (key, value)
            more = self._more("}")
        self._end("}")
        return self._raised(MapExpr(self._builder.place(start.at), tuple(entries)), parts)

    def _message_name(self) -> list[str] | None:
        """Return what follows the first part of a message's name, if a message it is."""
        at = self._next
        parts: list[str] = []
        while self._tokens[at].kind == "." and self._tokens[at + 1].kind == IDENTIFIER:
            parts.append(self._tokens[at + 1].text)
            at += 2
        if self._tokens[at].kind != "{":
            return None
        self._next = at
        return parts

    def _message(self, name: str) -> Task[Expr]:
        start = self._take()
        fields: list[Field] = []
        more = self._token.kind not in ("}", ",")
        while more:
            optional = bool(self._accept("?"))
            field = self._expect(IDENTIFIER)
            colon = self._expect(":")
            value: Expr = yield self._expression()
            fields.append(Field(self._builder.place(colon.at), field.text, value, optional))
            more = self._more("}")
        self._end("}")
        made = Message(self._builder.place(start.at), name, tuple(fields))
        return self._raised(made, [one.value for one in fields])


def _shown(token: Token) -> str:
    text = token.text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return f"'{text}'"


def _listed(kinds: Sequence[str]) -> str:
    names = [one if one[0].isupper() or one == END else f"'{one}'" for one in kinds]
    return names[0] if len(names) == 1 else f"{{{', '.join(names)}}}"
