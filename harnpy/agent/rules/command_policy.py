"""Command policies: what a program says, which one is in force, and the risks seen from a command's text.

The risks are a heuristic: what a text has no sign of may still be dangerous. `LABELS` are the signs it knows.
Spec: 02 §28.
"""

from __future__ import annotations

import os.path
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from harnpy.agent.rules.policy_paths import NOWHERE, common_roots, is_in
from harnpy.faults import MisuseError, paced
from harnpy.formats.display import display, type_name
from harnpy.formats.globs import glob_matches
from harnpy.formats.options import expected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from harnpy.formats.dicts import Dict

    #: Gets the context of a command, and returns a decision in one of the forms of 02 §28.
    Hook = Callable[[Dict], Any]

CREDENTIAL_FILE_READ = "credential_file_read"
CURL_PIPE_SHELL = "curl_pipe_shell"
DENY_PATTERN = "deny_pattern"
DESTRUCTIVE = "destructive"
GIT_FORCE_PUSH = "git_force_push"
NETWORK_EXFIL = "network_exfil"
OUTSIDE_WORKSPACE = "outside_workspace"
PACKAGE_INSTALL = "package_install"
PROCESS_KILL = "process_kill"
SUDO = "sudo"
WRITE_INTENT = "write_intent"

#: Those of commands, in the order in which scans and messages list them.
LABELS = (
    CREDENTIAL_FILE_READ,
    CURL_PIPE_SHELL,
    DENY_PATTERN,
    DESTRUCTIVE,
    GIT_FORCE_PUSH,
    NETWORK_EXFIL,
    OUTSIDE_WORKSPACE,
    PACKAGE_INSTALL,
    PROCESS_KILL,
    SUDO,
    WRITE_INTENT,
)

CREDENTIAL_OUTPUT = "credential_output"
ERROR_OUTPUT = "error_output"
PERMISSION_BOUNDARY_HIT = "permission_boundary_hit"

#: Words that tell of credentials, in paths and in what commands print.
CREDENTIAL_WORDS = (
    ".env", "id_rsa", "id_ed25519", ".aws/credentials", ".npmrc", ".netrc", "credentials", "secret", "token",
    "api_key", "apikey",
)  # fmt: skip


_READERS = frozenset("cat less head tail grep".split())
_DOWNLOADERS = frozenset("curl wget".split())
_SENDERS = frozenset("curl wget scp rsync nc ncat".split())
_KILLERS = frozenset("kill pkill killall".split())
_DESTRUCTIVE = ("rm -rf /", "rm -fr /", "mkfs", "dd if=", ":(){", "chmod -r 777 /", "chown -r ")
_WRITING = (" >", ">>", "sed -i", "perl -pi", "truncate ")
_SHELLS = (" sh", " bash", " zsh")

_SPACES = re.compile(r"\s+")
_BETWEEN_WORDS = re.compile(r"[\s;|&()<>{}`$\"'=,]+")
_INSTALL = re.compile(r"\b(?:npm|pip|cargo|brew|apt|apt-get) install\b|\b(?:pnpm|yarn) add\b")
#: An absolute path, where it isn't the rest of a longer one, of a URL or of a variable.
_ABSOLUTE = re.compile(r"(?:^|(?<![\w./:~*)}\-]))/[^\s;|&()<>{}`\"'$,]*")

#: With one of these labels a command should be denied, with any other one somebody should be asked.
_DENIED = frozenset((DESTRUCTIVE, CURL_PIPE_SHELL, CREDENTIAL_FILE_READ, NETWORK_EXFIL))
ALLOW, DENY, REQUIRE_APPROVAL = "allow", "deny", "require_approval"
_SURE, _UNSURE = 0.86, 0.45


class Command(NamedTuple):
    """``cwd`` and ``roots`` are absolute and normal."""

    text: str
    cwd: str
    roots: tuple[str, ...]


