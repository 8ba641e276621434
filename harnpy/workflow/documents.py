"""Reading documents: the value in a file. Spec: 08 §8.2, §8.7."""

from __future__ import annotations

import os.path
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from harnpy.faults import MisuseError
from harnpy.text.json.reader import parse_json
from harnpy.world.files import system_reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.world import World


T = TypeVar("T")


def read_document(path: str, what: str, world: World, parse: Callable[[str], Any] | None = None) -> Any:
    """Return the value in a file: JSON, unless ``parse`` reads another format.

    Raise `MisuseError`: ``failed to read <what>: …``, or ``failed to parse <what>: …`` if ``parse`` raises
    ValueError.
    """
    try:
        text = world.files.read_text(os.path.join(world.files.cwd(), path))
    except (OSError, ValueError) as error:
        raise MisuseError(f"failed to read {what}: {system_reason(error)}") from error
    try:
        return (parse or parse_json)(text)
    except ValueError as error:
        raise MisuseError(f"failed to parse {what}: {error}") from error


def names_its_file(read: Callable[[str, World], T]) -> Callable[[str, World], T]:
    """Add the file's path as a note to what a reader raises, whose texts don't name the file."""

    @wraps(read)
    def reading(path: str, world: World) -> T:
        try:
            return read(path, world)
        except MisuseError as error:
            error.add_note(path)
            raise

    return reading
