"""Calls as models spell them, and a plain reader of such spellings to compare the parser with.

`Speller` writes a value in one of the many ways that 07 §6.6 allows. `written_calls` is the other direction,
done naively: every call that is written anywhere in a text, whatever stands around it.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    Dict = dict[str, Any]

_BARE_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_FILLERS = ("", "", "", " ", "\n", "\t", ' // it\'s a "comment" {\n', "/* don't ( ` </b> */", "\r\n  ")
PREFIXES = "tool_code tool_call tool_output call tool use python javascript typescript shell bash".split()


class Speller:
    """Chooses by ``random``. Two spellings of a value differ in anything but what they mean."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def call(self, name: str, arguments: Dict) -> str:
        gap = self.filler()
        if not arguments and self.random.random() < 0.5:
            return f"{name}({gap})"
        return f"{name}({gap}{self.value(arguments)}{self.filler()})"

    def openai(self, name: str, arguments: Dict, id: str | None) -> str:
        given: Any = arguments
        if self.random.random() < 0.5:
            given = json.dumps(arguments, ensure_ascii=self.random.random() < 0.5)
        call = {"type": "function", "function": {"name": name, "arguments": given}}
        return json.dumps([call if id is None else {"id": id, **call}])

    def filler(self) -> str:
        return self.random.choice(_FILLERS)

    def value(self, value: Any) -> str:
        if isinstance(value, dict):
            items = [f"{self.key(key)}{self.filler()}:{self.around(item)}" for key, item in value.items()]
            return "{" + self.sequence(items) + "}"
        if isinstance(value, list):
            return "[" + self.sequence([self.around(item) for item in value]) + "]"
        if isinstance(value, str):
            return self.text(value)
        if value is None:
            return self.random.choice(["null", "undefined"])
        if type(value) is int and self.random.random() < 0.3:
            return hex(value)
        return json.dumps(value)

    def around(self, value: Any) -> str:
        return f"{self.filler()}{self.value(value)}{self.filler()}"

    def sequence(self, items: list[str]) -> str:
        comma = "," if items and self.random.random() < 0.3 else ""
        return f"{self.filler()}{','.join(items)}{comma}{self.filler()}"

    def key(self, key: str) -> str:
        if _BARE_KEY.fullmatch(key) and self.random.random() < 0.6:
            return self.filler() + key
        return self.filler() + self.random.choice([self.json, self.single, self.double])(key)

    def text(self, text: str) -> str:
        ways = [self.json, self.single, self.double, self.template]
        if not text.endswith("\r"):  # it would belong to the line break before the closing tag
            ways.append(self.heredoc)
        return self.random.choice(ways)(text)

    def json(self, text: str) -> str:
        return json.dumps(text, ensure_ascii=self.random.random() < 0.5)

    def single(self, text: str) -> str:
        return f"'{self.escaped(text, chr(39))}'"

    def double(self, text: str) -> str:
        return f'"{self.escaped(text, chr(34))}"'

    def template(self, text: str) -> str:
        return f"`{self.escaped(text, '`')}`"

    def escaped(self, text: str, quote: str) -> str:
        """Line breaks raw or escaped, and some characters by their number."""
        text = text.replace("\\", "\\\\").replace(quote, f"\\{quote}")
        if self.random.random() < 0.5:
            text = text.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r").replace("\0", "\\0")
        if self.random.random() < 0.3:
            text = text.replace("é", "\\u00e9").replace("<", "\\x3c").replace("😀", "\\u{1F600}")
        return text

    def heredoc(self, text: str) -> str:
        tag = "EOF"
        while tag in text:
            tag += "F"
        quote = self.random.choice(["", "'", '"'])
        blanks = self.random.choice(["", "  ", "\t"])
        return f"<<{quote}{tag}{quote}{blanks}\n{text}\n{blanks}{tag}"


# --- the plain reader -----------------------------------------------------------------------------

