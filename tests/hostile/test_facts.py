"""Facts that an application writes by hand, with as few fields as their types ask for, and odd values.

Nothing that a session does with its log may fail in a raw Python error.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from harnpy.session import Session, SessionError, SessionRuntime, drafts, turn
from harnpy.session.events import STEP_COMPLETED
from harnpy.session.payload_types import PayloadType
from harnpy.session.trajectory import distill, export_run, export_run_tree
from harnpy.session.turns import Fact, end_open_turns, usage
from tests.counts import COUNT
from tests.session.drafting.test_payloads import KINDS, fitted, payloads

READERS: list[Callable[[Session], Any]] = [
    Session.turns, Session.window, Session.entries, Session.history, Session.last_assistant_message,
    Session.snapshot, end_open_turns, Session.rewind, lambda session: session.info,
    lambda session: session.is_waiting, lambda session: session.view.transcript("s"),
    lambda session: session.model_settings, lambda session: distill(export_run(session)),
    lambda session: export_run_tree(session, lambda id: None).data(),
]  # fmt: skip
FACTS = st.one_of(*(payloads(kind) for type, kind in KINDS.items() if type != "turn_completed"))


@pytest.mark.parametrize("url", ["memory:", "sqlite:{path}/s.db?durability=relaxed"])
@settings(
    max_examples=COUNT.examples(12),
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(told=st.lists(FACTS, min_size=1, max_size=12))
def test_every_reader_copes(url: str, tmp_path: Any, told: list[PayloadType]) -> None:
    with SessionRuntime(url.format(path=tmp_path)) as runtime:
        session = runtime.create()
        session.append(*(drafts.user(f"m{number}") for number in (1, 2, 3)))
        with turn("t"):
            session.append(drafts.turn_started("x"))
            for said in fitted(told, session):
                with suppress(SessionError):
                    session.append(said.draft())
        for _ in ("as it is", "opened again"):
            for read in READERS:
                with suppress(SessionError):
                    read(session)
            runtime.list()
            runtime.search("m1")
            runtime.evict(session.id)
            session = runtime.get(session.id)


def test_a_usage_that_is_no_number_does_not_count() -> None:
    steps: list[Any] = [{"a": 1, "b": ""}, {"a": 2.5, "b": None, "c": True}, "much", None]
    told = [Fact(STEP_COMPLETED, {"usage": used}) for used in steps]
    assert usage(told) == {"a": 3.5}
    assert usage(told[2:]) is None
