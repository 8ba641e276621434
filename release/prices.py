"""Write the table of prices and context windows, harnpy/llm/configuration/prices.json, from genai-prices.

    python -m venv /tmp/prices && /tmp/prices/bin/pip install genai-prices
    /tmp/prices/bin/python release/prices.py

A release begins with it. harnpy reads the table and not the package, whose import takes a tenth of a second.
The table holds what tokens cost on the day when it is made; where that depends on the hour, the dearest. Left
out are models without a price a token, and fees for searches, sounds, images and requests.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

TABLE = Path(__file__).parent.parent / "harnpy" / "llm" / "configuration" / "prices.json"

_PACKAGE = "genai-prices"
#: The prices of a row, in this order. Cache prices may be missing.
_KINDS = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok")
_HALF_HOUR = timedelta(minutes=30)


def table(providers: list[Any], source: str, day: datetime) -> str:
    """Return the text of the table, JSON with a line for each model, so that a diff shows what changed."""
    head = {"source": source, "date": f"{day:%Y-%m-%d}"}
    lines = [json.dumps(head, ensure_ascii=False)[:-1] + ', "providers": {']
    windows = _windows(providers)
    known = list(filter(None, (_section(provider, windows, day) for provider in providers)))
    lines.append(",\n".join(known))
    return "\n".join([*lines, "}}", ""])


def _windows(providers: list[Any]) -> dict[str, int]:
    """Return the context windows that OpenRouter tells, by the name of the model without its maker."""
    models = [model for provider in providers if provider.id == "openrouter" for model in provider.models]
    return {model.id.rpartition("/")[2]: model.context_window for model in models}


def _section(provider: Any, windows: dict[str, int], day: datetime) -> str:
    rows = [row for model in provider.models if (row := _row(model, windows, day)) is not None]
    if not rows:
        return ""
    head = {
        "url": provider.api_pattern,
        "makes": [] if provider.model_match is None else list(patterns(provider.model_match)),
        "sells": provider.fallback_model_providers or [],
    }
    shown = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    return f'{json.dumps(provider.id)}: {json.dumps(head)[:-1]}, "models": [\n{shown}]}}'


def _row(model: Any, windows: dict[str, int], day: datetime) -> list[Any] | None:
    """Return ``[patterns, window, prices, [above, prices], …]``; None for a model without a price a token."""
    midnight = day.replace(hour=0, minute=0)
    of_the_day = (vars(model.get_prices(midnight + i * _HALF_HOUR)) for i in range(48))
    found = max(of_the_day, key=lambda prices: prices_at(0, prices)[:2])
    if not any(prices_at(0, found)):
        return None
    tiers = [[start, prices_at(start, found)] for start in sorted(set(_starts(found)))]
    window = model.context_window or windows.get(model.id)
    return [list(patterns(model.match)), window, prices_at(0, found), *tiers]


def prices_at(start: int, found: dict[str, Any]) -> list[Any]:
    """Return the prices of the tier that begins at ``start``; output without a price costs nothing."""
    before, after, *of_cache = [_at(start, found.get(kind)) for kind in _KINDS]
    return [before or 0.0, after or 0.0, *of_cache]


def _at(start: int, price: Any) -> float | None:
    if price is not None and hasattr(price, "tiers"):
        reached = [tier.price for tier in price.tiers if tier.start <= start]
        price = reached[-1] if start and reached else price.base
    return None if price is None else float(price)


def _starts(found: dict[str, Any]) -> Iterator[int]:
    for kind in _KINDS:
        for tier in getattr(found.get(kind), "tiers", ()):
            yield tier.start


# What matches the name of a model: a pattern with stars, or a regular expression, which begins with `^`.


def patterns(clause: Any) -> Iterator[str]:
    """Return patterns of lower-case names, of which one must match."""
    kind, value = _only(clause)
    if kind == "or_":
        for each in value:
            yield from patterns(each)
    elif kind in ("and_", "regex"):
        yield f"^{_expression(clause)}"
    else:
        before, after = _STARS[kind]
        yield f"{before}{value.lower()}{after}"


_STARS = {"starts_with": ("", "*"), "ends_with": ("*", ""), "contains": ("*", "*"), "equals": ("", "")}


def _expression(clause: Any) -> str:
    """Return the regular expression of a clause, from the beginning of the name."""
    kind, value = _only(clause)
    if kind == "and_":
        return "".join(f"(?={_expression(each)})" for each in value)
    if kind == "regex":
        return str(value).removeprefix("^") if value.startswith("^") else f".*{value}"
    before, after = _STARS[kind]
    return f"{before.replace('*', '.*')}{re.escape(value.lower())}{'' if after else '$'}"


def _only(clause: Any) -> tuple[str, Any]:
    ((kind, value),) = vars(clause).items()
    return kind, value


def main() -> int:
    try:
        providers = import_module("genai_prices.data").providers
    except ModuleNotFoundError:
        sys.exit(f"release/prices.py needs {_PACKAGE}: pip install {_PACKAGE}")
    source = f"{_PACKAGE} {version(_PACKAGE)}"
    TABLE.write_text(table(providers, source, datetime.now(UTC)), encoding="utf-8")
    print(f"{TABLE.name}: {source}, {TABLE.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
