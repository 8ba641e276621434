"""What a command writes, as a terminal of some width has it, or a pipe: in this process."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from io import StringIO

from harnpy.cli.main import main

CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Screen(StringIO):
    """Takes what is written, as a terminal or not."""

    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


class _Beside(StringIO):
    """Stderr: what is written to it stands among what stdout got. No terminal, as nothing moves there."""

    def __init__(self, screen: Screen) -> None:
        super().__init__()
        self.write = screen.write  # type: ignore[method-assign]


def shown(command: Sequence[str], width: int, is_terminal: bool = True) -> str:
    """Run a command; return all that it writes."""
    return written(lambda: main(list(command)), width, is_terminal)


def written(action: Callable[[], object], width: int, is_terminal: bool = True) -> str:
    """Return what something writes to stdout and stderr."""
    streams = sys.stdout, sys.stderr, sys.stdin
    size = {name: os.environ.get(name) for name in ("COLUMNS", "LINES")}
    os.environ.update(COLUMNS=str(width), LINES="60")
    screen = Screen(is_terminal)
    sys.stdout, sys.stderr, sys.stdin = screen, _Beside(screen), StringIO()
    try:
        action()
    except Exception as error:
        from harnpy.cli.console import report_failure

        report_failure(error)
    finally:
        sys.stdout, sys.stderr, sys.stdin = streams
        for name, value in size.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    return screen.getvalue()
