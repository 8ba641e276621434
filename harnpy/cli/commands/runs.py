"""`harnpy runs` and `harnpy replay`: list runs, show one, compare two, and have durable ones go on or end.

A run is one of an engine, which goes on after its process has ended, or a record that a workflow has left.
Spec: 09 §8, 10 §C19, §C21.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table
from rich.text import Text

from harnpy.cli import FAILED, OK, run_records, tables
from harnpy.cli import run_records as run_lines
from harnpy.cli.command_options import html_option, trust_option, write_page
from harnpy.cli.console import complain, harmless, one_line, say
from harnpy.cli.usage import Group
from harnpy.faults import Fault, MisuseError
from harnpy.formats.dicts import Dict
from harnpy.formats.json import compact_json
from harnpy.project import ManifestError
from harnpy.storage.errors import StorageError
from harnpy.workflow.engines import ENGINES
from harnpy.workflow.engines.contract import COMPLETED, STATUSES, RunInfo, RunQuery
from harnpy.workflow.engines.errors import RunNotFound
from harnpy.workflow.records.differences import run_diff
from harnpy.workflow.records.record import RUNNING
from harnpy.workflow.records.record_files import run_directory
from harnpy.workflow.report import html_diff, html_report
from harnpy.world import World
from harnpy.world.clock import rfc3339

if TYPE_CHECKING:
    from harnpy.workflow.engines.contract import Engine, RunHandle

_WIDTHS = {"id": 40, "workflow": 32, "output": 60}
#: What stands in place of an engine's name for the record of a workflow.
_RECORD = "record"
#: What a list says of a run that nobody works on any more.
_INTERRUPTED = "interrupted"


@click.group("runs", cls=Group, no_args_is_help=False, short_help="List, show and resume runs of workflows.")
@trust_option
def command() -> None:
    """List, show and compare runs of workflows; resume, cancel and fork durable ones."""


# Durable runs: the options that say where they are, and errors in one line.


_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_debug = click.option("--debug", is_flag=True, hidden=True)


def _of_engines(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb the options ``--engine`` and ``--store``."""
    store = click.option(
        "--store", metavar="URL", help="The store of the runs, instead of the session store."
    )
    engine = click.option(
        "--engine",
        type=click.Choice([*ENGINES]),
        metavar="E",
        help="Only runs of this engine: local (the default) or dbos.",
    )
    return engine(store(function))


def _failing(function: Callable[..., int]) -> Callable[..., int]:
    """Report what goes wrong with an engine or its store in one line."""

    @wraps(function)
    def run(**arguments: Any) -> int:
        try:
            return function(**arguments)
        except (Fault, ManifestError) as error:
            complain(f"error: {one_line(error.message)}")
            return FAILED

    return run


def _verb(function: Callable[..., int]) -> Callable[..., int]:
    """Give a verb about a durable run its engine."""

    @_failing
    @wraps(function)
    def run(engine: str | None, store: str | None, **arguments: Any) -> int:
        from harnpy.cli.durable_runs import opened, store_url

        with opened(engine, store_url(store)) as found:
            return function(found, **arguments)

    return _of_engines(run)


def _record_of(error: RunNotFound, verb: str) -> Fault:
    """Return what to say of a run that no engine has: there may be a record."""
    with suppress(MisuseError):
        run_records.load(error.run)
        return MisuseError(f"'{error.run}' is the record of a run that is over: `{verb}` is for durable ones")
    return error


