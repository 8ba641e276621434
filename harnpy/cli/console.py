"""Output of every command: colour, plain failures, wrong usage. Spec: 09 §1.2–1.4."""

from __future__ import annotations

import os
import sys

from harnpy.cli import USAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

_CODES = {"red": "31", "green": "32", "bold": "1", "dim": "2"}

#: Control characters, except the line break, as visible symbols.
_CONTROLS = {
    **{code: chr(0x2400 + code) for code in range(0x20) if code != 0x0A},
    **dict.fromkeys(range(0x7F, 0xA0), "\N{REPLACEMENT CHARACTER}"),
}


def harmless(text: str) -> str:
    """Text without control characters, which any terminal can show."""
    return text.translate(_CONTROLS).encode("utf-8", "replace").decode()


def one_line(text: str) -> str:
    return harmless(text).replace("\n", " ")


def has_colour(stream: TextIO) -> bool:
    """True when `stream` is a terminal and NO_COLOR is not set."""
    return "NO_COLOR" not in os.environ and stream.isatty()


def paint(text: str, style: str, stream: TextIO) -> str:
    """`text` in a style such as ``"red"`` or ``"bold"`` where `stream` shows colour."""
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if has_colour(stream) else text


def say(text: str = "") -> None:
    """Write one line to stdout."""
    sys.stdout.write(text + "\n")


def complain(message: str) -> None:
    """Write one line to stderr."""
    sys.stderr.write(message + "\n")


def usage_error(message: str, usage: str) -> int:
    """Explain wrong usage of the command line and return its exit status."""
    complain(f"error: {message}\n\nUsage: {usage}\n\nFor more information, try '--help'.")
    return USAGE


def not_yet(option: str) -> str:
    """The message for an option that is specified but not built yet."""
    return f"`{option}` is not supported by this version of harnpy"
