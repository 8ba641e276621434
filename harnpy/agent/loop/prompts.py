"""The texts that a loop sends to its model: how to call tools, and what to do next. Pure.

Programs find out whether a tool is hidden by searching the system prompt for its name, so the fixed words of
the tool contract neither are nor contain likely names of tools. Spec: 07 §4.4, §5, §6.2–6.5.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harnpy.agent.loop.ledger import Deliverable
    from harnpy.agent.loop.loop_settings import LoopOptions

    Entry = dict[str, Any]

# Parameters as TypeScript types, from type names and JSON schemas. Pure. Spec: 07 §4.4.


_UNKNOWN = "unknown"
_NAMES = {
    "string": "string",
    "int": "number",
    "integer": "number",
    "float": "number",
    "number": "number",
    "bool": "boolean",
    "boolean": "boolean",
    "list": "unknown[]",
    "array": "unknown[]",
    "dict": "object",
    "object": "object",
    "nil": "null",
    "null": "null",
}
_BRACES = re.compile(r"\{.*\}")
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*")

#: Deeper types are cut off.
_DEPTH_LIMIT = 16


def parameter_list(parameters: Any) -> str:
    """Return the type of a call's argument: each parameter, whether it is required, and its purpose."""
    if not isinstance(parameters, dict) or not parameters:
        return "{}"
    fields = (_parameter(name, parameters[name]) for name in sorted(parameters))
    return f"{{ {'; '.join(fields)} }}"


def ts_type(schema: Any, depth: int = 0) -> str:
    """Return the type that a type name or a JSON schema describes; `unknown` if neither does."""
    if isinstance(schema, str):
        return _NAMES.get(schema, _UNKNOWN)
    if not isinstance(schema, dict) or depth > _DEPTH_LIMIT:
        return _UNKNOWN
    found = _of_schema(schema, depth)
    return _union([found, "null"]) if schema.get("nullable") is True else found


def _parameter(name: str, schema: Any) -> str:
    optional = isinstance(schema, dict) and (schema.get("required") is False or "default" in schema)
    description = schema.get("description") if isinstance(schema, dict) else None
    note = "optional" if optional else "required"
    if isinstance(description, str) and description.strip():
        note += f" — {' '.join(description.split())}".replace("*/", "* /")
    mark = "?" if optional else ""
    return f"{_key(name)}{mark}: {ts_type(schema)} /* {note} */"


def _of_schema(schema: dict[str, Any], depth: int) -> str:
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return _union(map(_literal, choices))
    if "const" in schema:
        return _literal(schema["const"])
    for key in ("anyOf", "oneOf"):
        options = schema.get(key)
        if isinstance(options, list) and options:
            return _union(ts_type(option, depth + 1) for option in options)
    kind = schema.get("type")
    if isinstance(kind, list) and kind:
        return _union(_of_type(name, schema, depth) for name in kind)
    return _of_type(kind, schema, depth)


def _of_type(kind: Any, schema: dict[str, Any], depth: int) -> str:
    if kind in ("array", "list") and "items" in schema:
        item = ts_type(schema["items"], depth + 1)
        return f"({item})[]" if " | " in _BRACES.sub("", item) else f"{item}[]"
    if kind in ("object", "dict") or (kind is None and "properties" in schema):
        return _object(schema, depth)
    return _NAMES.get(kind, _UNKNOWN) if isinstance(kind, str) else _UNKNOWN


def _object(schema: dict[str, Any], depth: int) -> str:
    properties = schema.get("properties")
    if isinstance(properties, dict) and properties:
        required = schema.get("required")
        names = required if isinstance(required, list) else []
        fields = (
            f"{_key(name)}{'' if name in names else '?'}: {ts_type(properties[name], depth + 1)}"
            for name in sorted(properties)
        )
        return f"{{ {'; '.join(fields)} }}"
    values = schema.get("additionalProperties")
    return f"Record<string, {ts_type(values, depth + 1)}>" if isinstance(values, (dict, str)) else "object"


def _union(types: Any) -> str:
    """Join the types, each once; `unknown` absorbs the rest."""
    different = dict.fromkeys(types)
    return _UNKNOWN if _UNKNOWN in different else " | ".join(different)


