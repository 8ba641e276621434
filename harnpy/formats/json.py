"""JSON text to values, with exact error positions, and back. Spec: 04 §11.1."""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NoReturn

from msgspec.json import Encoder

from harnpy.faults import look, paced
from harnpy.formats.display import display, joined

# JSON text to a value, or what is wrong with it and where. Spec: 04 §11.1 "parse".
#
# The standard decoder reads what is plainly well formed. All else goes to `_Reader`, which is slow and
# exact: it says which message of the specification applies at which line and column, and it reads the few
# good texts that the standard decoder can't be trusted with (see `_is_plain`).
#
# A column is the number of characters of its line up to and including the offending one.


#: Opening this many brackets is too many.
DEPTH_LIMIT = 128

_WHITE = " \t\n\r"
_DIGITS = "0123456789"
_WORDS = {"n": ("null", None), "t": ("true", True), "f": ("false", False)}
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_CONTROL = "control character (\\u0000-\\u001F) found while parsing a string"
_PLAIN_CHARACTERS = re.compile(r'[^"\\\x00-\x1f]*')
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")

_BRACKETS = str.maketrans("{}", "[]")
_NOT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")


class JsonError(ValueError):
    """``<detail> at line L column C``."""

    def __init__(self, detail: str, line: int, column: int) -> None:
        super().__init__(f"{detail} at line {line} column {column}")


def parse_json(text: str) -> Any:
    """The value of ``text``; raises `JsonError`."""
    if _is_plain(text):
        try:
            return _DECODER.decode(text)
        except ValueError:
            return _Reader(text).read()
    return _Reader(text).read()


def json_problem(text: str) -> str:
    """Return what is wrong with a text that another decoder refuses."""
    try:
        parse_json(text)
    except JsonError as error:
        return str(error)
    return "this isn't JSON"


def _is_plain(text: str) -> bool:
    """Return whether the standard decoder may have a go.

    It takes lone surrogates, and it recurses in C without counting brackets as we do.
    """
    if "\\u" in text and _SURROGATE.search(text):
        return False
    return text.count("[") + text.count("{") < DEPTH_LIMIT or _is_shallow(text)


def _is_shallow(text: str) -> bool:
    """Return whether taking away innermost pairs of brackets uses them all up before the limit."""
    brackets = text.encode(errors="replace").translate(None, _NOT_BRACKETS).decode().translate(_BRACKETS)
    for _ in range(DEPTH_LIMIT - 1):
        if not brackets:
            return True
        brackets = brackets.replace("[]", "")
    return not brackets


def _integer(text: str) -> int | float:
    """The int when 64 bits hold it, else the float; raises ValueError when no float does."""
    look(1)
    number = int(text)
    return number if -(2**63) <= number < 2**63 else _real(text)


def _real(text: str) -> float:
    look(1)
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _no_constant(text: str) -> NoReturn:
    raise ValueError(text)


_DECODER = json.JSONDecoder(parse_int=_integer, parse_float=_real, parse_constant=_no_constant)


