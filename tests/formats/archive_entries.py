"""Entries of archives, for properties that all formats have."""

from __future__ import annotations

from hypothesis import strategies as st

from harnpy.formats.archives import Entry

_NAMES = st.text(
    st.characters(codec="utf-8", exclude_characters="/\\:\0"), min_size=1, max_size=30
).filter(lambda name: name not in (".", ".."))  # fmt: skip
_PATHS = st.one_of(
    st.lists(_NAMES, min_size=1, max_size=8).map("/".join),
    st.integers(95, 300).map(lambda length: ("d" * 60 + "/") * (length // 61) + "f" * (length % 61 + 1)),
)
#: Files with different paths that an archive can hold.
ENTRIES = st.lists(
    st.builds(Entry, _PATHS, st.binary(max_size=1100), st.integers(0, 0o7777)),
    max_size=4,
    unique_by=lambda entry: entry.path,
)
