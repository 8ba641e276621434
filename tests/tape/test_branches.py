"""Branches: what was recorded up to a call, and from there on live. Spec: 13 §5."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from harnpy.embedding import Vm
from harnpy.llm.reply import Reply
from harnpy.llm.request import Request
from harnpy.session.log import KIND
from harnpy.storage.copying import Rows
from harnpy.storage.opening import open_store
from harnpy.tape import (
    Changes,
    Recording,
    Replaying,
    Tape,
    TapeDiverged,
    TapeError,
    branch,
    effects,
    read_tape,
)
from harnpy.tape.changes import calls_of
from harnpy.vm.errors import VmError
from tests.counts import COUNT
from tests.durable.generated import Program
from tests.durable.runs import Outside
from tests.tape.branched import FORTY, Branch, files_of, record

SHORT = """
let usual = {provider: "p", model: "m", llm_retries: 0}
for n in 1 to 4 {
  println(llm_call("step ${n}", nil, usual).text)
}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows_of(directory: Path, name: str) -> list[tuple[int, str, str]]:
    with closing(open_store(f"sqlite:{directory / 'sessions.db'}")) as store:
        return [(row.seq, row.type, row.data) for row in store.stream(KIND, name, Rows()).read()]


class Recorded:
    """A recorded run of 40 calls: what it had printed and written when the reply to each came."""

    def __init__(self, directory: Path) -> None:
        self.files: list[dict[str, bytes]] = []
        self.events: list[list[tuple[int, str, str]]] = []

        def note(keys: list[str]) -> None:
            if any(key.endswith(":model") for key in keys):
                self.files.append(files_of(directory))
                self.events.append(rows_of(directory, "talk"))

        self.directory = directory
        self.tape, self.output = record(directory, FORTY, on_write=note)
        self.calls = calls_of(self.tape.steps)
        self.final = files_of(directory)
        self.session = rows_of(directory, "talk")

    def printed(self, at: int) -> str:
        """Return what had been printed when the reply to that call came."""
        before = self.tape.steps[: self.calls[at - 1]] if at <= len(self.calls) else self.tape.steps
        return self.output[: sum(step.output[0] for step in before if step.key.endswith(":out"))]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Any:
    directory = tmp_path_factory.mktemp("forty")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        return Recorded(directory)


def shared(at: int) -> bool:
    return at in (1, 2, 40) or at % COUNT.branched_share == 0


@pytest.mark.parametrize("at", list(filter(shared, range(1, 41))))
def test_a_branch_is_its_run_up_to_the_call_and_makes_no_call_before(recorded: Recorded, at: int) -> None:
    made = Branch(recorded.tape, at)
    assert sum(made.outside.asked.values()) == 41 - at
    assert made.printed == recorded.printed(at)
    assert made.files == recorded.files[at - 1]
    # Nobody has changed anything, so it comes to the same.
    assert made.output == recorded.output
    assert made.end == recorded.final
    # What was recorded stays as it was: files, and the session.
    assert files_of(recorded.directory) == recorded.final
    assert rows_of(recorded.directory, "talk") == recorded.session
    fork = made.world.forks.sessions.get("talk")
    events = recorded.events[at - 1]
    if not events:  # the call comes before the session
        assert fork is None
        return
    assert fork is not None
    branched = rows_of(recorded.directory, fork)
    assert branched[1 : len(events)] == events[1:]
    assert [row[:2] for row in branched] == [row[:2] for row in recorded.session]


@pytest.mark.parametrize("seed", COUNT.seeds(COUNT.branched_programs))
def test_generated_programs_come_to_the_same_wherever_they_are_branched(here: Path, seed: int) -> None:
    program, outside = Program(2 * seed), Outside()
    assert program.steady
    try:
        tape, printed = record(here, program.text, outside=outside)
    except VmError:
        tape, printed = read_tape(here / "run.tape"), outside.output()
    assert tape.end is not None
    files = files_of(here)
    for at in range(1, len(calls_of(tape.steps)) + 2):
        again = Outside()
        found = branch(tape, at, world=again, prepare=again.prepare)
        assert again.output() == printed
        assert (found.error is None) is (tape.end.status != "failed")
        assert files_of(here) == files


