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
from harnpy.workflow.artifacts import HANDOFF
from harnpy.workflow.records.observability import observability
from harnpy.workflow.records.record import derive_run, no_questions, no_requests, normalised_run, read_run
from harnpy.workflow.records.record_lines import GROWING, end, growth, head, parsed, stage_line
from harnpy.workflow.records.record_shapes import TOO_DEEP, data_parts, is_plain, plain_json, pretty_record
from harnpy.world.files import private_files, system_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from harnpy.formats.dicts import Dict
    from harnpy.workflow.records.record import HitlOf, QuestionsOf
    from harnpy.workflow.records.record_shapes import ChildRun, RunRecord
    from harnpy.world import World
    from harnpy.world.files import Files

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
    given = read_document(path, "run record", world, parsed)
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
    require_shallow(text)
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


def require_shallow(text: str) -> None:
    """Raise `MisuseError` for indented JSON that is nested too deeply to be read again."""
    if _TOO_FAR_IN in text:
        raise MisuseError(f"failed to persist run record: {TOO_DEEP}")


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


# Writing a run's record as its stages end, at a cost that doesn't grow. Spec: 08 §8.1–8.2.
#
# The file is in lines (see `record_lines`): a stage that ends adds one. Parts of the record's lists, and its
# transcript, must not be changed in place: a change needs a new dict. Everything else in the record may
# change at any time.


