"""Run records in files. Spec: 08 §8.2, 09 §7.1."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, Any

from harnpy.faults import MisuseError
from harnpy.project import RUNS_VARIABLE, runs_directory
from harnpy.reading.strict import errors_after
from harnpy.workflow.documents import names_its_file, read_document
from harnpy.workflow.records.observability import observability
from harnpy.workflow.records.plain_json import TOO_DEEP, plain, pretty
from harnpy.workflow.records.record import derive, no_questions, no_requests, normalised, read_run
from harnpy.world.files import system_reason

if TYPE_CHECKING:
    from harnpy.workflow.records.record import HitlOf, QuestionsOf
    from harnpy.workflow.records.record_types import RunRecord
    from harnpy.world import World
    from harnpy.world.files import Files

#: JSON nested to level 128 can't be read (04 §11.1): a line inside level 127 may hold one bracket more.
_TOO_FAR_IN = "\n" + " " * (2 * 127)


def run_directory(world: World) -> str:
    """Return the default directory of records, an absolute path."""
    return runs_directory(world.files.cwd(), world.unguarded.environment.get(RUNS_VARIABLE))


def default_path(id: str, world: World) -> str:
    """Return the default file of the record with that id."""
    return os.path.join(run_directory(world), f"{id}.json")


def save(
    given: Any,
    world: World,
    path: str | None = None,
    asked: QuestionsOf = no_questions,
    hitl: HitlOf = no_requests,
) -> RunRecord:
    """Write a record to its file and return it as written, with `persisted_path`.

    Raise `MisuseError`.
    """
    run = normalised(given, world, asked)
    files = world.files if path else world.state_files
    path = path or default_path(run["id"], world)
    run["persisted_path"] = plain(path)
    derive(run, world, asked, hitl)
    run["observability"] = observability(run, world)
    write(path, pretty(run), files)
    return run


@names_its_file
def load(path: str, world: World) -> RunRecord:
    """Return the record in a file. Raise `MisuseError`."""
    given = read_document(path, "run record", world)
    with errors_after("failed to parse run record: "):
        run = read_run(given, world)
    run["persisted_path"] = run["persisted_path"] or path
    derive(run, world)
    run["observability"] = observability(run, world)
    return run


def write(path: str, text: str, files: Files, durable: bool = True) -> None:
    """Write a record's text to its file atomically: a reader finds the former text or the new one.

    Unless ``durable``, it survives the end of the process, but maybe not a power failure. Raise
    `MisuseError`, also for values nested too deeply to be read again.
    """
    if _TOO_FAR_IN in text:
        raise MisuseError(f"failed to persist run record: {TOO_DEEP}")
    whole = os.path.join(files.cwd(), path)
    try:
        files.make_directory(os.path.dirname(whole))
    except (OSError, ValueError) as error:
        raise _failure("create run directory", os.path.dirname(whole), error) from error
    try:
        files.replace_text(whole, text, durable)
    except (OSError, ValueError) as error:
        renaming = isinstance(error, OSError) and error.filename2 is not None
        raise _failure("finalize run record" if renaming else "persist run record", whole, error) from error


def _failure(what: str, path: str, error: Exception) -> MisuseError:
    return MisuseError(f"failed to {what}: {path}: {system_reason(error)}")
