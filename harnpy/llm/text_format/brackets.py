"""Where a bracket is closed, skipping strings, comments and heredocs. Spec: 07 §6.6."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harnpy.llm.text_format.written_literals import STRINGS

if TYPE_CHECKING:
    from harnpy.llm.text_format.heredocs import Heredocs

_MARK = re.compile(r"""["'`(){}\[\]]|//|/\*|<<""")

#: Characters of fruitless look-ahead that even a short text is allowed.
_PATIENCE = 100_000


class Brackets:
    """The brackets of one text.

    Well-formed text needs one look-ahead. Text that needs many fruitless ones is hostile or broken beyond
    repair: when ``patience`` is used up no bracket counts as closed, which keeps the whole linear.
    """

    def __init__(self, text: str, heredocs: Heredocs) -> None:
        self.text = text
        self.heredocs = heredocs
        self.patience = 4 * len(text) + _PATIENCE

    def closing(self, opening: int) -> int | None:
        """The position behind the bracket that closes the one at ``opening``."""
        text, stop = self.text, min(len(self.text), opening + self.patience)
        depth, at = 0, opening
        while mark := _MARK.search(text, at, stop):
            sign = mark[0]
            if sign in "([{":
                depth, after = depth + 1, mark.end()
            elif sign in ")]}":
                depth, after = depth - 1, mark.end()
                if depth == 0:
                    self.patience -= after - opening
                    return after
            else:
                after = self._behind(sign, mark.start(), stop)
            if after < 0:
                break
            at = after
        self.patience = max(0, self.patience - (stop - opening))
        return None

    def _behind(self, sign: str, at: int, stop: int) -> int:
        """The position behind what begins with ``sign``, -1 when it isn't closed."""
        if sign == "//":
            line_break = self.text.find("\n", at, stop)
            return stop if line_break < 0 else line_break
        if sign == "/*":
            close = self.text.find("*/", at + 2, stop)
            return -1 if close < 0 else close + 2
        if sign == "<<":
            return self.heredocs.end(at) or at + 2
        string = STRINGS[sign].match(self.text, at, stop)
        return -1 if string is None else string.end()
