"""Skills: instructions that a model receives when they apply, in registries and in `SKILL.md` files.

A skill is a plain dict, a registry a plain dict of skills. A skill found in a file leaves its body there
until somebody asks for it; an unusable file is left out with a warning. Spec: 07 §13.1.
"""

from __future__ import annotations

import os.path
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.agent.tool_registry import RegistryKind
from harnpy.faults import OptionError, look
from harnpy.formats.dicts import as_dict, as_text, as_texts
from harnpy.formats.manifest import manifest_of
from harnpy.formats.text_size import byte_length
from harnpy.project import MANIFEST
from harnpy.world.files import plain_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from harnpy.formats.dicts import Dict
    from harnpy.world import World
    from harnpy.world.files import Files

SKILLS = RegistryKind("skill")

_STRINGS = ("short", "description", "when_to_use", "prompt", "invocation", "model", "effort")
_LISTS = ("paths", "allowed_tools", "mcp", "requires_mcp")
_NAMESPACE = "namespace:"


def define_skill(registry: Any, name: Any, config: Any) -> Dict:
    """Return the registry with the skill added, or replaced if its name is taken. Raises `OptionError`."""
    entries = SKILLS.first_entries(registry, "skill_define")
    if not isinstance(name, str) or not name.strip():
        raise OptionError("skill_define: skill name must be a non-empty string")
    if config is not None and not isinstance(config, dict):
        raise OptionError("skill_define: third argument must be a config dict")
    skill = _entry(name, config or {})
    if any(entry["name"] == name for entry in entries):
        return SKILLS.registry_of(skill if entry["name"] == name else entry for entry in entries)
    return SKILLS.registry_of([*entries, skill])


def skill_id(entry: Dict) -> str:
    """Return a skill's name, with its namespace."""
    namespace = entry.get("namespace")
    return f"{namespace}/{entry['name']}" if isinstance(namespace, str) and namespace else entry["name"]


def description_of(entry: Dict) -> tuple[str, str]:
    """Return a skill's description and when to use it, "" for what it lacks."""
    return as_text(entry.get("description")) or "", as_text(entry.get("when_to_use")) or ""


def describe_skills(entries: Iterable[Dict]) -> str:
    """Return the skills of a registry as text for people."""
    lines = []
    for entry in sorted(entries, key=lambda entry: entry["name"]):
        lines += skill_lines(entry["name"], *description_of(entry))
    return "\n".join(["Available skills:", *(lines or ["(none)"])])


def skill_lines(shown: str, description: str, occasion: str) -> list[str]:
    """Return a skill's lines in a list of skills."""
    lines = [f"- {shown}: {description}" if description else f"- {shown}"]
    return [*lines, f"  when: {occasion}"] if occasion else lines


def _entry(name: str, config: Dict) -> Dict:
    unset = {key for key in (*_STRINGS, *_LISTS) if config.get(key) is None}
    given = {key: value for key, value in config.items() if key not in unset}
    for key in _STRINGS:
        if not isinstance(given.get(key, ""), str):
            raise OptionError(f"skill_define: '{key}' must be a string")
    for key in _LISTS:
        if not isinstance(given.get(key, []), list):
            raise OptionError(f"skill_define: '{key}' must be a list")
    for tool in given.get("allowed_tools", []):
        _check_tool(tool)
    return {"description": given.get("short", ""), **given, "name": name}


def _check_tool(tool: Any) -> None:
    if not isinstance(tool, str) or ":" not in tool:
        return
    if not tool.startswith(_NAMESPACE):
        raise OptionError(
            f"skill_define: 'allowed_tools' entry '{tool}' contains ':' — only the `namespace:<tag>` prefix "
            "is recognized"
        )
    if not tool.removeprefix(_NAMESPACE).strip():
        raise OptionError(f"skill_define: 'allowed_tools' entry '{tool}' missing a tag after the colon")


#: What filling in a placeholder costs, in items.
_FILLED = 16
SKILL_DIR, SESSION_ID = "HARN_SKILL_DIR", "HARN_SESSION_ID"

_HOLE = re.compile(r"\$(?:\$|ARGUMENTS|([0-9]+)|\{(HARN_[^}]*)\})")


