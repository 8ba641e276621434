"""Servers that listen: requests as tasks of the program, TLS, shutdown. Spec: 04 §21.5.

Each listens until it is shut down, the process is asked to stop, or the program ends.
"""

from __future__ import annotations

import asyncio

from harnpy.builtins.bridge.contexts import path_at_work
from harnpy.builtins.net.sse_server import streams_of
from harnpy.builtins.options import server_options
from harnpy.faults import Interruption, NamedMisuse
from harnpy.net import server_tls
from harnpy.net.asgi import Application
from harnpy.net.server_options import ServerFault, number_option, text_option
from harnpy.vm.declare import builtin
from harnpy.vm.limits import LimitReached
from harnpy.vm.run.tasks import start_beside
from harnpy.vm.values import type_name
from harnpy.world.connections import Place
from harnpy.world.files import system_reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from harnpy.net.server import Server
    from harnpy.net.server_events import EventStream
    from harnpy.net.server_messages import Response
    from harnpy.vm.run.tasks import Task
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm
    from harnpy.world.connections import Listener

# Requests that came, as tasks of the program. Spec: 04 §21.5.


#: What the ids of such tasks say they are.
_KIND = "request"


class RequestTasks:
    """Tasks under the rules, and with the context, of the task that makes this: the one that listens."""

    def __init__(self, vm: Vm) -> None:
        self._vm = vm
        self._tasks = vm.tasks
        starter = vm.tasks.current
        self._context = None if starter.context is None else starter.context.branch()
        self._runtime_context = starter.runtime_context
        #: Those that run, as the keys.
        self.running: dict[Task, None] = {}

    def start(self, respond: Callable[[], Response]) -> _Running | None:
        running = _Running(self)
        try:
            task = self.beside(lambda: self._handle(running, respond))
        except LimitReached:
            return None
        running.task = task
        self.running[task] = None
        return running

    def beside(self, body: Callable[[], None]) -> Task:
        """Start a task that belongs to the program and not to one of its tasks.

        Raises LimitReached when there may be no more tasks; it counts for nothing.
        """
        try:
            task = start_beside(self._tasks, lambda depth: self._run(body), _KIND)
        except LimitReached:
            assert self._tasks.meter is not None
            self._tasks.meter.give_back("tasks")
            raise
        task.context = None if self._context is None else self._context.branch()
        task.runtime_context = self._runtime_context
        self._tasks.wake()
        return task

    def is_within(self) -> bool:
        """Return whether the current task handles a request, or one of its ancestors does."""
        task: Task | None = self._tasks.current
        while task is not None and task not in self.running:
            task = task.parent
        return task is not None

    def _handle(self, running: _Running, respond: Callable[[], Response]) -> None:
        """Respond. The task, and those that it started, go on until a response of events has ended."""
        try:
            response = respond()
            if response.get("streaming"):
                running.stream = streams_of(self._vm).get(response.get("id"))
            running.settle(response)
            if running.stream is not None:
                streams_of(self._vm).follow(running.stream)
            return
        except Interruption as interruption:
            stop = interruption.__cause__ or interruption
        finally:
            running.settle(None)
            self.running.pop(self._tasks.current, None)
        raise stop

    def _run(self, body: Callable[[], None]) -> None:
        """Run the body of a task, and write what it printed: nobody awaits it."""
        try:
            body()
        finally:
            task = self._tasks.current
            if task.output:
                output, task.output = task.output, ""
                self._vm.unguarded.streams.write_out(output)
                show_output(self._vm)


def show_output(vm: Vm) -> None:
    """Have what was printed be seen now: a service may print nothing more for hours."""
    vm.unguarded.streams.write_err("")


