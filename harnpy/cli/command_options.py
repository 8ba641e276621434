"""Options that several commands share: `--html FILE`, `--trust`, where a server listens, and unbuilt ones."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import Any, TextIO

import click

from harnpy.cli.console import not_yet, say
from harnpy.formats.manifest import VARIABLE
from harnpy.world import World

Command = Callable[..., Any]

# `--html FILE`: the output of a command as a page for people.


#: The option of every command that has such a page.
html_option = click.option("--html", "page", metavar="FILE", help="Also write an HTML page, without secrets.")


def write_page(path: str | None, make: Callable[[], str]) -> None:
    """Write the page to the file, if one is named, as a whole or not at all. Raises OSError."""
    if path is not None:
        World().files.replace_text(path, make())
        say(f"report: {path}")


# `--trust`: the project is trusted, for this one command. Spec: 09 §12.1.


def _trust(context: click.Context, parameter: click.Parameter, given: bool) -> None:
    if given:
        os.environ[VARIABLE] = "1"


#: The option of every command that refuses to work where nobody trusts the project.
trust_option = click.option(
    "--trust",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_trust,
    help="Trust the project this once, as HARN_TRUST=1 does.",
)


# Where a server listens, and whom it lets in. Spec: 09 §11.4, 11 §1.


def site_options(bind: str, variable: str, prefix: str = "") -> Callable[[Command], Command]:
    """Give a command its ``site``, a `Site`: ``bind`` is the default of ``--bind``, as is ``variable``.

    ``prefix`` begins the help of each option.
    """

    def told(help: str) -> str:
        return prefix + help if prefix else help[0].upper() + help[1:]

    options = (
        click.option(
            "--bind",
            callback=_address,
            metavar="HOST:PORT",
            envvar=variable,
            default=bind,
            help=told(f"the address to listen on (default {bind}; port 0: any free port)."),
        ),
        click.option(
            "--api-key",
            "keys",
            metavar="KEY,...",
            envvar="HARN_SERVE_API_KEY",
            default="",
            help=told(
                "accept requests with one of these keys. Better set in the environment: HARN_SERVE_API_KEY."
            ),
        ),
        click.option(
            "--allow-host",
            "hosts",
            metavar="NAME",
            multiple=True,
            help=told("a host name by which clients reach this machine; may be repeated."),
        ),
        click.option(
            "--cert",
            type=click.File("r"),
            help=told("serve https with the certificates in this PEM file."),
        ),
        click.option("--key", type=click.File("r"), help=told("the private key of --cert, a PEM file.")),
    )

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_site(
            *,
            bind: tuple[str, int],
            keys: str,
            hosts: tuple[str, ...],
            cert: TextIO | None,
            key: TextIO | None,
            **others: Any,
        ) -> Any:
            if (cert is None) is not (key is None):
                raise click.UsageError("--cert and --key are given together or not at all")
            from harnpy.serve.site import Site

            tls = [None if each is None else each.read() for each in (cert, key)]
            return command(site=Site(*bind, "/", _words(keys), hosts, *tls), **others)

        found: Command = with_site
        for option in reversed(options):
            found = option(found)
        return found

    return decorate


def _address(context: click.Context, parameter: click.Parameter, text: str) -> tuple[str, int]:
    """`HOST:PORT`; a host with colons stands in brackets."""
    host, _, port = text.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise click.BadParameter(f"'{text}' is no HOST:PORT, such as 127.0.0.1:8765", context, parameter)
    return host.strip("[]"), int(port)


def _words(text: str) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, text.split(","))))


# Options that are specified but not built yet: accepted only to be refused by name.


def unbuilt_options(
    *names: str, takes_value: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a command refuse the options `names`; with `takes_value` each takes a value."""

    def decorate(command: Command) -> Command:
        for name in names:
            option = click.option(
                name, is_flag=not takes_value, hidden=True, expose_value=False, callback=_refuse
            )
            command = option(command)
        return command

    return decorate


def _refuse(context: click.Context, parameter: click.Parameter, value: object) -> None:
    if value:
        raise click.UsageError(not_yet(parameter.opts[0]), context)
