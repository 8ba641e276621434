"""What a release brings: a table of prices in our own form, few megabytes, extras that are all tried."""

from __future__ import annotations

import json
import os
import re
import runpy
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from importlib.metadata import distribution
from types import SimpleNamespace as Of
from typing import Any

from packaging.requirements import Requirement

from tests.support import ROOT

_SCRIPT = runpy.run_path(str(ROOT / "release" / "prices.py"))
_DAY = datetime(2026, 11, 2, 15, 30, tzinfo=UTC)


class _Model:
    """A model whose price depends on the hour; `prices` are those of the day, and of six o'clock."""

    def __init__(self, id: str, match: Any, *prices: dict[str, Any], window: int | None = None) -> None:
        self.id, self.match, self.context_window, self._prices = id, match, window, prices

    def get_prices(self, time: datetime) -> Any:
        assert (time.date(), time.tzinfo) == (_DAY.date(), UTC)
        return Of(**self._prices[-1 if time.hour == 6 else 0])


def _tiered(base: str, *tiers: tuple[int, str]) -> Any:
    return Of(base=Decimal(base), tiers=[Of(start=start, price=Decimal(price)) for start, price in tiers])


def _made(*providers: Any) -> Any:
    return json.loads(_SCRIPT["table"](list(providers), "genai-prices 9", _DAY))


def _provider(id: str, *models: _Model, **more: Any) -> Any:
    known = {"api_pattern": rf"https://{id}\.example", "model_match": None, "fallback_model_providers": None}
    return Of(id=id, models=models, **known | more)


def test_rows_have_patterns_a_window_and_rates() -> None:
    cheap, dear = {"input_mtok": Decimal("0.5"), "output_mtok": Decimal(2)}, {"input_mtok": Decimal(1)}
    made = _made(
        _provider(
            "acme",
            _Model("small", Of(equals="Small"), cheap | {"cache_read_mtok": Decimal("0.1")}, window=1000),
            _Model("night", Of(starts_with="night-"), cheap, cheap | dear),
            _Model("voice", Of(equals="voice"), {"audio_hours": Decimal(3)}),
            model_match=Of(contains="acme"),
            fallback_model_providers=["other"],
        ),
        _provider("other", _Model("voice", Of(equals="voice"), {})),
        _provider("openrouter", _Model("acme/night", Of(equals="acme/night"), cheap, window=2000)),
    )
    assert (made["source"], made["date"]) == ("genai-prices 9", "2026-11-02")
    assert made["providers"] == {
        "acme": {
            "url": r"https://acme\.example",
            "makes": ["*acme*"],
            "sells": ["other"],
            "models": [
                [["small"], 1000, [0.5, 2.0, 0.1, None]],
                [["night-*"], 2000, [1.0, 2.0, None, None]],  # the dearest of the day
            ],
        },
        "openrouter": {
            "url": r"https://openrouter\.example",
            "makes": [],
            "sells": [],
            "models": [[["acme/night"], 2000, [0.5, 2.0, None, None]]],
        },
    }


def test_a_tier_has_all_rates() -> None:
    prices = {
        "input_mtok": _tiered("1", (200, "2"), (400, "4")),
        "output_mtok": _tiered("5", (200, "6")),
        "cache_read_mtok": Decimal("0.1"),
    }
    made = _made(_provider("acme", _Model("m", Of(equals="m"), prices)))
    (row,) = made["providers"]["acme"]["models"]
    assert row[2:] == [
        [1.0, 5.0, 0.1, None], [200, [2.0, 6.0, 0.1, None]], [400, [4.0, 6.0, 0.1, None]]
    ]  # fmt: skip


def test_patterns() -> None:
    clause = Of(
        or_=[
            Of(ends_with="-x"),
            Of(regex=r"^m-\d+$"),
            Of(regex="tts"),
            Of(and_=[Of(starts_with="G.5"), Of(regex="^(?!.*-tts)"), Of(contains="pro")]),
        ]
    )
    assert list(_SCRIPT["patterns"](clause)) == [
        "*-x", r"^m-\d+$", "^.*tts", r"^(?=g\.5)(?=(?!.*-tts))(?=.*pro)"
    ]  # fmt: skip


_CHECK = runpy.run_path(str(ROOT / "release" / "check.py"))
#: What a module takes with what Python 3.11 compiles it to, in sizes of its source.
_COMPILED = 2.85
#: Bytes of directories, and of what is no module of ours.
_REST = 2_400_000


def _required(name: str, seen: set[str]) -> Iterator[str]:
    """Yield what a package requires, and what that does in turn, without extras."""
    for line in distribution(name).requires or []:
        found = re.match(r"[\w.-]+", line)
        assert found is not None
        each = re.sub(r"[-_.]+", "-", found[0]).lower()
        if _applies(line) and each not in seen:
            seen.add(each)
            yield each
            yield from _required(each, seen)


def _applies(requirement: str) -> bool:
    marker = Requirement(requirement).marker
    return marker is None or marker.evaluate({"extra": ""})


def test_an_installation_stays_below_its_ceiling() -> None:
    """`python release/check.py install` measures it in a fresh environment, which takes minutes."""
    files = [file.locate() for name in _required("harnpy", set()) for file in distribution(name).files or []]
    others = sum(os.path.getsize(str(file)) for file in files if os.path.isfile(str(file)))
    ours = sum(path.stat().st_size for path in (ROOT / "harnpy").rglob("*.py")) * _COMPILED
    assert 20e6 < others < others + ours + _REST < _CHECK["CEILING"]


def test_the_use_of_each_extra_is_tried() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    uses = _CHECK["extras_and_uses"]()
    assert uses.keys() == project["optional-dependencies"].keys() - {"docs", "notebooks", "peers", "test"}
    for name, use in uses.items():
        compile(use, name, "exec")
