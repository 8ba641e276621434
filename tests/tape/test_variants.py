"""Variants of a recorded run (13 §7): branches side by side, and what they come to."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec import to_builtins

from harnpy import Vm
from harnpy.formats.dicts import Dict
from harnpy.llm.configuration.prices import Price
from harnpy.llm.reply import Reply
from harnpy.llm.request import Request
from harnpy.tape import TapeError, read_tape
from harnpy.tape.changes import Changes
from harnpy.tape.variants import FIGURES, Variant, Varied, read_variants, record_of, varied
from harnpy.workflow.report import html_variants
from tests.durable.runs import Outside
from tests.tape.taped import recorded

SOURCE = """\
let first = llm_call("first", nil, {provider: "p", model: "m", llm_retries: 0}).text
println(first)
let second = llm_call("second", nil, {provider: "p", model: "m", llm_retries: 0}).text
println(second)
write_file("out.txt", second)
if second.contains("bad") { throw "a bad answer" }
return {said: second}
"""


class Counting(Outside):
    """Models whose n-th answer has n output tokens, and costs a dollar for each. What they are asked."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[Request] = []

    async def complete(self, request: Request) -> Reply:
        self.requests.append(request)
        reply = await super().complete(request)
        reply.output_tokens = len(self.requests)
        reply.price = Price(0.0, 1_000_000.0)
        return reply


class AtOnce(Executor):
    """Does what it is given where it is given."""

    def submit(self, call: Callable[..., Any], /, *args: Any, **options: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(call(*args, **options))
        return done


def told(changes: Changes) -> Variant:
    return Variant(", ".join(changes.told()) or "unchanged", changes)


class Made(NamedTuple):
    varied: Varied
    requests: list[Request]


def made(tmp_path: Path, *variants: Changes, call: int = 2, source: str = SOURCE, **options: Any) -> Made:
    recorded(tmp_path, source, outside=Counting())
    models = Counting()
    found = varied(
        str(tmp_path / "a.tape"),
        call,
        [*map(told, variants)],
        directory=str(tmp_path / "variants"),
        executor=AtOnce(),
        prepare=lambda vm, file: models.prepare(vm),
        **options,
    )
    return Made(found, models.requests)


def test_each_variant_runs_so_often_and_only_from_the_call_on(tmp_path: Path) -> None:
    found, requests = made(tmp_path, Changes(), Changes(message="other"), runs=3)
    assert [str(request.messages[-1]["content"]) for request in requests] == ["second", "other"] * 3
    assert [(each.name, len(each.runs)) for each in found.variants] == [
        ("unchanged", 3), ('message "other"', 3),
    ]  # fmt: skip
    same, other = found.variants
    assert [run.output_tokens for run in same.runs] == [1 + 1, 1 + 3, 1 + 5]
    assert [run.output_tokens for run in other.runs] == [1 + 2, 1 + 4, 1 + 6]
    assert (found.recorded.output_tokens, found.recorded.cost) == (3, 3.0)
    assert [read_tape(run.tape).end.value for run in other.runs] == [{"said": "<other>"}] * 3  # type: ignore[union-attr]
    names = sorted(path.name for path in (tmp_path / "variants").iterdir())
    assert names == [f"{what}-{run}.tape" for what in ("1-unchanged", "2-message-other") for run in (1, 2, 3)]
    assert (tmp_path / "out.txt").read_text() == "<second>"


def test_means_and_shares_come_with_intervals(tmp_path: Path) -> None:
    found, _ = made(tmp_path, Changes(), runs=3)
    figures = found.variants[0].figures
    assert [*figures] == [name for name in FIGURES if name not in ("passed", "score")]
    cost = figures["cost"]
    assert cost.value == 3.0  # of 2, 3 and 4 dollars
    assert cost.low == pytest.approx(3 - 4.30265 / 3**0.5, abs=1e-4)
    assert cost.high == pytest.approx(3 + 4.30265 / 3**0.5, abs=1e-4)
    completed = figures["completed"]
    assert (completed.value, completed.high) == (1.0, 1.0)
    assert completed.low == pytest.approx(0.4385, abs=1e-4)


def test_a_run_that_fails_counts(tmp_path: Path) -> None:
    found, _ = made(tmp_path, Changes(message="a bad one"), Changes(), runs=2)
    bad, good = found.variants
    assert [(run.status, run.is_completed) for run in bad.runs] == [("failed", False)] * 2
    assert "a bad answer" in str(bad.runs[0].error)
    assert (bad.figures["completed"].value, good.figures["completed"].value) == (0.0, 1.0)


def test_runs_are_judged_by_what_came_of_them(tmp_path: Path) -> None:
    judged: list[Dict] = []

    class Score(NamedTuple):
        score: float | None
        passed: bool
        reason: str

    def judge(run: Dict) -> Score:
        judged.append(run)
        said = run["stages"][0]["visible_text"]
        return Score(0.25, False, "dull") if "second" in said else Score(1.0, True, "well said")

    found, _ = made(tmp_path, Changes(), Changes(message="other"), runs=2, judge=judge)
    assert (found.recorded.score, found.recorded.passed) == (0.25, False)
    same, other = found.variants
    assert (same.figures["score"].value, same.figures["passed"].value) == (0.25, 0.0)
    assert (other.figures["score"].value, other.figures["passed"].value) == (1.0, 1.0)
    assert [run.reason for run in other.runs] == ["well said"] * 2
    last = judged[-1]
    assert [(stage["node_id"], stage["visible_text"]) for stage in last["stages"]] == [
        ("output", "<first>\n<other>\n"), ("value", '{"said":"<other>"}'), ("out.txt", "<other>"),
    ]  # fmt: skip
    assert (last["status"], last["usage"]["call_count"]) == ("completed", 2)


def test_what_nobody_could_judge_has_no_score(tmp_path: Path) -> None:
    class Nothing(NamedTuple):
        score: float | None = None
        passed: bool = False
        reason: str = "the judge is away"

    found, _ = made(tmp_path, Changes(), judge=lambda run: Nothing())
    assert "score" not in found.variants[0].figures
    assert found.variants[0].figures["passed"].value == 0.0


def test_what_ends_is_told(tmp_path: Path) -> None:
    seen: list[str] = []
    made(tmp_path, Changes(), Changes(message="x"), runs=2, on_run=lambda name, outcome: seen.append(name))
    assert sorted(seen) == ['message "x"'] * 2 + ["unchanged"] * 2


def test_a_branch_that_can_not_be_made_is_named(tmp_path: Path) -> None:
    with pytest.raises(TapeError, match=r"^variant 'unchanged': .*a\.tape has 2 calls of models"):
        made(tmp_path, Changes(), call=9)


def test_nothing_is_paid_for_before_all_variants_can_be_made(tmp_path: Path) -> None:
    seen: list[str] = []
    missing = Changes(files={"rules.txt": "none.txt"})
    with pytest.raises(TapeError, match=r"the edited file none\.txt can't be read"):
        made(tmp_path, Changes(), missing, on_run=lambda name, outcome: seen.append(name))
    assert seen == []


def test_a_record_of_a_run_that_failed(tmp_path: Path) -> None:
    tape = recorded(tmp_path, 'println("said")\nthrow "no"\n')
    run = record_of(tape)
    assert run["status"] == "failed"
    assert [stage["node_id"] for stage in run["stages"]] == ["output", "error"]


@pytest.mark.parametrize("wrapped", [True, False])
def test_a_file_of_variants(wrapped: bool) -> None:
    listed = """\
- message: shorter, please
- {name: cheap, model: p/small, set: {temperature: 0}}
- name: edited
  edit: [a.txt, b.txt=d.txt]
- name: exchanged
  edit: {a.txt: c.txt}
  code: other.harn
- name: one
  edit: a.txt
"""
    text = "variants:\n" + re.sub("^", "  ", listed, flags=re.M) if wrapped else listed
    assert read_variants(text, "v.yaml") == [
        Variant('message "shorter, please"', Changes(message="shorter, please")),
        Variant("cheap", Changes(model="p/small", options={"temperature": 0})),
        Variant("edited", Changes(files={"a.txt": "a.txt", "b.txt": "d.txt"})),
        Variant("exchanged", Changes(files={"a.txt": "c.txt"}, code="other.harn")),
        Variant("one", Changes(files={"a.txt": "a.txt"})),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "v.yaml is no YAML: "),
        ("", "v.yaml has no variants: it is a list of dicts, each a variant with its changes"),
        (
            "- x",
            "v.yaml, variant 1 is no dict of changes: it has a name, and a message, model, set, edit or code",
        ),
        ("- {mesage: x}", "v.yaml, variant 1: "),
        ("- {model: 3}", "v.yaml, variant 1: model is 3, and must be a text"),
        ("- {edit: 3}", "v.yaml, variant 1: edit is 3, and must be a path, a list of paths, or a dict"),
        ("- {name: a}\n- {name: a}", "v.yaml has 2 variants called 'a': give each a name of its own"),
    ],
)
def test_what_is_no_file_of_variants(text: str, said: str) -> None:
    with pytest.raises(TapeError) as raised:
        read_variants(text, "v.yaml")
    assert raised.value.message.startswith(said)


