"""The words of failure: what they say, and that they survive a trip to another process."""

from __future__ import annotations

import pickle

import pytest

from harnpy.faults import CategorizedError, Fault, Interruption, MisuseError, OptionError
from harnpy.llm.errors import BudgetExceeded, BudgetSpent, CallError
from harnpy.session.errors import InvalidArgument, ResizeError, SessionConflict


@pytest.mark.parametrize(
    "fault",
    [
        Fault("plain"),
        OptionError("no such option"),
        MisuseError("wrong"),
        CategorizedError("timeout", "too slow"),
        CallError("rate_limit", "slow down"),
        BudgetSpent(1.0, 0.5),
        BudgetExceeded("too dear", {"limit": 1}),
        SessionConflict("s", 1, 2),
        InvalidArgument("agent_session_trim", "`keep_last` must be >= 0"),
        ResizeError("nothing to cut"),
    ],
    ids=lambda fault: type(fault).__name__,
)
def test_a_fault_pickles_with_its_parts(fault: Fault) -> None:
    again = pickle.loads(pickle.dumps(fault))
    assert type(again) is type(fault)
    assert vars(again) == vars(fault)
    assert str(again) == again.message == fault.message


def test_who_tolerates_failures_does_not_catch_an_interruption() -> None:
    assert not issubclass(Interruption, Exception)
