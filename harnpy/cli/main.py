"""argv to exit status. Spec: 09 §1.1.

`run` is dispatched here, by hand: its start-up is part of every script's, and a command-line
framework alone takes longer to import than a small program takes to run.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn


#: Modules that have something to do afterwards: threads to wait for, a profile to show, a debugger's prompt.
_LATER = frozenset(("threading", "_lsprof", "bdb"))


def entry() -> NoReturn:
    """The console script."""
    try:
        status = main(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (`| head`) has gone. Python would flush stdout once more at exit, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    leave(status)


def leave(status: int) -> NoReturn:
    """End the process without finalizing the interpreter, which takes an eighth of a small program's time.

    Everything observable is done first: exit functions, other threads, buffers.
    """
    import atexit

    if not _LATER.isdisjoint(sys.modules):
        sys.exit(status)
    atexit._run_exitfuncs()
    sys.stderr.flush()
    os._exit(status)


def main(argv: Sequence[str]) -> int:
    """Run one command line and return the exit status. `harnpy FILE.harn` is `harnpy run FILE.harn`."""
    if len(argv) == 1 and argv[0].endswith(".harn"):
        argv = ("run", *argv)
    if argv and argv[0] == "run":
        from harnpy.cli.commands import run

        return run.main(argv[1:])
    from harnpy.cli import app

    return app.main(argv)
