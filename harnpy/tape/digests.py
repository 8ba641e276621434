"""Digests of what models are asked, by which long conversations are told from others. Spec: 13 §1."""

from __future__ import annotations

from hashlib import sha256
from itertools import takewhile
from operator import is_
from typing import TYPE_CHECKING, Any, Final

import msgspec

from harnpy.durable.values import MASKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_JSON: Final = msgspec.json.Encoder(order="deterministic", enc_hook=str)
#: The most conversations whose digests are known at a time.
_MOST_CHAINS: Final = 64


class Digests:
    """Digests of conversations. A request mostly begins with the messages of one before it, so each message
    is looked at once: it is known by its identity."""

    def __init__(self) -> None:
        #: By the identity of the first message: the messages, and the digests up to each of them.
        self._chains: dict[int, tuple[list[Any], list[bytes]]] = {}

    def of(self, messages: Sequence[Any]) -> str:
        """Return the digest of some messages, with secrets masked."""
        if not messages:
            return digest([])
        first = id(messages[0])
        known, states = self._chains[first] = self._chains.pop(first, ([], []))
        if len(self._chains) > _MOST_CHAINS:
            del self._chains[next(iter(self._chains))]
        same = sum(takewhile(bool, map(is_, known, messages)))
        del known[same:], states[same:]
        state = states[-1] if states else b""
        for message in messages[same:]:
            state = sha256(state + _data(message)).digest()
            known.append(message)
            states.append(state)
        return state.hex()[:16]


def digest(value: Any) -> str:
    """Return the digest of a value that is data, with secrets masked."""
    return sha256(_data(value)).hexdigest()[:16]


def _data(value: Any) -> bytes:
    data, masking = _JSON.encode(value), MASKING.get()
    return data if masking is None else masking.data(data)
