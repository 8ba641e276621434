"""What a project's `harn.toml` says about a store. Spec: 10 §C6, §C22."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, Any

from harnpy.project import MANIFEST, ManifestError
from harnpy.text.spell import hint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harnpy.reading.kinds import Kind
    from harnpy.world.files import Files

#: Stores whose URL is a path.
_PATHS = ("sqlite", "jsonl")


def placed(url: str, directory: str) -> str:
    """Return the URL with a path that counts from ``directory`` made absolute."""
    scheme, _, path = url.partition(":")
    if scheme not in _PATHS or path.startswith(":"):
        return url
    return f"{scheme}:{os.path.join(directory, path)}"


def manifest_section(
    files: Files, root: str | None, name: str, known: Mapping[str, tuple[Kind, str]], what: str
) -> dict[str, Any]:
    """Return the section ``name`` of the manifest in ``root``, {} without one.

    ``known`` are its keys, each with the kind of its value and an example. Raises `ManifestError`, which
    says that ``what`` can't be read, or which key is wrong.
    """
    from harnpy.text.toml.reader import parse_toml

    if root is None:
        return {}
    path = os.path.join(root, MANIFEST)
    try:
        text = files.read_text(path)
        section = parse_toml(text).get(name, {}) if name in text else {}
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ManifestError(f"failed to read {what}: {reason}", path) from None
    if not isinstance(section, dict):
        raise ManifestError(f"`{name}` must be a table", path)
    for key, value in section.items():
        if key not in known:
            raise ManifestError(f"`[{name}]` has no key `{key}`", path, hint(key, known))
        kind, example = known[key]
        problem = kind(value)
        if problem is not None:
            raise ManifestError(f"`{key}` of `[{name}]` {problem}", path, example)
    return section