@command.command("list")
@click.option(
    "--dir",
    "directory",
    type=click.Path(exists=True, file_okay=False),
    metavar="D",
    help="The directory of records, instead of HARN_RUN_DIR or .harn-runs.",
)
@click.option(
    "--status", type=click.Choice(STATUSES), metavar="S", help="Only durable runs with this status."
)
@click.option("--queue", metavar="Q", help="Only durable runs in this queue.")
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    metavar="N",
    help="The number of durable runs.",
)
@_of_engines
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@_failing
def list_runs(
    directory: str | None,
    status: str | None,
    queue: str | None,
    limit: int,
    engine: str | None,
    store: str | None,
    as_json: bool,
) -> int:
    """List runs, newest first: durable ones, and those that left a record.

    Records are searched for where workflows write them, and in the directories below.
    """
    where = Path(directory or run_directory(World()))
    statuses = None if status is None else frozenset((status,))
    durable, left = _durable(engine, store, directory, RunQuery(statuses, queue, limit=limit))
    # What asks for durable runs, by what records don't have, is shown no records.
    only_durable = engine is not None or store is not None or status is not None or queue is not None
    records = [] if only_durable else run_records.summaries(where)
    found = {run.id: {**_row(run), "left": run.id in left} for run in durable}
    for record in records:
        own = {**record.as_dict(), "engine": _RECORD}
        if record.status == RUNNING and record.parent_run_id in left:
            own["left"] = True  # nobody works on the run that it is of
        found[record.id] = _merged(found[record.id], own) if record.id in found else own
    rows = sorted(found.values(), key=lambda run: (run["started_at"], run["id"]), reverse=True)
    if as_json:
        say(json.dumps(rows, indent=2, sort_keys=True, ensure_ascii=False))
    elif rows:
        tables.show(_table(rows), tables.UNBROKEN)
        for run in rows:
            if run["id"] in left:
                complain(_interrupted(run["id"]))
    else:
        say(f"no runs in {store or where}")
    return OK


def _interrupted(id: str) -> str:
    command = f"harnpy runs resume {quote(id)}{_options()}"
    return one_line(f"run '{id}' was interrupted: it goes on with `{command}`")


def _durable(
    engine: str | None, store: str | None, directory: str | None, query: RunQuery
) -> tuple[list[RunInfo], set[str]]:
    """Return the runs of an engine, and the ids of those that nobody works on any more.

    Where nobody has named an engine, there may be none to be asked.
    """
    from harnpy.cli.durable_runs import is_left_in, opened, skipped, store_url
    from harnpy.storage.opening import is_there

    is_asked = engine is not None or store is not None
    if directory is not None and not is_asked:
        return [], set()
    try:
        url = store_url(store)
        if not is_there(url):
            return [], set()
        with opened(engine, url) as found:
            found.on_unreadable = skipped
            runs = found.runs(query)
            return runs, {run.id for run in runs if is_left_in(found, run)}
    except (ManifestError, StorageError) as error:
        if is_asked:
            raise
        complain(f"warning: durable runs aren't shown: {one_line(error.message)}")
        return [], set()


def _row(run: RunInfo) -> Dict:
    """Return a durable run with the keys that records have, and its own."""
    started = run.started or run.created
    return {
        "id": run.id,
        "engine": run.engine,
        "workflow_id": run.kind,
        "workflow_name": run.name,
        "status": run.status,
        "started_at": rfc3339(started),
        "finished_at": _time(run.finished),
        "duration_ms": None if run.finished is None else round((run.finished - started) * 1000),
        "stages": None,
        "cost": None,
        "path": None,
        "queue": run.queue,
        "priority": run.priority,
        "worker": run.worker,
        "attempt": run.attempt,
        "created_at": rfc3339(run.created),
        "due_at": _time(run.due),
        "forked_from": run.forked_from,
        "attributes": dict(run.attributes),
        "error": run.error,
    }


def _merged(run: Dict, record: Dict) -> Dict:
    """Return a durable run with what its record knows besides."""
    return {**run, **{key: record[key] for key in ("workflow_id", "workflow_name", "stages", "cost", "path")}}


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else rfc3339(seconds)


@command.command("show")
@click.argument("id")
@_of_engines
@_json
@_failing
def show(id: str, engine: str | None, store: str | None, as_json: bool) -> int:
    """Show the durable run ID, or inspect the record of that id or in that file."""
    run = _found(engine, store, id)
    if not isinstance(run, tuple):
        record = _loaded(id, run)
        if as_json:
            say(json.dumps(record, indent=2, sort_keys=True, ensure_ascii=False))
        else:
            _say_all(run_lines.inspection_lines(record))
        return OK
    info, job, steps, is_left = run
    if as_json:
        say(compact_json({**_row(info), "job": job, "stages": len(steps), "left": is_left}))
        return OK
    _say_all(_lines(info, len(steps), is_left))
    for record in run_records.records_of(id):
        name = record.workflow_name or record.workflow_id
        say(one_line(f"Workflow {name}: {record.status}: `harnpy runs inspect {quote(record.id)}`"))
    if is_left:
        say(_interrupted(id))
    return OK


