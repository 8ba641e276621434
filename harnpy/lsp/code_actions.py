"""What can be done about a finding, and to a whole document. Spec: 12 §3.5."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

from lsprotocol import types as lsp

from harnpy.check.allow import SPECIFIED, silenced
from harnpy.check.lint.fixing import apply, fix_all
from harnpy.checking import CheckedFile
from harnpy.lsp.diagnostics import findings, of_finding, syntax_errors
from harnpy.lsp.document import Document
from harnpy.lsp.formatting import chosen, hunks
from harnpy.lsp.imports import import_edit, modules_offering
from harnpy.lsp.linting import Linter, question
from harnpy.lsp.names import word_at
from harnpy.lsp.workspace import Workspace
from harnpy.syntax import ast
from harnpy.syntax.diagnostic import Edit, Fix, SyntaxFault
from harnpy.syntax.lexer import LexError, lex
from harnpy.syntax.mending import MISSING, missing
from harnpy.syntax.parser import parse

if TYPE_CHECKING:
    from harnpy.check.edits import Piece
    from harnpy.check.findings import Finding

FIX_ALL = f"{lsp.CodeActionKind.SourceFixAll.value}.harn"
ORGANIZE_IMPORTS = f"{lsp.CodeActionKind.SourceOrganizeImports.value}.harn"
KINDS = [lsp.CodeActionKind.QuickFix, FIX_ALL, ORGANIZE_IMPORTS]

#: Findings about a name that nothing declares.
_UNDEFINED = frozenset(["undefined-call", "undefined-name", "undefined-function", "unknown-struct"])
#: The longest text that a title shows, in characters.
_SHORT = 40
#: So many modules are offered for a name.
_MODULES = 8


def code_actions(
    workspace: Workspace, document: Document, params: lsp.CodeActionParams
) -> list[lsp.CodeAction]:
    """Return what can be done in a range; actions on the whole document only where they are asked for."""
    only = params.context.only
    found: list[lsp.CodeAction] = []
    if only is None or _wanted(lsp.CodeActionKind.QuickFix.value, only):
        found += _quick_fixes(workspace, document, params.range)
    if only is not None and _wanted(FIX_ALL, only):
        found += _fix_all(workspace, document)
    if only is not None and _wanted(ORGANIZE_IMPORTS, only):
        found += _organize(workspace, document)
    return found


def _wanted(kind: str, only: Iterable[lsp.CodeActionKind | str]) -> bool:
    """Return whether a kind, or one that it belongs to, is asked for."""
    asked = (one.value if isinstance(one, lsp.CodeActionKind) else one for one in only)
    return any(not one or kind == one or kind.startswith(f"{one}.") for one in asked)


def _action(
    document: Document,
    title: str,
    edits: Sequence[Edit],
    *,
    kind: str = lsp.CodeActionKind.QuickFix.value,
    of: lsp.Diagnostic | None = None,
    preferred: bool = False,
) -> lsp.CodeAction:
    changes = [lsp.TextEdit(document.text.range(edit.start, edit.end), edit.text) for edit in edits]
    return lsp.CodeAction(
        title,
        kind=kind,
        diagnostics=None if of is None else [of],
        is_preferred=preferred or None,
        edit=lsp.WorkspaceEdit({document.uri: changes}),
    )


# What mends one finding.


def _quick_fixes(workspace: Workspace, document: Document, range: lsp.Range) -> Iterator[lsp.CodeAction]:
    start, end = document.text.span(range)
    for piece in document.checked.draft.broken:
        if piece.start <= end and start <= piece.end:
            yield from _repairs(document, piece, start, end)
    silencing = []
    for finding in findings(document):
        if finding.start <= end and start <= finding.end:
            shown = of_finding(workspace, document, finding)
            yield from _fixes(document, finding, shown)
            yield from _imports(workspace, document, finding, shown)
            edit = allowing(document, finding)
            if edit is not None:
                title = f"Allow `{finding.code}` here"
                silencing.append(_action(document, title, [edit], of=shown))
    yield from silencing


def _fixes(document: Document, finding: Finding, shown: lsp.Diagnostic) -> Iterator[lsp.CodeAction]:
    if finding.fix is not None:
        title = _title(document.source, finding.fix) or f"Fix `{finding.code}`"
        yield _action(document, title, finding.fix.edits, of=shown, preferred=finding.fix.safe)


def _title(source: str, fix: Fix) -> str | None:
    """Return what a fix of one short edit does."""
    if len(fix.edits) != 1:
        return None
    edit = fix.edits[0]
    old, new = source[edit.start : edit.end].strip(), edit.text.strip()
    if "\n" in old + new or len(old) > _SHORT or len(new) > _SHORT or not old + new:
        return None
    if not old:
        return f"Insert `{new}`"
    return f"Write `{new}` instead of `{old}`" if new else f"Remove `{old}`"


def _imports(
    workspace: Workspace, document: Document, finding: Finding, shown: lsp.Diagnostic
) -> Iterator[lsp.CodeAction]:
    """Yield the imports that bring a name which is missing."""
    word = word_at(document.source, finding.start) if finding.code in _UNDEFINED else None
    if word is None:
        return
    name = document.source[slice(*word)]
    for number, path in enumerate(modules_offering(workspace, document, name)):
        if number == _MODULES:
            return
        edit = import_edit(document, path, name)
        yield _action(document, f'Import `{name}` from "{path}"', [edit], of=shown)


# `// harnpy: allow CODE`, at the end of the line or, where that is in a string, above it.


def allowing(document: Document, finding: Finding) -> Edit | None:
    """Return the edit that silences a finding where it stands; None if it can't be silenced."""
    if finding.severity == "error" and finding.code in SPECIFIED:
        return None
    text = document.text
    piece = next(one for one in document.checked.draft.pieces if finding.start <= one.end)
    line = text.line(finding.start)
    start, end = text.line_start(line), text.line_end(line)
    written = text.source[start:end]
    code = finding.code
    edits = []
    at = re.search(r"//\s*harnpy:\s*allow\b", written)
    if at is not None:
        edits.append(Edit(start + at.end(), start + at.end(), f" {code}"))
    last = start + len(written.rstrip())
    edits.append(Edit(last, end, f"  // harnpy: allow {code}"))
    indent = written[: len(written) - len(written.lstrip())]
    edits.append(Edit(start, start, f"{indent}// harnpy: allow {code}\n"))
    return next((edit for edit in edits if _silences(piece, edit, finding)), None)


