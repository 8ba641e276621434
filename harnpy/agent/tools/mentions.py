"""The tool names that a prompt mentions. Pure. Spec: 07 §4.7.

A mention is a name followed by a bracket, or the first one in a ``<tool_call>``. Code blocks and parts that
the author excluded don't count.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_CALLED = re.compile(r"\b([A-Za-z_]\w*)[ \t]*\(", re.ASCII)
_IN_BLOCK = re.compile(r"<tool_call>\s*([A-Za-z_]\w*)", re.ASCII)
_NO_TOOLS = frozenset(
    "if for while switch return function fn JSON print println contains len render render_prompt".split()
)

_START, _END = "harn-tool-surface: ignore-start", "harn-tool-surface: ignore-end"
_NEXT_LINE = "harn-tool-surface: ignore-next-line"
_THIS_LINE = ("harn-tool-surface: ignore-line", "tool-surface-ignore")


def mentions(text: str) -> list[str]:
    """Return the names, each once, in alphabetical order; ``text`` is the result of `read_part`."""
    called = {name for name in _CALLED.findall(text) if name not in _NO_TOOLS}
    return sorted(called.union(_IN_BLOCK.findall(text)))


def has_word(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def read_part(prompt: str) -> str:
    """Return the lines of a prompt that count."""
    return "\n".join(_lines(prompt))


def _lines(prompt: str) -> Iterator[str]:
    fenced = ignored = skip = False
    for line in prompt.split("\n"):
        if line.lstrip().startswith("```"):
            fenced, skip = not fenced, False
        elif fenced:
            continue
        elif _START in line or _END in line:
            ignored = _START in line
        elif not (ignored or skip or any(mark in line for mark in _THIS_LINE)):
            yield line
            skip = _NEXT_LINE in line
        else:
            skip = False
