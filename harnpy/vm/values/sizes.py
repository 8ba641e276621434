"""How large a result may be: what is known to be larger is refused before it is made. Spec: 02 §30."""

from __future__ import annotations

from harnpy.faults import TooLarge

MOST_ITEMS = 1 << 24
MOST_CHARACTERS = 1 << 28


class Sizes:
    """The most ``items`` of a list, set or dict and ``characters`` of a string that one step may make.

    Bytes count as characters.
    """

    __slots__ = ("characters", "items")

    def __init__(self) -> None:
        self.items = MOST_ITEMS
        self.characters = MOST_CHARACTERS

    def check_items(self, count: int) -> None:
        """Raise TooLarge when a collection of ``count`` items is too large."""
        if count > self.items:
            raise TooLarge(f"{count} items", self.items)

    def check_text(self, length: int) -> None:
        """Raise TooLarge when a string of ``length`` characters is too long."""
        if length > self.characters:
            raise TooLarge(f"{length} characters", self.characters)

    def check_bytes(self, length: int) -> None:
        """Raise TooLarge when ``length`` bytes are too many."""
        if length > self.characters:
            raise TooLarge(f"{length} bytes", self.characters)
