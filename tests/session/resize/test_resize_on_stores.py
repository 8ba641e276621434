"""Resizes on every store: one append, the same after a reload, beside others. Spec: 10 §C8, §C12."""

from __future__ import annotations

from typing import Any

import pytest

from harnpy.session import ResizeError, Session
from harnpy.session import events as kinds
from harnpy.session.resize_policy import ResizeReport
from harnpy.session.stored import StoredSession
from harnpy.storage import Store
from harnpy.world import World
from tests.session.shapes import calling, said, tool

TALK = [said(role, f"{role} {number}") for number in range(6) for role in ("user", "assistant")]


class Artifacts:
    """An artifact store in memory."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {}

    def put(self, descriptor: dict[str, Any], body: bytes) -> dict[str, Any]:
        uri = f"artifact:{len(self.bodies)}"
        self.bodies[uri] = body
        return {"id": uri[9:], "uri": uri, "size": len(body), **descriptor}


def stored(store: Store, *messages: dict[str, Any]) -> StoredSession:
    session = StoredSession.begin("s", store, World())
    session.add_history(messages or TALK)
    return session


def again(session: StoredSession) -> StoredSession:
    found = StoredSession.load(session.id, session.store, World())
    assert found is not None
    return found


def shown(session: Session) -> dict[str, Any]:
    return {
        "messages": session.messages(),
        "entries": [(entry.event_id, entry.message, entry.placement) for entry in session.entries()],
        "history": session.history(),
        "memo": session.memo,
        "summary": session.view.window.summary,
    }


def resized(session: Session, name: str, **opts: Any) -> ResizeReport:
    report = session.resize(name, **opts)
    assert report is not None
    return report


def rewrite(full: Any, window: Any, memo: Any, settings: Any) -> Any:
    return None, [window[-1], said("user", "made"), full[0], said("assistant", "made, too")], {"n": 1}


def replace(full: Any, window: Any, memo: Any, settings: Any) -> Any:
    return [said("user", "begun"), *full[4:]], window[-3:-1], None


OPTIONS: dict[str, dict[str, Any]] = {
    "simple_cut": {"max_length": 100},
    "trim": {"keep_last": 3},
    "truncate": {"keep_last": 4},
    "observation_mask": {"keep_last": 4, "keep_first": 1},
    "custom": {"keep_last": 4, "custom_compactor": lambda archived: f"{len(archived)} messages"},
    "llm": {"keep_last": 4, "summarize": lambda prompt: "said before"},
    "summarize": {"min_keep_turns": 2, "summarize": lambda prompt: "said before"},
    "rewrite": {},
    "replace": {},
}


@pytest.mark.parametrize("snapshot", [False, True])
def test_every_strategy_is_the_same_after_a_reload(store: Store, snapshot: bool) -> None:
    for name, opts in OPTIONS.items():
        session = StoredSession.begin(f"s-{name}", store, World())
        session.policy.strategy("rewrite", rewrite).strategy("replace", replace)
        session.add_history(TALK)
        for round in range(3):
            before = session.seq
            report = resized(session, name, **opts)
            assert report.shrunk or round or name == "replace"
            if report.events:
                assert session.event(before + 1).type == kinds.COMPACTION_STARTED
                assert session.event(before + 1).data["strategy"] == name
                assert session.event(before + 1).more == session.seq - before - 1 == report.events - 1
            assert shown(again(session)) == shown(session)
            if snapshot:
                session.snapshot()
                assert shown(again(session)) == shown(session)
                session = again(session)
                session.policy.strategy("rewrite", rewrite).strategy("replace", replace)
            session.add_history([said("user", f"more {round}"), said("assistant", "yes")])
            assert shown(again(session)) == shown(session)
            assert shown(session)["history"][-2:] == session.messages()[-2:]
            assert [e.message for e in session.fork(f"f-{name}-{round}").entries()] == session.window()
        if name != "replace":
            assert [m for m in session.history() if m in TALK] == TALK


def test_offload_and_summarize(store: Store) -> None:
    """Long outputs of older turns go to artifacts; then older turns become one summary, which grows."""
    long = "x" * 1001
    read = [calling("a"), tool("a", long), said("assistant", "read")]
    session = stored(store, said("user", "read it"), *read, *TALK[:6])
    artifacts = Artifacts()
    report = resized(session, "offload", artifacts=artifacts)
    uri = next(iter(artifacts.bodies))
    text = f"[Content offloaded to {uri}. Use read_offload tool to retrieve.]"
    assert session.messages()[2] == {**read[1], "content": text}
    assert session.history()[2] == read[1]
    assert artifacts.bodies == {uri: long.encode()}
    assert report.events == 3
    recorded = session.event(session.seq - 1)
    assert recorded.data["artifact"]["kind"] == "context_offload"
    assert resized(session, "offload", artifacts=artifacts).events == 0
    assert resized(session, "offload", artifacts=artifacts, min_keep_turns=4).events == 0
    prompts: list[str] = []

    def summarize(prompt: str) -> str:
        prompts.append(prompt)
        return f"summary {len(prompts)}"

    resized(session, "summarize", summarize=summarize, artifacts=artifacts)
    summary = "<read-files>\n/a\n</read-files>\n\n<conversation_summary>\nsummary 1\n</conversation_summary>"
    assert session.messages() == [said("user", summary), *TALK[:6]]
    assert session.entries()[0].placement == "prefix"
    assert resized(session, "summarize", summarize=summarize).events == 0
    session.add_history(TALK[6:10])
    resized(session, "summarize", summarize=summarize)
    second = summary.replace("summary 1", "summary 2")
    assert session.messages() == [said("user", second), *TALK[4:10]]
    assert session.view.window.summary == second
    assert "summary 1" in prompts[1]
    assert "USER: user 0" in prompts[1]
    assert "read it" not in prompts[1]
    assert shown(again(session)) == shown(session)
    assert session.history() == [said("user", "read it"), *read, *TALK[:10]]


def test_what_a_strategy_needs(store: Store) -> None:
    session = stored(store)
    before = session.seq
    for name, text in (
        ("llm", 'resize strategy "llm" needs a model: give the policy `summarize`'),
        ("summarize", 'resize strategy "summarize" needs a model: give the policy `summarize`'),
        ("offload", 'resize strategy "offload" needs an artifact store: give the policy `artifacts`'),
        ("custom", "compact_callback is required when compact_strategy is 'custom'"),
    ):
        with pytest.raises(ResizeError) as caught:
            session.resize(name)
        assert str(caught.value) == text
    assert session.seq == before


@pytest.mark.parametrize(
    ("opts", "name"),
    [
        ({}, None),
        ({"hard_limit_tokens": 24, "token_threshold": 22}, "truncate"),
        ({"hard_limit_tokens": 25, "token_threshold": 24}, "trim"),
        ({"token_threshold": 25, "max_tokens": 1}, None),
        ({"max_tokens": 42}, None),
        ({"max_tokens": 39, "threshold_pct": 0.5}, "trim"),
        ({"max_length": 10**4, "hard_limit_tokens": 10**4}, None),
        ({"max_length": 400, "hard_limit_tokens": 24}, "simple_cut"),
    ],
)
def test_the_first_limit_that_is_exceeded_counts(opts: dict[str, Any], name: str | None) -> None:
    session = Session()
    session.add_history(TALK)
    report = session.resize(compact_strategy="trim", keep_last=2, **opts)
    assert (report and report.strategy) == name


def test_the_hard_limits_strategy_follows_when_need_be() -> None:
    session = Session()
    session.add_history([said("user", "x" * 400), said("assistant", "y" * 400), said("user", "go on")])
    session.policy.strategy("half", lambda full, window, *_: (None, window[1:], None))
    session.policy.strategy("less", lambda full, window, *_: (None, window[-1:], None))
    report = resized(session, "half", hard_limit_tokens=50, hard_limit_strategy="less")
    assert (report.strategy, report.before.messages, report.after.messages) == ("less", 3, 1)
    assert report.events == 4


def test_what_others_append_meanwhile_stands_behind_it(store: Store) -> None:
    session = stored(store)
    other = again(session)

    def strategy(full: Any, window: Any, *_: Any) -> Any:
        other.add_history(said("user", "meanwhile"))
        other.set_memo("tea")
        return None, [said("user", "made"), window[-1]], None

    session.policy.strategy("mine", strategy)
    report = resized(session, "mine")
    assert not report.stale
    assert session.messages() == [said("user", "made"), TALK[-1], said("user", "meanwhile")]
    assert session.history() == [*TALK, said("user", "meanwhile")]
    assert shown(again(session)) == shown(session)


@pytest.mark.parametrize("compacts", [False, True])
def test_a_cut_meanwhile_makes_it_stale(store: Store, compacts: bool) -> None:
    session = stored(store)
    other = again(session)

    def strategy(*given: Any) -> Any:
        other.trim(3)
        return None, [said("user", "made")], "memo"

    session.policy.strategy("mine", strategy)
    report = resized(
        session, "custom" if compacts else "mine", custom_compactor=lambda archived: strategy(), keep_last=2
    )
    assert (report.stale, report.events) == (True, 0)
    assert report.data()["stale"] is True
    assert session.messages() == TALK[-3:]
    assert session.memo is None
