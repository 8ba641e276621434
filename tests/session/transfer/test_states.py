"""`dump_state` and `load_state`: a state as text, a session by itself made of it. Spec: 10 §A2.7, §C17."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as sized

from harnpy.session import Session, SessionRuntime, dump_state, load_state
from harnpy.session.errors import InvalidSessionId, TransferError
from tests.session.shapes import said
from tests.session.transfer.conversations import EXAMPLES, STEPS, play

TALK = [said("user", "hi"), said("assistant", "hello")]


@sized(max_examples=EXAMPLES, deadline=None)
@given(STEPS)
def test_what_goes_out_comes_in(steps: list[tuple[Any, ...]]) -> None:
    session = play(steps)
    state = shown(session)
    for format in ("json", "yaml"):
        found = load_state(dump_state(session, format), format)
        assert shown(found) == state
        assert (found.messages(), found.history()) == (session.messages(), session.history())


def shown(session: Session) -> Any:
    """A session's state but for what counts saves: one by itself has none."""
    state = json.loads(dump_state(session))
    del state["harn"]["revision"]
    return state


def test_what_is_loaded_is_a_session_by_itself(tmp_path: Path) -> None:
    session = Session("s", settings={"max_length": 200})
    session.add_history(TALK)
    session.set("metadata.team", "ops")
    session.set_status("suspended")
    file = tmp_path / "all.json"
    file.write_text(f"{{saved: {{s: {dump_state(session)}}}}} // JSON5", encoding="utf-16")
    found = load_state(str(file), session_key_path="saved.s", encoding="utf-16", id="other")
    assert (found.id, found.revision, found.messages(), found.status) == ("other", 0, TALK, "suspended")
    assert found.metadata == {"team": "ops"}
    found.add_history(said("user", "x" * 150))
    assert found.length == 1, "its settings hold"
    fork = found.fork("f", at=found.seq)
    assert fork.history() == found.history()
    with SessionRuntime("memory:") as runtime:
        assert runtime.create(found).history() == found.history()
        assert runtime.info("other").revision == 1
    assert "harn" not in json.loads(dump_state(found, plain=True))


def test_what_is_no_state() -> None:
    with pytest.raises(TransferError, match=r"^unknown format 'toml' \(known: json, yaml\)$"):
        dump_state(Session(), "toml")
    with pytest.raises(TransferError, match=r"^Cannot load YAML content or file path not existed"):
        load_state("a: [", "yaml")
    with pytest.raises(InvalidSessionId):
        load_state("{}", id=" ")
