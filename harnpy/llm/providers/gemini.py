"""Gemini's own API, over a client of OpenAI's SDK: JSON and server-sent events are all that it needs.

Spec: 07 §1.19.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.faults import OptionError
from harnpy.formats.schemas import SERVICE, spelled
from harnpy.llm.call_options import JSON_OBJECT, JSON_SCHEMA
from harnpy.llm.dialects import GEMINI
from harnpy.llm.native_tools import is_own, openai_choice, openai_tool
from harnpy.llm.providers.openai_compatible import OpenAIProvider
from harnpy.llm.providers.remote import Answer, count, expect_dict, expect_list
from harnpy.llm.providers.service_errors import MalformedReply, ServiceError
from harnpy.llm.request_messages import (
    FILES,
    LEFT_OUT,
    as_words,
    file_of,
    in_call_order,
    joined_text,
    result_text,
    source_of,
    turns,
    without_systems,
)

if TYPE_CHECKING:
    from harnpy.llm.request import Request
    from harnpy.llm.request_messages import Block

    Part = dict[str, Any]

_SAMPLING = {
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "seed": "seed",
    "stop": "stopSequences",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
}
_MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
_IMAGES_BEHIND = " here: it is behind the results"
#: The key of a part that must come back at its place, and that of the block that holds it.
_SIGNATURE, _SIGN = "thoughtSignature", "thought_signature"
#: The key of a call whose id is the service's.
_HAS_ID = "has_id"


class GeminiProvider(OpenAIProvider):
    dialect = GEMINI

    def client_headers(self) -> dict[str, str]:
        headers = {name: value for name, value in super().client_headers().items() if name != "Authorization"}
        return {**headers, **({"x-goog-api-key": self.config.api_key} if self.config.api_key else {})}

    def request_path(self, request: Request, *, stream: bool) -> str:
        what = "streamGenerateContent?alt=sse" if stream else "generateContent"
        return f"/models/{request.model.removeprefix('models/')}:{what}"

    def body(self, request: Request) -> dict[str, Any]:
        systems, contents = _contents(request, self.origin(request))
        body: dict[str, Any] = {"contents": contents, "generationConfig": _generation(request)}
        if systems:
            body["systemInstruction"] = {"parts": [{"text": text} for text in systems]}
        if request.tools:
            body["tools"] = _tools(request.tools)
            if request.tool_choice is not None:
                body["toolConfig"] = {"functionCallingConfig": _calling(request.tool_choice)}
        return body

    def told(self, body: dict[str, Any], *, stream: bool) -> dict[str, Any]:
        return body  # the path says so

    def new_answer(self) -> Answer:
        return _Generated()


def _generation(request: Request) -> dict[str, Any]:
    config: dict[str, Any] = {"maxOutputTokens": request.max_tokens}
    config |= {_SAMPLING[key]: value for key, value in request.sampling.items() if key in _SAMPLING}
    output, thinking = request.output, request.thinking
    if output.kind in (JSON_OBJECT, JSON_SCHEMA):
        config["responseMimeType"] = "application/json"
    if output.kind == JSON_SCHEMA and output.schema is not None:
        config["responseJsonSchema"] = spelled(output.schema, SERVICE)
    if thinking["mode"] == "effort":
        config["thinkingConfig"] = {"includeThoughts": True, "thinkingLevel": thinking["level"]}
    elif thinking["mode"] != "disabled":
        budget = thinking.get("budget_tokens")
        tokens = -1 if budget is None else budget  # the model decides
        config["thinkingConfig"] = {"includeThoughts": True, "thinkingBudget": tokens}
    return config


def _tools(tools: list[Part]) -> list[Part]:
    functions, own = [], []
    for tool in tools:
        if is_own(tool):
            own.append(openai_tool(tool, GEMINI))
            continue
        made = openai_tool(tool, GEMINI)["function"]
        schema = made.pop("parameters")
        functions.append({**made, "parametersJsonSchema": schema})
    return [*([{"functionDeclarations": functions}] if functions else []), *own]


def _calling(choice: Any) -> Part:
    made = openai_choice(choice)
    if isinstance(made, str):
        return {"mode": _MODES[made]}
    function = made.get("function")
    if not isinstance(function, dict):
        raise OptionError('tool_choice: Gemini has "auto", "none", "required", or the name of a tool')
    return {"mode": "ANY", "allowedFunctionNames": [GEMINI.name_of(str(function.get("name")))]}


def _contents(request: Request, reader: Any) -> tuple[list[str], list[Part]]:
    """The texts of the system, and the conversation: contents of alternating roles."""
    first, said = without_systems(turns(request.messages, reader))
    systems = list(filter(None, (request.system, *(joined_text(turn.blocks) for turn in first))))
    contents: list[Part] = []
    calls: dict[str, Block] = {}
    for turn in in_call_order(said):
        calls |= {block["id"]: block for block in turn.of("tool_use")}
        role = "model" if turn.role == "assistant" else "user"
        blocks = [*turn.blocks, *(image for result in turn.of("tool_result") for image in _images(result))]
        parts = [part for block in blocks if (part := _part(block, calls))]
        if contents and contents[-1]["role"] == role:
            # Results belong to the calls before, so they come first.
            contents[-1]["parts"] += parts
            contents[-1]["parts"].sort(key=lambda part: role == "user" and "functionResponse" not in part)
        elif parts:
            contents.append({"role": role, "parts": parts})
    if request.prefill:
        contents.append({"role": "model", "parts": [{"text": request.prefill}]})
    if contents and contents[0]["role"] == "model":
        contents.insert(0, {"role": "user", "parts": [{"text": LEFT_OUT}]})
    return systems, contents


def _images(result: Block) -> list[Block]:
    content = result["content"]
    return [part for part in content if part["type"] != "text"] if isinstance(content, list) else []


def _part(block: Block, calls: dict[str, Block]) -> Part | None:
    """A block as the service has it, None for one that says nothing."""
    signed = {_SIGNATURE: block[_SIGN]} if _SIGN in block else {}
    match block.get("type"):
        case "text":
            return {"text": block["text"], **signed} if block["text"] or signed else None
        case "thinking":
            return {"text": block["thinking"], "thought": True, **signed}
        case "tool_use":
            more = block.get("more", {})
            own = {"id": block["id"]} if more.get(_HAS_ID) else {}
            signed = {_SIGNATURE: more[_SIGN]} if _SIGN in more else {}
            call = {**own, "name": GEMINI.name_of(block["name"]), "args": block["input"]}
            return {"functionCall": call, **signed}
        case "tool_result":
            asked = calls.get(block["tool_use_id"], {})
            own = {"id": asked["id"]} if asked.get("more", {}).get(_HAS_ID) else {}
            key, text = (
                "error" if block.get("is_error") else "output",
                result_text(block["content"], _IMAGES_BEHIND),
            )
            name = GEMINI.name_of(str(asked.get("name", "unknown")))
            return {"functionResponse": {**own, "name": name, "response": {key: text}}}
        case "image" | "image_url" | "input_image":
            data, media_type, url = source_of(block)
            return _medium(data, media_type or "image/png", url)
    if block.get("type") in FILES:
        file = file_of(block)
        if file is None:
            return {"text": as_words(block, _NOT_TAKEN)["text"]}
        return _medium(file.data, file.media_type or _USUAL[file.kind], file.url)
    return block.get("part") or None


_NOT_TAKEN = ": another service keeps it"
#: The types of files that don't tell theirs.
_USUAL = {"document": "application/pdf", "audio": "audio/mpeg", "video": "video/mp4"}


def _medium(data: Any, media_type: str, url: Any) -> Part:
    if data is None:
        return {"fileData": {"mimeType": media_type, "fileUri": url}}
    return {"inlineData": {"mimeType": media_type, "data": data}}


class _Generated(Answer):
    """The content of the first candidate."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[Block] = []
        #: The pieces of the last part's text, while it may go on.
        self._pieces: list[str] = []

    def add(self, chunk: Any) -> str:
        return self._read(chunk, joined=True)

    def take(self, body: Any) -> None:
        if isinstance(body, list):  # a stream that was asked for without `alt=sse`
            for chunk in body:
                self._read(chunk, joined=True)
            return
        self._read(body, joined=False)
        if not self.stop_reason:
            raise MalformedReply("a reply without candidates")

    def calls(self) -> list[dict[str, Any]]:
        return [
            {
                **{key: value for key, value in block.items() if key != "input"},
                "type": "tool_call",
                "arguments": block["input"],
            }
            for block in self._parts
            if block["type"] == "tool_use"
        ]

    def parts(self) -> list[Block]:
        self._put_together()
        return self._parts

    def _put_together(self) -> None:
        if self._pieces:
            last = self._parts[-1]
            last[last["type"]] = "".join(self._pieces)
            self._pieces = [last[last["type"]]]

    def _append(self, block: Block) -> None:
        self._put_together()
        self._parts.append(block)
        self._pieces = []

    def _read(self, chunk: Any, *, joined: bool) -> str:
        part = expect_dict(chunk)
        if part.get("error"):
            raise ServiceError(part)
        self.model = part.get("modelVersion") or self.model
        self._count(part.get("usageMetadata"))
        feedback = part.get("promptFeedback")
        if isinstance(feedback, dict) and feedback.get("blockReason"):
            self.stop_reason = "content_filter"
        candidates = expect_list(part.get("candidates"))
        if not candidates:
            return ""
        candidate = expect_dict(candidates[0])
        self.stop_reason = candidate.get("finishReason") or self.stop_reason
        content = candidate.get("content")
        given = expect_list(content.get("parts")) if isinstance(content, dict) else []
        return "".join(self._take(expect_dict(each), joined) for each in given)

    def _take(self, part: Part, joined: bool) -> str:
        """Take in a part; return the text in it."""
        signed = {_SIGN: part[_SIGNATURE]} if _SIGNATURE in part else {}
        call, text = part.get("functionCall"), part.get("text")
        if isinstance(call, dict):
            id, args = str(call.get("id") or ""), call.get("args")
            block = {"type": "tool_use", "id": id, "name": str(call.get("name"))}
            own = {_HAS_ID: True} if id else {}
            self._append({**block, "input": args if isinstance(args, dict) else {}, **own, **signed})
            return ""
        if not isinstance(text, str):
            self._append({"type": "part", "part": part})
            return ""
        kind = "thinking" if part.get("thought") else "text"
        last = self._parts[-1] if self._parts else {}
        # A part with a signature is never joined with one without.
        if joined and last.get("type") == kind and _SIGN not in last and not signed:
            self._pieces = self._pieces or [last[kind]]
            self._pieces.append(text)
        elif text or signed:
            self._append({"type": kind, kind: text, **signed})
        (self.thinking if kind == "thinking" else self.text).append(text)
        return "" if kind == "thinking" else text

    def _count(self, usage: Any) -> None:
        if not isinstance(usage, dict):
            return
        self.input_tokens = count(usage, "promptTokenCount") or self.input_tokens
        output = count(usage, "candidatesTokenCount") + count(usage, "thoughtsTokenCount")
        self.output_tokens = output or self.output_tokens
        self.cache_read = count(usage, "cachedContentTokenCount") or self.cache_read
