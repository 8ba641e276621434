"""Marks up to which a service caches the prompt: ``cache_control`` of a message, a block or a tool. Pure.

A mark is passed on as it is to services that want marks, and to no others. Spec: 07 §1.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.faults import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable

    Block = dict[str, Any]

MARK = "cache_control"
#: What `cache: true` marks with.
EPHEMERAL = {MARK: {"type": "ephemeral"}}
#: The marks that Anthropic takes in one request.
_MOST = 4
_UNMARKABLE = ("thinking", "redacted_thinking")


def mark_of(given: Block) -> Block:
    """The mark of a message, block or tool, as keys of another one. Raises `OptionError`."""
    mark = given.get(MARK)
    if mark is None:
        return {}
    if not isinstance(mark, dict):
        raise OptionError(f'{MARK}: expected a dict {{type: "ephemeral", ttl?}}')
    return {MARK: mark}


def mark_last(blocks: list[Block], mark: Block = EPHEMERAL) -> None:
    """Put a mark on the last of some blocks that can have one."""
    for at in range(len(blocks) - 1, -1, -1):
        if blocks[at].get("type") not in _UNMARKABLE:
            blocks[at] = {**blocks[at], **mark}
            return


def without_mark(block: Block) -> Block:
    return {key: value for key, value in block.items() if key != MARK} if MARK in block else block


def keep_last_marks(parts: Iterable[list[Block]]) -> None:
    """Take away the marks that are too many for one request: the first ones."""
    marked = [(blocks, at) for blocks in parts for at, block in enumerate(blocks) if MARK in block]
    for blocks, at in marked[:-_MOST]:
        blocks[at] = without_mark(blocks[at])
