"""`harnpy repl`, over a pipe and on a terminal. Spec: 09 §5."""

from __future__ import annotations

import pytest

from harnpy.cli.repl import Shell, is_expression, is_unfinished
from tests.support import Command


def test_the_references_example(harnpy: Command) -> None:
    inputs = "let xs = [3, 1, 2]\nxs.count\n_1 * 2\nfn twice(n) { return n * 2 }\ntwice(21)\n"
    done = harnpy("repl", stdin=inputs)
    assert (done.stdout, done.stderr, done.returncode) == ("3\n6\n42\n", "", 0)


def test_blank_inputs_are_ignored(harnpy: Command) -> None:
    assert harnpy("repl", stdin="\n  \n1 + 1\n").stdout == "2\n"


def test_nil_is_shown(harnpy: Command) -> None:
    assert harnpy("repl", stdin="nil\n").stdout == "nil\n"


def test_statements_show_nothing_of_their_own(harnpy: Command) -> None:
    inputs = 'println("a")\nlet x = 1\nvar y = 2\ny = 3\nif true { 5 }\ny\n'
    assert harnpy("repl", stdin=inputs).stdout == "a\n3\n"


def test_output_appears_once(harnpy: Command) -> None:
    inputs = 'fn f() { println("called")\n return 1 }\nf()\n_1\n'
    assert harnpy("repl", stdin=inputs).stdout == "called\n1\n1\n"


def test_inputs_over_several_lines(harnpy: Command) -> None:
    inputs = 'fn f(\n  a,\n) {\n  return a + 1 // }\n}\nlet s = [1,\n2]\nf(s.count)\n"""\ntwo "lines"\n"""\n'
    assert harnpy("repl", stdin=inputs).stdout == '3\ntwo "lines"\n'


def test_what_is_unfinished_at_the_end_is_an_error(harnpy: Command) -> None:
    assert harnpy("repl", stdin="let a = [1,\n").stderr.startswith("Error: Unexpected end of file, expected ")


def test_an_error_has_a_caret_and_costs_only_the_input(harnpy: Command) -> None:
    done = harnpy("repl", stdin='let a = 1\nthrow "oops"\na + nope\na\n')
    assert done.stdout == "1\n"
    first, _, second = done.stderr.partition("Error: Runtime error: Undefined variable: nope")
    assert first == 'Error: Thrown: oops\n  --> <repl:2>:1:1\n   |\n 1 | throw "oops"\n   | ^^^^^\n'
    assert second.endswith("a + nope\n   |     ^^^^\n")


def test_a_failed_expression_has_no_value_but_counts(harnpy: Command) -> None:
    done = harnpy("repl", stdin="1\n1 / 0\n3\n_3\n_2\n")
    assert done.stdout == "1\n3\n3\n"
    assert "Division by zero" in done.stderr
    assert "Undefined variable: _2" in done.stderr


def test_an_input_may_declare_again_what_an_earlier_one_has(harnpy: Command) -> None:
    inputs = [
        "let n = 1",
        'let n = "one"',
        "n",
        "fn f() { return 1 }",
        "fn g() { return f() }",
        "fn f() { return 2 }",
        "[f(), g()]",  # the newest counts, for functions made before, too
        "struct P { x: int }",
        "struct P { x: int, y: int }",
        "P { x: 1, y: 2 }.y",
        'import { int_to_string } from "std/text"',
        'import { int_to_string } from "std/text"',
        "int_to_string(3)",
        "if true { let a = 1; let a = 2 }",
    ]
    done = harnpy("repl", stdin="\n".join(inputs) + "\n")
    assert done.stdout.splitlines() == ["one", "[2, 2]", "2", "3"]
    assert "Cannot redeclare immutable variable 'a'" in done.stderr
    assert done.stderr.count("Error:") == 1


def test_a_syntax_error_has_its_message_form_and_a_caret(harnpy: Command) -> None:
    done = harnpy("repl", stdin="let x = )\n")
    assert done.stderr.startswith("Error: Expected expression, got ) at 1:9\n  --> <repl:1>:1:9\n")
    assert "^ unexpected token" in done.stderr


def test_a_session_lives_as_long_as_the_repl(harnpy: Command) -> None:
    inputs = (
        'let s = agent_session_open("talk")\n'
        'agent_session_inject(s, {role: "user", content: "hi"})\n'
        'agent_session_inject("nobody", {role: "user", content: "hi"})\n'
        "let b = agent_session_fork(s)\n"
        "agent_session_length(b)\n"
    )
    done = harnpy("repl", stdin=inputs)
    assert done.stdout == "nil\n1\n"
    assert done.stderr.count("Error: ") == 1


def test_exit_leaves_with_its_status(harnpy: Command) -> None:
    done = harnpy("repl", stdin="1\nexit(5)\n2\n")
    assert (done.stdout, done.returncode) == ("1\n", 5)


def test_commands(harnpy: Command, tmp_path) -> None:
    (tmp_path / "lib.harn").write_text("let loaded = 7\nfn inc(n) { return n + loaded }\n", encoding="utf-8")
    inputs = ":load lib.harn\ninc(1)\n:type [1]\n:vars\n:reset\ninc(1)\n:quit\n9\n"
    done = harnpy("repl", stdin=inputs)
    assert done.stdout.startswith("8\nlist\n")
    assert "loaded: int = 7\n" in done.stdout
    assert done.stdout.endswith("inc: closure = <fn(n)>\nloaded: int = 7\n")
    assert "inc" in done.stderr


