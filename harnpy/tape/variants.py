"""Variants: branches of one call side by side, each made several times; what they come to. Spec: 13 §7."""

from __future__ import annotations

import os
import re
from _thread import interrupt_main
from concurrent.futures import FIRST_COMPLETED, Executor, ProcessPoolExecutor, wait
from functools import partial
from io import StringIO
from multiprocessing import get_context, parent_process
from threading import Thread
from time import sleep
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from msgspec import Struct

from harnpy.faults import OptionError
from harnpy.formats.json import compact_json
from harnpy.formats.options import OptionTable
from harnpy.formats.yaml import YamlError, parse_yaml
from harnpy.tape.branch import branch
from harnpy.tape.changes import Changes, edited_files
from harnpy.tape.comparison import CUT_OFF
from harnpy.tape.effects import calls_of, seconds_of
from harnpy.tape.estimates import Estimate, mean_of, share_of
from harnpy.tape.shown import shown
from harnpy.tape.tapes import COMPLETED, EXITED, TapeError, read_tape
from harnpy.world import World
from harnpy.world.files import make_directories
from harnpy.world.streams import RealStreams

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from harnpy.formats.dicts import Dict
    from harnpy.tape.shown import Prepare
    from harnpy.tape.tapes import Tape

    class Score(Protocol):
        """What is thought of a run: ``score`` from 0 to 1, None where nobody could judge."""

        @property
        def score(self) -> float | None: ...
        @property
        def passed(self) -> bool: ...
        @property
        def reason(self) -> str: ...

    #: Judges the record of a run (08 §8.1).
    Judging = Callable[[Dict], Score]

VARIANT: Final = OptionTable("""
    name: string — how the report calls it; by default what it changes
    message: any — a text, or a message, in place of the last user message of the call
    model: string — the model of the call and of all behind it
    set: dict — options of the call
    edit: string | list | dict — files that are read as they are by now, or each with the one in its place
    code: string — the file of another program
""")
#: The seconds that an interrupted run has to remove what it has made.
_GRACE: Final = 2.0
#: What a variant is called that changes nothing.
_UNCHANGED: Final = "unchanged"


class Variant(NamedTuple):
    """A branch to be made: what it is called, and how it differs from the recorded run."""

    name: str
    changes: Changes


def read_variants(text: str, path: str) -> list[Variant]:
    """Return the variants in the text of a YAML file: a list, or ``{variants: [...]}``.

    Raises `TapeError` for what is none.
    """
    try:
        given = parse_yaml(text, aliases=False)
    except YamlError as error:
        raise TapeError(f"{path} is no YAML: {error}") from None
    listed = given.get("variants") if isinstance(given, dict) else given
    if not isinstance(listed, list) or not listed:
        raise TapeError(f"{path} has no variants: it is a list of dicts, each a variant with its changes")
    found = [_variant(each, f"{path}, variant {number}") for number, each in enumerate(listed, 1)]
    names = [each.name for each in found]
    for name in names:
        if names.count(name) > 1:
            raise TapeError(
                f"{path} has {names.count(name)} variants called '{name}': give each a name of its own"
            )
    return found


def _variant(given: Any, place: str) -> Variant:
    if not isinstance(given, dict):
        raise TapeError(
            f"{place} is no dict of changes: it has a name, and a message, model, set, edit or code"
        )
    try:
        VARIANT.check("a variant", given)
    except OptionError as error:
        raise TapeError(f"{place}: {error.message}") from None
    for key, kind, what in (
        ("name", str, "text"),
        ("model", str, "text"),
        ("code", str, "path"),
        ("set", dict, "dict"),
    ):
        if key in given and not isinstance(given[key], kind):
            raise TapeError(f"{place}: {key} is {compact_json(given[key])}, and must be a {what}")
    changes = Changes(
        message=given.get("message"),
        model=given.get("model"),
        options=given.get("set", {}),
        files=_edited(given.get("edit"), place),
        code=given.get("code"),
    )
    return Variant(given.get("name") or ", ".join(changes.told()) or _UNCHANGED, changes)


def _edited(given: Any, place: str) -> Mapping[str, str]:
    pairs = [given] if isinstance(given, str) else {} if given is None else given
    if isinstance(pairs, list):
        texts = (path.partition("=") for path in pairs if isinstance(path, str))
        pairs = {path: other or path for path, _, other in texts}
    if not isinstance(pairs, dict) or not all(isinstance(each, str) for each in (*pairs, *pairs.values())):
        raise TapeError(
            f"{place}: edit is {compact_json(given)}, and must be a path, a list of paths, or a dict"
        )
    return pairs


