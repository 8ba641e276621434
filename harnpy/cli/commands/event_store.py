"""What every verb needs that works on an event log: the log, and errors in one line. Spec: 10 §C21, §C22."""

from __future__ import annotations

from contextlib import closing
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from harnpy.cli import FAILED
from harnpy.cli.console import complain, one_line
from harnpy.eventlog.opening import opened
from harnpy.eventlog.settings import event_log_settings, usual_settings
from harnpy.eventlog.topics import StoreEventLog
from harnpy.faults import Fault
from harnpy.project import ManifestError
from harnpy.world import World

if TYPE_CHECKING:
    from collections.abc import Callable

store_option = click.option(
    "--store", metavar="URL", help="Where events are kept, in place of the configured one."
)


def verb(function: Callable[..., int]) -> Callable[..., int]:
    """Give a verb the event log, that of the context's URL or the project's, and report what goes wrong."""

    @click.pass_obj
    @wraps(function)
    def run(url: str | None, /, **arguments: Any) -> int:
        try:
            if url is None:
                url = (event_log_settings(World()) or usual_settings(World())).url
            with closing(StoreEventLog(opened(url))) as log:
                return function(log, **arguments)
        except (Fault, ManifestError) as error:
            complain(f"error: {one_line(error.message)}")
            return FAILED

    return run
