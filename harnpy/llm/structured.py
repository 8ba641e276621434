"""Structured output: finding it in a reply, judging it by its schema, and asking again. Spec: 07 §1.6.

`read_answer` and `nudge_text` serve any loop that asks; `ask_until_valid` is the loop of a single call.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count, islice
from typing import TYPE_CHECKING, Any

from harnpy.formats.json import compact_json
from harnpy.formats.schema_checks import check
from harnpy.llm.errors import CallError
from harnpy.llm.json_extraction import extract, is_json
from harnpy.llm.text_format import interpreted, parse_reply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from harnpy.formats.schema_checks import SchemaValues
    from harnpy.llm.account import Trace
    from harnpy.llm.call_options import Output
    from harnpy.llm.reply import Reply
    from harnpy.llm.request import Request

_SHAPES = 8
_DEPTH = 3

_MISMATCH = "Your previous response did not match the required JSON schema."
_AGAIN = "Reply once more with nothing but JSON that satisfies the schema: no text around it, no code fence."


def joined(errors: Iterable[str]) -> str:
    return "; ".join(errors)


def nudge_text(output: Output, errors: Iterable[str]) -> str | None:
    """The message that asks for a better answer, None when there is to be none."""
    if output.nudge is False:
        return None
    if isinstance(output.nudge, str):
        return f"{output.nudge}\n\nValidation errors: {joined(errors) or '(no detailed errors)'}"
    schema = output.expected_schema or {}
    lines = [_MISMATCH, f"Validation errors: {joined(errors)}."]
    if required := _required(schema):
        lines.append(f"Required keys: {required}.")
    if allowed := _allowed(schema):
        lines.append(f"Allowed top-level keys: {allowed}.")
    if shapes := list(islice(_shapes("root", schema, 0), _SHAPES)):
        lines += ["Expected JSON schema shape:", *shapes]
    return "\n".join([*lines, _AGAIN])


def _shapes(path: str, schema: Any, depth: int) -> Iterator[str]:
    """A line for each object that the schema describes, the outer ones first."""
    if not isinstance(schema, dict) or depth > _DEPTH:
        return
    allowed, required = _allowed(schema), _required(schema)
    if allowed:
        yield f"- {path} object allowed keys: {allowed}" + (
            f"; required keys: {required}" if required else ""
        )
        for key, property in sorted(schema["properties"].items()):
            yield from _shapes(f"{path}.{key}", property, depth + 1)
    yield from _shapes(f"{path}[]", schema.get("items"), depth + 1)


def _required(schema: dict[str, Any]) -> str:
    keys = schema.get("required")
    return ", ".join(map(str, keys)) if isinstance(keys, list) else ""


def _allowed(schema: dict[str, Any]) -> str:
    properties = schema.get("properties")
    return ", ".join(sorted(properties)) if isinstance(properties, dict) else ""


_NO_JSON = "response did not contain parseable JSON"
_CUT_OFF = "response hit the token limit before producing complete JSON"

_NO_BUDGET = (
    " (hint: set `schema_retries: N` in the llm_call options to automatically re-prompt the model with a "
    "corrective nudge)"
)
_BUDGET_SPENT = (
    " (hint: schema_retries budget exhausted — the model did not produce conforming output after the "
    "configured retries; consider raising `schema_retries` or relaxing the schema)"
)


@dataclass(frozen=True, slots=True)
class Reading:
    """The JSON of a reply: ``data`` if it was ``found``, ``lifted`` out of other text, its ``errors``."""

    found: bool = False
    data: Any = None
    lifted: bool = False
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of a request: ``request`` as it was sent last, ``attempts`` at least 1."""

    request: Request
    reply: Reply
    reading: Reading
    attempts: int

    def exhausted(self) -> str:
        """The error text for an answer that stays invalid."""
        hint = _BUDGET_SPENT if self.request.output.retries else _NO_BUDGET
        return f"LLM output failed schema validation: {joined(self.reading.errors)}{hint}"


def read_answer(reply: Reply, request: Request, values: SchemaValues) -> Reading:
    """The structured output in a reply; empty when the request expects none."""
    output = request.output
    if not output.structured:
        return Reading()
    if reply.refused:
        return Reading(errors=(f"the model refused (content policy): {reply.refused}",))
    schema = output.checked_schema
    for text in _candidates(reply):
        try:
            data = extract(text, values.read_json)
        except ValueError:
            continue
        errors = () if schema is None else tuple(check(data, schema, values).errors)
        return Reading(True, data, not is_json(reply.text, values.read_json), errors)
    return Reading() if schema is None else Reading(errors=tuple(_no_json(reply, request)))


def ask_until_valid(
    request: Request, ask: Callable[[Request], Reply], trace: Trace, values: SchemaValues
) -> Answer:
    """Ask, and ask again while the output doesn't fit and retries remain.

    Invalid answers are never sent back: each retry adds one message to the original ones.
    """
    sent = request
    for attempt in count(1):
        reply = ask(sent)
        reading = read_answer(reply, request, values)
        if not reading.errors or reply.refused or attempt > request.output.retries:
            break
        nudge = nudge_text(request.output, reading.errors)
        added = [] if nudge is None else [{"role": "user", "content": nudge}]
        sent = replace(request, messages=request.messages + added)
        record_retry(trace, attempt, reading, nudge)
    return Answer(sent, reply, reading, attempt)


def record_retry(trace: Trace, attempt: int, reading: Reading, nudge: str | None) -> None:
    """Record that a reply is asked for again, the first time as ``attempt`` 1."""
    trace.record(
        "schema_retry",
        attempt=attempt,
        errors=list(reading.errors),
        nudge_used=nudge is not None,
        correction_prompt=nudge or "",
    )


def settle(answer: Answer, warn: Callable[[str, str], None]) -> Answer:
    """Raise `CallError`, warn, or do nothing about an invalid answer, as its request says."""
    if answer.reading.errors:
        validation = answer.request.output.validation
        if validation == "error" and answer.reply.refused:
            raise CallError("generic", joined(answer.reading.errors))
        if validation == "error":
            raise CallError("schema_validation", answer.exhausted())
        if validation == "warn":
            warn("llm", answer.exhausted())
    return answer


def _candidates(reply: Reply) -> Iterator[str]:
    """Texts that may hold the JSON, the most likely first."""
    public = [
        block["text"]
        for block in reply.blocks()
        if block["type"] == "output_text" and block["visibility"] == "public"
    ]
    texts = [reply.text, "".join(public), *(compact_json(call["arguments"]) for call in reply.tool_calls)]
    texts = [text for text in texts if text.strip()]
    yield from texts
    for text in texts:
        yield parse_reply(text).prose


def _no_json(reply: Reply, request: Request) -> Iterator[str]:
    yield _NO_JSON
    parsed = interpreted(reply, request.tools)
    if parsed is not None and parsed.violations:
        yield f"protocol violations: {joined(parsed.violations)}"
    if reply.is_cut:
        yield _CUT_OFF
