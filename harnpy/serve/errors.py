"""Why a file isn't served, apart from what is wrong in it."""

from __future__ import annotations


class NotServed(Exception):
    """The message is one sentence for who starts the server."""
