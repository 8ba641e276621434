"""zip archives against `zipfile`, both ways, and hostile ones."""

from __future__ import annotations

import io
import stat
import struct
import warnings
import zipfile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.formats.archives import Entry, zip_packed
from harnpy.formats.archives import zip_unpacked as entries_of
from harnpy.world.unpacking import DataError
from tests.counts import COUNT
from tests.formats.archive_entries import ENTRIES

MOST = 1 << 20


def packed(*entries: Entry) -> bytes:
    return zip_packed(entries)


def unpacked(data: bytes, most: int = MOST, skip_special: bool = False) -> list[tuple[str, bytes]]:
    return [(entry.path, entry.content) for entry in entries_of(data, most, skip_special)]


def written(*entries: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED, **fields: Any) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a name that is there twice
        for path, content in entries:
            info = zipfile.ZipInfo(path)
            info.compress_type = method
            for field, value in fields.items():
                setattr(info, field, value)
            archive.writestr(info, content)
    return buffer.getvalue()


@given(ENTRIES)
def test_there_and_back(entries: list[Entry]) -> None:
    data = packed(*entries)
    assert unpacked(data) == [entry[:2] for entry in entries]
    assert data == packed(*entries)


@given(ENTRIES)
def test_the_standard_library_reads_what_we_write(entries: list[Entry]) -> None:
    with zipfile.ZipFile(io.BytesIO(packed(*entries))) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == [entry.path for entry in entries]
        assert [archive.read(entry.path) for entry in entries] == [entry.content for entry in entries]
        assert {info.date_time for info in archive.infolist()} <= {(1980, 1, 1, 0, 0, 0)}


@given(ENTRIES, st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
def test_we_read_what_the_standard_library_writes(entries: list[Entry], method: int) -> None:
    pairs = [entry[:2] for entry in entries]
    assert unpacked(written(*pairs, method=method)) == pairs


def test_a_content_in_pieces_is_the_same() -> None:
    entry = Entry("a", bytes(range(256)) * 5000)
    assert unpacked(zip_packed([entry]), 2 * MOST) == [("a", entry.content)]


def test_a_path_may_have_no_more_bytes_than_the_format_counts() -> None:
    with pytest.raises(DataError, match="entry 0 path is too long"):
        zip_packed([Entry("a" * 70_000, b"")])


def test_directories_are_skipped() -> None:
    assert unpacked(written(("d/", b""), ("d/f", b"x"))) == [("d/f", b"x")]


def test_of_two_entries_with_one_name_both_are_there() -> None:
    assert unpacked(written(("a", b"1"), ("a", b"2"))) == [("a", b"1"), ("a", b"2")]


def test_links_are_refused_or_left_out() -> None:
    attributes = (stat.S_IFLNK | 0o777) << 16
    data = written(("link", b"/etc/passwd"), create_system=3, external_attr=attributes)
    with pytest.raises(DataError) as caught:
        unpacked(data)
    assert str(caught.value) == "entry 0 'link' is a symbolic link; pass {skip_special: true} to leave it out"
    assert unpacked(data, skip_special=True) == []
    assert unpacked(written(("f", b"x"), create_system=0, external_attr=attributes)) == [("f", b"x")]


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "a\\..\\..\\x", "C:\\x", "//h/x"])
def test_paths_that_lead_out(path: str) -> None:
    message = f"entry 0 path must lead to a file within the archive, got {path!r}"
    with pytest.raises(DataError) as caught:
        packed(Entry(path, b""))
    assert str(caught.value) == message
    with pytest.raises(DataError) as caught:
        unpacked(written((path, b"")))
    assert str(caught.value) == message


def test_a_nul_hides_no_end_of_a_path() -> None:
    data = written(("a.txtX.exe", b"")).replace(b"a.txtX", b"a.txt\0")
    with pytest.raises(DataError, match="entry 0 path contains a NUL"):
        unpacked(data)


def test_methods_and_passwords() -> None:
    with pytest.raises(DataError, match="entry 0 'a' is compressed by method 12, not deflate"):
        unpacked(written(("a", b"x"), method=zipfile.ZIP_BZIP2))
    data = bytearray(written(("a", b"x")))
    data[6] |= 1
    data[data.index(b"PK\1\2") + 8] |= 1
    with pytest.raises(DataError, match="entry 0 'a' is encrypted"):
        unpacked(bytes(data))


def test_a_bomb() -> None:
    data = written(("a", bytes(1 << 20)), ("b", b"1"))
    assert len(data) < 3000
    with pytest.raises(DataError, match=f"the data unpacks to more than max_bytes = {1 << 20}"):
        unpacked(data, 1 << 20)
    assert len(unpacked(data, (1 << 20) + 1)) == 2


def test_entries_that_share_their_data_count_each() -> None:
    """The central directory may name one piece of data many times over."""
    data = written(("a", bytes(1000)))
    at = data.index(b"PK\1\2")
    end = data.index(b"PK\5\6")
    directory = data[at:end] * 50
    record = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 50, 50, len(directory), at, 0)
    with pytest.raises(DataError, match="unpacks to more than max_bytes = 49999"):
        unpacked(data[:at] + directory + record, 49_999)


@pytest.mark.parametrize("size", [0, 10, 5000])
def test_a_size_that_lies(size: int) -> None:
    data = bytearray(written(("a", b"x" * 1000)))
    at = data.index(b"PK\1\2")
    data[at + 24 : at + 28] = size.to_bytes(4, "little")
    with pytest.raises(DataError, match="not a zip archive, or damaged"):
        unpacked(bytes(data))


def test_an_entry_beyond_all_numbers() -> None:
    """A zip64 entry may state any place of 64 bits."""
    data = written(("a", b"x"))
    at = data.index(b"PK\1\2")
    extra = struct.pack("<HHQQQ", 1, 24, 1, 1, 2**64 - 5)
    entry = bytearray(data[at : at + 46])
    entry[20:28], entry[42:46] = b"\xff" * 8, b"\xff" * 4
    entry[28:32] = struct.pack("<HH", 1, len(extra))
    directory = bytes(entry) + b"a" + extra
    record = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, len(directory), at, 0)
    with pytest.raises(DataError, match="not a zip archive, or damaged"):
        unpacked(data[:at] + directory + record)


TWO = packed(Entry("a", b"x" * 600), Entry("b", b"y"))


def test_cut_archives() -> None:
    for end in range(len(TWO)):
        with pytest.raises(DataError, match="not a zip archive, or damaged"):
            unpacked(TWO[:end])


def test_a_changed_bit_never_changes_a_content() -> None:
    for bit in range(8 * len(TWO)):
        data = bytearray(TWO)
        data[bit // 8] ^= 1 << bit % 8
        try:
            found = unpacked(bytes(data), skip_special=True)
        except DataError:
            continue
        assert {content for _, content in found} <= {b"x" * 600, b"y"}


@settings(max_examples=COUNT.examples(20))
@given(
    st.lists(st.tuples(st.integers(0, len(TWO) - 1), st.integers(0, 255)), max_size=8), st.binary(max_size=40)
)
def test_any_change_is_refused_or_read(changes: list[tuple[int, int]], start: bytes) -> None:
    for data in (bytearray(TWO), bytearray(start + TWO), bytearray(start + TWO[len(start) :])):
        for at, byte in changes:
            data[at] = byte
        try:
            for path, _ in unpacked(bytes(data), skip_special=True):
                assert ".." not in path.split("/")
        except DataError as error:
            assert str(error)  # noqa: PT017
