"""Secrets that never reach a tape: they are masked at the door, wherever they stand. Spec: 13 §2.

A value counts from when it is known: a variable with a secret name, a key of a provider, a key or a password
in what the program reads, in its arguments or in its own text. Only known values are looked for in what is
written. A replay sees `HIDDEN` in their place, and what it does with that is what was recorded.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from threading import Lock
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, quote_plus

from harnpy.durable.journal import HOST, HTTP, HUMAN, MODEL, PIECE, PROCESS, READ, STDIN, TOOL
from harnpy.formats.secrets.forms import secrets_in
from harnpy.formats.secrets.known_values import in_json
from harnpy.formats.secrets.secret_names import is_secret_header_name, is_secret_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from harnpy.workflow.engines.contract import Json

#: What a tape has in the place of a secret.
HIDDEN: Final = "<not on the tape>"
#: A replay may put it into a URL, where a key would have stood as it is.
_ENCODED_MASKS: Final = (quote(HIDDEN, safe=""), quote_plus(HIDDEN))
_ENCODED_MASK: Final = HIDDEN.split(" ", 1)[0].replace("<", "%3C")
#: Shorter values occur by chance.
LEAST: Final = 6
_BASE64: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_")
#: The password in a URL, which isn't put together from parts.
_IN_URL = re.compile(r"""://[^\s/:@?#"'<>]*:([^\s/:@?#"'<>${}]{3,400})@""")
#: A setting: its name and its value.
_SETTING = re.compile(r"""([\w.-]+)["']?\s*[=:]\s*["']([^"'\n]+)["']""")
_COOKIE = re.compile(r"=\s*([^;\s]{8,})")
#: What brings texts from outside, which may hold keys.
_TELLING: Final = frozenset({READ, PROCESS, HTTP, MODEL, PIECE, HUMAN, HOST, STDIN, TOOL})
#: What is encoded whole, so that nothing is found in it as it is.
_ENCODED = (b'"$bytes"', b'"$text"')


