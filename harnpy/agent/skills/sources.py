"""Skills in files: which directories are searched, and which of two equal ids wins. Spec: 07 §13.1.

An unusable file is left out with a warning.
"""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.agent.skills.frontmatter import UnusableSkill, read_skill_file
from harnpy.agent.skills.library import FoundSkill
from harnpy.agent.skills.skill_registry import id_of
from harnpy.project import MANIFEST
from harnpy.text.toml.reader import parse_toml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from harnpy.reading.dicts import Dict
    from harnpy.world.files import Files


#: Highest first.
LAYERS = ("cli", "env", "project", "manifest", "user", "package", "system", "host")

FILE = "SKILL.md"


class Source(NamedTuple):
    """A directory that may hold skills; ``layer`` is one of `LAYERS`."""

    layer: str
    directory: str
    namespace: str | None = None


class Manifest(NamedTuple):
    """The part of `harn.toml` about skills."""

    sources: tuple[Source, ...] = ()
    lookup_order: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()


def discover(
    files: Files, root: str | None, places: Iterable[tuple[str, str]], warn: Callable[[str], object]
) -> list[FoundSkill]:
    """Return the skills in some places, given as layer and directory, and in those of ``root``'s `harn.toml`.

    They are sorted by id. The `package` layer is a directory of packages.
    """
    manifest = Manifest() if root is None else read_manifest(files, root, warn)
    found: dict[str, FoundSkill] = {}
    for source in _ordered([*_sources(files, places), *manifest.sources], manifest):
        for skill in _skills_of(files, source, warn):
            found.setdefault(id_of(skill.entry), skill)
    return [found[id] for id in sorted(found)]


def _ordered(sources: Iterable[Source], manifest: Manifest) -> list[Source]:
    """Return the sources, the highest layer first, without those that the manifest disables."""
    named = [layer for layer in manifest.lookup_order if layer in LAYERS]
    order = list(dict.fromkeys((*named, *LAYERS)))
    enabled = [source for source in sources if source.layer not in manifest.disabled]
    return sorted(enabled, key=lambda source: order.index(source.layer))


def _sources(files: Files, places: Iterable[tuple[str, str]]) -> Iterator[Source]:
    for layer, directory in places:
        if layer != "package":
            yield Source(layer, directory)
            continue
        for name in _names(files, directory):
            if name.endswith("/"):
                yield Source(layer, os.path.join(directory, name, "skills"))


def read_manifest(files: Files, root: str, warn: Callable[[str], object]) -> Manifest:
    """Return the part of ``root``'s `harn.toml` about skills; an empty one when there is none."""
    path = os.path.join(root, MANIFEST)
    try:
        text = files.read_text(path)
        if "skill" not in text:
            return Manifest()
        given = parse_toml(text)
    except FileNotFoundError:
        return Manifest()
    except (OSError, ValueError) as error:
        warn(f"{path}: {error}")
        return Manifest()
    skills = _table(given.get("skills"))
    listed = [Source("manifest", os.path.join(root, place)) for place in _strings(skills.get("paths"))]
    declared = _table(given.get("skill")).get("source")
    for source in declared if isinstance(declared, list) else []:
        place, namespace = _table(source).get("path"), _table(source).get("namespace")
        if _table(source).get("type") != "fs" or not isinstance(place, str):
            warn(f"{path}: [[skill.source]] of type {_table(source).get('type')!r} can't be read")
            continue
        listed.append(
            Source("manifest", os.path.join(root, place), namespace if isinstance(namespace, str) else None)
        )
    order, disabled = _strings(skills.get("lookup_order")), _strings(skills.get("disable"))
    return Manifest(tuple(listed), tuple(order), tuple(disabled))


def _skills_of(files: Files, source: Source, warn: Callable[[str], object]) -> Iterator[FoundSkill]:
    """Return the skills in a directory, which is one itself or contains some."""
    names = _names(files, source.directory)
    if source.layer == "cli" and not names:
        warn(f"{source.directory}: no skills here")
    places: Iterable[str] = (name.rstrip("/") for name in names if name.endswith("/"))
    directories = [os.path.join(source.directory, place) for place in places]
    for directory in [source.directory] if FILE in names else directories:
        path = os.path.join(directory, FILE)
        try:
            yield _read(files, path, source, warn)
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError, UnusableSkill) as error:
            warn(f"{path}: {error.strerror if isinstance(error, OSError) else error}")


def _read(files: Files, path: str, source: Source, warn: Callable[[str], object]) -> FoundSkill:
    directory = os.path.normpath(os.path.dirname(path))
    text = files.read_text(path)
    read = read_skill_file(text, os.path.basename(directory))
    entry = {**read.fields, "source": source.layer, "provenance": _provenance(text)}
    if source.namespace:
        entry["namespace"] = source.namespace
    if read.unknown:
        warn(f"{id_of(entry)} has unknown frontmatter fields: {', '.join(read.unknown)}")
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


def _table(given: Any) -> Dict:
    return given if isinstance(given, dict) else {}


def _strings(given: Any) -> list[str]:
    return [item for item in given if isinstance(item, str)] if isinstance(given, list) else []