def substituted(body: str, arguments: Sequence[str], variable: Callable[[str], str | None]) -> str:
    """Fill in `$ARGUMENTS`, `$1` … and `${HARN_…}`; a placeholder without a value stays."""

    def fill(hole: re.Match[str]) -> str:
        look(_FILLED)
        number, name = hole.groups()
        if name is not None:
            value = variable(name)
            return hole[0] if value is None else value
        if number is not None:
            index = int(number[-9:]) if len(number.lstrip("0")) < 10 else 0
            return arguments[index - 1] if 0 < index <= len(arguments) else hole[0]
        return "$" if hole[0] == "$$" else " ".join(arguments)

    return _HOLE.sub(fill, body)


def variables(
    env: Callable[[str], str | None], directory: str | None, session_id: str | None = None
) -> Callable[[str], str | None]:
    """Return the values of `${HARN_…}`. The session defaults to the environment's."""

    def value(name: str) -> str | None:
        if name == SKILL_DIR:
            return directory
        if name == SESSION_ID and session_id is not None:
            return session_id
        return env(name)

    return value


NO_SKILL_NAME = "load_skill: requires a non-empty skill name"
NO_SKILL_REGISTRY = (
    "load_skill: no skill registry is bound to this scope. Start the VM with discovered skills first."
)


class SkillNotFound(OptionError):
    """No skill, or more than one, has that name; ``str()`` is the sentence."""


class FoundSkill(NamedTuple):
    """A skill found in a file: its entry has no body."""

    entry: Dict
    body: str
    directory: str


class Library:
    """``entries`` are the available skills, ``found`` those of files, whose bodies it can read."""

    def __init__(
        self, entries: Sequence[Dict], found: Iterable[FoundSkill], env: Callable[[str], str | None]
    ) -> None:
        self.entries = entries
        self._found = {skill_id(skill.entry): skill for skill in found}
        self._env = env

    def find(self, name: str) -> Dict:
        """Return the skill with that id, else the one with that name. Raises `SkillNotFound`."""
        for entry in self.entries:
            if skill_id(entry) == name:
                return entry
        named = [entry for entry in self.entries if entry["name"] == name]
        if not named:
            raise SkillNotFound(f"skill '{name}' not found")
        if len(named) > 1:
            raise SkillNotFound(f"skill '{name}' is ambiguous; use the fully qualified id from the catalog")
        return named[0]

    def body(self, entry: Dict, *keys: str) -> str | None:
        """Return a skill's body: the first of ``keys`` that the entry has, else its file's body."""
        for key in keys:
            value = entry.get(key)
            if isinstance(value, str):
                return value
        found = self._found.get(skill_id(entry))
        return None if found is None else found.body

    def render(
        self, entry: Dict, body: str, arguments: Sequence[str] = (), session_id: str | None = None
    ) -> str:
        """Return the entry's ``body`` with its placeholders filled in."""
        found = self._found.get(skill_id(entry))
        directory = entry.get("skill_dir", None if found is None else found.directory)
        return substituted(body, arguments, variables(self._env, directory, session_id))


def found_registry(found: Iterable[FoundSkill]) -> Dict:
    """Return the registry of the found skills: the global `skills`."""
    return SKILLS.registry_of(skill.entry for skill in found)


CATALOG_BUDGET = 2000

_HEADER = (
    "## Available skills\n\n"
    "These skills are available. "
    'Call `load_skill({ name: "<skill-id>" })` to load the full body of a skill when it becomes relevant.\n\n'
)


def catalog_entries(skills: Iterable[Dict]) -> list[Dict]:
    """Return the catalogue's entry for each skill, by id."""
    entries = [_catalog_entry(skill) for skill in skills]
    return sorted(entries, key=lambda entry: entry["name"])


def render_catalog(entries: Sequence[Dict], budget: int = CATALOG_BUDGET) -> str:
    """Return the entries as a prompt's section of at most ``budget`` bytes; the rest is only counted."""
    blocks = [_block(entry) for entry in entries]
    budget = max(budget, byte_length(_HEADER + _omission(len(blocks))))
    kept = _fitting(blocks, budget)
    while len(kept) < len(blocks):
        text = _HEADER + "\n".join(kept) + _omission(len(blocks) - len(kept))
        if byte_length(text) <= budget:
            return text
        kept.pop()
    return _HEADER + ("\n".join(kept) or "(none)")


