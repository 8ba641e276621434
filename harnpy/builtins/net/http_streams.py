"""Responses that are written to a file, or read piece by piece. Spec: 04 §21.2."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.bridge.live_http import http_calls_of
from harnpy.builtins.bridge.places import path_at_work
from harnpy.builtins.net.http_arguments import call_of, options_of
from harnpy.net.http.errors import HttpError
from harnpy.net.http.replies import is_ok
from harnpy.vm.declare.builtin import builtin as declare
from harnpy.vm.errors import Thrown
from harnpy.vm.values.objects import display
from harnpy.world.effects import WRITE
from harnpy.world.files import system_reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

    Dict = dict[str, Value]

#: What all declarations here have in common.
builtin = partial(declare, family="http_client")

#: The bytes that a file may have unless an option says it.
_MOST_IN_FILE = 1 << 30


@builtin("http_download(url: string, dst: string, opts?: dict) -> dict", guarded=True)
def http_download(vm: Vm, url: str, dst: str, opts: Value) -> Dict:
    """Write a body to a file, as a whole or not at all: `{status, headers, bytes_written, ok}`.

    The file has the body whatever the status is: look at `ok`.

    Example:
        http_mock("GET", "https://files.test/a.txt", {body: "hello"})
        http_download("https://files.test/a.txt", "a.txt").bytes_written  // 5
    """
    name = "http_download"
    options = options_of(vm, name, opts)
    if not url:
        raise HttpError(f"{name}: URL is required")
    if not dst:
        raise HttpError(f"{name}: destination path is required")
    method = display(options.get("method") or "GET")
    call = call_of(vm, name, method, url, options, _MOST_IN_FILE, name)
    place = path_at_work(vm, dst)
    vm.world.require_place(WRITE, place)
    try:
        response, size = http_calls_of(vm).download(call, vm.world.files, place)
    except (OSError, ValueError) as error:
        raise Thrown(f"{name}: failed to write file {place}: {system_reason(error)}") from None
    status = response.status
    return {"status": status, "headers": {**response.headers}, "bytes_written": size, "ok": is_ok(status)}


@builtin("http_stream_open(url: string, opts?: dict) -> string", guarded=True)
def http_stream_open(vm: Vm, url: str, opts: Value) -> str:
    """The handle of a response whose body is read as it comes. `opts.method` is GET unless given.

    Example:
        http_mock("GET", "https://files.test/log", {body: "one two"})
        let log = http_stream_open("https://files.test/log")
        bytes_to_string(http_stream_read(log, 3))  // "one"
    """
    options = options_of(vm, "http_stream_open", opts)
    method = display(options.get("method") or "GET")
    return http_calls_of(vm).stream(
        call_of(vm, "http_stream_open", method, url, options, None, "http_stream_open")
    )


@builtin("http_stream_info(h: any) -> dict")
def http_stream_info(vm: Vm, h: Value) -> Dict:
    """`{status, headers, ok}` of an open stream.

    Example:
        http_mock("GET", "https://files.test/log", {status: 404})
        http_stream_info(http_stream_open("https://files.test/log")).ok  // false
    """
    stream = http_calls_of(vm).streams.get("http_stream_info", h)
    return {"status": stream.status, "headers": {**stream.headers}, "ok": is_ok(stream.status)}


@builtin("http_stream_read(h: any, max_bytes: int = 1048576) -> bytes | nil")
def http_stream_read(vm: Vm, h: Value, max_bytes: int) -> bytes | None:
    """The next bytes, as soon as there are some, and at most so many; nil at the end.

    Example:
        http_mock("GET", "https://files.test/log", {body: "one"})
        let log = http_stream_open("https://files.test/log")
        http_stream_read(log)
        http_stream_read(log)  // nil
    """
    calls = http_calls_of(vm)
    stream = calls.streams.get("http_stream_read", h)
    if max_bytes < 1:
        raise HttpError(f"http_stream_read: max_bytes must be positive, got {max_bytes}")
    return calls.read(stream, max_bytes)


@builtin("http_stream_close(h: any) -> bool")
def http_stream_close(vm: Vm, h: Value) -> bool:
    """Close a stream. False when there is no such stream.

    Example:
        http_mock("GET", "https://files.test/log", {})
        http_stream_close(http_stream_open("https://files.test/log"))  // true
    """
    calls = http_calls_of(vm)
    stream = calls.streams.take("http_stream_close", h)
    if stream is None:
        return False
    calls.close_stream(stream)
    return True
