"""Documents that hold a session: JSON, JSON5 and YAML, and a part of one by its path. Spec: 10 §A2.7."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from harnpy.session.errors import TransferError

if TYPE_CHECKING:
    from collections.abc import Callable

JSON, YAML = "JSON", "YAML"


def read_text(text: str, language: str) -> Any:
    """Return the value of a text in `JSON` (JSON5, too) or `YAML`. Raises ValueError."""
    return _READERS[language](text)


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
    return json5.loads(text)


def _yaml(text: str) -> Any:
    from harnpy.text.yaml.reader import parse_yaml

    return parse_yaml(text)


_READERS: dict[str, Callable[[str], Any]] = {JSON: _json, YAML: _yaml}


def write_text(value: Any, language: str) -> str:
    """Return the text of a JSON value, its keys in their order."""
    if language == JSON:
        return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    import yaml

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        """Writes what is there twice twice: other readers know no anchors."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    text: str = yaml.dump(value, Dumper=Dumper, allow_unicode=True, sort_keys=False)
    return text