def test_the_page_shows_intervals_and_masks_secrets(tmp_path: Path) -> None:
    secret = "sk-proj-4fTq9LxB72"
    found, _ = made(tmp_path, Changes(message=f"<b>hi</b> {secret}"), Changes(), runs=2)
    page = html_variants(to_builtins(found))
    assert page.startswith("<!doctype html>")
    assert "<b>hi" not in page
    assert secret not in page
    assert "<script" not in page
    assert "2 of 2 completed" in page
    for name in ("Figures", "Intervals", "Variants"):
        assert f'id="{name.lower()}"' in page


def test_each_runs_in_a_process_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the mock provider, which is part of the program."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prompt").write_text("old")
    source = 'llm_call("hi", nil, {provider: "mock"})\nwrite_file("out", "x")\nreturn read_file("prompt")\n'
    recorded(tmp_path, source)
    (tmp_path / "prompt").write_text("new")
    variants = [told(Changes(files={"prompt": "prompt"})), told(Changes())]
    found = varied("a.tape", 1, variants, directory="variants", jobs=2, prepare=unprepared)
    ends = [read_tape(each.runs[0].tape).end for each in found.variants]
    assert [end.value for end in ends if end is not None] == ["new", "new"]


def unprepared(vm: Vm, file: str) -> None:
    assert file == "main.harn"


ORPHAN = """
import os, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from harnpy.tape.variants import end_with_parent

if __name__ == "__main__":
    made = ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=end_with_parent)
    print(made.submit(os.getpid).result(), flush=True)
    made.submit(time.sleep, 600)
    os._exit(0)
"""


def test_a_run_ends_with_the_command_that_has_started_it(tmp_path: Path) -> None:
    (tmp_path / "orphan.py").write_text(ORPHAN)
    command = [sys.executable, str(tmp_path / "orphan.py")]
    found = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, timeout=60)
    assert found.stdout.strip().isdigit()  # and the pipe is closed: nobody has it any more
