"""Routing: what a template stands for, whatever the path holds. Spec: 04 §21.5."""

from __future__ import annotations

from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st

from harnpy.net.server import find_route, route

SEGMENT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8).filter(
    lambda text: text not in (".", "..")
)


def users(options: dict[str, int] | None = None) -> object:
    return route("get", "/users/{id}/:file", lambda _: None, options or {})


@given(id=SEGMENT, file=SEGMENT)
def test_a_path_names_what_it_was_made_of(id: str, file: str) -> None:
    path = f"/users/{quote(id, safe='')}/{quote(file, safe='')}"
    found = find_route([users()], "GET", path)
    assert found is not None
    assert found[1] == {"id": id, "file": file}


@given(path=st.lists(st.sampled_from(["", ".", "..", "%2e%2e", "%2E", "users", "a"]), max_size=5))
def test_a_name_stands_for_no_empty_segment_and_no_dots(path: list[str]) -> None:
    found = find_route([users()], "GET", "/" + "/".join(path))
    fits = len(path) == 3 and path[0] == "users" and all(each in ("users", "a") for each in path[1:])
    assert (found is not None) == fits


def test_head_goes_where_get_does_unless_it_has_a_route() -> None:
    get, head = users(), route("HEAD", "/x", lambda _: None, {})
    assert find_route([get], "HEAD", "/users/1/f") == (get, {"id": "1", "file": "f"})
    assert find_route([route("GET", "/x", lambda _: None, {}), head], "HEAD", "/x") == (head, {})
    assert find_route([get], "POST", "/users/1/f") is None