@command.command("steps")
@click.argument("id")
@click.option(
    "--calls", is_flag=True, help="Of a tape, only the models' calls, numbered as for `branch --at`."
)
@_of_engines
@_json
@_failing
def steps(id: str, calls: bool, engine: str | None, store: str | None, as_json: bool) -> int:
    """List the recorded steps of the durable run ID, the effects on a tape, or the stages of a record."""
    from harnpy.tape import names_tape

    if names_tape(id):
        from harnpy.cli.tapes import list_effects

        return list_effects(id, calls, as_json)
    if calls:
        raise click.UsageError(f"'{id}' isn't a tape, and only tapes have calls of models listed")
    run = _found(engine, store, id)
    if not isinstance(run, tuple):
        found: list[Dict] = [
            {"n": n, "key": stage["node_id"], "output": stage["visible_text"], "time": stage["finished_at"]}
            for n, stage in enumerate(_loaded(id, run)["stages"], 1)
        ]
    else:
        found = [{**step._asdict(), "time": rfc3339(step.time)} for step in run[2]]
    if as_json:
        for step in found:
            say(compact_json(step))
    elif found:
        cells = [
            (
                tables.cell(str(step["n"])),
                tables.cell(step["key"]),
                tables.cell(step["time"] or "-"),
                tables.cell(compact_json(step["output"]), _WIDTHS["output"]),
            )
            for step in found
        ]
        tables.show(tables.table(("n", "step", "recorded", "output"), cells, ("n",)), tables.UNBROKEN)
        for record in run_records.records_of(id):
            name = record.workflow_name or record.workflow_id
            complain(one_line(f"the stages of workflow '{name}': `harnpy runs inspect {quote(record.id)}`"))
    else:
        say(f"no steps of {one_line(id)}")
    return OK


def _found(
    engine: str | None, store: str | None, id: str
) -> tuple[RunInfo, Any, list[Any], bool] | ManifestError | StorageError | None:
    """Return what an engine knows of a run: facts, job, steps, whether it is left. None when none has it.

    Where nobody has named an engine, the error by which it can't be asked is returned: there may be a record.
    Raises `RunNotFound` when one was named.
    """
    from msgspec import to_builtins

    from harnpy.cli.durable_runs import is_left_in, opened, store_url
    from harnpy.storage.opening import is_there

    is_asked = engine is not None or store is not None
    try:
        url = store_url(store)
        if not is_asked and not is_there(url):
            return None
        with opened(engine, url) as found:
            info = found.get(id)
            if info is not None:
                return info, to_builtins(found.job(id)), found.steps(id), is_left_in(found, info)
    except (ManifestError, StorageError) as error:
        if is_asked:
            raise
        return error
    if is_asked:
        raise RunNotFound(id)
    return None


def _loaded(id: str, error: Exception | None) -> Any:
    """Return the record of a run. Raises ``error``, else `RunNotFound`, when there is none of what looks like
    an id."""
    try:
        return run_records.load(id)
    except MisuseError:
        if os.path.exists(id):
            raise
        raise error or RunNotFound(id) from None


def _lines(run: RunInfo, count: int, is_left: bool) -> Iterable[str]:
    row = _row(run)
    yield f"Run: {one_line(run.id)}"
    yield f"Engine: {run.engine}"
    yield f"Job: {one_line(run.name)} ({one_line(run.kind)})"
    yield f"Status: {_INTERRUPTED if is_left else run.status}"
    if run.error is not None:
        yield f"Error: {harmless(run.error)}"
    yield f"Steps: {count}"
    yield f"Attempts: {run.attempt}"
    for name, key in (
        ("Queue", "queue"),
        ("Worker", "worker"),
        ("Created", "created_at"),
        ("Due", "due_at"),
        ("Finished", "finished_at"),
        ("Forked from", "forked_from"),
    ):
        if row[key] is not None:
            yield f"{name}: {one_line(row[key])}"
    for key, value in run.attributes.items():
        yield f"Attribute {one_line(key)}: {one_line(value)}"


