"""Chat completions: OpenAI, Azure, Amazon Bedrock, Vertex AI, and servers with OpenAI's protocol.

Such servers are vLLM, llama.cpp, Ollama's ``/v1``, OpenRouter and others. Spec: 07 §1.2, §1.10, §1.14, §4.5,
§6.7.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import openai

from harnpy.formats.json import ordered_json
from harnpy.formats.schemas import SERVICE, spelled
from harnpy.llm.call_options import JSON_OBJECT, JSON_SCHEMA
from harnpy.llm.configuration.known_providers import BEARER
from harnpy.llm.dialects import CHAT, DEEPSEEK, MISTRAL, Dialect
from harnpy.llm.native_tools import openai_choice, openai_tool
from harnpy.llm.providers.remote import Answer, GoogleTokens, Remote, count, expect_dict, expect_list
from harnpy.llm.providers.service_errors import MalformedReply, ServiceError
from harnpy.llm.providers.streamed_calls import StreamedCalls
from harnpy.llm.request_messages import (
    FILES,
    LEFT_OUT,
    MARK,
    REASONING,
    Turn,
    as_words,
    file_of,
    joined_text,
    mark_last,
    mark_of,
    result_text,
    source_of,
    turns,
    without_mark,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from harnpy.llm.call_options import Output
    from harnpy.llm.request import Request
    from harnpy.llm.request_messages import Block, Origin

_SYSTEM = ("system", "developer")
_ROLES = (*_SYSTEM, "assistant")
_NO_IMAGES = ": chat completions have only text in a tool's result"
SAMPLING = ("temperature", "top_p", "top_k", "frequency_penalty", "presence_penalty", "seed", "stop")


class OpenAIProvider(Remote):
    sdk = openai
    dialect = CHAT

    def new_client(self) -> openai.AsyncOpenAI:
        # The key is in the headers. Without one, the SDK must not take a key from the environment.
        return openai.AsyncOpenAI(
            api_key="none",
            base_url=self.config.base_url,
            default_headers=self.client_headers(),
            max_retries=0,
            http_client=self.http.sdk_client(self.sdk, self.caps.bytes),
        )

    def _open(self) -> Any:
        client = super()._open()
        # Those of the environment of the process, which no program is to see.
        client.organization = client.project = None
        return client

    def body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.model_id(request.model),
            "messages": list(self._messages(request)),
            self.limit: request.max_tokens,
            **{key: request.sampling[key] for key in SAMPLING if key in request.sampling},
            **self._thinking(request.thinking),
            **_response_format(request.output),
        }
        if request.transport.stream:
            body["stream_options"] = {"include_usage": True}
        if request.tools:
            body["tools"] = [openai_tool(tool, self.dialect) for tool in request.tools]
            if request.tool_choice is not None:
                body["tool_choice"] = openai_choice(request.tool_choice)
        return body

    @property
    def limit(self) -> str:
        """The name of the limit of tokens."""
        return "max_completion_tokens" if "max_completion_tokens" in self.config.features else "max_tokens"

    def model_id(self, model: str) -> str:
        """Return the service's name for a model."""
        return model

    def new_answer(self) -> Answer:
        return _Completion(self.dialect)

    def _messages(self, request: Request) -> Iterator[dict[str, Any]]:
        """The conversation."""
        ids = Ids(self.dialect)
        for turn in _turns(request, self.origin(request), self._wants_marks(request)):
            yield from _rendered(turn, ids)
        if request.prefill:
            yield {"role": "assistant", "content": request.prefill}

    def _wants_marks(self, request: Request) -> bool:
        """Return True if marks for the cache are sent: OpenRouter passes them on to Anthropic."""
        return "cache_control" in self.config.features and "claude" in request.model

    def _thinking(self, thinking: dict[str, Any]) -> dict[str, Any]:
        mode = thinking["mode"]
        if "reasoning" in self.config.features and mode != "disabled":
            if mode == "effort":
                return {"reasoning": {"effort": thinking["level"]}}
            budget = thinking.get("budget_tokens")
            return {"reasoning": {"enabled": True} if budget is None else {"max_tokens": budget}}
        if mode == "effort":
            return {"reasoning_effort": thinking["level"]}
        return {"reasoning_effort": "medium"} if mode == "enabled" else {}


