"""`harnpy serve` and `harnpy portal`: a store's sessions and runs, for programs and browsers. Spec: 11 §1."""

from __future__ import annotations

import asyncio
import os
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NoReturn

import click

from harnpy.cli import FAILED, OK
from harnpy.cli.command_options import site_options, trust_option
from harnpy.cli.console import complain, one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.serve.server import Place
    from harnpy.serve.site import Site

_BIND, _VARIABLE = "127.0.0.1:4721", "HARN_SERVE_BIND"


def _options(function: Callable[..., Any]) -> Callable[..., Any]:
    for decorate in (
        click.option("--debug", is_flag=True, help="Show the Python traceback of a failure."),
        trust_option,
        click.option(
            "--grace",
            type=click.FloatRange(0),
            default=30.0,
            show_default=True,
            metavar="SECONDS",
            help="How long turns and runs may continue after SIGTERM; then they are left to the next server.",
        ),
        click.option(
            "--log-format",
            "log_format",
            type=click.Choice(["text", "json"]),
            help="Print a line for each request, without the conversation.",
        ),
        site_options(_BIND, _VARIABLE),
        click.option("--store", metavar="URL", help="The store, instead of the configured one."),
        click.argument("agents", nargs=-1, metavar="[AGENT]..."),
    ):
        function = decorate(function)
    return function


@click.command("serve", short_help="Serve sessions to programs and browsers.")
@_options
@click.option("--open", "opens", is_flag=True, help="Open the portal in the browser.")
def command(**given: Any) -> int:
    """Serve the sessions and runs of a store: an HTTP API under /v1, the portal at /.

    An AGENT is a Harn file with a `pub fn agent()` or a pipeline, or the name of a table [agents.NAME] in
    harn.toml; the first one answers in sessions that name none. Needs the extra: pip install
    'harnpy[serve]'. `harnpy serve mcp FILE` is `harnpy mcp serve FILE`, `harnpy serve acp AGENT` is `harnpy
    acp AGENT`. SIGTERM or SIGINT ends it; a second signal doesn't wait.
    """
    return _serve(**given)


@click.command("portal", short_help="Serve sessions, and open them in the browser.")
@_options
def portal(**given: Any) -> int:
    """The same as `harnpy serve --open`."""
    return _serve(opens=True, **given)


def _serve(
    agents: tuple[str, ...],
    store: str | None,
    site: Site,
    opens: bool,
    log_format: str | None,
    grace: float,
    debug: bool,
) -> int:
    missing = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        complain(f"error: `harnpy serve` needs {' and '.join(missing)}: pip install 'harnpy[serve]'")
        return FAILED
    from harnpy.cli.console import report_failure
    from harnpy.cli.project_setup import bind_project
    from harnpy.faults import Fault
    from harnpy.project import ManifestError
    from harnpy.serve.program import NotServed
    from harnpy.serve.server import Options, Output, serve
    from harnpy.vm.errors import ExitRequest

    options = Options(agents, store, site, grace, opens)
    output = Output(lambda line: complain(one_line(line)), _print, log_format)

    def ready(place: Place) -> None:
        complain(one_line(f"[harn] serve: {place.store} at {place.url}"))
        if place.link is not None:
            complain(f"[harn] serve: sign in at {place.link}")
        elif not site.keys:
            where = "" if store is None else "--store URL "
            complain(f"[harn] serve: callers need a token: harnpy tokens {where}create NAME --scope SCOPE")
        if opens:
            import webbrowser

            webbrowser.open(place.link or place.url)

    try:
        asyncio.run(serve(options, output, bind_project, ready, _leave))
    except NotServed as error:
        complain(f"error: {error}")
        return FAILED
    except (Fault, ManifestError) as error:
        if debug:
            raise
        complain(f"error: {one_line(error.message)}")
        return FAILED
    except ExitRequest as request:
        return request.code
    except Exception as error:
        return report_failure(error, debug)
    return OK


def _print(line: str) -> None:
    sys.stdout.write(one_line(line) + "\n")
    sys.stdout.flush()


def _leave(count: int) -> NoReturn:
    """End the process as it is: what was written is there, and the next server goes on from that."""
    from harnpy.cli.process import end_children

    what = "turn or run" if count == 1 else "turns or runs"
    complain(f"[harn] serve: {count} {what} left to the next server")
    end_children()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(OK)
