"""A tree for a text that is being written: what doesn't parse is mended. Spec: 12 §2.

Where a token doesn't fit, the least is put in that makes the next ones fit: a name, a bracket, a separator.
If nothing does, the token is passed over; and where that doesn't help either, the statement becomes a `nil`,
as it does for the parser's own messages. What is put in takes no room: it has an offset and no text.
"""

from __future__ import annotations

from heapq import heappop, heappush

from harnpy.syntax import ast
from harnpy.syntax.explain import next_item, recover
from harnpy.syntax.layout import arrange
from harnpy.syntax.lexer import LexError, Tokens, lex
from harnpy.syntax.nodes import Failure
from harnpy.syntax.parser import Parser
from harnpy.syntax.tables import Table, load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

#: The name of what is missing where a name has to stand.
MISSING = ""
#: What may be put in, with its value, the likeliest first.
_MISSING_TOKENS = {
    "IDENT": MISSING,
    ")": ")",
    "]": "]",
    "NL": "\n",
    "}": "}",
    ",": ",",
    ":": ":",
    "=": "=",
    "->": "->",
    "in": "in",
    "(": "(",
    "LB": "{",
    "LB_ARROW1": "{",
    "STRING": "",
    "catch": "catch",
}
#: So many tokens are put in at one place, or at the end of the text; so many must fit behind them.
_LONGEST, _LONGEST_AT_END, _FITTING = 3, 40, 3
#: So many ways are followed before the place is given up.
_WAYS = 120
#: A text with more places to mend than that is no program; so many of them are worth a search.
_MOST, _SEARCHED = 200, 24
#: A kind of token that no grammar has.
_PROBE = "?PROBE"
#: Words that go on with the statement of the line before.
CONTINUING = frozenset(["else", "catch", "finally"])


def mended(source: str) -> ast.Program:
    """Return the tree of a text, whatever is in it. A text that parses has the tree that `parse` gives it."""
    return _Mender(load()).program(source)


def missing(source: str) -> list[tuple[int, tuple[str, ...]]]:
    """Return what mending puts into a text: by offset, tokens as they are written, `MISSING` for a name."""
    mender = _Mender(load())
    mender.program(source)
    return mender.put


def acceptable(text: str, kinds: Sequence[str]) -> set[str]:
    """Return which kinds of tokens may stand behind a text, what doesn't parse in it mended."""
    table = load()
    found: set[str] = set()
    # A line break doesn't count before a word that goes on with the statement.
    for word, behind in (("x", False), ("else", True)):
        mender = _Mender(table)
        tokens = mender.readable(f"{text} {word}")
        if len(tokens.kinds) < 2:
            continue
        tokens.kinds[-2] = _PROBE
        states = mender.states_at(tokens)
        if states is not None:
            found.update(
                kind for kind in kinds if (kind in CONTINUING) == behind and table.accepts(states, kind)
            )
    return found


