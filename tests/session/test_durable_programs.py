"""Every conformance program that opens a session says the same when all sessions are kept on a store.

The programs are about live sessions, so one that is closed or evicted is deleted from the store as well: to
a program that reuses its id it is gone. Spec: 10 §C9.
"""

from __future__ import annotations

import re
from pathlib import Path
from zlib import crc32

import pytest

from harnpy.cli.testing.conformance import Case, case_of, run_case
from harnpy.session import stores
from harnpy.session.log import KIND
from harnpy.session.open_sessions import OpenSession, is_stored
from harnpy.session.registry import SessionRegistry
from harnpy.session.stores import StoreSettings
from tests.clock import simulated_time
from tests.conformance_plugin import ROOT, TIMEOUT_MS, run_directory
from tests.counts import COUNT

_OPENS = re.compile(r"agent_session_|session_id|agent_subscribe")
#: Of the programs, one in so many is run on each store.
SHARES = {"sqlite": COUNT.sqlite_share, "jsonl": COUNT.jsonl_share}

STORES = {
    "sqlite": "sqlite:{}/sessions.db?durability=relaxed",
    "jsonl": "jsonl:{}/sessions?durability=relaxed",
}


#: What is otherwise on a store: not any text is an id, not any depth is kept (Spec: 10 §C3, §C3.4); and
#: programs that name stores themselves.
EXCEPTIONS = {
    "sessions/open/a_very_long_id_works_like_any_other.harn",
    "sessions/open/an_id_may_hold_quotes_and_control_characters.harn",
    "sessions/open/a_session_on_a_store.harn",
    "sessions/open/stores_that_are_refused.harn",
    "sessions/set_scratchpad/takes_thousands_of_levels.harn",
}

#: Programs about the depth of calls, 500 loops in one session each, which a store has no part in.
DEEP = {
    "regression/a_deadline_ends_subscribers_that_start_loops_without_end.harn",
    "regression/a_tool_that_starts_loops_without_end_overflows.harn",
}


def programs() -> list[Case]:
    """The programs that have to do with sessions."""
    paths = [path for path in sorted(ROOT.rglob("*.harn")) if _OPENS.search(path.read_text("utf-8"))]
    cases = [case_of(ROOT, path) for path in paths]
    return [
        case
        for case in cases
        if case is not None and case.kind != "skip" and case.name not in EXCEPTIONS | DEEP
    ]


def runs() -> list[tuple[Case, str]]:
    """Which programs are run, and on which store. A new program doesn't change where others are."""
    return [
        (case, scheme)
        for case in programs()
        for scheme in STORES
        if crc32(case.name.encode()) % SHARES[scheme] == 0
    ]


@pytest.mark.parametrize(
    ("case", "scheme"), [pytest.param(*run, id=f"{run[0].name} {run[1]}") for run in runs()]
)
def test_a_program_says_the_same_on_a_store(
    case: Case, scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = STORES[scheme].format(tmp_path)
    monkeypatch.setattr(stores, "store_settings", lambda world: StoreSettings(url, durable=True))
    forget = SessionRegistry.forget

    def forget_for_good(registry: SessionRegistry, opened: OpenSession) -> None:
        known = registry.by_id.get(opened.session.id) is opened
        forget(registry, opened)
        if known and is_stored(opened.session):
            opened.session.store.delete(KIND, opened.session.id)

    monkeypatch.setattr(SessionRegistry, "forget", forget_for_good)
    with run_directory(), simulated_time():
        result = run_case(case, TIMEOUT_MS, evaluator="compile")
    assert result.status != "fail", result.detail
