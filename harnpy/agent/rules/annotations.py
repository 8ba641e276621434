"""What a tool declares about itself: its side effects, which arguments are paths. Spec: 07 §4.6, 08 §6.4."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

READ_ONLY_KINDS = frozenset({"read", "search", "think", "fetch"})

#: What each kind of tool may change; other kinds count as ``other``.
_MUTATION_CLASSES = {
    **dict.fromkeys(READ_ONLY_KINDS, "read_only"),
    "edit": "workspace_write",
    "delete": "destructive",
    "move": "destructive",
    "execute": "ambient_side_effect",
}

NETWORK = "network"
LEVELS = ("none", "read_only", "workspace_write", "process_exec", NETWORK)


def rank(level: str) -> int:
    """Return how far the effects of a side-effect level reach; an unknown level reaches furthest."""
    return LEVELS.index(level) if level in LEVELS else len(LEVELS)


@dataclass(frozen=True, slots=True)
class Annotations:
    """``path_params`` are the arguments that name files; ``arg_aliases`` other names for arguments."""

    kind: str = "other"
    side_effect_level: str = "none"
    path_params: tuple[str, ...] = ()
    arg_aliases: Mapping[str, str] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    capabilities: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    emits_artifacts: bool = False
    result_readers: tuple[str, ...] = ()
    inline_result: bool = False

    @property
    def read_only(self) -> bool:
        return self.kind in READ_ONLY_KINDS

    @property
    def mutation_class(self) -> str:
        return _MUTATION_CLASSES.get(self.kind, "other")


def read_annotations(given: Any) -> Annotations | None:
    """Return the annotations in a dict, None unless given one. The argument keys may also be top-level."""
    if not isinstance(given, dict):
        return None
    schema = given.get("arg_schema")
    arguments = {**given, **schema} if isinstance(schema, dict) else given
    aliases = arguments.get("arg_aliases")
    capabilities = given.get("capabilities")
    return Annotations(
        kind=_text(given.get("kind"), "other"),
        side_effect_level=_text(given.get("side_effect_level"), "none"),
        path_params=strings(arguments.get("path_params")) or (),
        arg_aliases=aliases if isinstance(aliases, dict) else {},
        required=strings(arguments.get("required")) or (),
        capabilities=operations(capabilities) or {},
        emits_artifacts=bool(given.get("emits_artifacts")),
        result_readers=strings(given.get("result_readers")) or (),
        inline_result=bool(given.get("inline_result")),
    )


def strings(given: Any) -> tuple[str, ...] | None:
    """Return a list of strings; None for anything else."""
    if isinstance(given, list) and all(isinstance(item, str) for item in given):
        return tuple(given)
    return None


def operations(given: Any) -> dict[str, tuple[str, ...]] | None:
    """Return ``{capability: [operations]}``; None for anything else."""
    if not isinstance(given, dict):
        return None
    read = {capability: strings(names) for capability, names in given.items()}
    known = {capability: names for capability, names in read.items() if names is not None}
    return known if len(known) == len(read) else None


def _text(given: Any, default: str) -> str:
    return given if isinstance(given, str) and given else default
