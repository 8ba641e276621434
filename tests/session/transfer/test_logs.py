"""harnpy's own file of a session, out and in: the same session. Spec: 10 §C17."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings

from harnpy.session.transfer.formats import export, import_, lost
from harnpy.session.transfer.logs import dump_log
from harnpy.storage.memory import MemoryStore
from tests.session.test_views_equal import views
from tests.session.transfer.conversations import EXAMPLES, STEPS, play, take


@settings(max_examples=EXAMPLES, deadline=None)
@given(STEPS, STEPS)
def test_what_goes_out_comes_in(steps: list[tuple[Any, ...]], later: list[tuple[Any, ...]]) -> None:
    session = play([("say", 0, "first"), *steps])
    fork = session.fork("fork")
    take(fork, later)
    for each in (session, fork):
        text = export(each)
        found = import_(text, MemoryStore(), "jsonl")
        assert found is not None
        shown, expected = views(found), views(each)
        assert {**shown, "transcript": None} == {**expected, "transcript": None}
        assert (found.info, found.revision) == (each.info, each.revision)
        if each is session:
            assert "".join(dump_log(found)) == text
            assert shown == expected
        assert lost(each, "jsonl") == []