_NAMED = re.compile(r"([A-Za-z_][\w.-]*)[ \t]*\(")
_BEFORE = re.compile(
    rf"(?:(?:^|</?[a-z_]+>)\s*|^[ \t]*|<)(?:(?:{'|'.join(PREFIXES)}):[ \t]*)*(\w+:[ \t]*)?\Z",
    re.MULTILINE,
)
_INLINE_CODE = re.compile(r"(?<!`)(`{1,2})(?!`)(?:(?!\n[ \t]*\n).)*?(?<!`)\1(?!`)", re.DOTALL)
_BLOCK_TAG = re.compile(r"<(/?)(tool_call|user_response|assistant_prose|done)>")
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "f": "\f"}
_WORDS = {"true": True, "false": False, "null": None, "undefined": None}


def written_calls(text: str, known: set[str]) -> Iterator[tuple[str, Dict]]:
    """Every call of a known tool that the text holds, at a place where one may be."""
    behind = 0
    for named in _NAMED.finditer(text):
        at = named.start()
        is_closed = text.find("</tool_call>", at) >= 0
        in_block = is_closed and text.rfind("<tool_call>", 0, at) > text.rfind("</tool_call>", 0, at)
        if (named[1] in known or in_block) and (before := _may_begin(text, at, behind)):
            end = _closed(text, named.end() - 1)
            try:
                arguments, _ = _arguments(text, named.end())
            except (_Unreadable, IndexError):
                if text.endswith("<", 0, at):
                    continue  # that's a tag, if it is no call
            else:
                if named[1] in known and not before[1]:  # with a label it is an error
                    yield named[1], arguments
            behind = max(behind, end)
    for opening in re.finditer(r"\[", text):
        try:
            items, _ = _value(text, opening.start())
        except (_Unreadable, IndexError):
            continue
        yield from _openai_calls(items, known)


def _may_begin(text: str, at: int, behind: int) -> re.Match[str] | None:
    """What stands before a call that may begin there, and its label: at the start of a line or of a block,
    but not in inline code, which no tick in the call that ends at ``behind`` opens."""
    tags = [tag for tag in _BLOCK_TAG.finditer(text) if _is_paired(tag)]
    stops = [tag.end() for tag in tags if tag.end() <= at]
    end = min([len(text), *[tag.start() for tag in tags if tag.start() >= at]])
    # The last of the tags may be one that closes nothing.
    for begin in {max([behind, *stops]), max([behind, *stops[:-1]])}:
        if not any(span.start() < at < span.end() for span in _INLINE_CODE.finditer(text, begin, end)):
            break
    else:
        return None
    return _BEFORE.search(text[max(0, at - 400) : at])


def _is_paired(tag: re.Match[str]) -> bool:
    """Whether there is one that opens or closes what this one closes or opens."""
    if tag[1]:
        return tag.string.find(f"<{tag[2]}>", 0, tag.start()) >= 0
    return tag.string.find(f"</{tag[2]}>", tag.end()) >= 0


def _openai_calls(items: list[Any], known: set[str]) -> Iterator[tuple[str, Dict]]:
    for item in items:
        function = item.get("function") if isinstance(item, dict) else None
        name = function.get("name") if isinstance(function, dict) else None
        if not isinstance(name, str) or name not in known:
            continue
        arguments = function.get("arguments", {})
        if isinstance(arguments, str):
            try:
                arguments, _ = _value(arguments.strip() or "{}", 0)
            except (_Unreadable, IndexError):
                continue
        if isinstance(arguments, dict):
            yield name, arguments


class _Unreadable(Exception):
    pass


def _skip(text: str, at: int) -> int:
    while True:
        if text[at].isspace():
            at += 1
        elif text.startswith("//", at):
            at = text.find("\n", at) if "\n" in text[at:] else len(text)
        elif text.startswith("/*", at):
            end = text.find("*/", at + 2)
            if end < 0:
                raise _Unreadable
            at = end + 2
        else:
            return at