@command.command("cancel")
@click.argument("id")
@click.option("--reason", default="", metavar="TEXT", help="Why.")
@_verb
def cancel(engine: Engine, id: str, reason: str) -> int:
    """Cancel the durable run ID; it stops within a second."""
    try:
        if engine.cancel(id, reason=reason):
            say(one_line(f"cancelled {id}"))
            return OK
    except RunNotFound as error:
        raise _record_of(error, "cancel") from None
    info = engine.get(id)
    complain(one_line(f"error: {id} is {'over' if info is None else info.status}: nothing has changed"))
    return FAILED


@command.command("delete")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@_verb
def delete(engine: Engine, ids: tuple[str, ...]) -> int:
    """Delete durable runs that have ended. Their sessions are kept."""
    for id in ids:
        try:
            engine.delete(id)
        except RunNotFound as error:
            raise _record_of(error, "delete") from None
        say(one_line(f"deleted {id}"))
    return OK


@command.command("resume")
@click.argument("id")
@_json
@_verb
def resume(engine: Engine, id: str, as_json: bool) -> int:
    """Resume the durable run ID here, at its first step without a record, and wait for its end."""
    from harnpy.cli.durable_runs import held_by_another, require_trusted

    try:
        info, job = engine.get(id), engine.job(id)
        if info is not None and info.status != COMPLETED:
            require_trusted(job)
        with held_by_another(id, _options()):
            handle = engine.resume(id)
        return _followed(handle, as_json)
    except RunNotFound as error:
        raise _record_of(error, "resume") from None


@command.command("fork")
@click.argument("id")
@click.option(
    "--from", "step", required=True, metavar="STEP", help="The step to start from: a number or a key."
)
@click.option("--run-id", metavar="ID", help="The new run's id.")
@_json
@_verb
def fork(engine: Engine, id: str, step: str, run_id: str | None, as_json: bool) -> int:
    """Create a run with the records of ID before STEP, execute it here, and wait for its end."""
    from harnpy.cli.durable_runs import require_trusted

    at = int(step) if step.isascii() and step.isdecimal() else step
    try:
        require_trusted(engine.job(id))
        return _followed(engine.fork(id, at, new_id=run_id), as_json)
    except RunNotFound as error:
        raise _record_of(error, "fork") from None


def _options() -> str:
    """Return the options of this command that say where the run is."""
    from harnpy.cli.durable_runs import repeated

    given = click.get_current_context().params
    return repeated(given["engine"], given["store"])


def _followed(handle: RunHandle, as_json: bool) -> int:
    """Wait for the end of a run that this process works on."""
    from harnpy.cli.durable_runs import awaited

    result = awaited(handle, _options())
    sys.stdout.flush()
    status = handle.status()
    if as_json:
        say(compact_json({"id": handle.id, "status": status, "result": result}))
    else:
        say(one_line(f"{status} {handle.id}"))
    return OK


@command.command("inspect")
@click.argument("run")
@click.option("--compare", metavar="BASE", help="Show what changed since the run in BASE.")
@html_option
def inspect(run: str, compare: str | None, page: str | None) -> int:
    """Show a run by its record's file or its id."""
    try:
        record = run_records.load(run)
        base = None if compare is None else run_records.load(compare)
    except MisuseError as error:
        return run_records.unreadable(error)
    _say_all(run_lines.inspection_lines(record))
    if base is not None:
        _say_all(run_lines.difference(run_diff(base, record, World())))
    write_page(page, lambda: html_report(record, os.environ))
    return OK


@command.command("diff")
@click.argument("left")
@click.argument("right")
@html_option
@_json
def compare(left: str, right: str, page: str | None, as_json: bool) -> int:
    """Show what changed from the run in LEFT to the run in RIGHT. `harnpy compare` does the same."""
    return compare_any(left, right, page, as_json)


