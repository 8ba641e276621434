"""Functions of `std/…` modules that pass their arguments on to builtins. Spec: 03 §16."""

from __future__ import annotations

from pathlib import Path

import pytest

from harnpy import Vm
from harnpy.syntax import ast
from harnpy.syntax.parser import parse
from harnpy.vm.errors import VmError
from tests.check.agents.asking import told

_FROM = """import { session_create, session_append } from "std/session"
import { workflow, task_run } from "std/agents"
"""


def test_what_is_judged_as_a_builtin_does_nothing_but_call_it() -> None:
    knowledge = Vm().builtins.knowledge()
    found = 0
    for file in Path("stdlib").glob("*.harn"):
        for item in parse(file.read_text(encoding="utf-8")).items:
            if not isinstance(item, ast.FnDecl) or not item.pub:
                continue
            forwarded = knowledge.forwarded(f"std/{file.stem}", item.name)
            if forwarded is None or not forwarded[0].startswith("__"):
                continue
            found += 1
            [statement] = item.body.statements
            assert isinstance(statement, ast.Return)
            assert isinstance(statement.value, ast.Call)
            assert statement.value.name == forwarded[0]
            assert [getattr(arg, "name", None) for arg in statement.value.args] == [
                p.name for p in item.params
            ]
    assert found > 50


@pytest.mark.parametrize(
    ("call", "code", "marked"),
    [
        ('session_create({labl: "x"})', "unknown-option", "labl"),
        ("session_create({seed: 5})", "option-type", "5"),
        ('session_append("id", {type: "x"}, {turn_idd: "a"})', "unknown-option", "turn_idd"),
        ('workflow({nodes: {a: {kind: "stge"}}})', "graph-field", '"stge"'),
        ('task_run("t", {nodes: {a: {}}}, {max_step: 1})', "unknown-option", "max_step"),
        ('task_run("t", {entry: "b", nodes: {a: {}}})', "graph-node", '"b"'),
    ],
)
def test_what_a_run_refuses_is_told_before_it_in_the_same_words(call: str, code: str, marked: str) -> None:
    [(found, message, place)] = told(_FROM + call)
    assert (found, place) == (code, marked)
    with pytest.raises(VmError) as failure:
        Vm().run_source(_FROM + call)
    assert message in str(failure.value)


@pytest.mark.parametrize(
    "program",
    [
        'fn session_create(opts) { opts }\nsession_create({labl: "x"})',
        'import { session_create } from "./mine"\nsession_create({labl: "x"})',
        _FROM + 'fn make(more) { session_create({...more, store: "memory:", label: "x"}) }',
        _FROM + 'try { session_create({labl: "x"}) } catch (e) { e }',
    ],
)
def test_what_is_another_function_or_handled_is_not_told(program: str) -> None:
    assert told(program) == []
