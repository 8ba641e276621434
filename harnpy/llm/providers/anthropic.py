"""Anthropic's messages, from Anthropic, Amazon Bedrock and Google's Vertex AI.

Spec: 07 §1.2, §1.10, §1.14, §4.5, §6.7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anthropic

from harnpy.formats.json import compact_json, ordered_json, without_nulls
from harnpy.formats.schemas import SERVICE, spelled
from harnpy.llm.call_options import JSON_OBJECT, JSON_SCHEMA
from harnpy.llm.configuration.capabilities import model_version
from harnpy.llm.configuration.known_providers import BEARER
from harnpy.llm.dialects import ANTHROPIC
from harnpy.llm.native_tools import anthropic_choice, anthropic_tool
from harnpy.llm.providers.remote import Answer, GoogleTokens, Remote, count, expect_dict
from harnpy.llm.providers.service_errors import ServiceError
from harnpy.llm.request_messages import (
    EPHEMERAL,
    FILES,
    LEFT_OUT,
    MARK,
    as_words,
    file_of,
    joined_text,
    keep_last_marks,
    mark_last,
    mark_of,
    read_arguments,
    turns,
    unrun,
    without_systems,
    written_call,
)

if TYPE_CHECKING:
    from harnpy.llm.call_options import Output
    from harnpy.llm.request import Request
    from harnpy.llm.request_messages import Block, Origin

#: The version of the protocol that this module speaks, whatever the SDK prefers.
_VERSION = "2023-06-01"

#: The least and the default number of tokens for thinking.
_LEAST_THINKING, _USUAL_THINKING = 1024, 8192

#: From this version on models decide for themselves how long they think.
_ADAPTIVE = (4, 7)

_JSON_ONLY = "Answer with one JSON value and nothing else: no prose, no code fence."


class AnthropicProvider(Remote):
    sdk = anthropic
    dialect = ANTHROPIC
    # After tool results a model may have nothing to add.
    may_be_empty = ("end_turn", "stop_sequence")

    def new_client(self) -> Any:
        return anthropic.AsyncAnthropic(
            api_key="none",
            base_url=self.config.base_url,
            default_headers=self.client_headers(),
            max_retries=0,
            http_client=self.http.sdk_client(self.sdk, self.caps.bytes),
        )

    def client_headers(self) -> dict[str, str]:
        headers = super().client_headers()
        # A cloud has the version in the body.
        return headers if self.rewritten else {"anthropic-version": _VERSION, **headers}

    def body(self, request: Request) -> dict[str, Any]:
        system, mark, messages = _conversation(request, self.origin(request))
        sampling = request.sampling
        body: dict[str, Any] = {
            "model": request.model,
            "max_tokens": request.max_tokens,
            "messages": messages,
            **{key: sampling[key] for key in ("temperature", "top_p", "top_k") if key in sampling},
            **_thinking(request, messages),
        }
        if system:
            body["system"] = [{"type": "text", "text": system, **mark}]
        if "stop" in sampling:
            body["stop_sequences"] = sampling["stop"]
        if request.tools:
            body["tools"] = [anthropic_tool(tool) for tool in request.tools]
            if request.tool_choice is not None:
                body["tool_choice"] = anthropic_choice(request.tool_choice)
        if request.cache:
            _mark_for_cache(body)
        keep_last_marks(_parts(body))
        return body

    def headers(self, request: Request) -> dict[str, Any]:
        return {"anthropic-beta": ",".join(request.betas)} if request.betas else {}

    def new_answer(self) -> Answer:
        return _Message()


class _Message(Answer):
    """A message: its content blocks, and the pieces of the text in each that comes in pieces."""

    cached_beside = True

    def __init__(self) -> None:
        super().__init__()
        self._blocks: dict[int, tuple[Block, list[str]]] = {}
        self._is_whole = False
        self._details: Any = None

    def add(self, chunk: Any) -> str:
        event = expect_dict(chunk)
        match event.get("type"):
            case "message_start":
                self._begin(expect_dict(event.get("message")))
            case "content_block_start":
                return self._block(event.get("index", 0), expect_dict(event.get("content_block")))
            case "content_block_delta":
                return self._delta(event.get("index", 0), expect_dict(event.get("delta")))
            case "message_delta":
                self._end(expect_dict(event.get("delta")), event.get("usage"))
            case "error":
                raise ServiceError(event)
        return ""

    def take(self, body: Any) -> None:
        message = expect_dict(body)
        if message.get("type") == "error":
            raise ServiceError(message)
        content = message.get("content")
        if not isinstance(content, list):
            expect_dict(content)
            return
        self._is_whole = True
        self._begin(message)
        for index, block in enumerate(content):
            self._block(index, expect_dict(block))
        self._end({**message, "stop_reason": message.get("stop_reason") or "end_turn"}, None)

    def calls(self) -> list[dict[str, Any]]:
        last = next(reversed(self._blocks), None)
        return [
            self._call(block, "".join(pieces), self.is_cut and index == last)
            for index, (block, pieces) in self._blocks.items()
            if block.get("type") == "tool_use"
        ]

    def parts(self) -> list[Block]:
        return [_whole(block, "".join(pieces)) for block, pieces in self._blocks.values()]

    def refusal(self) -> str:
        details = self._details if isinstance(self._details, dict) else {}
        return str(details.get("explanation") or "") if details.get("type") == "refusal" else ""

    def _call(self, block: Block, text: str, is_cut: bool) -> dict[str, Any]:
        name = str(block.get("name"))
        call = written_call(str(block.get("id")), name, text, is_cut)
        if is_cut and self._is_whole:  # the service has made an object of what came
            return unrun(call, f"The reply was cut off within the arguments of tool '{name}'.")
        return call

    def _begin(self, message: dict[str, Any]) -> None:
        self.model = message.get("model")
        self._count(message.get("usage"))

    def _end(self, delta: dict[str, Any], usage: Any) -> None:
        self.stop_reason = delta.get("stop_reason") or self.stop_reason
        self._details = delta.get("stop_details") or self._details
        self._count(usage)

    def _block(self, index: int, block: Block) -> str:
        pieces: list[str] = []
        self._blocks[index] = dict(block), pieces
        given = block.get("input")
        if given:
            pieces.append(ordered_json(given))
        return self._piece(index, block)

    def _delta(self, index: int, delta: dict[str, Any]) -> str:
        if index not in self._blocks:
            return ""
        block, pieces = self._blocks[index]
        match delta.get("type"):
            case "text_delta" | "thinking_delta":
                return self._piece(index, delta)
            case "signature_delta":
                block["signature"] = delta.get("signature")
            case "citations_delta":
                block["citations"] = [*(block.get("citations") or []), delta.get("citation")]
            case "input_json_delta":
                pieces.append(str(delta.get("partial_json", "")))
        return ""

    def _piece(self, index: int, given: Block) -> str:
        """Take in the text or the thinking of a block; return what of it is text."""
        block, pieces = self._blocks[index]
        kind = block.get("type")
        said = given.get(str(kind))
        if kind not in ("text", "thinking") or not isinstance(said, str):
            return ""
        pieces.append(said)
        (self.text if kind == "text" else self.thinking).append(said)
        return said if kind == "text" else ""

    def _count(self, usage: Any) -> None:
        """The counts of a stream are sums so far: later ones replace earlier ones."""
        self.input_tokens = count(usage, "input_tokens") or self.input_tokens
        self.output_tokens = count(usage, "output_tokens") or self.output_tokens
        self.cache_read = count(usage, "cache_read_input_tokens") or self.cache_read
        self.cache_write = count(usage, "cache_creation_input_tokens") or self.cache_write
        written = usage.get("cache_creation") if isinstance(usage, dict) else None
        self.cache_hour = count(written, "ephemeral_1h_input_tokens") or self.cache_hour


def _whole(block: Block, text: str) -> Block:
    """Return a block with what came of it in pieces."""
    kind = block.get("type")
    if kind in ("text", "thinking"):
        return {**block, kind: text}
    return {**block, "input": read_arguments(text)} if "input" in block else block


def _conversation(request: Request, reader: Origin) -> tuple[str, Block, list[dict[str, Any]]]:
    """The system prompt with its mark for the cache, if any, and messages of alternating roles, a user's
    first: the results of one turn belong together."""
    first, said = without_systems(turns(request.messages, reader))
    systems = [request.system or "", *(joined_text(turn.blocks) for turn in first)]
    marks = (mark_of(block) for turn in reversed(first) for block in turn.blocks)
    mark: Block = next(filter(None, marks), {})
    messages: list[dict[str, Any]] = []
    for turn in said:
        role = "assistant" if turn.role == "assistant" else "user"
        blocks = [block for block in map(_native, turn.blocks) if not _blank(block)]
        if messages and messages[-1]["role"] == role:
            blocks = messages.pop()["content"] + blocks
        if blocks:
            # Results belong to the turn before, so they come first.
            blocks.sort(key=lambda block: block.get("type") != "tool_result")
            messages.append({"role": role, "content": blocks})
    if request.prefill and request.prefill.strip():
        messages.append({"role": "assistant", "content": [{"type": "text", "text": request.prefill}]})
    if messages and messages[-1]["role"] == "assistant":
        # A blank at the assistant's end is refused.
        *before, last = messages[-1]["content"]
        if last.get("type") == "text":
            messages[-1]["content"] = [*before, {**last, "text": last["text"].rstrip()}]
    if messages and messages[0]["role"] == "assistant":
        messages.insert(0, {"role": "user", "content": [{"type": "text", "text": LEFT_OUT}]})
    systems.append(_form(request.output))
    return "\n\n".join(filter(None, systems)), mark, messages


def _form(output: Output) -> str:
    """A request for structured output in words: not every model has an option for it."""
    if output.kind == JSON_OBJECT:
        return _JSON_ONLY
    if output.kind != JSON_SCHEMA or output.schema is None:
        return ""
    schema = compact_json(spelled(output.schema, SERVICE))
    return f"{_JSON_ONLY} It must fit this JSON Schema: {schema}"


def _native(block: Block) -> Block:
    kind = block.get("type")
    if kind == "tool_use":
        call = {key: value for key, value in block.items() if key != "more"}
        id, name = ANTHROPIC.id_of(call["id"]), ANTHROPIC.name_of(call["name"])
        return {**call, "id": id, "name": name, **block.get("more", {})}
    if kind == "tool_result":
        content = block["content"]
        if isinstance(content, list):
            content = [part for part in map(_native, content) if not _blank(part)]
        return {**block, "tool_use_id": ANTHROPIC.id_of(block["tool_use_id"]), "content": content}
    if kind in FILES:
        return _document(block)
    if kind == "image_url":
        url = block.get("image_url")
        return {
            "type": "image",
            "source": {"type": "url", "url": url.get("url") if isinstance(url, dict) else url},
            **mark_of(block),
        }
    if kind != "image" or isinstance(block.get("source"), dict):
        return block
    if block.get("url") is not None:
        return {"type": "image", "source": {"type": "url", "url": block["url"]}, **mark_of(block)}
    media_type = block.get("media_type") or "image/png"
    return {
        "type": "image",
        "source": {"type": "base64", "media_type": media_type, "data": block["base64"]},
        **mark_of(block),
    }


_PDF, _PLAIN = "application/pdf", "text/plain"
_NOT_TAKEN = ": Anthropic's models take PDFs and texts"


def _document(block: Block) -> Block:
    """A file as the service has it: a PDF or a text; words in the place of another."""
    file, source = file_of(block), block.get("source")
    if file is None and isinstance(source, dict) and block["type"] == "document":
        return block
    if file is None or file.kind != "document":
        return as_words(block, _NOT_TAKEN)
    media_type = str(file.media_type or _PDF)
    if file.url is not None:
        source = {"type": "url", "url": file.url}
    elif media_type == _PDF:
        source = {"type": "base64", "media_type": _PDF, "data": file.data}
    elif (text := file.text()) is not None:
        source = {"type": "text", "media_type": _PLAIN, "data": text}
    else:
        return as_words(block, _NOT_TAKEN)
    told = {"title": file.name, **{key: block.get(key) for key in ("context", "citations")}}
    return {"type": "document", "source": source, **without_nulls(told), **mark_of(block)}


def _blank(block: Block) -> bool:
    """Return True if a block is empty text, which the service rejects."""
    return block.get("type") == "text" and not block["text"].strip()


def _thought_is_lost(messages: list[dict[str, Any]]) -> bool:
    """Return True if the thinking of a call with results is missing: the service then refuses to think."""
    if len(messages) < 2 or messages[-1]["content"][0].get("type") != "tool_result":
        return False
    return messages[-2]["content"][0].get("type") not in ("thinking", "redacted_thinking")


def _thinking(request: Request, messages: list[dict[str, Any]]) -> dict[str, Any]:
    thinking = request.thinking
    if thinking["mode"] == "enabled" and _thought_is_lost(messages):
        return {}
    match thinking["mode"]:
        case "adaptive":
            return {"thinking": {"type": "adaptive"}}
        case "effort":
            return {"thinking": {"type": "adaptive"}, "output_config": {"effort": thinking["level"]}}
        case "enabled" if (model_version(request.model) or (0, 0)) >= _ADAPTIVE:
            return {"thinking": {"type": "adaptive"}}
        case "enabled":
            budget = thinking.get("budget_tokens")
            if budget is None:
                budget = max(_LEAST_THINKING, min(_USUAL_THINKING, request.max_tokens // 2))
            return {"thinking": {"type": "enabled", "budget_tokens": budget}}
    return {}


def _mark_for_cache(body: dict[str, Any]) -> None:
    """Mark the prompt for the cache after the tools, the system prompt, and the last message of the user."""
    said = [message["content"] for message in body["messages"] if message["role"] == "user"]
    for blocks in (body.get("tools"), body.get("system"), *said[-1:]):
        if blocks and MARK not in blocks[-1]:
            mark_last(blocks, EPHEMERAL)


def _parts(body: dict[str, Any]) -> list[list[Block]]:
    """Return the lists where marks for the cache may be, in the order in which the service reads them."""
    return [body.get("tools", []), body.get("system", []), *(each["content"] for each in body["messages"])]


# Claude on Amazon Bedrock. The SDK signs requests and unpacks Amazon's streams of events. Spec: 07 §1.14.


#: The version of the protocol that this package speaks, under the name that Bedrock has for it.
_BEDROCK_VERSION = "bedrock-2023-05-31"


class BedrockProvider(AnthropicProvider):
    rewritten = True  # the model is in the path
    path = "/v1/messages"

    def prepare(self) -> None:
        import boto3  # noqa: F401  signs requests: without it the SDK fails in the middle of a call

    def new_client(self) -> anthropic.AsyncAnthropicBedrock:
        config, cloud = self.config, self.config.cloud
        client = anthropic.AsyncAnthropicBedrock(
            # Without one, the SDK takes a key from the environment.
            api_key=config.api_key,
            aws_region=cloud.region,
            base_url=config.base_url,
            default_headers=self.client_headers(),
            max_retries=0,
            http_client=self.http.sdk_client(self.sdk, self.caps.bytes),
        )
        if config.auth_style != BEARER:
            client.api_key = None
            client.aws_access_key, client.aws_secret_key = config.api_key, cloud.secret
            client.aws_session_token = cloud.session
        return client

    def body(self, request: Request) -> dict[str, Any]:
        return {"anthropic_version": _BEDROCK_VERSION, **super().body(request)}

    def health_url(self, endpoint: str) -> str:
        """The list of models is served by another host than the models."""
        return self.config.base_url.replace("//bedrock-runtime.", "//bedrock.", 1) + endpoint


#: The version of the protocol that this package speaks, under the name that Vertex AI has for it.
_VERTEX_VERSION = "vertex-2023-10-16"


class VertexProvider(AnthropicProvider):
    rewritten = True  # the model is in the path
    path = "/v1/messages"

    def prepare(self) -> None:
        self._tokens = GoogleTokens(self.config)

    def new_client(self) -> anthropic.AsyncAnthropicVertex:
        config, cloud = self.config, self.config.cloud
        return anthropic.AsyncAnthropicVertex(
            region=cloud.region or "",
            project_id=cloud.project or "",
            access_token="none",
            base_url=config.base_url,
            default_headers=self.client_headers(),
            max_retries=0,
            http_client=self.http.sdk_client(self.sdk, self.caps.bytes),
        )

    def body(self, request: Request) -> dict[str, Any]:
        return {"anthropic_version": _VERTEX_VERSION, **super().body(request)}

    def health_url(self, endpoint: str) -> str:
        cloud = self.config.cloud
        return self.config.base_url + endpoint.format(project=cloud.project, region=cloud.region)

    def authorization(self) -> dict[str, Any]:
        return self._tokens.header()
