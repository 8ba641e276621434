"""Sessions as pages for people: Markdown and HTML. Spec: 10 §C17."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from harnpy.session import events as kinds
from harnpy.session.errors import TransferError
from harnpy.session.events import EventDraft
from harnpy.session.stored import StoredSession
from harnpy.session.transfer.blocks import blocks_of
from harnpy.session.transfer.directories import export_dir, import_sessions
from harnpy.session.transfer.formats import PAGES, export, import_, lost
from harnpy.storage import open_store
from harnpy.world import World
from tests.session.transfer.conversations import EXAMPLES, MESSAGES, STEPS, play

HERE = Path(__file__).parent
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
#: What ends elements, fences, quotes and attributes, or begins them.
HOSTILE = st.lists(
    st.sampled_from([
        "</details>", "</div></li></ol>", "<script>alert(1)</script>", "<!--", "-->", "<![CDATA[", "<?php",
        "&lt;", "&#60;b&#62;", '"><img src=x onerror=alert(1)>', "`", "```", "   ```", "~~~~ `x`", "\n",
        "'", "\n\n", "![a](http://a/b)", "[x]", "![x]", "[x]: /u", "[a]: <b", "\r", "# Head", "- a", "    ",
        "\t", "> ", "\\", "***", "---", "=====", "| a |", "a", " ", "\u2028",
    ]),
    max_size=12,
).map("".join)  # fmt: skip


class Read(HTMLParser):
    """An HTML page: its elements with the names of their attributes, and the texts in them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[Any] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, [name for name, _ in attrs]))

    def handle_endtag(self, tag: str) -> None:
        self.elements.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        self.elements.append("comment")


def texts_of(message: dict[str, Any]) -> list[str]:
    """All that a message says: its texts, what was thought, arguments, results."""
    found = [message[key] for key in ("reasoning",) if key in message]
    for block in blocks_of(message):
        found += [block[key] for key in ("text", "thinking") if key in block]
        found += (
            [json.dumps(each, ensure_ascii=False) for each in block["input"].values()]
            if block["type"] == "tool_use"
            else []
        )
        content = block.get("content") or []
        parts = [{"text": content}] if isinstance(content, str) else content
        found += [part["text"] for part in parts if block["type"] == "tool_result" and "text" in part]
    return found


@settings(max_examples=EXAMPLES, deadline=None)
@given(STEPS)
def test_law_a_page_has_all_that_was_said(steps: list[tuple[Any, ...]]) -> None:
    session = play(steps)
    said = [text for m in [*session.history(), *session.messages()] for text in texts_of(m)]
    page = "\0".join(Read(export(session, "html")).texts)
    document = export(session, "markdown").replace("\n> ", "\n")
    for text in said:
        assert text.replace("\x85", "\ufffd") in page  # no HTML can hold it
        assert text in document


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(MESSAGES) - 1), HOSTILE), max_size=5))
def test_law_nothing_that_was_said_ends_its_element(said: list[tuple[int, str]]) -> None:
    """A page of hostile texts has the elements of one with harmless texts."""
    hostile = play([("say", number, f"x{text}") for number, text in said])
    harmless = play([("say", number, "x") for number, _ in said])
    pages = [Read(export(session, "html")) for session in (hostile, harmless)]
    assert pages[0].elements == pages[1].elements
    outlines = [outline(export(session, "markdown")) for session in (hostile, harmless)]
    assert outlines[0] == outlines[1]


def outline(document: str) -> list[Any]:
    """What stands in a document at its top; HTML must be its own, at any depth."""
    env: dict[str, Any] = {}
    tokens = MarkdownIt("commonmark").parse(document, env)
    assert "references" not in env or not env["references"]
    inside = [child for token in tokens for child in token.children or ()]
    assert not [token for token in inside if token.type in ("html_inline", "image")]
    found = []
    for token in tokens:
        if token.type == "html_block":
            assert token.level == 0
            found.append(token.content)
        elif token.level == 0:
            found.append(token.type)
    return found


def test_an_html_page_runs_and_loads_nothing() -> None:
    blocks = [
        {"type": "image", "media_type": "image/png", "base64": DOT},
        {"type": "image", "url": "https://example.com/a.png"},
        {"type": "image", "media_type": 'image/png" onload="x', "base64": DOT},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "aGk="}},
    ]
    session = play([])
    session.add_history([{"role": "user", "content": blocks}])
    page = export(session, "html")
    assert page.count("<img") == 1
    assert f'src="data:image/png;base64,{DOT}"' in page
    assert "[image: https://example.com/a.png, left out]" in page
    assert "[document: application/pdf, 2 bytes, left out]" in page
    assert "default-src &#x27;none&#x27;" in page
    assert not any(tag in page for tag in ("<script", "<link", "href="))
    assert DOT not in export(session, "markdown")
    assert ("images", "1 image") in [(loss.kind, loss.detail) for loss in lost(session, "markdown")]


def test_a_page_tells_what_happened_beside_what_was_said() -> None:
    store = open_store("memory:")
    [talk, *_] = import_sessions([str(HERE / "transcripts" / "claude_code")], store).imported
    session = StoredSession.load(talk, store, World())
    assert session is not None
    for format in PAGES:
        page = export(session, format)
        for said in (
            "input tokens 10",
            "claude-opus-4-8",
            "Result of Read",
            "Thinking",
            "Compaction",
            "c2lnbmF0",
        ):
            assert (said in page) == (said != "c2lnbmF0")
    session = play(
        [("say", 0, "q"), ("turn", "go"), ("suspend",), ("reset",), ("register", "memo", {"b": ["c"]})]
    )
    page = export(session, "html")
    for said in ("active → suspended", "$0.2500", "Result of f", "reset · nothing left", "Memo", "suspended"):
        assert said in page


def test_a_message_of_a_loop_has_what_its_step_cost() -> None:
    session = play([("say", 0, "q")])
    usage = {"input_tokens": 11, "output_tokens": 7}
    session.append(EventDraft(kinds.STEP_COMPLETED, {"agent_id": "a", "usage": usage}, cost=0.5))
    session.add_history([{"role": "assistant", "content": "a"}, {"role": "user", "content": "q"}])
    for format in PAGES:
        page = export(session, format)
        assert page.count("input tokens 11, output tokens 7 · $0.5000") == 1
    assert lost(session, "html") == []


def test_a_page_is_not_read_back(tmp_path: Path) -> None:
    session = play([("turn", "q"), ("rewind",)])
    reason = "this is a page for people, from which no session is made: export it as jsonl"
    for format, suffix in zip(PAGES, (".md", ".html"), strict=True):
        path = tmp_path / f"talk{suffix}"
        text = export(session, format, str(path))
        report = import_sessions([str(path)], open_store("memory:"))
        assert (report.imported, report.errors) == ([], [(str(path), reason)])
        with pytest.raises(TransferError, match=reason):
            import_(text, open_store("memory:"), format)
    # A page stands alone, whatever it doesn't show.
    assert lost(session, "html")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["talk.html", "talk.md"]


def test_all_sessions_to_a_directory(tmp_path: Path) -> None:
    store = open_store("memory:")
    for id in ("a", "b"):
        play([("say", 0, id)], store, id)
    report = export_dir(store, str(tmp_path), "html")
    assert [Path(path).name for path in report.exported] == ["a.html", "b.html"]
