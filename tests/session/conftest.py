"""The stores that sessions are tested on."""

from tests.storage.conftest import opened, store, url

__all__ = ["opened", "store", "url"]
