"""Redacting a document: secrets, values of environment variables, paths, reasoning; and the manifest.

Redacting a redacted document changes nothing: masks are not secrets, and rules are applied until they find
nothing. The manifest names the altered values by JSON pointer. Spec: 08 §17.
"""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import sha256
from posixpath import normpath
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.faults import paced
from harnpy.formats.json import compact_json
from harnpy.formats.secrets.known_values import SecretValues
from harnpy.formats.secrets.masking import (
    MASK,
    is_secret_number,
    mask_secrets,
    secret_places,
)
from harnpy.formats.secrets.secret_names import is_secret_member, is_secret_name, names_secret
from harnpy.formats.text_size import fits
from harnpy.session.strategies import microcompact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from harnpy.formats.dicts import Dict

    Shapes = Callable[[Dict, str, "Manifest"], Dict]

REASONS = ("secret", "path", "reasoning", "env", "payload", "oversize", "replay_only")
ACTIONS = ("masked", "removed", "hashed", "truncated")


class Manifest:
    """One entry for each altered value, with the first reason.

    ``carried`` are the entries of the bundle that the run came from.
    """

    def __init__(self, carried: Iterable[Dict] = ()) -> None:
        self._entries = {entry["path"]: entry for entry in carried}

    def add(self, pointer: str, reason: str, action: str, hashed: Any = None) -> None:
        """Note that the value at ``pointer`` was altered; ``hashed`` is the original."""
        if pointer not in self._entries:
            entry = {"path": pointer, "reason": reason, "action": action}
            self._entries[pointer] = entry if hashed is None else {**entry, "sha256": digest(hashed)}

    def has(self, pointer: str, reason: str) -> bool:
        entry = self._entries.get(pointer)
        return entry is not None and entry["reason"] == reason

    def pointers(self) -> list[str]:
        return sorted(self._entries)

    def entries(self, document: Any) -> list[Dict]:
        """Return the entries that point into the document, sorted by path."""
        return [entry for pointer, entry in sorted(self._entries.items()) if points_into(document, pointer)]


def pointer_step(pointer: str, key: str | int) -> str:
    """Return the pointer to a member of the value at ``pointer``. Spec: RFC 6901."""
    return f"{pointer}/{key}" if isinstance(key, int) else f"{pointer}/{_escape(key)}"


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def points_into(document: Any, pointer: str) -> bool:
    """Return whether there is a value at ``pointer``."""
    if pointer and not pointer.startswith("/"):
        return False
    value = document
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and re.fullmatch("0|[1-9][0-9]*", key) and int(key) < len(value):
            value = value[int(key)]
        else:
            return False
    return True


def digest(value: Any) -> str:
    """Return the SHA-256 of a text, or of the canonical JSON of any other value: compact, sorted keys."""
    text = value if isinstance(value, str) else compact_json(value)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# Masking values of environment variables wherever a text repeats them. Pure.
#
# A short value or a plain word occurs in ordinary sentences, so it is only masked where it is the variable's
# own value. A value is masked in all texts when it is *revealing*:
#
# - the variable's name is that of a secret, and the value has four characters or more: then also in other
#   encodings, and parts of it; or
# - it has eight characters or more and is not one word of letters only (ten, if it is all digits), or twenty.
#
# Paths are left to the rule for paths. Variables that describe a terminal or a locale, that name a model or a
# provider, and harnpy's own settings, are not secret. Spec: 08 §17, `sanitized`.


ENVIRONMENT_MASK = "[redacted:env]"

_HARMLESS = re.compile(
    r"HARN_.*|.*_(MODEL|PROVIDER)|LC_.*|LANG(UAGE)?|(COLOR)?TERM.*|SHELL|EDITOR|PAGER|TZ|LS_COLORS|_"
)


class Environment:
    """The revealing values of some environments, or only those of secret variables."""

    def __init__(self, environments: Iterable[Mapping[str, str]], only_secrets: bool = False) -> None:
        variables = [
            (name, value)
            for environment in environments
            for name, value in environment.items()
            if isinstance(value, str) and _is_revealing(name, value)
        ]
        self._secrets = SecretValues({value for name, value in variables if is_secret_name(name)})
        others = {value for name, value in variables if not only_secrets and not is_secret_name(name)}
        longest_first = sorted(others, key=lambda value: (-len(value), value))
        self._others = re.compile("|".join(map(re.escape, longest_first))) if others else None

    def removed_from(self, text: str) -> str:
        text = self._secrets.masked(text, ENVIRONMENT_MASK)
        return text if self._others is None else self._others.sub(ENVIRONMENT_MASK, text)


