"""The files that a conversation's tools have read and modified, over all its summaries. Spec: 10 §A1.17."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    Message = dict[str, Any]

_READ = frozenset({"read", "read_file", "view"})
_MODIFIED = frozenset({"write", "write_file", "edit", "edit_file", "apply_patch", "delete_file"})
_PATHS = ("path", "file_path", "file")
_BLOCK = "<{0}>\n{1}\n</{0}>"


def files_of(messages: Sequence[Message]) -> list[str]:
    """Return the blocks that name the files: ``<read-files>``, ``<modified-files>``, as far as there are any.

    A file both read and modified counts as modified.
    """
    read, modified = _listed(messages, "read-files"), _listed(messages, "modified-files")
    for name, path in _calls(messages):
        if name in _READ:
            read.add(path)
        elif name in _MODIFIED:
            modified.add(path)
    blocks = (("read-files", read - modified), ("modified-files", modified))
    return [_BLOCK.format(name, "\n".join(sorted(paths))) for name, paths in blocks if paths]


def _listed(messages: Iterable[Message], name: str) -> set[str]:
    """Return the files that earlier summaries name."""
    pattern = re.compile(rf"^<{name}>\n(.*?)\n</{name}>$", re.DOTALL | re.MULTILINE)
    texts = (message.get("content") for message in messages if message.get("role") == "user")
    summaries = (text for text in texts if isinstance(text, str) and "<conversation_summary>" in text)
    return {path for text in summaries for found in pattern.findall(text) for path in found.split("\n")}


def _calls(messages: Iterable[Message]) -> Iterator[tuple[str, str]]:
    """Yield the tool's name and the path of each call that names one."""
    for message in messages:
        listed, content = message.get("tool_calls"), message.get("content")
        calls = [*(listed if isinstance(listed, list) else ())]
        calls += content if isinstance(content, list) else ()
        for call in calls:
            name, arguments = _parts(call)
            path = next((arguments[key] for key in _PATHS if isinstance(arguments.get(key), str)), None)
            if name and path:
                yield name, path


def _parts(call: Any) -> tuple[str | None, dict[str, Any]]:
    if not isinstance(call, dict):
        return None, {}
    function = call.get("function")
    said = function if isinstance(function, dict) else call
    name, given = said.get("name"), said.get("arguments", said.get("input"))
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            given = None
    return (name if isinstance(name, str) else None), (given if isinstance(given, dict) else {})
