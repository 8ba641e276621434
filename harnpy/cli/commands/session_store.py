"""What every verb of `harnpy sessions` needs: the store, and errors in one line. Spec: 10 §C21."""

from __future__ import annotations

from contextlib import closing
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from harnpy.cli import FAILED
from harnpy.cli.console import complain, one_line
from harnpy.session.errors import SessionError
from harnpy.session.kept.store_settings import store_settings
from harnpy.storage import StorageError, open_store
from harnpy.storage.errors import CorruptLog
from harnpy.world import World

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.storage import Store


class Context:
    """What the options before the verb say."""

    def __init__(self, url: str | None, as_json: bool) -> None:
        self.as_json = as_json
        self._url = url

    def store(self) -> Store:
        """Open the store."""
        return open_store(self._url or store_settings(World()).url)


def failing(function: Callable[..., int]) -> Callable[..., int]:
    """Report what goes wrong with a store or a session in one line."""

    @wraps(function)
    def run(*arguments: Any, **options: Any) -> int:
        try:
            return function(*arguments, **options)
        except (StorageError, SessionError) as error:
            complain(f"error: {one_line(str(error))}{_advice(error)}")
            return FAILED

    return run


def _advice(error: Exception) -> str:
    """What to do about it, where that isn't in the error."""
    damaged = isinstance(error, CorruptLog) and error.line is not None
    return "; `harnpy sessions fsck --repair` saves what can be read" if damaged else ""


def verb(function: Callable[..., int]) -> Callable[..., int]:
    """Give a verb the open store, and whether to print JSON."""

    @click.pass_obj
    @failing
    @wraps(function)
    def run(context: Context, /, **arguments: Any) -> int:
        with closing(context.store()) as store:
            return function(store, context.as_json, **arguments)

    return run
