"""Calls in the form `name({ ... })`, found at the starts of lines. Spec: 07 §6.6, "Bare-call scanner"."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harnpy.llm.text_format.brackets import Brackets
from harnpy.llm.text_format.heredocs import Heredocs
from harnpy.llm.text_format.json_calls import OBJECTS, JsonCall, read_json_calls
from harnpy.llm.text_format.written_literals import LiteralError, LiteralReader, NotAnObject

if TYPE_CHECKING:
    from collections.abc import Set

    Call = dict[str, Any]

NAME = r"[A-Za-z_][\w.-]*"
_PREFIXES = "tool_code|tool_call|tool_output|call|tool|use|python|javascript|typescript|shell|bash"
CALL = re.compile(
    rf"[ \t]*(?:(?:{_PREFIXES}):[ \t]*)*(?:(?P<label>\w+):[ \t]*)?(?P<name>{NAME})(?P<gap>[ \t]*)\("
)
_FENCE = re.compile(r"[ \t]*(?:`{3,}|~{3,})[\w+.-]*[ \t]*(?:\r?\n|\Z)")
_LIST = re.compile(r"\[")
# An atomic group, not a possessive quantifier: CPython before 3.11.5 (gh-106052).
_INLINE_CODE = re.compile(r"(`{1,2})(?!`)(?>(?:[^`\n]++|\n(?![ \t]*\n)|(?!\1(?!`))`++)*)\1(?!`)")
_TICKS = re.compile("`+")
_LISTED_TOOLS = 20

_NOT_AN_OBJECT = "Tool '{0}' must be called with an object literal argument like {0}({{ ... }})."
_PARSE_ERROR = (
    "TOOL CALL PARSE ERROR: `{0}(...)` — {1}. Write the arguments as one object literal, "
    "{0}({{ key: value }}), with quoted strings, and close every bracket and quote."
)
_PREFIXED = (
    "Saw `{0}: {1}(...)`. Do not prefix a tool call with a label; "
    "write {1}({{ ... }}) at the start of a line."
)


@dataclass(slots=True)
class Found:
    """What a stretch of text holds, up to ``end``; ``rest`` is neither call nor code fence.

    When it ends inside inline code, ``code_end`` is where that does.
    """

    calls: list[Call] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    rest: list[str] = field(default_factory=list)
    json: list[tuple[int, list[JsonCall]]] = field(default_factory=list)
    end: int = 0
    code_end: int = 0

    def add(self, name: str, arguments: dict[str, Any], id: str | None = None) -> None:
        self.calls.append({"id": id or f"tc_{len(self.calls)}", "name": name, "arguments": arguments})

    def adopt_json(self, scanner: CallScanner) -> None:
        """Take in the calls that are written as JSON; until then they are part of ``rest``."""
        for index, calls in self.json:
            if scanner.body or any(call.name in scanner.known for call in calls):
                self.rest[index] = ""
                for call in calls:
                    self._add_json(call, scanner)

    def _add_json(self, call: JsonCall, scanner: CallScanner) -> None:
        if call.name not in scanner.known:
            self.errors.append(scanner.unknown(call.name))
            return
        try:
            self.add(call.name, call.read_arguments(), call.id)
        except LiteralError as error:
            self.errors.append(_PARSE_ERROR.format(call.name, error))


class CallScanner:
    """Finds the calls in one text. ``known`` are the tools that may be called, ``listed`` those to offer.

    In a body every `name(` that begins a line is meant as a call; in stray text, which ends at a tag, only
    that of a known tool is.
    """

    def __init__(self, text: str, known: Set[str], listed: Set[str], *, body: bool) -> None:
        self.text = text
        self.known = known
        self.listed = listed
        self.body = body
        self.heredocs = Heredocs(text)
        self.brackets = Brackets(text, self.heredocs)

    def scan(self, at: int = 0, *, begins_line: bool = True) -> Found:
        """What the text holds from ``at`` on."""
        found = Found(end=len(self.text))
        while at < found.end:
            call = self._call_at(at) if begins_line else None
            at = self._plain(at, found) if call is None else self._take(call, found)
            begins_line = self.text[at - 1] == "\n"
        return found

    def arguments(self, opening: int) -> tuple[dict[str, Any], int] | None:
        """What the parentheses at ``opening`` hold, and the position behind; None unless it is an object."""
        if self.brackets.closing(opening) is None:
            return None
        reader = LiteralReader(self.text, self.heredocs, opening + 1)
        try:
            return reader.arguments(), reader.at
        except LiteralError:
            return None

    def unknown(self, name: str) -> str:
        listed = ", ".join(sorted(self.listed)[:_LISTED_TOOLS])
        return f"Unknown tool '{name}'. Available tools: [{listed}]"

    # Calls.

    def _call_at(self, at: int) -> re.Match[str] | None:
        call = CALL.match(self.text, at)
        if call is None or (call["gap"] and not self.text.startswith("{", call.end())):
            return None
        if call["name"] in self.known or (self.body and not call["label"]):
            return call
        return None

    def _take(self, call: re.Match[str], found: Found) -> int:
        """Read the call and return the position behind it. Calls are not looked for inside it."""
        name, opening = call["name"], call.end() - 1
        end = self.brackets.closing(opening)
        if name not in self.known:
            found.errors.append(self.unknown(name))
        elif call["label"]:
            found.errors.append(_PREFIXED.format(call["label"], name))
        else:
            self._read(name, opening, end, found)
        if end is None:
            end = found.end = self._tag(opening, len(self.text))
        return end

    def _read(self, name: str, opening: int, end: int | None, found: Found) -> None:
        reader = LiteralReader(self.text, self.heredocs, opening + 1)
        if end is None:  # it must not be read beyond the end of the stretch
            text = self.text[opening + 1 : self._tag(opening, len(self.text))]
            reader = LiteralReader(text, Heredocs(text))
        try:
            found.add(name, reader.arguments())
        except NotAnObject:
            found.errors.append(_NOT_AN_OBJECT.format(name))
        except LiteralError as error:
            found.errors.append(_PARSE_ERROR.format(name, error))

    # Everything else.

    def _plain(self, at: int, found: Found) -> int:
        """Skip text that is not a call, at most to the end of the line; return the position behind it."""
        fence = _FENCE.match(self.text, at)
        if fence is not None:
            return fence.end()
        end = self._line_end(at)
        stop = self._tag(at, end)
        code_end = 0
        for listed in _LIST.finditer(self.text, at, stop):
            if listed.start() < code_end:
                continue
            close, calls = self._json_calls(listed.start())
            code_end = self.code_end(at, listed.start()) if calls else 0
            if calls and not code_end:
                found.rest += [self.text[at : listed.start()], self.text[listed.start() : close]]
                found.json.append((len(found.rest) - 1, calls))
                return close
        found.rest.append(self.text[at:stop])
        if stop < end:
            found.end, found.code_end = stop, self.code_end(at, stop)
        return stop

    def _json_calls(self, at: int) -> tuple[int, list[JsonCall]]:
        close = self.brackets.closing(at) if OBJECTS.match(self.text, at) else None
        return (at, []) if close is None else (close, read_json_calls(self.text, at, self.heredocs))

    def _tag(self, at: int, stop: int) -> int:
        """Where the next tag begins, ``stop`` when none comes before it; a body has none."""
        tag = -1 if self.body else self.text.find("<", at, stop)
        return stop if tag < 0 else tag

    def _line_end(self, at: int) -> int:
        """The position behind the line break that ends the line; inline code joins lines."""
        text = self.text
        end = self._behind_break(at)
        tick = text.find("`", at, end)
        while tick >= 0:
            code = _INLINE_CODE.match(text, tick) or _TICKS.match(text, tick)
            assert code is not None
            if code.end() > end:
                end = self._behind_break(code.end())
            tick = text.find("`", code.end(), end)
        return end

    def code_end(self, at: int, stop: int) -> int:
        """Where the inline code ends that begins behind ``at`` and goes on at ``stop``; 0 when none does."""
        tick = self.text.find("`", at, stop)
        while tick >= 0:
            code = _INLINE_CODE.match(self.text, tick)
            if code is not None and code.end() > stop:
                return code.end()
            passed = code or _TICKS.match(self.text, tick)
            assert passed is not None
            tick = self.text.find("`", passed.end(), stop)
        return 0

    def _behind_break(self, at: int) -> int:
        return self.text.find("\n", at) + 1 or len(self.text)
