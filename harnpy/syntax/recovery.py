"""Where reading goes on after an error: behind the characters or the statement at fault. Spec: 01 §9.4."""

from __future__ import annotations

from bisect import bisect_left

from harnpy.syntax.layout import OPEN_BRACES, PLAIN_OPENERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.syntax.lexer import Tokens
    from harnpy.syntax.literals import LexError
    from harnpy.syntax.refusal import Failure
    from harnpy.syntax.tables import Table

STATEMENT_STARTS = frozenset(
    """let var if for while match retry return throw fn pub try select pipeline import parallel enum eval_pack
    struct interface emit guard require deadline yield mutex defer break continue tool skill impl""".split()
)


def blanked(text: str, error: LexError) -> str | None:
    """``text`` with blanks from a character that begins no token to the end of its line.

    None where an error is of another kind: what is behind it can't be told.
    """
    if error.text != f"Unexpected character '{text[error.at : error.at + 1]}'":
        return None
    end = text.find("\n", error.at)
    end = len(text) if end < 0 else end
    return text[: error.at] + " " * (end - error.at) + text[end:]


def recover(table: Table, tokens: Tokens, failure: Failure) -> int:
    """Make the innermost statement with the failure a `nil`; the token to go on from.

    The stacks of the failure are then those before the statement.
    """
    keep = next(n for n in range(len(failure.states), 0, -1) if table.accepts(failure.states[:n], "let"))
    begun = failure.begins[keep - 1 : keep]
    first = bisect_left(tokens.starts, begun[0]) if begun else failure.at
    del failure.states[keep:], failure.values[keep - 1 :], failure.begins[keep - 1 :]
    at = _end(tokens, min(first, failure.at), failure.at)
    tokens.insert(at, "nil", "nil", tokens.ends[at - 1] if at else 0)
    return at


def next_item(tokens: Tokens, at: int) -> int:
    """The next token behind token ``at`` that begins a statement at the margin; the last one if none does."""
    last = len(tokens.kinds) - 1
    return next(
        (i for i in range(at + 1, last) if _begins(tokens, i, 0) and tokens.kinds[i - 1] == "NL"), last
    )


def _end(tokens: Tokens, first: int, failed: int) -> int:
    """The token behind the statement that begins with token ``first``, at token ``failed`` or later."""
    open_: list[str] = []
    indent = _column(tokens, first)
    for i in range(first, len(tokens.kinds)):
        kind = tokens.kinds[i]
        if kind in PLAIN_OPENERS or kind in OPEN_BRACES:
            open_.append(kind)
        elif kind in (")", "]"):
            if open_ and open_[-1] in PLAIN_OPENERS:
                open_.pop()
        elif kind == "}":
            while open_ and open_[-1] in PLAIN_OPENERS:
                open_.pop()
            if open_:
                open_.pop()
            elif i >= failed:
                return i
        elif i >= failed and kind in ("NL", ";") and (not open_ or _begins(tokens, i + 1, indent)):
            return i
    return len(tokens.kinds) - 1


def _begins(tokens: Tokens, i: int, indent: int) -> bool:
    """Whether a statement begins at token ``i`` that stands no deeper than ``indent``."""
    return tokens.kinds[i] in STATEMENT_STARTS and _column(tokens, i) <= indent


def _column(tokens: Tokens, i: int) -> int:
    return tokens.starts[i] - tokens.source.rfind("\n", 0, tokens.starts[i]) - 1
