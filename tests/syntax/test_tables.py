"""Our loop over the table does what Lark does with the grammar. Spec: 01 §8."""

from __future__ import annotations

import ast as python
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from lark import Token
from lark.common import ParserConf
from lark.exceptions import UnexpectedToken
from lark.load_grammar import load_grammar
from lark.parsers.lalr_parser import LALR_Parser

from harnpy.syntax import ast, build, layout, lexer, tables
from harnpy.syntax.diagnostic import SyntaxFault
from harnpy.syntax.lexer import Tokens
from harnpy.syntax.parser import Parser
from harnpy.syntax.tables import builder
from tests.counts import COUNT
from tests.support import ROOT
from tests.syntax.programs import programs

GRAMMAR = (ROOT / "grammar" / "harn.lark").read_text()
#: A value, and the offsets of the text that it stands for.
Placed = tuple[Any, int, int]


class Stream:
    """Tokens as Lark wants them."""

    def __init__(self, tokens: Tokens, names: dict[str, str]) -> None:
        self.tokens = tokens
        self.names = names

    def lex(self, state: Any) -> Iterator[Token]:
        t = self.tokens
        for kind, value, start, end in zip(t.kinds[:-1], t.values, t.starts, t.ends, strict=False):
            token = Token(self.names.get(kind, kind), kind, start_pos=start, end_pos=end)
            token.value = value
            yield token


@cache
def lark() -> tuple[LALR_Parser, dict[str, str]]:
    """Lark's own parser with our builders, and its name of each token kind."""
    compiled, _ = load_grammar(GRAMMAR, "harn.lark", [], False)
    terminals, rules, _ = compiled.compile(list(build.STARTS), "*")
    callbacks = {rule: _callback(*build._described(rule)[2:]) for rule in rules}
    names = {terminal.pattern.value: terminal.name for terminal in terminals}
    known = {symbol.name for rule in rules for symbol in rule.expansion}
    names |= {name[1:]: name for name in known if name[0] == "_" and name[1].isupper()}
    return LALR_Parser(ParserConf(rules, callbacks, list(build.STARTS))), names


def _callback(name: str, picks: tuple[int, ...] | None) -> Callable[[list[Any]], Placed]:
    make = builder(name) if name else None

    def call(children: list[Any]) -> Placed:
        placed = [
            (child.value, child.start_pos, child.end_pos) if isinstance(child, Token) else child
            for child in children
        ]
        start = placed[0][1] if placed else 0
        end = max((child[2] for child in placed), default=0)
        values = [child[0] for child in placed]
        if picks is not None:
            values = [values[pick] if pick >= 0 else None for pick in picks]
        value = make(start, end, *values) if make is not None else (values or [None])[0]
        return value, start, end

    return call


def test_programs_have_the_tree_that_lark_gives_them() -> None:
    ours = Parser(tables.load())
    parser, names = lark()
    resumed = []
    for source in programs()[:: COUNT.lark_share]:
        try:
            expected = ours.parse(source, "x")
        except SyntaxFault:
            continue
        tokens = ours._tokens(source, 0, len(source), 0)
        try:
            found, _, _ = parser.parse(Stream(tokens, names), "program")
        except UnexpectedToken:
            # Only ours skips a stray brace and supplies a separator between lines.
            resumed.append(source)
            continue
        assert found == expected
    assert all("}" in source or "\\\n" in source or "*/" in source for source in resumed)
    assert len(resumed) < 10


def test_the_shipped_table_is_the_one_of_the_grammar() -> None:
    tables.load()
    with open(tables.TABLE_PATH, "rb") as file:
        assert file.read() == build.build(GRAMMAR.encode(), tables.grammar_key(GRAMMAR.encode()))


def test_every_token_kind_is_a_terminal_and_the_reverse() -> None:
    _, names = lark()
    classes = {name for name in names if name.isupper()}
    words = {name for name in names if name.replace("_", "").isalpha() and name.islower()}
    assert words == lexer.RESERVED
    assert classes == {
        *"NL ELLIPSIS LT_GEN LB LB_ARROW LB_ARROW1 LB_STRUCT Q_IDX Q_TERN Q_TRY LP_WHILE".split(),
        *"WITH AS WHERE OUT DESCRIPTION SUMMARIZE TIMEOUT DEFAULT".split(),
    }


def test_member_words_are_those_of_the_grammar() -> None:
    rule = GRAMMAR[GRAMMAR.index("!key:") : GRAMMAR.index("// --- token classes")]
    assert {text for text in rule.split('"') if text.isalpha()} - {"same"} == layout.MEMBER_WORDS


def test_parsing_does_not_import_lark() -> None:
    imported = {
        name.name.split(".")[0]
        for path in (ROOT / "harnpy" / "syntax").glob("*.py")
        for node in python.parse(path.read_text()).body
        if isinstance(node, python.Import)
        for name in node.names
    }
    assert "lark" not in imported


def test_every_node_class_is_built() -> None:
    found: set[str] = set()
    nodes: list[ast.Node] = [Parser(tables.load()).parse(programs()[0], "x")]
    while nodes:
        node = nodes.pop()
        found.add(type(node).__name__)
        nodes += node.children()
    declared = {cls.__name__ for cls in ast.Node.__subclasses__() if cls.__module__.startswith(ast.__name__)}
    assert declared - found == set()
