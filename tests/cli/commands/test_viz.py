"""`harnpy viz`. Spec: 09 §6.4."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from harnpy.cli.commands.viz import program_chart
from harnpy.syntax.parser import parse
from harnpy.workflow.chart_svg import svg
from tests.support import ROOT, Command


def arrows_of(program: str) -> list[str]:
    """The arrows of a program's chart, between labels."""
    chart = program_chart(parse(program), program)
    labels = [box.label[0] for box in chart.boxes]
    return [
        f"{labels[source]} > {labels[target]}{f' ({name})' if name else ''}"
        for source, target, name in chart.arrows
    ]


def test_the_text_of_a_program(harnpy: Command, write) -> None:
    program = write("p.harn", 'let x = 1\nfn f(n) {\n  println("hi")\n}\n')
    assert harnpy("viz", program).stdout == (
        "flowchart TD\n"
        '    n0["module"]\n'
        '    n1["let x = 1"]\n'
        '    n2["fn f"]\n'
        '    n3["println(#quot;hi#quot;)"]\n'
        '    n4["end fn f"]\n'
        "    n0 --> n1\n"
        "    n0 --> n2\n"
        "    n2 --> n3\n"
        "    n3 --> n4\n"
    )


@pytest.mark.parametrize(
    ("program", "arrows"),
    [
        (
            "pipeline main(task) { a() }",
            ["module > pipeline main", "pipeline main > a()", "a() > end pipeline main"],
        ),
        ("tool look(x: string) { a() }", ["module > tool look", "tool look > a()", "a() > end tool look"]),
        ("fn f() { return 1 }", ["module > fn f", "fn f > return 1", "return 1 > end fn f"]),
        ("fn f() { throw 1 }", ["module > fn f", "fn f > throw 1", "throw 1 > end fn f (error)"]),
        ("spawn { a() }", ["module > spawn", "spawn > a()", "a() > end spawn"]),
        ("mutex { a() }", ["module > mutex", "mutex > a()", "a() > end mutex"]),
        ("defer { a() }", ["module > defer", "defer > a()", "a() > end defer"]),
        ("deadline 5s { a() }", ["module > deadline 5s", "deadline 5s > a()", "a() > end deadline 5s"]),
        ("try { a() }", ["module > try expr", "try expr > a()", "a() > end try expr"]),
        (
            "try { a() } catch (e) { b() } finally { c() }",
            [
                "module > try",
                "try > a() (ok)",
                "try > catch e (error)",
                "catch e > b()",
                "a() > finally (finally)",
                "b() > finally (finally)",
                "finally > c()",
                "c() > end try",
            ],
        ),
        (
            "if x { a() } else { b() }",
            [
                "module > if x",
                "if x > then (yes)",
                "then > a()",
                "if x > else (no)",
                "else > b()",
                "a() > join",
                "b() > join",
            ],
        ),
        (
            "if x { a() }",
            ["module > if x", "if x > then (yes)", "then > a()", "a() > join", "if x > join (no)"],
        ),
        (
            "for (a, b) in xs { c() }",
            [
                "module > for (a, b) in xs",
                "for (a, b) in xs > body (each)",
                "body > c()",
                "c() > for (a, b) in xs",
                "for (a, b) in xs > after loop (done)",
            ],
        ),
        (
            "while x < 3 { a() }",
            [
                "module > while x < 3",
                "while x < 3 > body (true)",
                "body > a()",
                "a() > while x < 3",
                "while x < 3 > after loop (false)",
            ],
        ),
        (
            "while x { break }",
            [
                "module > while x",
                "while x > body (true)",
                "body > break",
                "while x > after loop (false)",
                "break > after loop",
            ],
        ),
        (
            "while x { continue }",
            [
                "module > while x",
                "while x > body (true)",
                "body > continue",
                "continue > while x",
                "while x > after loop (false)",
            ],
        ),
        (
            "match v { 1 | 2 -> { a() } _ if x -> { b() } }",
            [
                "module > match v",
                "match v > 1 | 2 (arm)",
                "1 | 2 > a()",
                "match v > _ if x (arm)",
                "_ if x > b()",
                "a() > join",
                "b() > join",
            ],
        ),
        (
            "retry 3 { a() }",
            [
                "module > retry 3",
                "retry 3 > a() (run)",
                "a() > end retry (done)",
                "end retry > retry 3 (retry)",
            ],
        ),
        (
            "parallel 3 { i -> a() }",
            [
                "module > parallel count 3 -> i",
                "parallel count 3 -> i > a() (fan out)",
                "a() > parallel join",
            ],
        ),
        (
            "parallel each xs { x -> a() }",
            [
                "module > parallel each xs -> x",
                "parallel each xs -> x > a() (fan out)",
                "a() > parallel join",
            ],
        ),
        (
            "parallel settle xs { x -> a() }",
            [
                "module > parallel settle xs -> x",
                "parallel settle xs -> x > a() (fan out)",
                "a() > parallel join",
            ],
        ),
        (
            "select { m from ch { a() } timeout 5ms { b() } }",
            [
                "module > select",
                "select > m from ch (case)",
                "m from ch > a()",
                "select > timeout 5ms (case)",
                "timeout 5ms > b()",
                "a() > end select",
                "b() > end select",
            ],
        ),
    ],
)
def test_each_kind_of_statement(program: str, arrows: list[str]) -> None:
    assert arrows_of(program) == arrows


