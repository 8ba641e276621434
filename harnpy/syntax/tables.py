"""The parse table, as `harnpy.syntax.build` made it from the grammar, and the builders that it names.

Spec: 01 §8.
"""

from __future__ import annotations

import marshal
import os
from _imp import source_hash
from _operator import itemgetter  # `operator` costs a start a hundredth

from harnpy.syntax import ast, nodes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    #: Origin, length, builder, and the choice among the symbols' values; without builder one is handed on.
    Rule = tuple[str, int, Callable[..., Any] | None, Callable[[list[Any]], Any] | None]


def builder(name: str) -> Callable[..., Any]:
    """Return the builder of that name: one in the table or a function of `nodes`, or else a node class."""
    found: Callable[..., Any] | None = vars(nodes).get(name)
    if found is not None and found.__module__ == nodes.__name__:
        return found
    if name in nodes.ARRANGED:
        return nodes.ARRANGED[name]
    node_class: Callable[..., Any] = vars(ast)["".join(part.title() for part in name.split("_"))]
    return node_class


#: A change in what `harnpy.syntax.build` writes needs a new number.
FORMAT = 11
#: Bytes of an offset.
_SIZE = 4
_HERE = os.path.dirname(os.path.abspath(__file__))
TABLE_PATH = os.path.join(_HERE, "harn.table")
#: Present in a source checkout only; an installed package has the table instead.
GRAMMAR_PATH = os.path.join(os.path.dirname(os.path.dirname(_HERE)), "grammar", "harn.lark")


class Table:
    """``actions[state][kind]`` is the state to shift to, -1 - rule to reduce by, or 0 to accept.

    ``data`` is a file's: its head, then states, rules, sets of tokens and the rules' names, each by itself.
    They are read when first needed, by `row` and `rule`: a program needs few of them, and reading all costs a
    cold start more than parsing. A state's gotos are read with its row, which comes first: a parser looks at
    the actions of every state that it enters.
    """

    def __init__(self, data: bytes) -> None:
        self.key: bytes
        self.starts: dict[str, int]
        self.key, self._begins, states, rules, units, self.starts = marshal.loads(data)
        self._pieces = memoryview(data)[len(data) - self._begin(-1) :]
        self.actions: list[dict[str, int] | None] = [None] * states
        self.gotos: list[dict[str, int]] = [{}] * states
        self.rules: list[Rule | None] = [None] * rules
        self._sets: dict[int, tuple[str, ...]] = {}
        #: The action of the first rule that only hands on its value; those of the others are below it.
        self.first_unit: int = -1 - units
        self._climbs: dict[tuple[int, int, str], int] = {}

    def row(self, state: int) -> dict[str, int]:
        found = self.actions[state]
        if found is None:
            common, tokens, rest, self.gotos[state] = self._piece(state)
            found = self.actions[state] = {**dict.fromkeys(self._tokens(tokens), common), **rest}
        return found

    def _tokens(self, number: int) -> tuple[str, ...]:
        """Return one of the sets of tokens that rows refer to, many to the same."""
        found = self._sets.get(number)
        if found is None:
            found = self._sets[number] = self._piece(len(self.actions) + len(self.rules) + number)
        return found

    def rule(self, number: int) -> Rule:
        found = self.rules[number]
        if found is None:
            origin, size, name, picks = self._piece(len(self.actions) + number)
            choose = None if picks is None else _chooser(picks)
            found = self.rules[number] = (origin, size, builder(name) if name else None, choose)
        return found

    def roles(self, state: int) -> tuple[str, ...]:
        """The rules in which an identifier may stand next in ``state``: for errors."""
        roles: tuple[str, ...] = self._piece(len(self._begins) // _SIZE - 2)[state]
        return roles

    def _piece(self, number: int) -> Any:
        return marshal.loads(self._pieces[self._begin(number) :])

    def _begin(self, number: int) -> int:
        """Return where a piece begins; of -1, where the last one ends."""
        at = number * _SIZE
        return int.from_bytes(self._begins[at : at + _SIZE or None], "little")

    def climb(self, below: int, state: int, kind: str) -> int:
        """Return where a chain of such rules leads from ``state``, which stands on ``below``.

        An operand passes through a rule for each level of precedence. The way depends only on these
        three, so it is gone once.
        """
        key = below, state, kind
        found = self._climbs.get(key)
        if found is None:
            action = self.row(state).get(kind, 0)
            while action <= self.first_unit:
                state = self.gotos[below][self.rule(-1 - action)[0]]
                action = self.row(state).get(kind, 0)
            found = self._climbs[key] = state
        return found

    def trial(self, states: list[int], kind: str) -> tuple[list[int], set[str]] | None:
        """Return the stack from which a parser with this one would take a token of ``kind``, and the rules
        that it would complete before; None if it would not take it.
        """
        states = states.copy()
        completed: set[str] = set()
        while True:
            action = self.row(states[-1]).get(kind)
            if action is None:
                return None
            if action >= 0:
                return states, completed
            origin, size, _, _ = self.rule(-1 - action)
            if size:
                del states[-size:]
            states.append(self.gotos[states[-1]][origin])
            completed.add(origin)

    def accepts(self, states: list[int], kind: str) -> bool:
        return self.trial(states, kind) is not None


def grammar_key(grammar: bytes) -> bytes:
    """Names the table of this grammar, in the format that `harnpy.syntax.build` writes now."""
    return source_hash(FORMAT, grammar)


def _chooser(picks: tuple[int, ...]) -> Callable[[list[Any]], Any]:
    """The values at ``picks``, of a list that ends in an added None."""
    if len(picks) > 1:
        return itemgetter(*picks)
    if picks:
        return lambda values: (values[picks[0]],)
    return lambda values: ()


class _Loaded:
    """The table of this process: its file won't change meanwhile."""

    table: Table | None = None


def load() -> Table:
    """Return the shipped table; in a checkout the one of its grammar, built when the grammar is newer."""
    if _Loaded.table is None:
        _Loaded.table = _load()
    return _Loaded.table


def _load() -> Table:
    try:
        with open(GRAMMAR_PATH, "rb") as file:
            grammar = file.read()
    except FileNotFoundError:
        return Table(_read(TABLE_PATH))
    try:
        data = _read(TABLE_PATH)
    except FileNotFoundError:
        return Table(_build(grammar))
    return Table(data if marshal.loads(data)[0] == grammar_key(grammar) else _build(grammar))


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _build(grammar: bytes) -> bytes:
    from harnpy.syntax.build import build, save

    built = build(grammar, grammar_key(grammar))
    try:
        save(built, TABLE_PATH)
    except OSError:
        # A read-only checkout works too, it only builds the table every time.
        return built
    return built
