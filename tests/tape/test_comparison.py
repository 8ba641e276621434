"""Two tapes compared (13 §6): where they part, call by call, and what came of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins

from harnpy.durable.values import encode
from harnpy.formats.json import compact_json
from harnpy.llm.configuration.prices import Price
from harnpy.llm.reply import Reply
from harnpy.llm.request import Request
from harnpy.tape import Tape
from harnpy.tape.branch import branch
from harnpy.tape.comparison import CUT_OFF, Comparison, compared
from harnpy.tape.description import described
from harnpy.tape.effects import calls_of, effects_of
from harnpy.tape.tapes import LAYOUT, End, Header
from harnpy.workflow.engines.contract import Job, Step
from harnpy.workflow.report import html_tapes
from harnpy.world import World
from harnpy.world.streams import RealStreams
from tests.durable.generated import Program
from tests.durable.runs import Outside
from tests.tape.taped import Placed, provided, recorded

ASK = 'llm_call("{}", nil, {{provider: "p", model: "m", llm_retries: 0}}).text'
SOURCE = f"""\
println("begin ${{len(uuid())}}")
let said = {ASK.format("one")}
write_file("out.txt", "it said\\n${{said}}\\n")
let all = parallel each [1, 2] {{ n -> {ASK.format("part ${n}")} }}
println(all)
return said
"""


class Answering(Outside):
    """Models that answer ``answer`` to what ``asked`` is part of."""

    def __init__(self, asked: str, answer: str) -> None:
        super().__init__()
        self._asked = asked
        self._answer = answer

    async def complete(self, request: Request) -> Reply:
        reply = await super().complete(request)
        if self._asked in str(request.messages[-1]["content"]):
            reply.text = self._answer
        return reply


def both(tmp_path: Path, source: str, other: str, outside: Outside | None = None) -> Comparison:
    return compared(
        recorded(tmp_path, source, "a"), recorded(tmp_path, other, "b", outside), prepare=provided
    )


def test_runs_that_did_the_same_are_identical(tmp_path: Path) -> None:
    """Though ids, times and what the order of parallel tasks comes from differ."""
    found = both(tmp_path, SOURCE, SOURCE)
    assert found.is_identical
    assert found.parted is None
    assert [pair.is_same for pair in found.calls] == [True, True, True]
    assert [(file.path, file.change, file.diff) for file in found.files] == [("out.txt", "same", "")]
    assert (found.a.calls, found.a.unreplayed, found.b.unreplayed) == (3, None, None)


@pytest.mark.parametrize("seed", range(0, 24, 2))
def test_generated_programs_are_the_same_twice(tmp_path: Path, seed: int) -> None:
    text = Program(seed).text
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    one, two = (recorded(tmp_path / each, text) for each in ("one", "two"))
    found = compared(one, two, prepare=provided)
    assert found.is_identical, to_builtins(found)


def test_another_question(tmp_path: Path) -> None:
    found = both(tmp_path, SOURCE, SOURCE.replace('"one"', '"two"'))
    parted = found.parted
    assert parted is not None
    assert (parted.a, parted.b) == (3, 3)
    assert parted.place == "main.harn:2:12"
    assert parted.words == (
        "the model is asked with another message: recorded was user: one, now it is user: two"
    )
    assert [(each.what, each.a, each.b) for each in found.calls[0].asked] == [
        ("message", "user: one", "user: two")
    ]
    assert [pair.is_same for pair in found.calls] == [False, True, True]
    assert not found.is_identical
    assert found.output == ""
    (file,) = found.files
    assert file.change == "changed"
    assert file.diff == "--- a/out.txt\n+++ b/out.txt\n it said\n-<one>\n+<two>\n"
    assert (found.a.value, found.b.value) == ("<one>", "<two>")


def test_another_answer_to_the_same_question(tmp_path: Path) -> None:
    found = both(tmp_path, SOURCE, SOURCE, Answering("part 2", "other"))
    parted = found.parted
    assert parted is not None
    assert parted.place == "main.harn:4:39"
    assert parted.words == 'the model p/m answers otherwise: recorded was "<part 2>", now it is other'
    assert [pair.is_same for pair in found.calls] == [True, True, False]
    assert found.output == (
        "--- a/output\n+++ b/output\n begin 36\n-[<part 1>, <part 2>]\n+[<part 1>, other]\n"
    )
    assert [file.change for file in found.files] == ["same"]


def test_another_content_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("sea\n")
    source = 'println("reads")\nprintln(read_file("in.txt"))\n'
    before = recorded(tmp_path, source, "a")
    (tmp_path / "in.txt").write_text("hills\n")
    found = compared(before, recorded(tmp_path, source, "b"))
    assert found.parted is not None
    assert found.parted.place == "main.harn:2:9"
    assert found.parted.words == (
        'the program reads in.txt, and what comes of it differs: recorded was "sea\\n", now it is "hills\\n"'
    )


def test_effects_more_and_fewer(tmp_path: Path) -> None:
    more = (
        f'{SOURCE.replace("return said", "")}\ndelete_file("out.txt")\nwrite_file("new", "n")\nreturn said\n'
    )
    found = both(tmp_path, SOURCE, more)
    assert found.parted is not None
    assert (found.parted.a, found.parted.place) == (None, "main.harn:8:1")
    assert found.parted.words.startswith("the recorded run has ended there, and now it deletes out.txt")
    assert [(file.path, file.change) for file in found.files] == [("out.txt", "changed"), ("new", "added")]
    back = compared(tmp_path / "b.tape", tmp_path / "a.tape", prepare=provided)
    assert back.parted is not None
    assert (back.parted.b, back.parted.place) == (None, "main.harn:8:1")
    assert [(file.path, file.change) for file in back.files] == [("out.txt", "changed"), ("new", "removed")]


def test_only_what_is_printed(tmp_path: Path) -> None:
    found = both(tmp_path, SOURCE, SOURCE.replace("begin", "started"))
    assert found.parted is None
    assert not found.is_identical
    assert "-begin 36\n+started 36\n" in found.output


def test_a_failed_run(tmp_path: Path) -> None:
    found = both(tmp_path, SOURCE, SOURCE.replace("println(all)", 'throw "no"'))
    assert (found.a.status, found.b.status) == ("completed", "failed")
    assert found.b.error is not None
    assert found.b.unreplayed is None


def test_contents_of_files_however_they_come_about(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old\n")
    source = """\
