"""Durable runs for the command line: their engine, the program that one does, and its end.

Who stops a command that works on a run gives the run back: it goes on where its last step was recorded.
Spec: 09 §2.9, 10 §C19, §C21.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from errno import EINVAL
from functools import partial
from shlex import quote
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from harnpy.agent.people import QUESTION, asked_for
from harnpy.builtins.agents.waitpoints import Patience
from harnpy.cli import Stopped
from harnpy.cli.console import complain, one_line, say
from harnpy.cli.project_setup import bind_project, require_trust
from harnpy.durable import bodies
from harnpy.eventlog.topics import event_log_settings
from harnpy.faults import Fault
from harnpy.formats.suggestions import hint
from harnpy.project import ManifestError
from harnpy.session.stores import store_settings
from harnpy.storage.errors import LeaseHeld
from harnpy.storage.opening import shown
from harnpy.workflow.engines import open_engine
from harnpy.workflow.engines.contract import COMPLETED, PROGRAM
from harnpy.workflow.engines.errors import QueueNotFound, RunError, RunExists, RunFailed
from harnpy.workflow.engines.local import LocalEngine
from harnpy.workflow.engines.run_log import is_left
from harnpy.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from harnpy import Vm
    from harnpy.formats.dicts import Dict
    from harnpy.vm.unit import Unit
    from harnpy.workflow.engines.contract import Engine, Job, Json, RunHandle, RunInfo

    Warn = Callable[[Unit], object]

_USUAL = "local"


def store_url(url: str | None) -> str:
    """Return the URL of the store that runs are in, as that of sessions. Raises `ManifestError`."""
    return url or store_settings(World()).url


@contextmanager
def opened(engine: str | None, url: str, warn: Warn | None = None) -> Iterator[Engine]:
    """The engine of that name, ``local`` by default. What it still works on in the end is given back.

    ``warn`` is called with each program about which there are warnings.
    """

    def prepare(vm: Vm, job: Job) -> None:
        if warn is not None:
            vm.careful, vm.on_warnings = True, warn
            vm.service(Patience, lambda vm: Patience()).told = partial(_say_what_is_awaited, url)
        try:
            bind_project(vm, job.body["entry"])
        except ManifestError as error:
            if warn is None:  # a worker: nobody waits for this run here
                complain(one_line(f"'{job.name}' is left to other workers: {error.message}"))
            raise

    found = open_engine(engine or _USUAL, url, bodies=bodies(url, prepare))
    try:
        yield found
    finally:
        found.close()


def is_left_in(engine: Engine, info: RunInfo) -> bool:
    """Return whether a run that hasn't ended has nobody who works on it; other engines find such runs."""
    found: object = engine
    return isinstance(found, LocalEngine) and is_left(found.store, info)


def _say_what_is_awaited(url: str, ids: Sequence[str], metadata: Dict) -> None:
    """Say what the run waits for, and what ends that."""
    is_usual = event_log_settings(World()) is not None or url == store_url(None)
    command = "harnpy waitpoint" if is_usual else f"harnpy waitpoint --store {quote(shown(url))}"
    kind, id = metadata.get("kind"), ids[0]
    what = f"waitpoint {', '.join(ids)}" if kind is None else asked_for(metadata)
    if kind in (None, QUESTION):
        complain(one_line(f"waiting for {what}: `{command} complete {quote(id)} JSON`"))
    else:
        ways = f"`{command} approve {quote(id)}`, or `… deny ID --reason TEXT`"
        complain(one_line(f"waiting for {what}: {ways}"))


def skipped(what: str, reason: str) -> None:
    """Say that a run, queue or schedule is left out, as it can't be read."""
    complain(one_line(f"warning: {what}: {reason}"))


def start(
    file: str, args: Sequence[str], *, id: str | None, queue: str | None, where: tuple[Any, Any], warn: Warn
) -> Json:
    """Run a program durably, and return what it comes to; with ``queue``, print its id and leave it there.

    ``where`` are the engine's name and the store's URL, None for the usual ones.
    """
    job = _job(file, args=args)
    engine, url = where
    with opened(engine, store_url(url), warn) as found:
        options = repeated(engine, url)
        try:
            handle = found.start(job, id=id, queue=queue)
        except RunExists as error:
            info = found.get(error.run)
            if info is None or info.kind != PROGRAM or info.status == COMPLETED:
                raise
            command = f"harnpy run --resume {quote(error.run)}{options} {quote(file)}"
            raise RunError(f"{error.message}, or go on with it: `{command}`") from None
        except QueueNotFound as error:
            raise QueueNotFound(error.queue, error.known, options) from None
        if queue is None:
            return awaited(handle, options)
        say(one_line(handle.id))
        return None


