"""The client's messages: taken from a stream of bytes, whatever comes, and sent by pygls. Spec: 12 §1.1.

pygls' own loop leaves what it can't read without an answer, so reading is ours. It is done by the thread that
handles the messages: it takes all that have come before it handles the first.
"""

from __future__ import annotations

import json
import logging
import os
import re
import select
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from lsprotocol import types as lsp
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInternalError,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcMethodNotFound,
    JsonRpcParseError,
    JsonRpcRequestCancelled,
    JsonRpcServerNotInitialized,
)
from pygls.io_ import StdoutWriter
from pygls.protocol import JsonRPCProtocol, default_converter
from pygls.server import JsonRPCServer

from harnpy.lsp.idle import QUIET, IdleLinting

log = logging.getLogger("harnpy.lsp")

_LENGTH = re.compile(rb"content-length[ \t]*:[ \t]*(\d{1,15})[ \t]*\r\n", re.IGNORECASE)
#: The end of a header.
_END = b"\r\n\r\n"
#: Bytes of a header and of a message; where more are announced, the length is wrong.
_LONGEST_HEADER, _LONGEST = 1 << 16, 1 << 30
_CHUNK = 1 << 20


class Frames:
    """The messages in a stream of bytes that comes by and by: parsed, or why they can't be.

    After a wrong length or other bytes that are no message, reading goes on at the next header.
    """

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._length: int | None = None

    def take(self, data: bytes) -> Iterator[object]:
        """Yield the messages that are complete with ``data``."""
        self._bytes += data
        while True:
            if self._length is None:
                fault = self._header()
                if fault is not None:
                    yield fault
                    continue
            if self._length is None or len(self._bytes) < self._length:
                return
            body = bytes(self._bytes[: self._length])
            del self._bytes[: self._length]
            self._length = None
            yield self._parsed(body)

    def _header(self) -> JsonRpcException | None:
        """Take a header if a whole one is there; return what is wrong with it."""
        end = self._bytes.find(_END)
        if end < 0:
            if len(self._bytes) <= _LONGEST_HEADER:
                return None
            # The beginning of a header may be at the end.
            del self._bytes[: -_LONGEST_HEADER // 2]
            return JsonRpcParseError("the header of a message is too long")
        header = bytes(self._bytes[: end + 2])
        del self._bytes[: end + len(_END)]
        # Behind a message that is longer than announced, the rest of it stands before the header.
        found = list(_LENGTH.finditer(header))
        if not found:
            return JsonRpcParseError("the header of a message has no Content-Length")
        length = int(found[-1][1])
        if length > _LONGEST:
            return JsonRpcParseError(f"a message of {length} bytes is too long")
        self._length = length
        return None

    def _parsed(self, body: bytes) -> object:
        try:
            return json.loads(body.decode("utf-8"))
        except (ValueError, RecursionError):
            # A raw line break is in no string of JSON: this is the header of a message that came later.
            later = _LENGTH.search(body)
            if later is not None:
                self._bytes[:0] = body[later.start() :]
            return JsonRpcParseError("a message is no JSON in UTF-8 of the announced length")


class Inbox:
    """The messages that have come and aren't handled yet."""

    def __init__(self, reader: BinaryIO) -> None:
        self._reader = reader
        self._frames = Frames()
        self._waiting: deque[object] = deque()
        self._ended = False

    @property
    def idle(self) -> bool:
        """Whether nothing has come that isn't handled."""
        while not self._ended and select.select([self._reader], [], [], 0)[0]:
            self._read()
        return not self._waiting

    def is_quiet(self, seconds: float) -> bool:
        """Wait for some time, unless something comes; return whether nothing has."""
        if not self._waiting and not self._ended:
            select.select([self._reader], [], [], seconds)
        return self.idle and not self._ended

    def next(self) -> object:
        """Return the next message, once it is there; None at the end of the stream."""
        while not self._waiting and not self._ended:
            self._read()
        return self._waiting.popleft() if self._waiting else None

    def _read(self) -> None:
        data = os.read(self._reader.fileno(), _CHUNK)
        self._ended = not data
        for message in self._frames.take(data):
            if _is(message, lsp.CANCEL_REQUEST):
                self._cancel(message["params"])  # type: ignore[index]
            else:
                self._waiting.append(message)

    def _cancel(self, params: Any) -> None:
        """Have a request that waits answered by an error; one that was answered is none of ours."""
        for message in self._waiting:
            if isinstance(message, dict) and "method" in message and _same_id(message, params):
                message["cancelled"] = True


def _is(message: object, method: str) -> bool:
    return isinstance(message, dict) and message.get("method") == method and "params" in message


def _same_id(message: dict[str, Any], params: Any) -> bool:
    return "id" in message and isinstance(params, dict) and message["id"] == params.get("id")


class Protocol(JsonRPCProtocol):
    """The life of a server: nothing before `initialize`, nothing but `exit` behind `shutdown`.

    Each request has one answer, whatever is wrong with it.
    """

    initialized = False
    ended = False

    def get_message_type(self, method: str) -> type[Any] | None:
        found: type[Any] | None = lsp.METHOD_TO_TYPES.get(method, (None,))[0]
        return found

    def get_result_type(self, method: str) -> type[Any] | None:
        found: type[Any] | None = lsp.METHOD_TO_TYPES.get(method, (None, None))[1]
        return found

    def handle(self, message: object) -> None:
        """Handle what has come, and answer it if it is a request or can't be read."""
        number = None
        try:
            if isinstance(message, JsonRpcException):
                raise message
            if not isinstance(message, dict):
                raise JsonRpcInvalidRequest("a message is an object")
            number = message.get("id") if isinstance(message.get("id"), int | str) else None
            is_request = "id" in message
            if message.get("jsonrpc") != self.VERSION:
                raise JsonRpcInvalidRequest('a message has `jsonrpc`: "2.0"')
            if is_request and "method" not in message and ("result" in message or "error" in message):
                super().handle_message(self.structure_message(message))
                return
            method = message.get("method")
            if not isinstance(method, str) or (is_request and number is None):
                raise JsonRpcInvalidRequest("a message has a method, and an id that is a number or a string")
            if message.pop("cancelled", False):
                raise JsonRpcRequestCancelled(f"the client has cancelled this {method}")
            result = self._called(method, message)
            if is_request:
                self._answer(number, result)
        except JsonRpcException as refused:
            self._refuse(message, number, refused)
        except BrokenPipeError:
            raise
        except Exception as error:
            log.exception("a message could not be handled")
            self._refuse(message, number, _internal(error))

    def _called(self, method: str, message: dict[str, Any]) -> Any:
        """Return what the function for a method returns."""
        refused = self._refused(method)
        if refused is not None:
            raise refused
        feature = self.fm.features.get(method)
        kind = self.get_message_type(method)
        if feature is None or kind is None:
            raise JsonRpcMethodNotFound(f"there is no method {method}")
        try:
            params = self._converter.structure(message, kind).params
        except Exception:
            raise JsonRpcInvalidParams(f"the parameters are none of {method}") from None
        return feature(params)

    def _answer(self, number: int | str | None, result: Any) -> None:
        # Before it is sent: pygls would only log that it can't be written. As plain data, since it would look
        # through a message of its own once more, which takes three times as long as all else.
        unstructured = self._converter.unstructure(result)
        json.dumps(unstructured)
        self._send_data({"jsonrpc": self.VERSION, "id": number, "result": unstructured})

    def _refuse(self, message: object, number: int | str | None, refused: JsonRpcException) -> None:
        """Answer with an error; what is a notification has no answer."""
        is_message = isinstance(message, dict) and isinstance(message.get("method"), str)
        if isinstance(message, dict) and is_message and "id" not in message:
            if not message["method"].startswith("$/"):
                log.warning("%s is ignored: %s", message["method"], refused.message)
            return
        error = refused.to_response_error()
        self._send_data(lsp.ResponseErrorMessage(id=number, error=error))

    def _refused(self, method: str) -> JsonRpcException | None:
        """Return why a message has no answer now."""
        if method == lsp.EXIT:
            return None
        if self.ended:
            return JsonRpcInvalidRequest(f"{method} came after shutdown")
        if not self.initialized and method != lsp.INITIALIZE:
            return JsonRpcServerNotInitialized(f"{method} came before initialize")
        if self.initialized and method == lsp.INITIALIZE:
            return JsonRpcInvalidRequest("the server is initialized already")
        return None


def _internal(error: Exception) -> JsonRpcException:
    return JsonRpcInternalError(f"{type(error).__name__}; the server's log says more")


class Connection:
    """The way from and to one client. ``answers`` are functions of a message's parameters, by method."""

    def __init__(self, answers: dict[str, Callable[[Any], Any]]) -> None:
        rpc = JsonRPCServer(Protocol, default_converter)
        self.protocol: Protocol = rpc.protocol  # type: ignore[assignment]
        self.protocol.fm.features.update(answers)
        self._open = True

    def close(self) -> None:
        """Handle nothing more."""
        self._open = False

    def run(
        self, reader: BinaryIO, writer: BinaryIO, when_idle: Callable[[], None], linting: IdleLinting
    ) -> None:
        """Handle the messages until the connection is closed or they end.

        ``when_idle`` is called once those that have come are handled, ``linting`` works when none come.
        """
        self.protocol.set_writer(StdoutWriter(writer))
        inbox = Inbox(reader)
        try:
            while self._open:
                if inbox.idle:
                    when_idle()
                    if linting.is_waiting and inbox.is_quiet(QUIET):
                        linting.work(lambda: inbox.idle)
                message = inbox.next()
                if message is None:
                    return
                self.protocol.handle(message)
        except BrokenPipeError:
            log.warning("the client has gone")
