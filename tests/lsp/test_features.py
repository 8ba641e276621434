"""Each feature, asked by pytest-lsp's client over the streams of a server. Spec: 12 §3."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from random import Random
from typing import Any

import pytest
from lsprotocol import types as lsp

from harnpy.lsp.capabilities import features, server_capabilities
from tests.lsp.conftest import open_all
from tests.lsp.features import params_of
from tests.support import ROOT

pytest.importorskip("pytest_lsp.client")
import pytest_asyncio
import pytest_lsp

_SOURCE = """\
import "std/text"

/**
 * Adds two numbers.
 */
fn add(left: int, right: int) -> int {
  let sum=left + right
  return sum
}

pipeline main(task) {
  println(add(1, 2))
  llm_call("hi", nil, {provider: "mock"})
}
"""
_URI = "file:///project/main.harn"


def _hover(found: lsp.Hover) -> None:
    assert "fn add(left: int, right: int) -> int" in found.contents.value  # type: ignore[union-attr]
    assert "Adds two numbers." in found.contents.value  # type: ignore[union-attr]


def _completion(found: lsp.CompletionList) -> None:
    assert "left" in [item.label for item in found.items]


def _places(count: int) -> Callable[[Any], None]:
    def check(found: list[Any]) -> None:
        assert len(found) == count

    return check


def _declared(found: Any) -> None:
    assert (found if isinstance(found, list) else [found])[0].range.start.line == 5


def _renamed(found: lsp.WorkspaceEdit) -> None:
    changes = found.changes or {}
    edits = changes[_URI] if changes else found.document_changes[0].edits  # type: ignore[index,union-attr]
    assert len(edits) == 2


def _named(found: list[Any]) -> None:
    assert [one.name for one in found] == ["add", "main"]


def _signature(found: lsp.SignatureHelp) -> None:
    assert found.signatures[0].label.startswith("add(") or "add(" in found.signatures[0].label


def _hints(found: list[lsp.InlayHint]) -> None:
    assert found


def _tokens(found: lsp.SemanticTokens) -> None:
    assert found.data
    assert len(found.data) % 5 == 0


def _some(found: Any) -> None:
    assert found


def _anything(found: Any) -> None:
    """An empty answer is right here; that there is one is what counts."""


#: What is asked about which words, and what is right.
ROWS: dict[str, tuple[str, Callable[[Any], None]]] = {
    lsp.TEXT_DOCUMENT_HOVER: ("add(1", _hover),
    lsp.TEXT_DOCUMENT_COMPLETION: ("left + right", _completion),
    lsp.TEXT_DOCUMENT_DEFINITION: ("add(1", _declared),
    lsp.TEXT_DOCUMENT_TYPE_DEFINITION: ("add(1", _anything),
    lsp.TEXT_DOCUMENT_IMPLEMENTATION: ("add(1", _anything),
    lsp.TEXT_DOCUMENT_REFERENCES: ("add(1", _places(2)),
    lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT: ("add(1", _places(2)),
    lsp.TEXT_DOCUMENT_PREPARE_RENAME: ("add(1", _some),
    lsp.TEXT_DOCUMENT_RENAME: ("add(1", _renamed),
    lsp.TEXT_DOCUMENT_SIGNATURE_HELP: ("1, 2", _signature),
    lsp.TEXT_DOCUMENT_INLAY_HINT: (_SOURCE, _hints),
    lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL: ("add", _tokens),
    lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL_DELTA: ("add", _some),
    lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_RANGE: (_SOURCE, _tokens),
    lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL: ("add", _named),
    lsp.WORKSPACE_SYMBOL: ("add", _some),
    lsp.TEXT_DOCUMENT_FOLDING_RANGE: ("add", _some),
    lsp.TEXT_DOCUMENT_SELECTION_RANGE: ("sum=left", _places(2)),
    lsp.TEXT_DOCUMENT_DOCUMENT_LINK: ("add", _anything),
    lsp.TEXT_DOCUMENT_CODE_ACTION: (_SOURCE, _anything),
    lsp.TEXT_DOCUMENT_CODE_LENS: ("add", _some),
    lsp.TEXT_DOCUMENT_FORMATTING: ("add", _some),
    lsp.TEXT_DOCUMENT_RANGE_FORMATTING: (_SOURCE, _some),
    lsp.TEXT_DOCUMENT_ON_TYPE_FORMATTING: ("}\n\npipeline", _anything),
    lsp.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY: ("add(1", _some),
}
#: What is asked about an answer of another request, and which that is.
SECOND = {
    lsp.COMPLETION_ITEM_RESOLVE: (lsp.TEXT_DOCUMENT_COMPLETION, lambda found: found.items[0]),
    lsp.CODE_ACTION_RESOLVE: (lsp.TEXT_DOCUMENT_CODE_ACTION, lambda found: found[0]),
    lsp.CODE_LENS_RESOLVE: (lsp.TEXT_DOCUMENT_CODE_LENS, lambda found: found[0]),
    lsp.INLAY_HINT_RESOLVE: (lsp.TEXT_DOCUMENT_INLAY_HINT, lambda found: found[0]),
    lsp.CALL_HIERARCHY_INCOMING_CALLS: (
        lsp.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY,
        lambda found: lsp.CallHierarchyIncomingCallsParams(item=found[0]),
    ),
    lsp.CALL_HIERARCHY_OUTGOING_CALLS: (
        lsp.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY,
        lambda found: lsp.CallHierarchyOutgoingCallsParams(item=found[0]),
    ),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def editor() -> AsyncIterator[pytest_lsp.LanguageClient]:
    """A client with one document open. One server is enough: its state is what it was told.

    It is started without the plugin of pytest-lsp, which fails for tests that are no functions.
    """
    server = [sys.executable, "-m", "harnpy", "lsp"]
    config = pytest_lsp.ClientServerConfig(server_command=server, server_env={"PYTHONPATH": str(ROOT)})
    editor = await config.start()
    assert isinstance(editor, pytest_lsp.LanguageClient)
    await editor.initialize_session(
        lsp.InitializeParams(capabilities=pytest_lsp.client_capabilities("visual-studio-code"))
    )
    document = lsp.TextDocumentItem(uri=_URI, language_id="harn", version=1, text=_SOURCE)
    editor.text_document_did_open(lsp.DidOpenTextDocumentParams(document))
    yield editor
    await editor.shutdown_session()


async def asked(editor: Any, method: str) -> Any:
    """Return the answer to a request, as a client reads it."""
    words = ROWS[method][0]
    here = open_all(_SOURCE)
    start = _SOURCE.index(words)
    params = params_of(method, here.document, start, start + len(words), Random(0))
    if isinstance(params, lsp.RenameParams):
        params.new_name = "plus"
    if isinstance(params, lsp.WorkspaceSymbolParams):
        params.query = "add"
    return await editor.protocol.send_request_async(method, params)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("method", [method for method in ROWS if method in features()])
async def test_a_feature_answers_a_real_client(editor: Any, method: str) -> None:
    ROWS[method][1](await asked(editor, method))


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("method", [method for method in SECOND if method in features()])
async def test_a_feature_answers_about_an_answer(editor: Any, method: str) -> None:
    before, about = SECOND[method]
    first = await asked(editor, before)
    if first:
        assert await editor.protocol.send_request_async(method, about(first)) is not None


@pytest.mark.asyncio(loop_scope="module")
async def test_diagnostics_are_published(editor: Any) -> None:
    document = lsp.TextDocumentItem(
        uri="file:///project/wrong.harn", language_id="harn", version=3, text="let x: int = nothing\n"
    )
    editor.text_document_did_open(lsp.DidOpenTextDocumentParams(document))
    await editor.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    while document.uri not in editor.diagnostics:
        await editor.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    assert [one.code for one in editor.diagnostics[document.uri]] == ["undefined-name"]


def test_every_registered_feature_has_a_row() -> None:
    assert set(features()) <= {*ROWS, *SECOND}


def test_what_is_offered_is_registered() -> None:
    offered = server_capabilities(lsp.PositionEncodingKind.Utf16)
    for field, method in [
        ("hover_provider", lsp.TEXT_DOCUMENT_HOVER),
        ("completion_provider", lsp.TEXT_DOCUMENT_COMPLETION),
        ("signature_help_provider", lsp.TEXT_DOCUMENT_SIGNATURE_HELP),
        ("definition_provider", lsp.TEXT_DOCUMENT_DEFINITION),
        ("type_definition_provider", lsp.TEXT_DOCUMENT_TYPE_DEFINITION),
        ("implementation_provider", lsp.TEXT_DOCUMENT_IMPLEMENTATION),
        ("references_provider", lsp.TEXT_DOCUMENT_REFERENCES),
        ("document_highlight_provider", lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT),
        ("document_symbol_provider", lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL),
        ("workspace_symbol_provider", lsp.WORKSPACE_SYMBOL),
        ("code_action_provider", lsp.TEXT_DOCUMENT_CODE_ACTION),
        ("code_lens_provider", lsp.TEXT_DOCUMENT_CODE_LENS),
        ("document_link_provider", lsp.TEXT_DOCUMENT_DOCUMENT_LINK),
        ("document_formatting_provider", lsp.TEXT_DOCUMENT_FORMATTING),
        ("document_range_formatting_provider", lsp.TEXT_DOCUMENT_RANGE_FORMATTING),
        ("document_on_type_formatting_provider", lsp.TEXT_DOCUMENT_ON_TYPE_FORMATTING),
        ("rename_provider", lsp.TEXT_DOCUMENT_RENAME),
        ("folding_range_provider", lsp.TEXT_DOCUMENT_FOLDING_RANGE),
        ("selection_range_provider", lsp.TEXT_DOCUMENT_SELECTION_RANGE),
        ("semantic_tokens_provider", lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL),
        ("inlay_hint_provider", lsp.TEXT_DOCUMENT_INLAY_HINT),
        ("call_hierarchy_provider", lsp.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY),
    ]:
        assert bool(getattr(offered, field)) == (method in features()), field