def _silences(piece: Piece, edit: Edit, finding: Finding) -> bool:
    """Return whether an edit changes nothing but that a finding is silent."""
    by = -piece.start
    own = Edit(edit.start + by, edit.end + by, edit.text)
    after = apply(piece.text, [Fix([own])])
    moved = by + (len(edit.text) if edit.end <= finding.start else 0)
    if not _same(piece.text, after):
        return False
    left = silenced(after, [finding.shifted(moved, lambda offset: offset)])
    return not any(one.code == finding.code for one in left)


def _same(before: str, after: str) -> bool:
    """Return whether two texts have the same tokens."""
    try:
        one, other = (lex(text, 0, len(text)) for text in (before, after))
    except LexError:
        return False
    kept = [
        [pair for pair in zip(each.kinds, each.values, strict=True) if pair[0] != "NL"]
        for each in (one, other)
    ]
    return kept[0] == kept[1]


# Syntax errors: the edit, if there is one of a few, after which there is less to say.


#: What other languages write, and what it is here; each is tried before and at the place of an error.
_ELSEWHERE = {
    **dict.fromkeys(["elif", "elseif", "elsif"], "else if"),
    **dict.fromkeys(["def", "function", "func", "fun", "sub"], "fn"),
    **dict.fromkeys(["const", "val"], "let"),
    "mut": "var",
    **dict.fromkeys(["except", "rescue"], "catch"),
    "raise": "throw",
    **dict.fromkeys(["switch", "case"], "match"),
    **dict.fromkeys(["export", "public"], "pub"),
    "and": "&&",
    "or": "||",
    "is": "==",
    "mod": "%",
    "not": "!",
    "of": "in",
    "then": "",
    "async": "",
    "new": "",
    "const ": "let ",
    "===": "==",
    "!==": "!=",
    "<>": "!=",
    ":=": "=",
    "=>": "->",
    "?:": "??",
    "|": "||",
    "&": "&&",
    "=": "==",
    ":": "->",
    "++": " += 1",
    "--": " -= 1",
    "#": "//",
    **dict.fromkeys("“”„‟«»", '"'),
    **dict.fromkeys("–—−", "-"),
    **dict.fromkeys("\xa0\u2007\u202f\u3000", " "),
    **dict.fromkeys("\u200b\u2060\ufeff\u200e\u200f;", ""),
    "×": "*",
    "÷": "/",
    "≠": "!=",
    "≤": "<=",
    "≥": ">=",
    "→": "->",
    "…": "...",
}
_TOKEN = re.compile(r"\w+|[^\w\s\"(){}\[\]]+|\S")
_QUOTED = re.compile(r"'([^'\"\n\\$]*)'")


