"""The transcript's summary: merged at each compaction, joined when it is read. Spec: 08 §4.7, 10 §C4."""

from __future__ import annotations

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from harnpy.session.compaction import joined_summaries, merged_summary

TEXTS = st.lists(st.sampled_from(["", " ", "a", "a ", "b", "a\n\nb", "é"]))


@given(TEXTS)
def test_joining_what_changed_it_gives_what_merging_gives(texts: list[str]) -> None:
    changes: list[str] = []
    merged: str | None = None
    for text in texts:
        before, merged = merged, merged_summary(merged, text)
        if merged != before:
            changes.append(text)
    assert joined_summaries(changes) == merged == reduce(merged_summary, texts, None)
