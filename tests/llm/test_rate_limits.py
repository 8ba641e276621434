"""Requests per minute and backoffs, on a clock that only sleeping moves. Spec: 07 §1.8, §1.13."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy.llm.errors import CallError
from harnpy.llm.providers.mock import MockProvider
from harnpy.llm.waiting import WINDOW, RateLimits
from tests.clock import SimulatedClock
from tests.worlds import models_with


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock(tick=0)


def limits(clock: SimulatedClock, env: dict[str, str] | None = None, **rest: Any) -> RateLimits:
    return RateLimits((env or {}).get, clock.monotonic, clock.sleep, **rest)


@given(rpm=st.integers(1, 5), pauses=st.lists(st.floats(0, 50), min_size=1, max_size=25))
def test_no_sixty_seconds_see_more_than_the_limit(rpm: int, pauses: list[float]) -> None:
    clock = SimulatedClock(tick=0)
    rates = limits(clock)
    rates.set("p", rpm)
    permits = []
    for pause in pauses:
        clock.passed += pause
        rates.acquire("p")
        permits.append(clock.passed)
    for earlier, later in zip(permits, permits[rpm:], strict=False):
        assert later - earlier >= WINDOW - 1e-6


def test_a_full_window_waits_until_its_oldest_request_leaves(clock: SimulatedClock) -> None:
    rates = limits(clock)
    rates.set("p", 2)
    rates.acquire("p")
    clock.passed += 10
    rates.acquire("p")
    clock.passed += 5
    rates.acquire("p")
    assert clock.slept == [45.0]
    rates.acquire("p")
    assert clock.slept == [45.0, 10.0]


def test_without_a_limit_nothing_waits(clock: SimulatedClock) -> None:
    rates = limits(clock)
    for _ in range(1000):
        rates.acquire("p")
    assert clock.slept == []


def test_where_a_limit_comes_from(clock: SimulatedClock) -> None:
    env = {"HARN_RATE_LIMIT_OPENAI": "9", "HARN_RATE_LIMIT_ODD": "many", "HARN_RATE_LIMIT_OFF": "0"}
    rates = limits(clock, env, configured={"openai": 3, "odd": 4, "together": 5}.get)
    assert [rates.rpm(name) for name in ("openai", "odd", "together", "off", "none")] == [9, 4, 5, None, None]
    rates.set("openai", 2)
    assert rates.rpm("openai") == 2
    rates.set("openai", 0)
    assert rates.rpm("openai") is None


def test_waits_between_tries_double_up_to_half_a_minute(clock: SimulatedClock) -> None:
    def fail() -> None:
        raise CallError("overloaded", "busy")

    with pytest.raises(CallError, match="busy"):
        limits(clock).run("p", fail, lambda error: "overloaded", retries=8, backoff_ms=1000)
    assert clock.slept == [1, 2, 4, 8, 16, 30, 30, 30]


# Transport retries (07 §1.8).


class Flaky:
    """A provider that fails with each of ``failures`` before it answers."""

    def __init__(self, failures: list[CallError]) -> None:
        self.failures = failures

    def complete(self, request: Any) -> Any:
        if self.failures:
            raise self.failures.pop(0)
        return MockProvider().complete(request)


def backoffs(clock: SimulatedClock, failures: list[CallError], **options: Any) -> list[float]:
    models = models_with({}, now=lambda: 0.0, monotonic=clock.monotonic, sleep=clock.sleep)
    request = models.request("hi", None, models.options({"provider": "mock", **options}))
    request.provider = "real"
    flaky = Flaky(failures)
    models.ask(request, answer=flaky.complete)
    return clock.slept


def test_the_backoff_doubles_up_to_sixteen_times_its_base(clock: SimulatedClock) -> None:
    failures = [CallError("overloaded", "busy") for _ in range(6)]
    assert backoffs(clock, failures, llm_retries=6) == [0.5, 1, 2, 4, 4, 4]


def test_the_backoff_has_a_base_of_its_own(clock: SimulatedClock) -> None:
    assert backoffs(clock, [CallError("timeout", "x")], llm_retries=1, llm_backoff_ms=10) == [0.02]


def test_a_providers_hint_comes_before_the_backoff(clock: SimulatedClock) -> None:
    failures = [CallError("rate_limit", "slow down\nretry-after: 1.5"), CallError("rate_limit", "m")]
    assert backoffs(clock, failures, llm_retries=2) == [1.5, 1.0]


def test_a_limit_holds_for_tries_again(clock: SimulatedClock) -> None:
    models = models_with({"HARN_RATE_LIMIT_REAL": "1"}, monotonic=clock.monotonic, sleep=clock.sleep)
    request = models.request("hi", None, models.options({"provider": "mock", "llm_retries": 1}))
    request.provider, request.backoff_ms = "real", 0
    models.ask(request, answer=Flaky([CallError("overloaded", "busy")]).complete)
    assert clock.slept == [0, WINDOW]
