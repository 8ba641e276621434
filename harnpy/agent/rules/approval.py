"""Which calls are approved, which are denied, and which a human decides. Spec: 07 §8.2, 08 §6.4."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from harnpy.agent.rules.fields import policy_fields
from harnpy.agent.rules.paths import LEXICAL
from harnpy.text.globs import common, first_match

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harnpy.agent.rules.annotations import Annotations
    from harnpy.agent.rules.paths import Paths


_FIELDS = dict.fromkeys(
    ("auto_approve", "auto_deny", "require_approval", "write_path_allowlist"), "list of strings"
)


class Verdict(Enum):
    """A call that is neither approved nor left to a human is denied, with a reason."""

    APPROVED = "approved"
    ASK = "ask"


@dataclass(frozen=True, slots=True)
class ApprovalPolicy:
    """Lists of patterns. None is a missing list; an allow-list that nesting emptied is ().

    ``path_allowlists`` are those of all policies that were intersected, each of which a path must match: by
    their text, patterns of paths don't show what they have in common. Empty are those of this one.
    """

    auto_approve: tuple[str, ...] | None = None
    auto_deny: tuple[str, ...] = ()
    require_approval: tuple[str, ...] = ()
    write_path_allowlist: tuple[str, ...] | None = None
    path_allowlists: tuple[tuple[str, ...], ...] = field(default=(), compare=False)

    def evaluate(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        annotations: Annotations | None,
        paths: Paths = LEXICAL,
    ) -> Verdict | str:
        """Return the verdict on a call of the task with these ``paths``, or why it is denied."""
        pattern = first_match(self.auto_deny, tool)
        if pattern is not None:
            return f"tool '{tool}' matches deny pattern '{pattern}'"
        path = self._forbidden_path(arguments, annotations, paths)
        if path is not None:
            return f"tool '{tool}' targets '{path}' which is not in the write-path allowlist"
        if first_match(self.auto_approve or (), tool) is not None:
            return Verdict.APPROVED
        return Verdict.APPROVED if first_match(self.require_approval, tool) is None else Verdict.ASK

    def _forbidden_path(
        self, arguments: Mapping[str, Any], annotations: Annotations | None, paths: Paths
    ) -> str | None:
        if annotations is None or annotations.read_only:
            return None
        given = [arguments[name] for name in annotations.path_params if arguments.get(name) is not None]
        refused = (paths.refused(allowed, value) for allowed in self._all_allowlists() for value in given)
        return next((path for path in refused if path is not None), None)

    def _all_allowlists(self) -> tuple[tuple[str, ...], ...]:
        own = self.write_path_allowlist
        return self.path_allowlists or (() if own is None else (own,))

    def intersect(self, inner: ApprovalPolicy) -> ApprovalPolicy:
        """Return the policy that enforces both."""
        return ApprovalPolicy(
            _narrowed(self.auto_approve, inner.auto_approve),
            _joined(self.auto_deny, inner.auto_deny),
            _joined(self.require_approval, inner.require_approval),
            _narrowed(self.write_path_allowlist, inner.write_path_allowlist),
            self._all_allowlists() + inner._all_allowlists(),
        )


def read_approval_policy(given: Any) -> ApprovalPolicy | None:
    """Return the policy in a dict; None without one. Raises `MisuseError` for one that isn't understood."""
    if given is None:
        return None
    fields = policy_fields(given, _FIELDS, "approval_policy")
    lists = {key: tuple(patterns or ()) for key, patterns in fields.items()}
    return ApprovalPolicy(
        lists["auto_approve"] or None,
        lists["auto_deny"],
        lists["require_approval"],
        lists["write_path_allowlist"] or None,
    )


def _narrowed(outer: tuple[str, ...] | None, inner: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if outer is None or inner is None:
        return inner if outer is None else outer
    return common(outer, inner)


def _joined(outer: tuple[str, ...], inner: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(outer + inner))
