"""What was edited since a program was recorded: its own files, and the files that it reads. Spec: 13 §3.

A program may lie elsewhere by now, on another machine or in another checkout: `Places` says where its paths
are. Files that the program has written itself are its own affair, and no edits.
"""

from __future__ import annotations

import os.path
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.durable.journal import PROCESS, READ, WRITE
from harnpy.durable.values import Unreadable, decode, encode, encode_error
from harnpy.faults import TooLarge
from harnpy.tape.description import kind_of
from harnpy.tape.directory import changed_in
from harnpy.workflow.engines.contract import Step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from harnpy.tape.redaction import Redaction
    from harnpy.workflow.engines.contract import Job, Json
    from harnpy.world.files import Files

#: What returns the content of a file.
_READERS = frozenset({"read_bytes", "read_text"})
#: What returns something that changes with the content.
_MEASURES = frozenset({"status", "modified", "exists", "is_file"})


class Places(NamedTuple):
    """Where the paths of a recorded run are now: what was below ``there`` is below ``here``."""

    there: str
    here: str

    def now(self, path: str) -> str:
        """Return where a recorded absolute path is now."""
        return _moved(path, self.there, self.here)

    def then(self, path: str) -> str:
        """Return where a path would have been when the run was recorded."""
        return _moved(path, self.here, self.there)


def places(job: Job, entry: str) -> Places:
    """Return where a recorded program's paths are, whose entry is now the absolute path ``entry``: that takes
    the place of the recorded one, and so do the directories above as far as they have the same names."""
    body = job.body
    there = os.path.split(os.path.normpath(os.path.join(body["cwd"], body["entry"])))
    here = os.path.split(os.path.normpath(entry))
    if there[1] != here[1]:
        return Places(there[0], here[0])
    while there[1] and there[1] == here[1]:
        there, here = os.path.split(there[0]), os.path.split(here[0])
    return Places(os.path.join(*there), os.path.join(*here))


def _moved(path: str, source: str, target: str) -> str:
    if source == target or not (path == source or path.startswith(source.rstrip("/") + "/")):
        return path
    return os.path.normpath(os.path.join(target, os.path.relpath(path, source)))


def program_edits(
    job: Job, texts: Mapping[str, str], entry: str, is_there: Callable[[str], bool] = lambda path: False
) -> list[str]:
    """Return which of a program's files differ from what was recorded, its entry first, each as
    ``file:line``: the first line that differs. ``texts`` are those of now, by the paths of then. A file that
    ``is_there``, and that nothing imports any more, isn't gone."""
    body = job.body
    cwd, then = body["cwd"], dict(body["files"])
    first = os.path.join(cwd, body["entry"])
    if entry != first:
        then[entry] = then.pop(first, "")
    then = {path: text for path, text in then.items() if path in texts or not is_there(path)}
    order = sorted({*then, *texts}, key=lambda path: (path != entry, path))
    return [edit for path in order if (edit := _edit(_shown(path, cwd), then.get(path), texts.get(path)))]


def _edit(shown: str, then: str | None, now: str | None) -> str | None:
    if then == now:
        return None
    if then is None or now is None:
        return f"{shown} ({'new' if then is None else 'gone'})"
    return f"{shown}:{first_difference(then, now)}"


def first_difference(then: str, now: str) -> int:
    """Return the number of the first line in which two texts differ."""
    before, after = then.splitlines(), now.splitlines()
    for number, (old, new) in enumerate(zip(before, after, strict=False), 1):
        if old != new:
            return number
    # One goes on where the other ends; or only the end of the last line differs.
    return min(len(before), len(after)) + (len(before) != len(after)) or 1


def _shown(path: str, cwd: str) -> str:
    return path.removeprefix(cwd.rstrip("/") + "/")


class Reread(NamedTuple):
    """Records with the content that files have now; the paths that differ, and where, as ``file:line``."""

    steps: list[Step]
    paths: list[str]
    edits: list[str]


