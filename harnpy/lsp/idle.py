"""When documents are linted: while nothing comes from the client. Spec: 12 §3.1.

The thread that handles the messages does it, step by step: it stops as soon as a message has come, and begins
again some time after the last one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from harnpy.lsp.advice import Advice
from harnpy.lsp.linting import Abandoned, Linter, question

if TYPE_CHECKING:
    from harnpy.lsp.document import Document
    from harnpy.lsp.workspace import Workspace

log = logging.getLogger("harnpy.lsp")

#: How long nothing must have come, in seconds.
QUIET = 0.3


class IdleLinting:
    """``workspace`` returns the one that there is now; ``publish`` takes a document that has been linted."""

    def __init__(self, workspace: Callable[[], Workspace], publish: Callable[[Document], None]) -> None:
        self._workspace = workspace
        self._publish = publish
        self._waiting: set[str] = set()
        self._linter = Linter()

    @property
    def is_waiting(self) -> bool:
        """Whether there is a document to lint."""
        return bool(self._waiting)

    def changed(self, uri: str) -> None:
        """Lint a document, or lint it again, as soon as there is time."""
        self._waiting.add(uri)

    def work(self, undisturbed: Callable[[], bool]) -> None:
        """Lint the documents that wait, one after the other, as long as nothing else is to be done."""
        while self._waiting and undisturbed():
            uri = min(self._waiting)
            document = self._workspace().documents.get(uri)
            try:
                if document is not None:
                    self._lint(document, undisturbed)
            except Abandoned:
                return
            except Exception:
                log.exception("%s could not be linted", uri)
            self._waiting.discard(uri)

    def _lint(self, document: Document, undisturbed: Callable[[], bool]) -> None:
        found = self._linter.findings(question(self._workspace(), document), undisturbed)
        document.advice = Advice(document.source, document.items, found)
        self._publish(document)
