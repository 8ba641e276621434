"""The stores that event logs are tested on."""

from collections.abc import Callable

import pytest

from harnpy.eventlog import StoreEventLog
from harnpy.storage import Store
from tests.storage.conftest import opened, store, url

__all__ = ["log", "opened", "store", "url"]


@pytest.fixture
def log(opened: Callable[..., Store]) -> StoreEventLog:
    """One on each store in turn, at 1.5 seconds since 1970."""
    return StoreEventLog(opened(), now=lambda: 1.5)
