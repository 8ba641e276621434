"""The program being debugged, in a thread of its own. Spec: 09 §15.1."""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harnpy import Vm
from harnpy.cli import FAILED, INTERRUPTED
from harnpy.cli.commands.run import exit_status
from harnpy.cli.debugger.engine import Engine, Terminated
from harnpy.cli.model_fixtures import replay
from harnpy.cli.project_setup import bind_project
from harnpy.cli.show import error_text
from harnpy.vm.errors import ExitRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harnpy.cli.debugger.engine import Stop

#: Deep Harn recursion needs as much C stack as the main thread usually has.
_STACK = 16 * 1024 * 1024


@dataclass(frozen=True)
class Launch:
    """What to debug: a file and its arguments, and what `harnpy run` takes by the same names."""

    file: str
    args: Sequence[str] = ()
    skill_dirs: Sequence[str] = ()
    llm_mock: str | None = None
    stop_on_entry: bool = field(default=True, kw_only=True)


class Program:
    """``on_stop`` and ``on_end`` are called in the program's thread; ``on_end`` gets the exit status."""

    def __init__(
        self, launch: Launch, on_stop: Callable[[Stop], object], on_end: Callable[[int], object]
    ) -> None:
        self._launch = launch
        self._on_end = on_end
        self.vm = Vm(evaluator="walk")
        self.engine = Engine(self.vm, on_stop, launch.stop_on_entry)
        bind_project(self.vm, launch.file, launch.skill_dirs)
        # A daemon: a process whose user has left doesn't wait for the program.
        self._thread = threading.Thread(target=self._run, name="program", daemon=True)

    def start(self) -> None:
        before = threading.stack_size(_STACK)
        try:
            self._thread.start()
        finally:
            threading.stack_size(before)

    def wait(self, seconds: float | None = None) -> None:
        """Return when the program has ended, or ``seconds`` later."""
        self._thread.join(seconds)

    def _run(self) -> None:
        status = FAILED
        try:
            status = self._status()
        finally:
            sys.stdout.flush()
            self._on_end(status)

    def _status(self) -> int:
        """Run the program and return the exit status; a failure is shown as `harnpy run` shows it."""
        launch = self._launch
        try:
            if launch.llm_mock is not None:
                replay(self.vm, launch.llm_mock)
            return exit_status(self.vm.run_file(launch.file, args=launch.args))
        except ExitRequest as request:
            return request.code
        except Terminated:
            return INTERRUPTED
        except Exception as error:
            sys.stdout.flush()
            sys.stderr.write(error_text.render(error, sys.stderr))
            return FAILED
