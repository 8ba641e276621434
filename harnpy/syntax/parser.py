"""Tokens to AST: an LALR loop over the shipped table. Spec: 01 §6-§9.

The loop calls the node builders directly. What goes wrong is worded by `harnpy.syntax.explain`; after
an error the parser goes on with the next top-level item, to report the others.
"""

from __future__ import annotations

from itertools import islice

from harnpy import cache
from harnpy.syntax import ast
from harnpy.syntax.ast import pack, unpack
from harnpy.syntax.layout import arrange
from harnpy.syntax.lexer import MAX_NESTING, RESERVED, LexError, Tokens, lex, too_deep
from harnpy.syntax.nodes import Failure, Reject
from harnpy.syntax.tables import Table, load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.syntax.diagnostic import SyntaxFault
    from harnpy.syntax.explain import Explainer, Unclosed


#: Entries of the parser's stack. A level of brackets takes a few; chains that nest without brackets
#: (``- - - x``, ``a ** b ** c``, ``else if``, ``list<list<…>>``) meet this limit first.
MAX_STACK = 10 * MAX_NESTING
#: Interpolations inside interpolations.
MAX_STRINGS = 16
#: A text that is not a program at all yields an error a line; more than these help no reader.
MAX_ERRORS = 20
#: How many brackets that may not be closed are tried, one after the other.
_SUSPECTS = 8
#: An error within fewer tokens of where parsing went on comes of the one before.
_FAR = 3


def parse(source: str, *, file: str = "<script>") -> ast.Program:
    """The tree of a program. Raises `SyntaxFault` with every error found."""
    return Parser(load()).parse(source, file)


def parse_cached(source: str, file: str = "<script>") -> ast.Program:
    """`parse`, through the cache on disk."""
    packed = cache.load("ast", source)
    if packed is not None:
        cached: ast.Program = unpack(packed)
        return cached
    program = parse(source, file=file)
    try:
        cache.store("ast", source, pack(program))
    except RecursionError:
        # Too deep to write down: such a program is parsed every time.
        return program
    return program


