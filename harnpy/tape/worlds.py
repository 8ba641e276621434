"""The worlds of recorded and replayed programs, and the Vm that such a world asks for.

`Vm(world=Recording("run.tape"))` records, `Vm(world=Replaying("run.tape"))` sees what was. Spec: 13 §4.
"""

from __future__ import annotations

import os.path
from dataclasses import asdict
from math import inf
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from harnpy.durable.journal import Ending
from harnpy.durable.programs import RecordedVm, program_texts, texts_of
from harnpy.durable.recorded import ProgramFiles, RecordedWorld, SettingsWorld
from harnpy.faults import MisuseError
from harnpy.formats.json import as_data
from harnpy.formats.manifest import decisions
from harnpy.formats.secrets.secret_names import is_secret_header_name, is_secret_name
from harnpy.project import IN_FILES
from harnpy.storage.memory import MemoryStore
from harnpy.storage.opening import open_store, shown
from harnpy.tape.changes import inherited, install
from harnpy.tape.directory import Directory, look
from harnpy.tape.edits import places, program_edits, reread
from harnpy.tape.journal import TapeJournal
from harnpy.tape.known_files import KnownFiles
from harnpy.tape.listening import TapedListening, TapedStopping
from harnpy.tape.models import TapedProvider, Unmade
from harnpy.tape.parts import SettingsFiles, TapedEnvironment, TapedHttp, TapedPeople
from harnpy.tape.processes import TapedProcesses
from harnpy.tape.redaction import HIDDEN, Redaction
from harnpy.tape.rules import RECORDING, REPLAYING, Rules
from harnpy.tape.tapes import (
    COMPLETED,
    EXITED,
    FAILED,
    LAYOUT,
    End,
    Header,
    Tape,
    TapeError,
    TapeWriter,
    read_tape,
)
from harnpy.version import __version__
from harnpy.vm.errors import Cancelled, ExitRequest
from harnpy.vm.limits import Limits, Meter
from harnpy.workflow.engines.contract import PROGRAM, Job
from harnpy.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harnpy.durable.programs import ProgramTexts
    from harnpy.llm.call import Models
    from harnpy.llm.configuration.known_providers import ProviderConfig
    from harnpy.llm.providers import Provider
    from harnpy.storage.contract import Store
    from harnpy.tape.directory import Tree
    from harnpy.tape.tapes import Origin
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm
    from harnpy.workflow.engines.contract import Step


