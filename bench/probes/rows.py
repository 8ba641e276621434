"""The rows: what each library is given, and how what it did is put in a few words.

A row's `see` looks at the requests that the service recorded, or at what the library made of the stream, and
never at a library's own types. Its words are what was seen; `best` are those where nothing was lost, nothing
invented and nothing run that wasn't asked for, `told` those where something was, with a word about it to the
model or to the program. An error is told, too. "Refused" is what the service's documentation rules out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from probes.service import (
    ANTHROPIC,
    CHAT,
    GEMINI,
    Body,
    chat_usage,
    delta,
    fragment,
    generated,
    message,
    text_block,
)

#: What a library has no means for; behind it may stand why it couldn't be asked.
NOT_ASKED = "–"
NOTHING_RUN = "nothing is run"
#: The model is asked again, with an error as the call's result.
ASKED_AGAIN = "nothing is run, the model is told"
#: A picture of one dot.
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
THOUGHT = "Which of them?"


@dataclass
class Seen:
    """``said``: what the library reported (`child.py`), without the error, if it raised one."""

    requests: list[Body]
    said: dict[str, Any] = field(default_factory=dict)
    error: str | None = None


@dataclass(frozen=True)
class Row:
    title: str
    dialect: str
    #: What the library is given, in a sentence.
    given: str
    see: Callable[[Seen], str]
    best: tuple[str, ...]
    told: tuple[str, ...] = ()
    #: A conversation to send, in the drivers' format.
    messages: Sequence[Body] = ()
    #: What the service streams to the question "Look.", instead.
    events: Sequence[Body] = ()

    def mark(self, words: str) -> str:
        """Return ✓, ○ (told) or ✗ for what was seen; – for what a library has no means for."""
        if words.startswith(NOT_ASKED):
            return NOT_ASKED
        raises = words.startswith("raises")
        if words in self.best or (raises and "raises" in self.best):
            return "✓"
        return "○" if raises or words in (*self.told, ASKED_AGAIN) else "✗"


# The conversations. A message is one of these; drivers turn them into their library's own.


def user(text: str) -> Body:
    return {"role": "user", "text": text}


def system(text: str) -> Body:
    return {"role": "system", "text": text}


def assistant(text: str = "", *, thinking: str = "", calls: Sequence[tuple[str, str]] = ()) -> Body:
    """``calls``: ids and arguments, as the model wrote them, of calls of the tool `look`."""
    named = [{"id": id, "name": "look", "arguments": arguments} for id, arguments in calls]
    return {"role": "assistant", "text": text, "thinking": thinking, "calls": named}


def result(id: str, text: str, *, image: str = "", failed: bool = False) -> Body:
    return {"role": "tool", "id": id, "name": "look", "text": text, "image": image, "failed": failed}


LOOKED = assistant(calls=[("call_1", '{"what": "a"}')])
GO_ON = user("Go on.")

# What a request says.


def _turns(body: Body) -> Iterator[tuple[str, Body]]:
    """Yield each block of a request's messages with its role, in any dialect."""
    for each in body.get("messages") or body.get("contents") or ():
        content = each.get("parts", each.get("content"))
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        yield from ((each["role"], {_camel(key): block[key] for key in block}) for block in blocks)


def _camel(key: str) -> str:
    """Return a key of Gemini's, which has two spellings, in one; other dialects' keys stay as they are."""
    known = ("function_call", "function_response", "inline_data", "thought_signature")
    return re.sub("_(.)", lambda found: found[1].upper(), key) if key in known else key


def _texts(body: Body, role: str) -> list[str]:
    return [block["text"] for who, block in _turns(body) if who == role and "text" in block]


def _asked(see: Callable[[Body], str]) -> Callable[[Seen], str]:
    """Look at the first request; without one, at the error."""

    def seen(given: Seen) -> str:
        if given.requests:
            return see(given.requests[0])
        return f"raises {given.error}" if given.error else "asks nothing"

    return seen


