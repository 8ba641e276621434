"""What sessions need from the world outside, in one place: time, ids, text of a value, a place for warnings.

The defaults are the real ones, for use as a library. A VM hands in its host's, so that a run can be
mocked, recorded and replayed.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


_RFC3339 = (
    r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[Tt ]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?"
    r"([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)"
)


def uuid7() -> str:
    """A UUIDv7 as text. Imports `uuid6` on the first call: it costs more than all of a short program."""
    from uuid6 import uuid7 as mint

    return str(mint())


def warn(topic: str, message: str) -> None:
    import logging

    logging.getLogger(topic).warning("%s", message)


def to_json(value: Any, pretty: bool = False) -> str:
    """JSON with sorted keys: compact, or over several lines with two spaces to a level."""
    import json

    if pretty:
        return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, default=str)
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False, default=str)


def as_data(value: Any) -> Any:
    """A value as JSON has it."""
    return parse_json(to_json(value))


def parse_json(text: str) -> Any:
    """The value of a JSON text. Raises ValueError."""
    import json

    return json.loads(text)


def read_text(path: str) -> str:
    """The text of a UTF-8 file as it is. Raises OSError and UnicodeDecodeError."""
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


def write_text(path: str, text: str, append: bool = False, durable: bool = False) -> None:
    """Write a UTF-8 file, or add to it; its directory is made if need be. Raises OSError.

    What is written ``durable`` is on the disk when this returns.
    """
    make_directory(os.path.dirname(path) or ".")
    with open(path, "a" if append else "w", encoding="utf-8", errors="surrogatepass", newline="") as file:
        file.write(text)
        if durable:
            file.flush()
            os.fsync(file.fileno())


def make_directory(path: str) -> None:
    """Make a directory and those above it; one that is there is fine. Raises OSError."""
    os.makedirs(path, exist_ok=True)


class Effects:
    """What the functions of this module do, or whatever the caller hands in instead.

    Beside them: ``now() -> epoch seconds``, ``new_id() -> UUIDv7 text``, ``show(value) -> its display``,
    ``warn(topic, message)``, ``cwd() -> absolute directory``, ``env(name) -> text or None``,
    ``exists(path)``, ``rename(path, new)`` which replaces what is there.
    """

    __slots__ = (
        "as_data", "cwd", "env", "exists", "make_directory", "new_id", "now", "parse_json", "read_text",
        "rename", "show", "to_json", "warn", "write_text",
    )  # fmt: skip

    def __init__(
        self,
        now: Callable[[], float] = time.time,
        new_id: Callable[[], str] = uuid7,
        show: Callable[[Any], str] = str,
        warn: Callable[[str, str], None] = warn,
        cwd: Callable[[], str] = os.getcwd,
        env: Callable[[str], str | None] = os.environ.get,
        to_json: Callable[..., str] = to_json,
        parse_json: Callable[[str], Any] = parse_json,
        read_text: Callable[[str], str] = read_text,
        write_text: Callable[..., None] = write_text,
        make_directory: Callable[[str], None] = make_directory,
        rename: Callable[[str, str], None] = os.replace,
        exists: Callable[[str], bool] = os.path.exists,
        as_data: Callable[[Any], Any] = as_data,
    ) -> None:
        self.now = now
        self.new_id = new_id
        self.show = show
        self.warn = warn
        self.cwd = cwd
        self.env = env
        self.to_json = to_json
        self.parse_json = parse_json
        self.read_text = read_text
        self.write_text = write_text
        self.make_directory = make_directory
        self.rename = rename
        self.exists = exists
        self.as_data = as_data


def system_reason(error: Exception) -> str:
    """What the system has to say of a file or program that it can't read, write or start."""
    if isinstance(error, OSError) and error.errno is not None:
        return f"{error.strerror} (os error {error.errno})"
    return "stream did not contain valid UTF-8" if isinstance(error, UnicodeError) else str(error)


def rfc3339(seconds: float, digits: int = 3) -> str:
    """Epoch seconds as RFC 3339 in UTC with that many decimals, e.g. ``2026-01-31T09:15:02.114Z``."""
    unit = 10**digits
    whole, fraction = divmod(round(seconds * unit), unit)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{fraction:0{digits}d}Z"


def is_rfc3339(text: str) -> bool:
    """Whether ``text`` is a date and a time with an offset, as RFC 3339 has them."""
    import re

    return re.fullmatch(_RFC3339, text, re.ASCII) is not None
