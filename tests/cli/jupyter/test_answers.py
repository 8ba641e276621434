"""Completion and documentation in cells. Spec: 12 §5.4."""

from __future__ import annotations

import pytest

from harnpy import Vm
from harnpy.cli.jupyter.answers import Answers
from harnpy.cli.repl import Shell


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture(scope="module")
def shell() -> Shell:
    shell = Shell(Vm().repl())
    shell.session.run('let people = {first: {name: "Ann", age: 31}}')
    shell.session.run("fn total(list) { return list.count }")
    return shell


def completed(answers: Answers, shell: Shell | None, cell: str) -> list[str]:
    """Return a cell as each of the first matches would make it."""
    start, matches = answers.matches(shell, cell, len(cell))
    return [cell[:start] + match.text for match in matches[:3]]


def test_what_ran_is_known(answers, shell) -> None:
    answers.ran.append("/// Twice a number.\nfn twice(n: int) -> int { return n * 2 }")
    assert completed(answers, None, "1 + twi") == ["1 + twice"]
    found = answers.markdown(None, "twice(3)", 2)
    assert "fn twice(n: int) -> int" in found
    assert "Twice a number." in found


def test_names_that_only_the_session_has(answers, shell) -> None:
    assert completed(answers, shell, "peop") == ["people"]
    assert "dict = {first:" in answers.markdown(shell, "people", 6)
    assert answers.markdown(shell, "x.people", 8) is None


def test_keys_of_a_value_that_is_there(answers, shell) -> None:
    assert completed(answers, shell, "people.fi") == ["people.first", "people.filter"]
    assert completed(answers, shell, "let x = people.first.")[:2] == [
        "let x = people.first.age",
        "let x = people.first.name",
    ]


def test_options_of_a_builtin(answers, shell) -> None:
    assert completed(answers, shell, 'agent_loop("x", nil, {prov') == ['agent_loop("x", nil, {provider: ']


def test_commands_of_the_repl(answers, shell) -> None:
    assert completed(answers, shell, ":do") == [":doc"]


def test_builtins_before_anything_ran(answers) -> None:
    assert "agent_session_open" in completed(answers, None, "agent_session_op")
    assert "println(msg: string)" in answers.markdown(None, "println", 3)
    assert answers.markdown(None, "1 + 1", 2) is None