append_file("log", "1\\n")
append_file("log", "2\\n")
let old = read_file("old")
append_file("old", "new\\n")
copy_file("old", "copy")
write_file("gone", "x")
move_file("gone", "there")
"""
    found = compared(recorded(tmp_path, "println(1)", "a"), recorded(tmp_path, source, "b"))
    shown = {file.path: [line[1:] for line in file.diff.splitlines()[2:]] for file in found.files}
    assert shown == {
        "log": ["1", "2"],
        "old": ["old", "new"],
        "copy": ["old", "new"],
        "gone": [],
        "there": ["x"],
    }
    assert all(file.change == "added" for file in found.files)


def test_sessions_by_what_was_appended(tmp_path: Path) -> None:
    source = """\
let id = agent_session_open(nil, {store: "sqlite:s.db"})
agent_session_inject(id, {role: "user", content: "SAID"})
"""
    found = both(tmp_path, source, source.replace("SAID", "other"))
    (session,) = found.sessions
    assert (session.a, session.b) == (2, 2)
    assert "-message_added {role: user, content: SAID}\n" in session.diff.replace(
        "user: SAID", "{role: user, content: SAID}"
    )
    assert found.parted is not None
    assert "to the session" in found.parted.words


def test_equal_lines_far_from_what_differs_are_left_out(tmp_path: Path) -> None:
    source = 'for n in 1 to 20 { println("line ${n}") }\nprintln("END")\n'
    found = both(tmp_path, source, source.replace("END", "other"))
    assert found.output.splitlines()[2:] == [
        "@@ 17 equal lines @@", " line 18", " line 19", " line 20", "-END", "+other",
    ]  # fmt: skip


def reply(text: str, **parts: Any) -> dict[str, Any]:
    return encode(
        Reply(
            text=text, model="m", provider="p", requested_model="m", input_tokens=10, output_tokens=4, **parts
        )
    )


def tape_of(*steps: Step, end: End | None = None) -> Tape:
    header = Header(LAYOUT, "0", Job("runtime", "main.py", {}), 0.0)
    return Tape("t.tape", header, list(steps), end)


ASKED = {"model": "p/m", "messages": {"count": 1, "before": "", "new": [{"role": "user", "content": "hi"}]}}


def test_calls_whose_replies_come_in_pieces() -> None:
    tape = tape_of(
        Step("task_root/1:now", {"ok": None, "at": 1.0}),
        Step("task_root/2:model", {"asked": ASKED, "ok": "he", "at": 2.0}),
        Step("task_root:spawn:1/1:model", {"asked": ASKED, "ok": reply("other"), "at": 2.25}),
        Step("task_root/3:piece", {"ok": "llo", "at": 2.5}),
        Step("output/1:out", [1, 2]),  # type: ignore[arg-type]
        Step("task_root/4:piece", {"ok": reply("hello", price=Price(100.0, 1000.0)), "at": 3.0}),
        Step("task_root/5:model", {"asked": ASKED, "ok": encode(("a", None)), "at": 4.0}),
        Step("task_root/6:piece", {"ok": encode((None, None)), "at": 4.5}),
        Step("task_root/7:model", {"asked": ASKED, "error": {"message": "too much"}, "at": 5.0}),
    )
    first, other, streamed, failed = calls_of(tape)
    assert (first.number, first.effect, first.reply, first.seconds) == (1, 2, "hello", 2.0)
    assert first.cost is not None
    assert (other.number, other.task, other.ordinal, other.seconds) == (2, "task_root:spawn:1", 1, 0.25)
    assert (streamed.number, streamed.ordinal, streamed.reply, streamed.seconds) == (3, 2, "a", 1.5)
    assert (failed.error, failed.said, failed.ordinal) == ("too much", "too much", 3)
    assert [each.call for each in effects_of(tape)] == [None, 1, 2, None, None, 3, None, 4]


def test_what_effects_are_in_words() -> None:
    assert described(("task_root/1:read", None)) == "reads a store"
    assert described(("task_root/2:id", ["new"])) == "makes an id"
    process = "task_root/3:process", ["run", ["sh", "-c", "ls -l"]]
    assert described(process) == 'runs a process sh -c "ls -l"'


def test_a_call_costs_on_the_tape_what_it_has_cost(tmp_path: Path) -> None:
    source = """
      let usual = {provider: "p", model: "gpt-4o"}
      llm_call("one", nil, usual)
      for piece in llm_stream("two", nil, usual) { println(piece) }
      println(llm_session_cost().total_cost)
    """
    outside = Outside()
    tape = recorded(tmp_path, source, outside=outside)
    costs = [call.cost for call in calls_of(tape)]
    total = float(outside.output().splitlines()[-1])
    assert all(costs)
    assert total == pytest.approx(sum(cost for cost in costs if cost is not None))


def test_pieces_of_another_size_are_the_same_reply() -> None:
    one = tape_of(
        Step("task_root/1:model", {"asked": ASKED, "ok": "he"}),
        Step("task_root/2:piece", {"ok": reply("hello")}),
        Step("task_root/3:write", {"asked": ["write_bytes", "x"], "ok": None}),
        end=End("completed"),
    )
    other = tape_of(
        Step("task_root/1:model", {"asked": ASKED, "ok": "h"}),
        Step("task_root/2:piece", {"ok": "ello"}),
        Step("task_root/3:piece", {"ok": reply("hello")}),
        Step("task_root/4:write", {"asked": ["write_bytes", "x"], "ok": None}),
        end=End("completed"),
    )
    assert compared(one, other).parted is None


def test_a_tape_that_was_cut_off_is_compared_as_far_as_it_goes(tmp_path: Path) -> None:
    whole = recorded(tmp_path, SOURCE)
    cut = Tape(whole.path, whole.header, whole.steps[:-4], None)
    found = compared(whole, cut, prepare=provided)
    assert found.b.status == CUT_OFF
    assert found.b.unreplayed is None
    assert found.parted is not None
    assert found.parted.b is None


def test_the_page_is_whole_and_masks_secrets(tmp_path: Path) -> None:
    secret = "sk-proj-4fTq9LxB72"
    found = both(tmp_path, SOURCE, SOURCE.replace('"one"', f'"<b>two</b> {secret}"'))
    page = html_tapes(to_builtins(found))
    assert page.startswith("<!doctype html>")
    assert "main.harn:2:12" in page
    assert "<b>two" not in page
    assert secret not in page
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "")
    for part in ("Totals", "Model calls", "Files"):
        assert part in page
    same = html_tapes(to_builtins(compared(tmp_path / "a.tape", tmp_path / "a.tape", prepare=provided)))
    assert "identical" in same


def test_a_comparison_is_json(tmp_path: Path) -> None:
    found = both(tmp_path, SOURCE, SOURCE.replace('"one"', '"two"'))
    assert '"what":"message"' in compact_json(to_builtins(found))


def test_a_branch_says_what_it_is_of(tmp_path: Path) -> None:
    run = recorded(tmp_path, SOURCE)
    path = str(tmp_path / "branch.tape")
    branch(
        run, 1, message="two", out=path, world=World(streams=RealStreams(str, str)), prepare=Outside().prepare
    )
    found = compared(run, path, prepare=provided)
    assert found.a.branch is None
    assert found.b.branch == {"tape": run.path, "call": 1, "changed": ['message "two"']}
    assert found.b.unreplayed is None
    assert found.parted is not None
    assert found.parted.place == "main.harn:2:12"
    assert [pair.is_same for pair in found.calls] == [False, True, True]
    assert [(file.path, file.change) for file in found.files] == [("out.txt", "changed")]
    page = html_tapes(to_builtins(found))
    assert f"is a branch of {run.path} at call 1" in page


def test_where_they_part_behind_a_changed_call(tmp_path: Path) -> None:
    """The replay of a branch asks what the branch asked, so that it gets to the place."""
    source = SOURCE.replace("return said", 'write_file("last", "LAST")')
    run = recorded(tmp_path, source)
    paths = [str(tmp_path / f"{name}.tape") for name in ("one", "other")]
    (tmp_path / "other.harn").write_text(source.replace("LAST", "other"))
    quiet = World(streams=RealStreams(str, str))
    branch(run, 1, message="two", out=paths[0], world=quiet, prepare=Outside().prepare)
    code = str(tmp_path / "other.harn")
    branch(run, 1, message="two", code=code, out=paths[1], world=quiet, prepare=Outside().prepare)
    found = compared(*paths, prepare=provided)
    assert found.parted is not None
    assert found.parted.place == "other.harn:6:1"
    assert found.parted.words.startswith("recorded was that it writes last: ")


@pytest.mark.parametrize("seed", range(0, 40, 4))
def test_a_branch_without_changes_is_the_same(tmp_path: Path, seed: int) -> None:
    run = recorded(tmp_path, Program(seed).text)
    count = len(calls_of(run))
    if not count:
        pytest.skip("it calls no model")
    path = str(tmp_path / "branch.tape")
    outside = Outside()
    outside.files = Placed(tmp_path)
    branch(run, 1 + seed % count, out=path, world=outside, prepare=outside.prepare)
    found = compared(run, path, prepare=provided)
    assert found.is_identical, to_builtins(found)
