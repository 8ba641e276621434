"""`harnpy sessions export` and `import`: files of harnpy and of other systems. Spec: 10 §C17, §C21."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from harnpy.cli import FAILED, OK
from harnpy.cli.commands.session_store import verb
from harnpy.cli.commands.session_verbs import loaded
from harnpy.cli.console import complain, one_line, say
from harnpy.session.errors import SessionError
from harnpy.session.transfer.directories import export_dir, import_dir
from harnpy.session.transfer.files import ERROR, RENAME, SKIP, admitted, export, lost, parsed_file
from harnpy.session.transfer.formats import AUTO, FORMATS
from harnpy.session.transfer.losses import refuse
from harnpy.storage import StorageError
from harnpy.text.json.compact import compact_json
from harnpy.world import World

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.session.transfer.losses import Loss
    from harnpy.storage import Store

_NAMES = tuple(format.name for format in FORMATS)


@click.command("export")
@click.argument("id", required=False)
@click.option("--all", "everything", is_flag=True, help="All sessions, a file each.")
@click.option("--format", type=click.Choice(_NAMES), default="jsonl", show_default=True)
@click.option("-o", "--out", metavar="PATH", help="A file; a directory with --all. Without it: stdout.")
@click.option("--strict", is_flag=True, help="Write nothing if the format can't hold everything.")
@verb
def export_(
    store: Store, as_json: bool, id: str | None, everything: bool, format: str, out: str | None, strict: bool
) -> int:
    """Write a session to a file, from which `import` makes it again.

    jsonl holds its whole log, an event a line. What another format doesn't hold is listed on stderr.
    """
    if everything == (id is not None):
        raise click.UsageError("name a session, or pass --all")
    if id is None:
        if out is None:
            raise click.UsageError("--all needs -o DIRECTORY")
        report = export_dir(store, out, format, strict=strict)
        for path in report.exported:
            say(f"session: {path}")
        _say_lost(report.losses)
        return _say_errors(report.errors)
    _refuse_record(id)
    session = loaded(store, id)
    text = export(session, format, out, strict=strict)
    if out is None:
        click.echo(text, nl=False)
    else:
        say(f"session: {out}")
    _say_lost(lost(session, format))
    return OK


def _refuse_record(id: str) -> None:
    """Say what to do with a run record, which is no session."""
    if id.endswith(".json") and os.path.exists(id):
        raise click.ClickException(f"this is a run record: `harnpy bundle export {id}`")


@click.command("import")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--format", type=click.Choice((AUTO, *_NAMES)), default=AUTO, show_default=True)
@click.option("--id", metavar="ID", help="The session's id, in place of its own.")
@click.option(
    "--on-conflict",
    type=click.Choice((ERROR, SKIP, RENAME)),
    default=ERROR,
    show_default=True,
    help="When there is a session of that id.",
)
@click.option("--strict", is_flag=True, help="Store nothing of a file that can't be read in full.")
@verb
def import_(
    store: Store,
    as_json: bool,
    paths: tuple[str, ...],
    format: str,
    id: str | None,
    on_conflict: str,
    strict: bool,
) -> int:
    """Make sessions of files that `export`, Canto, Agently or Cognesy wrote, and of directories of them.

    A bad file doesn't keep the others out.
    """
    if id is not None and (len(paths) > 1 or os.path.isdir(paths[0])):
        raise click.UsageError("--id is for one file")
    status = OK
    for path in paths:
        try:
            if os.path.isdir(path):
                status |= _import_all(store, as_json, path, format, on_conflict, strict)
            else:
                _import_one(store, as_json, path, format, id, on_conflict, strict)
        except (SessionError, StorageError, OSError, UnicodeDecodeError) as error:
            complain(one_line(f"error: {path}: {getattr(error, 'strerror', None) or error}"))
            status = FAILED
    return status


def _import_all(store: Store, as_json: bool, path: str, format: str, on_conflict: str, strict: bool) -> int:
    report = import_dir(store, path, format, on_conflict=on_conflict, strict=strict)
    for id in report.imported:
        _say_imported(as_json, path, id)
    for skipped in report.skipped:
        _say_imported(as_json, skipped, None)
    _say_lost(report.losses)
    return _say_errors(report.errors)


def _import_one(
    store: Store, as_json: bool, path: str, format: str, id: str | None, on_conflict: str, strict: bool
) -> None:
    parsed = parsed_file(path, World(), format, {})
    if strict:
        refuse(parsed.losses)
    session = admitted(parsed, store, World(), id, on_conflict)
    _say_imported(as_json, path, None if session is None else session.id)
    _say_lost(parsed.losses)


def _say_imported(as_json: bool, path: str, id: str | None) -> None:
    if as_json:
        say(compact_json({"path": path, "session_id": id}))
    else:
        say(one_line(id or f"{path}: skipped"))


def _say_lost(losses: Iterable[Loss]) -> None:
    for loss in losses:
        complain(one_line(f"lost: {loss}"))


def _say_errors(errors: Iterable[tuple[str, str]]) -> int:
    status = OK
    for name, reason in errors:
        complain(one_line(f"error: {name}: {reason}"))
        status = FAILED
    return status


TRANSFERS = (export_, import_)
