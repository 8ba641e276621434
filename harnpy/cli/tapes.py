"""Tapes for the command line: what is on one, two compared, variants of one. Spec: 13 §6, §7."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final

from harnpy.cli import FAILED, OK, tables
from harnpy.cli.command_options import write_page
from harnpy.cli.console import complain, counted, harmless, one_line, paint, report_failure, say
from harnpy.cli.replays import bound, unchanged_disk
from harnpy.formats.json import compact_json
from harnpy.formats.markup import count, duration, money
from harnpy.workflow.report.diff_report import (
    branch_in_words,
    numbers_of,
    place_in_both,
    said_of,
    tokens_of,
    totals_of,
)
from harnpy.workflow.report.variant_report import NAMES, figure, figures_in, recorded_figure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rich.text import Text

    from harnpy.formats.dicts import Dict
    from harnpy.llm.call import Models
    from harnpy.workflow.evaluation import EvalPack, JudgeScore

_WIDTHS = {"task": 40, "what": 100, "reply": 60}


def _failed(error: Exception) -> int:
    sys.stdout.flush()
    return report_failure(error, debug=False) or FAILED


# What commands do.


def compare_tapes(before: str, after: str, page: str | None, as_json: bool) -> int:
    """Print how the tape ``after`` differs from the tape ``before``."""
    from msgspec import to_builtins

    from harnpy.tape import TapeError
    from harnpy.tape.comparison import compared
    from harnpy.workflow.report import html_tapes

    try:
        with unchanged_disk():
            found = to_builtins(compared(before, after, prepare=bound))
    except TapeError as error:
        return _failed(error)
    if as_json:
        say(compact_json(found))
    else:
        show_comparison(found)
    write_page(page, lambda: html_tapes(found, os.environ))
    return OK


def list_effects(path: str, only_calls: bool, as_json: bool) -> int:
    """Print the effects on a tape, or only the calls of models."""
    from msgspec import to_builtins

    from harnpy.tape import read_tape
    from harnpy.tape.effects import calls_of, effects_of

    tape = read_tape(path)
    found = to_builtins(calls_of(tape) if only_calls else effects_of(tape))
    if as_json:
        for each in found:
            say(compact_json(each))
    elif not found:
        say(f"no {'calls of models' if only_calls else 'effects'} on {one_line(path)}")
    elif only_calls:
        show_calls(found)
    else:
        show_effects(found)
    return OK


def vary(
    run: str,
    at: int,
    out: str | None,
    variants: str,
    runs: int,
    jobs: int | None,
    judge: str | None,
    llm_mock: str | None,
    page: str | None,
    as_json: bool,
) -> int:
    """Make the branches that a file lists, and print what they come to."""
    from contextlib import ExitStack

    from msgspec import to_builtins

    from harnpy.cli.judges import judging
    from harnpy.faults import MisuseError
    from harnpy.llm.errors import FixtureError
    from harnpy.tape.variants import Outcome, read_variants, varied
    from harnpy.workflow.evaluation import load_pack
    from harnpy.workflow.report import html_variants
    from harnpy.world import World

    def told(name: str, outcome: Outcome) -> None:
        said = "" if outcome.score is None else f", score {outcome.score:.2f}"
        complain(one_line(f"{name}: {outcome.status}{said} -> {outcome.tape}"))

    world = World()
    try:
        found = read_variants(world.files.read_text(variants, "replace"), variants)
        with ExitStack() as ending:
            judges = None
            if judge is not None:
                pack = load_pack(judge, world)
                judges = _Judges(pack, ending.enter_context(judging(judge, pack, world, llm_mock)))
            ending.enter_context(unchanged_disk())
            made = varied(
                run,
                at,
                found,
                directory=out or f"{run.removesuffix('.tape')}.variants-{at}",
                runs=runs,
                jobs=jobs or min(os.cpu_count() or 1, 4),
                judge=judges,
                prepare=bound,
                on_run=told,
            )
    except (MisuseError, FixtureError) as error:
        return _failed(error)
    result = {**to_builtins(made), "judges": None if judges is None else judges.used._asdict()}
    if as_json:
        say(compact_json(result))
    else:
        show_variants(result)
    write_page(page, lambda: html_variants(result, os.environ))
    return OK


class _Judges:
    """Judges runs by all rubrics of an eval pack; ``used`` is what that has used."""

    def __init__(self, pack: EvalPack, models: Models) -> None:
        from harnpy.workflow.judge import Usage

        self._pack = pack
        self._models = models
        self.used = Usage()

    def __call__(self, run: Dict) -> JudgeScore:
        from harnpy.workflow.evaluation import judge_run
        from harnpy.workflow.records.record import normalised_run

        score = judge_run(self._pack, None, normalised_run(run, self._models.world), self._models)
        self.used = self.used.plus(score.usage)
        return score


# On a terminal.


def show_effects(effects: Iterable[Dict]) -> None:
    """Print the effects on a tape."""
    rows = [
        (
            tables.cell(str(each["number"])),
            tables.cell("" if each["call"] is None else str(each["call"])),
            tables.cell(each["task"], _WIDTHS["task"]),
            tables.cell(each["kind"]),
            tables.cell(each["what"], _WIDTHS["what"]),
            tables.cell("error" if each["error"] is not None else count(each["size"])),
        )
        for each in effects
    ]
    names = ("n", "call", "task", "kind", "what", "bytes")
    tables.show(tables.table(names, rows, ("n", "call", "bytes")), tables.UNBROKEN)


def show_calls(calls: Iterable[Dict]) -> None:
    """Print the calls of models on a tape."""
    from harnpy.tape.description import last_message

    rows = [
        (
            tables.cell(str(each["number"])),
            tables.cell(str(each["effect"])),
            tables.cell(each["model"]),
            tables.cell(last_message(each["asked"]), _WIDTHS["reply"]),
            tables.cell(said_of(each), _WIDTHS["reply"]),
            *_figures(each),
        )
        for each in calls
    ]
    names = ("call", "effect", "model", "asked", "reply", "in/out", "cost", "time")
    numbers = ("call", "effect", "in/out", "cost", "time")
    tables.show(tables.table(names, rows, numbers), tables.UNBROKEN)


#: What differs of a call beside what is said.
_FIGURES: Final[Sequence[tuple[str, Callable[[Dict], str]]]] = (
    ("in/out", tokens_of),
    ("cost", lambda call: money(call["cost"])),
    ("time", lambda call: duration(call["seconds"] * 1000)),
)


def _figures(call: Dict) -> list[Text]:
    return [tables.cell(show(call)) for _, show in _FIGURES]


def show_comparison(found: Dict) -> None:
    """Print how two tapes differ."""
    before, after = found["a"], found["b"]
    say(one_line(" -> ".join(f"{side['path']} [{side['status']}]" for side in (before, after))))
    for side in (before, after):
        if side["branch"]:
            say(one_line(branch_in_words(side)))
        if side["unreplayed"]:
            say(one_line(f"the replay of {side['path']} ends early: {side['unreplayed']}"))
    if found["is_identical"]:
        say("identical")
        return
    parted = found["parted"]
    if parted is not None:
        at = f" at {parted['place']}," if parted["place"] else ""
        say(one_line(f"they part{at} {place_in_both(parted)}: {parted['words']}"))
    _table(("", "before", "after", "difference"), totals_of(found), ("before", "after", "difference"))
    rows = [*_rows_of_calls(found["calls"])]
    if rows:
        names = ("call", "model", "what", "before", "after")
        _table(names, rows, ("call",))
    for what in ("value", "error"):
        if before[what] != after[what]:
            _heading(what)
            for sign, side in (("-", before), ("+", after)):
                _lines(f"{sign}{_text(side[what])}")
    if found["output"]:
        _heading("output")
        _lines(found["output"])
    files = [file for file in found["files"] if file["change"] != "same"]
    if files:
        _table(("file", "change"), [(file["path"], file["change"]) for file in files])
        for file in files:
            _lines(file["diff"])
    same = len(found["files"]) - len(files)
    if same:
        say()
        say(f"unchanged: {counted(same, 'file')}")
    sessions = [each for each in found["sessions"] if each["diff"]]
    if sessions:
        _table(("session", "events"), [(each["name"], _both(each["a"], each["b"])) for each in sessions])
        for each in sessions:
            _lines(each["diff"])


def show_variants(varied: Dict) -> None:
    """Print what variants of a recorded run came to."""
    from harnpy.cli.judges import usage_lines

    names = figures_in(varied)
    recorded = ("recorded", "", *(recorded_figure(varied, name) for name in names))
    results = (
        (each["name"], str(len(each["runs"])), *(figure(each, name) for name in names))
        for each in varied["variants"]
    )
    heads = ("variant", "runs", *(NAMES[name] for name in names))
    rows = [[tables.cell(text, _WIDTHS["what"]) for text in row] for row in (recorded, *results)]
    tables.show(tables.table(heads, rows, heads[1:]), tables.UNBROKEN)
    if varied["judges"] is not None:
        for line in usage_lines(varied["judges"]):
            say(line)
    for each in varied["variants"]:
        for run in each["runs"]:
            said = run["error"] or (run["reason"] if run["passed"] is False else "")
            if said:
                say(one_line(f"{each['name']}, {run['tape']}: {said}"))


def _rows_of_calls(pairs: Sequence[Dict]) -> Iterator[Sequence[str]]:
    """Yield what differs of each call; one that is the same has no row."""
    for pair in pairs:
        one, other = pair["a"], pair["b"]
        number = numbers_of(pair)
        if one is None or other is None:
            call = one or other
            said = (said_of(call), "") if other is None else ("", said_of(call))
            yield number, call["model"], "removed" if other is None else "added", *said
            continue
        for each in pair["asked"]:
            yield number, other["model"], each["what"], each["a"], each["b"]
        replies = said_of(one), said_of(other)
        if not pair["is_same"]:
            if replies[0] == replies[1]:
                replies = _whole(one), _whole(other)
            if replies[0] != replies[1]:
                yield number, other["model"], "reply", *replies
            for name, show in _FIGURES:
                figures = show(one), show(other)
                if figures[0] != figures[1]:
                    yield number, other["model"], name, *figures


def _whole(call: Dict) -> str:
    return " ".join(filter(None, (call["error"], call["reply"], *(_text(each) for each in call["tools"]))))


def _both(one: int, other: int) -> str:
    return str(one) if one == other else f"{one} -> {other}"


def _text(value: Any) -> str:

    return "-" if value is None else value if isinstance(value, str) else compact_json(value)


def _table(names: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[str] = ()) -> None:
    say()
    cells = [[tables.cell(text, _WIDTHS["what"]) for text in row] for row in rows]
    tables.show(tables.table(names, cells, numbers), tables.UNBROKEN)


def _heading(name: str) -> None:
    say()
    say(f"{name}:")


#: The colours of a diff's lines.
_STYLES = {"+": "green", "-": "red"}


def _lines(diff: str) -> None:
    for line in diff.splitlines():
        style = _STYLES.get(line[:1])
        text = harmless(line)
        say(paint(text, style, sys.stdout) if style else text)