def _is_revealing(name: str, value: str) -> bool:
    if is_secret_name(name):
        return len(value) >= 4 and value not in ENVIRONMENT_MASK
    if _HARMLESS.fullmatch(name) or value.startswith("/") or value in ENVIRONMENT_MASK or not value.strip():
        return False
    if value.isdigit():
        return len(value) >= 10
    return len(value) >= (20 if value.isalpha() else 8)


# Masking where a run happened: home directories, and absolute paths outside the workspace. Pure.
#
# A home directory becomes ``~`` everywhere, so that the rest of the path stays readable; any other absolute
# path outside the workspaces becomes ``<path:HASH8>``, the same for the same path. Spec: 08 §17, `sanitized`.


#: A name of a directory or file; blanks and quotes end it.
_PART = r"""[^\s/"'`<>|:;,?*\\(){}\[\]]+"""
#: A slash that begins a path: at the start of a word, behind an escape, a flag such as -I, or `file://`.
#: It looks behind after the slash: a pattern that begins with a character is searched fast.
_ROOT = r"/(?:(?<![\w.~/*)}-]/)|(?<=\\[nrt]/)|(?<=[\s\"'=,]-[A-Za-z]/)|(?<=file:///))"

_HOME = re.compile(rf"{_ROOT}(?:(?:home|Users)/{_PART}|root(?![\w.-]))")
_WINDOWS_HOME = re.compile(r"""(?<![A-Za-z])[A-Za-z]:[\\/]+Users[\\/]+[^\s\\/"'`<>|:;,?*]+""", re.IGNORECASE)
_PATH = re.compile(rf"{_ROOT}{_PART}(?:/{_PART})*/?")
_WINDOWS_PATH = re.compile(r"""(?<![A-Za-z])[A-Za-z]:(?:\\+[^\s\\/"'`<>|:;,?*]+)+""")

#: Names that make a single word behind a slash a directory, not a command or part of a URL.
_TOP = frozenset(
    "bin boot data dev etc home lib lib64 media mnt nix opt private proc root run sbin snap srv sys tmp usr "
    "var work workspace Applications Library System Users Volumes".split()
)


class Places:
    """The workspaces, whose paths may be shown, and the home directory of the user."""

    def __init__(self, workspaces: Iterable[str] = (), home: str | None = None) -> None:
        home = (home or "").rstrip("/")
        # A home such as /root may be any word; the patterns recognise it where it is a path.
        self._home = re.compile(re.escape(home) + r"(?![\w-])") if home.count("/") > 1 else None
        directories = {normpath(directory) for directory in workspaces if directory.startswith("/")}
        self._workspaces = tuple(sorted(directories - {"/", "//", home}))

    def without_home(self, text: str) -> str:
        if self._home is not None:
            text = self._home.sub("~", text)
        return _WINDOWS_HOME.sub("~", _HOME.sub("~", text)) if "/" in text or "\\" in text else text

    def without_paths(self, text: str) -> str:
        """Return ``text`` with absolute paths outside the workspaces hashed."""
        if "/" in text:
            text = _PATH.sub(self._hashed, text)
        return _WINDOWS_PATH.sub(lambda found: _hash(found[0]), text) if ":\\" in text else text

    def _hashed(self, found: re.Match[str]) -> str:
        path = _absolute(found)
        if path is None:
            return found[0]
        plain = normpath(path)
        if any(plain == root or plain.startswith(f"{root}/") for root in self._workspaces):
            return found[0]
        return _hash(plain) + found[0][len(path) :]


def paths_in(text: str) -> Iterator[str]:
    """Yield the absolute paths in a text."""
    found = (_absolute(match) for match in _PATH.finditer(text))
    return (normpath(path) for path in found if path is not None)


def _absolute(found: re.Match[str]) -> str | None:
    """Return the path found, without the full stop of a sentence; None if it only looks like a path."""
    path = found[0].rstrip(".!")
    parts = path.strip("/").split("/")
    closing_tag = found.string.startswith("<", found.start() - 1) if found.start() else False
    return None if len(parts) == 1 and (closing_tag or parts[0] not in _TOP) else path


def _hash(path: str) -> str:
    return f"<path:{sha256(path.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}>"


_ROUNDS = 5
_REMEMBERED = 1024


class TextRule(NamedTuple):
    """A rule for every text, and the manifest's words for a change."""

    reason: str
    action: str
    apply: Callable[[str], str]
    hashes: bool = False


