"""Which token of the printed text is which token of the source. Spec: 01 §12.

The two differ in little: separators, parentheses, quotes around keys, how a type is spelled. Where they do, a
short look ahead finds where they go on alike.
"""

from __future__ import annotations

from collections.abc import Sequence

from harnpy.syntax.lexer import Tokens

#: How far to look ahead for the next common token, in tokens of both texts together.
_REACH = 16


def aligned(source: Tokens, numbers: Sequence[int], printed: Tokens) -> dict[int, int]:
    """For tokens ``numbers`` of the source, the number of the same one in the printed text, if any."""
    mine = [number for number in numbers if source.kinds[number] != "NL"]
    theirs = [number for number, kind in enumerate(printed.kinds) if kind not in ("NL", "$END")]
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
    """How many tokens to skip on either side."""
    for reach in range(1, _REACH):
        for first in range(reach + 1):
            if left[i + first : i + first + 1] == right[j + reach - first : j + reach - first + 1] != []:
                return first, reach - first
    return None