class Redaction:
    """The secrets that are known by now. Masks texts, bytes, and what is written of effects."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: set[str] = set()
        self._texts: list[str] = []
        self._bytes: list[bytes] = []
        #: What base64 of something has in it that has a known value in it.
        self._base64: list[str] = []
        self._written: list[bytes] = []

    # --- what is known -----------------------------------------------------------------------------

    def learn(self, value: str | None) -> None:
        """Mask this value from now on."""
        if not value or len(value) < LEAST or value in self._known or value in HIDDEN or HIDDEN in value:
            return
        with self._lock:
            self._add(value)

    def _add(self, value: str) -> None:
        self._known.add(value)
        self._texts = sorted({*self._texts, *_forms(value)}, key=lambda form: (-len(form), form))
        self._bytes = [form.encode("utf-8", "surrogatepass") for form in self._texts]
        self._base64 = sorted({*self._base64, *_in_base64(value)})
        written = {json.dumps(form, ensure_ascii=False)[1:-1] for form in (*self._texts, *self._base64)}
        self._written = [form.encode("utf-8", "replace") for form in written]

    def learn_variables(self, variables: Mapping[str, str]) -> None:
        """Mask the values of variables with a secret name."""
        for name, value in variables.items():
            if is_secret_name(name):
                self.learn(value)

    def learn_from(self, text: str) -> list[str]:
        """Mask the keys that a text holds, and the passwords of its URLs; return them."""
        found = secrets_in(text)
        if "://" in text and "@" in text:
            found += [each[1] for each in _IN_URL.finditer(text)]
        found = [value for value in found if HIDDEN not in value]
        for value in found:
            # The name of a user or a database may be the same word.
            self.learn(value if _is_unlike_words(value) else f":{value}@")
        return found

    def learn_from_settings(self, text: str) -> None:
        """Mask the values that a file of settings has under a secret name, and all other keys in it."""
        self.learn_from(text)
        for name, value in _SETTING.findall(text):
            if is_secret_name(name) or is_secret_header_name(name):
                self.learn(value)

    def learn_from_effect(self, key: str, output: Mapping[str, Json]) -> None:
        """Mask the keys in what the effect of that key has come to, and in files that it has changed."""
        self._learn_from_record(output.get("was"))
        self._learn_from_record(output.get("files"))
        if key.rpartition(":")[2] in _TELLING:
            self._learn_from_record(output.get("ok"))
            self._learn_from_record(output.get("error"))

    def _learn_from_record(self, written: Json) -> None:
        if isinstance(written, str):
            self.learn_from(written)
        elif isinstance(written, list):
            if len(written) == 2:
                self._learn_header(*written)
            for item in written:
                self._learn_from_record(item)
        elif isinstance(written, dict):
            for item in written.values():
                self._learn_from_record(item)

    def _learn_header(self, name: Json, value: Json) -> None:
        name, value = (each.get("$utf8") if isinstance(each, dict) else each for each in (name, value))
        if isinstance(name, str) and isinstance(value, str) and is_secret_header_name(name):
            for cookie in _COOKIE.findall(value.partition(";")[0]):
                self.learn(cookie)

    # --- masking -----------------------------------------------------------------------------------

    def text(self, text: str) -> str:
        """Return ``text`` with `HIDDEN` in the place of what is known."""
        for value in self._texts:
            if value in text:
                text = text.replace(value, _mask_of(value))
        if _ENCODED_MASK in text:
            for encoded in _ENCODED_MASKS:
                text = text.replace(encoded, HIDDEN)
        for part in (*self._base64, *_BASE64_MASKS):
            if part in text:
                text = _without_base64(text, part)
        return text

    def data(self, data: bytes) -> bytes:
        """Return ``data`` with `HIDDEN` in the place of what is known."""
        for value in self._bytes:
            if value in data:
                data = data.replace(value, _mask_of(value.decode("utf-8", "surrogatepass")).encode())
        if _ENCODED_MASK.encode() in data:
            for encoded in _ENCODED_MASKS:
                data = data.replace(encoded.encode(), HIDDEN.encode())
        for part in (*self._base64, *_BASE64_MASKS):
            if part.encode() in data:
                data = _without_base64(data.decode("latin-1"), part).encode("latin-1")
        return data

    def concerns(self, line: bytes) -> bool:
        """Return whether something that is known may be in this line of JSON."""
        if not self._known:
            return False
        return any(value in line for value in self._written) or any(each in line for each in _ENCODED)

    def record(self, written: Json) -> Json:
        """Return what is written of an effect with `HIDDEN` in the place of what is known."""
        if isinstance(written, str):
            return self.text(written)
        if isinstance(written, list):
            return [self.record(item) for item in written]
        if not isinstance(written, dict):
            return written
        if len(written) == 1:
            ((kind, inner),) = written.items()
            if kind == "$object":
                return {kind: [inner[0], *map(self.record, inner[1:])]}
            if kind in ("$bytes", "$text"):
                return {kind: b64encode(self.data(b64decode(inner))).decode("ascii")}
            if kind in ("$int", "$float"):
                return written
        return {
            self.text(key): item if key == "type" and isinstance(item, str) else self.record(item)
            for key, item in written.items()
        }


class LearningRedaction(Redaction):
    """For programs whose texts aren't on the tape: keys in what they ask for are learned from that."""

    def text(self, text: str) -> str:
        self.learn_from(text)
        return super().text(text)

    def data(self, data: bytes) -> bytes:
        self.learn_from(data.decode("utf-8", "replace"))
        return super().data(data)


def _forms(value: str) -> Iterator[str]:
    """Yield how a value may be written: as it is, in JSON, in JSON in JSON, in a URL."""
    yield value
    yield from in_json(value)
    yield quote(value, safe="", errors="replace")
    yield quote(value, errors="replace")
    yield quote_plus(value, errors="replace")


def _in_base64(value: str) -> Iterator[str]:
    """Yield what base64 has in it wherever the value stands in what is encoded: a character of it is of six
    bits, so there are three ways, and at both ends one that has bits of something else."""
    data = value.encode("utf-8", "surrogatepass")
    for before in range(3):
        bits = 8 * before
        first, last = -(-bits // 6), (bits + 8 * len(data)) // 6
        part = b64encode(bytes(before) + data).decode("ascii")[first:last]
        yield part
        yield part.replace("+", "-").replace("/", "_")


_BASE64_MASKS: Final = tuple(dict.fromkeys(_in_base64(HIDDEN)))


def _without_base64(text: str, part: str) -> str:
    """Return ``text`` with `HIDDEN` in the place of what is base64 and has that part in it."""
    pieces, done = [], 0
    while (start := text.find(part, done)) >= 0:
        end = start + len(part)
        while start > done and text[start - 1] in _BASE64:
            start -= 1
        while end < len(text) and text[end] in _BASE64:
            end += 1
        pieces += [text[done:start], HIDDEN]
        done = end + len(text[end : end + 2]) - len(text[end : end + 2].lstrip("="))
    return "".join([*pieces, text[done:]])


def _mask_of(form: str) -> str:
    return f":{HIDDEN}@" if form.startswith((":", "%3A")) and form.endswith(("@", "%40")) else HIDDEN


def _is_unlike_words(value: str) -> bool:
    return len(value) >= 8 and not value.isalpha()