@_asked
def _image(body: Body) -> str:
    for role, block in _turns(body):
        if DOT[:40] not in json.dumps(block):
            continue
        if block.get("type") == "tool_result":
            parts = block["content"] if isinstance(block["content"], list) else []
            return "image in the result" if any("source" in part for part in parts) else "base64 as text"
        if "functionResponse" in block:
            return "image in the result" if block["functionResponse"].get("parts") else "base64 as text"
        if block.keys() & {"image_url", "source", "inlineData"}:
            return "image in the result" if role == "tool" else "image in a user's message"
        return "base64 as text"
    told = re.search(r"image|picture|png", json.dumps(body.get("messages") or body.get("contents")))
    return "a note in its place" if told else "gone"


@_asked
def _failure(body: Body) -> str:
    for role, block in _turns(body):
        if "functionResponse" in block:
            response = block["functionResponse"]["response"]
            return "error key" if "error" in response else _in_words(response)
        if block.get("type") == "tool_result":
            return "is_error" if block.get("is_error") else _in_words(block["content"])
        if role == "tool":
            return _in_words(block)
    return "gone"


def _in_words(result: Any) -> str:
    return "in words" if re.search("error|fail", json.dumps(result), re.IGNORECASE) else "gone"


@_asked
def _foreign_thoughts(body: Body) -> str:
    for role, block in _turns(body):
        if THOUGHT in json.dumps(block):
            if "text" not in block:
                return f"a {block['type']} block without a signature, refused"
            tagged = re.search(r"<\w+[^>]*>\s*" + re.escape(THOUGHT), block["text"])
            return f"tagged, in the {role}'s text" if tagged else f"as the {role}'s text"
    return "left out"


@_asked
def _empty_text(body: Body) -> str:
    said = [each["content"] for each in body["messages"] if each["role"] == "assistant"]
    if not said:
        return "left out"
    texts = _texts(body, "assistant")
    if not texts:
        return "no blocks, refused"
    return f'"{texts[0]}" is invented' if texts[0] else "empty, refused"


@_asked
def _two_assistants(body: Body) -> str:
    said = _texts(body, "assistant")
    count = sum(each["role"] == "assistant" for each in body["messages"])
    if len(said) == 2:
        return "two messages" if count == 2 else "two blocks"
    return "joined in one text" if "".join(said).replace("\n", "") == "One.Two." else "lost"


@_asked
def _system_between(body: Body) -> str:
    if "Be brief." in json.dumps(body.get("system", "")):
        return "top of the prompt"
    for role, block in _turns(body):
        if (text := str(block.get("text"))).find("Be brief.") >= 0:
            if role == "user":
                return "user's words" if text.strip() == "Be brief." else "user's message, marked"
            return f"role {role}"
    return "gone"


@_asked
def _late_result(body: Body) -> str:
    for each in body["messages"]:
        kinds = [block["type"] for block in each["content"] if isinstance(block, dict)]
        if each["role"] == "user" and "tool_result" in kinds:
            if kinds[0] != "tool_result":
                return "text before the result, refused"
            before = body["messages"][body["messages"].index(each) - 1]
            called = before["role"] == "assistant" and "tool_use" in json.dumps(before["content"])
            return "result first" if called else "late as given, refused"
    return "gone"


@_asked
def _ids(body: Body) -> str:
    calls = [block["id"] for _, block in _turns(body) if block["type"] == "tool_use"]
    results = [block["tool_use_id"] for _, block in _turns(body) if block["type"] == "tool_result"]
    if sorted(calls) != sorted(results) or len(set(calls)) < len(calls):
        return "two calls, one id"
    fits = all(re.fullmatch(r"[a-zA-Z0-9_-]+", id) for id in calls)
    return "spelled as allowed" if fits else "as they are, refused"


@_asked
def _half_arguments(body: Body) -> str:
    for each in body["messages"]:
        for call in each.get("tool_calls") or ():
            arguments = call["function"]["arguments"]
            try:
                json.loads(arguments)
            except ValueError:
                return "as they are"
            return _object_with_text(json.loads(arguments))
    found = [block["input"] for _, block in _turns(body) if block["type"] == "tool_use"]
    return _object_with_text(found[0]) if found else "the call is gone"


def _object_with_text(arguments: Any) -> str:
    if isinstance(arguments, str):
        return "a string, refused"
    return "the text in an object" if "New Yo" in json.dumps(arguments) else json.dumps(arguments)