def test_help_and_doc(harnpy: Command) -> None:
    done = harnpy("repl", stdin=":help\n:doc println\n:doc prntln\n:xyzzy\n:hepl\n")
    assert ":load FILE" in done.stdout
    assert "println(msg: string) -> nil  [io]" in done.stdout
    assert "Error: no builtin is called `prntln` (did you mean `println`?)\n" in done.stderr
    assert "Error: unknown command `:xyzzy` (try `:help`)\n" in done.stderr
    assert "Error: unknown command `:hepl` (did you mean `:help`?)\n" in done.stderr


def test_what_a_failing_input_did_stays(harnpy: Command) -> None:
    assert harnpy("repl", stdin='var n = 0\nn = 1; throw "x"\nn\n').stdout == "1\n"


def test_several_statements_show_the_value_of_the_last(capfd: pytest.CaptureFixture[str]) -> None:
    shell = Shell()
    for text in "let a = 1\na + 1", "a; var b = 2", "fn f() {\n  return 3\n}\nf()", "println(a)\nb = 4":
        shell.feed(text)
    assert capfd.readouterr().out == "2\n3\n1\n"


def test_an_error_says_what_to_type_instead(capfd: pytest.CaptureFixture[str]) -> None:
    shell = Shell()
    for text, help in [
        ("total = 3", "a name is declared first: `let total = 3`, or `var` if it changes"),
        ("let x = 1", None),
        ("x = 2", "`let x = 2` declares it again; what changes is declared with `var`"),
        ("x = nowhere", None),
        ('println(f"x is {x}")', 'every string takes values, without a letter before it: `"x is ${x}"`'),
    ]:
        shell.feed(text)
        shown = capfd.readouterr().err
        assert shown.endswith(f"   = help: {help}\n") if help else "= help" not in shown, text


def test_commands_say_how_they_are_used(capfd: pytest.CaptureFixture[str]) -> None:
    shell = Shell()
    for text, error in [
        (":load", "`:load` needs FILE: `:load FILE`"),
        (":doc", "`:doc` needs NAME: `:doc NAME`"),
        (":type", "`:type` needs EXPR: `:type EXPR`"),
        (":session", "`:session` needs ID: `:session ID`"),
        (":doc a b", "`:doc` takes one NAME: `:doc NAME`"),
        (":reset all", "`:reset` takes nothing behind it, got `all`"),
        (":quit now", "`:quit` takes nothing behind it, got `now`"),
        (":hlep", "unknown command `:hlep` (did you mean `:help`?)"),
    ]:
        shell.feed(text)
        assert capfd.readouterr().err == f"Error: {error}\n"
    assert not shell.done


def test_words_of_newcomers(capfd: pytest.CaptureFixture[str]) -> None:
    shell = Shell()
    shell.feed("quit")
    assert capfd.readouterr().out == "(Ctrl+D or :quit to exit)\n"
    shell.feed("help")
    assert ":load FILE    run a file here\n" in capfd.readouterr().out
    shell.feed("let q = 4")
    shell.feed("q")
    assert capfd.readouterr().out == "4\n"


def test_raw_shows_the_last_value_that_there_was(harnpy: Command) -> None:
    assert harnpy("repl", stdin='["a"]\n1 / 0\n:raw\n').stdout.endswith("\n[a]\n")


def test_a_missing_file_is_an_error(harnpy: Command) -> None:
    assert harnpy("repl", stdin=":load gone.harn\n").stderr == "Error: gone.harn: No such file or directory\n"


@pytest.mark.parametrize(
    ("text", "unfinished"),
    [
        ("f(", True),
        ("f(1)", False),
        ("f(1))", False),
        ("{ [ ( ", True),
        ('"open', True),
        ('"closed"', False),
        (r'"a\"', True),
        ('r"a\\"', False),
        ('"""one "two"\n', True),
        ('"""one "two"\n"""', False),
        ('f("one\n', True),
        ('f("one\ntwo")', False),
        ('"a ${[1,\n', True),
        ('"a ${[1,\n2]}"', False),
        ('"""a ${1}\n "b', True),
        ("a // {", False),
        ('"{"', False),
        ("", False),
    ],
)
def test_when_an_input_stays_open(text: str, unfinished: bool) -> None:
    assert is_unfinished(text) is unfinished


@pytest.mark.parametrize(
    ("source", "expression"),
    [
        ("1 + 1", True),
        ("letter", True),
        ("xs.map({ x -> x })", True),
        ("a == b", True),
        ("a <= b", True),
        ('f("a=b")', True),
        ('"a=${b}"', True),
        ("a // =", True),
        ("a = 1", False),
        ("a += 1", False),
        ("let a = 1", False),
        ("fn f() { 1 }", False),
        ("gen fn f() { emit 1 }", False),
        ("gen + 1", True),
        ("impl P { fn f(self) { 1 } }", False),
        ("println(1)", False),
        ("  throw 1", False),
    ],
)
def test_classification(source: str, expression: bool) -> None:
    assert is_expression(source) is expression