class Scan(NamedTuple):
    """The findings of a scan: ``labels`` are sorted, ``confidence`` is from 0 to 1."""

    action: str
    labels: tuple[str, ...]
    confidence: float

    @property
    def rationale(self) -> str:
        return f"found: {', '.join(self.labels)}" if self.labels else "no known risk found"

    def as_dict(self) -> Dict:
        return {
            "action": self.action,
            "recommended_action": self.action,
            "risk_labels": list(self.labels),
            "confidence": self.confidence,
            "rationale": self.rationale,
        }


def scan_command(command: Command, deny_patterns: Iterable[str] = ()) -> Scan:
    """Return the risks of a command; ``deny_patterns`` are those of the policy that it is under."""
    found = risk_labels(command)
    if denying_pattern(deny_patterns, command.text) is not None:
        found = sorted([*found, DENY_PATTERN])
    if not found:
        return Scan(ALLOW, (), _UNSURE)
    return Scan(REQUIRE_APPROVAL if _DENIED.isdisjoint(found) else DENY, tuple(found), _SURE)


def denying_pattern(patterns: Iterable[str], text: str) -> str | None:
    """Return the first pattern that is found in a text: its parts between stars, in their order."""
    return next((pattern for pattern in patterns if glob_matches(f"*{pattern}*", text)), None)


def risk_labels(command: Command) -> list[str]:
    """Return the labels of a command, sorted."""
    text = _SPACES.sub(" ", command.text.lower())
    words = frozenset(word.rpartition("/")[2] for word in paced(_BETWEEN_WORDS.split(text)))
    has: Mapping[str, bool] = {
        CREDENTIAL_FILE_READ: not words.isdisjoint(_READERS) and _any(CREDENTIAL_WORDS, text),
        CURL_PIPE_SHELL: not words.isdisjoint(_DOWNLOADERS) and _pipes_into_a_shell(text),
        DESTRUCTIVE: _any(_DESTRUCTIVE, text),
        GIT_FORCE_PUSH: "git push" in text and ("--force" in text or "-f" in words),
        NETWORK_EXFIL: not words.isdisjoint(_SENDERS),
        OUTSIDE_WORKSPACE: _leaves(command),
        PACKAGE_INSTALL: _INSTALL.search(text) is not None,
        PROCESS_KILL: not words.isdisjoint(_KILLERS),
        SUDO: "sudo" in words,
        WRITE_INTENT: "tee" in words or _any(_WRITING, text),
    }
    return sorted(label for label, found in has.items() if found)


def _any(signs: Iterable[str], text: str) -> bool:
    return any(sign in text for sign in signs)


def _pipes_into_a_shell(text: str) -> bool:
    return "|" in text and _any(_SHELLS, text.replace("|", "| "))


def _leaves(command: Command) -> bool:
    """Return True if a command works outside its workspace, or names an absolute path outside."""
    paths = (command.cwd, *_ABSOLUTE.findall(command.text))
    return not all(any(is_in(_normal(path), root) for root in command.roots) for path in paths)


def _normal(path: str) -> str:
    return os.path.normpath("/" + path.lstrip("/"))


#: How much of each output is looked at, in characters.
_LOOKED_AT = 8192
MARK_UNSAFE = "mark_unsafe"
_OUTPUT_SURE, _OUTPUT_UNSURE = 0.82, 0.35

_SIGNS: Mapping[str, tuple[str, ...]] = {
    CREDENTIAL_OUTPUT: CREDENTIAL_WORDS,
    ERROR_OUTPUT: ("fatal:", "error:"),
    PERMISSION_BOUNDARY_HIT: ("permission denied", "operation not permitted"),
}


