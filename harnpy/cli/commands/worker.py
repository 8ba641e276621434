"""`harnpy worker`: a process that does what is queued, until it is asked to stop. Spec: 10 §C19, §C21."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from threading import Event
from typing import Any

import click

from harnpy.cli import FAILED, OK
from harnpy.cli.command_options import trust_option
from harnpy.cli.console import complain, one_line
from harnpy.cli.durable_runs import opened, skipped, store_url
from harnpy.faults import Fault
from harnpy.project import ManifestError
from harnpy.storage.opening import shown
from harnpy.workflow.engines import ENGINES

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@click.command("worker", short_help="Execute queued durable runs.")
@click.option(
    "--engine",
    type=click.Choice([*ENGINES]),
    default="local",
    show_default=True,
    metavar="E",
    help="The engine.",
)
@click.option("--store", metavar="URL", help="The store of the runs, instead of the session store.")
@click.option("--queue", "queues", multiple=True, metavar="Q", help="Serve only this queue; may be repeated.")
@click.option(
    "--concurrency",
    type=click.IntRange(1),
    default=4,
    show_default=True,
    metavar="N",
    help="The number of concurrent runs.",
)
@trust_option
def command(engine: str, store: str | None, queues: Sequence[str], concurrency: int) -> int:
    """Execute queued durable runs, resume those whose worker died, and start scheduled ones.

    On SIGTERM or SIGINT, running steps get up to 30 s to finish; other workers take the rest.
    """
    stop = Event()
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def ask(number: int, frame: Any) -> None:
        stop.set()
        _restore(before)  # another signal doesn't wait

    try:
        url = store_url(store)
        with opened(engine, url) as found:
            for number in _SIGNALS:
                signal.signal(number, ask)
            names = ", ".join(queues) or "all queues"
            found.on_unreadable = skipped
            complain(one_line(f"worker of {names}: engine {found.name}, store {shown(url)}"))
            found.work(queues=queues or None, concurrency=concurrency, stop=stop)
    except (Fault, ManifestError) as error:
        complain(f"error: {one_line(error.message)}")
        return FAILED
    finally:
        _restore(before)
    return OK


def _restore(handlers: dict[signal.Signals, Any]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler)