def test_a_branch_behind_the_last_call_is_the_run(recorded: Recorded) -> None:
    made = Branch(recorded.tape, 41)
    assert not made.outside.asked
    assert made.output == recorded.output
    assert not made.world.is_live


def test_a_branch_can_be_replayed_and_branched_again(here: Path) -> None:
    tape, _ = record(here, SHORT)
    made = Branch(tape, 2, Changes(message="other", options={"temperature": 0.5}))
    assert made.output == "<step 1>\n<other>\n<step 3>\n<step 4>\n"
    origin = made.tape.header.branch
    assert origin is not None
    assert (origin.tape, origin.call) == (str(here / "run.tape"), 2)
    assert origin.changed == ['message "other"', "set temperature=0.5"]
    assert made.path == str(here / "run.branch-2.tape")
    assert replayed(made.tape) == made.output
    again = Branch(made.tape, 4, Changes(message="last"))
    assert again.output == "<step 1>\n<other>\n<step 3>\n<last>\n"
    assert sum(again.outside.asked.values()) == 1
    assert replayed(again.tape) == again.output


def replayed(tape: Tape) -> str:
    outside = Outside()
    vm = Vm(world=Replaying(tape, outside))
    outside.prepare(vm)
    vm.run_recorded()
    assert not outside.asked
    return outside.output()


def test_a_branch_of_a_branch_keeps_the_other_model(here: Path) -> None:
    tape, _ = record(here, SHORT)
    made = Branch(tape, 2, Changes(model="p/n"))
    assert models(made.tape) == ["p/m", "p/n", "p/n", "p/n"]
    assert models(Branch(made.tape, 3).tape) == ["p/m", "p/n", "p/n", "p/n"]


def models(tape: Tape) -> list[str]:
    return [tape.steps[place].output["asked"]["model"] for place in calls_of(tape.steps)]


def test_names_of_tapes_that_are_taken_get_a_number(here: Path) -> None:
    tape, _ = record(here, SHORT)
    names = [Path(Branch(tape, 2).path).name for _ in range(3)]
    assert names == ["run.branch-2.tape", "run.branch-2-2.tape", "run.branch-2-3.tape"]
    assert Branch(tape, 2, out=here / "mine.tape").path == str(here / "mine.tape")
    with pytest.raises(TapeError, match=r"run\.tape is the tape that the branch is made of: choose another"):
        Branch(tape, 2, out="run.tape")
    assert read_tape(here / "run.tape") == tape


@pytest.mark.parametrize(("at", "range"), [(0, "1 to 5"), (6, "1 to 5"), (-1, "1 to 5")])
def test_a_call_that_there_isnt_is_refused(here: Path, at: int, range: str) -> None:
    tape, _ = record(here, SHORT)
    with pytest.raises(TapeError, match=f"has 4 calls of models: a branch is at {range}, not at {at}"):
        Branch(tape, at)
    assert not list(here.glob("*branch*"))


def test_behind_the_end_there_is_no_call_to_change(here: Path) -> None:
    tape, _ = record(here, SHORT)
    with pytest.raises(TapeError, match="ends after 4 calls of models: there is no call 5 to change"):
        Branch(tape, 5, Changes(message="more"))


def test_a_run_that_was_killed_goes_on(here: Path) -> None:
    record(here, SHORT)
    lines = (here / "run.tape").read_text().splitlines(keepends=True)
    calls = [n for n, line in enumerate(lines) if ':model"' in line[:40]]
    (here / "cut.tape").write_text("".join(lines[: calls[2] + 1]))
    made = Branch(read_tape(here / "cut.tape"), 4)
    assert made.output == "<step 1>\n<step 2>\n<step 3>\n<step 4>\n"
    assert list(made.outside.asked) == ["step 4"]


def test_what_a_branch_comes_to_is_returned(here: Path) -> None:
    record(here, SHORT + 'write_file("end.txt", "done")\nreturn 3\n')
    outside = Outside()
    found = branch("run.tape", 3, world=outside, prepare=outside.prepare, keep="kept")
    assert (found.path, found.call, found.value, found.error) == ("run.branch-3.tape", 3, 3, None)
    assert (found.written, found.deleted, found.sessions) == (("end.txt",), (), {})
    assert (here / "kept" / "end.txt").read_text() == "done"
    assert found.tape.end is not None