class Outcome(Struct, frozen=True):
    """What one run came to. ``seconds`` are those that the program saw pass; ``cost`` is in USD, None where
    no call's price is known; ``score`` and ``passed`` are None where nobody judges."""

    tape: str
    status: str
    is_completed: bool
    error: str | None
    calls: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    seconds: float
    score: float | None = None
    passed: bool | None = None
    reason: str = ""


class Result(Struct, frozen=True):
    """What a variant came to: its runs, and an estimate by figure (`FIGURES`), of those that are known."""

    name: str
    changes: list[str]
    runs: list[Outcome]
    figures: dict[str, Estimate]


class Varied(Struct, frozen=True):
    """What variants of the call ``call`` of ``tape`` came to, beside what was recorded."""

    tape: str
    call: int
    recorded: Outcome
    variants: list[Result]


#: The figures of a variant: shares of its runs, then means.
SHARES: Final = {"completed": "is_completed", "passed": "passed"}
MEANS: Final = ("score", "calls", "input_tokens", "output_tokens", "cost", "seconds")
FIGURES: Final = (*SHARES, *MEANS)


def varied(
    tape: str,
    call: int,
    variants: Sequence[Variant],
    *,
    directory: str,
    runs: int = 1,
    jobs: int = 2,
    judge: Judging | None = None,
    prepare: Prepare | None = None,
    executor: Executor | None = None,
    on_run: Callable[[str, Outcome], object] = lambda name, outcome: None,
) -> Varied:
    """Make ``runs`` branches of the tape's call ``call`` for each variant, ``jobs`` at once, and report them.

    Their tapes go to ``directory``. Each runs in a process of its own, or in the ``executor``;
    ``prepare(vm, file)`` is called with each Vm before its program begins. ``on_run`` is called with the name
    of the variant and what came of a run, when that has ended. Raises `TapeError` when a branch can't be
    made; the others are given up.
    """
    known = read_tape(tape)
    files = World().files
    for each in variants:  # before anything is paid for
        try:
            each.changes.check()
            edited_files(each.changes, files, known.job.body["cwd"])
        except TapeError as error:
            raise TapeError(f"variant '{each.name}': {error}") from None
    recorded = _outcome(known, judge, prepare)
    make_directories(directory)
    if executor is None:
        # A process does one run: nothing of a program stays for the next.
        made = ProcessPoolExecutor(
            jobs, mp_context=get_context("spawn"), initializer=end_with_parent, max_tasks_per_child=1
        )
        with made:
            found = _branched(tape, call, variants, runs, directory, prepare, made)
            outcomes = _judged(found, variants, judge, prepare, on_run)
    else:
        found = _branched(tape, call, variants, runs, directory, prepare, executor)
        outcomes = _judged(found, variants, judge, prepare, on_run)
    results = [
        Result(each.name, each.changes.told(), outcomes[at], _figures(outcomes[at]))
        for at, each in enumerate(variants)
    ]
    return Varied(tape, call, recorded, results)


#: The run of a branch that is under way: the variant's place, and that of the run.
_Places = tuple[int, int]


def _branched(
    tape: str,
    call: int,
    variants: Sequence[Variant],
    runs: int,
    directory: str,
    prepare: Prepare | None,
    executor: Executor,
) -> Mapping[Future[tuple[str, str | None]], _Places]:
    """Begin all branches, the first of each variant first."""
    found: dict[Future[tuple[str, str | None]], _Places] = {}
    for run in range(runs):
        for at, each in enumerate(variants):
            out = os.path.join(directory, f"{_slug(each.name, at)}-{run + 1}.tape")
            found[executor.submit(_make, tape, call, each.changes, out, prepare)] = (at, run)
    return found


def _slug(name: str, at: int) -> str:
    """Return the beginning of a file's name for a variant."""
    word = re.sub(r"[^\w.-]+", "-", name)[:40].strip("-.")
    return f"{at + 1}-{word}" if word else str(at + 1)


def _make(
    tape: str, call: int, changes: Changes, out: str, prepare: Prepare | None
) -> tuple[str, str | None]:
    """Make a branch; return its tape, and why it couldn't be made. In a process of its own."""
    world = World(streams=RealStreams(_ignored, _ignored, StringIO()))
    options: dict[str, Any] = {}
    if prepare is not None:
        options["prepare"] = partial(_prepared, prepare, changes.code or read_tape(tape).job.body["entry"])
    try:
        branch(
            tape,
            call,
            message=changes.message,
            model=changes.model,
            options=changes.options,
            files=changes.files,
            code=changes.code,
            out=out,
            world=world,
            **options,
        )
    except TapeError as error:
        return out, error.message
    return out, None


