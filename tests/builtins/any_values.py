"""Values of every kind for builtins that read dicts, with keys that are mostly right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from harnpy.vm.values import Duration, Pair, Range, Set, Struct
from tests.builtins.conftest import make_fn

_ODD = [2**63 - 1, -(2**63), math.nan, math.inf, 0.5, -0.0, Duration(1), Range(0, 3), b"\xff"]


class AnyValues:
    """``words`` are texts, and ``keys`` keys, that mean something to the builtins in question."""

    def __init__(self, words: Sequence[str], keys: Sequence[str]) -> None:
        self.texts = st.one_of(st.text(max_size=6), st.sampled_from(words))
        scalars = st.one_of(
            self.texts,
            st.none(),
            st.booleans(),
            st.integers(-3, 9),
            st.sampled_from(_ODD),
            st.builds(make_fn, st.just(lambda a=None: a)),
        )
        self.any: st.SearchStrategy[Any] = st.recursive(
            scalars,
            lambda inner: st.one_of(
                st.lists(inner, max_size=3),
                st.dictionaries(st.sampled_from(keys), inner, max_size=3),
                st.lists(inner, max_size=2).map(Set),
                st.tuples(inner, inner).map(lambda items: Pair(*items)),
                inner.map(lambda item: Struct("P", {"x": item})),
            ),
            max_leaves=5,
        )

    def dicts(self, **keys: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        """Dicts with some of the keys, mostly right."""
        optional = {key: st.one_of(value, self.any) for key, value in keys.items()}
        return st.fixed_dictionaries({}, optional=optional)


def few(items: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(items, max_size=3)