class RunWriter:
    """``run`` is a record with every key (`new_run`). The executor adds to it and calls `checkpoint`, and
    `save` at the end. ``files`` are those that the record is written to, the world's by default. Parts of the
    record with the ``plain`` ids are known to be data."""

    def __init__(
        self,
        run: RunRecord,
        path: str,
        world: World,
        files: Files | None = None,
        plain: Collection[int] = (),
    ) -> None:
        self.run = run
        self.path = path
        self._world = world
        self._files = private_files(world.files if files is None else files)
        self._whole = os.path.join(self._files.cwd(), path)
        self._plain = plain
        self._counts = dict.fromkeys(GROWING, 0)
        self._stages = 0
        self._artifacts = 0
        self._former = 0  # stages of the head
        self._metadata: Dict | None = None
        #: The file as it was left: another one, or another size, is somebody else's work. None before the
        #: first write, and while one goes on.
        self._left: tuple[int, int] | None = None
        self._begun = self._ended = False

    def checkpoint(self) -> None:
        """Write what is new. It survives the end of the process, but maybe not a power failure.

        Raise `MisuseError`, also for values nested too deeply to be read again.
        """
        run, known = self.run, self._stages
        if known == len(run["stages"]) or not self._is_ours():
            self._begin()
            return
        former = self._artifacts
        self._settle()
        try:
            lines, counts = self._lines(known)
        except UnicodeEncodeError:
            self._stages, self._artifacts = known, former
            self._settle(thorough=True)
            lines, counts = self._lines(known)
        self._append(lines)
        self._counts, self._metadata = counts, run["metadata"]

    def _lines(self, known: int) -> tuple[bytes, dict[str, int]]:
        """Return the lines of the stages behind those that are ``known``, and how long lists are now."""
        stages, counts = self.run["stages"], {**self._counts}
        lines = [
            stage_line(
                stages[place],
                self._news(counts) if place + 1 == len(stages) else {},
                stages[place - 1] if place else None,
            )
            for place in range(known, len(stages))
        ]
        return b"".join(lines), counts

    def save(self) -> None:
        """Write the end, so that the record survives a power failure. Raise `MisuseError`."""
        run = self.run
        if self._stages < len(run["stages"]) or not self._is_ours():
            self._begin(whole=True)
            return
        self._settle(thorough=True)
        run["observability"] = observability(run, self._world)
        counts = {**self._counts}
        self._append(end(run, self._news(counts)), ends=True, durable=True)
        self._counts = counts

    def leave(self) -> None:
        """Make the file whole for a run that is interrupted: it says that the run goes on."""
        if not self._begun or self._ended:
            return
        with suppress(MisuseError):  # what interrupts the run is raised already
            if self._left is None:  # a write was interrupted, and nobody knows how far it came
                self._begin(whole=True)
            elif self._is_ours():
                self._append(end(self.run, {}), ends=True)

    def _begin(self, whole: bool = False) -> None:
        """Write the head, with all stages so far; with the end, too, if the file is to be ``whole``."""
        run: Any = self.run
        run["persisted_path"] = self.path
        for key, value in run.items():
            if not _is_list_of_parts(value) and key != "observability":
                run[key] = plain_json(value)
        self._stages = self._artifacts = 0
        self._counts = dict.fromkeys(GROWING, 0)
        self._left, self._begun, self._ended = None, True, False
        self._settle(thorough=True)
        text = head(run, run["stages"])
        if whole:
            run["observability"] = observability(run, self._world)
            text += end(run, {})
        write_run(self._whole, text.decode(), self._files, durable=whole)
        for key in GROWING:
            self._counts[key] = len(run[key])
        self._metadata, self._ended = run["metadata"], whole
        self._left = self._found()

    def _settle(self, thorough: bool = False) -> None:
        """Remove what JSON can't hold from what is new, and bring derived parts up to date."""
        run: Any = self.run
        stages, artifacts = run["stages"], run["artifacts"]
        if not thorough and self._is_data():
            self._stages, self._artifacts = len(stages), len(artifacts)
            return
        plain: dict[int, Any] = {}  # the stages' artifacts, as they will be read back
        derives = bool(run["handoffs"])
        for place in range(self._stages, len(stages)):
            stage = stages[place]
            known = _readable(stage)
            pairs = zip(stage["artifacts"], known["artifacts"], strict=True)
            plain |= {id(former): new for former, new in pairs}
            if known is not stage:
                if run["transcript"] is stage["transcript"]:
                    run["transcript"] = known["transcript"]
                stages[place] = known
            derives = derives or "worker" in known["metadata"]
        for place in range(self._artifacts, len(artifacts)):
            artifact = artifacts[place]
            same = plain.get(id(artifact))
            artifacts[place] = _readable(artifact) if same is None else same
            derives = derives or artifact["kind"] == HANDOFF
        for key in GROWING:
            known = self._counts[key]
            run[key][known:] = map(plain_json, run[key][known:])
        if run["metadata"] is not self._metadata:
            run["metadata"] = plain_json(run["metadata"])
        if derives:
            derive_run(run, self._world)
        self._stages, self._artifacts = len(stages), len(artifacts)

    def _is_data(self) -> bool:
        """Return whether all that is new can be written as it is, and nothing follows from it."""
        run: Any = self.run
        stages = run["stages"][self._stages :]
        made = run["artifacts"][self._artifacts :]
        derives = run["handoffs"] or any("worker" in stage["metadata"] for stage in stages)
        if derives or any(artifact["kind"] == HANDOFF for artifact in made):
            return False
        news = [run[key][self._counts[key] :] for key in GROWING if key not in _OF_TEXTS]
        if run["metadata"] is not self._metadata:
            news.append(run["metadata"])
        came_to = [stage[key] for stage in stages for key in _OPEN]
        return data_parts([came_to, made, news], self._plain) is not None

    def _news(self, counts: dict[str, int]) -> Dict:
        """Return what the record has got since the last line, beside stages."""
        run = self.run
        news = {**growth(run, counts), "usage": run["usage"]}
        if run["metadata"] is not self._metadata:
            news["metadata"] = run["metadata"]
        if run["handoffs"]:
            news |= {"handoffs": run["handoffs"], "artifacts": run["artifacts"]}
        return news

    def _append(self, line: bytes, ends: bool = False, durable: bool = False) -> None:
        left, self._left = self._left, None  # in case it fails
        assert left is not None, "a head is written first"
        try:
            self._files.write_bytes(self._whole, line, append=True, durable=durable)
        except (OSError, ValueError) as error:
            raise _failure("persist run record", self._whole, error) from error
        self._ended = ends
        self._left = (left[0], left[1] + len(line))

    def _is_ours(self) -> bool:
        """Return whether the file is as it was left."""
        return self._left is not None and self._left == self._found() and not self._ended

    def _found(self) -> tuple[int, int] | None:
        try:
            status = self._files.status(self._whole)
        except (OSError, ValueError):
            return None
        return status.st_ino, status.st_size


def _readable(part: Any) -> Any:
    """Return a part of a record's list as it will be read back; itself if nothing changes."""
    if is_plain(part):
        return part
    known = plain_json(part)
    require_shallow(pretty_record([[known]]))
    return known


#: Lists whose parts hold nothing but texts and lists of them, whatever the stages came to.
_OF_TEXTS = ("transitions", "checkpoints")
#: What of a stage may hold anything; the executor makes the rest, of texts and numbers.
_OPEN = ("visible_text", "private_reasoning", "transcript", "artifacts", "verification", "metadata")


def _is_list_of_parts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)
