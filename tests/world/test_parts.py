"""The real parts of the world, one by one."""

from __future__ import annotations

import asyncio
import os
import re
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from uuid6 import UUID

from harnpy.world.checked_files import checked_files
from harnpy.world.clock import RealClock, is_rfc3339, rfc3339
from harnpy.world.environment import RealEnvironment, Variables
from harnpy.world.files import RealFiles, system_reason
from harnpy.world.http import RealHttp, Unreachable
from harnpy.world.ids import RealIds
from harnpy.world.random import RealRandom, seeded
from harnpy.world.streams import RealStreams

if TYPE_CHECKING:
    from harnpy.world.files import Files

# The clock.


def test_the_clock_is_the_system_s() -> None:
    clock = RealClock()
    assert abs(clock.now() - time.time()) < 3600
    first = clock.monotonic()
    clock.sleep(0)
    assert clock.monotonic() >= first


@pytest.mark.parametrize(
    ("seconds", "digits", "text"),
    [
        (0.0, 3, "1970-01-01T00:00:00.000Z"),
        (1769850902.1138, 3, "2026-01-31T09:15:02.114Z"),
        (1769850902.9999, 3, "2026-01-31T09:15:03.000Z"),
        (1.25, 6, "1970-01-01T00:00:01.250000Z"),
    ],
)
def test_a_moment_as_text(seconds: float, digits: int, text: str) -> None:
    assert rfc3339(seconds, digits) == text
    assert is_rfc3339(text)


@pytest.mark.parametrize("text", ["", "2026-01-31", "2026-13-01T00:00:00Z", "2026-01-31T09:15:02"])
def test_what_is_no_moment(text: str) -> None:
    assert not is_rfc3339(text)


# Ids and chance.


def test_ids_differ_and_sort_by_their_time() -> None:
    source = RealIds()
    ids = [source.new() for _ in range(100)]
    assert sorted(set(ids)) == ids
    assert all(
        re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", id) for id in ids
    )


class Ids(RealIds):
    """Those of one process, by a clock that several may share."""

    def __init__(self, clock: list[int]) -> None:
        super().__init__()
        self._nanoseconds = lambda: clock[0]


MILLISECOND = 1_000_000


@given(st.lists(st.integers(-3 * MILLISECOND, 3 * MILLISECOND), max_size=60))
def test_ids_follow_the_clock_wherever_it_goes(steps: list[int]) -> None:
    """They are never ahead by more than a millisecond, and later ones sort after earlier ones."""
    clock = [1_800_000_000_000 * MILLISECOND]
    ids = Ids(clock)
    found = [ids.new()]
    for step in steps:
        clock[0] += step
        found.append(ids.new())
        assert 0 <= milliseconds_of(found[-1]) - clock[0] // MILLISECOND <= 1
        assert step < 0 or found[-1] > found[-2]
    assert len(set(found)) == len(found)


def test_ids_sort_while_a_clock_is_set_back_a_little_and_go_back_with_it_else() -> None:
    clock = [1_800_000_000_000 * MILLISECOND]
    ids = Ids(clock)
    first = ids.new()
    clock[0] -= MILLISECOND * 9 // 10
    second = ids.new()
    clock[0] -= 30_000 * MILLISECOND
    third = ids.new()
    assert first < second
    assert milliseconds_of(second) - milliseconds_of(third) == 30_001


def milliseconds_of(id: str) -> int:
    read = UUID(id)
    assert (read.version, str(read)) == (7, id)
    return int(read.time)


def test_ids_are_not_ahead_of_a_clock_that_stands_still() -> None:
    clock = [1_800_000_000_000 * MILLISECOND]
    ids = Ids(clock)
    found = [ids.new() for _ in range(20_000)]
    assert sorted(set(found)) == found
    assert {id[:18] for id in found} == {found[0][:18]}


def test_a_forked_process_makes_ids_of_its_own() -> None:
    clock = [1_800_000_000_000 * MILLISECOND]
    source = Ids(clock)
    source.new()  # draws chance for the next ones, too
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, source.new().encode())
        os._exit(0)
    os.waitpid(child, 0)
    with open(reading) as pipe:
        os.close(writing)
        assert pipe.read() != source.new()


@given(st.lists(st.tuples(st.sampled_from([0, 1]), st.integers(245, 3 * MILLISECOND)), max_size=60))
def test_ids_of_several_processes_sort(made: list[tuple[int, int]]) -> None:
    clock = [1_800_000_000_000 * MILLISECOND]
    processes = [Ids(clock), Ids(clock)]
    found = []
    for process, step in made:
        clock[0] += step
        found.append(processes[process].new())
    assert sorted(set(found)) == found


def test_numbers_of_a_seed_are_the_same_again() -> None:
    assert [seeded(7).random() for _ in range(2)] == [seeded(7).random()] * 2
    assert 0 <= RealRandom().random() < 1


# The environment.


def test_the_environment_is_looked_at_when_it_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = RealEnvironment()
    monkeypatch.setenv("HARN_TEST", "1")
    assert (environment.get("HARN_TEST"), environment.all()["HARN_TEST"]) == ("1", "1")
    monkeypatch.delenv("HARN_TEST")
    assert environment.get("HARN_TEST") is None


def test_given_variables_are_all_there_are() -> None:
    environment = Variables({"A": "1"})
    assert (environment.get("A"), environment.get("PATH"), environment.login_shell()) == ("1", None, None)
    assert environment.all() == {"A": "1"}


# Files.


class Others(RealFiles):
    """Files of an embedder."""


def nothing_forbidden(effect: str, path: str, named: str) -> None:
    assert os.path.isabs(path), effect
    assert os.path.isabs(named), effect


