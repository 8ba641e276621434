"""Runs in a library's own environment: asks it what it is told on standard input, a line of JSON each.

    python -P bench/probes/child.py bench/probes/libraries/NAME.py

A driver has one function, ``ask(dialect, url, model, messages, look)``: it sends a conversation by the
library's public API, lets the model use the tool `look` and returns what the library says of the first reply:
its ``text``, ``thinking``, the word why it ended (``finish``) and its tokens, ``input`` and ``output``. What
the library has no means for is a `NotImplementedError`.
"""

import json
import logging
import os
import runpy
import sys
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from typing import Any


def main(path: str) -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    answers, sys.stdout = sys.stdout, sys.stderr
    driver: Any = None
    for line in sys.stdin:
        ran: list[str] = []
        with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
            try:
                driver = driver or runpy.run_path(path)["ask"]
                answer = {"said": driver(**json.loads(line), look=tool(ran))}
            except Exception as error:
                answer = {"said": {}, "error": type(error).__name__, "why": str(error)[:500]}
        answer["said"]["ran"] = ran
        print(json.dumps(answer, default=str), file=answers, flush=True)


def tool(ran: list[str]) -> Callable[..., str]:
    """Return the tool; it notes what it was run with."""

    def look(what: str = "everything") -> str:
        """Look at something.

        Args:
            what: what to look at
        """
        ran.append(what)
        return "seen"

    return look


if __name__ == "__main__":
    main(sys.argv[1])