class TapedWorld(World):
    """``real``, by the rules of a tape: the base of the others. One program runs in it."""

    rules: Rules

    def __init__(
        self,
        real: World | None = None,
        *,
        tape: Tape | None = None,
        steps: Sequence[Step] | None = None,
        writer: TapeWriter | None = None,
        origin: Origin | None = None,
        reads_anew: bool = False,
        command: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.real = World() if real is None else real
        self.tape = tape
        #: The records to begin with: by default all of the tape's.
        self.steps = steps
        self.writer = writer
        self.origin = origin
        #: Whether files that the program reads, and that were edited since, have their new content.
        self.reads_anew = reads_anew
        #: The options of `harnpy run` that a replay needs, too: by default the tape's.
        self.command = dict(command or {}) if tape is None or command else tape.header.command
        #: Called with the journal and the Vm before the program begins.
        self.on_begin: list[Callable[[TapeJournal, Any], object]] = []
        if tape is not None and tape.header.branch is not None:
            changes = inherited(tape)
            self.on_begin.append(lambda journal, vm: install(journal, vm, changes))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            return getattr(self.real, name)

    def tree(self, directory: str) -> Tree:
        """Return what is in a directory and below it, as processes have it."""
        return look(directory)

    def kept(self, store: Store) -> Store:
        """Return what a program has for a store that outlasts it."""
        return store

    def is_kept(self, status: str) -> bool:
        """Return whether the tape that was made of a run stays, which has ended with this status."""
        return True

    def vm_class(self) -> type[Vm]:
        """Return the class of the Vm whose programs see this world."""
        return TapedVm


class Recording(TapedWorld):
    """Writes what a program sees of the real world to the tape at ``path``.

    The tape has its name once the program has ended, and is called ``<path>.partial`` until then. Raises
    `TapeError` when something else than a tape is at ``path``. Spec: 13 §4.
    """

    rules = RECORDING

    def __init__(
        self,
        path: str | os.PathLike[str],
        real: World | None = None,
        *,
        command: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(real, writer=TapeWriter(path), command=command)


class Replaying(TapedWorld):
    """Shows a program what is on a tape, and touches nothing outside but the streams that it prints to.

    Raises `TapeError` when the tape can't be read. What the program does otherwise than its tape says raises
    `TapeDiverged`. ``reads_anew``: a file that was edited since has its new content. Spec: 13 §4.
    """

    rules = REPLAYING

    def __init__(
        self, tape: Tape | str | os.PathLike[str], real: World | None = None, *, reads_anew: bool = False
    ) -> None:
        tape = tape if isinstance(tape, Tape) else read_tape(tape)
        if tape.job.kind != PROGRAM:
            raise TapeError(
                f"{tape.path} is the tape of a Python program: run that with `runtime(replay=...)`, "
                "docs/time-machine.md shows how"
            )
        super().__init__(real, tape=tape, reads_anew=reads_anew)


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
        masking = Redaction()
        if not world.rules.is_closed:
            masking.learn_variables(real.environment.all())
        journal = TapeJournal(
            real, world.rules, tape=world.tape, steps=world.steps, writer=world.writer, masking=masking
        )
        self.journal = journal
        self._taped = world
        #: The tape that the program sees; None for one that is recorded.
        self.tape = world.tape
        self._has_run = False
        #: Files that the program reads and that were edited since, as ``file:line``.
        self._edited: list[str] = []
        #: Whether a file of the recorded program is still there, by its path of then.
        self._is_there: Callable[[str], bool] = lambda path: False
        cwd = real.files.cwd() if world.tape is None else world.tape.job.body["cwd"]
        journal.cwd = cwd
        if world.writer is not None and not journal.is_closed:
            own = [os.path.join(real.files.cwd(), name) for name in world.writer.files]
            directory = Directory(cwd, real.files, lambda: world.tree(cwd), own)
            journal.files = KnownFiles(real.files, cwd, directory, lambda text: journal.note("files", text))
        recorded = RecordedWorld(real, journal, cwd, _PARTS)
        #: What the program sees of the outside.
        self.recorded = recorded
        trust = None if journal.is_closed else decisions(real.environment.get)
        read = SettingsFiles(real.files, journal, cwd, trust)
        settings = SettingsWorld(recorded, read)  # type: ignore[arg-type]
        if world.tape is not None:
            options = {**_options_on(world.tape), **options}
        self._options = options
        try:
            super().__init__(recorded, settings, journal, journal.tape, "", **options)
        except Ending as over:  # what it looks up isn't on the tape
            raise over.error from None
        journal.limit = lambda: inf if self.meter is None else self.meter.ends_at
        self._cwd = cwd

    def _meter(self, limits: Limits | None) -> Meter | None:
        return None if limits is None else Meter(limits, lambda: self.journal.seconds)

    def run_file(
        self, path: str, *, args: Sequence[str] = (), entry: str | None = None, checked: bool = True
    ) -> Value:
        """Run the program in the file ``path``, which takes the place of the tape's. Raises OSError when it
        can't be read.

        It may lie elsewhere than it did when the tape was made: what it sees of paths is as it was.
        """
        files, tape = self._taped.real.files, self._taped.tape
        if tape is None:
            source = files.read_text(os.path.join(self._cwd, path), "replace")
            return self.run_source(source, file=path, args=args, entry=entry, checked=checked)
        # As when it was recorded: a secret may also be a word of the program.
        self.journal.masking.learn_variables(self._taped.real.environment.all())
        place = os.path.join(files.cwd(), path)
        source = files.read_text(place, "replace")
        moved = places(tape.job, place)
        self._is_there = lambda path: files.is_file(moved.now(path))
        texts = program_texts(files, place, source).moved(moved.then)
        if self._taped.reads_anew:
            found = reread(tape.steps, files, self._cwd, moved, self.journal.masking)
            self.journal.renew(found.steps)
            self._edited = found.edits
        was = moved.then(place)
        is_inside = was.startswith(self._cwd.rstrip("/") + "/")
        shown = os.path.relpath(was, self._cwd) if is_inside else was
        return self._run(source, texts, shown, args, entry, checked)

    def run_recorded(self) -> Value:
        """Run the tape's own program."""
        tape = self._taped.tape
        if tape is None:
            raise MisuseError("there isn't a tape to run a program of: run one to record it")
        body, texts = tape.job.body, texts_of(tape.job)
        source = texts.texts[os.path.join(self._cwd, body["entry"])]
        return self._run(source, texts, body["entry"], body["args"], body.get("pipeline"), True)

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
        texts: ProgramTexts,
        file: str,
        args: Sequence[str],
        entry: str | None,
        checked: bool,
    ) -> Value:
        if self._has_run:
            raise MisuseError("a tape has one run: make another Vm, with a tape of its own")
        self._has_run = True
        clock, begun = self._taped.real.clock, 0.0
        self.module_files = ProgramFiles(*texts, self._cwd)
        self._learn_secrets_of(texts.texts, args)
        if self._taped.tape is not None:
            masked = {path: self.journal.masking.text(text) for path, text in texts.texts.items()}
            entry_now = os.path.join(self._cwd, file)
            edits = program_edits(self._taped.tape.job, masked, entry_now, self._is_there)
            self.journal.edited = [*edits, *self._edited]
        writer = self._taped.writer
        if writer is not None:
            begun = clock.monotonic()
            body = {
                "entry": file, **texts.written(), "args": list(args), "pipeline": entry, "cwd": self._cwd,
            }  # fmt: skip
            if self.settings.found_skills is not None:
                body["project"] = True  # what it has of its project was looked up, and is on the tape
            job = Job(PROGRAM, os.path.basename(file), body)
            taped, rules = self._taped, _written_options(self._options)
            writer.begin(
                Header(LAYOUT, __version__, job, clock.now(), taped.origin, rules, dict(taped.command))
            )
            writer.on_failure = lambda failure: taped.real.warn(
                "tape", f"{failure}; the program goes on, and isn't recorded any more"
            )
        for prepare in self._taped.on_begin:
            prepare(self.journal, self)
        end: End | None = None  # none for a run that is cut off, as by Ctrl-C
        is_made = True
        try:
            value = super().run_source(source, file=file, args=args, entry=entry, checked=checked)
            end = End(COMPLETED, data_of(value))
            return value
        except Ending as over:
            end = End(FAILED, error=str(over.error))
            is_made = self.journal.is_live or not isinstance(over.error, TapeError)
            raise over.error from None
        except Cancelled:
            raise  # from outside, at a moment that no replay knows: it was cut off there
        except ExitRequest as request:
            end = End(EXITED, request.code)
            raise
        except Exception as error:
            end = End(FAILED, error=str(error))
            raise
        finally:
            self.close_stores()
            self.journal.leave()
            self.journal.close()
            if writer is not None and not is_made:
                writer.discard()
            elif writer is not None and end is None:
                writer.leave()
            elif writer is not None and end is not None and not self._taped.is_kept(end.status):
                writer.discard()
            elif writer is not None and end is not None:
                writer.end(replace(end, seconds=round(clock.monotonic() - begun, 6)))

    def _learn_secrets_of(self, texts: Mapping[str, str], args: Sequence[str]) -> None:
        """Mask the keys in the program's text and arguments. A tape's own program has none."""
        masking = self.journal.masking
        for each in args:
            masking.learn_from(each)
        for path, text in texts.items():
            found = masking.learn_from(text)
            if found and self._taped.writer is not None:
                line = text[: text.index(found[0])].count("\n") + 1
                shown = path.removeprefix(self._cwd + "/")
                self._taped.real.warn(
                    "tape", f"{shown}:{line} has a key in its text, which the tape has without it ({HIDDEN})"
                )

    def _open_store(self, url: str) -> Store:
        opened: list[Store] = []

        def look() -> tuple[str, bool, frozenset[str]]:
            opened.append(open_store(url))
            return opened[0].url, opened[0].strict_ids, opened[0].features

        # A path has no password, and looking for one takes its time.
        name = url if url.partition(":")[0] in IN_FILES else shown(url)
        address, strict_ids, features = self.journal.fact(f"store/{name}", look)
        if not self.journal.is_closed:
            return opened[0] if opened else open_store(url)
        # Nothing is asked of it but what the program doesn't see: leases.
        replayed: Any = MemoryStore()
        replayed.url, replayed.strict_ids, replayed.features = address, strict_ids, features
        return replayed  # type: ignore[no-any-return]

    def _record_store(self, store: Store) -> Store:
        kind, _, path = store.url.partition(":")
        files = self.journal.files
        if files is not None and kind in IN_FILES:
            for suffix in ("", *_BESIDE_STORES):
                files.leave_out(os.path.join(self._cwd, path + suffix))
        return super()._record_store(self._taped.kept(store))

    def _record_models(self, models: Models) -> None:
        journal, make, given = self.journal, models.connections.provider, models.provided
        streams = journal.fact("providers", lambda: {name: _streams(own) for name, own in given.items()})
        if journal.is_closed:
            models.provided = {name: Unmade(can) for name, can in streams.items()}

        def connected(config: ProviderConfig) -> Any:
            made: list[Provider] = []

            def look() -> bool:
                made.append(make(config))
                return _streams(made[0])

            can = journal.fact(f"provider/{config.name}/{config.protocol}", look)
            return Unmade(can) if journal.is_closed else made[0] if made else make(config)

        models.connections.provider = connected  # type: ignore[method-assign]
        find: Any = models.provider

        def recorded(request: Any) -> Any:
            provider = find(request)
            config = getattr(provider, "config", None)
            if config is not None and not self.journal.is_closed:
                for value in config.secrets():
                    self.journal.masking.learn(value)
                for name, value in config.extra_headers.items():
                    if is_secret_header_name(name) or is_secret_name(name):
                        self.journal.masking.learn(value.removeprefix("Bearer "))
            return TapedProvider(provider, self.journal, is_own=provider is models.mock, find=find)

        models.provider = recorded  # type: ignore[method-assign]
        models.config.program = self.unguarded.environment.get, self.unguarded.files.read_text


def _written_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a Vm as JSON, without those that are as usual."""
    written: dict[str, Any] = {}
    for name, value in options.items():
        if isinstance(value, Limits):
            value = {key: most for key, most in asdict(value).items() if most is not None}
        elif name in _SETS and value is not None:
            value = sorted(value)
        if value not in (_USUAL.get(name), None):
            written[name] = value
    return written


#: What SQLite has beside a store while that is open.
_BESIDE_STORES = ("-wal", "-shm", "-journal")
#: Options of a Vm that are sets of names, and what some are that nobody has given.
_SETS = frozenset({"deny", "allow", "capabilities"})
_USUAL = {"deny": [], "evaluator": "compile", "trace_llm": False, "tracing": False}


def _options_on(tape: Tape) -> dict[str, Any]:
    """Return the options of the Vm that a tape was recorded with."""
    options = dict(tape.header.vm)
    try:
        if "limits" in options:
            options["limits"] = Limits(**options["limits"])
        if not options.keys() <= _OPTIONS:
            raise ValueError
    except (TypeError, ValueError):
        raise TapeError(f"{tape.path} is damaged at line 1: record the run again") from None
    return options


_OPTIONS = frozenset("deny allow trace_llm tracing evaluator limits capabilities egress".split())


def _streams(provider: Provider) -> bool:
    return getattr(provider, "stream", None) is not None


def data_of(value: Any) -> Any:
    """Return a program's value as JSON; None for one that has no JSON."""
    try:
        return as_data(value)
    except (MisuseError, TypeError, ValueError):
        return None
