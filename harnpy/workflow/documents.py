"""Documents in files: a text, and the value that it holds. Spec: 08 §8.2, §8.7."""

from __future__ import annotations

import os.path
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from harnpy.faults import MisuseError
from harnpy.session.effects import system_reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.session.effects import Effects


T = TypeVar("T")


def read_document(path: str, what: str, effects: Effects, parse: Callable[[str], Any] | None = None) -> Any:
    """The value in a file, which is JSON unless ``parse`` reads something else.

    Raises `MisuseError`: ``failed to read <what>: …``, or ``failed to parse <what>: …`` for a text of which
    ``parse`` raises ValueError.
    """
    try:
        text = effects.read_text(os.path.join(effects.cwd(), path))
    except (OSError, ValueError) as error:
        raise MisuseError(f"failed to read {what}: {system_reason(error)}") from error
    try:
        return (parse or effects.parse_json)(text)
    except ValueError as error:
        raise MisuseError(f"failed to parse {what}: {error}") from error


def names_its_file(read: Callable[[str, Effects], T]) -> Callable[[str, Effects], T]:
    """Add the file's path as a note to what a reader raises, whose texts don't name the file."""

    @wraps(read)
    def reading(path: str, effects: Effects) -> T:
        try:
            return read(path, effects)
        except MisuseError as error:
            error.add_note(path)
            raise

    return reading
