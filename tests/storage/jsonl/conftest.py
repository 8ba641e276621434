"""A store in a directory of the test, opened as often as wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harnpy.storage.jsonl.layout import Medium
from harnpy.storage.jsonl.store import JsonlStore
from harnpy.storage.leases import Machine
from harnpy.storage.opening import parse_url

Open = Callable[..., JsonlStore]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def open_again(directory: Path) -> Iterator[Open]:
    """Open the store once more, as another process would; all of them are closed in the end."""
    stores: list[JsonlStore] = []

    def opened(medium: Medium | None = None, durability: str = "relaxed") -> JsonlStore:
        url = parse_url(f"jsonl:{directory}?durability={durability}")
        stores.append(JsonlStore(url, Machine(), medium))
        return stores[-1]

    yield opened
    for store in stores:
        store.close()
