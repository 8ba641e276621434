"""Servers that listen: each until it is shut down, the process is asked to stop, or the program ends.

Spec: 04 §21.5.
"""

from __future__ import annotations

import asyncio

from harnpy.builtins.bridge.places import path_at_work
from harnpy.builtins.bridge.request_tasks import RequestTasks, show_output
from harnpy.faults import NamedMisuse
from harnpy.net.server import tls
from harnpy.net.server.asgi import Application
from harnpy.net.server.faults import ServerFault, number, text
from harnpy.vm.limits import LimitReached
from harnpy.world.files import system_reason
from harnpy.world.net.listeners import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from harnpy.net.server.server import Server
    from harnpy.vm.vm import Vm
    from harnpy.world.net.listeners import Listener


class Services:
    """Those of one program, by the id of the server."""

    def __init__(self) -> None:
        self._by_id: dict[str, Service] = {}

    def find(self, server: Server) -> Service | None:
        return self._by_id.get(server.id)

    def listen(self, vm: Vm, server: Server, options: dict[str, Any]) -> Service:
        """Have ``server`` listen. Raises ServerFault when it does already, or the address is taken."""
        if server.is_shut_down:
            raise ServerFault(f"{server.id} is shut down")
        if server.id in self._by_id:
            raise ServerFault(f"{server.id} listens already, at {self._by_id[server.id].url}")
        service = Service(vm, server, options)
        self._by_id[server.id] = service
        try:
            service.open()
        except BaseException:
            del self._by_id[server.id]
            raise
        return service


def services_of(vm: Vm) -> Services:
    return vm.state(Services)


class Service:
    """A server that listens; ``options`` are those of `LISTEN`, which were checked."""

    def __init__(self, vm: Vm, server: Server, options: dict[str, Any]) -> None:
        self.server = server
        self._vm = vm
        self._tls = tls.to_listen(options.get("tls") or tls.plain())
        self._place = _place(vm, options, self._tls)
        self._grace = number(options, "grace_ms", 10_000) / 1000
        self._requests = RequestTasks(vm)
        body_seconds = number(options, "body_timeout_ms", 30_000, least=1) / 1000
        headers = tls.security_headers(self._tls)
        self._application = Application(server, self._requests, headers, self._place.head_bytes, body_seconds)
        self._is_closing = False
        #: Called when it is shut down.
        self._done: list[Callable[[], object]] = []
        self._opened, self._ended = asyncio.Event(), asyncio.Event()
        self._listener: Listener | None = None
        self._forget: Callable[[], None] = _nothing

    def open(self) -> None:
        tasks = self._vm.tasks
        # Before it listens: whoever is interrupted then has no handle of what is open.
        tasks.at_end(self._abort)
        try:
            tasks.await_coroutine(self._listen())
        except ImportError as error:
            raise NamedMisuse(str(error)) from None
        except OSError as error:
            where = f"{self._place.host}:{self._place.port}"
            raise ServerFault(f"can't listen at {where}: {error.strerror or error}") from None
        self._forget = self._vm.unguarded.stopping.before(self._stop, self._grace)

    async def _listen(self) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            self._listener = await self._vm.world.listening.listen(self._application, self._place)
        finally:
            self._opened.set()

    @property
    def url(self) -> str:
        return f"{'https' if self._place.certificate else 'http'}://{self.address}"

    @property
    def address(self) -> str:
        assert self._listener is not None
        host = self._listener.host
        return f"[{host}]:{self._listener.port}" if ":" in host else f"{host}:{self._listener.port}"

    def shown(self) -> dict[str, Any]:
        assert self._listener is not None
        return {
            **self.server.handle(),
            "addr": self.address,
            "host": self._listener.host,
            "port": self._listener.port,
            "url": self.url,
        }

    # --- the end -----------------------------------------------------------------------------------

    def wait(self) -> None:
        """Suspend the current task until the server has been shut down."""
        show_output(self._vm)
        self._vm.tasks.await_coroutine(self._ended.wait())

    def shut_down(self) -> bool:
        """Shut down: running requests go on for the grace time. Return False when that has begun before.

        Waits for the end, unless it is one of the requests that asks.
        """
        if self._is_closing:
            return False
        self._begin(self._ended.set)
        if not self._requests.is_within():
            self.wait()
        return True

    def _stop(self, done: Callable[[], None]) -> None:
        """Shut down as the process was asked to stop: called between any two instructions.

        Whoever waits for the end goes on waiting: the program is interrupted there.
        """
        self._loop.call_soon_threadsafe(self._begin_or, done)

    def _begin_or(self, done: Callable[[], object]) -> None:
        try:
            self._begin(done)
        except LimitReached:
            # There may be no further task: then nothing is finished first.
            done()

    def _begin(self, done: Callable[[], object]) -> None:
        self._done.append(done)
        if not self._is_closing:
            self._is_closing = True
            self._requests.beside(self._close)

    def _close(self) -> None:
        try:
            self._application.end_streams()
            self._vm.tasks.await_coroutine(self._close_listener())
            self.server.is_shut_down = True
            self.server.run_shutdown_hooks()
        finally:
            self._forget()
            for done in self._done:
                done()

    async def _close_listener(self) -> None:
        await self._opened.wait()
        if self._listener is not None:
            await self._listener.close(self._grace)

    async def _abort(self) -> None:
        """The program ends: so do its connections."""
        self._forget()
        if self._listener is not None:
            await self._listener.abort()


def _place(vm: Vm, options: dict[str, Any], config: dict[str, Any]) -> Place:
    certificate = key = None
    if config["mode"] == "pem":
        certificate, key = (_text_of(vm, config[name]) for name in ("cert_path", "key_path"))
    elif config["mode"] == "self_signed_dev":
        certificate, key = config["cert_pem"], config["key_pem"]
    port = number(options, "port", 0)
    if port > 65_535:
        raise ServerFault(f"option `port` must be at most 65535, got {port}")
    return Place(
        text(options, "host", "127.0.0.1"),
        port,
        certificate,
        key,
        number(options, "keep_alive_ms", 5_000) / 1000,
        number(options, "head_timeout_ms", 10_000, least=1) / 1000,
        number(options, "max_head_bytes", 65_536, least=1),
        number(options, "max_connections", 0, least=1) or None,
    )


def _text_of(vm: Vm, path: str) -> str:
    try:
        return vm.world.files.read_text(path_at_work(vm, path))
    except (OSError, ValueError) as error:
        raise ServerFault(f"can't read {path}: {system_reason(error)}") from None


def _nothing() -> None:
    pass