def resume(
    id: str,
    file: str | None,
    args: Sequence[str],
    *,
    accept: Sequence[str],
    where: tuple[Any, Any],
    warn: Warn,
) -> Json:
    """Go on with a run, and return what it comes to; with ``file``, that takes the place of its program.

    ``accept`` names finished stages that may have changed.
    """
    engine, url = where
    options = repeated(engine, url)
    with opened(engine, store_url(url), warn) as found:
        job = stored = found.job(id)
        info = found.get(id)
        if file is None and info is not None and info.status != COMPLETED:
            require_trusted(job)
        if file is not None and info is not None and info.status == COMPLETED:
            complain(one_line(f"run '{id}' is completed: {file} wasn't run"))
            return None
        if file is not None:
            if job.kind != PROGRAM:
                raise RunError(f"run '{id}' does a {job.kind}: a file can only take the place of a program")
            words, pipeline = args or job.body["args"], job.body.get("pipeline")
            job = _job(file, args=words, pipeline=pipeline, store=job.store)
        if accept:
            _check_accepted(id, job, accept, found)
            job = replace(job, body={**job.body, "accept_changes": [*accept]})
        with held_by_another(id, options):
            handle = found.resume(id, job=None if job is stored else job)
        return awaited(handle, options)


def require_trusted(job: Job) -> None:
    """Raise `ManifestError` where the job is a program and nobody trusts its project."""
    if job.kind == PROGRAM:
        require_trust([os.path.join(job.body["cwd"], job.body["entry"])])


def _check_accepted(id: str, job: Job, accept: Sequence[str], engine: Engine) -> None:
    """Raise `RunError` for changes of what is no stage of the run."""
    if job.kind == PROGRAM:
        raise RunError(
            f"run '{id}' does a program: `--accept-changes` is for the stages of a graph, "
            f"`harnpy run --resume {quote(id)} FILE` takes a changed program"
        )
    finished = {step.key.split(":")[1] for step in engine.steps(id) if step.key.startswith("stage:")}
    graph = job.body.get("graph")
    known = {*(graph.get("nodes") or () if isinstance(graph, dict) else ()), *finished}
    for name in accept:
        if name not in known:
            near = hint(name, sorted(known)) if known else "it has run none"
            raise RunError(f"run '{id}' has no stage '{name}': {near}")


def repeated(engine: str | None, url: str | None) -> str:
    """Return the options that say where a run is, for a command that somebody is told to give."""
    words = "" if engine is None else f" --engine {engine}"
    return words if url is None else f"{words} --store {quote(shown(url))}"


@contextmanager
def held_by_another(id: str, options: str) -> Iterator[None]:
    """Say who works on the run, and what ends it, when it can't go on here."""
    try:
        yield
    except LeaseHeld as error:
        if error.key != f"run:{id}":
            raise
        command = f"harnpy runs cancel {quote(id)}{options}"
        raise RunError(f"run '{id}' is at work in {error.owner}: wait for its end, or `{command}`") from None


def _job(file: str, **options: Any) -> Job:
    """Return the job of a program. Raises OSError, and `ManifestError` where nobody trusts its project."""
    from harnpy.durable.programs import program_job

    require_trust([file])
    try:
        return program_job(file, **options)
    except UnicodeDecodeError:
        raise OSError(EINVAL, "not a text file", file) from None


def awaited(handle: RunHandle, options: str) -> Json:
    """Return what the run comes to. Who is stopped meanwhile learns how it goes on; ``options`` say where."""
    complain(one_line(f"run '{handle.id}'"))
    try:
        return handle.result()
    except Stopped:
        complain(
            one_line(f"run '{handle.id}' goes on with `harnpy run --resume {quote(handle.id)}{options}`")
        )
        raise


def unexplained(error: Exception) -> Exception | None:
    """Say in a line why there is no run, or what has become of it.

    What its program has failed with here is returned: to be shown as that of any program.
    """
    cause = error.__cause__
    if isinstance(error, RunFailed) and isinstance(cause, Exception):
        error = cause
    if not isinstance(error, Fault) or isinstance(error, ManifestError):
        return error
    complain(f"error: {one_line(error.message)}")
    return None
