"""Masking secrets in a document: in texts, in keys, and in values under revealing keys.

Redacting a redacted document changes nothing: masks are not secrets, and rules are applied until they find
nothing. Spec: 08 §17.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.text.secrets.contexts import MASK
from harnpy.text.secrets.masking import mask_secrets
from harnpy.text.secrets.names import is_secret_flag, is_secret_header, is_secret_member, names_secret
from harnpy.workflow.bundle.environment_masking import Environment
from harnpy.workflow.bundle.redaction_manifest import Manifest, step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from harnpy.reading.dicts import Dict

    Shapes = Callable[[Dict, str, Manifest], Dict]

_ROUNDS = 5
_REMEMBERED = 1024


class TextRule(NamedTuple):
    """What to do with any text, and the manifest's words for a change."""

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
            hidden = {at + 1 for at, item in enumerate(value) if is_secret_flag(item)}
            hidden |= {1} if is_secret_header(value) else set()
            return [
                (self._secret if at in hidden else self.value)(item, step(pointer, at))
                for at, item in enumerate(value)
            ]
        return value

    def _dict(self, value: Dict, pointer: str) -> Dict:
        redacted: Dict = {}
        hidden = "value" if names_secret(value) else None
        for key, item in value.items():
            shown = self._key(key, redacted, pointer)
            alter = self._secret if key == hidden or is_secret_member(key, item) else self.value
            redacted[shown] = alter(item, step(pointer, shown))
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
        self._manifest.add(step(pointer, name), rule.reason, rule.action)
        return name

    def _secret(self, value: Any, pointer: str) -> Any:
        """Mask all text below a key that is named like a secret."""
        if isinstance(value, str) and value and value != MASK:
            self._manifest.add(pointer, "secret", "masked")
            return MASK
        if isinstance(value, list):
            return [self._secret(item, step(pointer, at)) for at, item in enumerate(value)]
        if isinstance(value, dict):
            redacted: Dict = {}
            for key, item in value.items():
                shown = self._key(key, redacted, pointer)
                redacted[shown] = self._secret(item, step(pointer, shown))
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