def _catalog_entry(skill: Dict) -> Dict:
    description, occasion = description_of(skill)
    short = skill.get("short")
    short = short if isinstance(short, str) else ""
    return {"name": skill_id(skill), "description": short or description, "when_to_use": occasion}


def _block(entry: Dict) -> str:
    shown = _catalog_entry(entry)
    return "\n".join(skill_lines(f"`{shown['name']}`", shown["description"], shown["when_to_use"]))


def _fitting(blocks: Sequence[str], budget: int) -> list[str]:
    kept: list[str] = []
    size = byte_length(_HEADER)
    for block in blocks:
        size += byte_length(block) + (1 if kept else 0)
        if size > budget:
            break
        kept.append(block)
    return kept


def _omission(count: int) -> str:
    return f"\n\n... {count} more skill(s) omitted to stay within budget."


# `SKILL.md`: YAML between two lines ``---``, followed by the body. Spec: 07 §13.1.


_FILE_STRINGS = tuple(
    "name short description when_to_use context agent model effort shell argument_hint".split(),
)
_FILE_LISTS = ("allowed_tools", "paths", "trusted_signers")
_FLAGS = ("disable_model_invocation", "user_invocable", "require_signature")
_KNOWN = frozenset((*_FILE_STRINGS, *_FILE_LISTS, *_FLAGS, "hooks"))

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
    header, body = split_frontmatter(text)
    given = _mapping(header)
    named = {key.replace("-", "_"): value for key, value in given.items()}
    unknown = sorted(key for key in given if key.replace("-", "_") not in _KNOWN)
    fields: Dict = {}
    for key in _FILE_STRINGS:
        fields[key] = _string(key, named.get(key))
    for key in _FILE_LISTS:
        fields[key] = _strings(key, named.get(key))
    for key in _FLAGS:
        fields[key] = _flag(key, named.get(key))
    fields["hooks"] = _hooks(named.get("hooks"))
    if not (fields["short"] or "").strip():
        raise UnusableSkill("SKILL.md frontmatter requires a non-empty `short` field")
    fields["name"] = fields["name"] or directory_name
    fields["description"] = fields["description"] or fields["short"]
    return SkillFile({key: value for key, value in fields.items() if value}, unknown, body)


def split_frontmatter(text: str) -> tuple[str, str]:
    """Return the frontmatter, "" when there is none, and the body."""
    opener = _OPENER.match(text)
    closer = _CLOSER.search(text, opener.end()) if opener else None
    if opener is None or closer is None:
        return "", text
    return text[opener.end() : closer.start()], text[closer.end() :]


def _mapping(header: str) -> Dict:
    from harnpy.formats.yaml import parse_yaml

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


# Skills in files: which directories are searched, and which of two equal ids wins. Spec: 07 §13.1.
#
# An unusable file is left out with a warning.


#: Highest first.
SKILL_LAYERS = ("cli", "env", "project", "manifest", "user", "package", "system", "host")

SKILL_FILE = "SKILL.md"


class SkillSource(NamedTuple):
    """A directory that may hold skills; ``layer`` is one of `LAYERS`."""

    layer: str
    directory: str
    namespace: str | None = None


class SkillManifest(NamedTuple):
    """The part of `harn.toml` about skills."""

    sources: tuple[SkillSource, ...] = ()
    lookup_order: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()


def discover_skills(
    world: World, root: str | None, places: Iterable[tuple[str, str]], warn: Callable[[str], object]
) -> list[FoundSkill]:
    """Return the skills in some places, given as layer and directory, and in those of ``root``'s `harn.toml`.

    They are sorted by id. The `package` layer is a directory of packages.
    """
    files = world.files
    manifest = SkillManifest() if root is None else read_manifest(world, root, warn)
    found: dict[str, FoundSkill] = {}
    for source in _ordered([*_sources(files, places), *manifest.sources], manifest):
        for skill in _skills_of(files, source, warn):
            found.setdefault(skill_id(skill.entry), skill)
    return [found[id] for id in sorted(found)]


