"""When documents are linted: while nothing comes from the client, in a thread of its own. Spec: 12 §3.1.

Threads share one interpreter: the linter stops for each message, and begins again some time after the last.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from harnpy.lsp.advice import Advice
from harnpy.lsp.linting import Abandoned, Linter, question

if TYPE_CHECKING:
    from harnpy.check.findings import Finding
    from harnpy.lsp.document import Document
    from harnpy.lsp.linting import Question
    from harnpy.lsp.workspace import Workspace

log = logging.getLogger("harnpy.lsp")

#: How long nothing must have come, in seconds.
IDLE = 0.3


class IdleLinting:
    """``workspace`` returns the one that there is now; ``publish`` takes a document that has been linted.

    All methods are called in the thread of a running event loop.
    """

    def __init__(
        self,
        workspace: Callable[[], Workspace],
        publish: Callable[[Document], None],
        seconds: float = IDLE,
    ) -> None:
        self._workspace = workspace
        self._publish = publish
        self._seconds = seconds
        self._waiting: set[str] = set()
        self._linter = Linter()
        self._thread = ThreadPoolExecutor(1, "harnpy-lint")
        self._timer: asyncio.TimerHandle | None = None
        self._is_working = self._is_wanted = self._collects = False

    def changed(self, uri: str) -> None:
        """Lint a document, or lint it again, as soon as there is time."""
        self._waiting.add(uri)
        self.later()

    def later(self) -> None:
        """Stop, since a message has come, and begin some time after it."""
        self._is_wanted = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting and not self._is_working:
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._begin)

    def close(self) -> None:
        """Lint nothing more."""
        self._is_wanted = False
        self._waiting.clear()
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _begin(self) -> None:
        """Lint the next document that is still open."""
        workspace = self._workspace()
        document = None
        while self._waiting and document is None:
            uri = min(self._waiting)
            self._waiting.discard(uri)
            document = workspace.documents.get(uri)
        if document is None:
            return
        self._is_working = self._is_wanted = True
        # A collection in that thread would hold up this one for as long as it takes.
        self._collects = gc.isenabled()
        gc.disable()
        asked, loop = question(workspace, document), asyncio.get_running_loop()
        work = loop.run_in_executor(self._thread, self._linter.findings, asked, lambda: self._is_wanted)
        work.add_done_callback(lambda done: self._done(document.uri, asked, done))

    def _done(self, uri: str, asked: Question, done: asyncio.Future[list[Finding]]) -> None:
        """Take what was found, unless the text is another one by now; go on with the next document."""
        self._is_working = False
        if self._collects:
            gc.enable()
        was_wanted = self._is_wanted
        document = self._workspace().documents.get(uri)
        if done.cancelled():
            return
        error = done.exception()
        if isinstance(error, Abandoned):
            self._waiting.add(uri)
        elif error is not None:
            log.error("%s could not be linted", uri, exc_info=error)
        elif document is not None and document.source == asked.source:
            document.advice = Advice(document.source, document.items, done.result())
            self._publish(document)
        if was_wanted:
            self._begin()
        else:
            self.later()
