"""Cuts a template into literal text and directives; trims white space where `-` says so. Spec: 04 §23.2."""

from __future__ import annotations

import re

from harnpy.text.templates.errors import TemplateError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ENDRAW = re.compile(r"\{\{-?\s*endraw\s*(-?)\}\}")
_PLAIN = re.compile(r"[^\"'}]*")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'', re.DOTALL)


class Segment:
    """Literal text, or the trimmed inside of a directive; ``at`` is the line and column it begins at."""

    __slots__ = ("at", "is_directive", "text")

    def __init__(self, text: str, at: tuple[int, int], is_directive: bool) -> None:
        self.text = text
        self.at = at
        self.is_directive = is_directive


def segments(source: str) -> Iterator[Segment]:
    """Yield the template's pieces in order, without comments. Raises `TemplateError`."""
    locate = _locator(source)
    at, trims_next = 0, False
    while True:
        start = source.find("{{", at)
        trims = start >= 0 and source.startswith("-", start + 2)
        text = _trimmed(source[at : start if start >= 0 else len(source)], trims_next, trims)
        if text:
            yield Segment(text, locate(at), False)
        if start < 0:
            return
        here, inside = locate(start), start + 2 + trims
        if source.startswith("#", inside):
            at, trims_next = _found(source.find("#}}", inside), "unterminated comment", here) + 3, False
            continue
        end = _found(_end(source, inside), "unterminated directive", here)
        body, at = source[inside:end], end + 2
        trims_next = body.endswith("-")
        body = body.removesuffix("-").strip()
        if body == "raw":
            closing = _ENDRAW.search(source, at)
            if closing is None:
                raise TemplateError("unterminated `{{ raw }}` block", here)
            if at < closing.start():
                yield Segment(source[at : closing.start()], locate(at), False)
            at, trims_next = closing.end(), bool(closing[1])
        else:
            yield Segment(body, here, True)


def _locator(source: str) -> Callable[[int], tuple[int, int]]:
    """Return a function from offset to line and column; offsets must not decrease."""
    line, line_start, at = 1, 0, 0

    def locate(offset: int) -> tuple[int, int]:
        nonlocal line, line_start, at
        line += source.count("\n", at, offset)
        line_start = max(line_start, source.rfind("\n", at, offset) + 1)
        at = offset
        return line, offset - line_start + 1

    return locate


def _found(at: int, otherwise: str, here: tuple[int, int]) -> int:
    if at < 0:
        raise TemplateError(otherwise, here)
    return at


def _trimmed(text: str, front: bool, back: bool) -> str:
    """Return the text without the blanks at an end and the newline next to them, where asked."""
    if front:
        text = text.lstrip(" \t")
        text = text.removeprefix("\n") if text.startswith("\n") else text.removeprefix("\r\n")
    if back:
        text = text.rstrip(" \t")
        if text.endswith("\n"):
            text = text[:-1].removesuffix("\r")
    return text


def _end(source: str, at: int) -> int:
    """Return where the first `}}` outside quotes begins, -1 if there is none."""
    while True:
        plain = _PLAIN.match(source, at)
        at = plain.end() if plain else at
        if source.startswith("}}", at):
            return at
        if at == len(source):
            return -1
        if source[at] == "}":
            at += 1
            continue
        string = _STRING.match(source, at)
        if string is None:
            return -1
        at = string.end()
