"""CSV against Python's `csv`, and back from what was written."""

from __future__ import annotations

import csv
import io
from contextvars import copy_context

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.faults import LOOK
from harnpy.formats.csv import CsvError, by_header, delimiter_from, read_rows, written_rows
from tests.counts import COUNT

DELIMITERS = st.sampled_from(",;\t|^ x")
TEXTS = st.text(st.sampled_from('",;\t|^ xé日\r\n'), max_size=24)
CELLS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('",;\t|^ x\r\n\ufeff'), max_size=6)


@settings(max_examples=COUNT.examples(20), deadline=None)
@given(TEXTS, DELIMITERS)
def test_reads_what_pythons_csv_reads_or_both_refuse(text: str, delimiter: str) -> None:
    judge = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        expected = [row for row in judge if row]
    except csv.Error:
        with pytest.raises(CsvError):
            list(read_rows(text, delimiter))
    else:
        assert list(read_rows(text, delimiter)) == expected


@settings(max_examples=COUNT.examples(20), deadline=None)
@given(st.integers(1, 4).flatmap(lambda n: st.lists(st.lists(CELLS, min_size=n, max_size=n))), DELIMITERS)
def test_what_is_written_reads_back(rows: list[list[str]], delimiter: str) -> None:
    text = "".join(written_rows(rows, delimiter))
    assert list(read_rows(text, delimiter)) == rows
    buffer = io.StringIO(newline="")
    csv.writer(buffer, delimiter=delimiter, lineterminator="\r\n").writerows(rows)
    assert list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)) == rows
    assert list(read_rows("\ufeff" + buffer.getvalue(), delimiter)) == rows


def test_a_cell_may_be_as_long_as_the_text() -> None:
    long = "a" * 300_000
    assert list(read_rows(f'"{long}""",{long}', ",")) == [[long + '"', long]]


def test_there_is_a_look_at_every_cell_before_it_is_read() -> None:
    left = 3

    def look(items: int) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise TimeoutError

    def read() -> None:
        LOOK.set(look)
        rows = read_rows("a,b\nc,d\n", ",")
        assert next(rows) == ["a", "b"]
        with pytest.raises(TimeoutError):
            next(rows)

    copy_context().run(read)


def test_rows_by_header_have_its_names() -> None:
    assert list(by_header([["a", "b"], ["1"], ["1", "2", "3"], []])) == [
        {"a": "1", "b": ""},
        {"a": "1", "b": "2"},
        {"a": "", "b": ""},
    ]
    assert list(by_header([])) == []


@pytest.mark.parametrize("text", ["", "é", '"', "\n", "\r"])
def test_what_is_no_delimiter(text: str) -> None:
    with pytest.raises(CsvError, match="delimiter must begin with an ASCII character"):
        delimiter_from(text)
