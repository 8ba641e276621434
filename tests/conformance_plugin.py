"""A pytest plugin: every conformance program is a test, run in this process by the CLI's own rules.

It is run compiled, and then walked, which defines what it must do: CI walks one of several, a campaign all.
What both begin with is done once: to parse, to check and to bind names.

`pytest conformance/values` runs a directory of them, `pytest conformance/a/b.harn` one. A failure
shows the program's diff or error, with a path that an editor can follow, and no Python traceback. Time is
simulated, so that what a program prints does not depend on how busy the machine is.
"""

from __future__ import annotations

import marshal
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

import pytest

from harnpy import cache
from harnpy.cli.testing.conformance import Case, case_of, run_case
from harnpy.syntax.diagnostic import SourceFault
from harnpy.vm import front_end
from harnpy.vm.declare import BuiltinTable
from harnpy.vm.imports import Imports
from tests.clock import simulated_time
from tests.counts import COUNT
from tests.support import PATIENCE

ROOT = Path(__file__).parent.parent / "conformance"
#: A last resort against programs that hang: real time, far more than any of them takes.
TIMEOUT_MS = PATIENCE * 1000
#: How a program is run, and what is said of one that fails so.
EVALUATORS = {"compile": "", "walk": "walked: "}


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Directory | None:
    return ProgramDirectory.from_parent(parent, path=path) if path == ROOT else None


class ProgramDirectory(pytest.Directory):
    """A directory of programs. No plugin is asked about each file, as pytest would: there are too many."""

    def collect(self) -> Iterator[pytest.Collector]:
        with os.scandir(self.path) as entries:
            found = {entry.name: entry.is_dir() for entry in entries}
        for name, is_directory in sorted(found.items()):
            if is_directory:
                path = self.path / name
                if not self.ihook.pytest_ignore_collect(collection_path=path, config=self.config):
                    yield ProgramDirectory.from_parent(self, path=path)
            elif name.endswith(".harn"):
                yield ProgramFile.from_parent(self, path=self.path / name)


class ProgramFile(pytest.File):
    """A `.harn` file of the suite; helpers without an expectation have no test."""

    def collect(self) -> Iterator[pytest.Item]:
        case = case_of(ROOT, self.path)
        if case is not None and case.kind != "skip":
            yield Program.from_parent(self, name=self.path.stem, case=case)


class Program(pytest.Item):
    def __init__(self, *, case: Case, **rest: Any) -> None:
        super().__init__(**rest)
        self.case = case

    def runtest(self) -> None:
        with FRONT_END.in_force():
            for evaluator, how in EVALUATORS.items():
                if evaluator == "walk" and crc32(self.case.name.encode()) % COUNT.walk_share:
                    continue
                with run_directory(), simulated_time():
                    result = run_case(self.case, TIMEOUT_MS, evaluator=evaluator)
                if result.status == "fail":
                    raise ProgramFailed(f"{how}conformance/{result.detail}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, ProgramFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.case.name


class Kept:
    """What `harnpy.cache` keeps, in memory: its files are too few for so many programs."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], bytes] = {}

    def load(self, kind: str, key: str) -> Any | None:
        entry = self._entries.pop((kind, key), None)
        if entry is None:
            return None
        self._entries[kind, key] = entry
        return marshal.loads(entry)

    def store(self, kind: str, key: str, value: Any) -> None:
        try:
            self._entries[kind, key] = marshal.dumps(value)
        except ValueError:
            return  # it nests too deep
        if len(self._entries) > cache.MAX_ENTRIES:
            del self._entries[next(iter(self._entries))]


class FrontEnd:
    """The front end; it does nothing twice to the same program, and to a library module in all programs."""

    def __init__(self) -> None:
        self._kept = Kept()
        self._library: dict[Any, Any] = {}
        self._program: dict[Any, Any] = {}

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """Inside the block one program runs, with this front end."""
        self._program.clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cache, "load", self._kept.load)
            patch.setattr(cache, "store", self._kept.store)
            for name in ("resolved_program", "resolved_module", "warnings_of"):
                patch.setattr(front_end, name, self._once(getattr(front_end, name)))
            yield

    def _once(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def done(*given: Any) -> Any:
            # What the words of a text mean depends on the builtins and on what its imports bring.
            context = [each.fingerprint() for each in given if isinstance(each, BuiltinTable | Imports)]
            key = (work, *(each for each in given if isinstance(each, str | None)), *context)
            made = self._library if any(str(each).startswith("<stdlib>") for each in given) else self._program
            if key not in made:
                made[key] = _outcome(work, given)
            result, fault = made[key]
            if fault is not None:
                raise fault
            return result

        return done


def _outcome(work: Callable[..., Any], given: tuple[Any, ...]) -> tuple[Any, SourceFault | None]:
    try:
        return work(*given), None
    except SourceFault as fault:
        return None, fault


FRONT_END = FrontEnd()


@contextmanager
def run_directory() -> Iterator[None]:
    """Inside the block the suite is trusted, and runs of workflows leave no records that need clearing up."""
    with TemporaryDirectory(prefix="harnpy-") as directory, pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARN_RUN_DIR", str(Path(directory, ".harn-runs")))
        patch.setenv("HARN_TRUST", "1")
        yield


class ProgramFailed(Exception):
    """The program did not do what its expectation says; the message is the story."""
