"""What is asked of the linter: `[lint]` and `[check]` of a manifest, options of the command. Spec: 03 §1."""

from __future__ import annotations

from collections.abc import Collection

#: Rules by the names that they have had.
ALIASES = {"unreachable-code": "dead-code-after-return"}

COMPLEXITY = 25


class Settings:
    """``disabled`` rules are silent; of ``enabled`` ones those that aren't on by default speak too.

    ``selected``: these alone are looked for. ``complexity``: the highest cyclomatic complexity of a function
    that is let pass.
    """

    __slots__ = ("complexity", "disabled", "enabled", "selected")

    def __init__(
        self,
        *,
        disabled: Collection[str] = (),
        enabled: Collection[str] = (),
        selected: Collection[str] = (),
        complexity: int = COMPLEXITY,
    ) -> None:
        self.disabled = rule_names(disabled)
        self.enabled = rule_names(enabled)
        self.selected = rule_names(selected)
        self.complexity = complexity

    def wants(self, rule: str, default: bool) -> bool:
        """Return True if a rule is to be looked for; ``default``: whether it is unless somebody asks."""
        if rule in self.disabled:
            return False
        return rule in self.selected if self.selected else default or rule in self.enabled


def rule_names(names: Collection[str]) -> frozenset[str]:
    """The names of rules as they are now."""
    return frozenset(ALIASES.get(name, name) for name in names)
