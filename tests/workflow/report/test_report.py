"""HTML reports: whole documents, everything in them, nothing that runs or loads, no secrets."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.formats import markup
from harnpy.formats.markup import Markup, element, text
from harnpy.formats.shapes import read
from harnpy.workflow.records.differences import run_diff
from harnpy.workflow.records.record import read_run
from harnpy.workflow.records.record_shapes import RunRecord
from harnpy.workflow.report import html_diff, html_evaluation, html_report
from harnpy.world import World
from tests.counts import COUNT
from tests.workflow.run_records import RUNS, planted

Dict = dict[str, Any]

HOSTILE = "</pre></div><script>alert('x')</script>\"' onload=\"alert(1)\" &lt; <!-- ]]> \x00\x1b\ud800"
VOID = {"meta", "img", "br"}
ELEMENTS = set(
    "html head meta title style body header main footer nav section article div span p h1 h2 h3 h4 h5 a b i "
    "img small strong code pre ul ol li dl dt dd blockquote table thead tbody tfoot tr th td details "
    "summary svg foreignobject".split()
)
ATTRIBUTES = set(
    "class id href src alt lang charset http-equiv content name style tabindex role aria-label aria-hidden "
    "open scope x width height".split()
)


class Outline(HTMLParser):
    """Checks that elements nest, and keeps what is said and pointed to."""

    def __init__(self, document: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.said: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.sources: list[str] = []
        assert document.startswith("<!doctype html>\n<html")
        self.feed(document)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ELEMENTS, tag
        for name, value in attrs:
            assert name in ATTRIBUTES, name
            if name == "id":
                self.ids.append(value or "")
            elif name == "href":
                self.links.append(value or "")
            elif name == "src":
                self.sources.append(value or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.said.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"[ \t\n]+", " ", " ".join(self.said))


def sound(document: str) -> Outline:
    """The outline of a document that is whole, can be written, and needs nothing but itself."""
    outline = Outline(document)
    document.encode("utf-8")
    assert all(link[1:] in outline.ids for link in outline.links if link.startswith("#"))
    assert all(link.startswith("#") for link in outline.links)
    assert all(source.startswith("data:image/svg+xml;base64,") for source in outline.sources)
    assert len(outline.ids) == len(set(outline.ids))
    assert "@import" not in document
    assert "url(" not in document
    return outline


def run(**fields: Any) -> Dict:
    return {"id": "r1", "workflow_name": "review", "status": "completed", "task": "look twice", **fields}


def stage(node: str, **fields: Any) -> Dict:
    return {
        "id": f"r1:{node}",
        "node_id": node,
        "kind": "stage",
        "status": "completed",
        "outcome": "success",
        **fields,
    }


FULL = run(
    started_at="2026-01-31T09:15:00.000Z",
    finished_at="2026-01-31T09:16:30.500Z",
    stages=[
        stage(
            "research",
            branch="success",
            visible_text="I found it.",
            started_at="2026-01-31T09:15:00.000Z",
            finished_at="2026-01-31T09:15:45.250Z",
            usage={
                "input_tokens": 12345,
                "output_tokens": 10,
                "total_cost": 0.0123,
                "models": ["gpt-5-mini"],
            },
            metadata={
                "prompt": "the prompt",
                "system_prompt": "the system prompt",
                "rendered_context": "the context",
            },
            private_reasoning="between us",
            artifacts=[{"kind": "summary", "title": "findings"}],
            transcript={
                "messages": [
                    {"role": "user", "content": "what is it?"},
                    {
                        "role": "assistant",
                        "content": [
                            {"type": "text", "text": "let me see"},
                            {"type": "image", "name": "cat.png"},
                        ],
                        "tool_calls": [{"id": "c1", "function": {"name": "peek", "arguments": {"depth": 3}}}],
                    },
                    {"role": "tool", "tool_call_id": "c1", "content": "a cat"},
                ],
                "events": [
                    {
                        "kind": "tool_intent",
                        "text": "peek",
                        "metadata": {"arguments": {"depth": 3}, "tool_use_id": "c1"},
                    },
                    {
                        "kind": "tool_execution",
                        "text": "a cat",
                        "metadata": {"tool_name": "peek", "tool_use_id": "c1"},
                    },
                    {"kind": "compaction", "text": "compacted 3 messages"},
                ],
            },
        ),
        stage(
            "check",
            kind="verify",
            status="failed",
            outcome="verification_failed",
            branch="failed",
            visible_text="1 failed",
            metadata={"error": "verification failed"},
            verification={
                "ok": False,
                "checks": [{"kind": "expect_status", "ok": False, "expected": 0, "actual": 7}],
            },
            artifacts=[{"kind": "verification_result", "data": {"command": "make test", "exit_status": 7}}],
        ),
        stage(
            "broken",
            status="failed",
            outcome="error",
            branch="error",
            metadata={"error": "no such tool: peel"},
        ),
    ],
    transitions=[{"from_node_id": "research", "to_node_id": "check", "branch": "success"}],
    checkpoints=[{"reason": "stage_complete", "completed_nodes": ["research"], "ready_nodes": ["check"]}],
    artifacts=[{"kind": "summary", "title": "the findings", "text": "it is a cat", "data": {"weight": 4.2}}],
    child_runs=[{"worker_id": "w1", "worker_name": "helper", "task": "hold the cat", "status": "completed"}],
    hitl_questions=[
        {"request_id": "q", "prompt": "May I feed it?"},
        {"request_id": "a", "prompt": "Pet it?"},
    ],
    metadata={
        "hitl": [
            {
                "request_id": "a",
                "kind": "dual_control",
                "prompt": "open the cage",
                "agent": "keeper",
                "payload": {"action": "open the cage", "cage": 7},
                "status": "denied",
                "responses": [
                    {"reviewer": "ada", "approved": True, "reason": None, "responded_at": None},
                    {"reviewer": "bob", "approved": False, "reason": "it bites"},
                ],
            },
            {
                "request_id": "b",
                "kind": "question",
                "prompt": "which one?",
                "status": "answered",
                "responses": [{"reviewer": "eve", "answer": {"cat": "the grey"}}],
            },
            {
                "request_id": "c",
                "kind": "escalation",
                "status": "accepted",
                "prompt": {"bytes": 12},
                "responses": [{"reviewer": "vet", "accepted": True}],
            },
        ],
        "weather": "rain",
    },
    usage={"input_tokens": 12345, "output_tokens": 10, "total_cost": 0.0123, "call_count": 4},
    trace_spans=[{"kind": "llm_call", "name": "gpt-5-mini", "duration_ms": 1234}],
    policy={"side_effect_level": "network"},
)


@pytest.mark.parametrize(
    "said",
    [
        "review", "✓ completed", "look twice", "1 min 30 s", "$0.0123", "12\u202f345", "2 of 3 stages failed",
        "45.2 s", "research", "check", "broken", "I found it.", "the prompt", "the system prompt",
        "the context", "what is it?", "let me see", "cat.png", "Call peek", '"depth": 3', "a cat",
        "compacted 3 messages", "between us", "findings", "✗ failed",
        "expect status · expected 0 · actual 7", "make test exit status 7", "Error no such tool: peel",
        "the findings", "it is a cat", '"weight": 4.2', "helper", "hold the cat",
        "May I feed it?", "✗ denied", "dual control", "open the cage", "keeper", '"cage": 7',
        "ada · approved",
        "bob · denied", "it bites", "✓ answered", "which one?", '"cat": "the grey"', "vet · accepted",
        '"bytes": 12', "… pending", '"weather": "rain"', "stage complete", "gpt-5-mini",
        '"side_effect_level": "network"', "1.2 s",
    ],
)  # fmt: skip
def test_a_report_tells_everything(said: str) -> None:
    assert said in sound(html_report(FULL)).text


def test_prompts_are_folded_away() -> None:
    document = html_report(FULL)
    assert re.search(r"<details><summary>System prompt<.*?the system prompt", document)


def test_stages_are_linked_from_the_timeline() -> None:
    outline = sound(html_report(FULL))
    assert [f"#stage-{at}" for at in (1, 2, 3)] == [link for link in outline.links if "stage-" in link][-3:]


def bars_of(record: Dict) -> list[tuple[str, str, str]]:
    return re.findall(
        r'x="([\d.]+)%" width="([\d.]+)%" height="100%"><i class="bar (\w+)"', html_report(record)
    )


def test_bars_stand_where_their_stages_were() -> None:
    assert bars_of(FULL) == [("0.00", "100.00", "work")]
    later = stage("b", kind="verify", started_at="2026-01-31T09:15:30Z", finished_at="2026-01-31T09:15:40Z")
    first = stage("a", started_at="2026-01-31T09:15:00Z", finished_at="2026-01-31T09:15:30Z", status="failed")
    assert bars_of(run(stages=[first, later])) == [("0.00", "75.00", "failed"), ("75.00", "25.00", "verify")]


def test_a_failure_that_was_mended_says_so() -> None:
    outline = sound(html_report(run(stages=[stage("a", status="failed"), stage("b"), stage("a")])))
    assert "1 a : success; completed as 3 a" in outline.text


def test_times_that_are_none() -> None:
    record = run(started_at="1", stages=[stage("a", started_at="1", finished_at="2")])
    assert 'class="bar' not in html_report(record)


def test_an_empty_run() -> None:
    assert "This run has no stages." in sound(html_report({})).text


@settings(max_examples=COUNT.examples(15))
@given(record=RUNS, secret=st.sampled_from(["sk-proj-4fTq9LxB72", "Bearer mF_9.B5f-4.1JqM"]))
def test_hostile_text_stays_text_and_secrets_stay_home(record: Dict, secret: str) -> None:
    document = html_report(planted(record, f"{HOSTILE} {secret}"))
    outline = sound(document)
    assert secret.split()[-1] not in document
    assert all(f"node{at}" in outline.text for at in range(1, len(record["stages"]) + 1))


@settings(max_examples=COUNT.examples(10))
@given(left=RUNS, right=RUNS)
def test_any_two_runs_are_compared(left: Dict, right: Dict) -> None:
    left, right = (read(RunRecord, planted(one, HOSTILE)) for one in (left, right))
    found = run_diff(left, right, World())
    outline = sound(html_diff(left, right, found))
    assert ("= identical" if found["identical"] else "≠ different").split()[1] in outline.text


def test_a_diff_tells_what_changed() -> None:
    left = read(RunRecord, run(id="one", stages=[stage("a", visible_text="first"), stage("b")]))
    right = read(RunRecord, run(id="two", stages=[stage("a", visible_text="second", outcome="stuck")]))
    said = sound(html_diff(left, right, run_diff(left, right, World()))).text
    for part in ("≠ different", "one", "two", "outcome: success -> stuck", "first", "second", "− removed"):
        assert part in said


def test_identical_runs() -> None:
    record = read_run(FULL, World())
    said = sound(html_diff(record, record, run_diff(record, record, World()))).text
    assert "✓ identical" in said
    assert "The same stages" in said


def test_the_evaluation_of_a_pack() -> None:
    cases: list[Dict] = [
        {"label": "good", "pass": True, "severity": "blocking", "failures": [], "warnings": ["a bit slow"]},
        {
            "label": HOSTILE,
            "pass": False,
            "failures": ["cost too high", "key sk-proj-4fTq9LxB72"],
            "stage_count": 2,
        },
    ]
    report = {"pack_id": "gates", "pass": False, "total": 2, "passed": 1, "failed": 1, "cases": cases}
    document = html_evaluation(report)
    said = sound(document).text
    for part in ("gates", "✗ failed", "good", "a bit slow", "cost too high", "2 stages", "[redacted:secret]"):
        assert part in said
    assert said.index("cost too high") < said.index("a bit slow")


def test_the_evaluation_of_one_run() -> None:
    said = sound(html_evaluation({"pass": True, "failures": [], "stage_count": 3})).text
    assert "Evaluation ✓ passed" in said


def test_a_paired_experiment() -> None:
    one = {
        "pass": True,
        "failure": "",
        "llm_calls": 2,
        "input_tokens": 412,
        "output_tokens": 63,
        "cost": 0.002181,
    }
    report = {
        "kind": "program", "path": "a.harn", "pass": False, "spec": "doubled_prompt", "baseline": one,
        "experiment": {**one, "pass": False, "failure": "it broke", "output_tokens": 58},
        "metrics": [{"name": "score", "baseline": "0.8", "experiment": "0.9"}], "output_diff": "-yes\n+no\n",
    }  # fmt: skip
    said = sound(html_evaluation(report)).text
    for part in ("a.harn ✗ failed", "doubled_prompt", "63 58", "score 0.8 0.9", "it broke", "-yes +no"):
        assert part in said


def test_an_element() -> None:
    made = element(
        "a", "x < y", Markup("<b>z</b>"), None, ["&", "c"], class_="q", href='"', hidden=True, id=None
    )
    assert made == '<a class="q" href="&quot;" hidden>x &lt; y<b>z</b>&amp;c</a>'
    assert text("a\x00\x1b\ud800b\n") == "a\ufffd\ufffd\ufffdb\n"


@pytest.mark.parametrize(
    ("ms", "said"),
    [(0, "0 ms"), (999, "999 ms"), (1000, "1.0 s"), (59_949, "59.9 s"), (59_950, "1 min 0 s"),
     (3_599_000, "59 min 59 s"), (7_440_000, "2 h 4 min"), (None, "–")],
)  # fmt: skip
def test_durations(ms: float | None, said: str) -> None:
    assert markup.duration(ms) == said