@_asked
def _blank_end(body: Body) -> str:
    if body["messages"][-1]["role"] != "assistant":
        return NOT_ASKED
    text = _texts(body, "assistant")[-1]
    return "kept, refused" if text != text.rstrip() else "trimmed"


@_asked
def _result_text(body: Body) -> str:
    for _, block in _turns(body):
        if "functionResponse" in block:
            given = json.dumps(block["functionResponse"]["response"])
            return "as it is" if '"1.10"' in given else given
    return "gone"


# What became of a stream.


def _streamed(see: Callable[[Seen], str]) -> Callable[[Seen], str]:
    """Look at what was reported; if there was an error, at that."""
    return lambda seen: f"raises {seen.error}" if seen.error else see(seen)


@_streamed
def _runs(seen: Seen) -> str:
    return ", ".join(f"look {what}" for what in seen.said["ran"]) or _nothing(seen)


def _nothing(seen: Seen) -> str:
    told = len(seen.requests) > 1 and [*_turns(seen.requests[1])][-1][0] not in ("assistant", "model")
    return ASKED_AGAIN if told else NOTHING_RUN


def _not_run(seen: Seen) -> str:
    """Nothing may be run: whether by an error, or because the call was refused."""
    ran = seen.said.get("ran") or []
    if ran:
        return "runs " + ", ".join(f"look {what}" for what in ran)
    return f"raises {seen.error}" if seen.error else _nothing(seen)


@_streamed
def _tokens(seen: Seen) -> str:
    return (
        f"{seen.said['input']} + {seen.said['output']}" if seen.said.get("input") is not None else NOT_ASKED
    )


@_streamed
def _end(seen: Seen) -> str:
    """How the reply ended, in the library's word."""
    text = "" if seen.said["text"] else ", text gone"
    return f'"{seen.said["finish"]}"{text}' if seen.said["finish"] else f"no word of it{text}"


@_streamed
def _text_and_thought(seen: Seen) -> str:
    text, thinking = seen.said["text"], seen.said["thinking"]
    words = ["text" if text == "Fine." else f"text {json.dumps(text)}" if text else "no text"]
    words.append("thought" if thinking == THOUGHT else "a piece of the thought" if thinking else "no thought")
    return " and ".join(words)


@_streamed
def _refusal(seen: Seen) -> str:
    text = seen.said["text"] or ""
    kept = "kept" if "I can't." in text else "a piece of it" if text else "gone"
    finish = str(seen.said["finish"])
    marked = re.search("refus|filter", finish)
    return f'{kept}, marked "{finish}"' if marked else kept


def _goes_back(find: Callable[[Body], Any]) -> Callable[[Seen], str]:
    """Look at what of the reply is in the request that brings the tool's result."""

    def see(seen: Seen) -> str:
        if len(seen.requests) < 2:
            return f"raises {seen.error}" if seen.error else "no second request"
        return str(find(seen.requests[1]))

    return see


@_goes_back
def _reasoning_back(body: Body) -> str:
    for each in body["messages"]:
        if each["role"] == "assistant":
            if THOUGHT in (each.get("reasoning_content"), each.get("reasoning")):
                return "goes back"
            return "as the assistant's text" if THOUGHT in json.dumps(each) else "gone"
    return "gone"


@_goes_back
def _signed_back(body: Body) -> str:
    blocks = [block for role, block in _turns(body) if role == "assistant"]
    kinds = [block["type"] for block in blocks]
    if "thinking" not in kinds:
        return "gone"
    if [block.get("signature") for block in blocks if block["type"] == "thinking"] != ["S1", "S2"]:
        return "merged or changed"
    return "goes back in order" if kinds == ["thinking", "text"] * 2 + ["tool_use"] else "in another order"


@_goes_back
def _signature_back(body: Body) -> str:
    for role, block in _turns(body):
        if role == "model" and "functionCall" in block:
            return "goes back" if block.get("thoughtSignature") == "UzE=" else "gone"
    return "the call is gone"


_USAGE = [chat_usage(11, count) for count in (3, 5, 7)]
_A = '{"what": "a"}'
_B = '{"what": "b"}'
_TWO = ("look a, look b",)
_ONE = ("look a",)
_ERRORS = tuple(f'"{word}"' for word in ("error", "other", "unknown", "aborted", "incomplete", "failed"))
_BROKEN = (NOTHING_RUN, ASKED_AGAIN)


