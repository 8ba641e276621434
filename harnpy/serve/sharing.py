"""With whom a session is shared: a register of the session, read and changed here. Spec: 11 §1.2.

It is `{session, with: {PRINCIPAL: [SCOPE]}}`. A fork has the register of the session that it comes from, and
isn't shared by that: `session` is another one's id.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, get_args

from harnpy.client import types as t
from harnpy.serve import shown
from harnpy.serve.refusals import INVALID, Refused
from harnpy.serve.rights import GIVES, NOBODY, Belongs, Caller
from harnpy.session.clients import CONTROLLER, OBSERVER
from harnpy.session.errors import SessionConflict
from harnpy.session.info import info_of
from harnpy.session.log import KIND
from harnpy.storage.contract import SHARES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.session.info import SessionInfo
    from harnpy.session.runtime import SessionRuntime
    from harnpy.storage.contract import Store

REGISTER: Final = f"metadata.{SHARES}"
#: How many principals a session is shared with at most, and characters of the longest name of one.
MOST_SHARES: Final = 100
LONGEST_PRINCIPAL: Final = 200

#: Sessions above one that are asked for its owner, at most.
_DEEP: Final = 64


def owner_of(store: Store, of: SessionInfo) -> str | None:
    """Return whom a session belongs to: the principal that created it, or the one above it."""
    above: SessionInfo | None = of
    for _ in range(_DEEP):
        if above is None:
            return None
        owner = above.metadata.get(shown.OWNER)
        if isinstance(owner, str):
            return owner
        head = None if above.parent_id is None else store.head(KIND, above.parent_id)
        above = None if head is None else info_of(head)
    return None


def belongs(store: Store, of: SessionInfo) -> Belongs:
    """Return whose a session is, and with whom it is shared."""
    return Belongs(owner_of(store, of), shares_of(of.id, of.metadata.get(SHARES)))


def share(runtime: SessionRuntime, id: str, principal: str, scopes: Iterable[str]) -> Belongs:
    """Share a session with a principal for these scopes, in place of those that it had; without any, no more.

    Its clients go as far as their rights do. Raises `Refused` for what can't be shared.
    """
    while True:
        live = runtime.get(id)
        try:
            with live.lock:
                known = belongs(runtime.store, live.info)
                given = known._replace(shares=with_share(id, known, principal, scopes))
                if given != known:
                    live.set(REGISTER, register_of(id, given.shares))
            break
        except SessionConflict:
            continue  # somebody else has written meanwhile
    _let_go(runtime, id, principal, given)
    return given


def _let_go(runtime: SessionRuntime, id: str, principal: str, what: Belongs) -> None:
    """Detach the clients of a principal that may read a session no more; one that may only read it gives up
    control."""
    widest = Caller(principal, frozenset({"write"}))
    may_read, may_write = (widest.may_with(right, what) for right in ("read", "write"))
    for client, record in list(runtime.get(id).view.clients.items()):
        if shown.client_owner(record) != principal:
            continue
        if not may_read:
            runtime.detach(id, client, reason="the session isn't shared any more")
        elif not may_write and record["mode"] == CONTROLLER:
            runtime.attach(id, client, mode=OBSERVER)


def shares_of(id: str, register: Any) -> Mapping[str, frozenset[str]]:
    """Return with whom a session is shared, by the value of its register."""
    if not isinstance(register, Mapping) or register.get("session") != id:
        return NOBODY
    given = register.get("with")
    if not isinstance(given, Mapping):
        return NOBODY
    return {
        who: frozenset(scopes).intersection(GIVES)
        for who, scopes in given.items()
        if isinstance(scopes, list)
    }


def register_of(id: str, shares: Mapping[str, frozenset[str]]) -> dict[str, Any] | None:
    """Return the value of the register; None where nothing is shared."""
    return {"session": id, "with": shown_shares(shares)} if shares else None


def shown_shares(shares: Mapping[str, frozenset[str]]) -> dict[str, list[Any]]:
    """Return shares as replies have them."""
    order = get_args(t.ShareScope)
    return {who: [each for each in order if each in scopes] for who, scopes in sorted(shares.items())}


def with_share(id: str, what: Belongs, principal: str, scopes: Iterable[str]) -> Mapping[str, frozenset[str]]:
    """Return the shares of a session once a principal has these scopes; without any it has none.

    Raises `Refused` for what can't be shared.
    """
    wanted = frozenset(scopes)
    others = {who: given for who, given in what.shares.items() if who != principal}
    if not wanted:
        return others
    if not principal.strip() or len(principal) > LONGEST_PRINCIPAL:
        raise Refused(*INVALID, f"a principal has 1 to {LONGEST_PRINCIPAL} characters")
    if principal == what.owner:
        raise Refused(*INVALID, f"session '{id}' belongs to '{principal}': share it with somebody else")
    if len(others) >= MOST_SHARES:
        problem = (
            f"session '{id}' is shared with {MOST_SHARES} principals: take one of these shares back first"
        )
        raise Refused(*INVALID, problem)
    return {**others, principal: wanted}
