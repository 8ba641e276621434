"""Following redirects without handing credentials to whoever a response points to.

httpx2 removes `Authorization` and `Cookie` when a redirect leaves the origin, but keys travel in many other
headers, such as `x-api-key` or one that a user has configured. So another origin receives only headers that
can't carry one. Spec: 07 §1.14.
"""

from __future__ import annotations

from typing import Any

HARMLESS = frozenset(
    "accept accept-charset accept-encoding accept-language cache-control connection content-encoding "
    "content-language content-length content-type date host range transfer-encoding user-agent".split()
)


def careful(client: type[Any]) -> type[Any]:
    """Return a subclass of an httpx2 async client that sends no credentials to another origin."""

    class CarefulClient(client):  # type: ignore[misc]
        async def send(self, request: Any, *, follow_redirects: Any = None, **options: Any) -> Any:
            follows = follow_redirects if isinstance(follow_redirects, bool) else self.follow_redirects
            left = self.max_redirects
            while True:
                response = await super().send(request, follow_redirects=False, **options)
                following = response.next_request if follows and left else None
                if following is None:
                    return response
                await response.aread()
                if _origin(following.url) != _origin(request.url):
                    _drop_credentials(following.headers)
                request, left = following, left - 1

    return CarefulClient


def _origin(url: Any) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _drop_credentials(headers: Any) -> None:
    for name in [*headers]:
        if name.lower() not in HARMLESS:
            del headers[name]
