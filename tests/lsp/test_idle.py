"""Documents are linted while nothing comes from the client. Spec: 12 §3.1."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from harnpy.lsp import idle
from harnpy.lsp.diagnostics import diagnostics
from harnpy.lsp.idle import IdleLinting
from harnpy.lsp.linting import Linter
from tests.lsp.conftest import Open, Opened

SOURCE = "fn f() {\n  let x = 1\n}\nf()\n"


class _Run:
    """A run of the linter over some documents; each publication is a list of codes."""

    def __init__(self, here: Opened, seconds: float = 0) -> None:
        self.published: list[tuple[str, list[str]]] = []
        self._happened = asyncio.Event()
        self.here = here

        def publish(document: object) -> None:
            codes = [str(each.code) for each in diagnostics(here.workspace, document)]  # type: ignore[arg-type]
            self.published.append((document.uri.rpartition("/")[2], codes))  # type: ignore[attr-defined]
            self._happened.set()

        self.linting = IdleLinting(lambda: here.workspace, publish, seconds)

    async def until(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            self._happened.clear()
            await asyncio.wait_for(self._happened.wait(), 60)


def test_each_document_is_linted_and_published(opened: Open) -> None:
    here = opened({"a.harn": SOURCE, "b.harn": SOURCE, "c.harn": "println(1)\n"})

    async def main() -> _Run:
        run = _Run(here)
        for uri in here.workspace.documents:
            run.linting.changed(uri)
        await run.until(lambda: len(run.published) == 3)
        run.linting.close()
        return run

    run = asyncio.run(main())
    assert run.published == [
        ("a.harn", ["unused-variable"]),
        ("b.harn", ["unused-variable"]),
        ("c.harn", []),
    ]


def test_it_stops_for_a_message_and_begins_again(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    here = opened(SOURCE)
    begun, go_on = threading.Event(), threading.Event()
    times = []

    class Slow(Linter):
        def findings(self, question, wanted=lambda: True):  # type: ignore[no-untyped-def]
            times.append(question.source)
            if len(times) == 1:
                begun.set()
                assert go_on.wait(60)
            return super().findings(question, wanted)

    monkeypatch.setattr(idle, "Linter", Slow)

    async def main() -> _Run:
        run = _Run(here)
        run.linting.changed(here.document.uri)
        while not begun.is_set():
            await asyncio.sleep(0)
        run.linting.later()
        go_on.set()
        await run.until(lambda: bool(run.published))
        run.linting.close()
        return run

    assert asyncio.run(main()).published == [("main.harn", ["unused-variable"])]
    assert times == [SOURCE, SOURCE]


def test_what_was_found_in_another_text_is_not_published(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = opened(SOURCE)
    begun, go_on = threading.Event(), threading.Event()

    class Slow(Linter):
        def findings(self, question, wanted=lambda: True):  # type: ignore[no-untyped-def]
            found = super().findings(question)
            if not begun.is_set():
                begun.set()
                assert go_on.wait(60)
            return found

    monkeypatch.setattr(idle, "Linter", Slow)

    async def main() -> _Run:
        run = _Run(here)
        run.linting.changed(here.document.uri)
        while not begun.is_set():
            await asyncio.sleep(0)
        text = here.document.text
        here.workspace.edit(here.document, type(text)("println(1)\n", text.encoding), 2)
        run.linting.changed(here.document.uri)
        go_on.set()
        await run.until(lambda: bool(run.published))
        run.linting.close()
        return run

    assert asyncio.run(main()).published == [("main.harn", [])]


def test_a_document_that_has_closed_is_left_out(opened: Open) -> None:
    here = opened({"a.harn": SOURCE, "b.harn": SOURCE})

    async def main() -> _Run:
        run = _Run(here)
        for uri in here.workspace.documents:
            run.linting.changed(uri)
        here.workspace.close(here.file("a.harn").uri)
        await run.until(lambda: bool(run.published))
        run.linting.close()
        return run

    assert [name for name, _ in asyncio.run(main()).published] == ["b.harn"]