class _Running:
    task: Task | None = None
    stream: EventStream | None = None

    def __init__(self, tasks: RequestTasks) -> None:
        self._tasks = tasks
        self.response: asyncio.Future[Response | None] = asyncio.get_running_loop().create_future()

    def settle(self, response: Response | None) -> None:
        if not self.response.done():
            self.response.set_result(response)

    def cancel(self) -> None:
        if self.task is not None and not self.task.done:
            self._tasks._tasks.request_cancel(self.task)
            self._tasks._tasks.wake()


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
        self._tls = server_tls.to_listen(options.get("tls") or server_tls.plain())
        self._place = _place(vm, options, self._tls)
        self._grace = number_option(options, "grace_ms", 10_000) / 1000
        self._requests = RequestTasks(vm)
        body_seconds = number_option(options, "body_timeout_ms", 30_000, least=1) / 1000
        headers = server_tls.security_headers(self._tls)
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
    port = number_option(options, "port", 0)
    if port > 65_535:
        raise ServerFault(f"option `port` must be at most 65535, got {port}")
    return Place(
        text_option(options, "host", "127.0.0.1"),
        port,
        certificate,
        key,
        number_option(options, "keep_alive_ms", 5_000) / 1000,
        number_option(options, "head_timeout_ms", 10_000, least=1) / 1000,
        number_option(options, "max_head_bytes", 65_536, least=1),
        number_option(options, "max_connections", 0, least=1) or None,
    )


def _text_of(vm: Vm, path: str) -> str:
    try:
        return vm.world.files.read_text(path_at_work(vm, path))
    except (OSError, ValueError) as error:
        raise ServerFault(f"can't read {path}: {system_reason(error)}") from None


def _nothing() -> None:
    pass


# How a server is reached by TLS, and the headers that go with it. Spec: 04 §21.5.


@builtin("http_server_tls_plain() -> dict", family="http_server")
def http_server_tls_plain(vm: Vm) -> dict[str, Any]:
    """Return a configuration without TLS: `{mode: "plain", scheme: "http", terminate_tls: false, hsts: nil}`.

    Example: http_server_tls_plain().scheme  // "http"
    """
    return server_tls.plain()


@builtin("http_server_tls_edge(options?: dict) -> dict", family="http_server")
def http_server_tls_edge(vm: Vm, options: Value) -> dict[str, Any]:
    """Return a TLS configuration for a proxy that terminates TLS; browsers are told to use HTTPS only.

    Example:
        let config = http_server_tls_edge({hsts_max_age_seconds: 300})
        http_server_security_headers(config)  // {"strict-transport-security": "max-age=300"}
    """
    return server_tls.edge(server_options(vm, "http_server_tls_edge", options))


@builtin("http_server_tls_pem(cert: string, key: string) -> dict", family="http_server")
def http_server_tls_pem(vm: Vm, cert: str, key: str) -> dict[str, Any]:
    """Return a TLS configuration with the certificate and key of two PEM files, which must exist.

    Example:
        write_file("cert.pem", "")
        write_file("key.pem", "")
        http_server_tls_pem("cert.pem", "key.pem").mode  // "pem"
    """
    for path in (cert, key):
        if not vm.world.files.exists(path_at_work(vm, path)):
            raise ServerFault(f"there is no file '{path}'")
    return server_tls.pem(cert, key)


@builtin("http_server_tls_self_signed_dev(hosts?: list) -> dict", family="http_server")
def http_server_tls_self_signed_dev(vm: Vm, hosts: Value) -> dict[str, Any]:
    """Return a TLS configuration for tests, with a new self-signed certificate for `hosts` (`["localhost"]`).

    Example: http_server_tls_self_signed_dev(["localhost", "127.0.0.1"]).mode  // "self_signed_dev"
    """
    names = ["localhost"] if hosts is None else [hosts] if type(hosts) is str else hosts
    if type(names) is not list or not names or not all(type(name) is str and name for name in names):
        raise ServerFault(f"hosts must be a list of names, got {type_name(hosts)}")
    from harnpy.formats.crypto.primitives import SECRET_BYTES, self_signed

    secret = vm.unguarded.entropy.bytes(SECRET_BYTES)
    try:
        certificate, key = self_signed(names, secret, vm.clock.now())
    except ValueError:
        raise ServerFault(f"no certificate can be made for {', '.join(names)}") from None
    return server_tls.self_signed_dev(names, certificate, key)


@builtin("http_server_security_headers(config: dict) -> dict", family="http_server")
def http_server_security_headers(vm: Vm, config: Value) -> dict[str, Any]:
    """Return a TLS configuration's headers: `strict-transport-security` with `edge` and `pem`, else none.

    Example: http_server_security_headers(http_server_tls_plain())  // {}
    """
    return server_tls.security_headers(config)