def scan_result(result: Any) -> Scan:
    """Return what the `stdout` and `stderr` of a result tell; one that is no dict tells nothing."""
    outputs = (result.get(key) for key in ("stdout", "stderr")) if isinstance(result, dict) else ()
    text = "\n".join("" if output is None else display(output)[:_LOOKED_AT] for output in outputs).lower()
    found = tuple(sorted(label for label, signs in _SIGNS.items() if any(sign in text for sign in signs)))
    action = MARK_UNSAFE if CREDENTIAL_OUTPUT in found else ALLOW
    return Scan(action, found, _OUTPUT_SURE if found else _OUTPUT_UNSURE)


_Item = TypeVar("_Item")

COMMAND_POLICY_TYPE = "command_policy"
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


def normalised_command_policy(config: Any) -> Dict:
    """Return a config with its `_type` and every list. Raises `MisuseError`."""
    if config is None:
        raise MisuseError("command_policy: config dict is required")
    if not isinstance(config, dict):
        raise MisuseError("command_policy: config must be a dict")
    _check(config)
    given = {key: value for key, value in config.items() if value is not None}
    lists: Dict = {key: [] for key in _LISTS}
    return {"default_shell_mode": ARGV_ONLY, **lists, **given, "_type": COMMAND_POLICY_TYPE}


def read_command_policy(given: Any, caller: str) -> CommandPolicy:
    """Return the policy in a config, normalised or not. Errors about what is no dict name ``caller``."""
    if not isinstance(given, dict):
        raise MisuseError(f"{caller}: command_policy must be a dict")
    read = normalised_command_policy(given)
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
    own, policy = options.get(COMMAND_POLICY_TYPE), options.get("policy")
    return policy.get(COMMAND_POLICY_TYPE) if own is None and isinstance(policy, dict) else own


def given_command_policy(options: Mapping[str, Any], caller: str) -> CommandPolicy | None:
    """Return the policy among such options, None without any. Raises `MisuseError`."""
    given = command_policy_among(options)
    return None if given is None else read_command_policy(given, caller)


def without_command_policy(policy: Any) -> Any:
    """Return a capability policy without the command policy in it."""
    if not isinstance(policy, dict) or COMMAND_POLICY_TYPE not in policy:
        return policy
    return {key: value for key, value in policy.items() if key != COMMAND_POLICY_TYPE}


def with_hooks_as_texts(config: Any) -> Any:
    """Return a config to be written down. It is refused when it is read again: it would allow more."""
    if not isinstance(config, dict):
        return config
    return {key: display(value) if callable(value) else value for key, value in config.items()}


# Which command policy holds in a task. Spec: 02 §28.
#
# Only the innermost one does. What begins inside (a loop, a stage, a task, a hook) begins with it, and can
# remove no policy but those that it pushes itself.


@dataclass(frozen=True, slots=True)
class Commands:
    """``outer`` held already where this began, ``pushed`` since, innermost last. ``in_hook``: the hook of a
    policy runs."""

    outer: CommandPolicy | None = None
    pushed: tuple[CommandPolicy, ...] = ()
    in_hook: bool = False

    @property
    def policy(self) -> CommandPolicy | None:
        """The one that holds."""
        return self.pushed[-1] if self.pushed else self.outer

    def push(self, policy: CommandPolicy) -> Commands:
        return replace(self, pushed=(*self.pushed, policy))

    def pop(self) -> Commands:
        return replace(self, pushed=self.pushed[:-1])

    def inside(self, policy: CommandPolicy | None = None) -> Commands:
        """Return what holds in something that begins here, with a policy of its own or without."""
        if policy is None and not self.pushed:
            return self
        return Commands(self.policy if policy is None else policy, (), self.in_hook)

    def in_a_hook(self) -> Commands:
        return Commands(self.policy, (), True)

    def met(self, other: Commands) -> Commands:
        """Return what lets a command run where both do."""
        first, second = self.policy, other.policy
        policy = first.met(second) if first is not None and second is not None else first or second
        return Commands(policy, (), self.in_hook or other.in_hook)


NO_COMMANDS = Commands()
