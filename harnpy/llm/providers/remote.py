"""A provider behind an official SDK: its client, its authorization, how calls are sent and replies received.

OpenAI's and Anthropic's SDKs are generated alike: one ``post`` serves both. It returns plain JSON rather than
the SDK's models: a reply of a thousand chunks would be ten thousand objects. The SDKs' own retries are off,
because `llm_retries` decides. Spec: 07 §1.2, §1.8, §1.14.
"""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harnpy.formats.display import display
from harnpy.formats.json import JsonError, parse_json
from harnpy.llm.call_options import Caps
from harnpy.llm.configuration.known_providers import GOOGLE, IN_CLOUDS
from harnpy.llm.dialects import Dialect
from harnpy.llm.errors import CallError
from harnpy.llm.native_tools import native_name
from harnpy.llm.providers.service_errors import (
    MalformedReply,
    ServiceError,
    call_error,
    cut_off,
    nothing_delivered,
    refused,
    timed_out,
    too_large,
    unusable_key,
)
from harnpy.llm.reply import BROKEN, CUT, Reply
from harnpy.llm.request_messages import Origin, without_images
from harnpy.world.clock import RealClock
from harnpy.world.egress import EgressBlocked
from harnpy.world.http import Unreachable
from harnpy.world.response_bodies import TooLarge
from harnpy.world.threads import OfProcess

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from harnpy.llm.configuration.known_providers import ProviderConfig
    from harnpy.llm.request import Request
    from harnpy.world.http import Http

# Tokens for Google's services: one that is given, or those that a service account's key makes.
#
# A key makes them by a signature, without asking a server: https://google.aip.dev/auth/4111. Spec: 07 §1.14.


_SCOPE = "https://www.googleapis.com/auth/cloud-platform"


class GoogleTokens:
    """The tokens of one configuration. A token lives for an hour, and is then replaced."""

    def __init__(self, config: ProviderConfig) -> None:
        self._token = config.api_key
        self._account = _account(config) if config.auth_style == GOOGLE else None

    def header(self) -> dict[str, str]:
        """The header that authorises a request."""
        if self._account is not None:
            if not self._account.valid:
                self._account.refresh(None)
            self._token = self._account.token.decode()
        return {"Authorization": f"Bearer {self._token}"}


def _account(config: ProviderConfig) -> Any:
    """The service account whose key the configuration has. Raises `CallError` for anything else."""
    from google.auth.jwt import Credentials

    lead = f"{config.name}: the file of credentials can't be used: "
    try:
        key = parse_json(config.cloud.credentials or "")
    except JsonError as error:
        raise CallError("auth", f"{lead}{error}") from None
    kind = key.get("type") if isinstance(key, dict) else None
    if kind != "service_account":
        found = kind or "something else"
        raise CallError("auth", f"{lead}expected the key of a service_account, found {found}")
    load: Any = Credentials.from_service_account_info  # has no types
    try:
        return load(key, audience=None, additional_claims={"scope": _SCOPE})
    except ValueError:
        raise CallError("auth", f"{lead}it has no private key that can be read") from None


#: Seconds that making a connection may take.
_CONNECT = 10.0

_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, default=display).encode


class Answer(ABC):
    """The part of a reply that has been received so far."""

    #: Whether the service counts cached tokens beside those of the prompt, rather than among them.
    cached_beside = False

    def __init__(self) -> None:
        self.text: list[str] = []
        self.thinking: list[str] = []
        self.model: Any = None
        self.stop_reason: str | None = None
        self.input_tokens = 0
        self.output_tokens = 0
        self.cache_read = 0
        self.cache_write = 0
        self.cache_hour = 0

    @abstractmethod
    def add(self, chunk: Any) -> str:
        """Take in a chunk of a stream; return the text in it."""

    @abstractmethod
    def take(self, body: Any) -> None:
        """Take in a whole reply."""

    @abstractmethod
    def calls(self) -> list[dict[str, Any]]:
        """The tool calls, as a `Reply` has them."""

    def parts(self) -> list[dict[str, Any]]:
        """The content blocks as the service sent them, in its order."""
        return []

    def more(self) -> dict[str, Any]:
        """The keys of the message that only the service understands."""
        return {}

    def refusal(self) -> str:
        """The words of a refusal, where the service keeps them apart."""
        return ""

    @property
    def is_cut(self) -> bool:
        """Whether the service says that a limit of tokens has cut the reply off."""
        return (self.stop_reason or "").lower() in CUT


