"""What docs/time-machine.md says of harnpy beside other recorders is so, and a cell follows from what a run
did.

The other columns are made by `python bench/time_machine.py --write`, outside CI.
"""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import ROOT


@pytest.fixture(scope="module")
def bench() -> Iterator[dict[str, Any]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "bench")
        yield runpy.run_path(str(ROOT / "bench/time_machine.py"))


def run(bench: dict[str, Any], *lines: str, **known: Any) -> Any:
    traces = {name: [] for name in (*bench["TRACES"], "note.txt")} | known.pop("traces", {})
    usual = {"said": "", "status": 0, "asked": [], "seconds": 1.0, "session": 8, "computed": 0.5}
    return bench["Run"](list(lines), **{**usual, **known}, traces=traces)


def test_the_tables_are_what_was_seen(bench: dict[str, Any]) -> None:
    page = bench["PAGE"].read_text(encoding="utf-8")
    assert bench["page"](page) == page
    assert list(bench["noted"]()) == list(bench["RECORDERS"])


def test_every_recorder_has_a_driver(bench: dict[str, Any]) -> None:
    drivers = {path.stem for path in (ROOT / "bench/tapes").glob("on_*.py")}
    others = {f"on_{name.lower()}" for name in bench["RECORDERS"] if name != bench["OURS"]}
    assert drivers == {*others, "on_plain"}


def test_harnpy_gives_back_what_the_table_says(bench: dict[str, Any], tmp_path: Path) -> None:
    with bench["Model"]() as model:
        desk = bench["Desk"]("harnpy", bench["installed"]("harnpy", tmp_path), tmp_path, model)
        recorded = desk.run(desk.recorder.record)
        assert len(recorded.asked) == bench["CALLS"], recorded.said
        tape, effects, traffic = len(desk.tape()), desk.effects(recorded), model.traffic
        desk.keep()
        desk.fresh()
        (desk.folder / "edition.txt").write_text("edition two\n")
        again = desk.run(desk.recorder.replay)
    case = bench["Case"](recorded, recorded, again, 0)
    assert tape <= bench["BYTES"] * effects
    assert effects > traffic + sum(map(len, recorded.values("process")))
    assert again.asked == []
    assert bench["_bytes"](recorded, again) == "yes"
    cells = {name: judge(case) for name, judge in bench["ASPECTS"].items()}
    assert cells == bench["noted"]()["harnpy"]["cells"]["replayed"]


_TIMES = ["time 1", "now 1", "time 2"]
_CHANCE = ["random 1", "uuid 1", "secret 1"]
_STILL = "part: it stands still, also while it is recorded"


@pytest.mark.parametrize(
    ("aspect", "recorded", "again", "left", "cell"),
    [
        ("files", ["file one"], ["file one"], "", "yes"),
        ("files", ["file one"], ["file one"], "diary.txt", "part: written again"),
        ("processes", ["process 1"], ["process 2"], "probed.txt", "no: they run again"),
        ("clock", _TIMES, ["time 1", "now 3", "time 2"], "", "part: not `datetime.now()`"),
        ("clock", ["time 1", "time 1"], ["time 1", "time 1"], "", _STILL),
        ("random", _CHANCE, ["random 2", "uuid 2", "secret 2"], "", "no: other values"),
        ("streams", ["pieces 9", "streamed x"], ["pieces 1", "streamed x"], "", "part: 1 of 9 pieces"),
        ("tools' effects", ["loop x"], ["loop x"], "ledger.txt", "no: they run again"),
    ],
)
def test_a_cell_follows_from_what_a_run_did(
    bench: dict[str, Any], aspect: str, recorded: list[str], again: list[str], left: str, cell: str
) -> None:
    before = run(bench, *recorded)
    case = bench["Case"](before, before, run(bench, *again, traces={left: ["a line"]}), 0)
    assert bench["ASPECTS"][aspect](case) == cell


def test_parallel_calls_have_their_own_answers_in_their_order(bench: dict[str, Any]) -> None:
    said = ["first-threads b", "threads A B", "first-tasks b", "tasks A B"]
    before = run(bench, *said)

    def cell(lines: list[str], **known: Any) -> str:
        after = run(bench, *lines, **known)
        return str(bench["ASPECTS"]["parallel calls"](bench["Case"](before, before, after, 0)))

    assert cell(said) == "yes"
    assert cell(said, asked=["pair 2 a"]) == "no: asked again"
    assert cell(["first-threads a", *said[1:]]) == "part: threads: they end in another order"
    assert cell([said[0], "threads B A", *said[2:]]) == "part: threads: each gets the other's answer"


def test_a_session_is_kept_once(bench: dict[str, Any]) -> None:
    def cell(rows: int, half: int) -> str:
        case = bench["Case"](run(bench), run(bench), run(bench, session=rows), half)
        return str(bench["ASPECTS"]["sessions"](case))

    assert [cell(8, 0), cell(16, 0)] == ["yes", "no: each message is kept twice"]
    assert [cell(12, 1), cell(16, 1)] == ["yes", "no: each message is kept twice"]


def test_the_budgets_name_what_is_missed(bench: dict[str, Any]) -> None:
    fine = {"ratio": 1.1, "added": 0.1, "bytes": 1.0, "faster": 30.0}
    fine |= {"computed ratio": 1.1, "computed added": 0.1, "bytes of 40": 1.0}
    other = {"added": 0.3, "computed added": 0.3}
    assert bench["missed"]({"harnpy": fine, "other": other}) == []
    assert bench["missed"]({"harnpy": fine | {"ratio": 1.2}}) == ["recording, × plain: 1.20, must 1.15"]
    assert bench["missed"]({"harnpy": fine | {"bytes of 40": 1.4}}) == [
        "tape of 40 calls, × bytes of its effects: 1.40, must 1.30"
    ]
    assert bench["missed"]({"harnpy": fine, "other": other | {"added": 0.1}}) == [
        "seconds that recording adds: 0.10, must 0.05"
    ]
