"""Graphs that are written out: fields, nodes, edges. Spec: 03 §16, 08 §6."""

from __future__ import annotations

import pytest

from harnpy import Vm
from harnpy.vm.errors import VmError
from tests.check.agents.asking import findings, told

_LOOP = '{from: "a", to: "a"}'


@pytest.mark.parametrize(
    ("program", "code", "marked"),
    [
        ('workflow_graph({entri: "a", nodes: {a: {}}})', "graph-field", "entri"),
        ('workflow_graph({nodes: {a: {kind: "stge"}}})', "graph-field", '"stge"'),
        ('workflow_graph({nodes: {"a.b": {promt: "x"}}})', "graph-field", "promt"),
        ("workflow_graph({nodes: {a: {prompt: 5}}})", "graph-field", "5"),
        ('workflow_graph({nodes: {a: {}}, edges: [{from: "a", too: "a"}]})', "graph-field", "too"),
        ("workflow_graph({nodes: {a: {retry_policy: {max_attempt: 2}}}})", "graph-field", "max_attempt"),
        ('workflow_graph({nodes: {a: {mode: "chat"}}})', "graph-field", '"chat"'),
        ("workflow_insert_node({nodes: {a: {}}}, {promt: 5})", "graph-field", "promt"),
        ('workflow_replace_node({nodes: {a: {}}}, "a", {kind: "stge"})', "graph-field", '"stge"'),
        ('workflow_execute("t", {entry: "b", nodes: {a: {}}})', "graph-node", '"b"'),
        (
            'workflow_execute("t", {entry: "a", nodes: {a: {}}, edges: [{from: "a", to: "b"}]})',
            "graph-node",
            '"b"',
        ),
        ('workflow_execute("t", {nodes: {a: {kind: "fork"}}})', "graph-node", "a"),
    ],
)
def test_what_a_run_refuses_is_told_before_it_in_the_same_words(program: str, code: str, marked: str) -> None:
    [(found, message, place)] = told(program)
    assert (found, place) == (code, marked)
    with pytest.raises(VmError) as failure:
        Vm().run_source(program)
    assert message in str(failure.value)


@pytest.mark.parametrize(
    ("graph", "code", "message", "marked"),
    [
        ('{entry: "a", nodes: {a: {}, b: {}}}', "unreachable-node", "node is unreachable: b", "b"),
        (
            '{entry: "a", nodes: {a: {}, b: {}}, edges: [{from: "a", to: "b"}, {from: "a", to: "b"}]}',
            "duplicate-edge",
            "edges[1] repeats edges[0]: a -> b",
            '{from: "a", to: "b"}',
        ),
    ],
)
def test_what_is_doubtful_is_a_warning(graph: str, code: str, message: str, marked: str) -> None:
    program = f'workflow_execute("t", {graph})'
    assert told(program) == [(code, message, marked)]
    assert [found.severity for found in findings(program)] == ["warning"]


def test_a_graph_is_followed_through_what_returns_it() -> None:
    source = (
        'let flow = workflow_graph({entry: "b", nodes: {a: {}}})\nworkflow_execute("t", workflow_clone(flow))'
    )
    [found] = findings(source)
    assert found.message == "workflow_execute: invalid workflow: entry node does not exist: b"
    assert [source[place.start : place.end] for place in found.places] == ['"b"']


def test_a_field_is_told_once() -> None:
    source = 'let flow = workflow_graph({nodes: {a: {promt: ""}}})\nworkflow_execute("t", flow)'
    assert [code for code, _, _ in told(source)] == ["graph-field"]


@pytest.mark.parametrize(
    "program",
    [
        'workflow_validate({entry: "gone", nodes: {a: {}}})',
        'workflow_graph({entry: "gone", nodes: {a: {}}})',
        'fn run(more) { workflow_execute("t", {entry: "b", nodes: {a: {}, ...more}}) }',
        'fn run(b) { workflow_execute("t", {entry: b, nodes: {a: {}, b: {}}, edges: []}) }',
        'fn run(e) { workflow_execute("t", {nodes: {a: {}}, edges: [e, {from: "a", to: e.to}]}) }',
        'fn run(n) { workflow_execute("t", {entry: "a", nodes: {a: n}}) }',
        "fn run(k) { workflow_graph({nodes: {a: {kind: k, tools: k, model_policy: {model: k}}}}) }",
        'workflow_execute("t", {act: {prompt: "do it"}, verify: {command: "make"}, model: "m"})',
        f'workflow_execute("t", {{nodes: {{a: {{kind: "fork"}}}}, edges: [{_LOOP}, {_LOOP}]}})',
        'workflow_execute("t", {entry: "a", nodes: {a: {}, v: {kind: "verify"}}})',
        'let r = try { workflow_execute("t", {entry: "b", nodes: {a: {}}}) } catch (e) { e }',
    ],
)
def test_what_a_run_accepts_is_not_told(program: str) -> None:
    assert told(program) == []


@pytest.mark.parametrize(
    "program",
    [
        'fn f() { let g = workflow_graph(g)\n  return workflow_execute("t", g) }',
        'fn f() { let g = workflow_graph(h)\n  let h = workflow_graph(g)\n  workflow_execute("t", g) }',
    ],
)
def test_a_graph_that_is_made_of_itself_is_let_be(program: str) -> None:
    assert told(program) == []
