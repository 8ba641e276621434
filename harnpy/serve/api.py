"""The HTTP API: routes over a `Service`. Spec: 11 §1.3.

Who calls is in ``scope["harnpy.caller"]``; whatever stands in front has put it there. Ids in paths are
percent-encoded, so paths are read as they were sent.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, unquote

import msgspec
from starlette.routing import BaseRoute, Match

from harnpy.client import types as t
from harnpy.formats.json import DEPTH_LIMIT, JsonError, parse_json, refuse_depth
from harnpy.formats.mismatch import mismatch, unread
from harnpy.net.admission import CALLER
from harnpy.serve.control import Control, ControlQuery
from harnpy.serve.operations import Call, Nothing, table
from harnpy.serve.refusals import Refused, check_key
from harnpy.serve.streams import encoded, send_stream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.serve.operations import Operation
    from harnpy.serve.service import Caller, Service
    from harnpy.world.connections import AsgiMessage, Receive, Send

#: Bytes of the longest body.
LONGEST: Final = 4 * 1024 * 1024
#: The WebSocket of a session.
CONTROL: Final = "/v1/sessions/{id}/control"

_PLACE: Final = re.compile(r"\{\w+\}")
_JSON: Final = (b"content-type", b"application/json")


def routes(service: Service) -> list[BaseRoute]:
    """Return the routes of the API, ``/openapi.json`` among them."""
    resources: dict[str, list[Operation]] = {}
    for operation in table():
        resources.setdefault(operation.path, []).append(operation)
    found: list[BaseRoute] = [Resource(service, path, each) for path, each in resources.items()]
    return [*found, ControlRoute(service), Description()]


class At(BaseRoute):
    """A route for one path, whose places in braces take anything but a slash."""

    kind = "http"

    def __init__(self, path: str) -> None:
        self.path = path
        self.endpoint = self.app = self
        self._pattern = re.compile(_PLACE.sub("([^/]+)", path).encode())

    def matches(self, scope: Any) -> tuple[Match, Any]:
        if scope["type"] != self.kind:
            return Match.NONE, {}
        found = self._pattern.fullmatch(_path(scope))
        if found is None:
            return Match.NONE, {}
        ids = tuple(unquote(part.decode("latin-1"), errors="replace") for part in found.groups())
        return Match.FULL, {"endpoint": self, "route": self, "path_params": {}, "harnpy.ids": ids}

    async def handle(self, scope: Any, receive: Any, send: Any) -> None:
        await self(scope, receive, send)

    async def __call__(self, scope: AsgiMessage, receive: Receive, send: Send) -> None:
        raise NotImplementedError

    def url_path_for(self, name: str, /, **path_params: Any) -> Any:
        from starlette.routing import NoMatchFound

        raise NoMatchFound(name, path_params)


class Resource(At):
    """What can be done at one path."""

    def __init__(self, service: Service, path: str, operations: Sequence[Operation]) -> None:
        super().__init__(path)
        self._service = service
        self._operations = {operation.method: operation for operation in operations}
        self.methods = {*self._operations, *(("HEAD",) if "GET" in self._operations else ())}

    async def __call__(self, scope: AsgiMessage, receive: Receive, send: Send) -> None:
        method = scope["method"]
        operation = self._operations.get("GET" if method == "HEAD" else method)
        if operation is None:
            allowed = ", ".join(sorted(self.methods))
            refusal = Refused(405, "method_not_allowed", f"{self.path} takes {allowed}, not {method}")
            await refuse(refusal, send, [(b"allow", allowed.encode())])
            return
        try:
            call, wants_stream = await self._read(operation, scope, receive)
            if wants_stream and operation.stream is not None:
                frames = await operation.stream(call)
            else:
                status, text = await _answered(operation, call)
                frames = None
        except Refused as refusal:
            await refuse(refusal, send)
            return
        if frames is not None:
            await send_stream(frames, receive, send, is_head=method == "HEAD")
        else:
            await _send(send, status, text, is_head=method == "HEAD")

    async def _read(
        self, operation: Operation, scope: AsgiMessage, receive: Receive
    ) -> tuple[Call[Any, Any], bool]:
        """Return the request, and whether its sender wants a stream. Raises `Refused`."""
        headers, caller = dict(scope["headers"]), caller_of(scope)
        self._service.check(caller, operation.scope)  # before anything is read that such a caller can't send
        query = _query(scope["query_string"], operation.query) if scope["query_string"] else _usual(operation)
        body = None
        if operation.method != "GET":
            text = await _body(headers, receive)
            body = _decoded(text, headers, operation.body or Nothing)
        last = headers.get(b"last-event-id")
        call = Call(
            self._service,
            caller,
            scope["harnpy.ids"],
            query,
            body,
            _key(headers.get(b"idempotency-key")),
            None if last is None else _number(last),
        )
        return call, b"text/event-stream" in headers.get(b"accept", b"")


async def _answered(operation: Operation, call: Call[Any, Any]) -> tuple[int, bytes]:
    found = await operation.run(call)
    status = operation.status
    if isinstance(found, t.Turn) and operation.status == 202:
        status = 200
    if isinstance(found, bytes):
        return status, found
    return status, b"" if found is None else encoded(found)


class ControlRoute(At):
    """The WebSocket that controls a session."""

    kind = "websocket"

    def __init__(self, service: Service) -> None:
        super().__init__(CONTROL)
        self._service = service

    async def __call__(self, scope: AsgiMessage, receive: Receive, send: Send) -> None:
        try:
            query = _query(scope["query_string"], ControlQuery)
            (id,) = scope["harnpy.ids"]
            control = Control(self._service, caller_of(scope), id, query, receive, send)
            await control.run()
        except Refused as refusal:
            await _close(refusal, scope, send)


class Description(At):
    """``/openapi.json``, made once."""

    def __init__(self) -> None:
        super().__init__("/openapi.json")
        self.methods = {"GET", "HEAD"}
        self._text: bytes | None = None

    async def __call__(self, scope: AsgiMessage, receive: Receive, send: Send) -> None:
        if scope["method"] not in self.methods:
            refusal = Refused(405, "method_not_allowed", "/openapi.json takes GET, HEAD")
            await refuse(refusal, send, [(b"allow", b"GET, HEAD")])
            return
        if self._text is None:
            from harnpy.serve.openapi import document

            self._text = encoded(document())
        await _send(send, 200, self._text, is_head=scope["method"] == "HEAD")


# Reading requests.


def caller_of(scope: AsgiMessage) -> Caller:
    """Return who calls. Raises `Refused` where nobody has said so."""
    caller: Caller | None = scope.get(CALLER)
    if caller is None:
        raise Refused(401, "unauthorized", "nobody knows who sends this: send `Authorization: Bearer TOKEN`")
    return caller


def _path(scope: AsgiMessage) -> bytes:
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return raw.partition(b"?")[0].removeprefix(scope.get("root_path", "").encode())


def _usual(operation: Operation) -> Any:
    try:
        return operation.query()
    except TypeError:
        raise Refused(422, "invalid", mismatch({}, operation.query)) from None


def _query(text: bytes, kind: type[t.Body]) -> Any:
    """Return the parameters of a query string."""
    try:
        pairs = parse_qsl(text.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=100)
    except ValueError:
        raise Refused(400, "bad_request", "the query string isn't percent-encoded UTF-8") from None
    given: dict[str, Any] = {}
    for name, value in pairs:
        if name in given:
            raise Refused(422, "invalid", f"`{name}` is given twice")
        given[name] = value
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise Refused(422, "invalid", _query_problem(given, kind, error)) from None


def _query_problem(given: dict[str, Any], kind: type[t.Body], error: Exception) -> str:
    known = {field.name: field for field in msgspec.structs.fields(kind)}
    for name, value in given.items():
        if name not in known:
            shown = ", ".join(f"`{each}`" for each in known)
            return f"unknown parameter `{name}` (known: {shown or 'none'})"
        try:
            msgspec.convert(value, known[name].type, strict=False)
        except msgspec.ValidationError:
            return mismatch(value, known[name].type, name)
    return mismatch(given, kind)


async def _body(headers: dict[bytes, bytes], receive: Receive) -> bytes:
    stated = headers.get(b"content-length", b"0")
    if stated.isdigit() and int(stated) > LONGEST:
        raise _too_large()
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refused(400, "bad_request", "the request ended before its body did")
        part = message.get("body", b"")
        size += len(part)
        if size > LONGEST:
            raise _too_large()
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def _too_large() -> Refused:
    return Refused(413, "too_large", f"the body has more than {LONGEST} bytes")


def _decoded(text: bytes, headers: dict[bytes, bytes], kind: type[t.Body]) -> Any:
    """Return a body as what it should be."""
    if not text:
        text = b"{}"  # as good as no body where nothing must be said
    else:
        given = headers.get(b"content-type", b"application/json").partition(b";")[0].strip().lower()
        if given != b"application/json":
            raise Refused(415, "unsupported_type", "the body must be application/json")
    try:
        refuse_depth(text, DEPTH_LIMIT - 1)  # a decoder in C recurses, with a Vm without end
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, ValueError, RecursionError):
        pass
    try:
        value = parse_json(text.decode())
    except (JsonError, UnicodeDecodeError):
        raise Refused(400, "bad_request", f"the body is no JSON: {unread(text, kind)}") from None
    raise Refused(422, "invalid", mismatch(value, kind))


def _key(given: bytes | None) -> str | None:
    if given is None:
        return None
    return check_key(given.decode("latin-1"), "Idempotency-Key")


def _number(given: bytes) -> int:
    if not given.isdigit() or len(given) > 15:
        raise Refused(400, "bad_request", "`Last-Event-ID` is none that a stream of this server has had")
    return int(given)


# Replies.


async def refuse(refusal: Refused, send: Send, more: list[tuple[bytes, bytes]] = []) -> None:  # noqa: B006
    """Answer with an error."""
    failure = t.Failure(error=t.Problem(code=refusal.code, message=refusal.message))
    if refusal.status == 401:
        more = [*more, (b"www-authenticate", b"Bearer")]
    await _send(send, refusal.status, encoded(failure), more)


async def _send(
    send: Send,
    status: int,
    text: bytes,
    more: list[tuple[bytes, bytes]] = [],  # noqa: B006
    *,
    is_head: bool = False,
) -> None:
    headers = [*more]
    if status != 204:
        headers += [_JSON, (b"content-length", b"%d" % len(text))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if is_head else text})


async def _close(refusal: Refused, scope: AsgiMessage, send: Send) -> None:
    """Refuse a WebSocket, with the reason where the server can say it."""
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 4000 + refusal.status})
        return
    failure = t.Failure(error=t.Problem(code=refusal.code, message=refusal.message))
    await send({"type": "websocket.http.response.start", "status": refusal.status, "headers": [_JSON]})
    await send({"type": "websocket.http.response.body", "body": encoded(failure)})
