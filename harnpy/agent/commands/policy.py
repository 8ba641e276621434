"""A command policy: what it says, as a dict of a program and as it is in force. Spec: 02 §28."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from harnpy.agent.commands.labels import LABELS
from harnpy.agent.rules.roots import NOWHERE, common_roots
from harnpy.faults import MisuseError
from harnpy.reading.option_tables import expected
from harnpy.text.display import display, type_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harnpy.reading.dicts import Dict

    #: Gets the context of a command, and returns a decision in one of the forms of 02 §28.
    Hook = Callable[[Dict], Any]

_Item = TypeVar("_Item")

TYPE = "command_policy"
ARGV_ONLY = "argv_only"

_LISTS = ("workspace_roots", "deny_patterns", "require_approval")
#: What each key must be, in the order in which messages list the keys.
_KINDS: Mapping[str, str] = {
    "tools": "list",
    "workspace_roots": "list",
    "default_shell_mode": "string",
    "deny_patterns": "list",
    "require_approval": "list",
    "pre": "closure",
    "post": "closure",
    "allow_recursive": "bool",
}
_TYPES: Mapping[str, type] = {"list": list, "string": str, "bool": bool}
_FUNCTIONS = ("closure", "builtin")


@dataclass(frozen=True, slots=True)
class CommandPolicy:
    """``workspace_roots`` None is the directory that commands run in.

    There is more than one hook where policies were `met`; they are called in order.
    """

    workspace_roots: tuple[str, ...] | None = None
    default_shell_mode: str = ARGV_ONLY
    deny_patterns: tuple[str, ...] = ()
    require_approval: tuple[str, ...] = ()
    pre: tuple[Hook, ...] = ()
    post: tuple[Hook, ...] = ()
    allow_recursive: bool = False

    def met(self, other: CommandPolicy) -> CommandPolicy:
        """Return the policy that lets a command run where both do."""
        if self == other:
            return self
        roots = common_roots(self.workspace_roots, other.workspace_roots)
        return CommandPolicy(
            (NOWHERE,) if roots == () else roots,
            other.default_shell_mode,
            _united(self.deny_patterns, other.deny_patterns),
            _united(self.require_approval, other.require_approval),
            _united(self.pre, other.pre),
            _united(self.post, other.post),
            self.allow_recursive and other.allow_recursive,
        )


def _united(first: tuple[_Item, ...], second: tuple[_Item, ...]) -> tuple[_Item, ...]:
    return tuple(dict.fromkeys(first + second))


def normalised(config: Any) -> Dict:
    """Return a config with its `_type` and every list. Raises `MisuseError`."""
    if config is None:
        raise MisuseError("command_policy: config dict is required")
    if not isinstance(config, dict):
        raise MisuseError("command_policy: config must be a dict")
    _check(config)
    given = {key: value for key, value in config.items() if value is not None}
    lists: Dict = {key: [] for key in _LISTS}
    return {"default_shell_mode": ARGV_ONLY, **lists, **given, "_type": TYPE}


def read_command_policy(given: Any, caller: str) -> CommandPolicy:
    """Return the policy in a config, normalised or not. Errors about what is no dict name ``caller``."""
    if not isinstance(given, dict):
        raise MisuseError(f"{caller}: command_policy must be a dict")
    read = normalised(given)
    return CommandPolicy(
        tuple(read["workspace_roots"]) or None,
        read["default_shell_mode"],
        tuple(read["deny_patterns"]),
        tuple(read["require_approval"]),
        _hooks(read.get("pre")),
        _hooks(read.get("post")),
        read.get("allow_recursive", False),
    )


def _hooks(hook: Hook | None) -> tuple[Hook, ...]:
    return () if hook is None else (hook,)


def _check(config: Dict) -> None:
    """Raise `MisuseError` for what isn't understood: it would forbid nothing."""
    for key, value in config.items():
        kind = _KINDS.get(key)
        if kind is None:
            if key != "_type":
                hint = expected(key, tuple(_KINDS))
                raise MisuseError(f"command_policy: unknown option key '{key}' ({hint})")
        elif value is not None:
            _check_kind(key, kind, value)
    for label in config.get("require_approval") or ():
        if label not in LABELS:
            hint = expected(label, LABELS)
            raise MisuseError(f"command_policy.require_approval: unknown risk label '{label}' ({hint})")


def _check_kind(key: str, kind: str, value: Any) -> None:
    is_function = type_name(value) in _FUNCTIONS
    fits = is_function if kind == "closure" else isinstance(value, _TYPES[kind])
    if not fits:
        raise MisuseError(f"command_policy.{key} must be a {kind}, got {type_name(value)}")
    odd = [item for item in value if not isinstance(item, str)] if kind == "list" else []
    if odd:
        raise MisuseError(f"command_policy.{key} entries must be strings, got {type_name(odd[0])}")


def command_policy_among(options: Mapping[str, Any]) -> Any:
    """Return the config among a loop's or a node's options: `command_policy`, else that of its `policy`."""
    own, policy = options.get(TYPE), options.get("policy")
    return policy.get(TYPE) if own is None and isinstance(policy, dict) else own


def given_command_policy(options: Mapping[str, Any], caller: str) -> CommandPolicy | None:
    """Return the policy among such options, None without any. Raises `MisuseError`."""
    given = command_policy_among(options)
    return None if given is None else read_command_policy(given, caller)


def without_command_policy(policy: Any) -> Any:
    """Return a capability policy without the command policy in it."""
    if not isinstance(policy, dict) or TYPE not in policy:
        return policy
    return {key: value for key, value in policy.items() if key != TYPE}


def with_hooks_as_texts(config: Any) -> Any:
    """Return a config to be written down. It is refused when it is read again: it would allow more."""
    if not isinstance(config, dict):
        return config
    return {key: display(value) if callable(value) else value for key, value in config.items()}
