"""Files behind a check: what it is given, and that nothing is done before or besides."""

from __future__ import annotations

import inspect
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harnpy.world import checked_files as reached
from harnpy.world import file_io
from harnpy.world.checked_files import checked_files
from harnpy.world.files import RealFiles

if TYPE_CHECKING:
    from harnpy.world.files import Files


class Others(RealFiles):
    """Files of an embedder."""


class Refused(Exception):
    pass


class Check:
    """Allows what is in ``inside``, and notes what it was asked."""

    def __init__(self, inside: Path) -> None:
        self.inside = os.path.realpath(inside)
        self.asked: list[tuple[str, str]] = []

    def __call__(self, effect: str, path: str, named: str) -> None:
        self.asked.append((effect, path))
        if path != self.inside and not path.startswith(self.inside + "/"):
            raise Refused(path)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """``in`` with files and links, ``out`` with what must not change."""
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "out" / "below").mkdir(parents=True)
    (tmp_path / "in" / "a").write_text("inside")
    (tmp_path / "out" / "secret").write_text("secret")
    (tmp_path / "in" / "here").symlink_to("deep")
    (tmp_path / "in" / "deep" / "up").symlink_to("../a")
    (tmp_path / "in" / "away").symlink_to(tmp_path / "out")
    (tmp_path / "in" / "far").symlink_to("../out/secret")
    (tmp_path / "in" / "new").symlink_to("../out/made")
    (tmp_path / "in" / "loop").symlink_to("loop")
    return tmp_path


@pytest.fixture
def check(tree: Path) -> Check:
    return Check(tree / "in")


@pytest.fixture(params=[RealFiles, Others])
def files(request: pytest.FixtureRequest, check: Check) -> Files:
    return checked_files(request.param(), check)


def snapshot(tree: Path) -> dict[str, tuple[int, str]]:
    """What is there, by path: its mode, and its text or where it leads."""

    def content(path: Path) -> str:
        if path.is_symlink():
            return os.readlink(path)
        return path.read_text() if path.is_file() else ""

    return {str(path): (path.lstat().st_mode, content(path)) for path in sorted(tree.rglob("*"))}


# What a path leads to.


@pytest.mark.parametrize(
    ("path", "real"),
    [
        ("a", "in/a"),
        ("./deep/../a", "in/a"),
        ("here/up", "in/a"),
        ("here/../a", "in/a"),
        ("deep/up", "in/a"),
        ("here/", "in/deep"),
        ("here/.", "in/deep"),
        ("deep/..", "in"),
        ("missing/a", "in/missing/a"),
        ("missing/../a", "in/a"),
        ("a/below", "in/a/below"),
        (".", "in"),
    ],
)
def test_the_check_sees_what_a_path_leads_to(
    path: str, real: str, files: Files, check: Check, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree / "in")
    here = os.path.realpath(tree)
    assert files.real_path(path) == os.path.join(here, real)
    with suppress(OSError):
        files.read_text(path)
    with suppress(OSError):
        files.list_dir(path)
    assert check.asked == [(effect, os.path.join(here, real)) for effect in ("list", "read", "list")]


def test_what_is_allowed_is_done_through_links(files: Files, tree: Path) -> None:
    inside = str(tree / "in")
    files.write_text(f"{inside}/here/b", "new")
    files.write_text(f"{inside}/here/up", "more", append=True)
    files.rename(f"{inside}/here/b", f"{inside}/c")
    files.replace_text(f"{inside}/deep/up", "no link any more")
    assert (tree / "in" / "c").read_text() == "new"
    assert (tree / "in" / "a").read_text() == "insidemore"
    assert (tree / "in" / "deep" / "up").read_text() == "no link any more"
    assert not (tree / "in" / "deep" / "up").is_symlink()


def test_a_link_is_renamed_and_deleted_itself(files: Files, check: Check, tree: Path) -> None:
    inside = os.path.realpath(tree / "in")
    files.rename(f"{inside}/far", f"{inside}/deep/far")
    files.delete_file(f"{inside}/deep/far", inside)
    assert check.asked[:3] == [
        ("delete", f"{inside}/far"),
        ("write", f"{inside}/deep/far"),
        ("delete", f"{inside}/deep/far"),
    ]
    assert (tree / "out" / "secret").read_text() == "secret"


# What is refused isn't done.


def locked(files: Files, path: str) -> None:
    release = files.try_lock(path)
    if release is not None:
        release()


