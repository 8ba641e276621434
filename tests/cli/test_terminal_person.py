"""`harnpy run --attended`, with a person who types into a pipe. Spec: 07 §14.6."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import Command

ASKED = "approve? [y]es [n]o [a]lways exactly this: "
#: Two payments of different amounts, and the first once more.
REFUNDS = """
tool refund(euros: int) { "paid ${euros}" }
for n in [12, 900, 12] {
  llm_mock({tool_calls: [{name: "refund", arguments: {euros: n}}]})
}
llm_mock({text: "done"})
let policy = {require_approval: ["refund"]}
let r = agent_loop("go", nil, {provider: "mock", tools: refund, approval_policy: policy, loop_detect_warn: 0})
let ended = r.transcript.events.filter({ e -> e.kind == "tool_execution" })
println(ended.map({ e -> e.text }).filter({ text -> text.starts_with("paid") }))
"""


def attended(harnpy: Command, program: str, typed: str, **env: str) -> tuple[str, str]:
    done = harnpy("run", "--attended", "-e", program, stdin=typed, **env)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_without_anybody_the_run_fails_and_says_what_to_do(harnpy: Command, tmp_path: Path) -> None:
    done = harnpy("run", "-e", 'println(ask_user("How many?"))', stdin="3\n")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "question hitl_question_" in done.stderr
    assert '"How many?"' in done.stderr
    assert "harnpy run --attended" in done.stderr


def test_a_question_is_asked_until_the_answer_fits(harnpy: Command) -> None:
    out, err = attended(harnpy, 'println(ask_user("How many?", {default: 3}) + 1)', "many\n5\n")
    assert out == "6\n"
    assert err == "? How many?\n[3] >   please answer a whole number\n[3] > "


def test_an_empty_line_takes_the_default(harnpy: Command) -> None:
    assert attended(harnpy, 'println(ask_user("?", {default: 1.5}))', "\n")[0] == "1.5\n"
    assert attended(harnpy, 'println(ask_user("?"))', "\n")[0] == "\n"


@pytest.mark.parametrize(
    ("options", "typed", "shown"),
    [
        ("{default: 1.5}", "x\n2\n", "2.0"),
        ("{default: true}", "perhaps\nno\n", "false"),
        ('{default: "x"}', " some text \n", "some text"),
        ('{schema: {type: "int", min: 3}}', "1\nabc\n4\n", "4"),
        ('{schema: {type: "list", items: {type: "int"}}}', '[1, "x"]\n[1, 2]\n', "[1, 2]"),
        ('{schema: {type: "string", enum: ["red", "blue"]}}', "green\nblue\n", "blue"),
    ],
)
def test_answers_have_types(harnpy: Command, options: str, typed: str, shown: str) -> None:
    assert attended(harnpy, f'println(ask_user("?", {options}))', typed)[0] == shown + "\n"


def test_the_options_of_an_enum_are_shown(harnpy: Command) -> None:
    program = 'ask_user("Which?", {schema: {type: "string", enum: ["red", "blue"]}})'
    assert "options: red, blue" in attended(harnpy, program, "red\n")[1]


def test_an_approval_asks_who_decides_where_several_may(harnpy: Command) -> None:
    program = """
    let r = request_approval("deploy", {detail: {sha: "abc"}, reviewers: ["ann", "bob"], quorum: 2})
    println([r.reviewers, r.reason, r.signatures.count])
    """
    out, err = attended(harnpy, program, "maybe\ny\neve\nann\nyes\nann\nbob\n", USER="root")
    assert out == "[[ann, bob], nil, 2]\n"
    for text in (
        "Approve: deploy",
        'detail: {"sha": "abc"}',
        "1 of 2 approvals",
        "eve can't decide here",
        "reviewer (bob): ",
        "y or n",
    ):
        assert text in err


def test_the_environment_says_who_decides(harnpy: Command) -> None:
    program = 'println(request_approval("deploy", {reviewers: ["ann", "bob"]}).reviewers)'
    assert attended(harnpy, program, "y\n", USER="ann") == ("[ann]\n", f"? Approve: deploy\n{ASKED}")
    assert attended(harnpy, program, "y\n", USER="root", HARN_REVIEWER="bob")[0] == "[bob]\n"


def test_always_holds_for_the_action(harnpy: Command) -> None:
    program = """
    let first = ["deploy", "deploy"].map({ action -> request_approval(action).reviewers })
    println(first, try { request_approval("drop") } catch (e) { e.reason })
    """
    out, err = attended(harnpy, program, "a\nn\ntoo dear\n", USER="ann")
    assert out == "[[ann], [ann]]\n"
    assert err.count("approve?") == 2
    assert "approved, as before" in err


def test_always_covers_a_tool_with_the_same_arguments(harnpy: Command) -> None:
    out, err = attended(harnpy, REFUNDS, "a\nn\ntoo much\n", USER="ann")
    assert out == "[paid 12, paid 12]\n"
    assert err.count("approve? [y]es [n]o [a]lways with these arguments [t]his tool always: ") == 2
    assert err.count("approved, as before") == 1


def test_a_whole_tool_is_approved_with_a_key_of_its_own(harnpy: Command) -> None:
    out, err = attended(harnpy, REFUNDS, "t\n", USER="ann")
    assert out == "[paid 12, paid 900, paid 12]\n"
    assert (err.count("approve?"), err.count("approved, as before")) == (1, 2)


def test_always_covers_the_details_that_were_shown(harnpy: Command) -> None:
    program = """
    for sha in ["abc", "def", "abc"] {
      println(try { request_approval("deploy", {detail: {sha: sha}}).reviewers } catch (e) { e.reason })
    }
    """
    out, err = attended(harnpy, program, "a\nn\nnot this\n", USER="ann")
    assert out == "[ann]\nnot this\n[ann]\n"
    assert "please answer" not in err


def test_without_variables_the_account_decides(harnpy: Command) -> None:
    from harnpy.world import World

    program = 'println(request_approval("deploy").reviewers)'
    out, err = attended(harnpy, program, "y\n", USER="", LOGNAME="", HARN_REVIEWER="")
    assert out == f"[{World().machine.user_name()}]\n"
    assert "reviewer" not in err


def test_a_name_that_was_asked_for_is_asked_for_once(harnpy: Command) -> None:
    program = """
    for action in ["a", "b"] { println(request_approval(action, {reviewers: ["ann", "bob"]}).reviewers) }
    """
    out, err = attended(harnpy, program, "y\nbob\ny\n", USER="root")
    assert out == "[bob]\n[bob]\n"
    assert err.count("reviewer (ann, bob): ") == 1


def test_a_denial_is_thrown(harnpy: Command) -> None:
    program = 'println(try { request_approval("deploy") } catch (e) { [e.name, e.reason, e.reviewers] })'
    out, _ = attended(harnpy, program, "n\ntoo early\n", USER="ann")
    assert out == "[ApprovalDeniedError, too early, [ann]]\n"


def test_the_end_of_input_denies(harnpy: Command) -> None:
    program = 'println(try { request_approval("deploy") } catch (e) { [e.name, e.reason, e.reviewers] })'
    out, err = attended(harnpy, program, "", USER="ann")
    assert out == "[ApprovalDeniedError, end of input, [ann]]\n"
    assert err.endswith("denied: end of input\n")


def test_an_escalation_is_accepted_or_declined(harnpy: Command) -> None:
    program = 'println(try { escalate_to("boss", "dear").reviewer } catch (e) { [e.name, e.reason] })'
    assert attended(harnpy, program, "y\n", USER="ann")[0] == "ann\n"
    assert attended(harnpy, program, "n\n")[0] == "[HumanCancelledError, escalation was declined]\n"


def test_one_key_decides_on_a_terminal(terminal, tmp_path: Path) -> None:
    program = 'println(request_approval("deploy", {reviewers: ["ann"]}).reviewers); println(read_line())'
    (tmp_path / "p.harn").write_text(program, encoding="utf-8")
    run = terminal("run", "--attended", "p.harn", HARN_REVIEWER="ann")
    run.expect(ASKED)
    run.type("y")
    run.expect("[ann]\n")
    run.type("a whole line\n")
    run.expect("a whole line\n")


def test_an_enter_behind_the_key_is_part_of_it(terminal, tmp_path: Path) -> None:
    program = """
    println(try { request_approval("deploy", {reviewers: ["ann", "bob"]}).reviewers } catch (e) { e.reason })
    println(read_line())
    """
    (tmp_path / "p.harn").write_text(program, encoding="utf-8")
    run = terminal("run", "--attended", "p.harn", USER="root")
    run.expect(ASKED)
    run.type("n\n")
    run.expect("reviewer (ann, bob): ")
    run.type("ann\n")
    run.expect("reason (optional): ")
    run.type("too dear\n")
    run.expect("too dear\n")
    run.type("a whole line\n")
    run.expect("a whole line\n")


def test_what_is_typed_ahead_of_a_key_is_not_lost(terminal, tmp_path: Path) -> None:
    program = 'println(request_approval("deploy").reviewers); println([read_line()])'
    (tmp_path / "p.harn").write_text(program, encoding="utf-8")
    run = terminal("run", "--attended", "p.harn", HARN_REVIEWER="ann")
    run.expect(ASKED)
    run.type("ya whole line\n")
    run.expect("[a whole line]\n")


def test_the_end_of_input_cancels(harnpy: Command) -> None:
    program = 'println(try { ask_user("?", {default: 1}) } catch (e) { [e.name, e.message] })'
    assert attended(harnpy, program, "")[0] == "[HumanCancelledError, end of input]\n"


def test_questions_of_several_tasks_take_turns(harnpy: Command) -> None:
    program = 'println(parallel each ["a?", "b?"] { text -> ask_user(text) })'
    out, err = attended(harnpy, program, "1\n2\n")
    assert out == "[1, 2]\n"
    assert err == "? a?\n> ? b?\n> "


def test_lines_that_nobody_asked_for_are_left_for_the_program(harnpy: Command) -> None:
    program = 'println([ask_user("?"), read_line(), ask_user("?")])'
    assert attended(harnpy, program, "1\n2\n3\n")[0] == "[1, 2, 3]\n"
