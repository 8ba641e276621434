"""The same stores as for the contract."""

from tests.storage.conftest import opened, url

__all__ = ["opened", "url"]
