"""Documents are linted while nothing comes from the client. Spec: 12 §3.1."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from harnpy.lsp.diagnostics import diagnostics
from harnpy.lsp.idle import IdleLinting
from harnpy.lsp.linting import Linter
from tests.lsp.conftest import Open, Opened

SOURCE = "fn f() {\n  let x = 1\n}\nf()\n"


class _Run:
    """A run of the linter over some documents; each publication is a list of codes."""

    def __init__(self, here: Opened) -> None:
        self.published: list[tuple[str, list[str]]] = []

        def publish(document: Any) -> None:
            codes = [str(each.code) for each in diagnostics(here.workspace, document)]
            self.published.append((document.uri.rpartition("/")[2], codes))

        self.linting = IdleLinting(lambda: here.workspace, publish)
        for uri in here.workspace.documents:
            self.linting.changed(uri)


def always() -> bool:
    return True


def test_each_document_is_linted_and_published(opened: Open) -> None:
    run = _Run(opened({"a.harn": SOURCE, "b.harn": SOURCE, "c.harn": "println(1)\n"}))
    run.linting.work(always)
    assert run.published == [
        ("a.harn", ["unused-variable"]),
        ("b.harn", ["unused-variable"]),
        ("c.harn", []),
    ]
    assert not run.linting.is_waiting


def test_it_stops_for_a_message_and_begins_again(opened: Open) -> None:
    run = _Run(opened(SOURCE))
    steps = count()
    run.linting.work(lambda: next(steps) < 3)
    assert run.published == []
    assert run.linting.is_waiting
    run.linting.work(always)
    assert run.published == [("main.harn", ["unused-variable"])]


def test_it_stops_soon(opened: Open) -> None:
    """The steps are many: none is all of the work."""
    run = _Run(opened(SOURCE * 1))
    steps = count()
    run.linting.work(lambda: next(steps) >= 0)
    assert next(steps) > 30


def test_a_document_that_has_closed_is_left_out(opened: Open) -> None:
    here = opened({"a.harn": SOURCE, "b.harn": SOURCE})
    run = _Run(here)
    here.workspace.close(here.file("a.harn").uri)
    run.linting.work(always)
    assert [name for name, _ in run.published] == ["b.harn"]


def test_a_document_that_cannot_be_linted_is_left_out(
    opened: Open, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("broken")

    monkeypatch.setattr(Linter, "findings", fail)
    run = _Run(opened(SOURCE))
    run.linting.work(always)
    assert run.published == []
    assert not run.linting.is_waiting
    assert "main.harn could not be linted" in caplog.text