def _response_format(output: Output) -> dict[str, Any]:
    if output.kind == JSON_OBJECT:
        return {"response_format": {"type": "json_object"}}
    if output.kind != JSON_SCHEMA or output.schema is None:
        return {}
    schema = spelled(output.schema, SERVICE)
    form = {"name": "output", "schema": schema, "strict": output.strict and is_strict(schema)}
    return {"response_format": {"type": "json_schema", "json_schema": form}}


def is_strict(schema: Any) -> bool:
    """Return True if services accept a schema as strict: each object lists and requires its properties."""
    if isinstance(schema, list):
        return all(map(is_strict, schema))
    if not isinstance(schema, dict):
        return True
    properties = schema.get("properties")
    if schema.get("type") == "object" or properties is not None:
        names = set(properties or {})
        if schema.get("additionalProperties") is not False or set(schema.get("required") or ()) != names:
            return False
        if not all(map(is_strict, (properties or {}).values())):
            return False
    return all(is_strict(value) for key, value in schema.items() if key != "properties")


#: The key of a call with the id that its service gave it.
_OWN_ID = "own_id"


def with_own_ids(calls: list[Block], is_own: Callable[[str], bool]) -> list[Block]:
    """Return calls that remember ids of that kind, if the ids tell which call is meant."""
    if len({call["id"] for call in calls}) < len(calls):
        return calls
    return [{**call, _OWN_ID: call["id"]} if is_own(call["id"]) else call for call in calls]


