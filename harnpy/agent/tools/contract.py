"""The part of the system prompt that tells a model how to call its tools. Pure. Spec: 07 §4.4, §5.

Programs find out whether a tool is hidden by searching the system prompt for its name, so the fixed words
here neither are nor contain likely names of tools.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.agent.tools.ts_types import parameter_list

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Entry = dict[str, Any]

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