CONVERSATIONS = (
    *(
        Row(
            f"an image in a tool's result, {name}",
            dialect,
            "A tool result with a text and an image." + note,
            _image,
            ("image in the result", "image in a user's message"),
            told=("a note in its place",),
            messages=[user("Look."), LOOKED, result("call_1", "One dot.", image=DOT), GO_ON],
        )
        for name, dialect, note in (
            ("chat", CHAT, " OpenAI's types allow only text there; other servers accept images, too."),
            ("Anthropic", ANTHROPIC, ""),
            ("Gemini", GEMINI, ""),
        )
    ),
    *(
        Row(
            f"a tool's failure, {name}",
            dialect,
            'A result "no such line", marked as a failure in the library\'s own way.',
            _failure,
            ("is_error", "error key", "in words"),
            messages=[user("Look."), LOOKED, result("call_1", "no such line", failed=True), GO_ON],
        )
        for name, dialect in (("chat", CHAT), ("Anthropic", ANTHROPIC), ("Gemini", GEMINI))
    ),
    Row(
        "another model's thoughts, Anthropic",
        ANTHROPIC,
        "An assistant message with thoughts of another service's model, without a signature.",
        _foreign_thoughts,
        ("left out",),
        told=("tagged, in the user's text", "tagged, in the assistant's text"),
        messages=[user("Look."), assistant("At a.", thinking=THOUGHT), GO_ON],
    ),
    Row(
        "an assistant's empty text, Anthropic",
        ANTHROPIC,
        "An assistant message with an empty text, between two user messages.",
        _empty_text,
        ("left out",),
        messages=[user("Look."), assistant(""), GO_ON],
    ),
    Row(
        "two assistants in a row, Anthropic",
        ANTHROPIC,
        'Two assistant messages in a row, "One." and "Two.".',
        _two_assistants,
        ("two messages", "two blocks", "joined in one text"),
        messages=[user("Look."), assistant("One."), assistant("Two."), GO_ON],
    ),
    Row(
        "a system message in the middle, Anthropic",
        ANTHROPIC,
        "A system message after the assistant's first reply.",
        _system_between,
        ("top of the prompt", "user's message, marked", "role system"),
        messages=[user("Look."), assistant("One."), system("Be brief."), GO_ON],
    ),
    Row(
        "a result behind another message, Anthropic",
        ANTHROPIC,
        "A call, then a user message, then the call's result.",
        _late_result,
        ("result first",),
        messages=[user("Look."), LOOKED, user("Wait."), result("call_1", "One dot."), GO_ON],
    ),
    Row(
        "ids of another service, Anthropic",
        ANTHROPIC,
        "Two calls with the ids `look.1:0` and `look:1.0`. Anthropic accepts letters, digits, `_` and `-`.",
        _ids,
        ("spelled as allowed",),
        messages=[
            user("Look."),
            assistant(calls=[("look.1:0", _A), ("look:1.0", _B)]),
            *(result("look.1:0", "One."), result("look:1.0", "Two.")),
            GO_ON,
        ],
    ),
    *(
        Row(
            f"half arguments in the history, {name}",
            dialect,
            'A call whose arguments are `{"what": "New Yo`, and a result that says it wasn\'t run.',
            _half_arguments,
            ("as they are", "the text in an object"),
            messages=[
                user("Look."),
                assistant(calls=[("call_1", '{"what": "New Yo')]),
                *(result("call_1", "Not run."), GO_ON),
            ],
        )
        for name, dialect in (("chat", CHAT), ("Anthropic", ANTHROPIC))
    ),
    Row(
        "a blank at the assistant's end, Anthropic",
        ANTHROPIC,
        'The last message is the assistant\'s, "Once ". Anthropic refuses a blank there.',
        _blank_end,
        ("trimmed",),
        messages=[user("Tell."), assistant("Once ")],
    ),
    Row(
        "a result that looks like a number, Gemini",
        GEMINI,
        "A tool's result is the text `1.10`.",
        _result_text,
        ("as it is",),
        messages=[user("Look."), LOOKED, result("call_1", "1.10"), GO_ON],
    ),
)

