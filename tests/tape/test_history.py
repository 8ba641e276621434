"""The history of a recorded run, and what a move back costs: counted in replays. Spec: 13 §8."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harnpy.cli.debugger.engine import into, over
from harnpy.cli.debugger.rewinding import UnknownPlace
from tests.tape.debugged import Debugged, recorded

LOOP = """\
var n = 0
while n < 1500 {
  n = n + 1
}
write_file("out.txt", "${n}")
move_file("out.txt", "new.txt")
println(read_file("new.txt"))
"""


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Debugged]:
    run = Debugged(recorded(tmp_path, LOOP))
    yield run
    run.close()


def replays_of(run: Debugged, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that grows with each replay of the run."""
    begun: list[int] = []
    replay = run.engine.replay

    def counted() -> int:
        begun.append(run.now)
        return replay()

    monkeypatch.setattr(run.engine, "replay", counted)
    return begun


def test_a_move_back_is_one_replay(loop: Debugged, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = replays_of(loop, monkeypatch)
    loop.go_to("end")
    assert (loop.now, begun) == (1506, [])
    for make in (into, over):
        begun.clear()
        loop.back(make)
        assert len(begun) == 1
    loop.engine.breakpoints.add(str(loop.engine.entry), 3)
    begun.clear()
    loop.back()
    assert (loop.now, len(begun)) == (1502, 1)


@pytest.mark.parametrize(
    ("condition", "moment", "replays"),
    [
        ("n == 1499", 1502, 1),
        ("n == 1498", 1501, 2),
        ("n == 1399", 1402, 2),
        ("n == 600", 603, 3),
        ("n < 0", 1, 4),
    ],
)
def test_conditions_are_looked_at_backwards_more_at_a_time(
    loop: Debugged, monkeypatch: pytest.MonkeyPatch, condition: str, moment: int, replays: int
) -> None:
    loop.go_to("end")
    loop.engine.breakpoints.add(str(loop.engine.entry), 3, condition)
    begun = replays_of(loop, monkeypatch)
    loop.back()
    assert (loop.now, len(begun)) == (moment, replays)
    assert loop.state()["now"] == moment


def test_what_was_there_by_a_moment(loop: Debugged) -> None:
    loop.go_to("end")
    history = loop.engine.history
    kinds = [effect.asked[0] for effect in history.effects]
    assert kinds == ["write_bytes", "rename", "read_bytes"]
    assert [len(history.effects_by(moment)) for moment in (1, 1503, 1504, 1505, 1506)] == [0, 0, 1, 2, 3]
    assert [history.output_by(moment) for moment in (1505, 1506)] == ["", "1500\n"]
    for path in ("out.txt", "new.txt", "./new.txt", f"{history.tape.job.body['cwd']}/new.txt"):
        effect, writing, tool = loop.engine.who_file(path)
        assert (effect.number, writing.moment, tool) == (2, 1504, None)
    loop.stand(1504)
    with pytest.raises(UnknownPlace, match=r"no effect of the program has written new\.txt by now"):
        loop.engine.who_file("new.txt")
    assert loop.engine.who_file("out.txt")[0].number == 1


def test_the_statement_that_asks_may_have_called_others(tmp_path: Path) -> None:
    text = 'fn told() {\n  let t = "t"\n  return t\n}\nwrite_file("f", told())\nlet end = 1\n'
    run = Debugged(recorded(tmp_path, text))
    try:
        run.go_to("end")
        writing: Any = run.engine.who_file("f")[1]
        assert writing.place.endswith("main.harn:5")
        run.go_to(run.engine.history.effect(1))
        assert run.state()["effects"] == 0
        assert [line for *_, line, _, _ in run.state()["tasks"]["task_root"]] == [3, 5]
    finally:
        run.close()


def test_what_failed_has_written_nothing(tmp_path: Path) -> None:
    source = (
        'write_file("a", "1")\ntry { move_file("none", "a") } catch (e) { println("no") }\nprintln("end")\n'
    )
    loop = Debugged(recorded(tmp_path, source))
    loop.go_to("end")
    effect, writing, _ = loop.engine.who_file("a")
    assert (effect.asked[0], writing.place.rpartition(":")[2]) == ("write_bytes", "1")
    loop.close()


def test_a_pause_stops_on_the_way(loop: Debugged) -> None:
    loop.engine.pause()
    assert loop.go_to("end").reason == "pause"
    assert loop.now == 2
    loop.until(900)
    loop.engine.breakpoints.add(str(loop.engine.entry), 3, "n < 0")
    loop.engine.pause()
    assert loop.back().reason == "pause"
    loop.go_to("end")
    assert loop.is_at_end
    loop.back(into)
    (call,) = loop.engine.calls(loop.stop.task)
    loop.engine.pause()
    with pytest.raises(UnknownPlace, match="it was interrupted before that was found"):
        loop.engine.who_variable(call, "n")
    assert loop._come().reason == "pause"
    assert loop.engine.who_variable(call, "n").after == "1500"