SECRETS = TextRule("secret", "masked", mask_secrets)


def secret_variables(environments: Iterable[Mapping[str, str]]) -> TextRule:
    """Return the rule for values of variables that are named like a secret."""
    return TextRule("env", "masked", Environment(environments, only_secrets=True).removed_from)


def _as_it_is(value: Dict, pointer: str, manifest: Manifest) -> Dict:
    return value


class Redactor:
    """``rules`` are for texts, the most serious first; ``shapes`` alters known dicts before their parts."""

    def __init__(
        self, manifest: Manifest, rules: Sequence[TextRule] = (SECRETS,), shapes: Shapes = _as_it_is
    ) -> None:
        self._manifest = manifest
        self._rules = rules
        self._shapes = shapes
        # A transcript repeats its texts: as message, event, block and result.
        self.altered = lru_cache(_REMEMBERED)(self._altered)

    def value(self, value: Any, pointer: str) -> Any:
        if isinstance(value, str):
            return self._text(value, pointer)
        if isinstance(value, dict):
            return self._dict(self._shapes(value, pointer, self._manifest), pointer)
        if isinstance(value, list):
            hidden = secret_places(value)
            return [
                (self._secret if at in hidden else self.value)(item, pointer_step(pointer, at))
                for at, item in enumerate(paced(value))
            ]
        return self._secret(value, pointer) if is_secret_number(value) else value

    def _dict(self, value: Dict, pointer: str) -> Dict:
        redacted: Dict = {}
        hidden = "value" if names_secret(value) else None
        for key, item in paced([*value.items()]):
            shown = self._key(key, redacted, pointer)
            alter = self._secret if key == hidden or is_secret_member(key, item) else self.value
            redacted[shown] = alter(item, pointer_step(pointer, shown))
        return redacted

    def _key(self, key: str, taken: Dict, pointer: str) -> str:
        """Return another, unused name for a key that is itself a secret or a path."""
        shown, rule = self.altered(key)
        if rule is None:
            return key
        name, count = shown, 1
        while name in taken:
            count += 1
            name = f"{shown} {count}"
        self._manifest.add(pointer_step(pointer, name), rule.reason, rule.action)
        return name

    def _secret(self, value: Any, pointer: str) -> Any:
        """Mask all text below a key that is named like a secret."""
        if is_secret_number(value, named=True) or (isinstance(value, str) and value and value != MASK):
            self._manifest.add(pointer, "secret", "masked")
            return MASK
        if isinstance(value, list):
            return [self._secret(item, pointer_step(pointer, at)) for at, item in enumerate(paced(value))]
        if isinstance(value, dict):
            redacted: Dict = {}
            for key, item in paced([*value.items()]):
                shown = self._key(key, redacted, pointer)
                redacted[shown] = self._secret(item, pointer_step(pointer, shown))
            return redacted
        return value

    def _text(self, text: str, pointer: str) -> str:
        shown, rule = self.altered(text)
        if rule is not None:
            hashed = mask_secrets(text) if rule.hashes else None
            self._manifest.add(pointer, rule.reason, rule.action, hashed)
        return shown

    def _altered(self, text: str) -> tuple[str, TextRule | None]:
        """Return the text after all rules, and the most serious rule that changed it.

        In rounds, because what one rule cuts or replaces may reveal something to another.
        """
        changed: list[TextRule] = []
        for _ in range(_ROUNDS):
            before = text
            for rule in self._rules:
                after = rule.apply(text)
                if after != text:
                    changed.append(rule)
                    text = after
            if text == before:
                break
        return text, min(changed, key=self._rules.index, default=None)


def without_secrets(value: Any, env: Mapping[str, str] | None = None) -> Any:
    """Return a JSON value with every secret masked, as in a bundle of any mode; nothing else changes.

    Values of secret variables of ``env`` are secrets, too.
    """
    rules = (SECRETS, secret_variables([env])) if env else (SECRETS,)
    return Redactor(Manifest(), rules).value(value, "")


# What `sanitized` removes besides secrets: the rules for texts, and parts of certain dicts.
#
# A removed text becomes ``""``, any other removed value nil, so that the manifest can point to it. Spec: 08
# §17, `sanitized`.


_MOST_BYTES = 32 * 1024
#: microcompact adds a line about what it left out: its result must not be long enough to be cut again.
_COMPACTED_BYTES = _MOST_BYTES - 128