def files_read(steps: Sequence[Step]) -> Iterator[str]:
    """Yield the paths of the files whose content a run has read, or that weren't there to be read, and that
    it has not written itself, as the run names them."""
    own = _written(steps)
    seen: set[str] = set()
    for step in steps:
        call = _call(step, READ)
        if call is not None and call[0] in _READERS and call[1] not in {*own, *seen}:
            seen.add(call[1])
            yield call[1]


def reread(steps: Sequence[Step], files: Files, cwd: str, places: Places, redaction: Redaction) -> Reread:
    """Return the records as they would be had the files been then as they are now.

    A file counts that is there and has another content, or wasn't there; and one that is gone, unless a
    process had run before it was read, which may have made it. ``cwd`` is where the run was.
    """
    changed: dict[str, str] = {}
    edits: list[str] = []
    wanted = set(files_read(steps))
    looked: set[str] = set()
    has_made_processes = False
    for step in steps:
        has_made_processes = has_made_processes or kind_of(step.key) == PROCESS
        call = _call(step, READ)
        if call is None or call[0] not in _READERS or call[1] not in wanted - looked:
            continue
        looked.add(call[1])
        path = places.now(os.path.join(cwd, call[1]))
        now = _again(files, call, path)
        if isinstance(now, OSError) and "ok" in step.output and not has_made_processes:
            changed[call[1]] = path
            edits.append(f"{call[1]} (gone)")
        if now is None or isinstance(now, OSError):
            continue
        text = now if isinstance(now, str) else now.decode("utf-8", "replace")
        redaction.learn_from(text)
        if "ok" not in step.output:
            changed[call[1]] = path
            edits.append(f"{call[1]} (new)")
            continue
        then = _text(step.output["ok"])
        if then is not None and redaction.text(text) != then:
            changed[call[1]] = path
            edits.append(f"{call[1]}:{first_difference(then, redaction.text(text))}")
    anew = [_renewed(step, changed, files) for step in steps] if changed else list(steps)
    return Reread(anew, list(changed), edits)


def _renewed(step: Step, changed: Mapping[str, str], files: Files) -> Step:
    call = _call(step, READ)
    if call is None or call[1] not in changed or call[0] not in _READERS | _MEASURES:
        return step
    now = _again(files, call, changed[call[1]])
    if now is None:
        return step
    came = {name: value for name, value in step.output.items() if name not in ("ok", "error")}
    if isinstance(now, OSError):
        return Step(step.key, {**came, "error": encode_error(now)})
    return Step(step.key, {**came, "ok": encode(now, utf8=True)})


def _again(files: Files, call: list[Any], path: str) -> Any:
    """Return what a call of a file comes to now, the error of the system if it fails so; None for what can't
    be asked again."""
    method, _, *rest = call
    if any(isinstance(each, dict) for each in rest):
        return None
    try:
        return getattr(files, method)(path, *rest)
    except OSError as error:
        return error
    except (UnicodeDecodeError, TooLarge):
        return None


def _text(written: Json) -> str | None:
    try:
        value = decode(written)
    except Unreadable:
        return None
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _written(steps: Sequence[Step]) -> set[str]:
    """Return the paths that a run has written, removed or moved, itself or by its processes."""
    calls = [call for step in steps if (call := _call(step, WRITE)) is not None]
    found = {path for call in calls for path in call[1:3] if isinstance(path, str)}
    for step in steps:
        with suppress(Unreadable):  # the program's run meets it, and says so
            found.update(changed_in(step.output).files)
    return found


def _call(step: Step, kind: str) -> list[Any] | None:
    """Return what a step of that kind asked of a file: the method, the path, further arguments."""
    asked = step.output.get("asked") if step.key.endswith(f":{kind}") else None
    is_call = isinstance(asked, list) and len(asked) > 1 and isinstance(asked[1], str)
    return asked if is_call else None
