"""Who may do what with a session: the one law of a server, for every face of it. Spec: 11 §1.2.

A caller has a *right* over what it owns by the scopes of its token, over everybody's things by those that end
in ``:all``, and over somebody else's session where the owner shares it. A share never gives more than the
token's own scopes do.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple, get_args

from harnpy.client import types as t

_READ, _WRITE = frozenset({"read"}), frozenset({"read", "write"})
_APPROVE = frozenset({"read", "approve"})
#: Fork, rewind, compact, close and share: what only owners do.
OWN: Final = "own"
_ADMIN = _WRITE | _APPROVE | {OWN, "admin"}


def _of_all(rights: frozenset[str]) -> frozenset[str]:
    return rights | {f"{right}:all" for right in rights}


#: The rights that the scopes of a token hold.
HOLDS: Final[Mapping[str, frozenset[str]]] = {
    "read": _READ,
    "write": _WRITE | {OWN},
    "approve": _APPROVE,
    "admin": _ADMIN,
    "read:all": _of_all(_READ),
    "approve:all": _of_all(_APPROVE),
    "all": _of_all(_ADMIN),
}
#: The rights that a share gives.
GIVES: Final[Mapping[str, frozenset[str]]] = {"read": _READ, "write": _WRITE, "approve": _APPROVE}

#: Shares with nobody.
NOBODY: Final[Mapping[str, frozenset[str]]] = MappingProxyType({})


class Belongs(NamedTuple):
    """Whose something is (None: nobody's), and what it is shared for, by principals."""

    owner: str | None
    shares: Mapping[str, frozenset[str]] = NOBODY


class Caller(NamedTuple):
    """A principal that calls, with the scopes of its token."""

    principal: str
    scopes: frozenset[str]
    limits: t.Limits | None = None

    def may(self, right: str) -> bool:
        """Return whether it has a right over what it owns."""
        return right in _held(self.scopes)

    def may_all(self, right: str) -> bool:
        """Return whether it has a right over everybody's things."""
        return f"{right}:all" in _held(self.scopes)

    def may_with(self, right: str, what: Belongs) -> bool:
        """Return whether it has a right over something: the law."""
        held = _held(self.scopes)
        if f"{right}:all" in held:
            return True
        if right not in held:
            return False
        return what.owner == self.principal or right in _given(what.shares.get(self.principal, frozenset()))

    def all_with(self, what: Belongs) -> list[Any]:
        """Return all rights that it has over something."""
        return [right for right in get_args(t.Right) if self.may_with(right, what)]


@lru_cache(maxsize=64)
def _held(scopes: frozenset[str]) -> frozenset[str]:
    return frozenset().union(*(HOLDS[scope] for scope in scopes))


@lru_cache(maxsize=64)
def _given(scopes: frozenset[str]) -> frozenset[str]:
    return frozenset().union(*(GIVES[scope] for scope in scopes))