class Ids:
    """The ids of calls as a service takes them; those that it gave itself are unchanged."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self._own: dict[str, str] = {}

    def of_call(self, call: Block) -> str:
        if own := call.get("more", {}).get(_OWN_ID):
            self._own[call["id"]] = own
        return self.of(call["id"])

    def of(self, id: str) -> str:
        return self._own.get(id) or self.dialect.id_of(id)


class _Inline:
    """Tells the reasoning at the beginning of a text, in ``<think>``, from the rest, piece by piece."""

    _OPENING, _CLOSING = "<think>", "</think>"

    def __init__(self) -> None:
        self._held = ""
        self._is_open = False
        self._is_over = False
        #: Whether blanks are left out: those between the reasoning and the text.
        self._skips = False

    def split(self, piece: str) -> tuple[str, str]:
        """Return the reasoning and the text that are certain with this piece."""
        if self._is_over:
            return "", self._said(piece)
        self._held += piece
        if not self._is_open:
            begun = self._held.lstrip()
            if not begun.startswith(self._OPENING):
                return "", "" if self._OPENING.startswith(begun) else self.rest()
            self._is_open, self._held = True, begun.removeprefix(self._OPENING)
        thought, closing, text = self._held.partition(self._CLOSING)
        if closing:
            self._held, self._is_over, self._skips = "", True, True
            return thought, self._said(text)
        at = thought.rfind("<")
        cut = at if at >= 0 and self._CLOSING.startswith(thought[at:]) else len(thought)
        self._held = thought[cut:]
        return thought[:cut], ""

    def rest(self) -> str:
        """Return what was held back of the text, at its end or where it turns out to have no reasoning."""
        held, self._held = "" if self._is_open else self._held, ""
        self._is_over = True
        return held

    def _said(self, text: str) -> str:
        if self._skips:
            text = text.lstrip()
            self._skips = not text
        return text


class _Completion(Answer):
    """A chat completion."""

    def __init__(self, dialect: Dialect) -> None:
        super().__init__()
        self._dialect = dialect
        self._calls = StreamedCalls()
        #: The pieces of the content, which may be a list, and of the keys that go back.
        self._content: list[str | list[Any]] = []
        self._more: dict[str, list[Any]] = {}
        self._refusal: list[str] = []
        self._inline = _Inline()

    def add(self, chunk: Any) -> str:
        return self._read(expect_dict(chunk), "delta")

    def take(self, body: Any) -> None:
        self._read(expect_dict(body), "message")
        # Only a stream can be cut off; some servers give no reason in a whole reply.
        self.stop_reason = self.stop_reason or "stop"
        self._end()

    def calls(self) -> list[dict[str, Any]]:
        return with_own_ids(self._calls.calls(self.is_cut), self._is_own)

    def _is_own(self, id: str) -> bool:
        """Return whether others might refuse that id."""
        return id not in ("", self._dialect.id_of(id)) and not self._dialect.exact_ids

    def parts(self) -> list[Block]:
        if all(isinstance(piece, str) for piece in self._content):
            return []
        listed = [[_text_part(piece)] if isinstance(piece, str) else piece for piece in self._content]
        return list(_joined(listed))

    def more(self) -> dict[str, Any]:
        return {key: _joined(pieces) for key, pieces in self._more.items()}

    def refusal(self) -> str:
        return "".join(self._refusal)

    def _read(self, part: dict[str, Any], key: str) -> str:
        of_groq = expect_dict(part.get("x_groq") or {})
        if error := part.get("error") or of_groq.get("error"):
            raise ServiceError(error)
        self.model = part.get("model") or self.model
        if usage := part.get("usage") or of_groq.get("usage"):
            self._count(usage)
        choices = expect_list(part.get("choices"))
        if not choices and key == "message":
            raise MalformedReply("a completion without choices")
        if not choices:
            return ""
        choice = expect_dict(choices[0])
        self.stop_reason = choice.get("finish_reason") or self.stop_reason
        message = choice.get(key)
        if not isinstance(message, dict):
            return self._end()
        calls = [expect_dict(call) for call in expect_list(message.get("tool_calls"))]
        (self._calls.add if key == "delta" else self._calls.add_whole)(calls)
        return self._say(message) + self._end()

    def _end(self) -> str:
        """Return the rest of the text with the reason why it ends."""
        rest = "" if self.stop_reason is None else self._inline.rest()
        if rest:
            self.text.append(rest)
        return rest

    def _say(self, message: dict[str, Any]) -> str:
        thought = message.get("reasoning_content") or message.get("reasoning")
        if isinstance(thought, str):
            self.thinking.append(thought)
        for key in REASONING:
            if message.get(key):
                self._more.setdefault(key, []).append(message[key])
        if isinstance(refusal := message.get("refusal"), str):
            self._refusal.append(refusal)
        content = message.get("content") or refusal
        if isinstance(content, list):
            self._content.append([part for part in content if isinstance(part, dict)])
            self.thinking += _texts(content, "thinking")
            content = "".join(_texts(content, "text"))
        elif isinstance(content, str):
            self._content.append(content)
            inline, content = self._inline.split(content)
            if inline:
                self.thinking.append(inline)
        else:
            return ""
        self.text.append(content)
        return content

    def _count(self, usage: Any) -> None:
        details = usage.get("prompt_tokens_details") if isinstance(usage, dict) else None
        self.input_tokens = count(usage, "prompt_tokens")
        self.output_tokens = count(usage, "completion_tokens")
        self.cache_read = count(details, "cached_tokens") or count(usage, "prompt_cache_hit_tokens")
        self.cache_write = count(details, "cache_write_tokens")


#: What two pieces of an item of a list have in common, and which of its keys come in pieces.
_SAME = ("type", "index", "id")
_IN_PIECES = ("text", "thinking", "summary")


def _joined(pieces: list[Any]) -> Any:
    """Return what came in pieces: texts, or lists whose last item may go on in the next one. Of anything else
    the last is all."""
    if len(pieces) == 1:
        return pieces[0]
    if all(isinstance(piece, str) for piece in pieces):
        return "".join(pieces)
    if not all(isinstance(piece, list) for piece in pieces):
        return pieces[-1]
    groups: list[list[Any]] = []
    for item in chain.from_iterable(pieces):
        if groups and _goes_on(groups[-1][0], item):
            groups[-1].append(item)
        else:
            groups.append([item])
    return list(map(_as_one, groups))


def _goes_on(first: Any, item: Any) -> bool:
    both = isinstance(first, dict) and isinstance(item, dict)
    return both and all(first.get(key) == item[key] for key in _SAME if key in item)


def _as_one(group: list[Any]) -> Any:
    if len(group) == 1:
        return group[0]
    whole: dict[str, Any] = {}
    for item in group:
        whole |= item
    pieces = {key: [item[key] for item in group if key in item] for key in _IN_PIECES if key in whole}
    return {**whole, **{key: _joined(found) for key, found in pieces.items()}}


def _text_part(text: str) -> Block:
    return {"type": "text", "text": text}


def _texts(parts: list[Any], kind: str) -> list[str]:
    """Return the texts of a content's parts of that kind; one may be a list of parts itself."""
    found: list[str] = []
    for part in parts:
        said = part.get(kind) if isinstance(part, dict) and part.get("type") == kind else None
        found += _texts(said, "text") if isinstance(said, list) else [said] if isinstance(said, str) else []
    return found


