"""What a session is told of the place where it begins. Spec: 10 §A1.17, §C7."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.session.parts.arguments import items

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.world.files import Files


def bootstrap_text(cwd: str, files: Iterable[str], tools: Iterable[str]) -> str:
    """Return the text that names the working directory, the files in it, sorted, and the tools."""
    lines = [f"Working directory: {cwd}"]
    for title, names in (("Files:", sorted(items("files", files))), ("Tools:", list(items("tools", tools)))):
        if names:
            lines += [title, *(f"- {name}" for name in names)]
    return "\n".join(lines)


def files_in(directory: str, files: Files) -> list[str]:
    """Return the names in a directory; those of directories end in ``/``."""
    return [f"{entry.name}/" if entry.is_dir else entry.name for entry in files.entries(directory)]
