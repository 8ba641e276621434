"""Durable runs of whole programs: the job, and what does it. Spec: 10 §C19.1.

The body of such a job is `{entry, files: {path: text}, links?: {path: path}, args, pipeline, cwd, globals?}`.
A run executes these texts, not what is on the disk by now, in a `Vm` of its own whose world is behind a
journal (`harnpy.durable.journal`).
"""

from __future__ import annotations

import os.path
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy import telemetry
from harnpy.builtins.agents.waitpoints import Patience
from harnpy.builtins.bridge.live_event_log import log_of, log_of_project
from harnpy.durable.journal import Ending, Journal, Tried
from harnpy.durable.recorded import ProgramFiles, RecordedProvider, RecordedWorld, SettingsWorld, placed
from harnpy.durable.recorded_loop import RecordedLoop
from harnpy.durable.stores import RecordedStore
from harnpy.durable.waits import OutlastingWaits
from harnpy.embedding import Vm
from harnpy.eventlog.topics import StoreEventLog
from harnpy.faults import MisuseError
from harnpy.formats.json import as_data
from harnpy.project import project_root
from harnpy.session.stores import StoreSettings
from harnpy.storage.opening import open_store
from harnpy.vm.errors import ExitRequest, VmError
from harnpy.vm.modules import Modules, expected_files, find_module, surface_of
from harnpy.vm.values import EnumValue, display
from harnpy.workflow.engines.contract import PROGRAM, Job
from harnpy.workflow.engines.errors import RunError
from harnpy.world import World
from harnpy.world.guarded import GuardedWorld

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from harnpy.llm.call import Models
    from harnpy.storage.contract import Store
    from harnpy.workflow.engines.contract import Json, RunContext, Step
    from harnpy.world.files import Files


def program_job(
    file: str,
    *,
    args: Sequence[str] = (),
    pipeline: str | None = None,
    store: str = "",
    world: World | None = None,
    values: Mapping[str, Json] | None = None,
) -> Job:
    """Return the job that runs a program: the text of ``file``, and of every module that it may need.
    ``values`` are globals that it has, by their names.

    Raises OSError and UnicodeDecodeError when the file can't be read.
    """
    files = (World() if world is None else world).files
    entry = os.path.join(files.cwd(), file)
    texts = program_texts(files, entry, files.read_text(entry))
    body = {
        "entry": file, **texts.written(), "args": list(args), "pipeline": pipeline, "cwd": files.cwd(),
    }  # fmt: skip
    if values:
        body["globals"] = dict(values)
    return Job(PROGRAM, os.path.basename(file), body, store)


class ProgramTexts(NamedTuple):
    """The texts of a program by their absolute paths. ``links``: where imports lead whose path names another
    file, or none: through a link of the file system, or into a package."""

    texts: Mapping[str, str]
    links: Mapping[str, str]

    def moved(self, place: Callable[[str], str]) -> ProgramTexts:
        """Return the same at the paths that ``place`` returns for these."""
        return ProgramTexts(
            {place(path): text for path, text in self.texts.items()},
            {place(path): place(target) for path, target in self.links.items()},
        )

    def written(self) -> dict[str, Json]:
        """Return what the body of a job has of it."""
        return {"files": dict(self.texts), **({"links": dict(self.links)} if self.links else {})}


def texts_of(job: Job) -> ProgramTexts:
    """Return the texts of a program's job."""
    return ProgramTexts(job.body["files"], job.body.get("links") or {})


def program_texts(files: Files, entry: str, source: str) -> ProgramTexts:
    """Return the texts of a program: that of ``entry``, which is ``source``, of every module that it may
    import, and of those that the hooks of its project are in."""
    texts: dict[str, str] = {entry: source}
    links: dict[str, str] = {}
    left = [*_imports(source, os.path.dirname(entry))]
    project = project_root(os.path.dirname(os.path.normpath(entry)), files)
    if project is not None:
        from harnpy.builtins.agents.manifest_hooks import hook_modules  # takes its time to load

        left += ((module, project) for module in hook_modules(files, project))
    while left:
        wanted, directory = left.pop()
        place = find_module(files, wanted, directory)
        if place is None or place.bundled:
            continue
        if place.path not in texts:
            try:
                text = texts[place.path] = files.read_text(place.path)
            except (OSError, UnicodeDecodeError):
                continue  # the program says so, where it imports it
            left += _imports(text, place.directory)
        named = os.path.normpath(os.path.join(directory, wanted))
        if place.path not in (named, os.path.normpath(expected_files(wanted, directory))):
            links[named] = place.path
    return ProgramTexts(texts, links)