class _Mender(Parser):
    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self._left = _MOST
        #: What was put in, and where.
        self.put: list[tuple[int, tuple[str, ...]]] = []

    def program(self, source: str) -> ast.Program:
        tokens = self.readable(source)
        before: Failure | None = None
        at = 0
        while True:
            try:
                program: ast.Program = self.run(tokens, at, "program", before)
                return program
            except Failure as failure:
                if not self._left:
                    break
                self._left -= 1
                at, before = self._go_on(tokens, failure)
            except LexError:
                # Too deep for a tree.
                break
        return ast.Program(0, len(source), ())

    def states_at(self, tokens: Tokens) -> list[int] | None:
        """Return the parser's stack before the token of the kind `_PROBE`; None if it doesn't get there."""
        before: Failure | None = None
        at = 0
        while True:
            try:
                self.run(tokens, at, "program", before)
            except Failure as failure:
                if tokens.kinds[failure.at] == _PROBE:
                    return failure.states
                if not self._left:
                    return None
                self._left -= 1
                at, before = self._go_on(tokens, failure)
            except LexError:
                return None
            else:
                return None

    def _resume(self, tokens: Tokens, i: int, states: list[int], start: str) -> int:
        return -1 if tokens.kinds[i] == _PROBE else super()._resume(tokens, i, states, start)

    def readable(self, source: str) -> Tokens:
        """Return the tokens, with blanks for what begins none."""
        text = source
        for _ in range(_MOST):
            try:
                tokens = self._arranged(lex(text, 0, len(text)), 0)
            except LexError as error:
                if error.limit:
                    break
                text = _without(text, error)
            else:
                tokens.source = source
                return tokens
        blank = lex("", 0, 0)
        arrange(blank)
        return blank

    def _go_on(self, tokens: Tokens, failure: Failure) -> tuple[int, Failure | None]:
        """Mend one place; return the token to go on from, and the stacks to go on with."""
        at = failure.at
        if failure.reject is None:
            fitting = self._fitting(tokens, failure) if self._left >= _MOST - _SEARCHED else ()
            offset = tokens.ends[at - 1] if at else 0
            for kind in reversed(fitting):
                tokens.insert(at, kind, _MISSING_TOKENS[kind], offset)
            if fitting:
                self.put.append((offset, tuple(_MISSING_TOKENS[kind] for kind in fitting)))
                return at, failure
            if tokens.kinds[at] != "$END" and self._fits(tokens, failure.states, at + 1):
                return at + 1, failure
        if any(self.table.accepts(failure.states[:n], "let") for n in range(len(failure.states), 0, -1)):
            return recover(self.table, tokens, failure), failure
        return next_item(tokens, at), None

    def _fitting(self, tokens: Tokens, failure: Failure) -> Sequence[str]:
        """Return what makes the following tokens fit: little, and at the end rather what closes."""
        ways: list[tuple[int, int, tuple[str, ...], list[int]]] = [(0, 0, (), failure.states)]
        at_end = tokens.kinds[failure.at] == "$END"
        longest = _LONGEST_AT_END if at_end else _LONGEST
        seen: set[tuple[int, ...]] = set()
        for _ in range(_WAYS):
            if not ways:
                break
            _, _, before, states = heappop(ways)
            for kind in _MISSING_TOKENS if len(before) < longest else ():
                taken = self.table.trial(states, kind)
                if taken is None:
                    continue
                after = self._shifted(taken[0], kind)
                if tuple(after) in seen:
                    continue
                seen.add(tuple(after))
                if self._fits(tokens, after, failure.at):
                    return (*before, kind)
                heappush(ways, (len(before) + at_end * len(after), len(seen), (*before, kind), after))
        return ()

    def _fits(self, tokens: Tokens, states: list[int], at: int) -> bool:
        """Return whether the tokens from ``at`` on can follow, as far as it matters."""
        for i in range(at, at + _FITTING):
            kind = tokens.kinds[i]
            if kind == _PROBE:
                return True
            taken = self.table.trial(states, kind)
            if taken is None:
                return False
            if kind == "$END":
                return True
            states = self._shifted(taken[0], kind)
        return True

    def _shifted(self, states: list[int], kind: str) -> list[int]:
        """Return the stack behind a token that can be shifted."""
        return [*states, self.table.row(states[-1])[kind]]


def _without(text: str, error: LexError) -> str:
    """Return the text with blanks for what can't be read; a string that isn't closed ends with its line."""
    at = error.at
    if text.startswith("/*", at):
        return text[:at] + " " * (len(text) - at)
    if not error.text.startswith("Unterminated"):
        return f"{text[:at]} {text[at + 1 :]}"
    quote = text.find('"', at)
    end = len(text) if text.startswith('"""', quote) else text.find("\n", quote)
    end = len(text) if end < 0 else end
    return (
        text[:quote] + '""'[: end - quote].ljust(end - quote) + text[end:]
        if end - quote > 1
        else (f"{text[:quote]} {text[quote + 1 :]}")
    )
