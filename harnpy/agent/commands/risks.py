"""The risks of a command, seen from its text alone. Pure. Spec: 02 §28.

A heuristic: what a text has no sign of may still be dangerous. `LABELS` are the signs that it knows.
"""

from __future__ import annotations

import os.path
import re
from typing import TYPE_CHECKING, NamedTuple

from harnpy.agent.commands import labels
from harnpy.agent.rules.roots import is_in
from harnpy.text.globs import glob_matches

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harnpy.reading.dicts import Dict

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
_DENIED = frozenset(
    (labels.DESTRUCTIVE, labels.CURL_PIPE_SHELL, labels.CREDENTIAL_FILE_READ, labels.NETWORK_EXFIL)
)
ALLOW, DENY, REQUIRE_APPROVAL = "allow", "deny", "require_approval"
_SURE, _UNSURE = 0.86, 0.45


class Command(NamedTuple):
    """``cwd`` and ``roots`` are absolute and normal."""

    text: str
    cwd: str
    roots: tuple[str, ...]


class Scan(NamedTuple):
    """What a scan found: ``labels`` are sorted, ``confidence`` is from 0 to 1."""

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


def scan(command: Command, deny_patterns: Iterable[str] = ()) -> Scan:
    """Return the risks of a command; ``deny_patterns`` are those of the policy that it is under."""
    found = risk_labels(command)
    if denied_by(deny_patterns, command.text) is not None:
        found = sorted([*found, labels.DENY_PATTERN])
    if not found:
        return Scan(ALLOW, (), _UNSURE)
    return Scan(REQUIRE_APPROVAL if _DENIED.isdisjoint(found) else DENY, tuple(found), _SURE)


def denied_by(patterns: Iterable[str], text: str) -> str | None:
    """Return the first pattern that is found in a text: its parts between stars, in their order."""
    return next((pattern for pattern in patterns if glob_matches(f"*{pattern}*", text)), None)


def risk_labels(command: Command) -> list[str]:
    """Return the labels of a command, sorted."""
    text = _SPACES.sub(" ", command.text.lower())
    words = frozenset(word.rpartition("/")[2] for word in _BETWEEN_WORDS.split(text))
    has: Mapping[str, bool] = {
        labels.CREDENTIAL_FILE_READ: not words.isdisjoint(_READERS) and _any(labels.CREDENTIAL_WORDS, text),
        labels.CURL_PIPE_SHELL: not words.isdisjoint(_DOWNLOADERS) and _pipes_into_a_shell(text),
        labels.DESTRUCTIVE: _any(_DESTRUCTIVE, text),
        labels.GIT_FORCE_PUSH: "git push" in text and ("--force" in text or "-f" in words),
        labels.NETWORK_EXFIL: not words.isdisjoint(_SENDERS),
        labels.OUTSIDE_WORKSPACE: _leaves(command),
        labels.PACKAGE_INSTALL: _INSTALL.search(text) is not None,
        labels.PROCESS_KILL: not words.isdisjoint(_KILLERS),
        labels.SUDO: "sudo" in words,
        labels.WRITE_INTENT: "tee" in words or _any(_WRITING, text),
    }
    return sorted(label for label, found in has.items() if found)


def _any(signs: Iterable[str], text: str) -> bool:
    return any(sign in text for sign in signs)


def _pipes_into_a_shell(text: str) -> bool:
    return "|" in text and _any(_SHELLS, text.replace("|", "| "))


def _leaves(command: Command) -> bool:
    """Whether a command works outside its workspace, or names an absolute path that is outside."""
    paths = (command.cwd, *_ABSOLUTE.findall(command.text))
    return not all(any(is_in(_normal(path), root) for root in command.roots) for path in paths)


def _normal(path: str) -> str:
    return os.path.normpath("/" + path.lstrip("/"))