class Remote(OfProcess, ABC):
    """One service. The client is made by the first call and lives until `aclose`; a process that was forked
    off makes its own."""

    def __init__(
        self,
        config: ProviderConfig,
        http: Http,
        caps: Caps | None = None,
        now: Callable[[], float] | None = None,
    ) -> None:
        self.config = config
        self.http = http
        self.caps = Caps() if caps is None else caps
        self._now = RealClock().now if now is None else now
        self._client: Any = None
        self.prepare()
        self.bind()

    def forked(self) -> None:
        self._inherited, self._client = self._client, None

    def prepare(self) -> None:
        """Load what only this service needs. Raises ModuleNotFoundError, `CallError` for an unusable key."""

    @property
    @abstractmethod
    def sdk(self) -> Any:
        """The SDK's module."""

    @abstractmethod
    def new_client(self) -> Any:
        """A client that authorises its calls by the configuration's headers and nothing else."""

    @abstractmethod
    def body(self, request: Request) -> dict[str, Any]:
        """The request in the service's format. Raises `OptionError`."""

    def _body(self, request: Request) -> dict[str, Any]:
        if not request.sees:
            request = replace(request, messages=without_images(request.messages))
        return self.body(request)

    def headers(self, request: Request) -> dict[str, Any]:
        """The further headers of this request."""
        return {}

    #: What the service takes.
    dialect: Dialect

    def origin(self, request: Request) -> Origin:
        """Return what the messages are marked with that this service and model write."""
        return Origin(self.dialect.name, self.config.base_url.rpartition("@")[2], request.model)

    def client_headers(self) -> dict[str, str]:
        """The headers of all requests. A cloud's client authorises them itself."""
        config = self.config
        return dict(config.extra_headers) if config.protocol in IN_CLOUDS else config.headers()

    def authorization(self) -> dict[str, Any]:
        """The header that authorises a request, if the client's own don't; else the SDK's is left out."""
        if self.config.protocol in IN_CLOUDS:
            return {}
        ours = any(name.lower() == "authorization" for name in self.client_headers())
        return {} if ours else {"Authorization": self.sdk.Omit()}

    def _open(self) -> Any:
        """A new client, without the headers that the SDK has found in the environment of the process."""
        client = self.new_client()
        client._custom_headers = self.client_headers()
        return client

    @property
    def path(self) -> str:
        """The path of requests, below the client's address."""
        return self.config.chat_endpoint

    def request_path(self, request: Request, *, stream: bool) -> str:
        """The path of this request."""
        return self.path

    def told(self, body: dict[str, Any], *, stream: bool) -> dict[str, Any]:
        """Return the body with whether the reply is to be streamed."""
        return {**body, "stream": stream}

    @property
    def stream_class(self) -> Any:
        """The SDK's class of streamed replies."""
        return self.sdk.AsyncStream[object]

    #: Whether the SDK rewrites requests for a cloud: it then wants values rather than bytes.
    rewritten = False

    @abstractmethod
    def new_answer(self) -> Answer: ...

    #: Stop reasons with which a reply may be empty.
    may_be_empty: tuple[str, ...] = ()

    async def complete(self, request: Request) -> Reply:
        """The reply to a request. Raises `CallError` without the SDK's error, which may hold the key."""
        body = self._body(request)
        try:
            async with asyncio.timeout(self._most_seconds(request)):
                answer = await self._receive(request, body)
            return self._reply(answer, request)
        except Exception as error:
            failure = self._failure(error, request)
        raise failure

    def stream(self, request: Request) -> Streamed:
        """The reply's text as it comes. ``request.transport.timeout`` ends it between two pieces."""
        return Streamed(self, replace(request, transport=replace(request.transport, stream=True)))

    async def pieces(self, request: Request, answer: Answer) -> AsyncGenerator[str]:
        """The text of a streamed reply, which ``answer`` takes in."""
        body = self._body(request)
        now = asyncio.get_running_loop().time
        until = now() + self._most_seconds(request)
        try:
            async with aclosing(self._chunks(request, body)) as chunks:
                async for chunk in chunks:
                    if now() > until:
                        raise TimeoutError
                    if text := answer.add(chunk):
                        yield text
            reply = self._reply(answer, request)
            if reply.refused and not reply.text:
                raise refused(self.config, reply.model, reply.refused)
            return
        except Exception as error:
            failure = self._failure(error, request)
        raise failure

    def health_url(self, endpoint: str) -> str:
        """Return the URL for a check of the configuration: ``endpoint`` below the service's address."""
        return self.config.base_url + endpoint

    async def status(self, url: str, timeout: float) -> int:
        """The status of the response to a small request, which is authorised as calls are.

        Raises TimeoutError, `EgressBlocked`, and `Unreachable` when there is no response.
        """
        sdk, client = self.sdk, self._open()
        options = {"timeout": timeout, "headers": self.authorization()}
        try:
            await client.get(url, cast_to=object, options=options)
        except sdk.APIStatusError as error:
            return int(error.status_code)
        except sdk.APITimeoutError:
            raise TimeoutError from None
        except sdk.APIConnectionError as error:
            if isinstance(error.__cause__, EgressBlocked):
                raise error.__cause__ from None
            # Without its cause: that one may hold a key.
            raise Unreachable(type(error.__cause__ or error).__name__) from None
        finally:
            await client.close()
        return 200

    def _failure(self, error: Exception, request: Request) -> BaseException:
        """Return the error to raise for that of a call; one that is not the service's is raised again."""
        large = too_large(error)
        if large is not None and large.unit == "bytes" and self.caps.on_bytes is not None:
            return self.caps.on_bytes()
        if isinstance(error, TimeoutError):
            return timed_out(self.config, self._most_seconds(request))
        failure = call_error(error, self.config, self._now())
        if failure is None:
            raise error
        return failure

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _receive(self, request: Request, body: dict[str, Any]) -> Answer:
        answer = self.new_answer()
        if not request.transport.stream:
            whole = await self._post(request, body, stream=False)
            # Of JSON that a server labels otherwise the SDKs give the text.
            answer.take(json.loads(whole) if isinstance(whole, str) else whole)
            return answer
        empty = True
        async with aclosing(self._chunks(request, body)) as chunks:
            async for chunk in chunks:
                text = answer.add(chunk)
                if text and request.shown is not None:
                    request.shown.piece(text)
                empty = False
        if empty:
            raise MalformedReply("no stream of events")
        return answer

    async def _chunks(self, request: Request, body: dict[str, Any]) -> AsyncGenerator[Any]:
        """The events of a streamed reply. Raises `TooLarge` when there are too many."""
        left = self.caps.events
        async for chunk in await self._post(request, body, stream=True):
            left -= 1
            if left < 0:
                raise TooLarge(self.caps.events, "events")
            yield chunk

    def _most_seconds(self, request: Request) -> float:
        return request.transport.timeout or self.caps.seconds

    async def _post(self, request: Request, body: dict[str, Any], stream: bool) -> Any:
        refusal = unusable_key(self.config)
        if refusal is not None:
            raise refusal
        if self._client is None:
            self._client = self._open()
        sdk, silence = self.sdk, self._silence(request)
        # A lone surrogate in a script's string has no UTF-8 encoding.
        body = _overlaid(self.config.extra_body, self.told(body, stream=stream))
        content = _encode(body).encode("utf-8", "replace")
        return await self._client.post(
            self.request_path(request, stream=stream),
            cast_to=object,
            **({"body": json.loads(content)} if self.rewritten else {"content": content}),
            options={
                "timeout": sdk.Timeout(silence, connect=min(silence, _CONNECT)),
                "headers": {**self.headers(request), **self.authorization()},
            },
            stream=stream,
            stream_cls=self.stream_class,
        )

    def _silence(self, request: Request) -> float:
        """Seconds for which the service may be silent."""
        return request.transport.idle_timeout or request.transport.timeout or self.config.timeout

    def _reply(self, answer: Answer, request: Request) -> Reply:
        if answer.stop_reason is None:
            raise cut_off(self.config)
        if answer.stop_reason.lower() in BROKEN:
            raise ServiceError({"type": "server_error", "message": f"it ended with '{answer.stop_reason}'"})
        reply = self.reply_so_far(answer, request)
        said = reply.text or reply.tool_calls or reply.refused
        if not (said or answer.stop_reason in self.may_be_empty):
            raise nothing_delivered(self.config, reply.model, answer.output_tokens, answer.stop_reason)
        return reply

    def reply_so_far(self, answer: Answer, request: Request) -> Reply:
        """Return what has been received, maybe the beginning of a reply: then it has no tool calls."""
        calls, parts = ([], []) if answer.stop_reason is None else (answer.calls(), answer.parts())
        if spelled := self.dialect.names_back(filter(None, map(native_name, request.tools or ()))):
            calls = [_renamed(call, spelled) for call in calls]
            parts = [_renamed(part, spelled) if part.get("type") == "tool_use" else part for part in parts]
        model = answer.model if answer.model and isinstance(answer.model, str) else request.model
        return Reply(
            text="".join(answer.text),
            model=model,
            provider=self.config.name,
            requested_model=request.model,
            input_tokens=answer.input_tokens,
            output_tokens=answer.output_tokens,
            cache_read_tokens=answer.cache_read,
            cache_write_tokens=answer.cache_write,
            cache_hour_tokens=answer.cache_hour,
            tool_calls=calls,
            thinking="".join(answer.thinking) or None,
            parts=[] if _is_plain(parts) else parts,
            more=answer.more(),
            origin=self.origin(request)._asdict(),
            stop_reason=answer.stop_reason,
            cached_beside=answer.cached_beside,
            refusal=answer.refusal() or None,
        )


