"""Durable runs for the command line: their engine, the program that one does, and its end.

Who stops a command that works on a run gives the run back: it goes on where its last step was recorded.
Spec: 09 §2.9, 10 §C19, §C21.
"""

from __future__ import annotations

import os.path
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from harnpy.cli import FAILED, Stopped
from harnpy.cli.commands.run import exit_status, failed, warn
from harnpy.cli.console import complain, one_line
from harnpy.cli.project_setup import bind_project, require_trust
from harnpy.durable import BODIES, programs
from harnpy.faults import Fault
from harnpy.project import ManifestError
from harnpy.session.stores import store_settings
from harnpy.storage.opening import parse_url
from harnpy.workflow.engines import open_engine
from harnpy.workflow.engines.contract import PROGRAM
from harnpy.workflow.engines.errors import RunError, RunFailed
from harnpy.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy import Vm
    from harnpy.cli.commands.run import Options
    from harnpy.workflow.engines.contract import Engine, Job, Json, RunContext, RunHandle

LOCAL = "local"
#: The engines that a command may name.
ENGINES = (LOCAL, "dbos")


def store_url(url: str | None) -> str:
    """Return the URL of the store that runs are in, as that of sessions. Raises `ManifestError`."""
    return url or store_settings(World()).url


def is_there(url: str) -> bool:
    """Return whether opening the store creates nothing. Raises `StorageError`."""
    parsed = parse_url(url)
    return parsed.scheme not in ("sqlite", "jsonl") or os.path.exists(parsed.target)


@contextmanager
def opened(engine: str | None, url: str) -> Iterator[Engine]:
    """The engine of that name, ``local`` by default. What it still works on in the end is given back."""
    found = open_engine(engine or LOCAL, url, bodies={**BODIES, PROGRAM: _run_program})
    try:
        yield found
    finally:
        found.close()


def _run_program(job: Job, run: RunContext) -> Json:
    def prepare(vm: Vm) -> None:
        vm.careful, vm.on_warnings = True, warn
        bind_project(vm, job.body["entry"])

    return programs.run(job, run, prepare=prepare)


def execute(options: Options) -> int:
    """Do what `harnpy run --durable` and `--resume` ask for; return the exit status."""
    try:
        if options.file is not None:
            require_trust([options.file])
        job = None if options.file is None else programs.program_job(options.file, args=options.args)
        with opened(options.engine, store_url(options.store)) as engine:
            if options.resume is not None:
                handle = engine.resume(options.resume, job=_changed(engine, options.resume, job, options))
            else:
                assert job is not None
                handle = engine.start(job, id=options.run_id, queue=options.queue)
            if options.queue is not None:
                print(handle.id)
                return 0
            complain(one_line(f"run '{handle.id}'"))
            return _ended(handle, options.debug)
    except Exception as error:
        return _refused(error, options.debug)


def _changed(engine: Engine, id: str, job: Job | None, options: Options) -> Job | None:
    """Return the job that a run is to go on as, None for the one that it has."""
    if job is None and not options.accept_changes:
        return None
    stored = engine.job(id)
    if job is not None:
        if stored.kind != PROGRAM:
            raise RunError(f"run '{id}' does a {stored.kind}: a file can only take the place of a program")
        kept = {"args": options.args or stored.body["args"], "pipeline": stored.body.get("pipeline")}
        stored = replace(job, body={**job.body, **kept}, store=stored.store)
    if options.accept_changes:
        stored = replace(stored, body={**stored.body, "accept_changes": options.accept_changes})
    return stored


def awaited(handle: RunHandle) -> Json:
    """Return what the run comes to. Who is stopped meanwhile learns how it goes on."""
    try:
        return handle.result()
    except Stopped:
        complain(one_line(f"run '{handle.id}' goes on with `harnpy run --resume {handle.id}`"))
        raise


def _ended(handle: RunHandle, debug: bool) -> int:
    value = awaited(handle)
    if isinstance(value, dict) and value.keys() == {"exit"}:
        value = value["exit"]
    return exit_status(value)


def _refused(error: Exception, debug: bool) -> int:
    """Say why there is no run, or how it failed, as `harnpy run` says it; return the exit status."""
    cause = error.__cause__
    if isinstance(error, RunFailed) and isinstance(cause, Exception) and not isinstance(cause, RunError):
        error = cause
    if isinstance(error, Fault) and not isinstance(error, ManifestError):
        complain(f"error: {one_line(error.message)}")
        return FAILED
    return failed(error, debug)
