"""Tool calls that a model writes in its reply: `name({ ... })` at the starts of lines, and their values.

Values are JavaScript literals and heredocs; calls in the JSON of OpenAI's interface are the last resort.
Takes time in proportion to the text, whatever is in it. Spec: 07 §6.6, "Bare-call scanner", "Argument
values".
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

if TYPE_CHECKING:
    from collections.abc import Set

    Call = dict[str, Any]

# Heredocs: `<<TAG`, lines of raw text, `TAG`. Spec: 07 §6.6.
#
# The closing tag is at the start of a line, after blanks; anything that can't be part of a name may follow.


_OPENING = re.compile(r"""<<(['"]?)([A-Za-z_]\w*)\1[ \t]*\r?\n""")
_FIRST_WORD = re.compile(r"^[ \t]*([A-Za-z_]\w*)", re.MULTILINE)


class Heredoc(NamedTuple):
    content: str
    end: int


class Heredocs:
    """The heredocs of one text. The words that could close one are indexed once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._words: dict[str, list[tuple[int, int]]] | None = None

    def at(self, position: int) -> Heredoc | None:
        """The heredoc that begins at ``position``."""
        bounds = self._bounds(position)
        if bounds is None:
            return None
        start, line, end = bounds
        content = self._text[start:line]
        return Heredoc(content.removesuffix("\n").removesuffix("\r"), end)

    def end(self, position: int) -> int | None:
        """Return where the heredoc that begins at ``position`` ends."""
        bounds = self._bounds(position)
        return None if bounds is None else bounds[2]

    def _bounds(self, position: int) -> tuple[int, int, int] | None:
        """Return where the content begins, where the line of its closing tag does, where that tag ends."""
        opening = _OPENING.match(self._text, position)
        if opening is None:
            return None
        start = opening.end()
        closers = self._index().get(opening[2], [])
        first = bisect_left(closers, (start, 0))
        return None if first == len(closers) else (start, *closers[first])

    def _index(self) -> dict[str, list[tuple[int, int]]]:
        """The first word of each line: where the line begins, and where the word ends."""
        if self._words is None:
            self._words = {}
            for word in _FIRST_WORD.finditer(self._text):
                self._words.setdefault(word[1], []).append((word.start(), word.end()))
        return self._words


#: The same limit as for nested JSON anywhere else.
_DEPTH_LIMIT = 128
#: No int of 64 bits has more characters, including the sign.
_INT_DIGITS = 20

# What may fail after its beginning is repeated in an atomic group: CPython before 3.11.5 (gh-106052).
_GAP = r"(?:\s++|//[^\n]*+)*+"
SPACE = re.compile(rf"{_GAP}(?>(?:/\*(?s:.*?)\*/{_GAP})*)")
STRINGS = {
    quote: re.compile(rf"{quote}([^{quote}\\]*+(?:\\.[^{quote}\\]*+)*+){quote}", re.DOTALL)
    for quote in "\"'`"
}
_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_NUMBER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(?![\w.])")
_ESCAPE = re.compile(
    r"\\(?:u\{(?P<code>[0-9a-fA-F]{1,6})\}|u(?P<four>[0-9a-fA-F]{4})|x(?P<two>[0-9a-fA-F]{2})"
    r"|(?P<simple>[ntr0bf/\\'\"`]))"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "f": "\f"}
_WORDS = {"true": True, "false": False, "null": None, "undefined": None}


class LiteralError(ValueError):
    """``str()`` is the problem, worded for the model."""


class NotAnObject(LiteralError):
    """The argument of a call is not an object literal."""


class LiteralReader:
    """Recursive descent over ``text``; ``at`` is the next character. Raises `LiteralError`."""

    def __init__(self, text: str, heredocs: Heredocs, at: int = 0) -> None:
        self.text = text
        self.heredocs = heredocs
        self.at = at
        self.depth = 0

    def arguments(self) -> dict[str, Any]:
        """Read what is between the parentheses of a call; ``at`` is behind the opening one."""
        found = self.peek()
        arguments: dict[str, Any] = {}
        if found != ")":
            if found != "{":
                raise NotAnObject("the argument is no object literal")
            arguments = self.value()
            if self.peek() != ")":
                self.fail("expected `)` after the object")
        self.at += 1
        return arguments

    def peek(self) -> str:
        """The next character behind white space and comments, "" at the end."""
        space = SPACE.match(self.text, self.at)
        assert space is not None
        self.at = space.end()
        return self.text[self.at : self.at + 1]

    def fail(self, expected: str) -> NoReturn:
        rest = self.text[self.at : self.at + 20]
        raise LiteralError(f"{expected}, got `{rest}`" if rest else f"{expected}, but the text ends")

    def value(self) -> Any:
        first = self.peek()
        if first == "{" or first == "[":
            if self.depth == _DEPTH_LIMIT:
                raise LiteralError(f"the value is nested more than {_DEPTH_LIMIT} levels deep")
            self.depth += 1
            self.at += 1
            value: Any = self.entries() if first == "{" else self.items()
            self.depth -= 1
            return value
        if first in STRINGS:
            return self.string(first)
        if first == "<":
            return self.heredoc()
        return self.number() if first and first in "+-.0123456789" else self.word()

    def entries(self) -> dict[str, Any]:
        entries: dict[str, Any] = {}
        while self.peek() != "}":
            key = self.key()
            if self.peek() != ":":
                self.fail(f"expected `:` after the key `{key}`")
            self.at += 1
            entries[key] = self.value()
            self.comma("}")
        self.at += 1
        return entries

    def items(self) -> list[Any]:
        items: list[Any] = []
        while self.peek() != "]":
            items.append(self.value())
            self.comma("]")
        self.at += 1
        return items

    def comma(self, close: str) -> None:
        """Skip the comma behind an item, which the last item may omit."""
        found = self.peek()
        if found == ",":
            self.at += 1
        elif found != close:
            self.fail(f"expected `,` or `{close}`")

    def key(self) -> str:
        if (quote := self.peek()) in ('"', "'"):
            return self.string(quote)
        word = _WORD.match(self.text, self.at)
        if word is None:
            self.fail("expected a key")
        self.at = word.end()
        return word[0]

    def string(self, quote: str) -> str:
        string = STRINGS[quote].match(self.text, self.at)
        if string is None:
            raise LiteralError(
                f"the string that begins with {self.text[self.at : self.at + 20]} is not closed"
            )
        self.at = string.end()
        return unescape(string[1])

    def heredoc(self) -> str:
        heredoc = self.heredocs.at(self.at)
        if heredoc is None:
            self.fail("expected a heredoc with its closing tag on a line of its own")
        self.at = heredoc.end
        return heredoc.content

    def number(self) -> int | float:
        number = _NUMBER.match(self.text, self.at)
        if number is None:
            self.fail("expected a number")
        self.at = number.end()
        return _number(number[0])

    def word(self) -> bool | None:
        word = _WORD.match(self.text, self.at)
        if word is None or word[0] not in _WORDS:
            self.fail("expected a value")
        self.at = word.end()
        return _WORDS[word[0]]


def unescape(text: str) -> str:
    """The text of a string literal; unknown escapes stay as they are."""
    if "\\" in text:
        text = _ESCAPE.sub(_character, text)
    if _SURROGATE.search(text):  # surrogate pairs make one character, a lone surrogate makes none
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _character(escape: re.Match[str]) -> str:
    simple = escape["simple"]
    if simple is not None:
        return _SIMPLE.get(simple, simple)
    code = int(escape["code"] or escape["four"] or escape["two"], 16)
    return chr(code) if code <= 0x10FFFF else escape[0]


def _number(text: str) -> int | float:
    """An int when 64 bits hold it, else a float."""
    try:
        if "x" in text.lower():
            value: int | float = int(text, 16)
        else:
            value = int(text) if len(text) <= _INT_DIGITS and text.lstrip("+-").isdigit() else float(text)
        if type(value) is float or not -(2**63) <= value < 2**63:
            value = float(value)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise LiteralError("a number is too large")
    return value


_MARK = re.compile(r"""["'`(){}\[\]]|//|/\*|<<""")

#: Characters of fruitless look-ahead that even a short text is allowed.
_PATIENCE = 100_000


class Brackets:
    """The brackets of one text.

    Well-formed text needs one look-ahead. Text that needs many fruitless ones is hostile or broken beyond
    repair: when ``patience`` is used up no bracket counts as closed, which keeps the whole linear.
    """

    def __init__(self, text: str, heredocs: Heredocs) -> None:
        self.text = text
        self.heredocs = heredocs
        self.patience = 4 * len(text) + _PATIENCE

    def closing(self, opening: int) -> int | None:
        """The position behind the bracket that closes the one at ``opening``."""
        text, stop = self.text, min(len(self.text), opening + self.patience)
        depth, at = 0, opening
        while mark := _MARK.search(text, at, stop):
            sign = mark[0]
            if sign in "([{":
                depth, after = depth + 1, mark.end()
            elif sign in ")]}":
                depth, after = depth - 1, mark.end()
                if depth == 0:
                    self.patience -= after - opening
                    return after
            else:
                after = self._behind(sign, mark.start(), stop)
            if after < 0:
                break
            at = after
        self.patience = max(0, self.patience - (stop - opening))
        return None

    def _behind(self, sign: str, at: int, stop: int) -> int:
        """The position behind what begins with ``sign``, -1 when it isn't closed."""
        if sign == "//":
            line_break = self.text.find("\n", at, stop)
            return stop if line_break < 0 else line_break
        if sign == "/*":
            close = self.text.find("*/", at + 2, stop)
            return -1 if close < 0 else close + 2
        if sign == "<<":
            return self.heredocs.end(at) or at + 2
        string = STRINGS[sign].match(self.text, at, stop)
        return -1 if string is None else string.end()


#: The beginning of a list of objects.
OBJECTS = re.compile(r"\[\s*\{")


class JsonCall(NamedTuple):
    """``arguments`` is an object, its JSON, or something else."""

    id: str | None
    name: str
    arguments: Any

    def read_arguments(self) -> dict[str, Any]:
        """The arguments of a call. Raises `LiteralError` unless they are an object."""
        arguments = self.arguments
        if isinstance(arguments, str):
            text = arguments.strip() or "{}"
            reader = LiteralReader(text, Heredocs(text))
            arguments = reader.value()
            if reader.peek():
                reader.fail("expected nothing more after the object")
        if not isinstance(arguments, dict):
            raise LiteralError("the arguments are no object")
        return arguments


def read_json_calls(text: str, at: int, heredocs: Heredocs) -> list[JsonCall]:
    """The calls in the list at ``at``; none when it is not a list of calls."""
    try:
        items = LiteralReader(text, heredocs, at).value()
    except LiteralError:
        return []
    calls = [_call(item) for item in items]
    return [call for call in calls if call is not None] if None not in calls else []


def _call(item: Any) -> JsonCall | None:
    function = item.get("function") if isinstance(item, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(function, dict) or not isinstance(name, str) or not name:
        return None
    id = item.get("id")
    return JsonCall(id if isinstance(id, str) and id else None, name, function.get("arguments", {}))


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
    """The contents of a part of a text, up to ``end``; ``rest`` is neither call nor code fence.

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

    def scan(self, at: int = 0, *, begins_line: bool = True, code_end: int = 0) -> Found:
        """Return what the text holds from ``at`` on; inline code from before it ends at ``code_end``."""
        found = Found(end=len(self.text), code_end=code_end)
        while at < found.end:
            call = self._call_at(at) if begins_line else None
            at = self._plain(at, found) if call is None else self._take(call, found)
            begins_line = self.text[at - 1] == "\n"
        return found

    def arguments(self, opening: int) -> tuple[dict[str, Any], int] | None:
        """Return the object in the parentheses at ``opening``, and the position behind; None without one."""
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
            found.code_end = self.code_end(call.start(), end)
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
        fence = None if at < found.code_end else _FENCE.match(self.text, at)
        if fence is not None:
            return fence.end()
        behind = max(at, found.code_end)
        end = self._line_end(behind)
        stop = self._tag(at, end)
        code_end = found.code_end
        for listed in _LIST.finditer(self.text, at, stop):
            if listed.start() < code_end:
                continue
            close, calls = self._json_calls(listed.start())
            code_end = self.code_end(behind, listed.start()) if calls else 0
            if calls and not code_end:
                found.rest += [self.text[at : listed.start()], self.text[listed.start() : close]]
                found.json.append((len(found.rest) - 1, calls))
                return close
        found.rest.append(self.text[at:stop])
        if stop < end:
            found.end, found.code_end = stop, max(found.code_end, self.code_end(behind, stop))
        return stop

    def _json_calls(self, at: int) -> tuple[int, list[JsonCall]]:
        close = self.brackets.closing(at) if OBJECTS.match(self.text, at) else None
        return (at, []) if close is None else (close, read_json_calls(self.text, at, self.heredocs))

    def _tag(self, at: int, stop: int) -> int:
        """Return where the next tag begins, ``stop`` when none comes before it; a body has none."""
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
        """Return where the inline code from behind ``at`` that reaches ``stop`` ends; 0 if none does."""
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