ACTS: dict[str, Callable[[Files, str], object]] = {
    "read": lambda files, path: files.read_text(path),
    "write": lambda files, path: files.write_text(path, "x"),
    "append": lambda files, path: files.write_text(path, "x", append=True),
    "copy": lambda files, path: files.copy(path, path + "2"),
    "copy onto": lambda files, path: files.copy("a", path),
    "list": lambda files, path: files.list_dir(path),
    "entries": lambda files, path: [entry.name for entry in files.entries(path)],
    "status": lambda files, path: files.status(path),
    "walk": lambda files, path: files.files_under(path),
    "make": lambda files, path: files.make_directory(path),
    "modified": lambda files, path: files.modified(path),
    "exists": lambda files, path: files.exists(path),
    "is_dir": lambda files, path: files.is_dir(path),
    "is_file": lambda files, path: files.is_file(path),
    "real_path": lambda files, path: files.real_path(path),
    "lock": locked,
}

ENTRIES: dict[str, Callable[[Files, str], object]] = {
    "replace": lambda files, path: files.replace_text(path, "x"),
    "rename": lambda files, path: files.rename(path, path + "2"),
    "delete": lambda files, path: files.delete_file(path, os.path.dirname(path)),
    "remove": lambda files, path: files.remove(path),
}

#: Ways out of ``in``.
OUTSIDE = [
    "{out}/secret", "{out}/new", "{out}/new/new", "{out}/secret/new", "../out/secret",
    "deep/../../out/secret", "away/secret", "away/new/new", "here/../away/below", "away/below/../secret",
    "away/../out/secret", "missing/../../out/secret", "../out/missing/../secret", "..", "../", "/",
]  # fmt: skip

#: Ways out by a last name that is a link.
LINKS = ["far", "new", "away", "away/", "away/.", "here/../far"]


@pytest.mark.parametrize("path", [*OUTSIDE, *LINKS])
def test_what_is_outside_is_refused_before_anything_is_done(
    path: str, files: Files, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree / "in")
    before = snapshot(tree)
    for act in ACTS.values():
        with pytest.raises(Refused):
            act(files, path.format(out=tree / "out"))
        assert snapshot(tree) == before


@pytest.mark.parametrize("path", OUTSIDE)
def test_so_are_entries_of_directories_outside(
    path: str, files: Files, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree / "in")
    before = snapshot(tree)
    for act in ENTRIES.values():
        with pytest.raises(Refused):
            act(files, path.format(out=tree / "out"))
        assert snapshot(tree) == before


@pytest.mark.parametrize(
    "path", ["", "a\0b", "\0", "a\ud800", "x" * 300, "a/" * 3000 + "a", "loop", "loop/a", "a/"]
)
def test_what_is_no_path_is_an_error_of_the_system_or_nothing(
    path: str, files: Files, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree / "in")
    before = snapshot(tree / "out")
    for act in {**ACTS, **ENTRIES}.values():
        with suppress(OSError, Refused):
            act(files, path)
    assert snapshot(tree / "out") == before


def test_a_directory_is_removed_with_its_links_but_not_what_they_lead_to(files: Files, tree: Path) -> None:
    before = snapshot(tree / "out")
    (tree / "in" / "deep" / "more").mkdir()
    (tree / "in" / "deep" / "more" / "away").symlink_to(tree / "out")
    files.remove(str(tree / "in" / "away"))
    files.remove(str(tree / "in" / "deep"))
    assert snapshot(tree / "out") == before
    assert not (tree / "in" / "deep").exists()
    with pytest.raises(FileNotFoundError):
        files.remove(str(tree / "in" / "deep"))


def test_a_copy_has_the_rights_of_what_it_copies(files: Files, tree: Path) -> None:
    source, copy = tree / "in" / "a", tree / "in" / "deep" / "copy"
    source.chmod(0o750)
    copy.write_text("something longer")
    files.copy(str(source), str(copy))
    assert (copy.read_text(), copy.stat().st_mode & 0o777) == ("inside", 0o750)
    files.copy(str(tree / "in" / "here" / "up"), str(source))
    assert source.read_text() == "inside"


def test_entries_are_what_they_are_not_what_they_lead_to(files: Files, tree: Path) -> None:
    found = [(entry.name, entry.is_dir, entry.is_file) for entry in files.entries(str(tree / "in"))]
    assert found == [
        ("a", False, True), ("away", False, False), ("deep", True, False), ("far", False, False),
        ("here", False, False), ("loop", False, False), ("new", False, False),
    ]  # fmt: skip