STREAMS = (
    Row(
        "two calls without numbers",
        CHAT,
        "Two calls, each complete in one chunk, with ids and without `index`.",
        _runs,
        _TWO,
        events=[fragment(_A, "look", id="x"), fragment(_B, "look", id="y"), delta("tool_calls")],
    ),
    Row(
        "fragments without numbers and ids",
        CHAT,
        "One call in three fragments without `index`; only the first has an id and a name.",
        _runs,
        _ONE,
        events=[
            *(fragment('{"wh', "look", id="x"), fragment('at": '), fragment('"a"}')),
            delta("tool_calls"),
        ],
    ),
    Row(
        "two calls without ids",
        CHAT,
        "Two calls with numbers and without ids.",
        _runs,
        _TWO,
        events=[fragment(_A, "look", index=0), fragment(_B, "look", index=1), delta("tool_calls")],
    ),
    Row(
        "one number, two ids",
        CHAT,
        "Two calls, each complete in one chunk, both with `index` 0 and with different ids.",
        _runs,
        _TWO,
        events=[
            *(fragment(_A, "look", index=0, id="x"), fragment(_B, "look", index=0, id="y")),
            delta("tool_calls"),
        ],
    ),
    Row(
        "the name in each fragment",
        CHAT,
        "One call in two fragments; number, id and name are in both.",
        _runs,
        _ONE,
        events=[
            *(fragment('{"what":', "look", index=0, id="x"), fragment(' "a"}', "look", index=0, id="x")),
            delta("tool_calls"),
        ],
    ),
    Row(
        "arguments as an object",
        CHAT,
        "A call whose arguments are a JSON object instead of JSON text.",
        _runs,
        _ONE,
        events=[fragment({"what": "a"}, "look", index=0, id="x"), delta("tool_calls")],
    ),
    Row(
        "half arguments",
        CHAT,
        'A call with the arguments `{"what": "New Yo`, and `finish_reason: tool_calls`.',
        _not_run,
        _BROKEN,
        events=[fragment('{"what": "New Yo', "look", index=0, id="x"), delta("tool_calls")],
    ),
    Row(
        "cut off before the arguments",
        CHAT,
        "A call without arguments, and `finish_reason: length`. The tool has a default for its parameter.",
        _not_run,
        _BROKEN,
        events=[fragment("", "look", index=0, id="x"), delta("length")],
    ),
    Row(
        "usage so far in each chunk",
        CHAT,
        "Three chunks with the usage so far, 11 + 3, 11 + 5 and 11 + 7 tokens.",
        _tokens,
        ("11 + 7",),
        events=[
            {**delta(content=text), "usage": usage}
            for text, usage in zip(("Fi", "ne", "."), _USAGE, strict=True)
        ]
        + [{**delta("stop"), "usage": _USAGE[2]}],
    ),
    Row(
        "no finish reason",
        CHAT,
        "A text, then `[DONE]`, without a `finish_reason`: the stream ended early.",
        _end,
        ("raises",),
        told=_ERRORS,
        events=[delta(content="Fine.")],
    ),
    Row(
        'finish reason "error"',
        CHAT,
        "Half a text, then `finish_reason: error`.",
        _end,
        ("raises",),
        told=_ERRORS,
        events=[delta(content="Fi"), delta("error")],
    ),
    Row(
        "an error beside the choices",
        CHAT,
        "Half a text, then a chunk with `error` beside its choices.",
        _end,
        ("raises",),
        told=_ERRORS,
        events=[
            delta(content="Fi"),
            {**delta("error", content=""), "error": {"code": 502, "message": "Provider disconnected"}},
        ],
    ),
    Row(
        "content as a list",
        CHAT,
        "`content` is a list of a thinking part and a text part, as Mistral sends it.",
        _text_and_thought,
        ("text and thought",),
        events=[
            delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]}]),
            delta(content=[{"type": "text", "text": "Fine."}]),
            delta("stop"),
        ],
    ),
    Row(
        "reasoning_content",
        CHAT,
        "Thoughts as `reasoning_content` in two chunks, then a text, as DeepSeek sends them.",
        _text_and_thought,
        ("text and thought",),
        events=[
            *(delta(reasoning_content="Which "), delta(reasoning_content="of them?")),
            *(delta(content="Fine."), delta("stop")),
        ],
    ),
    Row(
        "reasoning_content goes back",
        CHAT,
        "Thoughts as `reasoning_content`, then a call: DeepSeek requires them back with the result.",
        _reasoning_back,
        ("goes back",),
        events=[
            *(delta(reasoning_content=THOUGHT), fragment(_A, "look", index=0, id="x")),
            delta("tool_calls"),
        ],
    ),
    Row(
        "a refusal",
        CHAT,
        'The text arrives as `refusal`, "I " and "can\'t.", with `finish_reason: stop`.',
        _refusal,
        tuple(
            f'kept, marked "{word}"' for word in ("refused", "refusal", "content_filter", "content-filter")
        ),
        events=[delta(role="assistant", refusal="I "), delta(refusal="can't."), delta("stop")],
    ),
    Row(
        "signed thoughts go back, Anthropic",
        ANTHROPIC,
        "Two signed thoughts, each followed by a text, then a call.",
        _signed_back,
        ("goes back in order",),
        events=message(
            *(
                block
                for text, signature in (("At a.", "S1"), ("Now.", "S2"))
                for block in (
                    (
                        {"type": "thinking", "thinking": "", "signature": ""},
                        {"type": "thinking_delta", "thinking": THOUGHT},
                        {"type": "signature_delta", "signature": signature},
                    ),
                    text_block(text),
                )
            ),
            (
                {"type": "tool_use", "id": "t", "name": "look", "input": {}},
                {"type": "input_json_delta", "partial_json": _A},
            ),
            stop="tool_use",
        ),
    ),
    Row(
        "the input at once, Anthropic",
        ANTHROPIC,
        "A call whose `input` is complete in `content_block_start`.",
        _runs,
        _ONE,
        events=message(
            ({"type": "tool_use", "id": "t", "name": "look", "input": {"what": "a"}},), stop="tool_use"
        ),
    ),
    Row(
        "cut off before the input, Anthropic",
        ANTHROPIC,
        "A call without input, and `stop_reason: max_tokens`.",
        _not_run,
        _BROKEN,
        events=message(({"type": "tool_use", "id": "t", "name": "look", "input": {}},), stop="max_tokens"),
    ),
    Row(
        "tokens of message_start, Anthropic",
        ANTHROPIC,
        "`input_tokens` only in `message_start`, `output_tokens` at the end.",
        _tokens,
        ("11 + 7",),
        events=message(text_block("Fine.")),
    ),
    Row(
        "pause_turn, Anthropic",
        ANTHROPIC,
        "A text, and `stop_reason: pause_turn`: the service would continue if asked.",
        lambda seen: "goes on" if len(seen.requests) > 1 else _end(seen),
        ("goes on", '"pause_turn"', '"pause"'),
        events=message(text_block("Fine."), stop="pause_turn"),
    ),
    Row(
        "a signature goes back, Gemini",
        GEMINI,
        "A call with a `thoughtSignature`.",
        _signature_back,
        ("goes back",),
        events=[
            generated(
                {"functionCall": {"name": "look", "args": {"what": "a"}}, "thoughtSignature": "UzE="},
            )
        ],
    ),
    Row(
        "tokens of thoughts, Gemini",
        GEMINI,
        "7 tokens of text, 3 of thoughts, 21 in all: everything except the prompt is paid as output.",
        _tokens,
        ("11 + 10",),
        events=[generated({"text": "Fine."}, thoughtsTokenCount=3, totalTokenCount=21)],
    ),
    Row(
        "MALFORMED_FUNCTION_CALL, Gemini",
        GEMINI,
        "No parts, and `finishReason: MALFORMED_FUNCTION_CALL`.",
        lambda seen: (
            "asks again"
            if len(seen.requests) > 1 and not seen.error
            else _end(seen).replace(", text gone", "")
        ),
        ("raises", "asks again", '"MALFORMED_FUNCTION_CALL"', '"malformed_function_call"'),
        told=_ERRORS,
        events=[generated(finish="MALFORMED_FUNCTION_CALL")],
    ),
)

ROWS = (*CONVERSATIONS, *STREAMS)
