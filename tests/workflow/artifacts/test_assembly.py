"""Laws of assembled contexts (08 §5.5): budgets hold, ids stand for texts, nothing gets lost."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harnpy.formats.text_size import split_text
from harnpy.workflow.context_assembly import assemble
from tests.worlds import world_with

Dict = dict[str, Any]

TEXTS = st.text(st.sampled_from(list("ab \n\né漢🙂.")), max_size=120) | st.text(max_size=30)
ARTIFACTS = st.lists(
    st.fixed_dictionaries({"text": st.none() | TEXTS}, optional={"created_at": st.sampled_from("abc")}),
    max_size=6,
).map(lambda artifacts: [{**each, "id": f"a{index}"} for index, each in enumerate(artifacts)])
OPTIONS = st.fixed_dictionaries(
    {
        "artifacts": ARTIFACTS,
        "budget_tokens": st.integers(0, 60),
        "microcompact_threshold": st.integers(0, 12),
        "strategy": st.sampled_from(["recency", "relevance", "round_robin"]),
        "dedup": st.sampled_from(["none", "chunked", "semantic"]),
        "semantic_overlap": st.floats(0, 1),
        "query": TEXTS,
    }
)


def assembled(options: Dict) -> Dict:
    return assemble(options, world_with(now=lambda: 0.0))


@given(OPTIONS)
def test_the_budget_holds(options: Dict) -> None:
    made = assembled(options)
    tokens = [chunk["estimated_tokens"] for chunk in made["chunks"]]
    assert made["total_tokens"] == sum(tokens) <= options["budget_tokens"]
    assert tokens == [-(-len(chunk["text"].encode()) // 4) for chunk in made["chunks"]]


@given(OPTIONS)
def test_what_is_left_out_would_have_exceeded_the_budget(options: Dict) -> None:
    made = assembled(options)
    everything = assembled({**options, "budget_tokens": 10**9})["chunks"]
    left_out = [reason["chunk_id"] for reason in made["reasons"] if not reason["included"]]
    spent, expected = 0, []
    for chunk in everything:
        if spent + chunk["estimated_tokens"] <= options["budget_tokens"]:
            spent += chunk["estimated_tokens"]
        else:
            expected.append(chunk["id"])
    assert left_out == expected


@given(OPTIONS)
def test_every_chunk_is_accounted_for_once(options: Dict) -> None:
    made = assembled(options)
    all_chunks = assembled({**options, "budget_tokens": 10**9, "dedup": "none"})["chunks"]
    shown = [chunk["id"] for chunk in made["chunks"]]
    missing = [entry["chunk_id"] for entry in made["dropped"] if entry["chunk_id"] is not None]
    assert sorted(shown + missing) == sorted(chunk["id"] for chunk in all_chunks)
    textless = [entry["artifact_id"] for entry in made["dropped"] if entry["chunk_id"] is None]
    assert textless == [each["id"] for each in options["artifacts"] if not (each["text"] or "").strip()]


@given(OPTIONS)
def test_ids_are_made_of_the_texts(options: Dict) -> None:
    chunks = assembled(options)["chunks"]
    for chunk in chunks:
        digest = hashlib.sha256(chunk["text"].encode()).hexdigest()[:16]
        assert chunk["id"] == f"{chunk['artifact_id']}#{digest}"
    assert chunks == assembled(options)["chunks"]


@given(OPTIONS)
def test_no_two_chunks_say_the_same(options: Dict) -> None:
    chunks = assembled({**options, "dedup": "chunked"})["chunks"]
    words = [" ".join(chunk["text"].split()) for chunk in chunks]
    assert len(set(words)) == len(words)


@given(TEXTS, st.integers(4, 40))
def test_pieces_are_small_and_together_the_text(text: str, limit: int) -> None:
    pieces = split_text(text, limit)
    assert all(len(piece.encode()) <= limit for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())


@given(st.lists(st.text("ab", min_size=1, max_size=9), min_size=1), st.integers(12, 40))
def test_paragraphs_that_fit_stay_whole_and_fill_the_pieces(paragraphs: list[str], limit: int) -> None:
    pieces = split_text("\n\n".join(paragraphs), limit)
    assert [part for piece in pieces for part in piece.split("\n\n")] == paragraphs
    for piece, following in pairwise(pieces):
        first = following.split("\n\n")[0]
        assert len(piece) + 2 + len(first) > limit
