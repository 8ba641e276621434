"""What manifests and the command line ask of the linter. Spec: 03 §1, 09 §12."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from harnpy.check.lint.rules import RULES
from harnpy.check.lint.settings import ALIASES, COMPLEXITY, Settings
from harnpy.cli.console import complain
from harnpy.cli.manifest_tables import Manifests
from harnpy.text.spell import hint

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
    """The settings of each file: what the command line asks for, on top of the manifest's."""

    def __init__(
        self,
        *,
        enabled: Collection[str] = (),
        selected: Collection[str] = (),
        disabled: Collection[str] = (),
    ) -> None:
        self._enabled = enabled
        self._selected = selected
        self._disabled = disabled
        self._manifests = Manifests()
        self._complained: set[str] = set()

    def of(self, file: Path) -> Settings:
        """The settings that hold for a file."""
        disabled = self._value(file, "lint", "disabled") + self._value(file, "check", "disable_rules")
        for name in disabled:
            if name not in NAMES:
                what = f"harn.toml disables the lint rule `{name}`, which isn't one"
                self._warn(f"{what}; {hint(name, NAMES)}")
        header = ("require-file-header",) if self._value(file, "lint", "require_file_header") else ()
        return Settings(
            disabled=(*disabled, *self._disabled),
            enabled=(*header, *self._enabled),
            selected=self._selected,
            complexity=self._value(file, "lint", "complexity_threshold"),
        )

    def _value(self, file: Path, table: str, key: str) -> Any:
        """What a manifest says, or the default where it says nothing that could be meant."""
        default, wanted = _KEYS[key]
        value = self._manifests.table(table, str(file)).get(key, default)
        if type(value) is type(default) and (
            not isinstance(value, list) or all(isinstance(one, str) for one in value)
        ):
            return value
        self._warn(f"[{table}] of harn.toml: `{key}` must be {wanted}, not {value!r}")
        return default

    def _warn(self, message: str) -> None:
        """Say it once, however many files it holds for."""
        if message not in self._complained:
            self._complained.add(message)
            complain(f"warning: {message}")

    def strict(self, file: Path) -> bool:
        """Whether warnings fail the command."""
        return self._manifests.table("check", str(file)).get("strict") is True