def _imports(source: str, directory: str) -> Iterator[tuple[str, str]]:
    return ((wanted, directory) for wanted, *_ in surface_of(source).requests)


def missing_modules(files: Files, texts: Mapping[str, str]) -> Iterator[str]:
    """Yield where modules would be that a program imports, and that aren't there."""
    for path, text in texts.items():
        directory = os.path.dirname(path)
        for wanted, *_ in surface_of(text).requests:
            if find_module(files, wanted, directory) is None:
                yield os.path.normpath(expected_files(wanted, directory))


def run(
    job: Job,
    context: RunContext,
    *,
    world: World | None = None,
    prepare: Callable[[Vm], object] = lambda vm: None,
    is_trial: bool = False,
) -> Json:
    """Do a program's job, from where its record ends; return what its entry returns, as JSON.

    ``world`` is everything outside, by default the real one; ``prepare(vm)`` is called with the Vm before the
    program begins. A program that calls `exit(code)` has ended with `{$exit: code}`. Raises VmError when it
    fails, `MisuseError` with the text of an Err that it returns, SourceFault when it is none.
    """
    body = job.body
    world = World() if world is None else world
    cwd = body.get("cwd") or world.files.cwd()
    texts = ProgramFiles(*texts_of(job), cwd)
    with ExitStack() as ending:
        journal = Journal(context, world, is_trial=is_trial)
        ending.callback(journal.close)
        recorded = RecordedWorld(world, journal, cwd)
        settings = SettingsWorld(recorded, placed(world.files, cwd))
        vm = RecordedVm(recorded, settings, journal, context.run_id, job.store)
        ending.callback(vm.close_stores)
        vm.module_files = texts
        for name, value in body.get("globals", {}).items():
            vm.set_global(name, value)
        prepare(vm)
        if is_trial:
            vm.careful = False  # whoever runs it warns of it
        else:
            ending.enter_context(telemetry.run_span(job.name, context.run_id))
        source = texts.read_text(os.path.join(cwd, body["entry"]))
        try:
            value = vm.run_source(
                source, file=body["entry"], args=body.get("args") or (), entry=body.get("pipeline")
            )
        except Ending as over:
            raise over.error from None
        except ExitRequest as request:
            return {"$exit": request.code}
    is_result = type(value) is EnumValue and value.enum == "Result"
    if is_result and value.variant == "Err":
        raise MisuseError((display(value.fields[0]) if value.fields else "") or "error")
    if vm.failures and not is_result and type(value) is not int:
        raise MisuseError("; ".join(vm.failures.values()))
    return as_data(value)


class _Trial:
    """The context of a run that goes no further than its records."""

    attempt = 1

    def __init__(self, run_id: str, steps: Sequence[Step]) -> None:
        self.run_id = run_id
        self.recorded = steps

    def step(self, key: str, work: Callable[[], Json]) -> Json:
        raise Tried

    def record(self, *steps: Step) -> None:
        """Do nothing: all of them are recorded."""

    def wait(self, waitpoints: Sequence[str], *, key: str, timeout: float | None = None) -> Json:
        raise Tried

    def check(self) -> None:
        """Do nothing: nobody ends it."""

    def on_end(self, call: Callable[[], None]) -> None:
        """Do nothing: nobody ends it."""


def check(
    job: Job,
    run_id: str,
    steps: Sequence[Step],
    *,
    world: World | None = None,
    prepare: Callable[[Vm], object] = lambda vm: None,
) -> None:
    """Raise what keeps a run with these records from going on with ``job``: SourceFault, `ReplayDiverged`.

    The program runs as far as the records go. Nothing outside is changed, and nothing recorded.
    """
    try:
        run(job, _Trial(run_id, steps), world=world, prepare=prepare, is_trial=True)
    except RunError:
        raise
    except (Tried, VmError, MisuseError):
        pass  # it goes on from there, or fails there, as a program may


