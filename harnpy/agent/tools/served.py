"""The tools that the runtime itself answers: files to read, plans to show. Spec: 07 §6.7, §14.2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harnpy.agent.workplace import Workplace
    from harnpy.reading.dicts import Dict
    from harnpy.world.files import Files


FILE_TOOLS = ("read_file", "list_directory")
#: Other names of their arguments: rules, too, know them by one.
FILE_ALIASES = {"read_file": {"name": "path"}}
PLAN_TOOLS = ("emit_plan", "update_plan")

_MOST_LINES = 2000


def file_tool(files: Files, workplace: Workplace, name: str, arguments: Dict) -> str:
    """Return the result of `read_file` or `list_directory`; a failure is a text that starts ``Error:``."""
    run = _read_file if name == "read_file" else _list_directory
    return run(files, workplace, arguments)


def _read_file(files: Files, workplace: Workplace, arguments: Dict) -> str:
    path = arguments.get("path")
    if not isinstance(path, str) or not path:
        return "Error: missing path parameter"
    try:
        text = files.read_text(workplace.path(path))
    except IsADirectoryError:
        return _list_directory(files, workplace, {"path": path})
    except (OSError, ValueError) as error:
        return f"Error: cannot read file '{path}': {_reason(error)}"
    return _numbered(text, arguments.get("offset"), arguments.get("limit"))


def _list_directory(files: Files, workplace: Workplace, arguments: Dict) -> str:
    path = arguments.get("path")
    path = path if isinstance(path, str) and path else "."
    try:
        return "\n".join(files.list_dir(workplace.path(path)))
    except (OSError, ValueError) as error:
        return f"Error: cannot list directory '{path}': {_reason(error)}"


def _numbered(text: str, offset: Any, limit: Any) -> str:
    """Return the lines from the 1-based ``offset`` on, with their numbers."""
    lines = text.removesuffix("\n").split("\n") if text else []
    first = max(offset, 1) if type(offset) is int else 1
    most = min(max(limit, 1), _MOST_LINES) if type(limit) is int else _MOST_LINES
    end = min(first - 1 + most, len(lines))
    shown = [f"{number}\t{line}" for number, line in enumerate(lines[first - 1 : end], first)]
    left = len(lines) - end
    if left > 0:
        shown.append(f"[... {left} more lines not shown. Use offset={end + 1} to continue reading]")
    return "\n".join(shown)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
