"""Lines and positions as the protocol counts them. Spec: 12 §1.2."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol.types import Position, PositionEncodingKind, Range

from harnpy.lsp.text import Text
from tests.counts import COUNT

_ENCODINGS = [PositionEncodingKind.Utf8, PositionEncodingKind.Utf16, PositionEncodingKind.Utf32]
_ODD = [
    "\r\n",
    "\r",
    "\n",
    "\f",
    "\v",
    "\x1c",
    "\x85",
    "\u2028",
    "\u2029",
    "é",
    "漢",
    "😀",
    "\ud83d",
    "\ude00",
]
texts = st.lists(st.one_of(st.sampled_from(_ODD), st.text(max_size=4))).map("".join)
encodings = st.sampled_from(_ENCODINGS)
positions = st.builds(Position, st.integers(0, 12), st.integers(0, 40))


@pytest.mark.parametrize(
    ("encoding", "characters"),
    [
        (PositionEncodingKind.Utf8, (0, 1, 3, 6, 10, 11)),
        (PositionEncodingKind.Utf16, (0, 1, 2, 3, 5, 6)),
        (PositionEncodingKind.Utf32, (0, 1, 2, 3, 4, 5)),
    ],
)
def test_characters_are_units_of_the_encoding(
    encoding: PositionEncodingKind, characters: tuple[int, ...]
) -> None:
    text = Text("x\naé漢😀b", encoding)
    for offset, character in enumerate(characters):
        assert text.position(2 + offset) == Position(1, character)
        assert text.offset(Position(1, character)) == 2 + offset


@pytest.mark.parametrize("encoding", [PositionEncodingKind.Utf8, PositionEncodingKind.Utf16])
def test_the_middle_of_a_character_is_its_beginning(encoding: PositionEncodingKind) -> None:
    assert Text("a😀b", encoding).offset(Position(0, 2)) == 1


@pytest.mark.parametrize("encoding", _ENCODINGS)
def test_lines_end_with_three_things(encoding: PositionEncodingKind) -> None:
    text = Text("a\fb\u2028c\u2029\v\x1c\x85\r\nd\re\n\rf", encoding)
    assert [text.line_start(line) for line in range(text.lines)] == [0, 11, 13, 15, 16]
    assert [text.line_end(line) for line in range(text.lines)] == [9, 12, 14, 15, 17]


@pytest.mark.parametrize("encoding", _ENCODINGS)
def test_behind_the_end(encoding: PositionEncodingKind) -> None:
    text = Text("ab\r\ncé\n", encoding)
    assert text.offset(Position(0, 99)) == 2
    assert text.offset(Position(1, 99)) == 6
    assert text.offset(Position(2, 99)) == text.offset(Position(9, 0)) == 7
    assert text.position(99) == Position(2, 0)
    # Between \r and \n is no place: it is the end of the line.
    assert text.position(3) == text.position(2) == Position(0, 2)


@settings(max_examples=COUNT.examples(100), deadline=None)
@given(texts, encodings)
def test_an_offset_has_one_position(source: str, encoding: PositionEncodingKind) -> None:
    text = Text(source, encoding)
    for offset in range(len(source) + 1):
        if source[offset - 1 : offset + 1] != "\r\n" or not offset:
            assert text.offset(text.position(offset)) == offset


@settings(max_examples=COUNT.examples(100), deadline=None)
@given(texts, encodings, positions)
def test_a_position_is_where_it_is_by_counting(
    source: str, encoding: PositionEncodingKind, position: Position
) -> None:
    assert Text(source, encoding).offset(position) == counted(source, encoding, position)


@settings(max_examples=COUNT.examples(100), deadline=None)
@given(texts, encodings, st.lists(st.tuples(st.none() | st.tuples(positions, positions), texts), max_size=4))
def test_changes_are_splices(
    source: str,
    encoding: PositionEncodingKind,
    edits: list[tuple[tuple[Position, Position] | None, str]],
) -> None:
    changed = Text(source, encoding).changed([(place and Range(*place), new) for place, new in edits])
    for place, new in edits:
        if place is None:
            source = new
        else:
            start, end = (counted(source, encoding, position) for position in place)
            source = source[:start] + new + source[max(start, end) :]
    assert changed.source == source
    assert changed.lines == Text(source, encoding).lines


def counted(source: str, encoding: PositionEncodingKind, position: Position) -> int:
    """Return the offset of a position, by going through the text from its beginning."""
    breaks = [match.span() for match in re.finditer("\r\n|\r|\n", source)]
    if position.line > len(breaks):
        return len(source)
    at = breaks[position.line - 1][1] if position.line else 0
    end = breaks[position.line][0] if position.line < len(breaks) else len(source)
    left = position.character
    while at < end:
        codec = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}[encoding.value]
        units = len(source[at].encode(codec, "surrogatepass")) // {"utf-16": 2, "utf-32": 4}.get(
            encoding.value, 1
        )
        if left < units:
            break
        left -= units
        at += 1
    return at
