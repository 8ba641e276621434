"""The counts of `pytest --campaign`."""

from __future__ import annotations

from tests.counts import Counts


def test_without_a_campaign_counts_are_small() -> None:
    counts = Counts()
    assert counts.signals == 10
    assert counts.silent_share == 37
    assert counts.examples(40) == 20
    assert counts.seeds(3) == range(3)


def test_a_campaign_tries_much_from_its_own_seed() -> None:
    counts = Counts()
    counts.campaign, counts.seed = 1.0, 700
    assert counts.signals == 1_000
    assert counts.silent_share == 1
    assert counts.examples(40) == 4_000
    assert counts.seeds(3) == range(700, 703)


def test_a_small_campaign_tries_no_less_than_ci() -> None:
    counts = Counts()
    counts.campaign = 0.01
    assert counts.signals == 10
    assert counts.differential_programs == 200
    assert counts.examples(40) == 40
    assert counts.silent_share == 1
