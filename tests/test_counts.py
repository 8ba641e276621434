"""The counts of `pytest --campaign`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.counts import Counts, on_other_stores


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


def item(name: str, **params: object) -> Any:
    return SimpleNamespace(nodeid=f"tests/session/test_a.py::{name}", callspec=SimpleNamespace(params=params))


def test_of_tests_that_are_alike_but_for_their_store_one_is_left() -> None:
    kinds = ["memory", "jsonl", "sqlite", "postgres"]
    alike = [item(f"test_a[{kind}-{verb}]", url=kind, verb=verb) for verb in ("get", "put") for kind in kinds]
    left = [one for one in alike if one not in list(on_other_stores(alike))]
    assert [one.callspec.params["verb"] for one in left] == ["get", "put"]
    templates = ["memory:", "jsonl:{}/log", "sqlite:{}/s.db?durability=relaxed"]
    assert len(list(on_other_stores([item(f"test_b[{url}]", url=url) for url in templates]))) == 2


def test_a_url_that_is_what_a_test_is_about_is_no_store() -> None:
    rows = [item(f"test_c[{url}]", url=url, error="") for url in ("sqlite:/a.db", "jsonl:/a", "s3:a")]
    assert not list(on_other_stores(rows))
    assert not list(on_other_stores([item("test_d[a]", a=1), SimpleNamespace(nodeid="tests/b.py::test_b")]))
