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
        table = self._manifests.table("lint", str(file))
        disabled = _texts(table.get("disabled")) + _texts(self._check(file).get("disable_rules"))
        for name in disabled:
            if name not in NAMES and name not in self._complained:
                self._complained.add(name)
                what = f"harn.toml disables the lint rule `{name}`, which isn't one"
                complain(f"warning: {what}; {hint(name, NAMES)}")
        header = ("require-file-header",) if table.get("require_file_header") is True else ()
        complexity = table.get("complexity_threshold")
        return Settings(
            disabled=(*disabled, *self._disabled),
            enabled=(*header, *self._enabled),
            selected=self._selected,
            complexity=complexity if type(complexity) is int else COMPLEXITY,
        )

    def strict(self, file: Path) -> bool:
        """Whether warnings fail the command."""
        return self._check(file).get("strict") is True

    def _check(self, file: Path) -> dict[str, Any]:
        return self._manifests.table("check", str(file))


def _texts(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
