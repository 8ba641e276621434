"""`:sessions`, `:session ID` and `:tree` in the REPL."""

from __future__ import annotations

import pytest

from harnpy.cli.repl import Shell


@pytest.fixture
def shell() -> Shell:
    return Shell()


def shown(shell: Shell, capsys: pytest.CaptureFixture[str], *inputs: str) -> str:
    """What the last input prints."""
    for text in inputs[:-1]:
        shell.feed(text)
    capsys.readouterr()
    shell.feed(inputs[-1])
    captured = capsys.readouterr()
    return captured.out + captured.err


def opened(*ids: str) -> str:
    return "; ".join(f'let {id} = agent_session_open("{id}")' for id in ids)


def said(id: str, text: str, role: str = "user") -> str:
    return f'agent_session_inject("{id}", {{role: "{role}", content: {text!r}}})'.replace("'", '"')


def test_without_sessions_they_say_how_to_make_one(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (":sessions", ":tree"):
        assert shown(shell, capsys, command) == "no sessions yet: agent_session_open() makes one\n"


def test_the_table(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = [
        opened("a", "b"),
        said("a", "one"),
        'let c = agent_session_fork("a", "c")',
        'let d = agent_session_attach("b", "portal"); let e = agent_session_takeover("b", "tui")',
        ":sessions",
    ]
    assert shown(shell, capsys, *inputs).splitlines() == [
        "id  messages  parent  clients       last event",
        "a          1  -       -             user: one",
        "c          1  a       -             user: one",
        "b          0  -       portal, tui*  live_session_client: takeover tui",
    ]


def test_a_long_last_event_is_cut_and_stays_on_its_line(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown(shell, capsys, opened("a"), said("a", "x" * 100), ":sessions")
    assert text.splitlines()[1].endswith("user: " + "x" * 41 + "…")


def test_a_session_in_full(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = [
        opened("a"),
        said("a", "first [bold]"),
        'let x = agent_session_set_scratchpad("a", {n: 1})',
        said("a", "second", "assistant"),
        'let f = agent_session_fork("a", "f")',
        ":session a",
    ]
    assert shown(shell, capsys, *inputs).splitlines() == [
        "a  2 messages",
        "children:   f",
        "scratchpad: version 1",
        "user: first [bold]",
        "· session_scratchpad: scratchpad set",
        "assistant: second",
    ]


def test_what_a_message_says_cannot_steer_the_terminal(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.feed(opened("a"))
    shell.live_sessions().inject("a", {"role": "user", "content": "\x1b[2Jgone"})
    for command in (":sessions", ":session a"):
        assert "\x1b" not in shown(shell, capsys, command)


def test_the_beginning_of_an_id_will_do(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.feed(opened("incident", "inbox"))
    assert shown(shell, capsys, ":session inc").startswith("incident  0 messages")
    assert shown(shell, capsys, ":session in") == "Error: 2 sessions begin with `in` (try `:sessions`)\n"
    assert shown(shell, capsys, ":session x") == "Error: unknown session id 'x' (try `:sessions`)\n"


def test_a_whole_id_wins_over_longer_ones(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(shell, capsys, opened("a", "ab"), ":session a").startswith("a  0 messages")


def test_the_tree_of_forks(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = [
        opened("root", "other"),
        said("root", "one"),
        'let a = agent_session_fork("root", "a"); let b = agent_session_fork_at("root", 1, "b")',
        'let c = agent_session_fork("a", "c")',
        ":tree",
    ]
    assert shown(shell, capsys, *inputs).splitlines() == [
        "root  1 message",
        "├── a  1 message",
        "│   └── c  1 message",
        "└── b  1 message, branched at event 1",
        "other  0 messages",
    ]


def test_a_closed_session_holds_its_branch_together(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.feed(opened("root") + '; let a = agent_session_fork("root", "a")')
    shell.feed('let b = agent_session_fork("a", "b")')
    shell.feed('agent_session_close("a")')
    tree = ["root  0 messages", "└── a  closed", "    └── b  0 messages"]
    assert shown(shell, capsys, ":tree").splitlines() == tree
    shell.feed('agent_session_close("root")')
    assert shown(shell, capsys, ":tree").splitlines() == ["a  closed", "└── b  0 messages"]


def test_a_ring_of_forks_ends(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.feed(opened("a") + '; let b = agent_session_fork("a", "b"); let c = agent_session_fork("b", "a")')
    assert shown(shell, capsys, ":tree").splitlines() == ["a  0 messages", "└── b  0 messages"]


def test_completion_offers_commands_and_ids(shell: Shell) -> None:
    shell.feed(opened("incident", "other"))
    assert {":sessions", ":session", ":tree"} <= set(shell.command_names)
    assert shell.session_ids() == ["incident", "other"]