def _overlaid(given: Mapping[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """Return a body with what is given beside it, at any depth; what both have is the body's."""
    both = [key for key in given if isinstance(given[key], dict) and isinstance(body.get(key), dict)]
    return {**given, **body, **{key: _overlaid(given[key], body[key]) for key in both}}


def _renamed(call: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {**call, "name": names.get(call["name"], call["name"])}


#: The keys of blocks that a `Reply` holds as text and calls.
_PLAIN = {"text": {"type", "text"}, "tool_use": {"type", "id", "name", "input"}}


def _is_plain(parts: list[dict[str, Any]]) -> bool:
    """Return True for a text and calls behind it, of which nothing is lost when they are made anew."""
    kinds = [part.get("type") for part in parts]
    if "text" in kinds[1:] or not all(kind in _PLAIN for kind in kinds):
        return False
    return all(part.keys() <= _PLAIN[part["type"]] for part in parts)


class Streamed:
    """The text of a reply, piece by piece, and what is known of the reply meanwhile."""

    def __init__(self, remote: Remote, request: Request) -> None:
        self._remote, self._request = remote, request
        self._answer = remote.new_answer()
        self._pieces = remote.pieces(request, self._answer)

    def __aiter__(self) -> Streamed:
        return self

    async def __anext__(self) -> str:
        return await anext(self._pieces)

    async def aclose(self) -> None:
        """End the call."""
        await self._pieces.aclose()

    def so_far(self) -> Reply:
        """The reply up to the last piece. Its counts are those that the service has told, else 0."""
        return self._remote.reply_so_far(self._answer, self._request)


def expect_dict(value: Any) -> dict[str, Any]:
    """Raises `MalformedReply` unless ``value`` is a JSON object."""
    if not isinstance(value, dict):
        raise MalformedReply(f"expected a JSON object, found {str(value)[:120]!r}")
    return value


def expect_list(value: Any) -> list[Any]:
    """Raises `MalformedReply` unless ``value`` is a JSON array or absent, which is an empty one."""
    if not isinstance(value or [], list):
        raise MalformedReply(f"expected a JSON array, found {str(value)[:120]!r}")
    return value or []


def count(usage: Any, key: str) -> int:
    """A number of tokens, 0 if it is missing."""
    value = usage.get(key) if isinstance(usage, dict) else None
    return value if type(value) is int else 0
