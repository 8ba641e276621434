"""Which token of the printed text is which token of the source. Spec: 01 §12.

The two differ in little: separators, parentheses, quotes around keys, how a type is spelled. Where they do, a
short look ahead finds where they go on alike.
"""

from __future__ import annotations

from collections.abc import Sequence

from harnpy.syntax.lexer import Tokens
from harnpy.syntax.written import CLOSERS, Written, matched

#: Tokens that a text has or has not without being another.
SEPARATORS = frozenset(["NL", ",", ";", "$END"])
_PASSED = SEPARATORS.union(CLOSERS)
#: How many tokens in common to look for, and how far ahead, in tokens of both texts together.
_REACHES = ((3, 4), (2, 7), (1, 16))


def aligned(source: Written, numbers: Sequence[int], printed: Tokens) -> dict[int, int]:
    """For tokens ``numbers`` of the source, the number of the same one in the printed text, if any."""
    pairs = _alike(source.tokens, numbers, printed)
    # Brackets close where they open.
    closing = matched(printed)
    for opening in [number for number in pairs if number in source.closing]:
        mate = closing.get(pairs[opening])
        if mate is not None:
            pairs[source.closing[opening]] = mate
    return pairs


def _alike(source: Tokens, numbers: Sequence[int], printed: Tokens) -> dict[int, int]:
    """The same without closing brackets."""
    mine = [number for number in numbers if source.kinds[number] not in _PASSED]
    theirs = [number for number, kind in enumerate(printed.kinds) if kind not in _PASSED]
    left = [_word(source, number) for number in mine]
    right = [_word(printed, number) for number in theirs]
    pairs: dict[int, int] = {}
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] != right[j]:
            skip = _next_common(left, i, right, j)
            if skip is None:
                i, j = i + 1, j + 1
                continue
            i, j = i + skip[0], j + skip[1]
        pairs[mine[i]] = theirs[j]
        i, j = i + 1, j + 1
    return pairs


def _word(tokens: Tokens, number: int) -> str:
    value = tokens.values[number]
    return value if isinstance(value, str) else tokens.kinds[number]


def _next_common(left: Sequence[str], i: int, right: Sequence[str], j: int) -> tuple[int, int] | None:
    """How many tokens to skip on either side: few for the sake of several in common, more for one."""
    for alike, reach in _REACHES:
        for skipped in range(1, reach):
            for first in range(skipped + 1):
                mine, other = i + first, j + skipped - first
                if left[mine : mine + alike] == right[other : other + alike] != []:
                    return first, skipped - first
    return None
