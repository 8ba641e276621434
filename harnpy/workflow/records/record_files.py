"""Run records in files: loading one or its whole tree, saving, and writing after every stage.

Spec: 08 §8.1–8.2, §8.7; 09 §7.1.
"""

from __future__ import annotations

import os.path
from contextlib import suppress
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar
from warnings import warn

from harnpy.faults import MisuseError
from harnpy.formats.dicts import errors_after
from harnpy.formats.json import parse_json
from harnpy.formats.manifest import require_inside
from harnpy.project import RUNS_VARIABLE, runs_directory
from harnpy.workflow.records.observability import IdentityMemo, Observer, observability
from harnpy.workflow.records.record import derive_run, no_questions, no_requests, normalised_run, read_run
from harnpy.workflow.records.record_shapes import TOO_DEEP, encoded_part, plain_json, pretty_record
from harnpy.world.files import private_files, system_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from msgspec import Raw

    from harnpy.formats.dicts import Dict
    from harnpy.workflow.records.record import HitlOf, QuestionsOf
    from harnpy.workflow.records.record_shapes import ChildRun, RunRecord
    from harnpy.world import World
    from harnpy.world.files import Files

    WhenIdle = Callable[[Callable[[], None]], None]

T = TypeVar("T")


def read_document(path: str, what: str, world: World, parse: Callable[[str], Any] | None = None) -> Any:
    """Return the value in a file: JSON, unless ``parse`` reads another format.

    Raise `MisuseError`: ``failed to read <what>: …``, or ``failed to parse <what>: …`` if ``parse`` raises
    ValueError.
    """
    try:
        text = world.files.read_text(os.path.join(world.files.cwd(), path))
    except (OSError, ValueError) as error:
        raise MisuseError(f"failed to read {what}: {system_reason(error)}") from error
    try:
        return (parse_json if parse is None else parse)(text)
    except ValueError as error:
        raise MisuseError(f"failed to parse {what}: {error}") from error


def names_its_file(read: Callable[[str, World], T]) -> Callable[[str, World], T]:
    """Add the file's path as a note to what a reader raises, whose texts don't name the file."""

    @wraps(read)
    def reading(path: str, world: World) -> T:
        try:
            return read(path, world)
        except MisuseError as error:
            error.add_note(path)
            raise

    return reading


#: JSON nested to level 128 can't be read (04 §11.1): a line inside level 127 may hold one bracket more.
_TOO_FAR_IN = "\n" + " " * (2 * 127)


def run_directory(world: World) -> str:
    """Return the default directory of records, an absolute path."""
    return runs_directory(world.files.cwd(), world.unguarded.environment.get(RUNS_VARIABLE))


def new_path(id: str, world: World) -> str:
    """Return that file for a record that is to be written. Raises `ManifestError` (09 §12.1)."""
    return require_inside(world.unguarded, world.files.cwd(), default_path(id, world))


def default_path(id: str, world: World) -> str:
    """Return the default file of the record with that id."""
    return os.path.join(run_directory(world), f"{id}.json")


def save_run(
    given: Any,
    world: World,
    path: str | None = None,
    asked: QuestionsOf = no_questions,
    hitl: HitlOf = no_requests,
) -> RunRecord:
    """Write a record to its file and return it as written, with `persisted_path`.

    Raise `MisuseError`.
    """
    run = normalised_run(given, world, asked)
    files = world.files if path else world.state_files
    path = path or new_path(run["id"], world)
    run["persisted_path"] = plain_json(path)
    derive_run(run, world, asked, hitl)
    run["observability"] = observability(run, world)
    write_run(path, pretty_record(run), files)
    return run


@names_its_file
def load_run(path: str, world: World) -> RunRecord:
    """Return the record in a file. Raise `MisuseError`."""
    given = read_document(path, "run record", world)
    with errors_after("failed to parse run record: "):
        run = read_run(given, world)
    run["persisted_path"] = run["persisted_path"] or path
    derive_run(run, world)
    run["observability"] = observability(run, world)
    return run


def write_run(path: str, text: str, files: Files, durable: bool = True) -> None:
    """Write a record's text to its file atomically: a reader finds the former text or the new one.

    Unless ``durable``, it survives the end of the process, but maybe not a power failure. Raise
    `MisuseError`, also for values nested too deeply to be read again.
    """
    if _TOO_FAR_IN in text:
        raise MisuseError(f"failed to persist run record: {TOO_DEEP}")
    whole, files = os.path.join(files.cwd(), path), private_files(files)
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


