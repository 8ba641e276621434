"""Formatting: what `harnpy fmt` writes, as few edits of lines. Spec: 12 §3.5, 01 §12.

A range, and what is formatted as one types, is a choice of the edits of the whole. The program that results
is the same, and its canonical form, too.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from lsprotocol import types as lsp

from harnpy.check.lint.fixing import apply
from harnpy.lsp.document import Document
from harnpy.lsp.workspace import Workspace
from harnpy.syntax.diagnostic import Edit, Fix, SourceFault
from harnpy.syntax.formatter import NotKept, Widths, format_source

if TYPE_CHECKING:
    from harnpy.check.edits import Piece

log = logging.getLogger("harnpy.lsp")

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
#: So many edits are tried one by one where all of them together change the program.
_TRIED = 8


def document_formatting(
    workspace: Workspace, document: Document, params: lsp.DocumentFormattingParams
) -> list[lsp.TextEdit]:
    """Return what makes the text canonical; nothing for one that doesn't parse, and the log says why."""
    after = canonical(workspace, document)
    return [] if after is None else _shown(document, 0, hunks(document.source, after))


def range_formatting(
    workspace: Workspace, document: Document, params: lsp.DocumentRangeFormattingParams
) -> list[lsp.TextEdit]:
    """Return the edits that lie in the lines of a range.

    Of a text that doesn't parse, the pieces that do are formatted, each by itself.
    """
    text = document.text
    start, end = text.span(params.range)
    first = text.line_start(text.line(start))
    last_line = text.line(end)
    # A selection of whole lines ends at the beginning of the next one.
    whole = end > start and end == text.line_start(last_line)
    last = end if whole else text.line_start(last_line + 1)
    if not document.checked.draft.broken:
        return _shown(document, 0, chosen(workspace, document, document.source, first, last))
    found = []
    for piece in document.checked.draft.pieces:
        if piece.start < last and first < piece.end and not piece.faults:
            found += _in_piece(workspace, document, piece, first, last)
    return found


def on_type_formatting(
    workspace: Workspace, document: Document, params: lsp.DocumentOnTypeFormattingParams
) -> list[lsp.TextEdit]:
    """Return what makes the block canonical that `}` closes, or the line that a line break ends."""
    text = document.text
    at = text.offset(params.position)
    pieces = document.checked.draft.pieces
    piece = next((one for one in reversed(pieces) if one.start < at or one is pieces[0]), None)
    if piece is None or piece.faults:
        return []
    line = text.line(at)
    if params.ch == "}":
        spot = document.spot(at - 1)
        blocks = [node for node in (spot.nodes if spot else ()) if document.span(node)[1] == at]
        if not blocks:
            return []
        first = text.line_start(text.line(document.span(blocks[0])[0]))
        return _in_piece(workspace, document, piece, first, text.line_start(line + 1))
    if line == 0:
        return []
    return _in_piece(workspace, document, piece, text.line_start(line - 1), text.line_start(line))


def canonical(workspace: Workspace, document: Document) -> str | None:
    """Return the canonical text of a document; None where there is none, and the log says why."""
    found = _formatted(workspace, document, document.source)
    if isinstance(found, str):
        return found
    log.warning("%s can't be formatted: %s", document.uri, found)
    return None


def _formatted(workspace: Workspace, document: Document, source: str) -> str | Exception:
    try:
        widths = Widths.of(workspace.manifests.table("fmt", document.path or "."))
    except ValueError as error:
        workspace.manifests.warn(str(error))
        widths = Widths()
    try:
        return format_source(source, **widths._asdict())
    except SourceFault as fault:
        return ValueError(fault.message)
    except NotKept as error:
        return error


def hunks(before: str, after: str) -> list[Edit]:
    """Return the edits of whole lines that make one text of another, in order.

    Lines that differ in their blanks alone are the same line, which is what makes the edits small.
    """
    old, new = _LINE.findall(before), _LINE.findall(after)
    room = min(len(old), len(new))
    same = next((i for i in range(room) if old[i] != new[i]), room)
    room -= same
    tail = next((i for i in range(room) if old[-1 - i] != new[-1 - i]), room)
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line))
    bodies = ["".join(line.split()) for line in old[same : len(old) - tail]]
    others = ["".join(line.split()) for line in new[same : len(new) - tail]]
    found: list[Edit] = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, bodies, others).get_opcodes():
        pairs = [(i1, i2, j1, j2)]
        if tag == "equal" or i2 - i1 == j2 - j1:
            pairs = [(i, i + 1, i + j1 - i1, i + j1 - i1 + 1) for i in range(i1, i2)]
        for a, b, c, d in pairs:
            text = "".join(new[same + c : same + d])
            start, end = starts[same + a], starts[same + b]
            if text == before[start:end]:
                continue
            if found and found[-1].start == start:
                # Clients disagree on the order of two edits at one place.
                text = found.pop().text + text
            found.append(Edit(start, end, text))
    return found


def chosen(workspace: Workspace, document: Document, source: str, first: int, last: int) -> list[Edit]:
    """Return the edits in ``source[first:last]``, whole lines, that leave its canonical form as it is."""
    after = _formatted(workspace, document, source)
    if isinstance(after, Exception):
        return []
    found = hunks(source, after)
    inside = [edit for edit in found if first <= edit.start and edit.end <= last]
    # What is put in at the end of the lines stands behind them, unless it is the end of the text.
    inside = [one for one in inside if not one.start == one.end == last or last == len(source)]
    if len(inside) == len(found) or _keeps(workspace, document, source, inside, after):
        return inside
    chosen: list[Edit] = []
    for edit in inside if len(inside) <= _TRIED else ():
        if _keeps(workspace, document, source, [*chosen, edit], after):
            chosen.append(edit)
    return chosen


def _keeps(workspace: Workspace, document: Document, source: str, edits: Sequence[Edit], after: str) -> bool:
    return not edits or _formatted(workspace, document, apply(source, [Fix(edits)])) == after


def _in_piece(
    workspace: Workspace, document: Document, piece: Piece, first: int, last: int
) -> list[lsp.TextEdit]:
    """The edits in one piece; what stands behind its last item belongs to the next one."""
    if not piece.items:
        return []
    text = document.text
    source = text.source[piece.start : text.line_start(text.line(piece.items[-1].end) + 1)]
    first, last = max(first - piece.start, 0), min(last - piece.start, len(source))
    return _shown(document, piece.start, chosen(workspace, document, source, first, last))


def _shown(document: Document, start: int, edits: Sequence[Edit]) -> list[lsp.TextEdit]:
    return [
        lsp.TextEdit(document.text.range(start + edit.start, start + edit.end), edit.text) for edit in edits
    ]