_REASONING_EVENTS = ("private_reasoning", "thinking_summary")
_REASONING_BLOCKS = ("reasoning", "thinking", "redacted_thinking")
_REASONING_KEYS = tuple(
    "private_reasoning thinking_summary reasoning reasoning_content reasoning_details".split()
)
#: Rows of a sidecar in which `thinking` is a model's reasoning, not an option.
_RESPONSES = ("provider_call_response", "response", "llm_response")
_BLOCK_FRAME = ("type", "visibility")


def text_rules(places: Places, environment: Environment) -> Sequence[TextRule]:
    """Return the rules for every text, the most serious reason first."""
    return (
        SECRETS,
        TextRule("env", "masked", environment.removed_from),
        TextRule("path", "masked", places.without_home),
        TextRule("path", "hashed", places.without_paths),
        TextRule("oversize", "truncated", _in_size, hashes=True),
    )


def shape_rules(value: Dict, pointer: str, manifest: Manifest) -> Dict:
    """Return a dict without reasoning, payloads and environments, recognised by its shape."""
    if value.get("kind") in _REASONING_EVENTS:
        value = _without_texts(value, pointer, manifest)
    if value.get("type") in _REASONING_BLOCKS:
        gone = {key: item for key, item in value.items() if key not in _BLOCK_FRAME}
        value = _without(value, gone, pointer, "reasoning", manifest)
    if value.get("kind") == "provider_payload" and isinstance(value.get("metadata"), dict):
        value = {**value, "metadata": _counts(value["metadata"], pointer_step(pointer, "metadata"), manifest)}
    keys = (*_REASONING_KEYS, *(("thinking",) if value.get("type") in _RESPONSES else ()))
    value = _without(value, [key for key in keys if key in value], pointer, "reasoning", manifest)
    if isinstance(value.get("env"), dict):
        place = pointer_step(pointer, "env")
        value = {**value, "env": _without(value["env"], value["env"], place, "env", manifest)}
    if _is_transcript(value):
        value = {**value, "assets": _descriptors(value["assets"], pointer_step(pointer, "assets"), manifest)}
    return value


def _in_size(text: str) -> str:
    if fits(text, _MOST_BYTES):
        return text
    return microcompact(text, _COMPACTED_BYTES)


def _without(
    value: Dict, keys: Mapping[str, Any] | Sequence[str], pointer: str, reason: str, manifest: Manifest
) -> Dict:
    """Return ``value`` with nothing under those keys; empty values are left alone."""
    full = {key: "" if isinstance(value[key], str) else None for key in keys if value[key]}
    for key in full:
        manifest.add(pointer_step(pointer, key), reason, "removed")
    return {**value, **full} if full else value


def _without_texts(event: Dict, pointer: str, manifest: Manifest) -> Dict:
    """Return an event without text, also in its blocks."""
    event = _without(event, [key for key in ("text",) if key in event], pointer, "reasoning", manifest)
    blocks = event.get("blocks")
    if not isinstance(blocks, list):
        return event
    place = pointer_step(pointer, "blocks")
    return {
        **event,
        "blocks": [_mute(block, pointer_step(place, at), manifest) for at, block in enumerate(blocks)],
    }


def _mute(block: Any, pointer: str, manifest: Manifest) -> Any:
    if isinstance(block, dict):
        said = [key for key in block if key not in _BLOCK_FRAME]
        return _without(block, said, pointer, "reasoning", manifest)
    if block:
        manifest.add(pointer, "reasoning", "removed")
    return "" if isinstance(block, str) else None


def _counts(metadata: Dict, pointer: str, manifest: Manifest) -> Dict:
    """Return the model and the token counts of a provider's payload."""
    kept = {
        key: item
        for key, item in metadata.items()
        if (key == "model" and isinstance(item, str)) or (key.endswith("_tokens") and _is_count(item))
    }
    if kept != metadata:
        manifest.add(pointer, "payload", "removed")
    return kept


def _is_count(value: Any) -> bool:
    return value is None or isinstance(value, (int, float))


def _is_transcript(value: Dict) -> bool:
    known = value.get("_type") == "transcript" or "events" in value or "messages" in value
    return known and isinstance(value.get("assets"), list)


def _descriptors(assets: list[Any], pointer: str, manifest: Manifest) -> list[Any]:
    """Return assets without their data."""
    return [
        _without(asset, ["data"], pointer_step(pointer, at), "payload", manifest)
        if isinstance(asset, dict) and "data" in asset
        else asset
        for at, asset in enumerate(assets)
    ]