@pytest.fixture(params=["real", "checked", "asked"])
def files(request: pytest.FixtureRequest) -> Files:
    """The real files, and what must be the same behind a check that allows everything."""
    if request.param == "real":
        return RealFiles()
    return checked_files(RealFiles() if request.param == "checked" else Others(), nothing_forbidden)


def test_a_text_is_read_as_it_was_written(files: Files, tmp_path: Path) -> None:
    path = str(tmp_path / "made" / "on the way" / "a.txt")
    files.write_text(path, "é\r\n\n")
    files.write_text(path, "more", append=True, durable=True)
    assert files.read_text(path) == "é\r\n\nmore"


def test_bytes_that_are_no_text(files: Files, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"a\xff")
    with pytest.raises(UnicodeDecodeError) as failure:
        files.read_text(str(path))
    assert system_reason(failure.value) == "stream did not contain valid UTF-8"
    assert files.read_text(str(path), "replace") == "a\ufffd"


def test_a_missing_file(files: Files, tmp_path: Path) -> None:
    path = str(tmp_path / "a")
    with pytest.raises(FileNotFoundError) as failure:
        files.read_text(path)
    assert system_reason(failure.value) == "No such file or directory (os error 2)"
    assert (files.exists(path), files.is_file(path), files.is_dir(path), files.modified(path)) == (
        False,
        False,
        False,
        None,
    )
    files.delete_file(path, str(tmp_path))


def test_a_text_is_replaced_as_a_whole(files: Files, tmp_path: Path) -> None:
    path = str(tmp_path / "a")
    files.write_text(path, "old")
    files.replace_text(path, "new")
    files.replace_text(path, "newest", durable=False, mark=".mine")
    assert (files.read_text(path), files.list_dir(str(tmp_path))) == ("newest", ["a"])
    assert files.modified(path) == os.stat(path).st_mtime_ns


@contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """Let writes fail that would make a file larger, after the part that still fits: like a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_text_that_does_not_fit_leaves_the_former_one_and_nothing_else(
    files: Files, tmp_path: Path
) -> None:
    path = str(tmp_path / "a")
    files.replace_text(path, "old")
    with files_up_to(1000), pytest.raises(OSError, match="large") as failed:
        files.replace_text(path, "x" * 1001)
    assert failed.value.filename == path
    assert (files.read_text(path), files.list_dir(str(tmp_path))) == ("old", ["a"])


def test_a_line_that_does_not_fit_is_not_begun(files: Files, tmp_path: Path) -> None:
    path = str(tmp_path / "log")
    with files_up_to(1000):
        files.write_text(path, "a" * 899 + "\n", append=True)
        with pytest.raises(OSError, match="large"):
            files.write_text(path, "b" * 100 + "\n", append=True)
        files.write_text(path, "c\n", append=True)
    assert files.read_text(path) == "a" * 899 + "\nc\n"


def test_what_has_no_end_is_added_to_as_well() -> None:
    reader, writer = os.pipe()
    RealFiles().write_text(f"/dev/fd/{writer}", "line\n", append=True)
    assert os.read(reader, 100) == b"line\n"
    os.close(reader)
    os.close(writer)


def test_deleting_a_file_leaves_no_empty_directories_below_the_root(files: Files, tmp_path: Path) -> None:
    root = str(tmp_path)
    files.write_text(f"{root}/a/b/c", "")
    files.write_text(f"{root}/a/d", "")
    assert sorted(files.files_under(root)) == ["a/b/c", "a/d"]
    files.delete_file(f"{root}/a/b/c", root)
    assert files.list_dir(f"{root}/a") == ["d"]
    files.delete_file(f"{root}/a/d", root)
    assert (files.list_dir(root), files.is_dir(root)) == ([], True)


def test_directories_are_marked_in_lists(files: Files, tmp_path: Path) -> None:
    files.make_directory(str(tmp_path / "b"))
    files.make_directory(str(tmp_path / "b"))
    files.write_text(str(tmp_path / "a"), "")
    assert files.list_dir(str(tmp_path)) == ["a", "b/"]


def test_real_paths_follow_links(files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    monkeypatch.chdir(tmp_path)
    assert files.cwd() == os.path.realpath(tmp_path)
    assert files.real_path("link/x") == f"{files.cwd()}/target/x"


def test_a_lock_is_held_by_one(files: Files, tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    release = files.try_lock(path)
    assert release is not None
    assert files.try_lock(path) is None
    release()
    again = files.try_lock(path)
    assert again is not None
    again()


# Streams.


def test_given_streams() -> None:
    out: list[str] = []
    streams = RealStreams(stdout=out.append, stderr=out.append, stdin=StringIO("a\r\n\nb\nrest\n"))
    streams.write_out("1")
    streams.write_err("2")
    assert out == ["1", "2"]
    assert [streams.read_line() for _ in range(2)] == ["a", ""]
    assert (streams.read_all(), streams.read_line(), streams.read_all()) == ("b\nrest\n", None, "")
    assert not streams.isatty("stdin")


def test_the_process_s_streams_are_those_of_the_moment(capsys: pytest.CaptureFixture[str]) -> None:
    streams = RealStreams()
    streams.write_out("out")
    streams.write_err("err")
    assert tuple(capsys.readouterr()) == ("out", "err")


# HTTP.


def test_nobody_answers_at_a_closed_port() -> None:
    with pytest.raises(Unreachable) as failure:
        asyncio.run(RealHttp().status("GET", "http://127.0.0.1:1/", {"x": "secret"}, 5.0))
    assert failure.value.kind == "ConnectError"
    assert failure.value.__cause__ is None


def test_a_url_that_is_none() -> None:
    with pytest.raises(Unreachable):
        asyncio.run(RealHttp().status("GET", "http://[", {}, 5.0))
