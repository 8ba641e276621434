"""What a server says depends on the texts alone, not on the edits that led to them. Spec: 12 §2."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from lsprotocol import types as lsp

from harnpy.checking import Checker
from harnpy.lsp.capabilities import features
from harnpy.lsp.text import Text
from harnpy.lsp.uris import uri_of
from tests.counts import COUNT
from tests.lsp.client import Client, served
from tests.lsp.conftest import Open
from tests.lsp.editing import FOLDER, beginning, difference, differences, edits
from tests.lsp.editing import opened as fresh
from tests.lsp.features import params_of, published
from tests.support import Popen


@pytest.mark.parametrize("seed", COUNT.seeds(COUNT.edit_sequences))
def test_a_server_that_has_seen_edits_is_one_that_sees_the_texts(seed: int) -> None:
    assert differences(seed, 10, places=2) == []


def test_a_sequence_that_was_wrong() -> None:
    """A call of one of two functions of a name meant another one, by the order in which they had come."""
    assert differences(730_036, 12) == []


@pytest.mark.parametrize("seed", COUNT.seeds(COUNT.edit_sequences))
def test_a_checker_that_has_seen_edits_is_one_that_sees_the_texts(seed: int) -> None:
    random = Random(seed)
    texts = beginning(random)
    strict = seed % 2 == 0
    checker = Checker(strict=strict)
    checker.check(texts)
    for number, _ in enumerate(edits(random, texts, 12)):
        found = shown(checker, texts)
        if number % 4 == 3:
            assert found == shown(Checker(strict=strict), texts)


def shown(checker: Checker, texts: dict[str, str]) -> dict[str, list[object]]:
    return {
        path: [
            (one.code, one.message, one.help, one.span, [(each.message, each.span) for each in one.related])
            for one in found
        ]
        for path, found in checker.check(texts).items()
    }


def test_the_same_over_streams(popen: Popen, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with served(popen, log) as client:
        client.initialize()
        for seed in COUNT.seeds(COUNT.streamed_edit_sequences):
            over_streams(client, seed)
        assert client.end() == 0
    assert log.read_text(encoding="utf-8") == ""


def over_streams(client: Client, seed: int) -> None:
    random = Random(seed)
    texts = beginning(random)
    told = dict(texts)
    version = 1
    for name, text in texts.items():
        client.open(uri_of(f"{FOLDER}/{name}"), text)
    for name, text in edits(random, texts, 12):
        if text is None:
            continue
        uri = uri_of(f"{FOLDER}/{name}")
        version += 1
        start, end, new = difference(told[name], text)
        place = Text(told[name]).range(start, end)
        change = {
            "range": {
                "start": {"line": place.start.line, "character": place.start.character},
                "end": {"line": place.end.line, "character": place.end.character},
            },
            "text": new,
        }
        client.change(uri, version, change)
        told[name] = text
        if random.random() < 0.2:
            client.result(
                "textDocument/completion",
                {"textDocument": {"uri": uri}, "position": change["range"]["start"]},
            )
    expected = fresh(told)
    for name in told:
        uri = uri_of(f"{FOLDER}/{name}")
        version += 1
        # A change of nothing: what it imports may have changed behind it.
        client.heard.clear()
        client.change(uri, version)
        document = expected.documents[uri]
        expected.refresh(document)
        found = client.published(uri)
        while found["version"] != version:
            found = client.published(uri)
        assert found["diagnostics"] == published(expected, document), f"seed {seed}, {name}"
    for name in told:
        client.send("textDocument/didClose", {"textDocument": {"uri": uri_of(f"{FOLDER}/{name}")}})


def test_an_edit_elsewhere_is_seen_when_it_matters(opened: Open) -> None:
    """A rename finds the places of now, also if what is renamed has moved in a file that nobody saved."""
    here = opened(
        {
            "main.harn": 'import { area } from "lib"\nprintln(a|rea())\n',
            "lib.harn": "pub fn area() { return 1 }\n",
        }
    )
    references = features()[lsp.TEXT_DOCUMENT_REFERENCES]
    params = params_of(lsp.TEXT_DOCUMENT_REFERENCES, here.document, here.offset, here.offset, Random(0))
    assert len(references(here.workspace, here.document, params)) == 3
    library = here.file("lib.harn")
    moved = library.text.changed([(library.text.range(0, 0), "// moved\n\n")])
    here.workspace.edit(library, moved, 2)
    document = here.workspace.at(here.document.uri)
    found = references(here.workspace, document, params)
    assert sorted((each.uri.rpartition("/")[2], each.range.start.line) for each in found) == [
        ("lib.harn", 2),
        ("main.harn", 0),
        ("main.harn", 1),
    ]