def _turns(request: Request, reader: Origin, marks: bool) -> list[Turn]:
    """The turns of the conversation, the system prompt first; ``marks``: with marks for the cache."""
    said = list(turns(request.messages, reader))
    if request.system:
        said.insert(0, Turn("system", [{"type": "text", "text": request.system}], {}))
    if not marks:
        said = [turn._replace(blocks=list(map(without_mark, turn.blocks))) for turn in said]
    elif request.cache:
        _mark_for_cache(said)
    return said


def _mark_for_cache(said: list[Turn]) -> None:
    """Mark the system prompt, and the last text of the user's."""
    for role in ("system", "user"):
        texts = [turn.blocks for turn in said if turn.role == role and turn.of("text")]
        for blocks in texts[-1:]:
            mark_last(blocks)


def _rendered(turn: Turn, ids: Ids) -> Iterator[dict[str, Any]]:
    """A turn as messages: every tool result is a separate message."""
    for result in turn.of("tool_result"):
        content = result_text(result["content"], _NO_IMAGES)
        yield {"role": "tool", "tool_call_id": ids.of(result["tool_use_id"]), "content": content}
    calls = turn.of("tool_use")
    said = turn.without("tool_use", "tool_result")
    if not (said or calls) and turn.blocks:
        return
    message: dict[str, Any] = {
        "role": turn.role if turn.role in _ROLES else "user",
        "content": _content(said, ids.dialect),
        **turn.more,
    }
    if calls:
        message["tool_calls"] = [_call(call, ids) for call in calls]
    yield message


def _call(call: Block, ids: Ids) -> Block:
    more = {key: value for key, value in call.get("more", {}).items() if key != _OWN_ID}
    function = {"name": ids.dialect.name_of(call["name"]), "arguments": ordered_json(call["input"])}
    return {**more, "id": ids.of_call(call), "type": "function", "function": function}


def _content(blocks: list[Block], dialect: Dialect) -> str | list[Block]:
    """A string where there is only text: not every server accepts lists. A mark needs a list."""
    parts = list(_parts(blocks, _mistrals_file if dialect == MISTRAL else _file))
    if all(part.get("type") == "text" and MARK not in part for part in parts):
        return joined_text(parts)
    return parts


def _parts(blocks: Iterable[Block], as_file: Callable[[Block], Block]) -> Iterator[Block]:
    for block in blocks:
        if block.get("type") in FILES:
            yield as_file(block)
            continue
        if block.get("type") != "image":
            yield block
            continue
        image = {"url": source_of(block).as_url()}
        if block.get("detail"):
            image["detail"] = block["detail"]
        yield {"type": "image_url", "image_url": image, **mark_of(block)}


_NO_FILE = ": chat completions take documents as data, and recordings as WAV or MP3"
_RECORDINGS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}


def _file(block: Block) -> Block:
    """A document or a recording as chat completions have them; words in the place of another file."""
    if isinstance(block.get(block["type"]), dict):  # as it is
        return block
    file = file_of(block)
    if file is None or file.data is None:
        return as_words(block, _NO_FILE)
    if file.kind == "audio" and file.media_type in _RECORDINGS:
        sound = {"data": file.data, "format": _RECORDINGS[file.media_type]}
        return {"type": "input_audio", "input_audio": sound, **mark_of(block)}
    if file.kind != "document" or file.text() is not None:
        return as_words(block, _NO_FILE)
    told = {"filename": file.called(), "file_data": file.as_url()}
    return {"type": "file", "file": told, **mark_of(block)}


# Mistral's chat completions, which refuse unknown keys and some orders of messages. Spec: 07 §1.19.


#: What stands between a tool's result and a user's message.
_PAUSE = {"role": "assistant", "content": "…"}


def _mistrals_file(block: Block) -> Block:
    """A document or a recording as Mistral has them; words in the place of another file."""
    file = file_of(block)
    if file is not None and file.kind == "document" and file.text() is None:
        named = {"document_name": file.name} if file.name else {}
        return {"type": "document_url", "document_url": file.url or file.as_url(), **named}
    if file is not None and file.kind == "audio" and file.data is not None:
        return {"type": "input_audio", "input_audio": file.data}
    return as_words(block, ": Mistral's models take documents and recordings")