class RecordedVm(Vm):
    """A Vm whose programs see the world through a journal. ``options`` are those of a Vm."""

    def __init__(
        self,
        recorded: RecordedWorld,
        settings: World,
        journal: Journal,
        run_id: str,
        store: str,
        **options: Any,
    ) -> None:
        self._recorded = recorded
        self._store_url = store
        self._journal = journal
        super().__init__(settings, **options)
        self.enter = journal.ending_with(self.enter)
        self.settings.on_models.append(self._record_models)
        self.settings.calling = journal.calling
        self._kept_log: Store | None = None
        recorded.waits = OutlastingWaits(journal, self.tasks, recorded.real, run_id, self._log_store)
        patience = self.service(Patience, lambda vm: Patience())
        patience.run_id, patience.wait = run_id, recorded.waits.wait
        recorded.waits.told = lambda ids, metadata: patience.told(ids, metadata)
        stores = self.sessions.stores
        if store:
            usual = stores.settings
            stores.settings = StoreSettings(store, usual.durable)
        stores.open = lambda url: self._record_store(self._open_store(url))
        tasks = self.tasks
        tasks.idle = self._idle
        tasks.open_bridge = lambda scheduler, awaitable: RecordedLoop(scheduler, journal)
        journal.attach(tasks)

    @property
    def world(self) -> World:
        if self._world is None:
            self._world = GuardedWorld(self._recorded, self.guard, self.clock)
        return self._world

    def service(self, cls: type[Any], make: Callable[[Any], Any]) -> Any:
        return super().service(cls, self._log if cls is StoreEventLog else make)

    def _log(self, vm: Any) -> StoreEventLog:
        """The event log: the project's, else in the store of the job, else the program's own."""
        log = log_of_project(vm)
        if _in_memory(log.store) and self._store_url:
            opened = self._open_store(self._store_url)
            log = StoreEventLog(opened, now=lambda: self.world.clock.now())
        if not _in_memory(log.store):
            self._kept_log = log.store
            log.store = self._record_store(log.store)
        return log

    def _log_store(self) -> Store | None:
        """The store of the event log as it is; None for one in memory."""
        log_of(self)
        return self._kept_log

    def _open_store(self, url: str) -> Store:
        return open_store(url)

    def _record_store(self, store: Store) -> Store:
        """A store in memory is the program's own."""
        if _in_memory(store):
            return store
        return RecordedStore(store, self._journal)  # type: ignore[return-value]

    def start(self, body: Callable[[], Any]) -> Any:
        # What reading and checking the program has looked up is known or not, as it was cached or not.
        modules = self.state(Modules)
        self._states.clear()
        self._states[Modules] = modules
        self._journal.begin()
        return super().start(body)

    def cancel(self) -> None:
        super().cancel()
        self._journal.rouse()

    def close_stores(self) -> None:
        """Let go of what the program has of stores: the process may do other runs."""
        self.sessions.stores.close()
        log = self._services.get(StoreEventLog)
        if log is not None:
            log.close()

    def _idle(self, seconds: float | None) -> None:
        """No task can go on."""
        bridge = self.tasks.bridge
        if isinstance(bridge, RecordedLoop):
            bridge.run(seconds)
        else:
            self._journal.resolve(seconds)

    def _record_models(self, models: Models) -> None:
        """Have the calls of models recorded, but for those that mocks answer: these are the program's own."""
        find: Any = models.provider

        def recorded(request: Any) -> Any:
            provider = find(request)
            return provider if provider is models.mock else RecordedProvider(provider, self._journal)

        models.provider = recorded  # type: ignore[method-assign]
        # A reply that is recorded comes as a whole when the run is entered again.
        models.tells_pieces = False
        models.config.program = self.unguarded.environment.get, self.unguarded.files.read_text


def _in_memory(store: Store) -> bool:
    return store.url.startswith("memory:")
