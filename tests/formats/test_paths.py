"""Paths as text against Python's own `posixpath`, for paths without backslashes and drives."""

from __future__ import annotations

import posixpath

from hypothesis import given
from hypothesis import strategies as st

from harnpy.formats.paths import normalized, path_text, relative_to

NAMES = st.sampled_from(["a", "b", ".", "..", "x.y", ".env", "ä", "a b"])
PATHS = st.tuples(st.sampled_from(["", "/"]), st.lists(NAMES, max_size=6)).map(
    lambda parts: parts[0] + "/".join(parts[1])
)


@given(PATHS)
def test_normal_paths_are_those_of_posixpath(path: str) -> None:
    assert normalized(path) == (posixpath.normpath(path) if path else "")
    assert normalized(normalized(path)) == normalized(path)


@given(PATHS)
def test_names_and_extensions_are_those_of_posixpath(path: str) -> None:
    parts = path_text(path)
    assert parts.is_absolute == posixpath.isabs(path)
    assert parts.name == posixpath.basename(path.rstrip("/"))
    if parts.name != "..":
        assert (parts.stem, parts.extension) == posixpath.splitext(parts.name)


@given(PATHS, PATHS)
def test_the_way_from_a_base_leads_to_the_path(path: str, base: str) -> None:
    way = relative_to(path, base)
    if path_text(path).is_absolute != path_text(base).is_absolute:
        assert way is None
    elif way is None:
        assert normalized(base).startswith("..")
    else:
        assert normalized(f"{base}/{way}" if base else way) == (normalized(path) or ".")
        assert way == posixpath.relpath(
            posixpath.join("/1/2/3/4/5/6", path), posixpath.join("/1/2/3/4/5/6", base)
        )
