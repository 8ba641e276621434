"""The Vm of a program on a tape. Spec: 13 §4."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from harnpy.durable.journal import READ, Ending
from harnpy.durable.programs import RecordedVm, program_texts
from harnpy.durable.recorded import ProgramFiles, RecordedWorld, SettingsWorld
from harnpy.durable.values import told
from harnpy.faults import MisuseError
from harnpy.formats.json import as_data
from harnpy.storage.opening import open_store
from harnpy.tape.journal import TapeJournal
from harnpy.tape.listening import TapedListening, TapedStopping
from harnpy.tape.models import TapedProvider
from harnpy.tape.parts import SettingsFiles, TapedEnvironment, TapedHttp, TapedPeople
from harnpy.tape.processes import TapedProcesses
from harnpy.tape.tapes import COMPLETED, EXITED, FAILED, LAYOUT, End, Header
from harnpy.version import __version__
from harnpy.vm.errors import ExitRequest
from harnpy.workflow.engines.contract import PROGRAM, Job

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harnpy.llm.call import Models
    from harnpy.storage.contract import Store
    from harnpy.tape.worlds import TapedWorld
    from harnpy.vm.values import Value


#: The parts of the world that a tape keeps otherwise than a durable run.
_PARTS = {
    "environment": TapedEnvironment,
    "http": TapedHttp,
    "listening": TapedListening,
    "people": TapedPeople,
    "processes": TapedProcesses,
    "stopping": TapedStopping,
}


class TapedVm(RecordedVm):
    """A Vm whose program is recorded, or sees what was. It runs one program, once."""

    def __init__(self, world: TapedWorld, **options: Any) -> None:
        real = world.real
        journal = TapeJournal(real, world.rules, tape=world.tape, steps=world.steps, writer=world.writer)
        self.journal = journal
        self._taped = world
        self._has_run = False
        cwd = real.files.cwd() if world.tape is None else world.tape.job.body["cwd"]
        recorded = RecordedWorld(real, journal, cwd, _PARTS)
        settings = SettingsWorld(recorded, SettingsFiles(real.files, journal, cwd))  # type: ignore[arg-type]
        try:
            super().__init__(recorded, settings, journal, journal.tape, "", **options)
        except Ending as over:  # what it looks up isn't on the tape
            raise over.error from None
        self._cwd = cwd

    def run_file(
        self, path: str, *, args: Sequence[str] = (), entry: str | None = None, checked: bool = True
    ) -> Value:
        """Run the program in the file ``path``, which takes the place of the tape's. Raises OSError when it
        can't be read."""
        files = self._taped.real.files
        source = files.read_text(os.path.join(self._cwd, path), "replace")
        return self.run_source(source, file=path, args=args, entry=entry, checked=checked)

    def run_recorded(self) -> Value:
        """Run the tape's own program."""
        tape = self._taped.tape
        if tape is None:
            raise MisuseError("there is no tape to run a program of: run one to record it")
        body = tape.job.body
        source = body["files"][os.path.join(self._cwd, body["entry"])]
        return self._run(source, body["files"], body["entry"], body["args"], body.get("pipeline"), True)

    def run_source(
        self,
        source: str,
        *,
        file: str = "<script>",
        directory: str | None = None,
        args: Sequence[str] = (),
        entry: str | None = None,
        checked: bool = True,
    ) -> Value:
        place = os.path.join(directory or self._cwd, file)
        texts = program_texts(self._taped.real.files, place, source)
        return self._run(source, texts, file, args, entry, checked)

    async def run_async(self, source: str, **options: Any) -> Value:
        """Raise `MisuseError`: what comes to the loop of others is on no tape."""
        raise MisuseError(
            "a program on a tape has a loop of its own: call `run_source`, in a thread where a loop runs"
        )

    def _run(
        self,
        source: str,
        texts: Mapping[str, str],
        file: str,
        args: Sequence[str],
        entry: str | None,
        checked: bool,
    ) -> Value:
        if self._has_run:
            raise MisuseError("a tape has one run: make another Vm, with a tape of its own")
        self._has_run = True
        clock = self._taped.real.clock
        begun = clock.monotonic()
        self.module_files = ProgramFiles(texts, self._cwd)
        writer = self._taped.writer
        if writer is not None:
            body = {
                "entry": file, "files": dict(texts), "args": list(args), "pipeline": entry, "cwd": self._cwd,
            }  # fmt: skip
            job = Job(PROGRAM, os.path.basename(file), body)
            writer.begin(Header(LAYOUT, __version__, job, clock.now(), self._taped.origin))
        for prepare in self._taped.on_begin:
            prepare(self.journal, self)
        end = End(FAILED)
        try:
            value = super().run_source(source, file=file, args=args, entry=entry, checked=checked)
            end = End(COMPLETED, _data(value))
            return value
        except Ending as over:
            end = End(FAILED, error=str(over.error))
            raise over.error from None
        except ExitRequest as request:
            end = End(EXITED, request.code)
            raise
        except Exception as error:
            end = End(FAILED, error=str(error))
            raise
        finally:
            self.close_stores()
            if not self.journal.is_over:  # it hasn't begun: what was looked up until then is on the tape
                self.journal.flush()
            self.journal.close()
            if writer is not None:
                writer.end(replace(end, seconds=round(clock.monotonic() - begun, 6)))

    def _open_store(self, url: str) -> Store:
        """Return the store at ``url``: in a replay nothing is behind it. That it can't be opened is an
        effect."""
        if url.startswith("memory:"):
            return open_store(url)
        opened: list[Store] = []
        self.journal.at_once(READ, lambda: opened.append(open_store(url)), lambda: ["store", told(url)])
        if opened:
            return opened[0]
        if not self.journal.is_closed:
            return open_store(url)
        stand_in = open_store("memory:")
        stand_in.url = url  # type: ignore[misc]  # what is done with it is on the tape
        return stand_in

    def _record_models(self, models: Models) -> None:
        find: Any = models.provider

        def recorded(request: Any) -> Any:
            provider = find(request)
            return TapedProvider(provider, self.journal, is_own=provider is models.mock)

        models.provider = recorded  # type: ignore[method-assign]
        models.config.program = self.unguarded.environment.get, self.unguarded.files.read_text


def _data(value: Any) -> Any:
    """Return a program's value as JSON; None for one that has no JSON."""
    try:
        return as_data(value)
    except (MisuseError, TypeError, ValueError):
        return None