class _Reader:
    """Recursive descent over ``text``; ``at`` is the next character, ``depth`` the brackets open."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def read(self) -> Any:
        value = self.value()
        if self.peek():
            self.fail_here("trailing characters")
        return value

    def peek(self) -> str:
        """The next character behind white space, "" at the end."""
        text, at = self.text, self.at
        while at < len(text) and text[at] in _WHITE:
            at += 1
        self.at = at
        return text[at : at + 1]

    def fail(self, detail: str) -> NoReturn:
        """Raise an error at what was read last."""
        before = self.text[: self.at]
        raise JsonError(detail, before.count("\n") + 1, self.at - (before.rfind("\n") + 1))

    def fail_here(self, detail: str) -> NoReturn:
        """Raise an error at what comes next."""
        self.at = min(self.at + 1, len(self.text))
        self.fail(detail)

    def value(self) -> Any:
        first = self.peek()
        if first == '"':
            return self.string()
        if first == "{" or first == "[":
            self.depth += 1
            if self.depth == DEPTH_LIMIT:
                self.fail_here("recursion limit exceeded")
            value: Any = self.mapping() if first == "{" else self.array()
            self.depth -= 1
            return value
        if first == "-" or (first and first in _DIGITS):
            return self.number()
        if first not in _WORDS:
            self.fail_here("expected value" if first else "EOF while parsing a value")
        return self.word(*_WORDS[first])

    def word(self, word: str, value: bool | None) -> bool | None:
        for letter in word:
            found = self.text[self.at : self.at + 1]
            if found != letter:
                self.fail_here("expected ident" if found else "EOF while parsing a value")
            self.at += 1
        return value

    def array(self) -> list[Any]:
        self.at += 1
        items: list[Any] = []
        while True:
            found = self.peek()
            if found == "]":
                self.at += 1
                return items
            if items:
                self.comma(found, "]", "EOF while parsing a list")
            elif not found:
                self.fail_here("EOF while parsing a list")
            items.append(self.value())

    def mapping(self) -> dict[str, Any]:
        self.at += 1
        entries: dict[str, Any] = {}
        while True:
            found = self.peek()
            if found == "}":
                self.at += 1
                return entries
            if entries:
                found = self.comma(found, "}", "EOF while parsing an object")
                if not found:
                    self.fail_here("EOF while parsing a value")
            elif not found:
                self.fail_here("EOF while parsing an object")
            if found != '"':
                self.fail_here("key must be a string")
            key = self.string()
            found = self.peek()
            if found != ":":
                self.fail_here("expected `:`" if found else "EOF while parsing an object")
            self.at += 1
            entries[key] = self.value()

    def comma(self, found: str, close: str, at_end: str) -> str:
        """Step over the comma between two items; the character behind it."""
        if found != ",":
            self.fail_here(f"expected `,` or `{close}`" if found else at_end)
        self.at += 1
        found = self.peek()
        if found == close:
            self.fail_here("trailing comma")
        return found

    def string(self) -> str:
        self.at += 1
        pieces = []
        while True:
            plain = _PLAIN_CHARACTERS.match(self.text, self.at)
            assert plain is not None  # it may be empty
            pieces.append(plain[0])
            self.at = plain.end()
            stop = self.take("EOF while parsing a string")
            if stop == '"':
                return "".join(pieces)
            if stop != "\\":
                self.fail(_CONTROL)
            pieces.append(self.escape())

    def take(self, at_end: str) -> str:
        if self.at == len(self.text):
            self.fail(at_end)
        self.at += 1
        return self.text[self.at - 1]

    def escape(self) -> str:
        letter = self.take("EOF while parsing a string")
        if letter != "u":
            return _ESCAPES.get(letter) or self.fail("invalid escape")
        code = self.hex4()
        if 0xDC00 <= code < 0xE000:
            self.fail("lone leading surrogate in hex escape")
        if not 0xD800 <= code < 0xDC00:
            return chr(code)
        for expected in "\\u":
            if self.take("EOF while parsing a string") != expected:
                self.fail("unexpected end of hex escape")
        low = self.hex4()
        if not 0xDC00 <= low < 0xE000:
            self.fail("lone leading surrogate in hex escape")
        return chr(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00))

    def hex4(self) -> int:
        digits = self.text[self.at : self.at + 4]
        self.at += len(digits)
        if len(digits) < 4:
            self.fail("EOF while parsing a string")
        if any(digit not in "0123456789abcdefABCDEF" for digit in digits):
            self.fail("invalid escape")
        return int(digits, 16)

    def number(self) -> int | float:
        start = self.at
        self.at += self.text[start] == "-"
        if self.take("EOF while parsing a value") == "0":
            if self.next_is(_DIGITS):
                self.fail_here("invalid number")
        elif self.text[self.at - 1] in _DIGITS:
            self.digits()
        else:
            self.fail("invalid number")
        whole = True
        if self.next_is("."):
            self.at += 1
            whole = False
            if not self.next_is(_DIGITS):
                at_end = self.at == len(self.text)
                self.fail_here("EOF while parsing a value" if at_end else "invalid number")
            self.digits()
        if self.next_is("eE"):
            self.at += 1
            whole = False
            self.at += self.next_is("+-")
            if self.take("EOF while parsing a value") not in _DIGITS:
                self.fail("invalid number")
            self.digits()
        return self.valued(self.text[start : self.at], whole)

    def valued(self, text: str, whole: bool) -> int | float:
        try:
            # Python refuses to read ints of thousands of digits.
            return _integer(text) if whole and len(text) <= 20 else _real(text)
        except ValueError:
            self.fail("number out of range")

    def next_is(self, characters: str) -> bool:
        return self.at < len(self.text) and self.text[self.at] in characters

    def digits(self) -> None:
        while self.next_is(_DIGITS):
            self.at += 1


# JSON text of a value. Spec: 04 §11.1 "stringify".
#
# Python's plain values are known here. Any other may have `as_json() -> value`, what stands for it in JSON;
# without it, that is null. Recursion goes through Python functions only, so depth costs no C stack.


_PLAIN = frozenset((dict, list, str, int, float, bool, type(None)))
_WRITER_ESCAPES = {
    **{code: f"\\u{code:04x}" for code in (*range(0x20), *range(0x7F, 0xA0))},
    ord('"'): '\\"',
    ord("\\"): "\\\\",
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): "\\t",
}


def float_text(x: float) -> str:
    """Plain decimal digits without a forced fraction; `NaN`, `inf` and `-inf` as bare words."""
    return display(x).removesuffix(".0")


def to_json(value: Any, floats: Callable[[float], str] = float_text) -> str:
    """Compact JSON, keys in ascending order; what is no data becomes `null`."""
    return _compact(value, floats)


def pretty_json(value: Any, floats: Callable[[float], str] = float_text) -> str:
    """The same over several lines, two spaces to a level."""
    return _pretty(value, floats, "\n")


def _compact(value: Any, floats: Callable[[float], str]) -> str:
    kind = type(value)
    if kind is str:  # most values, and what they have, are texts and numbers
        return quote(value)
    if kind is int:
        return str(value)
    if kind is float:
        return floats(value)
    if kind is not dict and kind is not list:
        value = _form(value)
    if kind is dict or isinstance(value, dict):
        if kind is dict and len(value) >= _MANY and floats is float_text:
            return "{" + _Runs().of_dict(value) + "}"
        return "{" + joined(value, ",", _entries(value, sorted(value), floats)) + "}"
    if kind is list or isinstance(value, list | tuple):
        if kind is list and len(value) >= _MANY and floats is float_text:
            return "[" + _Runs().of_list(value) + "]"
        return "[" + joined(value, ",", _items(value, floats)) + "]"
    return _scalar(value, floats)


def _entries(value: dict[str, Any], keys: list[str], floats: Callable[[float], str]) -> list[str]:
    return [f"{quote(key)}:{_compact(value[key], floats)}" for key in paced(keys)]


def _items(value: Sequence[Any], floats: Callable[[float], str]) -> list[str]:
    return [_compact(item, floats) for item in paced(value)]


# Most values are plain data, for which an encoder in C is thirty times as fast. It gets runs of a container's
# parts, each so short that the looks between them are soon enough, and only where its text is ours as well.


#: A container with fewer parts is written faster by itself.
_MANY = 16
#: As many parts of a container are a run …
_RUN = 64
#: … which may hold so many parts altogether, …
_PARTS_OF_RUN = 4096
#: … in so many levels: the encoder recurses in C.
_LEVELS_OF_RUN = 32
_ENCODER = Encoder(order="sorted")
#: U+0080 to U+009F, which the encoder doesn't escape.
_CONTROL_BEYOND_ASCII = re.compile(rb"\xc2[\x80-\x9f]")
#: The end of an integral float and what follows it, and the latter alone.
_POINT_ZERO = {b".0,": b",", b".0]": b"]", b".0}": b"}"}


class _Runs:
    """Writes a container in runs."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        #: The containers that are in runs, and how many there would be if none were there twice.
        self._met: set[int] = set()
        self._count = 0
        self._is_plain = True

    def of_list(self, value: list[Any]) -> str:
        for at in range(0, len(value), _RUN):
            run = value[at : at + _RUN]
            if not self._write(run, run):
                self._pieces += _items(run, float_text)
        return self._joined(value)

    def of_dict(self, value: dict[str, Any]) -> str:
        names = sorted(value)
        for at in range(0, len(names), _RUN):
            keys = names[at : at + _RUN]
            run = {key: value[key] for key in keys} if len(names) > _RUN else value
            if not self._write(run, list(run.values())):
                self._pieces += _entries(run, keys, float_text)
        return self._joined(value)

    def _joined(self, value: list[Any] | dict[str, Any]) -> str:
        if self._is_plain and len(self._met) == self._count:
            return ",".join(self._pieces)  # no part is there twice, so it has an end
        return joined(value, ",", self._pieces)

    def _write(self, run: list[Any] | dict[str, Any], level: list[Any]) -> bool:
        """Write a run, without its brackets. Return False if the encoder would write another text.

        ``level`` are the parts of the run.
        """
        text = self._encoded(run, level)
        if text is None:
            self._is_plain = False
            return False
        self._pieces.append(text)
        return True

    def _encoded(self, run: list[Any] | dict[str, Any], level: list[Any]) -> str | None:
        parts, integral = len(level), 0
        for _ in range(_LEVELS_OF_RUN):
            kinds = set(map(type, level))
            if not kinds <= _PLAIN:
                return None
            if float in kinds:
                reals = [item for item in level if type(item) is float]
                if [x for x in reals if not (1e-4 <= x < 1e16 or -1e16 < x <= -1e-4 or x == 0)]:
                    return None  # one has an exponent, or isn't finite
                integral += sum(map(float.is_integer, reals))
            dicts = [item for item in level if type(item) is dict] if dict in kinds else []
            lists = [item for item in level if type(item) is list] if list in kinds else []
            parts += sum(map(len, dicts)) + sum(map(len, lists))
            if parts > _PARTS_OF_RUN:
                return None
            self._met.update(map(id, dicts), map(id, lists))
            self._count += len(dicts) + len(lists)
            level = [*chain.from_iterable(map(dict.values, dicts)), *chain.from_iterable(lists)]
            if not level:
                break
        else:
            return None
        look(parts)
        try:
            data = _ENCODER.encode(run)
        except UnicodeEncodeError:
            return None  # half of a surrogate pair, which is kept
        if b"\x7f" in data or _CONTROL_BEYOND_ASCII.search(data):
            return None
        if b"\\b" in data or b"\\f" in data:
            escapes = data.replace(rb"\\", b"")  # what is left of a backslash begins an escape
            if b"\\b" in escapes or b"\\f" in escapes:
                return None
        if integral:
            if sum(map(data.count, _POINT_ZERO)) != integral:
                return None  # a string has them, too
            for written, ours in _POINT_ZERO.items():
                data = data.replace(written, ours)
        return data[1:-1].decode()