def end_with_parent() -> None:
    """Have this process end when the one that started it has, so that after Ctrl-C no run asks models any
    more. The program is interrupted, so that its overlay goes."""
    parent = parent_process()

    def watch() -> None:
        assert parent is not None, "it was started by an executor"
        parent.join()
        interrupt_main()
        sleep(_GRACE)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def _prepared(prepare: Prepare, file: str, vm: Any) -> None:
    prepare(vm, file)


def _ignored(text: str) -> None:
    """Print nothing."""


def _judged(
    branches: Mapping[Future[tuple[str, str | None]], _Places],
    variants: Sequence[Variant],
    judge: Judging | None,
    prepare: Prepare | None,
    on_run: Callable[[str, Outcome], object],
) -> list[list[Outcome]]:
    """Return what came of each variant's runs, in their order."""
    found: dict[_Places, Outcome] = {}
    left = set(branches)
    try:
        while left:
            done, left = wait(left, return_when=FIRST_COMPLETED)
            for future in [each for each in branches if each in done]:  # in the order in which they began
                at, run = branches[future]
                path, problem = future.result()
                if problem is not None:
                    raise TapeError(f"variant '{variants[at].name}': {problem}")
                found[at, run] = _outcome(read_tape(path), judge, prepare)
                on_run(variants[at].name, found[at, run])
    finally:
        for future in left:
            future.cancel()
    return [[found[place] for place in sorted(found) if place[0] == at] for at in range(len(variants))]


def _outcome(tape: Tape, judge: Judging | None, prepare: Prepare | None) -> Outcome:
    calls, end = calls_of(tape), tape.end
    costs = [call.cost for call in calls if call.cost is not None]
    score = None if judge is None else judge(record_of(tape, prepare))
    return Outcome(
        tape=tape.path,
        status=CUT_OFF if end is None else end.status,
        is_completed=_is_completed(tape),
        error=None if end is None else end.error,
        calls=len(calls),
        input_tokens=sum(call.input_tokens for call in calls),
        output_tokens=sum(call.output_tokens for call in calls),
        cost=sum(costs) if costs else None,
        seconds=seconds_of(tape),
        score=None if score is None else score.score,
        passed=None if score is None else score.passed,
        reason="" if score is None else score.reason,
    )


def _is_completed(tape: Tape) -> bool:
    end = tape.end
    return end is not None and (end.status == COMPLETED or (end.status == EXITED and not end.value))


def record_of(tape: Tape, prepare: Prepare | None = None) -> Dict:
    """Return a recorded run as judges are shown it (08 §8.7): its stages are what was printed, what was
    returned, the error, and the files that were written."""
    seen = shown(tape, prepare)
    calls = calls_of(tape)
    parts = [("output", seen.output), *_ended(tape)]
    parts += [
        (path, data.decode("utf-8", "replace")) for path, data in seen.files.items() if data is not None
    ]
    status = "completed" if _is_completed(tape) else "failed"
    return {
        "id": os.path.basename(tape.path),
        "workflow_id": tape.job.name,
        "task": tape.job.name,
        "status": status,
        "stages": [{"node_id": name, "status": status, "visible_text": text} for name, text in parts],
        "usage": {
            "input_tokens": sum(call.input_tokens for call in calls),
            "output_tokens": sum(call.output_tokens for call in calls),
            "total_duration_ms": round(seconds_of(tape) * 1000),
            "call_count": len(calls),
            "total_cost": sum(call.cost or 0.0 for call in calls),
            "models": list(dict.fromkeys(call.model for call in calls)),
        },
    }


def _ended(tape: Tape) -> Iterator[tuple[str, str]]:
    end = tape.end
    if end is not None and end.value is not None:
        yield "value", end.value if isinstance(end.value, str) else compact_json(end.value)
    if end is not None and end.error is not None:
        yield "error", end.error


def _figures(runs: Sequence[Outcome]) -> dict[str, Estimate]:
    found: dict[str, Estimate | None] = {}
    for name, key in SHARES.items():
        known = [bool(getattr(run, key)) for run in runs if getattr(run, key) is not None]
        found[name] = share_of(sum(known), len(known))
    for name in MEANS:
        found[name] = mean_of([getattr(run, name) for run in runs if getattr(run, name) is not None])
    return {name: estimate for name, estimate in found.items() if estimate is not None}
