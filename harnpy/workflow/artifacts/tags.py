"""Tagged text for models. Spec: 08 §5.4."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def tagged(name: str, body: str) -> str:
    """Put ``body`` on lines of its own between two tags; it may contain tags itself."""
    return f"<{name}>\n{body}\n</{name}>"


def lines_of(fields: Mapping[str, Any]) -> list[str]:
    """Return a line for each field, its value escaped."""
    return [f"<{key}>{escaped(str(value))}</{key}>" for key, value in fields.items()]


def rendered_artifact(fields: Mapping[str, Any], body: str) -> str:
    """Render an artifact: its fields, then its body, which isn't escaped."""
    return tagged("artifact", "\n".join([*lines_of(fields), tagged("body", body)]))
