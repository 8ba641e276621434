"""What a principal's sessions have cost today. Spec: 11 §1.2."""

from __future__ import annotations

import pytest

from harnpy.client import types as t
from harnpy.serve.budgets import Spending
from harnpy.serve.service import Caller, Refused, Service
from harnpy.session import EventDraft
from harnpy.session.runtime import SessionRuntime
from tests.clock import SimulatedClock

DAY = 86_400.0
NOON = 20_000 * DAY + DAY / 2


class Ledger:
    """Sessions on a store, and who pays for them."""

    def __init__(self, url: str) -> None:
        self.clock = SimulatedClock(NOON)
        self.runtime = SessionRuntime(url, clock=self.clock)
        self.spending = Spending(self.runtime, Service(self.runtime).owner, self.clock.now)

    def create(self, id: str, owner: str) -> None:
        self.runtime.create(id=id, metadata={"principal": owner})

    def say(self, id: str, cost: float) -> None:
        self.runtime.get(id).append(EventDraft("step_completed", {}, cost=cost))
        self.runtime.store.flush()


@pytest.mark.parametrize("scheme", ["memory:", "sqlite:"])
def test_the_day_of_a_principal(scheme: str, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(scheme if scheme == "memory:" else f"{scheme}{tmp_path}/s.db")
    today = ledger.spending.today
    ledger.create("old", "ada")
    ledger.say("old", 5.0)
    ledger.clock.passed += DAY
    assert today("ada") == 0
    ledger.create("new", "ada")
    ledger.create("other", "eve")
    ledger.say("old", 0.5)
    ledger.say("new", 0.25)
    ledger.say("other", 8.0)
    assert (today("ada"), today("eve"), today("nobody")) == (0.75, 8.0, 0.0)

    # What a fork shares has cost its parent.
    ledger.runtime.get("new").fork("fork")
    ledger.say("fork", 0.125)
    assert today("ada") == 0.875

    # A look reads what has changed, and no events of what it knows.
    monkeypatch.setattr(ledger.runtime, "open", None)
    ledger.say("new", 1.0)
    assert today("ada") == 1.875
    monkeypatch.undo()

    rich, poor = (Caller("ada", frozenset(), t.Limits(cost_per_day=most)) for most in (2.0, 1.5))
    ledger.spending.check(rich)
    ledger.spending.check(Caller("ada", frozenset()))
    with pytest.raises(Refused, match=r"'ada' has spent \$1.8750 today of \$1.5") as refused:
        ledger.spending.check(poor)
    assert (refused.value.status, refused.value.code) == (402, "over_budget")

    ledger.clock.passed += DAY
    assert today("ada") == 0
    ledger.runtime.close()
