"""What manifests ask of the linter, with what a command asks on top of it. Spec: 03 §1, 09 §12."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from harnpy.check.lint.rules import RULES
from harnpy.check.lint.settings import ALIASES, COMPLEXITY, Settings
from harnpy.formats.manifest import Manifests
from harnpy.formats.suggestions import hint

#: What a rule may be called.
NAMES = (*(rule.id for rule in RULES), *ALIASES)

#: By key of the manifest, its default and what it has to be.
_KEYS: dict[str, tuple[Any, str]] = {
    "disabled": ([], "a list of rules"),
    "disable_rules": ([], "a list of rules"),
    "require_file_header": (False, "true or false"),
    "complexity_threshold": (COMPLEXITY, "an integer"),
}


class LintSettings:
    """The settings of each file: what the caller asks for, on top of the manifest's."""

    def __init__(
        self,
        manifests: Manifests,
        *,
        enabled: Collection[str] = (),
        selected: Collection[str] = (),
        disabled: Collection[str] = (),
    ) -> None:
        self._manifests = manifests
        self._enabled = enabled
        self._selected = selected
        self._disabled = disabled

    def of(self, file: str) -> Settings:
        """Return the settings that hold for a file."""
        disabled = self._value(file, "lint", "disabled") + self._value(file, "check", "disable_rules")
        for name in disabled:
            if name not in NAMES:
                what = f"harn.toml disables the lint rule `{name}`, which isn't one"
                self._manifests.warn(f"{what}; {hint(name, NAMES)}")
        header = ("require-file-header",) if self._value(file, "lint", "require_file_header") else ()
        return Settings(
            disabled=(*disabled, *self._disabled),
            enabled=(*header, *self._enabled),
            selected=self._selected,
            complexity=self._value(file, "lint", "complexity_threshold"),
        )

    def strict(self, file: str) -> bool:
        """Return whether warnings fail the command."""
        return self._manifests.table("check", file).get("strict") is True

    def _value(self, file: str, table: str, key: str) -> Any:
        """Return a value of the manifest, or the default where it has none that could be meant."""
        default, wanted = _KEYS[key]
        value = self._manifests.table(table, file).get(key, default)
        if type(value) is type(default) and (
            not isinstance(value, list) or all(isinstance(one, str) for one in value)
        ):
            return value
        self._manifests.warn(f"[{table}] of harn.toml: `{key}` must be {wanted}, not {value!r}")
        return default
