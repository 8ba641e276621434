"""The stores that sessions are tested on."""

from tests.storage.conftest import opened, store, uptime, url

__all__ = ["opened", "store", "uptime", "url"]