def _arguments(text: str, at: int) -> tuple[Dict, int]:
    at = _skip(text, at)
    if text[at] == ")":
        return {}, at
    if text[at] != "{":
        raise _Unreadable
    value, at = _value(text, at)
    if text[_skip(text, at)] != ")":
        raise _Unreadable
    return value, at


def _closed(text: str, at: int) -> int:
    """The position behind the bracket that closes the one there; 0 without one."""
    depth = 0
    try:
        while True:
            at = _skip(text, at)
            if text[at] in "\"'`":
                at = _string(text, at)[1]
            elif text.startswith("<<", at):
                at = (_heredoc(text, at) or ("", at + 2))[1]
            else:
                depth += (text[at] in "([{") - (text[at] in ")]}")
                at += 1
                if not depth:
                    return at
    except (_Unreadable, IndexError):
        return 0


def _value(text: str, at: int) -> tuple[Any, int]:
    at = _skip(text, at)
    first = text[at]
    if first in "{[":
        return _container(text, at)
    if first in "\"'`":
        return _string(text, at)
    if text.startswith("<<", at) and (heredoc := _heredoc(text, at)):
        return heredoc
    word = re.compile(r"[A-Za-z_$][\w$]*").match(text, at)
    if word and word[0] in _WORDS:
        return _WORDS[word[0]], word.end()
    number = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|[0-9]*\.?[0-9]*(?:[eE][+-]?[0-9]+)?)").match(text, at)
    if number and number[0]:
        try:
            return _number(number[0]), number.end()
        except ValueError:
            pass
    raise _Unreadable


def _number(text: str) -> int | float:
    if "x" in text.lower():
        number: int | float = int(text, 16)
    else:
        number = int(text) if re.fullmatch(r"[+-]?[0-9]+", text) else float(text)
    return number if isinstance(number, float) or abs(number) <= 2**63 - 1 else float(number)


def _heredoc(text: str, at: int) -> tuple[str, int] | None:
    begin = re.compile(r"<<(['\"]?)([A-Za-z_]\w*)\1[ \t]*\r?\n").match(text, at)
    close = begin and re.compile(rf"^[ \t]*{begin[2]}\b", re.MULTILINE).search(text, begin.end())
    if not (begin and close):
        return None
    return text[begin.end() : close.start()].removesuffix("\n").removesuffix("\r"), close.end()


def _container(text: str, at: int) -> tuple[Any, int]:
    close = "}" if text[at] == "{" else "]"
    pairs: Dict = {}
    items: list[Any] = []
    at = _skip(text, at + 1)
    while text[at] != close:
        if close == "}":
            key, at = _key(text, at)
            at = _skip(text, at)
            if text[at] != ":":
                raise _Unreadable
            pairs[key], at = _value(text, at + 1)
        else:
            item, at = _value(text, at)
            items.append(item)
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)
        elif text[at] != close:
            raise _Unreadable
    return (pairs if close == "}" else items), at + 1


def _key(text: str, at: int) -> tuple[str, int]:
    if text[at] in "\"'":
        return _string(text, at)
    word = re.compile(r"[A-Za-z_$][\w$]*").match(text, at)
    if word is None:
        raise _Unreadable
    return word[0], word.end()


def _string(text: str, at: int) -> tuple[str, int]:
    quote, out, at = text[at], "", at + 1
    while text[at] != quote:
        if text[at] != "\\":
            out, at = out + text[at], at + 1
            continue
        code = re.compile(r"\\(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))").match(
            text, at
        )
        number = int(next(filter(None, code.groups())), 16) if code else 0x110000
        if code and number < 0x110000:
            out, at = out + chr(number), code.end()
        elif text[at + 1] in "ntr0bf":
            out, at = out + _SIMPLE[text[at + 1]], at + 2
        elif text[at + 1] in "/\\'\"`":
            out, at = out + text[at + 1], at + 2
        else:
            out, at = out + text[at : at + 2], at + 2
    return out.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"), at + 1
