"""The files of a branch: an overlay, the past of what its run wrote, processes in copies. Spec: 13 §5.2."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from harnpy.tape import Changes, TapeError, branch
from harnpy.tape import scratch as room
from harnpy.tape.overlay import Overlay, check_keep
from harnpy.tape.scratch import ScratchProcesses
from harnpy.world.files import RealFiles
from harnpy.world.processes import RealProcesses
from tests.counts import COUNT
from tests.durable.runs import Outside
from tests.tape.branched import Branch, files_of, record


def tree(directory: Path) -> dict[str, bytes | None]:
    """Return what is in a directory: files with their bytes, directories with None."""
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.is_file() else None
        for path in sorted(directory.rglob("*"))
    }


def filled(directory: Path) -> Path:
    for path in ("a", "b", "d/x", "d/y", "d/e/z", "f/w"):
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(f"first {path}\n")
    return directory


@pytest.fixture
def overlay(tmp_path: Path) -> Iterator[Overlay]:
    layer = Overlay(RealFiles())
    yield layer
    layer.close()


async def _pieces(text: str) -> Any:
    yield text.encode()
    yield b"!"


def _steps(random: Random, paths: list[str]) -> Iterator[tuple[str, Callable[[Any, str], object]]]:
    """Yield things to do with files, each with its name."""
    while True:
        one, other, text = random.choice(paths), random.choice(paths), str(random.random())
        calls: list[tuple[str, Callable[[Any, str], object]]] = [
            (f"read {one}", lambda files, at, one=one: files.read_bytes(f"{at}/{one}")),
            (f"text {one}", lambda files, at, one=one: files.read_text(f"{at}/{one}")),
            (f"list {one}", lambda files, at, one=one: files.list_dir(f"{at}/{one}")),
            (
                f"entries {one}",
                lambda files, at, one=one: [
                    (each.name, each.is_dir, each.is_file) for each in files.entries(f"{at}/{one}")
                ],
            ),
            (f"under {one}", lambda files, at, one=one: sorted(files.files_under(f"{at}/{one}"))),
            (
                f"looks {one}",
                lambda files, at, one=one: [
                    look(f"{at}/{one}") for look in (files.exists, files.is_dir, files.is_file)
                ],
            ),
            (f"size {one}", lambda files, at, one=one: _size(files, f"{at}/{one}")),
            (f"write {one}", lambda files, at, one=one, text=text: files.write_text(f"{at}/{one}", text)),
            (
                f"bytes {one}",
                lambda files, at, one=one, text=text: files.write_bytes(f"{at}/{one}", text.encode()),
            ),
            (
                f"append {one}",
                lambda files, at, one=one, text=text: files.write_bytes(f"{at}/{one}", text.encode(), True),
            ),
            (f"replace {one}", lambda files, at, one=one, text=text: files.replace_text(f"{at}/{one}", text)),
            (
                f"pour {one}",
                lambda files, at, one=one, text=text: asyncio.run(files.pour(f"{at}/{one}", _pieces(text))),
            ),
            (f"mkdir {one}", lambda files, at, one=one: files.make_directory(f"{at}/{one}")),
            (f"remove {one}", lambda files, at, one=one: files.remove(f"{at}/{one}")),
            (f"delete {one}", lambda files, at, one=one: files.delete_file(f"{at}/{one}", at)),
            (
                f"rename {one} {other}",
                lambda files, at, one=one, other=other: files.rename(f"{at}/{one}", f"{at}/{other}"),
            ),
            (
                f"copy {one} {other}",
                lambda files, at, one=one, other=other: files.copy(f"{at}/{one}", f"{at}/{other}"),
            ),
        ]
        yield random.choice(calls)


def _size(files: Any, path: str) -> int:
    status = files.status(path)
    return -1 if files.is_dir(path) else int(status.st_size)


def outcome(call: Callable[[Any, str], object], files: Any, at: str) -> object:
    try:
        return call(files, at)
    except OSError as error:
        return errno.errorcode[error.errno or 0]


PATHS = ["a", "b", "c", "d", "d/x", "d/y", "d/e", "d/e/z", "f", "f/w", "g", "g/h", "a/b"]


@pytest.mark.parametrize("seed", COUNT.seeds(COUNT.overlay_walks))
def test_an_overlay_does_what_files_do_and_leaves_the_disk(
    tmp_path: Path, seed: int, overlay: Overlay
) -> None:
    real, under = filled(tmp_path / "real"), filled(tmp_path / "under")
    before, done = tree(under), []
    random = Random(seed)
    steps = _steps(random, PATHS)
    for _ in range(80):
        name, call = next(steps)
        done.append(name)
        wanted = outcome(call, RealFiles(), str(real))
        assert outcome(call, overlay, str(under)) == wanted, done
    assert tree(under) == before
    # What is kept, laid over what was there without what was deleted, is the same.
    overlay.keep(str(tmp_path / "kept"), str(under))
    kept = tree(tmp_path / "kept") if (tmp_path / "kept").exists() else {}
    gone = (kept.pop(".deleted", None) or b"").decode().split()
    files = {
        path: data
        for path, data in before.items()
        if data is not None and not any(path == each or path.startswith(f"{each}/") for each in gone)
    }
    files |= {path: data for path, data in kept.items() if data is not None}
    assert files == {path: data for path, data in tree(real).items() if data is not None}, done


def test_links_are_followed_to_what_is_over_them(tmp_path: Path, overlay: Overlay) -> None:
    (tmp_path / "file").write_text("under")
    (tmp_path / "link").symlink_to("file")
    overlay.write_text(str(tmp_path / "link"), "over")
    assert overlay.read_text(str(tmp_path / "file")) == "over"
    overlay.remove(str(tmp_path / "link"))
    assert not overlay.exists(str(tmp_path / "link"))
    assert overlay.read_text(str(tmp_path / "file")) == "over"
    assert (tmp_path / "link").read_text() == "under"


def test_rights_stay(tmp_path: Path, overlay: Overlay) -> None:
    (tmp_path / "script").write_text("#!/bin/sh\n")
    (tmp_path / "script").chmod(0o755)
    overlay.write_text(str(tmp_path / "script"), "#!/bin/sh\necho\n")
    assert overlay.status(str(tmp_path / "script")).st_mode & 0o777 == 0o755


def test_a_lock_is_the_branchs_own(tmp_path: Path, overlay: Overlay) -> None:
    held = RealFiles().try_lock(str(tmp_path / "lock"))
    release = overlay.try_lock(str(tmp_path / "lock"))
    assert held is not None
    assert release is not None
    assert overlay.try_lock(str(tmp_path / "lock")) is None
    release()
    assert overlay.try_lock(str(tmp_path / "lock")) is not None
    held()


def test_files_are_not_kept_in_a_directory_without_a_name() -> None:
    with pytest.raises(TapeError, match="without a name"):
        check_keep("")


def test_files_are_kept_only_where_nothing_is(tmp_path: Path, overlay: Overlay) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("")
    with pytest.raises(TapeError, match="full isn't empty, so no overlay can be kept there: name another"):
        check_keep(tmp_path / "full")
    with pytest.raises(TapeError, match=r"x: Not a directory"):
        check_keep(tmp_path / "full" / "x")
    overlay.write_text(str(tmp_path / "y"), "kept")
    with pytest.raises(TapeError, match=r"can't be kept in .*; it stays in ") as caught:
        overlay.keep(str(tmp_path / "full" / "x" / "z"), str(tmp_path))
    place = str(caught.value).rpartition(" ")[2]
    assert Path(f"{place}{tmp_path}/y").read_text() == "kept"


# What the run wrote behind the call.

ASK = 'let usual = {provider: "p", model: "m"}\nfn ask(text) { return llm_call(text, nil, usual).text }\n'


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def seen(here: Path, source: str, at: int = 1) -> dict[str, bytes]:
    """Record a program; return the files that a branch of it sees when it goes on live."""
    before = files_of(here)
    tape, _ = record(here, ASK + source)
    after = files_of(here)
    made = Branch(tape, at)
    assert made.end == after
    assert files_of(here) == after
    if at == 1:
        assert made.files == before
    return made.files


@pytest.mark.parametrize(
    "source",
    [
        'write_file("new.txt", ask("one"))',
        'mkdir("made"); write_file("made/new.txt", ask("one"))',
        'ask("one"); mkdir("made/deep"); write_file("made/deep/new.txt", "text")',
        'ask("one"); append_file("log.txt", "more")',
        'ask("one"); append_file("log.txt", "more"); append_file("log.txt", "and more".repeat(100))',
        'ask("one"); append_file("fresh.txt", "more"); append_file("fresh.txt", "and more")',
        'ask("one"); let old = read_file("log.txt"); write_file("log.txt", "other" + old)',
        'ask("one"); let old = read_file("log.txt"); delete_file("log.txt")',
        'ask("one"); move_file("log.txt", "moved.txt")',
        'ask("one"); move_file("log.txt", "moved.txt"); append_file("moved.txt", "x"); '
        'write_file("log.txt", "y")',
        'ask("one"); copy_file("log.txt", "copy.txt"); append_file("copy.txt", "x")',
        'ask("one"); write_file("new.txt", "x"); delete_file("new.txt")',
        'ask("one"); delete_file("log.txt")',
        'ask("one"); write_file("log.txt", "other"); append_file("log.txt", "more")',
        'write_file("new.txt", ask("one")); move_file("new.txt", "log.txt")',
        'write_file("new.txt", ask("one")); copy_file("new.txt", "log.txt"); delete_file("new.txt")',
        'ask("one"); write_file_bytes("new.bin", bytes_from_hex("ff00ff"))',
    ],
)
def test_what_the_run_wrote_behind_the_call_isnt_seen(here: Path, source: str) -> None:
    (here / "log.txt").write_text("first\n")
    seen(here, source)


def test_what_it_appended_before_the_call_is_there_once(here: Path) -> None:
    (here / "log.txt").write_text("first\n")
    source = 'append_file("log.txt", "one\\n")\nask("one")\nappend_file("log.txt", "two\\n")\n'
    source += 'ask("two")\nappend_file("log.txt", "three\\n")'
    assert seen(here, source, 2)["log.txt"] == b"first\none\ntwo\n"


def test_a_file_that_was_changed_since_is_seen_as_it_is(here: Path) -> None:
    tape, _ = record(here, ASK + 'ask("one")\nwrite_file("new.txt", "run")\nwrite_file("other.txt", "run")')
    (here / "new.txt").write_text("a person's")
    made = Branch(tape, 1)
    assert made.files == {"new.txt": b"a person's"}
    assert made.end == {"new.txt": b"run", "other.txt": b"run"}
    assert (here / "new.txt").read_text() == "a person's"


def test_a_directory_that_was_there_is_there(here: Path) -> None:
    (here / "full").mkdir()
    (here / "full" / "kept.txt").write_text("kept")
    (here / "bare").mkdir()
    source = 'println(list_dir("bare"))\nask("one")\n'
    source += 'for d in ["full", "bare"] { mkdir(d); write_file(d + "/x", "x") }'
    tape, _ = record(here, ASK + source)
    made = Branch(tape, 1)
    assert made.files == {"full/kept.txt": b"kept"}
    assert made.output == "[]\n"


def test_of_what_is_overwritten_the_tape_has_what_it_doesnt_know(here: Path) -> None:
    (here / "log.txt").write_text("first\n")
    (here / "long.txt").write_bytes(b"x" * ((1 << 20) + 1))
    source = 'read_file("log.txt"); write_file("log.txt", "second"); write_file("log.txt", "third")\n'
    tape, _ = record(here, ASK + source + 'write_file("long.txt", "short"); write_file("long.txt", "again")')
    assert [
        step.output for step in tape.steps if isinstance(step.output, dict) and "was" in step.output
    ] == []
    tape, _ = record(here, ASK + 'write_file("log.txt", "a"); write_file("log.txt", "b")', "other.tape")
    found = [
        step.output["was"] for step in tape.steps if isinstance(step.output, dict) and "was" in step.output
    ]
    assert found == [{"$utf8": "third"}]


def test_what_was_written_through_links_isnt_seen(here: Path) -> None:
    (here / "real").mkdir()
    (here / "link").symlink_to("real")
    (here / "target.txt").write_text("first")
    (here / "name.txt").symlink_to("target.txt")
    source = 'println(ask("one")); write_file("link/x", "x"); write_file("name.txt", "other")'
    tape, _ = record(here, ASK + source)
    code = program(here, 'println([read_file("target.txt"), read_file("name.txt"), file_exists("real/x")])')
    assert Branch(tape, 1, Changes(code=code)).output == "[first, first, false]\n"
    assert (here / "target.txt").read_text() == "other"


def test_a_directory_that_the_run_didnt_make_is_there(here: Path) -> None:
    (here / "bare").mkdir()
    tape, _ = record(
        here, ASK + 'ask("one")\nwrite_file("bare/x", "x")\nmkdir("made")\nwrite_file("made/x", "x")'
    )
    made = Branch(tape, 1)
    assert (made.files, made.end) == ({}, {"bare/x": b"x", "made/x": b"x"})
    looking = Branch(
        tape, 1, Changes(code=program(here, 'println([file_exists("bare"), file_exists("made")])'))
    )
    assert looking.output == "[true, false]\n"


def program(here: Path, source: str) -> str:
    """Write a program that looks at files behind its first call; return its path."""
    (here / "other.harn").write_text(f'{ASK}ask("one")\n{source}')
    return "other.harn"


def test_what_was_deleted_is_listed(here: Path) -> None:
    (here / "log.txt").write_text("first\n")
    record(here, ASK + 'ask("one")\nif file_exists("log.txt") { println("there") }')
    (here / "other.harn").write_text(ASK + 'ask("one")\ndelete_file("log.txt")\nwrite_file("a/b.txt", "x")')
    (here / "a").mkdir()
    outside = Outside()
    found = branch("run.tape", 1, code="other.harn", world=outside, prepare=outside.prepare, keep="kept")
    assert (found.written, found.deleted) == (("a/b.txt",), ("log.txt",))
    assert tree(here / "kept") == {".deleted": b"log.txt\n", "a": None, "a/b.txt": b"x"}
    assert (here / "log.txt").read_text() == "first\n"


# Processes.


class Processes:
    """The processes of a branch in a directory of its own."""

    def __init__(self, directory: Path, overlay: Overlay) -> None:
        self.scratch = ScratchProcesses(RealProcesses(), overlay, str(directory))
        self.directory = directory

    def run(self, command: str, cwd: str = "") -> str:
        argv = ["/bin/sh", "-c", command]
        ended = asyncio.run(self.scratch.run(argv, str(self.directory / cwd)))
        assert ended.code == 0, ended.err
        return ended.out.decode()


@pytest.fixture
def processes(tmp_path: Path, overlay: Overlay) -> Iterator[Processes]:
    found = Processes(filled(tmp_path / "run"), overlay)
    yield found
    found.scratch.close()


def test_a_process_sees_the_overlay_and_what_it_changes_comes_back(
    processes: Processes, overlay: Overlay
) -> None:
    at = processes.directory
    before = tree(at)
    overlay.write_text(f"{at}/a", "over")
    overlay.remove(f"{at}/d/e")
    said = processes.run("cat a; ls d; pwd; echo made > made; rm b; mkdir -p new/deep; echo x > new/deep/x")
    assert said == f"overx\ny\n{at}\n"
    assert overlay.read_text(f"{at}/made") == "made\n"
    assert overlay.read_text(f"{at}/new/deep/x") == "x\n"
    assert not overlay.exists(f"{at}/b")
    assert [each.removeprefix(f"{at}/") for each in overlay.written()] == ["a", "made", "new/deep/x"]
    assert [each.removeprefix(f"{at}/") for each in overlay.deleted()] == ["b", "d/e"]
    # The next one sees what the program has done meanwhile.
    overlay.write_text(f"{at}/made", "again")
    overlay.rename(f"{at}/new", f"{at}/moved")
    overlay.remove(f"{at}/d")
    assert processes.run("cat made moved/deep/x; ls") == "againx\na\nf\nmade\nmoved\n"
    assert processes.run("pwd; cat deep/x", "moved") == f"{at}/moved\nx\n"
    assert tree(at) == before


def test_links_in_the_directory_lead_into_the_copy(processes: Processes, overlay: Overlay) -> None:
    at = processes.directory
    (at / "within").symlink_to(at / "a")
    (at / "beside").symlink_to("b")
    assert processes.run("echo 1 > within; echo 2 > beside; cat a b") == "1\n2\n"
    assert (at / "a").read_text() == "first a\n"
    assert overlay.read_text(f"{at}/a") == "1\n"
    assert overlay.read_text(f"{at}/b") == "2\n"


def test_words_that_are_paths_in_the_directory_lead_into_the_copy(processes: Processes) -> None:
    at = processes.directory
    ended = asyncio.run(processes.scratch.run(["/bin/cat", f"{at}/a"], str(at)))
    assert ended.out == b"first a\n"
    ended = asyncio.run(processes.scratch.run(["/usr/bin/touch", f"{at}/touched"], str(at)))
    assert not (at / "touched").exists()


def test_too_large_a_directory_isnt_copied(
    processes: Processes, overlay: Overlay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "MOST_FILES", 5)
    said = (
        r"`/bin/sh` can't run in the branch: it would need a copy of .*run, which has more than 5 files or "
        r"1024 MiB; run it in a smaller directory"
    )
    with pytest.raises(TapeError, match=said):
        processes.run("true")


def test_a_branch_runs_processes_in_a_copy(here: Path) -> None:
    source = (
        'ask("one")\nwrite_file("in.txt", "over")\nprintln(shell("cat in.txt; echo made > out.txt").stdout)\n'
    )
    source += 'println(read_file("out.txt"))'
    outside = Real()
    tape, printed = record(here, ASK + source, outside=outside)
    (here / "out.txt").unlink()
    found = branch(tape, 1, world=outside, prepare=outside.prepare, keep="kept")
    assert found.error is None
    assert outside.output() == printed == "over\nmade\n\n"
    assert found.written == ("in.txt", "out.txt")
    assert not (here / "out.txt").exists()


class Real(Outside):
    """One with real processes."""

    def __init__(self) -> None:
        super().__init__()
        self.processes = RealProcesses()


def test_an_edited_file_may_be_one_that_the_run_wrote(here: Path) -> None:
    source = 'let p = read_file("p.txt")\nprintln(ask("one " + p))\nwrite_file("p.txt", "written")'
    (here / "p.txt").write_text("old")
    tape, _ = record(here, ASK + source)
    (here / "p.txt").write_text("new")
    assert Branch(tape, 1, Changes(files={"p.txt": "p.txt"})).output == "<one new>\n"