@pytest.mark.parametrize("file", sorted((ROOT / "stdlib").rglob("*.harn")), ids=lambda file: file.name)
def test_real_programs(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    chart = program_chart(parse(text), text)
    assert len(chart.boxes) > len(parse(text).items)
    ElementTree.fromstring(svg(chart, file.name))


def test_nothing_is_run(harnpy: Command, write, tmp_path: Path) -> None:
    program = 'exec("touch", "ran.txt")\nlet g = workflow_graph({nodes: {a: {}}})'
    assert harnpy("viz", write("p.harn", program)).returncode == 0
    assert harnpy("viz", "--workflow", "p.harn").returncode == 0
    assert not (tmp_path / "ran.txt").exists()
    harnpy("run", "p.harn")
    assert (tmp_path / "ran.txt").exists()


GRAPH = """
let rest = {done: {kind: "escalation"}}
let flow = workflow_graph({
  name: "review", entry: "plan",
  nodes: {plan: {system: render("x.md"), tools: tools()}, check: {kind: "verify"}, more: make(), ...rest},
  edges: [{from: "plan", to: "check"}, {from: "check", to: "done", branch: "passed"}],
})
"""
CHART = (
    "flowchart TD\n"
    '    n0((" "))\n'
    '    n1{{"check<br/>verify"}}\n'
    '    n2>"done<br/>escalation"]\n'
    '    n3["more<br/>stage"]\n'
    '    n4["plan<br/>stage"]\n'
    "    n0 --> n4\n"
    "    n4 --> n1\n"
    "    n1 -- passed --> n2\n"
)


@pytest.mark.parametrize("options", [["--workflow"], ["--graph", "review"], ["--graph", "flow"]])
def test_the_graph_that_a_program_spells_out(harnpy: Command, write, options: list[str]) -> None:
    assert harnpy("viz", write("p.harn", GRAPH), *options).stdout == CHART


def test_one_of_several_graphs(harnpy: Command, write) -> None:
    write("p.harn", GRAPH + 'workflow_graph({id: "other", act: {}})\nworkflow_graph({nodes: computed()})')
    done = harnpy("viz", "--workflow", "p.harn")
    reason = "there are 2 workflow graphs: choose with --graph NAME: review, other"
    assert (done.stderr, done.returncode) == (f"error: failed to visualize p.harn: {reason}\n", 1)
    assert '["act<br/>stage"]' in harnpy("viz", "--graph", "other", "p.harn").stdout


def test_what_is_computed_is_named(harnpy: Command, write) -> None:
    write("p.harn", GRAPH + "let other = workflow_graph({nodes: computed()})")
    done = harnpy("viz", "--workflow", "p.harn")
    assert done.stdout == CHART
    assert done.stderr == "note: not drawn, as their nodes or edges are computed: other\n"


@pytest.mark.parametrize(
    ("name", "text", "options", "reason"),
    [
        ("p.harn", "let = 1", [], "Expected variable name or destructuring pattern, got = at 1:5"),
        ("p.harn", "let a = 1", ["--workflow"], "the program makes no workflow graph"),
        ("p.harn", GRAPH, ["--graph", "x"], "the program makes no workflow graph named x"),
        ("p.harn", "workflow_graph({nodes: f()})", ["--workflow"],
         "the graph's nodes or edges are computed: save it as JSON and draw that"),
        ("p.harn", "workflow_graph({nodes: [1]})", ["--workflow"],
         'orchestration parse error at nodes: expected dict, got list | payload={"nodes":[1]}'),
        ("g.json", "{", [], "not JSON: EOF while parsing an object at line 1 column 1"),
        ("g.json", "[" * 9999, [], "not JSON: recursion limit exceeded at line 1 column 128"),
        ("g.json", "[1]", [], "neither a workflow graph nor a run record"),
        ("g.json", '{"a": 1}', [], "neither a workflow graph nor a run record"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn(
    harnpy: Command, write, name: str, text: str, options: list[str], reason: str
) -> None:
    done = harnpy("viz", write(name, text), *options)
    assert (done.stdout, done.stderr) == ("", f"error: failed to visualize {name}: {reason}\n")
    assert done.returncode == 1


def test_a_missing_file(harnpy: Command) -> None:
    done = harnpy("viz", "gone.harn")
    assert done.stderr == "error: failed to visualize gone.harn: No such file or directory\n"
    assert done.returncode == 1


def test_a_graph_from_json(harnpy: Command, write) -> None:
    write("g.json", json.dumps({"act": {}, "verify": {}}))
    assert '{{"verify"}}' in harnpy("viz", "g.json").stdout


def test_a_run_from_json(harnpy: Command, write) -> None:
    stages = [{"node_id": "act", "kind": "stage", "status": "completed", "outcome": "success"}]
    write("r.json", json.dumps({"_type": "run_record", "stages": stages}))
    assert '["act<br/>stage: success"]' in harnpy("viz", "r.json").stdout


def test_a_run_that_was_killed(harnpy: Command, write) -> None:
    head = '{"_layout":1,"_type":"run_record","transitions":[],"_begun":{"pending_nodes":[]},"stages":[\n'
    then = {
        "checkpoints": [{"ready_nodes": ["check"]}],
        "transitions": [{"from_node_id": "act", "to_node_id": "check", "branch": "yes"}],
    }
    stage = {"id": "s", "node_id": "act", "kind": "stage", "status": "completed", "_then": then}
    write("r.json", f'{head}{json.dumps(stage)}\n,{{"id": "t", "node')
    text = harnpy("viz", "r.json").stdout
    assert ('["act<br/>stage: completed"]' in text, "check<br/>pending" in text, "yes" in text) == (True,) * 3

    then["checkpoints"] = [1]
    write("r.json", f"{head}{json.dumps(stage)}\n")
    assert harnpy("viz", "r.json").stderr.startswith(
        "error: failed to visualize r.json: run_record parse error at stages[0]._then.checkpoints: expected"
    )


def test_a_picture_in_a_file(harnpy: Command, write, tmp_path: Path) -> None:
    write("g.json", json.dumps({"act": {"task_label": "<&>"}}))
    done = harnpy("viz", "g.json", "-o", "g.svg")
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
    picture = ElementTree.parse(tmp_path / "g.svg").getroot()
    assert [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")] == ["act", "stage: <&>"]


def test_the_format_is_what_is_asked_for(harnpy: Command, write, tmp_path: Path) -> None:
    write("g.json", json.dumps({"act": {}}))
    assert harnpy("viz", "g.json", "--format", "svg").stdout.startswith("<svg ")
    harnpy("viz", "g.json", "-o", "g.svg", "--format", "mermaid")
    assert (tmp_path / "g.svg").read_text().startswith("flowchart TD\n")
    harnpy("viz", "g.json", "-o", "g.mmd")
    assert (tmp_path / "g.mmd").read_text().startswith("flowchart TD\n")
