"""HTTP: the clients that programs and the model services' SDKs send their requests with, and listening.

Loads no client and no server before the first one is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from harnpy.version import install_command

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from http.cookiejar import CookieJar

    import httpx2

    from harnpy.world.connections import Application, Listener, Place, Settings
    from harnpy.world.egress import Egress

    class Listening(Protocol):
        async def listen(self, application: Application, place: Place) -> Listener:
            """Serve ``application`` until it is closed.

            Raises OSError when the address can't be had, ImportError without uvicorn.
            """


#: What model calls and checks of their services are called where it is decided what may be reached.
LLM_CALL = "llm_call"


class Http(Protocol):
    def behind(self, egress: Egress) -> Http:
        """The same, where ``egress`` is asked before every request and every connection."""

    def client(
        self,
        surface: str,
        *,
        permit: Callable[[str], object] | None = None,
        settings: Settings | None = None,
        cookies: CookieJar | None = None,
    ) -> httpx2.AsyncClient:
        """A new client, which the caller closes.

        It follows redirects; another origin receives no credentials. Requests are made by ``surface``, as 04
        §21.4 names them, unless `extensions={"surface": …}` of a request names another. ``permit`` is called
        with each URL before a request is sent there, redirects included, and raises for one that may not be.
        Without ``cookies`` it keeps none. Raises OSError for files of ``settings`` that can't be used.
        """

    def sdk_client(self, sdk: Any, most: int) -> Any:
        """A new asynchronous client for the official SDK ``sdk``, a module.

        A redirect to another origin receives no credentials. A response of more than ``most`` bytes raises
        `harnpy.world.response_bodies.TooLarge`.
        """

    async def status(
        self, method: str, url: str, headers: Mapping[str, str], timeout: float, body: Any = None
    ) -> int:
        """Send a request to a model service, with ``body`` as JSON, and return the status of the response.

        Raises TimeoutError, `EgressBlocked`, and `Unreachable` when there is no response.
        """


class Unreachable(Exception):
    """No response came; ``kind`` is a word for what went wrong."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


class RealHttp:
    """``egress``: what may be reached, by default anything."""

    def __init__(self, egress: Egress | None = None) -> None:
        self._egress = egress

    @property
    def egress(self) -> Egress:
        if self._egress is None:
            from harnpy.world.egress import Egress

            self._egress = Egress()
        return self._egress

    def behind(self, egress: Egress) -> RealHttp:
        return RealHttp(egress)

    def client(
        self,
        surface: str,
        *,
        permit: Callable[[str], object] | None = None,
        settings: Settings | None = None,
        cookies: CookieJar | None = None,
    ) -> httpx2.AsyncClient:
        from harnpy.world.connections import USUAL
        from harnpy.world.http_client import new_client

        return new_client(self.egress, surface, permit, USUAL if settings is None else settings, cookies)

    def sdk_client(self, sdk: Any, most: int) -> Any:
        from harnpy.world.http_client import admitted, usual_tls
        from harnpy.world.redirects import careful
        from harnpy.world.response_bodies import capped

        client = careful(capped(admitted(sdk.DefaultAsyncHttpxClient, self.egress, LLM_CALL), most))
        return client(verify=usual_tls())

    async def status(
        self, method: str, url: str, headers: Mapping[str, str], timeout: float, body: Any = None
    ) -> int:
        import httpx2

        try:
            # Only the head of the response is read.
            async with (
                self.client(LLM_CALL) as client,
                client.stream(
                    method, url, json=body, headers=headers, timeout=timeout, follow_redirects=False
                ) as response,
            ):
                status = response.status_code
        except httpx2.TimeoutException:
            raise TimeoutError from None
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
            # Without its cause: that one may hold a key.
            raise Unreachable(type(error).__name__) from None
        return status


class RealListening:
    async def listen(self, application: Application, place: Place) -> Listener:
        try:
            from harnpy.world.web_server import listen
        except ImportError as error:
            if error.name not in ("uvicorn", "h11", "websockets"):
                raise
            raise ImportError(f"listening needs the extra 'serve': {install_command('serve')}") from error
        return await listen(application, place)