def _repairs(document: Document, piece: Piece, start: int, end: int) -> Iterator[lsp.CodeAction]:
    for shown, fault in zip(syntax_errors_of(document, piece), piece.faults, strict=True):
        if fault.span is None:
            continue
        # An error is often told at the token behind the one to blame.
        before = len(piece.text[: fault.span.start].rstrip()) + piece.start
        lines = document.text.line(before), document.text.line(piece.start + fault.span.end)
        if lines[0] <= document.text.line(end) and document.text.line(start) <= lines[1]:
            seen: set[str] = set()
            for edit in _tried(piece.text, fault.span.start):
                own = Edit(edit.start + piece.start, edit.end + piece.start, edit.text)
                title = _title(document.source, Fix([own])) or "Mend this"
                if title not in seen and _is_better(piece, apply(piece.text, [Fix([edit])])):
                    seen.add(title)
                    yield _action(document, title, [own], of=shown)


def syntax_errors_of(document: Document, piece: Piece) -> list[lsp.Diagnostic]:
    """Return the errors of one piece, as they are shown."""
    first, last = document.text.position(piece.start), document.text.position(piece.end)
    return [one for one in syntax_errors(document) if first <= one.range.start <= last][: len(piece.faults)]


def _tried(text: str, at: int) -> Iterator[Edit]:
    """Yield edits at the place of an error that may be what was meant, the likeliest first."""
    tokens = list(_TOKEN.finditer(text))
    index = next((i for i, token in enumerate(tokens) if token.end() > at), len(tokens))
    for token in tokens[max(index - 2, 0) : index + 1]:
        word = token[0]
        for written, here in _ELSEWHERE.items():
            place = word.find(written) if not written[0].isalnum() else 0 if word == written else -1
            if place >= 0:
                begin = token.start() + place
                finish = begin + len(written)
                # `not x` is `!x`, and what is left out takes a blank with it.
                blank = here in ("", "!") and text[finish : finish + 1] == " "
                yield Edit(begin, finish + blank, here)
    line = text.rfind("\n", 0, at) + 1
    for quoted in _QUOTED.finditer(text, line):
        if quoted.start() <= at <= quoted.end():
            yield Edit(quoted.start(), quoted.end(), f'"{quoted[1]}"')
    for offset, lacking in missing(text):
        brackets = [word for word in lacking if word != "\n"]
        if brackets and MISSING not in brackets:
            # The brace that closes a block has a line of its own.
            put = "".join(f"\n{word}" if word == "}" else word for word in brackets)
            place = len(text[:offset].rstrip())
            yield Edit(place, place, put)
    line_end = text.find("\n", at)
    yield Edit(line_end, line_end, '"') if line_end >= 0 else Edit(len(text), len(text), '"')


def _is_better(piece: Piece, text: str) -> bool:
    """Return whether a text parses, or has fewer errors than the piece, and the first of them no sooner."""
    try:
        parse(text)
    except SyntaxFault as fault:
        before, after = piece.faults[0].span, fault.diagnostics[0].span
        if before is None or after is None:
            return False
        return len(fault.diagnostics) < len(piece.faults) and after.start >= before.start
    return True


# The whole document.


def _fix_all(workspace: Workspace, document: Document) -> Iterator[lsp.CodeAction]:
    """What `harnpy lint --fix` does."""
    if document.checked.draft.broken:
        return
    linter, asked = Linter(), question(workspace, document)
    bring = workspace.bring(document)

    def look(source: str) -> list[Finding]:
        checked = CheckedFile(document.knowledge)
        checked.edit(source, bring)
        nodes = [(item.node, item.moved) for item in checked.draft.items]
        found = linter.findings(asked._replace(source=source, readable=source, nodes=nodes))
        return [*found, *checked.findings()]

    mended, count = fix_all(document.source, look)
    if count:
        title = f"Apply {count} fix{'es' * (count > 1)}"
        yield _action(document, title, hunks(document.source, mended), kind=FIX_ALL)


def _organize(workspace: Workspace, document: Document) -> Iterator[lsp.CodeAction]:
    """The leading imports as the formatter writes them."""
    leading = list(takewhile(lambda item: isinstance(item.node, ast.Import), document.items))
    if not leading or document.checked.draft.broken:
        return
    behind = document.text.line_start(document.text.line(leading[-1].end) + 1)
    edits = chosen(workspace, document, document.source[:behind], 0, behind)
    if edits:
        yield _action(document, "Organize imports", edits, kind=ORGANIZE_IMPORTS)
