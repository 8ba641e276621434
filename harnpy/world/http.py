"""HTTP: single requests, and the clients that the model services' SDKs send their calls with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping


class Http(Protocol):
    async def status(
        self, method: str, url: str, headers: Mapping[str, str], timeout: float, body: Any = None
    ) -> int:
        """Send a request, with ``body`` as JSON, and return the status of the response.

        Raises TimeoutError, and `Unreachable` when there is no response.
        """

    def client(self, sdk: Any, most: int) -> Any:
        """A new asynchronous client for the official SDK ``sdk``, a module.

        A redirect to another origin receives no credentials. A response of more than ``most`` bytes raises
        `harnpy.world.capped.TooLarge`.
        """


class Unreachable(Exception):
    """No response came; ``kind`` is a word for what went wrong."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


class RealHttp:
    async def status(
        self, method: str, url: str, headers: Mapping[str, str], timeout: float, body: Any = None
    ) -> int:
        import httpx

        try:
            # Only the head of the response is read.
            async with (
                httpx.AsyncClient(timeout=timeout, headers=headers) as client,
                client.stream(method, url, json=body) as response,
            ):
                status = response.status_code
        except httpx.TimeoutException:
            raise TimeoutError from None
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            # Without its cause: that one may hold a key.
            raise Unreachable(type(error).__name__) from None
        return status

    def client(self, sdk: Any, most: int) -> Any:
        from harnpy.world.capped import capped
        from harnpy.world.redirects import careful

        return careful(capped(sdk.DefaultAsyncHttpxClient, most))()
