"""Programs that are cut off, or that a piece is missing from: only what is about that is new. Spec: 12 §2."""

from __future__ import annotations

import re
from collections import Counter
from random import Random

import pytest

from harnpy.lsp.diagnostics import diagnostics
from harnpy.lsp.document import Document
from harnpy.lsp.workspace import Workspace
from tests.counts import COUNT
from tests.lsp.conftest import Open
from tests.lsp.editing import pool
from tests.lsp.features import answers

_WORD = re.compile(r"[^\W\d]\w*")
#: A diagnostic by its code, its message and the text that it is about.
_Found = tuple[str, str, str]


@pytest.mark.parametrize("seed", COUNT.seeds(COUNT.cut_programs))
def test_what_is_said_is_about_what_is_missing(seed: int) -> None:
    random = Random(seed)
    path = random.choice(pool())
    try:
        source = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return
    whole = Workspace().open(path.as_uri(), source, 1)
    if whole.checked.draft.broken:
        return
    start = random.randint(0, len(source))
    end = len(source)
    if random.random() < 0.6:
        line = source.find("\n", start)
        end = random.choice([line if line >= 0 else end, min(end, start + random.randint(1, 60))])
    cut = source[:start] + source[end:]
    workspace = Workspace()
    document = workspace.open(path.as_uri(), cut, 1)
    about = words_at(source, start, end) | words_at(cut, start, start)
    for piece in document.checked.draft.broken:
        about |= set(_WORD.findall(piece.text))
        # The one with the cut, or what its rest has become.
        assert piece.end >= start, f"{path}: {start}-{end}"
    before, after = in_intact_pieces(whole, document, whole), in_intact_pieces(document, whole, document)
    for found in (after - before) + (before - after):
        assert about.intersection(_WORD.findall(f"{found[1]} {found[2]}")), f"{path}: {start}-{end}: {found}"
    for place in (start, random.randint(0, len(cut))):
        for _ in answers(workspace, document, place, place, random):
            pass


def words_at(source: str, start: int, end: int) -> set[str]:
    """Return the words that a stretch has a part of."""
    return {word[0] for word in _WORD.finditer(source) if word.start() <= end and word.end() >= start}


def in_intact_pieces(document: Document, one: Document, other: Document) -> Counter[_Found]:
    """Return what is said of the pieces that both documents have and that parse."""
    texts = {piece.text for piece in (one if one is not document else other).checked.draft.pieces}
    places = [
        (piece.start, piece.end)
        for piece in document.checked.draft.pieces
        if not piece.faults and piece.text in texts
    ]
    found: Counter[_Found] = Counter()
    for each in diagnostics(Workspace(), document):
        start, end = document.text.span(each.range)
        if any(first <= start < last for first, last in places):
            found[str(each.code), each.message, document.source[start:end]] += 1
    return found


def codes(here: Document) -> list[tuple[str, str]]:
    found = []
    for each in diagnostics(Workspace(), here):
        start, end = here.text.span(each.range)
        found.append((str(each.code), here.source[start:end]))
    return found


def test_a_name_that_a_broken_piece_mentions_may_be_declared_there(opened: Open) -> None:
    here = opened("fn one() { return two(1, three, four) }\n\nfn two(a, \n\nlet three\n")
    undeclared = [text for code, text in codes(here.document) if code.startswith("undefined")]
    assert undeclared == ["four"]


def test_a_signature_that_is_being_written_refuses_no_call(opened: Open) -> None:
    call = "\n\nfn main() { f(1) }\n"
    assert [code for code, _ in codes(opened(f"fn f(n: int, m: int) {{ return n }}{call}").document)] == [
        "argument-count"
    ]
    broken = codes(opened(f"fn f(n: int, m{call}").document)
    assert "argument-count" not in [code for code, _ in broken]
    # The body doesn't matter to a call.
    broken = codes(opened(f"fn f(n: int, m: int) {{ return n +{call}").document)
    assert "argument-count" in [code for code, _ in broken]


def test_a_type_that_is_being_written_refuses_nothing(opened: Open) -> None:
    use = "\n\nfn main() -> int { return Point({x: 1, y: 2}).y }\n"
    assert all(
        code not in ("unknown-property", "unknown-struct")
        for code, _ in codes(opened(f"struct Point {{ x: int, {use}").document)
    )


def test_a_string_that_is_being_written_leaves_what_a_comment_allows(opened: Open) -> None:
    allowed = "fn f() {\n  // harnpy: allow undefined-name -- later\n  return nothing\n}\n\n"
    found = codes(opened(f'{allowed}let a = "').document)
    assert [code for code, _ in found] == ["unterminated-string"]


@pytest.mark.parametrize(
    "text",
    [
        "for (a b) in [] {}",
        "for (a, b in [] {}",
        "pipeline p { a }",
        "pipeline p a) { a }",
        "override f { a }",
        "let {a b} = x",
        "let {a b, ...c} = x",
        "parallel each [1] a -> a }",
    ],
)
def test_names_are_read_where_a_mark_is_missing(text: str) -> None:
    """A mended tree has a place for a name that stands behind a mark which the text lacks."""
    workspace = Workspace()
    document = workspace.open("file:///project/main.harn", f"{text}\n", 1)
    for place in range(len(text)):
        for _ in answers(workspace, document, place, place, Random(0)):
            pass