def test_how_a_branch_fails_is_returned(here: Path) -> None:
    record(here, SHORT)
    outside = Outside()
    found = branch("run.tape", 3, message="fail", world=outside, prepare=outside.prepare)
    assert "too much: fail" in str(found.error)
    assert found.tape.end is not None
    assert found.tape.end.status == "failed"


def test_a_reply_whose_pieces_came_before_and_after_the_call_is_the_tapes(here: Path) -> None:
    source = """
let options = {provider: "p", model: "m"}
let both = parallel each ["slow", "four"] { name ->
  if name == "slow" {
    var text = ""
    for piece in llm_stream("slow", nil, options) { text = text + piece }
    text
  } else { llm_call("four", nil, options).text }
}
println(both)
"""
    outside = Streaming()
    tape, printed = record(here, source, outside=outside)
    kinds = [step.key.rpartition(":")[2] for step in tape.steps]
    places = calls_of(tape.steps)
    assert len(places) == 2
    assert "piece" in kinds[places[1] :], kinds  # the stream goes on behind the other call
    again = Streaming()
    found = branch(tape, 2, world=again, prepare=again.prepare)
    assert found.error is None
    assert again.output() == printed
    assert again.begun == ["four"]


class Streaming(Outside):
    """One that says a text in pieces."""

    def __init__(self) -> None:
        super().__init__()
        self.begun: list[str] = []

    async def complete(self, request: Any) -> Any:
        self.begun.append(request.messages[-1]["content"])
        return await super().complete(request)

    def stream(self, request: Any) -> Any:
        self.begun.append(request.messages[-1]["content"])
        return _pieces()


async def _pieces() -> Any:
    import asyncio

    for piece in ("a", "b", "c", "d", "e", "f"):
        await asyncio.sleep(0)
        yield piece


def test_effects_that_differ_before_the_call_end_the_branch_and_leave_nothing(here: Path) -> None:
    record(here, SHORT)
    (here / "other.harn").write_text(SHORT.replace("for n", 'println(read_file("x"))\nfor n'))
    with pytest.raises(
        TapeDiverged, match="at effect 1: recorded was that it reads the clock, now it reads x"
    ):
        branch("run.tape", 3, code="other.harn", world=Outside())
    assert not list(here.glob("*branch*"))


def test_a_store_that_has_gone_ends_the_branch(here: Path) -> None:
    source = 'agent_session_open("talk", {store: "sqlite:sessions.db"})\n'
    source += 'agent_session_inject("talk", {role: "user", content: "hello"})\n' + SHORT
    record(here, source)
    for path in here.glob("sessions.db*"):
        path.unlink()
    outside = Outside()
    with pytest.raises(
        TapeError,
        match=r"session 'talk' with its 2 records isn't in .* any more, so that there can't be a branch",
    ):
        branch("run.tape", 3, world=outside, prepare=outside.prepare)
    assert not list(here.glob("*branch*"))


class Slow(Outside):
    """An outside whose model takes five seconds for each reply."""

    def __init__(self) -> None:
        super().__init__()
        self.time = 100.0
        self.clock.monotonic = lambda: self.time  # type: ignore[method-assign]

    async def complete(self, request: Request) -> Reply:
        self.time += 5.0
        return await super().complete(request)


@pytest.mark.parametrize("at", [1, 2, 3])
def test_the_call_that_is_made_live_takes_its_time(here: Path, at: int) -> None:
    source = 'for n in 1 to 3 { llm_call("${n}", nil, {provider: "p", model: "m"}) }'
    outside = Slow()
    vm = Vm(Recording("run.tape", outside))
    outside.prepare(vm)
    vm.run_source(source)
    outside = Slow()
    made = branch("run.tape", at, world=outside, prepare=outside.prepare).tape
    assert [call.seconds for call in effects.calls_of(made)] == [5.0, 5.0, 5.0]
