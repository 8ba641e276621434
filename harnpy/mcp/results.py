"""What programs get of a server's results. Spec: 07 §15.1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.mcp.errors import ToolError
from harnpy.reading.lenient import as_dicts
from harnpy.text.display import display

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict


def tool_result(result: Dict) -> Any:
    """Return a tool's one text, nil without content, else the list of contents. Raises `ToolError`."""
    content = result.get("content") or []
    if result.get("isError") is True:
        texts = [str(block.get("text", "")) for block in as_dicts(content) if block.get("type") == "text"]
        raise ToolError("\n".join(texts) if texts else display(result))
    match content:
        case []:
            return None
        case [{"type": "text", "text": str(text)}]:
            return text
    return content


def resource_content(result: Dict) -> Any:
    """Return a resource's one text, nil without contents, else the list of contents."""
    match result.get("contents") or []:
        case []:
            return None
        case [{"text": str(text)}]:
            return text
        case contents:
            return contents
