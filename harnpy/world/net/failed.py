"""A request without a complete response. Spec: 04 §21.1, 02 §19.8."""

from __future__ import annotations


class Failed(Exception):
    """There is no complete response. ``category`` is one of 02 §19.8, ``text`` says what happened."""

    def __init__(self, category: str, text: str) -> None:
        super().__init__(text)
        self.category = category
        self.text = text


class TooMuch(Failed):
    """A body of more than ``most`` bytes."""

    def __init__(self, most: int) -> None:
        super().__init__("generic", "the response has more bytes than max_bytes allows")
        self.most = most


def too_slow(option: str) -> Failed:
    """The failure for a response that wasn't complete in time; ``option`` is the one that says how long."""
    return Failed("timeout", f"Deadline exceeded: the response wasn't complete within {option}")


def cut_off() -> Failed:
    return Failed("generic", "its connections were closed meanwhile")


def misled() -> Failed:
    return Failed("generic", "a redirect leads to no http or https URL")


def too_many_redirects() -> Failed:
    return Failed("generic", "more redirects than max_redirects allows")