class MistralProvider(OpenAIProvider):
    dialect = MISTRAL
    limit = "max_tokens"

    def body(self, request: Request) -> dict[str, Any]:
        body = super().body(request)
        body.pop("stream_options", None)  # streams tell their usage unasked
        if "seed" in body:
            body["random_seed"] = body.pop("seed")
        return body

    def _messages(self, request: Request) -> Iterator[dict[str, Any]]:
        said = list(super()._messages(request))
        if request.prefill:
            said[-1]["prefix"] = True
        systems = [message["content"] for message in said if message["role"] in _SYSTEM]
        if systems:
            yield {"role": "system", "content": "\n\n".join(map(result_text, systems))}
        before = ""
        for message in said:
            if message["role"] in _SYSTEM:
                continue
            if not before and message["role"] == "assistant":
                yield {"role": "user", "content": LEFT_OUT}
            if before == "tool" and message["role"] == "user":
                yield _PAUSE
            before = message["role"]
            yield message


# DeepSeek's chat completions, which refuse what an assistant said without the reasoning that led to it.
#
# Spec: 07 §1.19.


class DeepSeekProvider(OpenAIProvider):
    dialect = DEEPSEEK

    def _messages(self, request: Request) -> Iterator[dict[str, Any]]:
        for message in super()._messages(request):
            yield {"reasoning_content": "", **message} if message["role"] == "assistant" else message


# OpenAI's models on Azure: chat completions of a deployment, which the call names as its model.
#
# Spec: 07 §1.14.


class AzureProvider(OpenAIProvider):
    rewritten = True  # the deployment is in the path
    path = "/chat/completions"
    limit = "max_completion_tokens"

    def new_client(self) -> openai.AsyncAzureOpenAI:
        config = self.config
        token = config.auth_style == BEARER
        return openai.AsyncAzureOpenAI(
            api_key=None if token else config.api_key,
            azure_ad_token=config.api_key if token else None,
            base_url=f"{config.base_url}/openai",
            api_version=config.cloud.api_version,
            default_headers=self.client_headers(),
            max_retries=0,
            http_client=self.http.sdk_client(self.sdk, self.caps.bytes),
        )

    def health_url(self, endpoint: str) -> str:
        return f"{self.config.base_url}/openai{endpoint}"


# Other models on Amazon Bedrock than Claude, by chat completions. The SDK signs requests. Spec: 07 §1.14.


class BedrockChatProvider(OpenAIProvider):
    path = "/chat/completions"

    def prepare(self) -> None:
        import botocore  # noqa: F401  signs requests: without it the SDK fails in the middle of a call

    def new_client(self) -> openai.AsyncOpenAI:
        from openai.providers import bedrock  # openai 3, which only the extra `bedrock` asks for

        config, cloud = self.config, self.config.cloud
        token = config.auth_style == BEARER
        return openai.AsyncOpenAI(
            provider=bedrock(
                endpoint="runtime",
                region=cloud.region,
                base_url=f"{config.base_url}/openai/v1",
                api_key=config.api_key if token else None,
                access_key_id=None if token else config.api_key,
                secret_access_key=None if token else cloud.secret,
                session_token=None if token else cloud.session,
            ),
            default_headers=self.client_headers(),
            max_retries=0,
            http_client=self.http.sdk_client(self.sdk, self.caps.bytes),
        )


# Other models on Google's Vertex AI than Claude, by chat completions. Spec: 07 §1.14.


class VertexChatProvider(OpenAIProvider):
    path = "/chat/completions"

    def prepare(self) -> None:
        self._tokens = GoogleTokens(self.config)

    def new_client(self) -> openai.AsyncOpenAI:
        config, cloud = self.config, self.config.cloud
        place = f"projects/{cloud.project}/locations/{cloud.region}"
        return openai.AsyncOpenAI(
            api_key="none",
            base_url=f"{config.base_url}/{place}/endpoints/openapi",
            default_headers=self.client_headers(),
            max_retries=0,
            http_client=self.http.sdk_client(self.sdk, self.caps.bytes),
        )

    def model_id(self, model: str) -> str:
        """Models are named with their makers there; ours without one are Google's."""
        return model if "/" in model else f"google/{model}"

    def authorization(self) -> dict[str, Any]:
        return self._tokens.header()
