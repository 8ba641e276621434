"""tar archives against `tarfile`, both ways, and hostile ones."""

from __future__ import annotations

import io
import tarfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.formats import archives
from harnpy.formats.archives import Entry
from harnpy.world.unpacking import DataError
from tests.counts import COUNT
from tests.formats.archive_entries import ENTRIES

FORMATS = [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]


def packed(*entries: Entry) -> bytes:
    return b"".join(archives.tar_packed(entries))


def unpacked(data: bytes, skip_special: bool = False) -> list[Entry]:
    return list(archives.tar_unpacked(data, skip_special))


def member(
    name: str, type: bytes = tarfile.REGTYPE, content: bytes = b"", **fields: object
) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.size = type, len(content)
    for field, value in fields.items():
        setattr(info, field, value)
    return info


def written(*members: tuple[tarfile.TarInfo, bytes], format: int = tarfile.GNU_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=format) as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


@given(ENTRIES)
def test_there_and_back(entries: list[Entry]) -> None:
    data = packed(*entries)
    assert unpacked(data) == entries
    assert data == packed(*entries)
    assert len(data) >= archives.tar_size(entries)


@given(ENTRIES)
def test_the_standard_library_reads_what_we_write(entries: list[Entry]) -> None:
    with tarfile.open(fileobj=io.BytesIO(packed(*entries)), mode="r:") as archive:
        found = archive.getmembers()
        assert [(info.name, info.mode) for info in found] == [(path, mode) for path, _, mode in entries]
        assert [archive.extractfile(info).read() for info in found] == [entry.content for entry in entries]  # type: ignore[union-attr]
        assert {(info.mtime, info.uid, info.gid, info.uname) for info in found} <= {(0, 0, 0, "")}


@given(ENTRIES, st.sampled_from(FORMATS))
def test_we_read_what_the_standard_library_writes(entries: list[Entry], format: int) -> None:
    if format == tarfile.USTAR_FORMAT:
        entries = [entry for entry in entries if len(entry.path.encode()) <= 100]
    members = [
        (member(path, content=content, mode=mode, mtime=1.5), content) for path, content, mode in entries
    ]
    data = written(*members, format=format)
    assert unpacked(data) == entries


@pytest.mark.parametrize("format", FORMATS)
def test_long_names(format: int) -> None:
    path = f"{'d' * 90}/{'e' * 50}/{'f' * 90}"
    assert unpacked(written((member(path), b""), format=format)) == [Entry(path, b"")]


def test_directories_are_skipped() -> None:
    old = member("old/", tarfile.AREGTYPE)
    data = written((member("d", tarfile.DIRTYPE), b""), (old, b""), (member("d/f", content=b"x"), b"x"))
    assert unpacked(data) == [Entry("d/f", b"x")]


@pytest.mark.parametrize(
    ("type", "what"),
    [
        (tarfile.LNKTYPE, "a hard link"),
        (tarfile.SYMTYPE, "a symbolic link"),
        (tarfile.CHRTYPE, "a device"),
        (tarfile.BLKTYPE, "a device"),
        (tarfile.FIFOTYPE, "a named pipe"),
        (tarfile.GNUTYPE_SPARSE, "a sparse file"),
        (b"Z", "of the type b'Z'"),
    ],
)
def test_what_is_no_file_is_refused_or_left_out(type: bytes, what: str) -> None:
    link = member("link", type, linkname="/etc/passwd" if type != tarfile.GNUTYPE_SPARSE else "")
    data = link.tobuf(tarfile.USTAR_FORMAT) + packed(Entry("f", b"x"))
    with pytest.raises(DataError) as caught:
        unpacked(data)
    assert str(caught.value) == f"entry 0 'link' is {what}; pass {{skip_special: true}} to leave it out"
    assert unpacked(data, skip_special=True) == [Entry("f", b"x")]


def test_a_pax_sparse_file_is_refused() -> None:
    info = member(
        "sparse", content=b"12", pax_headers={"GNU.sparse.major": "1", "GNU.sparse.realsize": "9" * 12}
    )
    with pytest.raises(DataError, match="'sparse' is a sparse file"):
        unpacked(written((info, b"12"), format=tarfile.PAX_FORMAT))


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../x", "a/../../x", "a/..", "..", "\\x", "a\\..\\x", "C:/x", "c:x", "//h/x"],
)
def test_paths_that_lead_out(path: str) -> None:
    message = f"entry 0 path must lead to a file within the archive, got {path!r}"
    with pytest.raises(DataError) as caught:
        packed(Entry(path, b""))
    assert str(caught.value) == message
    with pytest.raises(DataError) as caught:
        unpacked(member(path).tobuf(tarfile.PAX_FORMAT))
    assert str(caught.value) == message
    long = member("x", pax_headers={"path": path})
    with pytest.raises(DataError) as caught:
        unpacked(written((long, b""), format=tarfile.PAX_FORMAT))
    assert str(caught.value) == message


