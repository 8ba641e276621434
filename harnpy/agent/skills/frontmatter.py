"""`SKILL.md`: YAML between two lines ``---``, followed by the body. Spec: 07 §13.1."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.reading.dicts import Dict


_STRINGS = tuple(
    "name short description when_to_use context agent model effort shell argument_hint".split(),
)
_LISTS = ("allowed_tools", "paths", "trusted_signers")
_FLAGS = ("disable_model_invocation", "user_invocable", "require_signature")
_KNOWN = frozenset((*_STRINGS, *_LISTS, *_FLAGS, "hooks"))

#: Characters of a header.
_LONGEST = 64 * 1024
_OPENER = re.compile(r"\ufeff?(?:[ \t]*\r?\n)*---[ \t]*\r?\n")
_CLOSER = re.compile(r"^---[ \t]*(?:\r?\n|\Z)", re.MULTILINE)


class UnusableSkill(Exception):
    """The file isn't a skill; ``str()`` says why."""


class SkillFile(NamedTuple):
    """``fields`` are the known ones that are set, ``unknown`` the names of the others, as written."""

    fields: Dict
    unknown: list[str]
    body: str


def read_skill_file(text: str, directory_name: str) -> SkillFile:
    """Return the skill in a file's text; its name defaults to its directory's. Raises `UnusableSkill`."""
    header, body = split(text)
    given = _mapping(header)
    named = {key.replace("-", "_"): value for key, value in given.items()}
    unknown = sorted(key for key in given if key.replace("-", "_") not in _KNOWN)
    fields: Dict = {}
    for key in _STRINGS:
        fields[key] = _string(key, named.get(key))
    for key in _LISTS:
        fields[key] = _strings(key, named.get(key))
    for key in _FLAGS:
        fields[key] = _flag(key, named.get(key))
    fields["hooks"] = _hooks(named.get("hooks"))
    if not (fields["short"] or "").strip():
        raise UnusableSkill("SKILL.md frontmatter requires a non-empty `short` field")
    fields["name"] = fields["name"] or directory_name
    fields["description"] = fields["description"] or fields["short"]
    return SkillFile({key: value for key, value in fields.items() if value}, unknown, body)


def split(text: str) -> tuple[str, str]:
    """Return the frontmatter, "" when there is none, and the body."""
    opener = _OPENER.match(text)
    closer = _CLOSER.search(text, opener.end()) if opener else None
    if opener is None or closer is None:
        return "", text
    return text[opener.end() : closer.start()], text[closer.end() :]


def _mapping(header: str) -> Dict:
    from harnpy.text.yaml.reader import parse_yaml

    if len(header) > _LONGEST:
        raise UnusableSkill(f"invalid YAML frontmatter: longer than {_LONGEST} characters")
    try:
        given = parse_yaml(header, aliases=False)
    except ValueError as error:
        raise UnusableSkill(f"invalid YAML frontmatter: {error}") from error
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise UnusableSkill("SKILL.md frontmatter must be a mapping")
    return given


def _string(key: str, given: Any) -> str | None:
    if given is None or isinstance(given, str):
        return given
    if isinstance(given, dict | list):
        raise UnusableSkill(f"frontmatter field `{key}` must be a string")
    return str(given).lower() if isinstance(given, bool) else str(given)


def _strings(key: str, given: Any) -> list[str]:
    if given is None:
        return []
    items: Iterable[Any] = given if isinstance(given, list) else [given]
    if not all(isinstance(item, str) for item in items):
        raise UnusableSkill(f"frontmatter field `{key}` must be a list of strings")
    return list(items)


def _flag(key: str, given: Any) -> bool:
    if given is None or isinstance(given, bool):
        return bool(given)
    raise UnusableSkill(f"frontmatter field `{key}` must be true or false")


def _hooks(given: Any) -> Dict:
    """Return the commands by event; in a list they are ``{event, command}``."""
    if given is None:
        return {}
    if isinstance(given, dict):
        return {str(event): command for event, command in given.items()}
    if isinstance(given, list) and all(isinstance(item, dict) for item in given):
        pairs = [
            (item.get("event", item.get("name")), item.get("command", item.get("run"))) for item in given
        ]
        if all(isinstance(part, str) for pair in pairs for part in pair):
            return dict(pairs)
    raise UnusableSkill("frontmatter field `hooks` must be a mapping, or a list of {event, command}")
