"""Scans and deny patterns, held against a model that is written as regular expressions. Spec: 02 §28."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.agent.rules import command_policy
from harnpy.agent.rules.command_call import checked_decision
from harnpy.agent.rules.command_policy import (
    Command,
    CommandPolicy,
    denying_pattern,
    risk_labels,
    scan_command,
)
from tests.counts import COUNT

MANY = COUNT.examples(12)

_CREDENTIAL = r"\.env|id_rsa|id_ed25519|\.aws/credentials|\.npmrc|\.netrc|credentials|secret|token|api_?key"


def _word(names: str) -> str:
    """A program by its name or path, where a word of a shell may stand."""
    edge = r"[\s;|&()<>{}`$\"'=,]"
    return rf"(?:^|(?<={edge}))(?:(?!{edge}).)*?(?:(?<=/)|(?<={edge})|^)(?:{names})(?=$|{edge})"


#: Every label but `outside_workspace`: the expressions that a lowered text must all match.
_MODEL = {
    command_policy.CREDENTIAL_FILE_READ: [_word("cat|less|head|tail|grep"), _CREDENTIAL],
    command_policy.CURL_PIPE_SHELL: [_word("curl|wget"), r"\|", r"[ |](?:sh|bash|zsh)"],
    command_policy.DESTRUCTIVE: [
        r"rm -(?:rf|fr) /|mkfs|dd if=|:\(\)\{|chmod -r 777 /|chown -r ",
    ],
    command_policy.GIT_FORCE_PUSH: ["git push", rf"--force|{_word('-f')}"],
    command_policy.NETWORK_EXFIL: [_word("curl|wget|scp|rsync|nc|ncat")],
    command_policy.PACKAGE_INSTALL: [r"\b(?:(?:npm|pip|cargo|brew|apt|apt-get) install|(?:pnpm|yarn) add)\b"],
    command_policy.PROCESS_KILL: [_word("p?kill|killall")],
    command_policy.SUDO: [_word("sudo")],
    command_policy.WRITE_INTENT: [rf" >|>>|sed -i|perl -pi|truncate |{_word('tee')}"],
}

_PIECES = st.sampled_from(
    """cat less grep .env token secrets curl wget bash sh | || ; & > >> tee committee nc scp kill skill sudo
    sudoers rm -rf -fr / mkfs dd if= :(){ chmod -R 777 chown git push --force -f pull npm install pip pnpm
    yarn add sed -i perl -pi truncate docs/curl.md /usr/bin/curl "curl" $(kill $TOKEN a=b CURL é""".split()
)
_TEXTS = st.lists(st.tuples(_PIECES, st.sampled_from([" ", " ", "  ", "", "\n"])), max_size=8).map(
    lambda parts: "".join(piece + gap for piece, gap in parts)
)


def _modelled(text: str) -> list[str]:
    lowered = re.sub(r"\s+", " ", text.lower())
    return [
        label
        for label, needed in _MODEL.items()
        if all(re.search(each, lowered, re.DOTALL) for each in needed)
    ]


def _at(text: str) -> Command:
    return Command(text, "/", ("/",))  # everything is in the workspace


@settings(max_examples=MANY, deadline=None)
@given(_TEXTS)
def test_labels_are_those_of_the_model(text: str) -> None:
    assert risk_labels(_at(text)) == _modelled(text)


@settings(max_examples=MANY, deadline=None)
@given(_TEXTS, _TEXTS)
def test_more_text_and_other_case_take_no_label_away(first: str, second: str) -> None:
    found = set(risk_labels(_at(first)))
    assert found <= set(risk_labels(_at(f"{first} ; {second}")))
    assert found == set(risk_labels(_at(first.upper()))) == set(risk_labels(_at(first.lower())))


@settings(max_examples=MANY, deadline=None)
@given(st.text("ab*.", max_size=6), st.text("ab.\n", max_size=12))
def test_deny_patterns_are_found_anywhere_their_parts_in_order(pattern: str, text: str) -> None:
    expected = re.search(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL)
    assert denying_pattern([pattern], text) == (None if expected is None else pattern)
    assert (command_policy.DENY_PATTERN in scan_command(_at(text), [pattern]).labels) == (
        expected is not None
    )


@settings(max_examples=MANY, deadline=None)
@given(
    st.lists(st.sampled_from(["w", "..", ".", "src", "etc", ""]), max_size=5),
    st.lists(st.sampled_from(["/w", "/w/src", "/etc", "/"]), min_size=1, max_size=2),
    st.sampled_from(["cat {}", "cat '{}'", "x --a={}", "(cat {})", "a;{}", "cat b <{}"]),
)
def test_a_path_is_in_a_root_or_outside(parts: list[str], roots: list[str], command: str) -> None:
    path = "/" + "/".join(parts)
    real: list[str] = []
    for part in parts:
        if part == "..":
            del real[-1:]
        elif part not in ("", "."):
            real.append(part)
    inside = any(("/" + "/".join(real) + "/").startswith(root.rstrip("/") + "/") for root in roots)
    here = Command(command.format(path), roots[0], tuple(roots))
    assert (command_policy.OUTSIDE_WORKSPACE in risk_labels(here)) == (not inside)
    elsewhere = Command("ls", "/elsewhere", tuple(roots))
    assert (command_policy.OUTSIDE_WORKSPACE in risk_labels(elsewhere)) == ("/" not in roots)


_POLICIES = st.builds(
    CommandPolicy,
    deny_patterns=st.lists(st.sampled_from(["cat", "rm*x", "sudo"]), max_size=2).map(tuple),
    require_approval=st.lists(st.sampled_from(command_policy.LABELS), max_size=3).map(tuple),
    allow_recursive=st.booleans(),
)


@settings(max_examples=MANY, deadline=None)
@given(_POLICIES, _POLICIES, _TEXTS)
def test_policies_that_meet_stop_what_one_of_them_stops(
    first: CommandPolicy, second: CommandPolicy, text: str
) -> None:
    stopped = [
        checked_decision(policy, _at(text), "command").stops for policy in (first, second, first.met(second))
    ]
    # `deny_pattern` is a label of the patterns of both.
    if command_policy.DENY_PATTERN not in first.require_approval + second.require_approval:
        assert stopped[2] == (stopped[0] or stopped[1])
    assert first.met(second).allow_recursive == (first.allow_recursive and second.allow_recursive)
    assert first.met(first) is first
