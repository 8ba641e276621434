"""The tagged reply format: prose, answers, calls and the done marker; and what a user sees of a reply.

Whatever a model writes can be read, in time proportional to its length: text that doesn't fit is reported,
and a call in the wrong place is still carried out. Spec: 07 §1.4, §6.6.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harnpy.formats.json import compact_json
from harnpy.llm.native_tools import native_name
from harnpy.llm.written_calls import CALL, NAME, CallScanner, Heredocs, LiteralError, LiteralReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from harnpy.llm.reply import Reply

    Call = dict[str, Any]

_THOUGHTS = re.compile(r"<think>.*?</think>|<think>.*", re.DOTALL)
_PROTOCOL = re.compile(
    r"<(?P<tag>(?:\|tool_call\||tool_call|done)(?=>)|tool_result(?=[^<>]*>))|\[result of [^\[\]]*\]"
)
_PROTOCOL_ENDS = {
    tag: re.compile(re.escape(f"</{tag}>")) for tag in ("|tool_call|", "tool_call", "done", "tool_result")
} | {None: re.compile(r"\[end of [^\[\]]*\]")}
_RESPONSE = re.compile("<user_response>")
_RESPONSE_END = re.compile("</user_response>")
_PROSE = re.compile("<assistant_prose>")
_PROSE_END = re.compile("</assistant_prose>")
_TOOL_RESULT = "<tool_result"
_TAGS = (
    *("<think>", "<|tool_call|>", "<tool_call>", "<done>", _TOOL_RESULT),
    *(f"<{slash}{tag}>" for tag in ("assistant_prose", "user_response") for slash in ("", "/")),
)
_RESULT = "[result of "
_SENTINEL_LINES = re.compile(r"^[ \t]*(?:##DONE##|DONE|PLAN_READY)[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_SENTINELS = ("##DONE##", "DONE", "PLAN_READY")
_JSON_FENCE = re.compile(r"```json[^\S\n]*\n(.*?)```", re.DOTALL)
_INLINE_PLAN = re.compile(r'\{\s*"mode"\s*:\s*"(?:fast_execute|plan_then_execute|ask_user)"')

_PLAN_MODES = ("fast_execute", "plan_then_execute", "ask_user")
_PLAN_KEYS = frozenset(
    "plan steps tool_calls tool_name verification execution_mode required_outputs files_to_edit next_action"
    " reasoning direction targets tasks unknowns".split()
)


def without_thoughts(text: str) -> str:
    """Without ``<think>`` blocks, an unclosed one included."""
    return _THOUGHTS.sub("", text) if "<think>" in text else text


def visible_text(text: str) -> str:
    """``text`` as a user should see it."""
    text = without_thoughts(text)
    if "<" in text or "[" in text:
        text = _replaced(text, _blocks(text, _PROTOCOL, lambda opening: _PROTOCOL_ENDS[opening["tag"]]))
    text = _SENTINEL_LINES.sub("", text)
    if "<" in text:
        bodies = [body.strip() for _, body, _ in _blocks(text, _RESPONSE, lambda _: _RESPONSE_END)]
        if any(bodies):
            text = "\n\n".join(filter(None, bodies))
        else:
            text = _replaced(text, _blocks(text, _PROSE, lambda _: _PROSE_END), str.strip)
    text = _without_plans(text)
    return text.replace("\r\n", "\n").replace("\n\n\n", "\n\n").strip()


def visible_so_far(text: str) -> str:
    """Return what can be shown already of a reply that begins with ``text``: no markup that isn't complete.

    What comes later may take some of it back.
    """
    text = without_thoughts(text)
    text = text[: _markup_may_begin(text)]
    line = text.rfind("\n") + 1
    if text[line:].strip() and any(word.startswith(text[line:].strip()) for word in _SENTINELS):
        text = text[:line]
    at = 0
    while begin := _PROTOCOL.search(text, at):
        end = _PROTOCOL_ENDS[begin["tag"]].search(text, begin.end())
        if end is None:
            text = text[: begin.start()]
            break
        at = end.end()
    for tag in ("assistant_prose", "user_response"):
        begun = text.rfind(f"<{tag}>")
        if begun > text.rfind(f"</{tag}>"):
            has_body = bool(text[begun + len(tag) + 2 :].strip())
            text = f"{text}</{tag}>" if has_body else text[:begun]
    return visible_text(text)


def _markup_may_begin(text: str) -> int:
    """Return where the end of ``text`` may turn out to be markup; its length if that is nowhere."""
    at = text.rfind("<")
    rest = text[at:]
    if (
        at >= 0
        and ">" not in rest
        and (rest.startswith(_TOOL_RESULT) or any(tag.startswith(rest) for tag in _TAGS))
    ):
        return at
    at = text.rfind("[")
    rest = text[at:]
    if at >= 0 and "]" not in rest and (rest.startswith(_RESULT) or _RESULT.startswith(rest)):
        return at
    return len(text)


def _blocks(
    text: str, opening: re.Pattern[str], closing: Callable[[re.Match[str]], re.Pattern[str]]
) -> Iterator[tuple[int, str, int]]:
    """Yield where each block begins, its body, and where it ends. Search for a missing closing tag once."""
    missing = set()
    at = 0
    while begin := opening.search(text, at):
        at = begin.end()
        wanted = closing(begin)
        end = None if wanted in missing else wanted.search(text, at)
        if end is None:
            missing.add(wanted)
        else:
            yield begin.start(), text[at : end.start()], end.end()
            at = end.end()


def _replaced(
    text: str, blocks: Iterator[tuple[int, str, int]], replace: Callable[[str], str] = lambda body: ""
) -> str:
    """``text`` with each block replaced by a part of its body, or by nothing."""
    pieces, at = [], 0
    for start, body, end in blocks:
        pieces += [text[at:start], replace(body)]
        at = end
    return "".join([*pieces, text[at:]])


def _without_plans(text: str) -> str:
    if "{" not in text:
        return text
    text = _JSON_FENCE.sub(lambda match: "" if _is_plan(match[1]) else match[0], text)
    reader = LiteralReader(text, Heredocs(text))
    pieces, at = [], 0
    while found := _INLINE_PLAN.search(text, at):
        reader.at = found.start()
        try:
            reader.value()
        except LiteralError:
            break
        pieces.append(text[at : found.start()])
        at = reader.at
    return "".join([*pieces, text[at:]])


def _is_plan(body: str) -> bool:
    reader = LiteralReader(body, Heredocs(body))
    try:
        value = reader.value()
    except LiteralError:
        return False
    whole = isinstance(value, dict) and not reader.peek()
    return whole and (value.get("mode") in _PLAN_MODES or _has_plan_key(value))


def _has_plan_key(value: Any) -> bool:
    if isinstance(value, dict):
        return not _PLAN_KEYS.isdisjoint(value) or any(map(_has_plan_key, value.values()))
    return isinstance(value, list) and any(map(_has_plan_key, value))


TAGS = ("<assistant_prose>", "<user_response>", "<done>", "<tool_call>")

#: Tools that the runtime serves itself.
RUNTIME_TOOLS = frozenset({"ledger", "load_skill"})

_BLOCK = re.compile("<(tool_call|assistant_prose|user_response|done)>")
_OTHER_TAG = re.compile(r"<[^>\n]*(>?)")
_ANGLE = re.compile(rf"<({NAME})[ \t]*\(")
_ANGLE_END = re.compile(r"\s*>")
_FIRST_CALL = re.compile(rf"\s*+(?:`{{3,}}[\w+.-]*\s*+)?{CALL.pattern}")
_BODY_END = re.compile(r"\s*+(?:`{3,}\s*+)?(?=</tool_call>)")
_PREVIEW = 120
_TAG_PREVIEW = 40

_UNKNOWN_TAG = (
    "Unknown top-level tag {}. Use <tool_call>, <assistant_prose>, <user_response>, or <done> — no other "
    "tags are accepted at the top level."
)
_UNCLOSED_TAG = (
    "Unclosed tag starting at {}. Close it or remove it; only <tool_call>, <assistant_prose>, "
    "<user_response>, and <done> are accepted."
)
_STRAY_TEXT = (
    "Stray text outside response tags: {}. Wrap all prose in <assistant_prose>...</assistant_prose> or "
    "<user_response>...</user_response>, and every tool call in <tool_call>...</tool_call>."
)
_EMPTY_DONE = (
    "<done> block is empty. Emit the configured done sentinel (default `##DONE##`) inside the block."
)
_NO_BLOCK = (
    "Response contained no <tool_call>, <assistant_prose>, <user_response>, or <done> block. Every response "
    "must be composed of these tags only."
)
_BARE = (
    "Tool call(s) ({}) were emitted as bare text outside `<tool_call>` tags. Executed this turn so work "
    "moves forward; please wrap each call in `<tool_call>...</tool_call>` on subsequent turns."
)
_ANGLED = (
    "Tool call `{0}` was emitted as `<{0}(...)>` instead of `<tool_call>{0}({{ ... }})</tool_call>`. "
    "Executed this turn so work moves forward; wrap each call in `<tool_call>` tags on subsequent turns."
)
_NO_CALL = "<tool_call> body did not contain a bare `name({{ ... }})` expression. Got: {}"
_MANY_CALLS = "<tool_call> body contained {} calls; emit one call per <tool_call> block."


@dataclass(slots=True)
class Parsed:
    """The parts of a reply. ``canonical`` is its accepted blocks, written again."""

    calls: list[Call] = field(default_factory=list)
    prose_blocks: list[str] = field(default_factory=list)
    responses: list[str] = field(default_factory=list)
    done_marker: str | None = None
    rendered: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)

    @property
    def prose(self) -> str:
        """The answers, or else the prose."""
        return "\n\n".join(self.responses or self.prose_blocks)

    @property
    def canonical(self) -> str:
        return "\n\n".join(self.rendered)


def is_tagged(text: str) -> bool:
    """Return True if a text shows a sign of the tagged format."""
    return "<" in text and any(tag in text for tag in TAGS)


def interpreted(reply: Reply, tools: list[dict[str, Any]] | None) -> Parsed | None:
    """Parse a reply that shows a sign of the tagged format; None for any other."""
    if tools or reply.tool_calls or is_tagged(reply.text):
        return parse_reply(reply.text, filter(None, map(native_name, tools or ())))
    return None


#: Whatever is more than prose begins with one of these, or stands in code, which does.
_MARKS = re.compile(r"[<(\[{`]")


def parse_reply(text: str, tools: Iterable[str] = ()) -> Parsed:
    """Parse a reply; ``tools`` are the names that may be called. Never raises."""
    text = without_thoughts(text)
    if _MARKS.search(text) is None:
        said = text.strip()
        return Parsed(violations=[_stray_text(said)] if said else [])
    known = frozenset(tools)
    parser = _ReplyParser(text, known)
    parsed = parser.parse()
    if parser.saw_json and not (parsed.calls or parsed.errors):
        return _ReplyParser(text, known, adopt_json=True).parse()
    return parsed


def render_call(name: str, arguments: dict[str, Any]) -> str:
    """A call in the tagged format."""
    pretty = json.dumps(arguments, indent=2, sort_keys=True, ensure_ascii=False)
    return f"<tool_call>\n{name}({pretty})\n</tool_call>"


class _ReplyParser:
    """``adopt_json``: calls that are written as JSON, outside any block, are carried out."""

    def __init__(self, text: str, tools: frozenset[str], adopt_json: bool = False) -> None:
        self.text = text
        self.tools = tools
        self.known = tools | RUNTIME_TOOLS
        self.stray = CallScanner(text, self.known, tools, body=False)
        self.parsed = Parsed()
        self.adopt_json = adopt_json
        self.saw_json = False
        self.code_end = 0
        self.never_closed: set[str] = set()

    def parse(self) -> Parsed:
        parsed, at, begins_line = self.parsed, 0, True
        while at < len(self.text):
            if self.text[at] != "<":
                at = self._stray(at, begins_line)
                continue
            end = self._block(at)
            if begins_line := end is not None:
                self.code_end = 0
            at = end or self._angled_call(at) or self._other_tag(at)
        if self.text.strip() and not (parsed.rendered or parsed.errors or parsed.violations):
            parsed.violations.append(_NO_BLOCK)
        return parsed

    # Each of these reads what begins at ``at`` and returns the position behind it, None for anything else.

    def _block(self, at: int) -> int | None:
        opening = _BLOCK.match(self.text, at)
        if opening is None:
            return None
        tag, start = opening[1], opening.end()
        end = self._body_end(start) if tag == "tool_call" else None
        if end is None:
            end = self._closing_tag(tag, start)
        if end is None:
            return None
        body = self.text[start:end]
        if tag == "tool_call":
            self._add_call_block(body)
        else:
            self._add_text_block(tag, body.strip())
        return end + len(f"</{tag}>")

    def _angled_call(self, at: int) -> int | None:
        angle = _ANGLE.match(self.text, at)
        if angle is None or angle[1] not in self.known or at < self.code_end:
            return None
        read = self.stray.arguments(angle.end() - 1)
        end = None if read is None else _ANGLE_END.match(self.text, read[1])
        if read is None or end is None:
            return None
        name = angle[1]
        self._add_calls([{"id": f"tc_angle_{name}", "name": name, "arguments": read[0]}])
        self.parsed.violations.append(_ANGLED.format(name))
        return end.end()

    def _other_tag(self, at: int) -> int:
        tag = _OTHER_TAG.match(self.text, at)
        assert tag is not None
        sentence = _UNKNOWN_TAG if tag[1] else _UNCLOSED_TAG
        self.parsed.violations.append(sentence.format(_quoted(tag[0], _TAG_PREVIEW)))
        self.code_end = max(self.code_end, self.stray.code_end(max(at, self.code_end), tag.end()))
        return tag.end()

    def _stray(self, at: int, begins_line: bool) -> int:
        found = self.stray.scan(at, begins_line=begins_line, code_end=self.code_end)
        self.saw_json = self.saw_json or bool(found.json)
        self.code_end = found.code_end
        if self.adopt_json:
            found.adopt_json(self.stray)
        if found.calls:
            self._add_calls(found.calls)
            names = ", ".join(call["name"] for call in found.calls)
            self.parsed.violations.append(_BARE.format(names))
        self.parsed.errors += found.errors
        rest = "".join(found.rest).strip()
        if rest:
            self.parsed.violations.append(_stray_text(rest))
        return found.end

    # Blocks.

    def _body_end(self, start: int) -> int | None:
        """Return where a body that is one call ends: a closing tag inside its strings does not count."""
        call = _FIRST_CALL.match(self.text, start)
        close = None if call is None else self.stray.brackets.closing(call.end() - 1)
        end = None if close is None else _BODY_END.match(self.text, close)
        return None if end is None else end.end()

    def _closing_tag(self, tag: str, start: int) -> int | None:
        if tag in self.never_closed:
            return None
        end = self.text.find(f"</{tag}>", start)
        if end < 0:
            self.never_closed.add(tag)
            return None
        return end

    def _add_text_block(self, tag: str, body: str) -> None:
        parsed = self.parsed
        if tag == "done":
            if not body:
                parsed.violations.append(_EMPTY_DONE)
                return
            parsed.done_marker = body
            parsed.rendered.append(f"<done>{body}</done>")
        elif body:
            (parsed.responses if tag == "user_response" else parsed.prose_blocks).append(body)
            parsed.rendered.append(f"<{tag}>\n{body}\n</{tag}>")

    def _add_call_block(self, body: str) -> None:
        scanner = CallScanner(body, self.known, self.tools, body=True)
        found = scanner.scan()
        if not (found.calls or found.errors):
            found.adopt_json(scanner)
        errors = self.parsed.errors
        errors += found.errors
        if len(found.calls) == 1:
            self._add_calls(found.calls)
        elif found.calls:
            errors.append(_MANY_CALLS.format(len(found.calls)))
        elif not found.errors:
            errors.append(_NO_CALL.format(_quoted(body.strip(), _PREVIEW)))

    def _add_calls(self, calls: list[Call]) -> None:
        self.parsed.calls += calls
        self.parsed.rendered += [render_call(call["name"], call["arguments"]) for call in calls]


def _stray_text(rest: str) -> str:
    return _STRAY_TEXT.format(_quoted(rest, _PREVIEW, "…"))


def _quoted(text: str, limit: int, ellipsis: str = "") -> str:
    """A string literal of the first ``limit`` characters."""
    return compact_json(text[:limit] + (ellipsis if len(text) > limit else ""))