class Parser:
    """Parses with one table; keep it to parse several sources."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def parse(self, source: str, file: str) -> ast.Program:
        try:
            tokens = self._tokens(source, 0, len(source), 0)
            program: ast.Program = self.run(tokens, 0, "program")
        except LexError as error:
            raise self._lexical_errors(source, file, error) from None
        except Failure as failure:
            raise self._all_errors(source, file, tokens, failure) from None
        return program

    def _explainer(self, source: str, file: str) -> Explainer:
        from harnpy.syntax.explain import Explainer

        return Explainer(self.table, source, file)

    def _lexical_errors(self, source: str, file: str, first: LexError) -> SyntaxFault:
        """The fault for this error, and for further characters that begin no token, one a line (01 §9.4)."""
        from harnpy.syntax.explain import blanked

        explainer = self._explainer(source, file)
        error: LexError | None = first
        text: str | None = source
        while error is not None and len(explainer.diagnostics) < MAX_ERRORS:
            explainer.add_lexical(error)
            text = blanked(text, error) if text is not None else None
            error = None if text is None else _lexical_error(text)
        return explainer.lexical_fault()

    def _all_errors(self, source: str, file: str, tokens: Tokens, failure: Failure) -> SyntaxFault:
        """The fault for this failure, and for those that are left when it is mended (01 §9.4, §9.6)."""
        from harnpy.syntax.explain import next_item, recover

        explainer = self._explainer(source, file)
        tokens, left = self._close_brackets(explainer, source, tokens, failure)
        resumed = -_FAR
        while left is not None and len(explainer.diagnostics) < MAX_ERRORS:
            if left.at - resumed >= _FAR:
                explainer.add(tokens, left)
            before: Failure | None = left
            if left.at > resumed + 1:
                resumed = recover(self.table, tokens, left)
            else:
                resumed, before = next_item(tokens, left.at), None
            left = self._failure(tokens, resumed, before) if resumed < len(tokens.kinds) - 1 else None
        return explainer.fault()

    def _close_brackets(
        self, explainer: Explainer, source: str, tokens: Tokens, failure: Failure
    ) -> tuple[Tokens, Failure | None]:
        """Report the brackets that the indentation shows not to be closed.

        The tokens with those closed, and what still fails.
        """
        from harnpy.syntax.explain import unclosed

        raw = lex(source, 0, len(source))
        while len(explainer.diagnostics) < MAX_ERRORS and (lacking := unclosed(raw)):
            mended = self._close_one(raw, lacking, tokens.starts[failure.at])
            if mended is None:
                break
            found, closed, tokens, again = mended
            explainer.add_unclosed(raw, found)
            if again is None:
                return tokens, None
            raw, failure = closed, again
        return tokens, failure

    def _close_one(
        self, raw: Tokens, lacking: int, failed: int
    ) -> tuple[Unclosed, Tokens, Tokens, Failure | None] | None:
        """The first bracket with which closed the program fails no earlier than at offset ``failed``."""
        from harnpy.syntax.explain import closed, suspects, unclosed

        for found in islice(suspects(raw), _SUSPECTS):
            mended = closed(raw, found)
            if unclosed(mended) >= lacking:
                continue
            try:
                tokens = self._arranged(mended.copy(), 0)
            except LexError:
                continue
            failure = self._failure(tokens, 0)
            if failure is None or tokens.starts[failure.at] >= failed:
                return found, mended, tokens, failure
        return None

    def _failure(self, tokens: Tokens, at: int, before: Failure | None = None) -> Failure | None:
        """Return how parsing fails from token ``at`` on, with the stacks of a failure ``before``."""
        try:
            self.run(tokens, at, "program", before)
        except Failure as failure:
            return failure
        except LexError:
            # Too deep: what was found before is enough to report.
            return None
        return None

    def _tokens(self, source: str, start: int, end: int, depth: int) -> Tokens:
        """The tokens of ``source[start:end]``, each `INTERP` with its parts as nodes."""
        return self._arranged(lex(source, start, end), depth)

    def _arranged(self, tokens: Tokens, depth: int) -> Tokens:
        """The same from tokens as the lexer gives them, which are changed."""
        source = tokens.source
        arrange(tokens)
        for i, kind in enumerate(tokens.kinds):
            if kind == "INTERP":
                if depth == MAX_STRINGS:
                    raise too_deep(tokens.starts[i])
                tokens.values[i] = self._parts(source, tokens.values[i], tokens.starts[i], depth + 1)
        return tokens

    def _parts(self, source: str, pieces: list[Any], at: int, depth: int) -> tuple[ast.Node, ...]:
        """The pieces of an interpolated string as nodes, neighbouring texts in one."""
        parts: list[ast.Node] = []
        for piece in pieces:
            if isinstance(piece, str):
                node: ast.Node | None = ast.Str(at, at, piece, False)
            else:
                node = self._interpolation(source, piece[0], piece[1], depth)
            if not isinstance(node, ast.Str):
                parts += [] if node is None else [node]
            elif parts and isinstance(before := parts[-1], ast.Str):
                parts[-1] = ast.Str(before.start, node.end, before.value + node.value, False)
            elif node.value:
                parts.append(ast.Str(node.start, node.end, node.value, False))
        return tuple(parts)

    def _interpolation(self, source: str, start: int, end: int, depth: int) -> ast.Node | None:
        """The expression in ``source[start:end]``; its text when it does not parse (01 §4.7)."""
        text = source[start:end]
        if text.isascii() and text.isidentifier() and text not in RESERVED:
            # Most are a name, which needs no parser.
            return ast.Name(start, end, text)
        try:
            tokens = self._tokens(source, start, end, depth)
        except LexError as error:
            if error.limit:
                raise
            return None
        if len(tokens.kinds) == 1:
            return None
        try:
            node: ast.Node = self.run(tokens, 0, "interpolation")
        except Failure:
            return ast.Str(start, end, text, False)
        return node

    def run(self, tokens: Tokens, i: int, start: str, before: Failure | None = None) -> Any:
        """Parse from token ``i`` on, with the stacks of a failure ``before`` if there was one.

        Raises `Failure`.
        """
        kinds, token_values, starts, ends = tokens.kinds, tokens.values, tokens.starts, tokens.ends
        table = self.table
        actions, gotos, rules, row, rule = table.actions, table.gotos, table.rules, table.row, table.rule
        first_unit, climb = table.first_unit, table.climb
        if before is None:
            states, values, begins = [table.starts[start]], [], []
        else:
            states, values, begins = before.states, before.values, before.begins
        state = states[-1]
        last = starts[i]
        while True:
            action = (actions[state] or row(state)).get(kinds[i])
            if action is None:
                resumed = self._resume(tokens, i, states, start)
                if resumed < 0:
                    raise Failure(i, states, values, begins)
                i = resumed
            elif action > 0:
                state = action
                states.append(state)
                values.append(token_values[i])
                begins.append(starts[i])
                last = ends[i]
                i += 1
                if len(states) > MAX_STACK:
                    raise too_deep(begins[-1])
            elif action <= first_unit:
                state = states[-1] = climb(states[-2], state, kinds[i])
            elif action < 0:
                origin, size, make, choose = rules[-1 - action] or rule(-1 - action)
                if size:
                    args, begin, end = values[-size:], begins[-size], last
                else:
                    args, begin, end = [], starts[i], starts[i]
                if choose is not None:
                    args.append(None)
                    args = choose(args)
                if make is not None:
                    try:
                        value = make(begin, end, *args)
                    except Reject as reject:
                        raise Failure(i, states, values, begins, reject) from None
                else:
                    value = args[0] if args else None
                if size:
                    del values[-size:], begins[-size:], states[-size:]
                values.append(value)
                begins.append(begin)
                state = gotos[states[-1]][origin]
                states.append(state)
            else:
                return values[-1]

    def _resume(self, tokens: Tokens, i: int, states: list[int], start: str) -> int:
        """The token to go on with when token ``i`` does not fit, or -1 when that is an error."""
        kinds, accepts = tokens.kinds, self.table.accepts
        if start == "interpolation":
            # What follows the expression is ignored (01 §4.7).
            if not accepts(states, "$END"):
                return -1
            kinds[i] = "$END"
            return i
        if kinds[i] in ("}", "NL") and accepts(states, "$END"):
            # A stray `}` between items is skipped, and so is the line break behind it.
            return i + 1
        # Statements on different lines need no separator, even where the line break is in a comment or
        # joined away (01 §3 rule 2). The token already parsed makes room for one.
        if (
            i
            and kinds[i] != "$END"
            and kinds[i - 1] != "NL"
            and tokens.breaks_line(i)
            and accepts(states, ";")
        ):
            kinds[i - 1] = "NL"
            return i - 1
        return -1


def _lexical_error(text: str) -> LexError | None:
    try:
        lex(text, 0, len(text))
    except LexError as error:
        return error
    return None
