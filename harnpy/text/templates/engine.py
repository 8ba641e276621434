"""Renders a template: parse, then run the nodes. Spec: 04 §23.1."""

from __future__ import annotations

from harnpy.text.templates.nodes import render_all
from harnpy.text.templates.parser import parse
from harnpy.text.templates.rendering import Rendering

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from harnpy.text.templates.operations import Operations
    from harnpy.text.templates.rendering import Node
    from harnpy.world.files import Files


def render(
    source: str,
    bindings: dict[str, Any],
    directory: str,
    files: Files,
    operations: Operations,
    records: bool = False,
) -> Rendering:
    """Return the rendered template that lies in ``directory``. Raises `TemplateError`."""

    def parsed(text: str, where: str) -> Sequence[Node]:
        return parse(text, where, operations)

    run = Rendering(files, directory, operations, parsed, records)
    render_all(parsed(source, directory), run, bindings)
    return run