def compare_any(left: str, right: str, page: str | None, as_json: bool) -> int:
    """Print how one run differs from another: two tapes, or two records."""
    from harnpy.tape import names_tape

    are_tapes = names_tape(left), names_tape(right)
    if all(are_tapes):
        from harnpy.cli.tapes import compare_tapes

        return compare_tapes(left, right, page, as_json)
    if any(are_tapes):
        tape, other = (left, right) if are_tapes[0] else (right, left)
        raise click.UsageError(f"'{tape}' is a tape and '{other}' is none: compare two of a kind")
    return _compare_records(left, right, page, as_json)


def _compare_records(left: str, right: str, page: str | None, as_json: bool) -> int:
    """Print what changed from one stored run to another."""
    try:
        before, after = run_records.load(left), run_records.load(right)
    except MisuseError as error:
        return run_records.unreadable(error)
    found = run_diff(before, after, World())
    if as_json:
        say(json.dumps(found, indent=2, sort_keys=True, ensure_ascii=False))
        write_page(page, lambda: html_diff(before, after, found, os.environ))
        return OK
    sides = (f"{found[f'{side}_run_id']} [{found[f'{side}_status']}]" for side in ("left", "right"))
    say(one_line(" -> ".join(sides)))
    if found["identical"]:
        say("identical")
    elif rows := _changes(before, after, found):
        tables.show(tables.table(("what", "change", "details"), rows), tables.UNBROKEN)
    write_page(page, lambda: html_diff(before, after, found, os.environ))
    return OK


def _changes(before: Mapping[str, Any], after: Mapping[str, Any], found: Dict) -> list[Sequence[Text]]:
    rows: list[Sequence[Text]] = [
        (tables.cell(name), tables.cell(change), tables.cell(detail))
        for name, change, details in run_lines.changes(found)
        for detail in details
    ]
    for name in ("transition", "artifact", "checkpoint"):
        delta = found[f"{name}_count_delta"]
        if delta:
            counts = f"{len(before[f'{name}s'])} -> {len(after[f'{name}s'])}"
            rows.append(
                (
                    tables.cell(f"{name}s"),
                    tables.cell("changed"),
                    tables.cell(counts),
                )
            )
    return rows


def _table(found: Sequence[Dict]) -> Table:
    columns = ("id", "workflow", "engine", "status", "stages", "started (UTC)", "duration", "cost", "path")
    rows = [
        (
            tables.cell(run["id"], _WIDTHS["id"]),
            tables.cell(run["workflow_name"] or run["workflow_id"], _WIDTHS["workflow"]),
            tables.cell(_engine(run), _WIDTHS["id"]),
            tables.cell(_status(run), style=run_lines.style_of(run["status"])),
            tables.cell("-" if run["stages"] is None else str(run["stages"])),
            tables.cell(run_records.to_the_second(run["started_at"])),
            tables.cell(_duration(run["duration_ms"])),
            tables.cell("-" if run["cost"] is None else f"${run['cost']:.4f}"),
            tables.cell(run["path"] or "-"),
        )
        for run in found
    ]
    return tables.table(columns, rows, ("stages", "duration", "cost"))


def _status(run: Dict) -> str:
    return _INTERRUPTED if run.get("left") else str(run["status"])


def _engine(run: Dict) -> str:
    """Return what a run is one of; a record says in which run its workflow ran."""
    parent = run.get("parent_run_id")
    return run["engine"] if parent is None else f"{run['engine']} of {parent}"


def _duration(ms: int | None) -> str:
    if ms is None:
        return "-"
    return f"{ms} ms" if ms < 1000 else f"{ms / 1000:.1f} s"


def _say_all(lines: Iterable[str]) -> None:
    for line in lines:
        say(line)
    sys.stdout.flush()


def replay(run: str, page: str | None) -> int:
    """Print how a stored run went, given its file or id, and whether it passes its own fixture."""
    try:
        record = run_records.load(run)
    except MisuseError as error:
        return run_records.unreadable(error)
    for line in run_lines.replay_lines(record):
        say(line)
    write_page(page, lambda: html_report(record, os.environ))
    return OK
