"""The HTTP servers of a program, and its functions as their handlers. Spec: 04 §21.5."""

from __future__ import annotations

from harnpy.faults import Interruption
from harnpy.net.server.faults import HandlerFailed, OutOfTime, ServerFault
from harnpy.net.server.server import Server
from harnpy.text.display import display, type_name
from harnpy.vm.errors import FAILURES, Interrupted
from harnpy.vm.run.backtrace import describe
from harnpy.vm.run.tasks.deadline import deadline_begin, deadline_end
from harnpy.vm.values.objects import Builtin, Fn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


class Servers:
    """Those of one program, by id."""

    def __init__(self, vm: Vm) -> None:
        self._around = _Program(vm)
        self._open: dict[str, Server] = {}

    def open(self, options: dict[str, Any]) -> Server:
        server = Server(f"http_server_{len(self._open) + 1}", options, self._around)
        self._open[server.id] = server
        return server

    def find(self, handle: Value) -> Server:
        """Return the server that a program names by its handle. Raises ServerFault."""
        id = handle.get("id") if type(handle) is dict else handle
        found = self._open.get(id) if type(id) is str else None
        if found is None:
            raise ServerFault(f"there is no server {display(id)}; `http_server` makes one")
        return found


def servers_of(vm: Vm) -> Servers:
    return vm.state(Servers, lambda: Servers(vm))


def handler_of(vm: Vm, value: Value) -> Callable[..., Any]:
    """Return a function of the program, whose failures are `HandlerFailed`.

    Raises ServerFault for any other value.
    """
    if type(value) not in (Fn, Builtin):
        raise ServerFault(f"a handler must be a function, got {type_name(value)}")

    def handler(*arguments: Any) -> Any:
        try:
            return vm.call(value, *arguments)
        except Interrupted as error:
            raise Interruption(str(error)) from error
        except FAILURES as error:
            raise HandlerFailed(describe(error, 0)) from error

    return handler


class _Program:
    """What the program that runs in a Vm is to its servers."""

    def __init__(self, vm: Vm) -> None:
        self._vm = vm

    def new_id(self) -> str:
        return self._vm.world.ids.new()

    def log(self, message: str) -> None:
        from harnpy.text.secrets.masking import mask_secrets

        self._vm.unguarded.warn("http_server", mask_secrets(message))

    def within(self, milliseconds: int, call: Callable[[], Any]) -> Any:
        end = deadline_begin(self._vm.tasks, milliseconds)
        try:
            return call()
        except Interruption as error:
            if isinstance(error.__cause__, Interrupted) and error.__cause__.deadline == end:
                raise OutOfTime(milliseconds) from None
            raise
        finally:
            deadline_end(self._vm.tasks, end)