def _pretty(value: Any, floats: Callable[[float], str], margin: str) -> str:
    value, inner = _form(value), margin + "  "
    if isinstance(value, dict) and value:
        pieces = [f"{quote(key)}: {_pretty(value[key], floats, inner)}" for key in paced(sorted(value))]
        return "{" + inner + joined(value, f",{inner}", pieces) + margin + "}"
    if isinstance(value, list | tuple) and value:
        pieces = [_pretty(item, floats, inner) for item in paced(value)]
        return "[" + inner + joined(value, f",{inner}", pieces) + margin + "]"
    return _compact(value, floats)


def stored_json(value: Any) -> str:
    """Pretty JSON that reads back as the same data: floats stay floats, numbers that are none become null."""
    return pretty_json(value, lambda x: display(x) if x - x == 0 else "null")


def as_data(value: Any) -> Any:
    """The value that is read back from its JSON: what JSON has no word for is nil."""
    return parse_json(to_json(value, lambda x: "null" if x - x != 0 else float_text(x)))


def quote(text: str) -> str:
    """A JSON string; control characters escaped, other characters kept."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{text.translate(_WRITER_ESCAPES)}"'


def _form(value: Any) -> Any:
    """Return what stands for the value in JSON."""
    kind = type(value)
    if kind in _PLAIN or isinstance(value, dict | list | tuple):
        return value
    if kind is bytes:
        return {"$bytes_b64": b64encode(value).decode()}
    form = getattr(value, "as_json", None)
    return None if form is None else form()


def _scalar(value: Any, floats: Callable[[float], str]) -> str:
    kind = type(value)
    if kind is str:
        return quote(value)
    if kind is float:
        return floats(value)
    return "null" if value is None else display(value)


# JSON in one line with sorted keys: the form that is compared, hashed and sent to models.


def compact_json(value: Any) -> str:
    """Return ``value`` as JSON with sorted keys; what JSON can't express becomes its text, NaN and the
    infinities null."""
    return _encoded(_SORTED, value)


def ordered_json(value: Any) -> str:
    """Return ``value`` as `compact_json` does, with keys as they come."""
    return _encoded(_ORDERED, value)


def _encoded(encoder: json.JSONEncoder, value: Any) -> str:
    try:
        return encoder.encode(value)
    except ValueError:
        return encoder.encode(_finite(value))


_SORTED, _ORDERED = (
    json.JSONEncoder(
        separators=(",", ":"), sort_keys=is_sorted, ensure_ascii=False, default=display, allow_nan=False
    )
    for is_sorted in (True, False)
)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in paced([*value.items()])}
    if isinstance(value, list):
        return [_finite(item) for item in paced(value)]
    return None if isinstance(value, float) and not abs(value) < float("inf") else value


def without_nulls(value: Any) -> Any:
    """Return a JSON value whose objects have no keys that are null."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return list(map(without_nulls, value)) if isinstance(value, list) else value


# JSON from elsewhere. Decoders in C recurse, and a program's limit of recursion is no bound for them.


#: As deep as a text may be that a decoder in C is given.
_DEEPEST = 900
# One without an end reaches to that of the text: looked for from each quote again, it would take for ever.
_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_NO_BRACKETS = bytes(code for code in range(256) if code not in b"[]{}")


def refuse_depth(text: str | bytes, deepest: int = _DEEPEST) -> None:
    """Raise ValueError for JSON that is nested too deeply to be read: in more than so many levels."""
    data = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    if data.count(b"[") + data.count(b"{") <= deepest:
        return
    depth = 0
    for code in _STRINGS.sub(b"", data).translate(None, _NO_BRACKETS):
        depth += 1 if code in b"[{" else -1
        if depth > deepest:
            raise ValueError("it is nested too deeply")


# JSON Lines.


def lines_of(text: str) -> list[str]:
    """Return the lines, each with its end. JSON texts hold other characters that end lines elsewhere."""
    *whole, last = text.split("\n")
    return [*(f"{line}\n" for line in whole), *([last] if last else [])]