def load(path: str, world: World) -> RunRecord:
    """Call `load_run`: its name until 0.3."""
    warn("load is deprecated: use load_run; it goes with 0.3", DeprecationWarning, stacklevel=2)
    return load_run(path, world)


def load_run_tree(path: str, world: World, above: tuple[str, ...] = ()) -> Dict:
    """Return `{run, children}`. A child without a file, or that would be its own ancestor, is `{worker, run:
    nil, children: []}`. Raise `MisuseError`."""
    run = load_run(path, world)
    lineage = (*above, _whole(path, world))
    return {"run": run, "children": [_subtree(child, world, lineage) for child in run["child_runs"]]}


def _subtree(child: ChildRun, world: World, above: tuple[str, ...]) -> Dict:
    path = child["run_path"]
    if path and _whole(path, world) not in above and world.files.exists(_whole(path, world)):
        return load_run_tree(path, world, above)
    return {"worker": child, "run": None, "children": []}


def _whole(path: str, world: World) -> str:
    return os.path.normpath(os.path.join(world.files.cwd(), path))


# Writing a run's record after every stage, at a cost that doesn't grow. Spec: 08 §8.1–8.2.
#
# Each part is encoded once, and kept so while it is the same object; a save joins and indents the results. So
# parts of the record's lists, and its transcript, must not be changed in place: a change needs a new dict.
# Everything else in the record may change at any time.
#
# Writing a file of some megabytes still takes milliseconds. Where stages end faster than that, a checkpoint
# of a large record waits until the program is idle, or until the next checkpoint that is due.


#: Records up to this many characters are written at every checkpoint …
_SMALL = 1_000_000
#: … a larger one only after this many times the duration of its last save.
_REST = 4


class RunWriter:
    """``run`` is a record with every key (`new_run`). The executor adds to it and calls `checkpoint`, and
    `save` at the end. ``files`` are those that the record is written to, the world's by default.
    ``when_idle(act)`` calls ``act`` when the program waits for something, or at once."""

    def __init__(
        self,
        run: RunRecord,
        path: str,
        world: World,
        when_idle: WhenIdle = lambda act: act(),
        files: Files | None = None,
    ) -> None:
        self.run = run
        self.path = path
        self._world = world
        self._files = world.files if files is None else files
        self._when_idle = when_idle
        self._parts: IdentityMemo[Any, Raw] = IdentityMemo()
        self._observer = Observer(world)
        self._size = 0
        self._due = 0.0
        self._behind = False

    def checkpoint(self) -> None:
        """Write the record, now or soon. Raise `MisuseError`."""
        if self._size <= _SMALL or self._world.clock.monotonic() >= self._due:
            self._write(durable=False)
        elif not self._behind:
            self._behind = True
            self._when_idle(self._try_to_catch_up)

    def catch_up(self) -> None:
        """Write a postponed checkpoint. Raise `MisuseError`."""
        if self._behind:
            self._write(durable=False)

    def _try_to_catch_up(self) -> None:
        with suppress(MisuseError):  # the next checkpoint fails the same way, in its own run
            self.catch_up()

    def save(self) -> None:
        """Write the record so that it survives a power failure. Raise `MisuseError`."""
        self._write(durable=True)

    def _write(self, durable: bool) -> None:
        begun = self._world.clock.monotonic()
        text = self._text()
        write_run(self.path, text, self._files, durable)
        ended = self._world.clock.monotonic()
        self._size, self._behind = len(text), False
        self._due = ended + _REST * (ended - begun)

    def _text(self) -> str:
        """Return the record's text. This updates derived parts (`observability`, `child_runs`, handoffs) and
        removes what JSON can't hold; what was encoded already is plain."""
        run: Any = self.run
        run["persisted_path"] = self.path
        for key, value in run.items():
            if _is_list_of_parts(value):
                value[:] = [item if item in self._parts else plain_json(item) for item in value]
            elif key != "observability":
                run[key] = value if value in self._parts else plain_json(value)
        derive_run(run, self._world)
        run["observability"] = self._observer.observe(run)
        return pretty_record(self._encoded(run))

    def _encoded(self, value: Mapping[str, Any]) -> Dict:
        """Return the record, or its observability, with its parts encoded."""
        return {key: self._entry(key, item) for key, item in value.items()}

    def _entry(self, key: str, value: Any) -> Any:
        if key == "observability" and value is not None:
            return self._encoded(value)
        if _is_list_of_parts(value):
            return self._parts.of_all(value, encoded_part)
        return self._parts.of(value, encoded_part) if key == "transcript" else value


def _is_list_of_parts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)
