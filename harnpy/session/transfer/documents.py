"""Documents that hold a session: JSON, JSON5 and YAML, and a part of one by its path. Spec: 10 §A2.7."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from harnpy.session.errors import TransferError

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.world import World

JSON, YAML = "JSON", "YAML"


def read_text(text: str, language: str) -> Any:
    """Return the value of a text in `JSON` (JSON5, too) or `YAML`. Raises ValueError."""
    return _READERS[language](text)


def load_document(
    path_or_text: str, language: str, world: World, *, part: str | None = None, encoding: str = "utf-8"
) -> Any:
    """Return the value of a file, or of a text that is no file's path; ``part`` is a dot path into it.

    Raises `TransferError` for what can't be read, OSError.
    """
    path_or_text = path_or_text_of(path_or_text)
    is_file = "\n" not in path_or_text and world.files.is_file(path_or_text)
    what = f"file '{path_or_text}'" if is_file else "content or file path not existed"
    try:
        text = world.files.read_bytes(path_or_text).decode(encoding) if is_file else path_or_text
        document = read_text(text, language)
    except ValueError as error:
        raise TransferError(f"Cannot load {language} {what}.\nError: {_said(error)}") from None
    return part_of(document, part)


def _said(error: ValueError) -> str:
    return "this is no text in its encoding" if isinstance(error, UnicodeError) else str(error)


def path_or_text_of(given: Any) -> str:
    """Return what names a file, or is what a file may hold. Raises `TransferError` for anything else."""
    named = given.__fspath__() if hasattr(given, "__fspath__") else given
    if not isinstance(named, str):
        raise TransferError(f"a session is read from a text or a file's path, got {type(given).__name__}")
    return named


def part_of(document: Any, path: str | None) -> Any:
    """Return the part at a dot path, all of it for None. Raises `TransferError` when there is none."""
    found = document
    for key in path.split(".") if path else ():
        if not isinstance(found, dict) or key not in found:
            raise TransferError(f"there is no '{path}' in the document: '{key}' is missing")
        found = found[key]
    return found


def _json(text: str) -> Any:
    """JSON5 is slow, and seldom: plain JSON is tried first."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        import json5
    except ImportError:
        raise ValueError("this isn't plain JSON; to read JSON5, pip install 'harnpy[import]'") from None
    try:
        return json5.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("this is neither JSON nor JSON5") from None


def _yaml(text: str) -> Any:
    from harnpy.formats.yaml import parse_yaml

    return parse_yaml(text)


_READERS: dict[str, Callable[[str], Any]] = {JSON: _json, YAML: _yaml}


def write_text(value: Any, language: str) -> str:
    """Return the text of a JSON value, its keys in their order."""
    if language == JSON:
        plain = json.dumps(value, indent=2, ensure_ascii=False)
        # Readers of JSON5 take these two for ends of lines, also within a text.
        return plain.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029") + "\n"
    import yaml

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        """Writes what is there twice twice: other readers know no anchors."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    text: str = yaml.dump(value, Dumper=Dumper, allow_unicode=True, sort_keys=False)
    return text