def _key(name: str) -> str:
    return name if _IDENTIFIER.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _literal(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    except (TypeError, ValueError):
        return _UNKNOWN


DEFAULT_SENTINEL = "##DONE##"

_FIRST_SENTENCE = re.compile(r"\s*(.*?[.!?](?=\s|$)|[^\n]*)")
_SUMMARY = re.compile(r"\s*([^\n.]*)")

_PROTOCOL = """\
Active mode: `text`

Every response is a sequence of these blocks, with nothing but blank space between them:

- `<tool_call>NAME({{ key: value }})</tool_call>` is one call of an available function. Its argument is \
one object literal; keys may be bare or quoted, and long text may be a heredoc (`<<TAG`, the lines, `TAG`). \
A response may hold several such blocks. What the functions return arrives in the next message: never make \
it up.
- `<assistant_prose>…</assistant_prose>` is short narration.
- `<user_response>…</user_response>` is the final answer, for the user's eyes.
- {done} says that the whole request is complete. It comes last, and only after the functions have \
returned what the answer rests on."""

_NATIVE = """\
## Tool Calling Contract

Active mode: `native`

Call functions through the provider's native channel only, never as text in a response. When the whole \
request is complete, include `{sentinel}` once in the response."""

_LEDGER = """\
## Task ledger

The deliverables of this request stand in a ledger that each turn shows. Keep it true with

declare function ledger(args: { action: "add" | "mark" | "rationale" | "note" | "seed_plan"; id?: string; \
text?: string; status?: "open" | "done" | "blocked" | "dropped"; note?: string }): string;

`blocked` and `dropped` need a `note`. `<done>` is refused while a deliverable is `open` or `blocked`."""

_SHARED_TYPES = """\
## Shared types

None. Parameter types are written where they are used, and each function returns text."""


class Stubs(NamedTuple):
    """Tools that ``searcher`` can bring into view."""

    searcher: str
    entries: Sequence[Entry]


def text_contract(
    entries: Iterable[Entry],
    sentinel: str = DEFAULT_SENTINEL,
    examples: str | None = None,
    *,
    ledger: bool = False,
    stubs: Stubs | None = None,
) -> str:
    """Return the section for calls that come as text; ``entries`` are the tools in view."""
    ordered = sorted(entries, key=lambda entry: entry["name"])
    full = [entry for entry in ordered if entry.get("compact") is not True]
    compact = [entry for entry in ordered if entry.get("compact") is True]
    sections = [
        "## Tool Calling Contract",
        _PROTOCOL.format(done=_done(sentinel)),
        f"## Tool call examples\n\n{examples.strip()}" if examples and examples.strip() else "",
        _LEDGER if ledger else "",
        _SHARED_TYPES,
        "## Available tools",
        *map(declaration, full),
        _compact_section(compact),
        _stub_section(stubs),
    ]
    return "\n\n".join(filter(None, sections))


def native_contract(sentinel: str = DEFAULT_SENTINEL, *, stubs: Stubs | None = None) -> str:
    """Return the section for native calls: it names only the tools that a search can find."""
    return "\n\n".join(filter(None, [_NATIVE.format(sentinel=sentinel), _stub_section(stubs)]))


def declaration(entry: Entry) -> str:
    """Return a tool as a TypeScript declaration, followed by its description."""
    declared = f"declare function {entry['name']}(args: {parameter_list(entry.get('parameters'))}): string;"
    description = _description(entry).replace("*/", "* /")
    if not description:
        return declared
    if "\n" not in description:
        return f"{declared}\n/** {description} */"
    lines = "\n".join(f" * {line}".rstrip() for line in description.split("\n"))
    return f"{declared}\n/**\n{lines}\n */"


def _done(sentinel: str) -> str:
    block = f"`<done>{DEFAULT_SENTINEL}</done>`"
    if sentinel == DEFAULT_SENTINEL:
        return block
    return f"`<done>{sentinel}</done>` (instead of the usual {block})"


def _compact_section(entries: list[Entry]) -> str:
    lines = [_item(f"{entry['name']}({{ … }})", _FIRST_SENTENCE, entry) for entry in entries]
    return "\n".join(["## Other tools (callable in the same way)\n", *lines]) if lines else ""


def _stub_section(stubs: Stubs | None) -> str:
    if stubs is None or not stubs.entries:
        return ""
    ordered = sorted(stubs.entries, key=lambda entry: entry["name"])
    lines = [_item(entry["name"], _SUMMARY, entry) for entry in ordered]
    return "\n".join([f"## Tools available via `{stubs.searcher}` (deferred)\n", *lines])


def _item(code: str, wanted: re.Pattern[str], entry: Entry) -> str:
    """Return a line with the beginning of the tool's description."""
    found = wanted.match(_description(entry))
    text = "" if found is None else found[1].strip()
    return f"- `{code}` — {text}" if text else f"- `{code}`"


def _description(entry: Entry) -> str:
    description = entry.get("description")
    return description.strip() if isinstance(description, str) else ""


#: How messages of the runtime begin.

ACTION_REQUIRED = (
    "You returned assistant text/JSON before using any tool. This stage requires at least one tool action "
    "before an answer counts. That response was not accepted. Call a tool now."
)


CUT_OFF = "Your reply was cut off by its limit of tokens. Go on exactly where it ended; repeat nothing of it."
#: The result of a call in a reply with which the loop ends, because it was cut off.
NOT_RUN = "Not run: the reply that asked for it was cut off by its limit of tokens."
REFUSED = "Not run: the reply that asked for it was refused."


def persistence(options: LoopOptions, has_tools: bool) -> str:
    """Return the instruction to continue until the request is complete, and how to report that."""
    keep_on = (
        "You MUST keep working until the current request is complete. Do not stop after describing what "
        "you would do: do it."
    )
    if not options.allow_sentinel:
        return keep_on
    if has_tools and options.tool_format == "text":
        return (
            f"{keep_on} When the request is complete, emit <done>{options.sentinel}</done> as its own block."
        )
    return f"{keep_on} When the request is complete, include {options.sentinel} exactly once in your reply."


def not_verified(exit_code: str) -> str:
    return (
        f"You emitted a completion signal but verification has not passed (last run exit code: {exit_code}). "
        "Run the verification and make it pass before you finish."
    )


def without_action(options: LoopOptions) -> str:
    what = f"`{options.sentinel}`" if options.tool_format == "native" else "a <done> block"
    return (
        f"You emitted {what} without taking any tool action. Use a tool to do the work first, and finish "
        "when it is done."
    )


def ledger_open(items: list[Deliverable]) -> str:
    lines = [f"- [{item.status}] {item.id}: {item.text}" for item in items]
    return "\n".join(
        [
            f"`<done>` rejected: {len(items)} deliverable(s) are not yet resolved.",
            *lines,
            "Finish each of them, or mark it as dropped with a note, before you finish.",
        ]
    )


def unparsable(errors: list[str]) -> str:
    return f"Your tool call could not be parsed: {'; '.join(errors)}"


def violated(violations: list[str], sentinel: str) -> str:
    return "\n".join(
        [
            "Your response violated the tagged response protocol. Each issue:",
            *(f"- {violation}" for violation in violations),
            "Use only these tags at the top level: <tool_call>, <assistant_prose>, <user_response>, and "
            f"<done>{sentinel}</done> when the request is complete.",
        ]
    )


def native_mode_reminder(policy: str, fallback_index: int) -> str:
    return (
        "This stage is running in native tool mode. Tool calls written as text are not executed: use the "
        f"native tool channel. Policy: `{policy}`. Observed fallback turn: {fallback_index}."
    )


def nudge(options: LoopOptions, has_tools: bool) -> str:
    """Return the feedback for a reply without action."""
    if options.require_action:
        limit = options.max_prose_chars
        prose = "prose brief" if limit is None else f"prose to at most {limit} visible characters"
        action = "use a tool call" if has_tools else "make progress in your reply"
        return f"Keep {prose}, then {action} or finish."
    if options.nudge:
        return options.nudge
    if has_tools:
        return "Continue — use a tool call to make progress."
    return "Continue — make progress in your reply."


def shown(text: str, limit: int) -> str:
    """Return visible prose, cut to ``limit`` characters."""
    if len(text) <= limit:
        return text
    note = "<assistant prose truncated by turn policy; keep prose brief and act>"
    return f"{text[:limit]}\n\n{note}"


def excerpt(text: str, limit: int = 240) -> str:
    return text if len(text) <= limit else text[:limit] + "…"
