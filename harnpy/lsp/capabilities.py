"""What the server can do: a row a feature, and what the client is told of it. Spec: 12 §3."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lsprotocol import types as lsp

from harnpy.lsp import (
    call_hierarchy,
    code_actions,
    completion,
    formatting,
    hover,
    lenses,
    navigation,
    renaming,
    signatures,
    structure,
    tokens,
)


def features() -> Mapping[str, Callable[..., Any]]:
    """Return the function that answers a request, by the request's method.

    It takes the workspace, the document if the request is about one, and the request's parameters.
    """
    return {
        lsp.TEXT_DOCUMENT_HOVER: hover.hover,
        lsp.TEXT_DOCUMENT_COMPLETION: completion.completion,
        lsp.COMPLETION_ITEM_RESOLVE: completion.resolve,
        lsp.TEXT_DOCUMENT_DEFINITION: navigation.definition,
        lsp.TEXT_DOCUMENT_TYPE_DEFINITION: navigation.type_definition,
        lsp.TEXT_DOCUMENT_IMPLEMENTATION: navigation.implementation,
        lsp.TEXT_DOCUMENT_REFERENCES: navigation.references,
        lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT: navigation.highlights,
        lsp.TEXT_DOCUMENT_PREPARE_RENAME: renaming.prepare_rename,
        lsp.TEXT_DOCUMENT_RENAME: renaming.rename,
        lsp.TEXT_DOCUMENT_SIGNATURE_HELP: signatures.signature_help,
        lsp.TEXT_DOCUMENT_INLAY_HINT: signatures.inlay_hints,
        lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL: tokens.full,
        lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_RANGE: tokens.in_range,
        lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL: structure.document_symbols,
        lsp.WORKSPACE_SYMBOL: structure.workspace_symbols,
        lsp.TEXT_DOCUMENT_FOLDING_RANGE: structure.folding_ranges,
        lsp.TEXT_DOCUMENT_SELECTION_RANGE: structure.selection_ranges,
        lsp.TEXT_DOCUMENT_DOCUMENT_LINK: structure.document_links,
        lsp.TEXT_DOCUMENT_CODE_ACTION: code_actions.code_actions,
        lsp.TEXT_DOCUMENT_CODE_LENS: lenses.code_lenses,
        lsp.TEXT_DOCUMENT_FORMATTING: formatting.document_formatting,
        lsp.TEXT_DOCUMENT_RANGE_FORMATTING: formatting.range_formatting,
        lsp.TEXT_DOCUMENT_ON_TYPE_FORMATTING: formatting.on_type_formatting,
        lsp.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY: call_hierarchy.prepare,
        lsp.CALL_HIERARCHY_INCOMING_CALLS: call_hierarchy.incoming,
        lsp.CALL_HIERARCHY_OUTGOING_CALLS: call_hierarchy.outgoing,
    }


def server_capabilities(encoding: lsp.PositionEncodingKind | str) -> lsp.ServerCapabilities:
    """Return what the client is told."""
    return lsp.ServerCapabilities(
        position_encoding=encoding,
        text_document_sync=lsp.TextDocumentSyncOptions(
            open_close=True,
            change=lsp.TextDocumentSyncKind.Incremental,
            save=lsp.SaveOptions(include_text=False),
        ),
        workspace=lsp.WorkspaceOptions(
            workspace_folders=lsp.WorkspaceFoldersServerCapabilities(
                supported=True, change_notifications=True
            )
        ),
        hover_provider=True,
        completion_provider=lsp.CompletionOptions(
            trigger_characters=[".", '"', "/", "{", ","], resolve_provider=True
        ),
        definition_provider=True,
        signature_help_provider=lsp.SignatureHelpOptions(["(", ","]),
        inlay_hint_provider=lsp.InlayHintOptions(),
        document_symbol_provider=True,
        semantic_tokens_provider=lsp.SemanticTokensOptions(
            lsp.SemanticTokensLegend(tokens.TYPES, tokens.MODIFIERS), full=True, range=True
        ),
        workspace_symbol_provider=True,
        folding_range_provider=True,
        selection_range_provider=True,
        document_link_provider=lsp.DocumentLinkOptions(),
        code_action_provider=lsp.CodeActionOptions(code_actions.KINDS),
        code_lens_provider=lsp.CodeLensOptions(),
        document_formatting_provider=True,
        document_range_formatting_provider=True,
        document_on_type_formatting_provider=lsp.DocumentOnTypeFormattingOptions("}", ["\n"]),
        call_hierarchy_provider=True,
        type_definition_provider=True,
        implementation_provider=True,
        references_provider=True,
        document_highlight_provider=True,
        rename_provider=lsp.RenameOptions(prepare_provider=True),
    )
