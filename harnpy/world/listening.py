"""Listening for HTTP: an ASGI application at an address, served by uvicorn in the running asyncio loop."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from harnpy.world.net.listeners import Application, Listener, Place

    class Listening(Protocol):
        async def listen(self, application: Application, place: Place) -> Listener:
            """Serve ``application`` until it is closed.

            Raises OSError when the address can't be had, ImportError without uvicorn.
            """


class RealListening:
    async def listen(self, application: Application, place: Place) -> Listener:
        try:
            from harnpy.world.net.web_server import listen
        except ImportError as error:
            if error.name not in ("uvicorn", "h11"):
                raise
            raise ImportError("listening needs the 'serve' package: pip install 'harnpy[serve]'") from error
        return await listen(application, place)