def test_a_failure_names_the_path_that_was_given(tree: Path, check: Check) -> None:
    files = checked_files(RealFiles(), check)
    path = str(tree / "in" / "missing" / "b")
    with pytest.raises(FileNotFoundError) as failed:
        files.read_text(path)
    assert failed.value.filename == path


# Links that are swapped in meanwhile.


@contextmanager
def swapping(path: Path, make: Callable[[Path], object], target: Path) -> Iterator[None]:
    """Let ``path`` be, in turn, what ``make`` makes and a link to ``target``, as fast as it can be."""
    over = threading.Event()
    aside = path.parent / "aside"
    aside.mkdir()

    def swap() -> None:
        for turn in count():
            if over.is_set():
                break
            with suppress(OSError):
                path.symlink_to(target) if turn % 2 else make(path)
            with suppress(OSError):
                path.rename(aside / str(turn))

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


SWAPPED = [
    "read", "write", "append", "copy", "copy onto", "list", "entries", "status", "walk", "make", "lock",
    "modified", *ENTRIES,
]  # fmt: skip

#: What is done to a directory.
LOOKS = ("list", "entries", "walk")


@pytest.mark.parametrize("act", SWAPPED)
@pytest.mark.parametrize("place", ["directory", "file"])
def test_links_that_are_swapped_in_lead_nowhere(
    act: str, place: str, tree: Path, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree / "in")
    files = checked_files(RealFiles(), check)
    swapped, outside = tree / "in" / "swapped", tree / "out"
    path = str(swapped / "secret") if place == "directory" else str(swapped)
    target = outside if place == "directory" or act in LOOKS else outside / "secret"
    before = snapshot(outside)
    seen: list[object] = []
    with swapping(swapped, Path.mkdir if place == "directory" else Path.touch, target):
        for _ in range(100):
            with suppress(OSError, Refused):
                seen.append({**ACTS, **ENTRIES}[act](files, path))
    assert snapshot(outside) == before
    assert "secret" not in seen
    assert not any({"below", "below/"} & {*names} for names in seen if isinstance(names, list))


class Meddled:
    """The module `os`: before call number ``at`` somebody does ``then``, before the next one ``after``."""

    def __init__(self, at: int, then: Callable[[], object], after: Callable[[], object]) -> None:
        self.calls = 0
        self._turns = {at: then, at + 1: after}

    def __getattr__(self, name: str) -> Any:
        value = getattr(os, name)
        return self._counted(value) if inspect.isbuiltin(value) else value

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            self.calls += 1
            self._turns.get(self.calls, bool)()
            return call(*arguments, **options)

        return counted


@pytest.mark.parametrize("act", SWAPPED)
@pytest.mark.parametrize("place", ["directory", "file"])
@pytest.mark.parametrize("stays", [True, False])
def test_whatever_call_of_the_system_they_are_swapped_in_before(
    act: str, place: str, stays: bool, tree: Path, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree / "in")
    files = checked_files(RealFiles(), check)
    swapped, aside, outside = tree / "in" / "swapped", tree / "in" / "aside", tree / "out"
    path = str(swapped / "secret") if place == "directory" else str(swapped)
    target = outside if place == "directory" or act in LOOKS else outside / "secret"

    def swap_in() -> None:
        with suppress(OSError):
            swapped.rename(aside)
        with suppress(OSError):
            swapped.symlink_to(target)

    def swap_back() -> None:
        with suppress(OSError):
            swapped.unlink()
        with suppress(OSError):
            aside.rename(swapped)

    os.utime(outside / "secret", (1, 1))
    before = snapshot(outside)
    for at in range(1, 100):
        shutil.rmtree(swapped, ignore_errors=True)
        shutil.rmtree(aside, ignore_errors=True)
        for left in (swapped, aside):
            left.unlink(missing_ok=True)
        swapped.mkdir() if place == "directory" else swapped.touch()
        meddled = Meddled(at, swap_in, bool if stays else swap_back)
        with monkeypatch.context() as patched, suppress(OSError, Refused):
            patched.setattr(reached, "os", meddled)
            patched.setattr(file_io, "os", meddled)
            result = {**ACTS, **ENTRIES}[act](files, path)
            assert result not in ("secret", 10**9)
            assert not (isinstance(result, list) and {"below", "below/"} & {*result})
            assert getattr(result, "st_mtime_ns", None) != 10**9
        assert snapshot(outside) == before
        if meddled.calls < at:
            return
    pytest.fail("more calls than were tried")
