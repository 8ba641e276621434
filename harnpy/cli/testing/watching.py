"""`harnpy test --watch`: tests run again when a file that they load has changed, or at a key. Spec: 09 §3.2.

Files are looked at a few times a second. Without a terminal, reports follow one another.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from time import perf_counter, sleep

from harnpy.cli import FAILED, OK
from harnpy.cli.console import counted, paint, say
from harnpy.cli.testing.test_results import tally
from harnpy.cli.testing.user_tests import FileRun, Options, TestFile, complain_of_none, find_tests, run_files
from harnpy.project import MANIFEST, project_root
from harnpy.world.files import RealFiles

#: Seconds between two looks at the files, and how many times as long as one look took, where that is more.
_INTERVAL, _REST = 0.2, 9
_CLEAR = "\x1b[2J\x1b[H"
_END_OF_INPUT = "\x04"
_KEYS = "Enter: run all   f: only what failed   q: quit"

Stamps = dict[str, int]
#: Waits so many seconds; returns the key that was pressed meanwhile, if any.
Wait = Callable[[float], str | None]


def watch(options: Options) -> int:
    """Run the tests, and again after every change and at every key, until `q` or a signal."""
    say(f"Watching {options.path} for changes... (Ctrl+C to stop)")
    with _keyboard() as wait:
        return Watch(options, wait).run()


class Watch:
    """What ran last of each file, and the files that it loaded."""

    def __init__(self, options: Options, wait: Wait) -> None:
        self._options = options
        self._wait = wait
        self._runs: dict[Path, FileRun] = {}
        self._failed: dict[Path, tuple[str, ...]] = {}

    def run(self) -> int:
        before = self.stamps()
        self._test(find_tests(self._options.path, self._options.filter))
        while True:
            key, now = self._next(before)
            if key in ("q", _END_OF_INPUT):
                return FAILED if self._failed else OK
            found = find_tests(self._options.path, self._options.filter)
            if key == "f":
                again = [self._only_failed(file) for file in found if file.path in self._failed]
            elif key is None:
                changed = {path for path in {*before, *now} if before.get(path) != now.get(path)}
                again, before = self.affected(changed, found), now
            elif key in "\r\n":
                again, before = found, now
            else:
                continue
            if again:
                self._begin(key)
                self._test(again, found)

    def _begin(self, key: str | None) -> None:
        if sys.stdout.isatty():
            sys.stdout.write(_CLEAR)
        elif key is None:
            say(paint("--- file changed, re-running tests ---", "dim", sys.stdout))

    def _test(self, files: list[TestFile], found: list[TestFile] | None = None) -> None:
        """Run these tests of all that were found, and show how the others ended."""
        found = files if found is None else found
        if found:
            runs = run_files(files, self._options)
            for file, run in zip(files, runs, strict=True):
                self._runs[file.path] = run
                failed = tuple(result.name for result in run.results if result.status == "fail")
                self._failed.pop(file.path, None)
                if failed:
                    self._failed[file.path] = failed
        else:
            complain_of_none(self._options)
        self._forget({file.path for file in found})
        others = [run for path, run in self._runs.items() if path not in {file.path for file in files}]
        if others:
            count = tally([result for run in others for result in run.results])
            failed_others = f", {count.failed} failed" if count.failed else ""
            text = f"{counted(len(others), 'other file')}: {count.passed} passed{failed_others}"
            say(paint(text, "dim", sys.stdout))
        if sys.stdin.isatty() and sys.stdout.isatty():
            say()
            say(paint(_KEYS, "dim", sys.stdout))
        sys.stdout.flush()

    def _forget(self, there: set[Path]) -> None:
        for path in [path for path in self._runs if path not in there]:
            del self._runs[path]
            self._failed.pop(path, None)

    def _only_failed(self, file: TestFile) -> TestFile:
        names = self._failed[file.path]
        return replace(file, tests=tuple(name for name in file.tests if name in names))

    def affected(self, changed: set[str], found: list[TestFile]) -> list[TestFile]:
        """Return the files whose tests may end otherwise now; all, if nobody knows what a change means."""
        known = {name for run in self._runs.values() for name in run.loaded}
        known.update(name for file in found for name in _own(file.path))
        if self._options.coverage or changed - known:
            return found
        return [file for file in found if changed & {*_own(file.path), *self._loaded(file.path)}]

    def _loaded(self, path: Path) -> Iterable[str]:
        run = self._runs.get(path)
        return run.loaded if run else ()

    # --- files ------------------------------------------------------------------------------------

    def _next(self, seen: Stamps) -> tuple[str | None, Stamps]:
        """Return the next key, or None when files have changed and rest again; and how files are then."""
        return next_change(self.stamps, seen, self._wait)

    def stamps(self) -> Stamps:
        """Return when each file that counts was last written, in nanoseconds."""
        path = self._options.path.absolute()
        base = path if path.is_dir() else path.parent
        root = project_root(str(base), RealFiles()) or base
        return stamps_of({*_sources(root), *(name for run in self._runs.values() for name in run.loaded)})


def next_change(stamps: Callable[[], Stamps], seen: Stamps, wait: Wait) -> tuple[str | None, Stamps]:
    """Return the next key, or None when files have changed since ``seen`` and rest again; and how they are
    then, as ``stamps()`` says."""
    while True:
        start = perf_counter()
        now = stamps()
        pause = max(_INTERVAL, _REST * (perf_counter() - start))
        key = wait(pause)
        if key is not None:
            return key, now
        if now != seen and now == stamps():
            return None, now


def stamps_of(names: Iterable[str]) -> Stamps:
    """Return when each of these files was last written, in nanoseconds; what isn't there isn't among them."""
    stamps: Stamps = {}
    for name in names:
        with suppress(OSError):  # removed since it was listed
            stamps[name] = os.stat(name).st_mtime_ns
    return stamps


def _sources(root: str | Path) -> Iterator[str]:
    """Yield what tests are made of below a directory: programs, models' replies, the manifest."""
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if name.endswith((".harn", ".llm-mock.jsonl")) or name == MANIFEST:
                yield os.path.realpath(os.path.join(folder, name))


def _own(file: Path) -> tuple[str, str]:
    """The file itself, and the one with its models' replies."""
    return os.path.realpath(file), os.path.realpath(file.with_suffix(".llm-mock.jsonl"))


@contextmanager
def _keyboard() -> Iterator[Wait]:
    """Yield how to wait for a key; where there is no terminal, none comes."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        yield lambda seconds: sleep(seconds)
        return
    from select import select

    from harnpy.cli.terminal_person import single_keys

    def wait(seconds: float) -> str | None:
        ready, _, _ = select([file], [], [], seconds)
        return (os.read(file, 1).decode(errors="replace") or _END_OF_INPUT) if ready else None

    file = sys.stdin.fileno()
    with single_keys(file):
        yield wait
