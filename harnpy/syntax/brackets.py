"""Which bracket is never closed: the indentation tells, where one kind of bracket or another is left over.

A bracket's content is indented deeper than the line of its opener, or stands on that line; what begins a line
no deeper is behind it. Works on the tokens before the layout pass. Spec: 01 §9.6.
"""

from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.syntax.lexer import Tokens

CLOSERS = {"(": ")", "[": "]", "{": "}"}
_OPENERS = {closer: opener for opener, closer in CLOSERS.items()}
#: What can begin a line at the depth of an opener before its content only if that is closed.
_DECLARES = frozenset("fn pub tool skill eval_pack pipeline struct enum interface impl import".split())


class Unclosed(NamedTuple):
    """The bracket at token ``opener`` should have been closed before token ``before``."""

    opener: int
    before: int


class _Open(NamedTuple):
    kind: str
    at: int
    #: How far the line that the bracket is on is indented, in characters; `_UNKNOWN` if that tells nothing.
    indent: int


_UNKNOWN = -1


def unclosed(tokens: Tokens) -> int:
    """How many brackets are opened and not closed."""
    found, open_ = 0, list[str]()
    for kind in tokens.kinds:
        if kind in CLOSERS:
            open_.append(kind)
        elif kind in _OPENERS and _OPENERS[kind] in open_:
            while open_.pop() != _OPENERS[kind]:
                found += 1
    return found + len(open_)


def suspects(tokens: Tokens) -> Iterator[Unclosed]:
    """The brackets that seem not to be closed where they should be, in the order in which that shows."""
    open_: list[_Open] = []
    indent = 0
    for i, kind in enumerate(tokens.kinds):
        begins_line = i == 0 or tokens.kinds[i - 1] == "NL"
        if begins_line:
            indent = _column(tokens, i)
        if kind in CLOSERS:
            if begins_line:
                yield from _left(tokens, open_, i, indent)
            open_.append(_Open(kind, i, indent))
        elif kind in _OPENERS:
            yield from _closing(open_, i, indent if begins_line else None, _OPENERS[kind])
        elif begins_line and kind not in ("NL", "$END"):
            yield from _left(tokens, open_, i, indent)


def innermost(tokens: Tokens, at: int, closer: str) -> int | None:
    """The innermost bracket that is open at token ``at``, if it is one that ``closer`` closes."""
    open_: list[int] = []
    for i, start in enumerate(tokens.starts[:at]):
        kind = tokens.source[start : tokens.ends[i]]
        if kind in CLOSERS:
            open_.append(i)
        elif kind in _OPENERS:
            while open_ and _kind(tokens, open_.pop()) != _OPENERS[kind]:
                pass
    return open_[-1] if open_ and CLOSERS[_kind(tokens, open_[-1])] == closer else None


def _kind(tokens: Tokens, i: int) -> str:
    return tokens.source[tokens.starts[i] : tokens.ends[i]]


def closed(tokens: Tokens, found: Unclosed) -> Tokens:
    """The tokens with the bracket closed there; the closer takes no room in the source."""
    at = found.before
    while tokens.kinds[at - 1] == "NL":
        at -= 1
    mended = tokens.copy()
    closer, offset = CLOSERS[tokens.kinds[found.opener]], tokens.ends[at - 1]
    mended.insert(at, closer, closer, offset)
    return mended


def _left(tokens: Tokens, open_: list[_Open], i: int, indent: int) -> Iterator[Unclosed]:
    """The innermost bracket, if a line that begins with token ``i`` is not inside it."""
    while open_ and indent <= open_[-1].indent:
        innermost = open_[-1]
        if _shows_nothing(tokens, innermost, i):
            open_[-1] = innermost._replace(indent=_UNKNOWN)
            return
        open_.pop()
        yield Unclosed(innermost.at, i)


def _shows_nothing(tokens: Tokens, bracket: _Open, i: int) -> bool:
    """Whether token ``i`` is the first one inside, not indented as it should be."""
    return bracket.at == i - 2 and tokens.kinds[i] not in _DECLARES


def _closing(open_: list[_Open], i: int, indent: int | None, opener: str) -> Iterator[Unclosed]:
    """Close the bracket that token ``i`` belongs to, by its indentation if it begins a line."""
    partners = [n for n, each in enumerate(open_) if each.kind == opener]
    if not partners:
        return
    same = [n for n in partners if open_[n].indent == indent]
    partner = same[-1] if same and open_[-1].indent != indent else partners[-1]
    yield from (Unclosed(each.at, i) for each in reversed(open_[partner + 1 :]))
    del open_[partner:]


def _column(tokens: Tokens, i: int) -> int:
    return tokens.starts[i] - tokens.source.rfind("\n", 0, tokens.starts[i]) - 1