@pytest.mark.parametrize("path", ["..a", "a..", "a/..b", "...", "./a", "a//b", "aa:b", "a\nb"])
def test_paths_that_stay_in(path: str) -> None:
    assert unpacked(packed(Entry(path, b"x"))) == [Entry(path, b"x")]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([Entry("", b"")], "entry 0 path must not be empty"),
        ([Entry("a\0b", b"")], "entry 0 path contains a NUL: 'a\\x00b'"),
        ([Entry("a", b""), Entry("b/", b"")], "entry 1 path is a directory's: 'b/'"),
        ([Entry("a", b""), Entry("b", b""), Entry("a", b"")], "entry 2 has the path of entry 0: 'a'"),
        ([Entry("\ud800", b"")], "entry 0 path is not valid Unicode: '\\ud800'"),
    ],
)
def test_entries_that_no_archive_holds(entries: list[Entry], message: str) -> None:
    with pytest.raises(DataError) as caught:
        packed(*entries)
    assert str(caught.value) == message


TWO = packed(Entry("a", b"x" * 600), Entry("b", b"y"))


def test_a_damaged_header_is_not_the_end() -> None:
    damaged = bytearray(TWO)
    damaged[1536] ^= 1
    with pytest.raises(DataError, match="the header at byte 1536 has a wrong checksum"):
        unpacked(bytes(damaged))


def test_cut_archives() -> None:
    for end in range(len(TWO)):
        try:
            # At the end of an entry nothing shows that more should follow.
            found = unpacked(TWO[:end])
            assert (end, len(found)) == (1536, 1) or (end >= 2560 and len(found) == 2)
        except DataError as error:
            assert "too early" in str(error) or "empty" in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (member("a", size=-1, mode=0o644), "number"),
        (member("a", size=8**12), "the data ends too early: 68719476736 bytes should follow"),
        (member("a", tarfile.XHDTYPE, content=b"1234567"), "malformed record"),
    ],
)
def test_numbers_that_lie(header: tarfile.TarInfo, message: str) -> None:
    body = b"12 path=a" if header.type == tarfile.XHDTYPE else b""
    with pytest.raises(DataError, match=message):
        unpacked(header.tobuf(tarfile.GNU_FORMAT) + body.ljust(512, b"\0"))


def pax(records: bytes, type: bytes = tarfile.XHDTYPE) -> bytes:
    body = records + bytes(-len(records) % 512)
    return member("pax", type, content=records).tobuf(tarfile.USTAR_FORMAT) + body


@pytest.mark.parametrize(
    "records",
    [
        b"x", b"0 a=b\n", b"5 a=b\n", b"7 a=b\n", b"6 ab\n\n", b"99999999999999999999 a=b\n", b"11 size=-1\n",
        b"10 size=x\n",
    ],
)  # fmt: skip
def test_malformed_records(records: bytes) -> None:
    with pytest.raises(DataError, match="not a tar archive, or damaged"):
        unpacked(pax(records) + TWO)


def test_headers_for_all_and_for_the_next() -> None:
    both = pax(b"12 path=all\n", tarfile.XGLTYPE) + pax(b"13 path=next\n")
    with pytest.raises(DataError, match="without its entry"):
        unpacked(both)
    assert [entry.path for entry in unpacked(both + TWO)] == ["next", "all"]


def test_many_headers_one_after_the_other() -> None:
    assert [entry.path for entry in unpacked(pax(b"13 path=next\n") * 3000 + TWO)] == ["next", "b"]


def test_names_that_are_no_utf8() -> None:
    info = member("caf\udce9")
    data = info.tobuf(tarfile.USTAR_FORMAT, "utf-8", "surrogateescape")
    assert unpacked(data) == [Entry("caf\ufffd", b"")]


def test_a_size_in_base_256() -> None:
    header = bytearray(member("a").tobuf(tarfile.GNU_FORMAT))
    header[124:136] = b"\x80" + (3).to_bytes(11, "big")
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    assert unpacked(bytes(header) + b"abc".ljust(512, b"\0")) == [Entry("a", b"abc")]


def test_a_link_has_no_content_whatever_its_size() -> None:
    link = member("link", tarfile.LNKTYPE, content=b"123", linkname="a")
    assert unpacked(link.tobuf(tarfile.USTAR_FORMAT) + TWO, skip_special=True) == unpacked(TWO)


def test_empty() -> None:
    assert unpacked(packed()) == []
    with pytest.raises(DataError, match="the data is empty: not a tar archive"):
        unpacked(b"")


@settings(max_examples=COUNT.examples(20))
@given(
    st.lists(st.tuples(st.integers(0, len(TWO) - 1), st.integers(0, 255)), max_size=6), st.binary(max_size=40)
)
def test_any_change_is_refused_or_read(changes: list[tuple[int, int]], start: bytes) -> None:
    for data in (bytearray(TWO), bytearray(start + TWO[len(start) :]), bytearray(pax(start) + TWO)):
        for at, byte in changes:
            data[at] = byte
        try:
            for entry in unpacked(bytes(data), skip_special=True):
                assert ".." not in entry.path.split("/")
        except DataError as error:
            assert str(error)  # noqa: PT017
