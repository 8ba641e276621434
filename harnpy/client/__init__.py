"""The client of `harnpy serve`: `Client`, `AsyncClient`, `ApiError`. Spec: 11 §3.

`types` are what goes over the line. Names load on first use: importing this package imports nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.client.clients import AsyncClient as AsyncClient
    from harnpy.client.clients import Client as Client
    from harnpy.client.errors import ApiError as ApiError

__all__ = ["ApiError", "AsyncClient", "Client"]


def __getattr__(name: str) -> object:
    if name == "ApiError":
        from harnpy.client.errors import ApiError

        return ApiError
    if name in __all__:
        from harnpy.client import clients

        return getattr(clients, name)
    raise AttributeError(f"module 'harnpy.client' has no attribute {name!r}")
