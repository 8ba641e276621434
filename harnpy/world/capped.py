"""Responses of bounded size: a body without end, or a small one that unpacks to a huge one, is `TooLarge`."""

from __future__ import annotations

from typing import Any


class TooLarge(Exception):
    """A response has more than ``most`` of what ``unit`` names."""

    def __init__(self, most: int, unit: str = "bytes") -> None:
        super().__init__(f"the response has more than {most} {unit}")
        self.unit = unit


def capped(client: type[Any], most: int) -> type[Any]:
    """Return a subclass of an httpx2 async client whose responses have up to ``most`` bytes, unpacked."""

    class CappedClient(client):  # type: ignore[misc]
        async def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
            response = await super().send(request, stream=True, **options)
            _cap(response, most)
            if not stream:
                try:
                    await response.aread()
                finally:
                    await response.aclose()
            return response

    return CappedClient


def _cap(response: Any, most: int) -> None:
    """Have everything that reads the body, which goes through `aiter_bytes`, count what it gets."""
    unbounded = response.aiter_bytes

    async def aiter_bytes(chunk_size: int | None = None) -> Any:
        left = most
        async for chunk in unbounded(chunk_size):
            left -= len(chunk)
            if left < 0:
                await response.aclose()
                raise TooLarge(most)
            yield chunk

    response.aiter_bytes = aiter_bytes