def _ordered(sources: Iterable[SkillSource], manifest: SkillManifest) -> list[SkillSource]:
    """Return the sources, the highest layer first, without those that the manifest disables."""
    named = [layer for layer in manifest.lookup_order if layer in SKILL_LAYERS]
    order = list(dict.fromkeys((*named, *SKILL_LAYERS)))
    enabled = [source for source in sources if source.layer not in manifest.disabled]
    return sorted(enabled, key=lambda source: order.index(source.layer))


def _sources(files: Files, places: Iterable[tuple[str, str]]) -> Iterator[SkillSource]:
    for layer, directory in places:
        if layer != "package":
            yield SkillSource(layer, directory)
            continue
        for name in _names(files, directory):
            if name.endswith("/"):
                yield SkillSource(layer, os.path.join(directory, name, "skills"))


def read_manifest(world: World, root: str, warn: Callable[[str], object]) -> SkillManifest:
    """Return the part of ``root``'s `harn.toml` about skills; an empty one when there is none."""
    path = os.path.join(root, MANIFEST)
    try:
        if not world.files.is_file(path) or "skill" not in world.files.read_text(path):
            return SkillManifest()
        manifest = manifest_of(world, root)
        given = manifest.tables
    except (OSError, ValueError) as error:
        warn(f"{path}: {plain_reason(error)}")
        return SkillManifest()
    refusal = manifest.refusal("skills", "skill")
    if refusal is not None:
        warn(refusal.message)
    skills = as_dict(given.get("skills"))
    listed = [SkillSource("manifest", os.path.join(root, place)) for place in as_texts(skills.get("paths"))]
    declared = as_dict(given.get("skill")).get("source")
    for source in declared if isinstance(declared, list) else []:
        place, namespace = as_dict(source).get("path"), as_dict(source).get("namespace")
        if as_dict(source).get("type") != "fs" or not isinstance(place, str):
            warn(f"{path}: [[skill.source]] of type {as_dict(source).get('type')!r} can't be read")
            continue
        listed.append(
            SkillSource(
                "manifest", os.path.join(root, place), namespace if isinstance(namespace, str) else None
            )
        )
    order, disabled = as_texts(skills.get("lookup_order")), as_texts(skills.get("disable"))
    return SkillManifest(tuple(listed), tuple(order), tuple(disabled))


def _skills_of(files: Files, source: SkillSource, warn: Callable[[str], object]) -> Iterator[FoundSkill]:
    """Return the skills in a directory, which is one itself or contains some."""
    names = _names(files, source.directory)
    if source.layer == "cli" and not names:
        warn(f"{source.directory}: no skills here")
    places: Iterable[str] = (name.rstrip("/") for name in names if name.endswith("/"))
    directories = [os.path.join(source.directory, place) for place in places]
    for directory in [source.directory] if SKILL_FILE in names else directories:
        path = os.path.join(directory, SKILL_FILE)
        if not files.is_file(path):
            continue
        try:
            yield _read(files, path, source, warn)
        except (OSError, UnicodeDecodeError, UnusableSkill) as error:
            warn(f"{path}: {plain_reason(error)}")


def _read(files: Files, path: str, source: SkillSource, warn: Callable[[str], object]) -> FoundSkill:
    directory = os.path.normpath(os.path.dirname(path))
    text = files.read_text(path)
    read = read_skill_file(text, os.path.basename(directory))
    entry = {**read.fields, "source": source.layer, "provenance": _provenance(text)}
    if source.namespace:
        entry["namespace"] = source.namespace
    if read.unknown:
        warn(f"{skill_id(entry)} has unknown frontmatter fields: {', '.join(read.unknown)}")
    return FoundSkill(entry, read.body, directory)


def _provenance(text: str) -> Dict:
    import hashlib

    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
    return {
        "skill_sha256": digest,
        "signed": False,
        "trusted": False,
        "status": "unsigned",
        "signature_path": None,
    }


def _names(files: Files, directory: str) -> list[str]:
    try:
        return files.list_dir(directory)
    except OSError:
        return []
